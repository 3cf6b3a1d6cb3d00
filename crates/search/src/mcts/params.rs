//! Search settings, with the published ones as named constructors.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchParams {
    /// Selection at the root.
    pub root: RootRule,
    /// Selection below the root.
    pub interior: InteriorRule,
    /// When a node gets its children.
    pub expansion: Expansion,
    /// What happens to a position that several paths lead to.
    pub transpositions: Transpositions,
    /// Flattens (above 1) or sharpens the priors below the root.
    pub policy_temperature: f32,
    /// The same at the root.
    pub root_policy_temperature: f32,
    /// How many losses a simulation in flight counts as; spreads the simulations of a batch.
    pub virtual_loss: f32,
    /// A value is multiplied by this for each ply from the leaf to the root.
    pub discount: f32,
    /// How the move to play is drawn from the visits (PUCT and UCT roots).
    pub temperature: Temperature,
    /// What the search returns as its policy; by default what belongs to the root rule: the improved
    /// policy to Gumbel, visits to the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_target: Option<PolicyTarget>,
    /// What the search returns as the value of the root.
    pub value_target: ValueTarget,
    /// The memory limit of the tree.
    pub memory_mb: usize,
}

impl Default for SearchParams {
    /// For playing: PUCT without noise, the most visited move.
    fn default() -> SearchParams {
        SearchParams {
            root: RootRule::Puct(None),
            interior: InteriorRule::Puct(Puct::default()),
            expansion: Expansion::SecondVisit,
            transpositions: Transpositions::Separate,
            policy_temperature: 1.0,
            root_policy_temperature: 1.0,
            virtual_loss: 1.0,
            discount: 1.0,
            temperature: Temperature { value: 0.0, plies: 0 },
            policy_target: None,
            value_target: ValueTarget::Mean,
            memory_mb: 256,
        }
    }
}

impl SearchParams {
    /// AlphaZero's self-play: growing c, root noise, and moves drawn by visits for 30 moves.
    pub fn alphazero() -> SearchParams {
        SearchParams {
            root: RootRule::Puct(Some(Dirichlet::default())),
            interior: InteriorRule::Puct(Puct::alphazero()),
            expansion: Expansion::FirstVisit,
            temperature: Temperature { value: 1.0, plies: 60 },
            ..SearchParams::default()
        }
    }

    /// Gumbel AlphaZero: sequential halving at the root, PUCT below.
    pub fn gumbel() -> SearchParams {
        SearchParams { root: RootRule::Gumbel(Gumbel::default()), ..SearchParams::default() }
    }

    /// Plain UCT, for evaluators without priors such as rollouts.
    pub fn uct() -> SearchParams {
        SearchParams {
            interior: InteriorRule::Uct { c: std::f32::consts::SQRT_2 },
            ..SearchParams::default()
        }
    }
}

/// Selection at the root.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootRule {
    /// As below the root, optionally with noise on the priors.
    Puct(Option<Dirichlet>),
    /// Candidates by prior and Gumbel noise.
    Gumbel(Gumbel),
}

/// Selection below the root.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InteriorRule {
    /// Upper confidence bounds without priors.
    Uct {
        /// The weight of exploration.
        c: f32,
    },
    /// Upper confidence bounds weighted by priors.
    Puct(Puct),
}

/// PUCT: the score of a move is Q plus an exploration term, see [`PuctFormula`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Puct {
    /// The initial c.
    pub c_puct: f32,
    /// c grows by ln((N + c_base + 1) / c_base); without it, c is constant.
    pub c_base: Option<f32>,
    /// The value of an untried move.
    pub first_play_urgency: FirstPlayUrgency,
    #[serde(default)]
    pub formula: PuctFormula,
}

/// The exploration term of a move with prior P and n visits, below a node with N visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PuctFormula {
    /// c · P · √N / (1 + n), where c grows slowly with N (Silver et al. 2018).
    #[default]
    #[serde(rename = "alphazero")]
    AlphaZero,
    /// c · P · √(N / (1 + n)) with a constant c. The term falls more slowly with the visits of the
    /// move: moves of equal value are visited in proportion to P², not to P.
    SqrtRatio,
}

/// The published constant (Silver et al. 2018, pseudocode).
const C_BASE: f32 = 19_652.0;

impl Puct {
    /// The published constants; untried moves count as lost.
    pub const fn alphazero() -> Puct {
        Puct {
            c_puct: 1.25,
            c_base: Some(C_BASE),
            first_play_urgency: FirstPlayUrgency::Absolute(-1.0),
            formula: PuctFormula::AlphaZero,
        }
    }
}

impl Default for Puct {
    fn default() -> Puct {
        Puct {
            c_puct: 1.5,
            c_base: Some(C_BASE),
            first_play_urgency: FirstPlayUrgency::Reduced(0.3),
            formula: PuctFormula::AlphaZero,
        }
    }
}

/// The value of an untried move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstPlayUrgency {
    /// A constant.
    Absolute(f32),
    /// The node's own value minus this times the square root of the prior mass already tried.
    Reduced(f32),
}

/// Noise on the root's priors: (1 - epsilon) · P + epsilon · Dirichlet(alpha).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dirichlet {
    /// A small alpha gives most of the noise to a few moves.
    pub alpha: f32,
    /// The share of noise.
    pub epsilon: f32,
}

impl Default for Dirichlet {
    fn default() -> Dirichlet {
        Dirichlet { alpha: 0.3, epsilon: 0.25 }
    }
}

/// Settings of a Gumbel root.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gumbel {
    /// How many root moves are considered.
    pub candidates: usize,
    /// σ(q) = (c_visit + most visits) · c_scale · q, with q in [-1, 1].
    pub c_visit: f32,
    /// See `c_visit`.
    pub c_scale: f32,
    /// 1 for self-play; 0 disables the noise.
    pub noise: f32,
    /// How simulations are divided among the candidates.
    pub search: GumbelSearch,
}

impl Default for Gumbel {
    fn default() -> Gumbel {
        Gumbel {
            candidates: 16,
            c_visit: 50.0,
            c_scale: 0.2,
            noise: 1.0,
            search: GumbelSearch::SequentialHalving,
        }
    }
}

/// How simulations are divided among the candidates of a Gumbel root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GumbelSearch {
    /// Rounds of equal visits; the worse half is dropped after each round.
    SequentialHalving,
    /// The interior rule among the candidates; the most visited is played.
    TopK,
}

/// When a node gets its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expansion {
    /// With its first value: for evaluators that compute value and priors together.
    FirstVisit,
    /// At its second visit. Most nodes never need priors, so a cheap evaluator skips them and the
    /// tree stays small.
    SecondVisit,
    /// As with `FirstVisit`, but every move is tried once before any other rule chooses, in a random
    /// order: a simulation adds one untried move, drawn uniformly (Coulom 2006). Candidates of a
    /// Gumbel root are tried in their own order.
    RandomUntried,
}

/// What happens to a position that several paths lead to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transpositions {
    /// Each path has its own nodes.
    #[default]
    Separate,
    /// Nodes of the same position, at the same distance from the root, have the same children. Such
    /// a search starts anew with every root, and ends when its memory is full.
    Shared,
}

/// The policy that a search returns, for a network to learn from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyTarget {
    /// The visits of each move as a share of all; proven wins and losses override them.
    Visits,
    /// The softmax of log prior and completed value (Danihelka et al. 2022). With noise on the
    /// priors, it contains the noise.
    Improved {
        /// See [`Gumbel`].
        c_visit: f32,
        /// See [`Gumbel`].
        c_scale: f32,
    },
}

/// The value that a search returns, for a network to learn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueTarget {
    /// The mean of all simulations. Sequential halving sends most of them through moves that it
    /// rejects later, so the mean is too low where only one move is good.
    #[default]
    Mean,
    /// The mean of the moves' values, weighted by the policy target. An untried move has the
    /// completed value.
    Policy,
    /// The value of the move to play.
    Best,
}

/// How the move to play is drawn from the visits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Temperature {
    /// Probabilities are proportional to visits to the power 1/value; 0 plays the most visited
    /// move.
    pub value: f32,
    /// After this many plies of the game, the most visited move is played.
    pub plies: u32,
}
