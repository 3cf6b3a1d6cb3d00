//! The tree search of the lab: the network as an evaluator, and a thread's own search.

use std::sync::Arc;

use selfmate_chess::{Game, MoveList, Seed};
use selfmate_nn::mlp::{Forward, Network};
use selfmate_search::mcts::{
    Batch, Dirichlet, Expansion, FirstPlayUrgency, Gumbel, GumbelSearch, InteriorRule, Limit, Puct,
    RootRule, Search, SearchParams, SimulationStats, Temperature, run_in,
};
use selfmate_search::{Cached, Evaluation, Evaluator, Leaf, Wdl};
use serde::{Deserialize, Serialize};

use super::view::View;

/// How to search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThinkConfig {
    /// How the root chooses.
    pub rule: Rule,
    /// Simulations for a move of self-play.
    pub simulations: u64,
    /// The weight of exploration below the root, and at a root without candidates.
    pub c_puct: f64,
    /// Candidates of a Gumbel root.
    pub candidates: usize,
    /// How much values count against priors at a Gumbel root.
    pub c_scale: f64,
    /// The share of Dirichlet noise.
    pub epsilon: f64,
    /// The shape of Dirichlet noise.
    pub alpha: f64,
    /// Plies from the start of a game whose moves are drawn by visits under the rule `dirichlet`.
    pub drawn_plies: u32,
    /// Where priors come from.
    pub priors: Priors,
    /// Positions whose evaluation a search remembers, whatever moves led there; 0 for none.
    pub transpositions: usize,
}

/// How the root of a search chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// PUCT without noise; the most visited move is played.
    Greedy,
    /// PUCT with Dirichlet noise; the first moves are drawn by visits.
    Dirichlet,
    /// The best k moves by prior and Gumbel noise, PUCT among them; the most visited is played.
    TopK,
    /// The same candidates, with sequential halving.
    Halving,
}

/// Where priors come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priors {
    /// The network's logits of the legal moves, the others masked.
    Network,
    /// All legal moves alike.
    Uniform,
}

impl Default for ThinkConfig {
    fn default() -> ThinkConfig {
        ThinkConfig {
            rule: Rule::Halving,
            simulations: 100,
            c_puct: 1.5,
            candidates: 16,
            c_scale: 0.2,
            epsilon: 0.25,
            alpha: 0.3,
            drawn_plies: 8,
            priors: Priors::Network,
            transpositions: 0,
        }
    }
}

/// Whether a search explores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// With noise, to learn.
    Explore,
    /// Without, to be judged.
    Exploit,
}

impl ThinkConfig {
    fn root(&self, manner: Manner) -> RootRule {
        let gumbel = |search| {
            RootRule::Gumbel(Gumbel {
                candidates: self.candidates,
                c_scale: self.c_scale as f32,
                noise: if manner == Manner::Explore { 1.0 } else { 0.0 },
                search,
                ..Gumbel::default()
            })
        };
        match (self.rule, manner) {
            (Rule::Greedy, _) | (Rule::Dirichlet, Manner::Exploit) => RootRule::Puct(None),
            (Rule::Dirichlet, Manner::Explore) => RootRule::Puct(Some(Dirichlet {
                alpha: self.alpha as f32,
                epsilon: self.epsilon as f32,
            })),
            (Rule::TopK, _) => gumbel(GumbelSearch::TopK),
            (Rule::Halving, _) => gumbel(GumbelSearch::SequentialHalving),
        }
    }

    /// The settings of the tree search.
    pub fn params(&self, manner: Manner, discount: f64) -> SearchParams {
        let is_drawn = self.rule == Rule::Dirichlet && manner == Manner::Explore;
        SearchParams {
            root: self.root(manner),
            interior: InteriorRule::Puct(Puct {
                c_puct: self.c_puct as f32,
                first_play_urgency: FirstPlayUrgency::Reduced(0.2),
                ..Puct::default()
            }),
            // One pass of the network gives value and priors.
            expansion: Expansion::FirstVisit,
            discount: discount as f32,
            temperature: Temperature {
                value: if is_drawn { 1.0 } else { 0.0 },
                plies: self.drawn_plies,
            },
            memory_mb: 16,
            ..SearchParams::default()
        }
    }

    /// The evaluator that searches with this network use.
    pub fn evaluator(&self, network: Arc<Network>) -> Box<dyn Evaluator> {
        let plain = NetworkEvaluator::new(Arc::clone(&network), self.priors);
        if self.transpositions == 0 {
            return Box::new(plain);
        }
        match Cached::new(plain, self.transpositions) {
            Ok(cached) => Box::new(cached),
            // Without memory for them the same is found, more slowly.
            Err(_) => Box::new(NetworkEvaluator::new(network, self.priors)),
        }
    }
}

/// The largest value that is not certain.
const SURE: f32 = 0.99;

/// The logit of a move that the network has no number for.
const UNNUMBERED: f32 = -8.0;

/// The network as an evaluator.
pub struct NetworkEvaluator {
    network: Arc<Network>,
    priors: Priors,
    view: View,
    numbers: Vec<u16>,
    forward: Forward,
}

impl NetworkEvaluator {
    /// An evaluator with this network.
    pub fn new(network: Arc<Network>, priors: Priors) -> NetworkEvaluator {
        NetworkEvaluator {
            network,
            priors,
            view: View::default(),
            numbers: Vec::new(),
            forward: Forward::default(),
        }
    }

    /// What the side to move may expect.
    pub fn value(&mut self, game: &Game) -> f32 {
        self.look(game, &MoveList::new());
        self.forward.value.clamp(-SURE, SURE)
    }

    fn look(&mut self, game: &Game, legal: &MoveList) {
        self.view.look(game.position(), legal);
        self.numbers.clear();
        self.numbers.extend(self.view.numbers());
        self.network.forward(&self.view.features, &self.numbers, &mut self.forward);
    }
}

impl Evaluator for NetworkEvaluator {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            self.look(&leaf.game, &leaf.legal);
            let value = self.forward.value.clamp(-SURE, SURE);
            evaluation.wdl = Wdl::new(value, 1.0 - value.abs());
            evaluation.logits.clear();
            match self.priors {
                Priors::Uniform => evaluation.logits.resize(leaf.legal.len(), 0.0),
                Priors::Network => {
                    let mut logits = self.forward.logits.iter().copied();
                    let logit = |number: &Option<u16>| {
                        number.and_then(|_| logits.next()).unwrap_or(UNNUMBERED)
                    };
                    evaluation.logits.extend(self.view.moves.iter().map(logit));
                }
            }
        }
    }
}

/// A thread's search.
pub struct Thinker {
    /// The tree.
    pub search: Search,
    batch: Batch,
    evaluator: Box<dyn Evaluator>,
}

impl Thinker {
    /// A search with these settings and this network.
    ///
    /// # Panics
    ///
    /// When there is no memory for its tree, which is small.
    pub fn new(
        config: &ThinkConfig,
        manner: Manner,
        discount: f64,
        network: Arc<Network>,
    ) -> Thinker {
        let evaluator = config.evaluator(network);
        Thinker {
            search: Search::new(config.params(manner, discount))
                .unwrap_or_else(|error| panic!("{error}")),
            batch: Batch::new(&*evaluator),
            evaluator,
        }
    }

    /// Searches a position.
    pub fn think(&mut self, game: &Game, simulations: u64, seed: Seed) {
        self.search.start(game, simulations, seed);
        run_in(&mut self.search, &mut self.batch, &mut *self.evaluator, &Limit::default());
    }

    /// What its walks looked like since it was last asked.
    pub fn take_stats(&mut self) -> SimulationStats {
        self.batch.take_stats()
    }
}
