//! Gumbel AlphaZero: root candidates, completed Q-values and the improved policy.
//!
//! Danihelka et al., "Policy improvement by planning with Gumbel", ICLR 2022, sections 3 to 5.

use selfmate_chess::Rng;

use super::halving::considered_visits;
use super::params::{Gumbel, GumbelSearch};
use super::tree::Children;
use crate::math::{ln, softmax};

/// The state of a Gumbel root during one search.
#[derive(Clone, Debug)]
pub(super) struct GumbelRoot {
    params: Gumbel,
    /// Log prior plus Gumbel noise of each child.
    noisy_logits: Vec<f32>,
    /// Simulations of this search through each child. The tree's visits include earlier searches.
    simulations: Vec<u32>,
    /// See [`considered_visits`]; empty for top-k.
    table: Vec<u32>,
    next: usize,
    /// Whether each child is a candidate.
    candidate: Vec<bool>,
}

impl GumbelRoot {
    pub fn new(
        params: Gumbel,
        children: &Children<'_>,
        simulations: usize,
        rng: &mut Rng,
    ) -> GumbelRoot {
        let noisy_logits: Vec<f32> = (0..children.len())
            .map(|child| ln(children.prior(child)) + params.noise * rng.gumbel() as f32)
            .collect();
        let count = params.candidates.clamp(1, children.len().max(1));
        let mut order: Vec<usize> = (0..children.len()).collect();
        order.sort_by(|&a, &b| noisy_logits[b].total_cmp(&noisy_logits[a]));
        let mut candidate = vec![false; children.len()];
        for &index in order.iter().take(count) {
            candidate[index] = true;
        }
        let table = match params.search {
            GumbelSearch::SequentialHalving => considered_visits(count, simulations),
            GumbelSearch::TopK => Vec::new(),
        };
        GumbelRoot {
            params,
            noisy_logits,
            simulations: vec![0; children.len()],
            table,
            next: 0,
            candidate,
        }
    }

    pub fn candidates(&self) -> &[bool] {
        &self.candidate
    }

    /// The child for the next simulation by sequential halving; `None` for top-k, where the
    /// interior rule chooses.
    pub fn select(&mut self, children: &Children<'_>, raw_value: f32) -> Option<usize> {
        if self.params.search == GumbelSearch::TopK {
            return None;
        }
        // Beyond the table (the search runs longer than planned), the two most visited candidates
        // stay, and the one with fewer visits is next.
        let wanted = self.table.get(self.next).copied();
        let second_most = || {
            let mut sent: Vec<u32> = (0..self.simulations.len())
                .filter(|&i| self.candidate[i])
                .map(|i| self.simulations[i])
                .collect();
            sent.sort_unstable_by(|a, b| b.cmp(a));
            sent.get(1).or(sent.first()).copied().unwrap_or(0)
        };
        let wanted = wanted.unwrap_or_else(second_most);
        let is_next = |i: usize| self.candidate[i] && self.simulations[i] == wanted;
        let chosen = if (0..children.len()).any(|i| is_next(i) && children.visits(i) > 0) {
            let scores = self.scores(children, raw_value);
            best(&scores, is_next).or_else(|| self.winner_by(&scores))
        } else {
            // Untried moves share one completed value, so the noisy priors decide.
            best(&self.noisy_logits, is_next)
                .or_else(|| self.winner_by(&self.scores(children, raw_value)))
        };
        self.next += 1;
        if let Some(index) = chosen {
            self.simulations[index] += 1;
        }
        chosen
    }

    /// Undoes a selection whose simulation was abandoned.
    pub fn unselect(&mut self, index: usize) {
        if self.params.search == GumbelSearch::SequentialHalving {
            self.simulations[index] -= 1;
            self.next -= 1;
        }
    }

    /// The child to play: the highest score among the candidates with the most simulations.
    pub fn winner(&self, children: &Children<'_>, raw_value: f32) -> Option<usize> {
        match self.params.search {
            GumbelSearch::SequentialHalving => self.winner_by(&self.scores(children, raw_value)),
            GumbelSearch::TopK => (0..children.len())
                .filter(|&i| self.candidate[i])
                .max_by_key(|&i| (children.visits(i), std::cmp::Reverse(i))),
        }
    }

    fn winner_by(&self, scores: &[f32]) -> Option<usize> {
        (0..scores.len()).filter(|&i| self.candidate[i]).max_by(|&a, &b| {
            self.simulations[a]
                .cmp(&self.simulations[b])
                .then(scores[a].total_cmp(&scores[b]))
                .then(b.cmp(&a))
        })
    }

    /// Noise + log prior + σ(completed q) of each child.
    fn scores(&self, children: &Children<'_>, raw_value: f32) -> Vec<f32> {
        let mut scores = sigma(children, raw_value, self.params.c_visit, self.params.c_scale);
        for (score, noisy) in scores.iter_mut().zip(&self.noisy_logits) {
            *score += noisy;
        }
        scores
    }
}

/// The index of the highest score that passes; the first among equals.
fn best(scores: &[f32], passes: impl Fn(usize) -> bool) -> Option<usize> {
    (0..scores.len())
        .filter(|&i| passes(i))
        .max_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(b.cmp(&a)))
}

/// The improved policy: softmax of log prior + σ(completed q). `raw_value` is the evaluator's value
/// of the node for its side to move.
pub(super) fn improved_policy(
    children: &Children<'_>,
    raw_value: f32,
    c_visit: f32,
    c_scale: f32,
) -> Vec<f32> {
    let mut logits = sigma(children, raw_value, c_visit, c_scale);
    for (child, logit) in logits.iter_mut().enumerate() {
        *logit += ln(children.prior(child));
    }
    softmax(&mut logits, 1.0);
    logits
}

/// σ(completed q) of each child: (c_visit + most visits) · c_scale · q.
fn sigma(children: &Children<'_>, raw_value: f32, c_visit: f32, c_scale: f32) -> Vec<f32> {
    let most_visits = (0..children.len()).map(|child| children.visits(child)).max().unwrap_or(0);
    let scale = (c_visit + most_visits as f32) * c_scale;
    let mixed = mixed_value(children, raw_value);
    let completed = |child| match children.node(child) {
        Some(node) if node.visits() > 0 => node.value(),
        _ => mixed,
    };
    (0..children.len()).map(|child| scale * completed(child)).collect()
}

/// The value of untried moves (appendix D of the paper): the raw value mixed with the
/// prior-weighted mean of the tried moves, (v + ΣN · Σ p q / Σ p) / (1 + ΣN), where the inner sums
/// are over tried moves.
pub(super) fn mixed_value(children: &Children<'_>, raw_value: f32) -> f32 {
    let (mut visits, mut mass, mut weighted) = (0.0, 0.0, 0.0);
    for child in 0..children.len() {
        if let Some(node) = children.node(child).filter(|node| node.visits() > 0) {
            visits += node.visits() as f32;
            mass += children.prior(child);
            weighted += children.prior(child) * node.value();
        }
    }
    if visits == 0.0 { raw_value } else { (raw_value + visits * weighted / mass) / (1.0 + visits) }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::super::edge::Edge;
    use super::super::node::Sharing;
    use super::super::tree::{ROOT, Tree};
    use super::*;
    use crate::packed_move::PackedMove;

    /// A tree whose root has children with these priors, visits and values.
    fn tree(table: &[(f32, u32, f32)]) -> Tree {
        let tree = Tree::new(1 << 20).unwrap();
        let edges: Vec<Edge> =
            table.iter().map(|&(prior, ..)| Edge::new(PackedMove::default(), prior)).collect();
        assert!(tree.expand(tree.node(ROOT), &edges));
        for (child, &(_, visits, value)) in table.iter().enumerate() {
            for _ in 0..visits {
                visit(&tree, child, value);
            }
        }
        tree
    }

    fn visit(tree: &Tree, child: usize, value: f32) {
        let index = tree.children(tree.node(ROOT)).index_or_add(child).unwrap();
        tree.node(index).enter(Sharing::Alone);
        tree.node(index).finish(value, 0.0, Sharing::Alone);
    }

    #[test]
    fn completed_values_match_a_hand_computed_example() {
        let tree_of_three = tree(&[(0.5, 2, 0.4), (0.25, 1, -0.2), (0.25, 0, 0.0)]);
        let nodes = tree_of_three.children(tree_of_three.node(ROOT));
        // Σ p q / Σ p = (0.2 - 0.05) / 0.75 = 0.2; (0.1 + 3 · 0.2) / 4 = 0.175.
        assert!((mixed_value(&nodes, 0.1) - 0.175).abs() < 1e-3);
        // (50 + 2) · 0.1 = 5.2 times 0.4, -0.2 and 0.175.
        let sigma = sigma(&nodes, 0.1, 50.0, 0.1);
        for (ours, expected) in sigma.iter().zip([2.08, -1.04, 0.91]) {
            assert!((ours - expected).abs() < 5e-3, "{sigma:?}");
        }
        // ½e^2.08 : ¼e^-1.04 : ¼e^0.91 = 4.0022 : 0.0884 : 0.6211.
        let policy = improved_policy(&nodes, 0.1, 50.0, 0.1);
        for (ours, expected) in policy.iter().zip([0.8494, 0.0188, 0.1318]) {
            assert!((ours - expected).abs() < 1e-3, "{policy:?}");
        }
        let untried = tree(&[(1.0, 0, 0.0)]);
        assert_eq!(mixed_value(&untried.children(untried.node(ROOT)), -0.3), -0.3);
    }

    #[test]
    fn first_candidates_are_drawn_by_prior_without_replacement() {
        // By the Gumbel trick, the first of the top k is drawn from the priors and the second from
        // the rest. For priors .6 .3 .1, the pair {0, 1} has probability .6 · .3/.4 + .3 · .6/.7.
        let tree = tree(&[(0.6, 0, 0.0), (0.3, 0, 0.0), (0.1, 0, 0.0)]);
        let nodes = tree.children(tree.node(ROOT));
        let params = Gumbel { candidates: 2, ..Gumbel::default() };
        let mut rng = Seed::new(4).rng();
        let (mut first, mut pair) = ([0u32; 3], 0);
        let draws = 20_000;
        for _ in 0..draws {
            let mut root = GumbelRoot::new(params, &nodes, 2, &mut rng);
            let a = root.select(&nodes, 0.0).unwrap();
            let b = root.select(&nodes, 0.0).unwrap();
            assert_ne!(a, b);
            first[a] += 1;
            pair += u32::from(a + b == 1);
        }
        for (count, prior) in first.iter().zip([0.6, 0.3, 0.1]) {
            assert!((f64::from(*count) / f64::from(draws) - prior).abs() < 0.015, "{first:?}");
        }
        assert!(
            (f64::from(pair) / f64::from(draws) - (0.6 * 0.3 / 0.4 + 0.3 * 0.6 / 0.7)).abs()
                < 0.015
        );
    }

    #[test]
    fn play_improves_on_the_prior_for_any_values() {
        // Policy improvement (section 3): averaged over the noise, the winner is worth at least the
        // mean under the prior. Tested on bandits with known values.
        let mut rng = Seed::new(5).rng();
        for bandit in 0..50 {
            let arms: Vec<(f32, f32)> = {
                let mut logits: Vec<f32> = (0..6).map(|_| rng.normal() as f32).collect();
                softmax(&mut logits, 1.0);
                logits.into_iter().map(|prior| (prior, (rng.unit() * 2.0 - 1.0) as f32)).collect()
            };
            let prior_value: f32 = arms.iter().map(|(prior, value)| prior * value).sum();
            let plays = 300;
            let (mut total, mut improved_total) = (0.0, 0.0);
            for _ in 0..plays {
                let tree = tree(&arms.iter().map(|&(p, _)| (p, 0, 0.0)).collect::<Vec<_>>());
                let nodes = tree.children(tree.node(ROOT));
                let params = Gumbel { candidates: 4, ..Gumbel::default() };
                let mut root = GumbelRoot::new(params, &nodes, 8, &mut rng);
                for _ in 0..8 {
                    let arm = root.select(&nodes, prior_value).unwrap();
                    visit(&tree, arm, arms[arm].1);
                }
                total += arms[root.winner(&nodes, prior_value).unwrap()].1;
                let improved = improved_policy(&nodes, prior_value, 50.0, 0.2);
                let values = improved.iter().zip(&arms).map(|(p, (_, value))| p * value);
                improved_total += values.sum::<f32>();
            }
            assert!(improved_total / plays as f32 >= prior_value, "bandit {bandit}");
            assert!(total / plays as f32 >= prior_value - 0.02, "bandit {bandit}");
        }
    }
}
