//! The root: noise or candidates before the search, the result after it.

use std::cmp::Reverse;

use selfmate_chess::{Move, MoveList, Position};

use super::gumbel::{GumbelRoot, improved_policy, mixed_value};
use super::params::{Dirichlet, Gumbel, PolicyTarget, RootRule, ValueTarget};
use super::result::{Decision, MoveStatistics, Proof, SearchResult};
use super::search::{Root, Search};
use super::tree::{Children, ROOT};
use crate::math::{ln, softmax};
use crate::packed_move::PackedMove;
use crate::value::Wdl;

impl Search {
    pub fn result(&self) -> SearchResult {
        let node = self.tree.node(ROOT);
        let children = self.root_children();
        let root = self.root();
        let seen =
            if node.visits() > 0 { Wdl::new(node.value_to_move(), node.draw()) } else { root.raw };
        let wdl = self.probes.known().unwrap_or(seen);
        let policy = self.policy_target(&root, &children);
        let best = self.best_child(&root, &children);
        let mut order: Vec<usize> = (0..children.len()).collect();
        order.sort_by_key(|&child| (Some(child) != best, Reverse(children.visits(child))));
        let board = self.game.position().board();
        SearchResult {
            best: best.map(|child| children.played(child).unpack(board)),
            wdl,
            raw_wdl: root.raw,
            policy_target: order.iter().map(|&child| policy[child]).collect(),
            moves: order.iter().map(|&child| self.statistics(children, child)).collect(),
            simulations: self.simulations(),
            tablebase_hits: self.tablebase_hits(),
            proof: node.proof().flip(),
        }
    }

    /// The move to play and the training targets; `None` when there is no legal move.
    ///
    /// `legal` are the root's legal moves.
    pub fn decision(&self, legal: &MoveList) -> Option<Decision> {
        let node = self.tree.node(ROOT);
        let children = self.root_children();
        let root = self.root();
        let best = self.best_child(&root, &children)?;
        let known = self.probes.known().or(node.proof().flip().wdl());
        let policy = self.policy_target(&root, &children);
        let wdl = known.unwrap_or_else(|| self.value_target(&root, &children, &policy, best));
        let mut policy_target = vec![0.0; legal.len()];
        for (child, share) in policy.into_iter().enumerate() {
            let m = children.played(child);
            if let Some(index) = legal.iter().position(|&legal| PackedMove::new(legal) == m) {
                policy_target[index] = share;
            }
        }
        Some(Decision {
            best: children.played(best).unpack(self.game.position().board()),
            wdl,
            policy_target,
        })
    }

    fn statistics<'a>(&'a self, children: Children<'a>, child: usize) -> MoveStatistics {
        let node = children.node(child).filter(|node| node.visits() > 0);
        MoveStatistics {
            played: children.played(child).unpack(self.game.position().board()),
            visits: children.visits(child),
            prior: children.prior(child),
            wdl: self.probes.known().or(children.proof(child).wdl()).unwrap_or_else(|| {
                node.map_or(Wdl::EVEN, |node| Wdl::new(node.value(), node.draw()))
            }),
            proof: children.proof(child),
            line: self.line(children, child),
        }
    }

    /// The most visited continuation that starts with this root child.
    fn line<'a>(&'a self, mut children: Children<'a>, mut child: usize) -> Vec<Move> {
        let mut position = self.game.position().clone();
        let mut line = Vec::new();
        loop {
            let m = children.played(child).unpack(position.board());
            position.play_unchecked(m);
            line.push(m);
            let Some(node) = children.node(child) else { return line };
            children = self.tree.children(node);
            let most = (0..children.len()).rev().max_by_key(|&child| children.visits(child));
            match most {
                Some(next) if children.visits(next) > 0 => child = next,
                _ => return line,
            }
        }
    }

    /// Adds noise or draws candidates, once the root has children.
    pub(super) fn prepare_root(&self) {
        self.reserve_root();
        let children = self.root_children();
        let mut rng = self.seed.derive("root").rng();
        match &self.params.root {
            RootRule::Puct(None) => {}
            RootRule::Puct(Some(Dirichlet { alpha, epsilon })) => {
                let shape = f64::from(*alpha);
                let noise: Vec<f64> = (0..children.len()).map(|_| rng.gamma(shape)).collect();
                let sum: f64 = noise.iter().sum::<f64>().max(f64::MIN_POSITIVE);
                for (child, noise) in noise.into_iter().enumerate() {
                    let share = (noise / sum) as f32;
                    let mixed = (1.0 - epsilon) * children.prior(child) + epsilon * share;
                    children.set_prior(child, mixed);
                }
            }
            RootRule::Gumbel(gumbel) => {
                let simulations = usize::try_from(self.budget.min(1 << 20)).unwrap_or(1 << 20);
                let gumbel = GumbelRoot::new(*gumbel, &children, simulations, &mut rng);
                self.root().gumbel = Some(gumbel);
            }
        }
    }

    /// Creates nodes for all of the root's children, so that every simulation can make its first
    /// step.
    pub(super) fn reserve_root(&self) {
        let children = self.root_children();
        (0..children.len()).for_each(|child| _ = children.index_or_add(child));
    }

    /// Applies the root temperature to the priors of a root that was an interior node before.
    pub(super) fn apply_root_temperature(&self) {
        let (inner, root) = (self.params.policy_temperature, self.params.root_policy_temperature);
        if inner == root {
            return;
        }
        let children = self.root_children();
        let mut priors: Vec<f32> =
            (0..children.len()).map(|child| ln(children.prior(child)) * inner).collect();
        softmax(&mut priors, root);
        for (child, prior) in priors.into_iter().enumerate() {
            children.set_prior(child, prior);
        }
    }

    fn policy_target(&self, root: &Root, children: &Children<'_>) -> Vec<f32> {
        let target = self.params.policy_target.unwrap_or(match self.params.root {
            RootRule::Gumbel(Gumbel { c_visit, c_scale, .. }) => {
                PolicyTarget::Improved { c_visit, c_scale }
            }
            RootRule::Puct(_) => PolicyTarget::Visits,
        });
        match target {
            PolicyTarget::Improved { c_visit, c_scale } => {
                improved_policy(children, root.raw.value(), c_visit, c_scale)
            }
            PolicyTarget::Visits => {
                // Proofs override the visits, which may be from before the proof.
                let won = self.quickest_win(children);
                let weight = |child| match (won, children.proof(child)) {
                    (Some(won), _) => f32::from(u8::from(child == won)),
                    (None, Proof::Loss(_)) => 0.0,
                    _ => children.visits(child) as f32,
                };
                let total: f32 = (0..children.len()).map(weight).sum();
                let share = |child| match total {
                    0.0 => children.prior(child),
                    _ => weight(child) / total,
                };
                (0..children.len()).map(share).collect()
            }
        }
    }

    fn value_target(
        &self,
        root: &Root,
        children: &Children<'_>,
        policy: &[f32],
        best: usize,
    ) -> Wdl {
        let discount = self.params.discount;
        let tried = |child: usize| {
            let node = children.node(child).filter(|node| node.visits() > 0)?;
            Some((discount * node.value(), node.draw()))
        };
        let mean = || {
            let node = self.tree.node(ROOT);
            (node.value_to_move(), node.draw())
        };
        let (value, draw) = match self.params.value_target {
            ValueTarget::Mean => mean(),
            ValueTarget::Best => tried(best).unwrap_or_else(mean),
            ValueTarget::Policy => {
                let untried = (mixed_value(children, root.raw.value()), root.raw.draw);
                policy.iter().enumerate().fold((0.0, 0.0), |sum, (child, share)| {
                    let (value, draw) = tried(child).unwrap_or(untried);
                    (sum.0 + share * value, sum.1 + share * draw)
                })
            }
        };
        Wdl::new(value, draw)
    }

    /// The child to play: a proven win, else by the root's rule, but never a proven loss while
    /// there is another move.
    fn best_child(&self, root: &Root, children: &Children<'_>) -> Option<usize> {
        let all = 0..children.len();
        let lost = |child: usize| match children.proof(child) {
            Proof::Loss(plies) => Some(plies),
            _ => None,
        };
        if let Some(quickest) = self.quickest_win(children) {
            return Some(quickest);
        }
        if all.clone().all(|child| lost(child).is_some()) {
            return all.max_by_key(|&child| lost(child));
        }
        let winner = root.gumbel.as_ref().and_then(|g| g.winner(children, root.raw.value()));
        winner
            .or_else(|| self.drawn_child(children))
            .filter(|&child| lost(child).is_none())
            .or_else(|| {
                all.filter(|&child| lost(child).is_none()).max_by(|&a, &b| {
                    let by_visits = children.visits(a).cmp(&children.visits(b));
                    by_visits.then(children.prior(a).total_cmp(&children.prior(b))).then(b.cmp(&a))
                })
            })
    }

    fn quickest_win(&self, children: &Children<'_>) -> Option<usize> {
        let plies = |child| match children.proof(child) {
            Proof::Win(plies) => Some((plies, child)),
            _ => None,
        };
        (0..children.len()).filter_map(plies).min().map(|(_, child)| child)
    }

    /// A child drawn by visits, in the first plies of a game; `None` after that.
    fn drawn_child(&self, children: &Children<'_>) -> Option<usize> {
        let temperature = self.params.temperature;
        if temperature.value <= 0.0 || self.game.ply() >= temperature.plies as usize {
            return None;
        }
        let power = 1.0 / f64::from(temperature.value);
        let weights: Vec<f64> = (0..children.len())
            .map(|child| libm::pow(f64::from(children.visits(child)), power))
            .collect();
        let mut drawn = self.seed.derive("choose").rng().unit() * weights.iter().sum::<f64>();
        weights.iter().position(|weight| {
            drawn -= weight;
            drawn < 0.0
        })
    }
}
