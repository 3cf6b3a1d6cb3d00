//! Which child a walk takes: the rules below the root, and at a PUCT root.

use super::gumbel::improved_policy;
use super::node::Node;
use super::params::{FirstPlayUrgency, InteriorRule, Puct};
use super::result::Proof;
use super::tree::Children;
use crate::math::ln;

/// What a rule looks at.
pub(super) struct Choice<'a> {
    pub node: &'a Node,
    pub children: Children<'a>,
    /// What each walk under way counts, in losses.
    pub virtual_loss: f32,
    /// Which children may be chosen: all, or a Gumbel root's candidates.
    pub allowed: Option<&'a [bool]>,
    /// Whether children without visits may stand before others with: noise and candidates at
    /// the root allow it. Elsewhere the first such child has the best prior of all the rest.
    pub unordered: bool,
}

/// A child as a rule sees it: its prior, the walks through it, and its value.
struct Candidate {
    prior: f32,
    /// Finished walks and those under way.
    visits: f32,
    /// The mean of the finished walks, those under way counted as losses.
    value: f32,
}

impl Choice<'_> {
    pub fn select(&self, rule: &InteriorRule) -> usize {
        match rule {
            InteriorRule::Uct { c } => self.uct(*c),
            InteriorRule::Puct(puct) => self.puct(puct),
            InteriorRule::Improved { c_visit, c_scale } => self.improved(*c_visit, *c_scale),
        }
    }

    fn is_allowed(&self, child: usize) -> bool {
        self.allowed.is_none_or(|allowed| allowed[child])
    }

    /// Walks through the node, this one excluded.
    fn parent_visits(&self) -> f32 {
        (self.node.visits() + u32::from(self.node.in_flight()).saturating_sub(1)) as f32
    }

    fn puct(&self, puct: &Puct) -> usize {
        let total = self.parent_visits().max(1.0);
        let c = puct.c_init + ln((total + puct.c_base + 1.0) / puct.c_base);
        let exploration = c * total.sqrt();
        let urgency = match puct.first_play_urgency {
            FirstPlayUrgency::Absolute(value) => value,
            FirstPlayUrgency::Reduced(reduction) => {
                -self.node.value() - reduction * self.prior_mass_tried().sqrt()
            }
        };
        self.best(|child| {
            let value = if child.visits == 0.0 { urgency } else { child.value };
            value + exploration * child.prior / (1.0 + child.visits)
        })
    }

    fn prior_mass_tried(&self) -> f32 {
        let mut mass = 0.0;
        for child in 0..self.children.len() {
            if self.children.visits(child) > 0 {
                mass += self.children.prior(child);
            } else if !self.unordered {
                break;
            }
        }
        mass
    }

    fn uct(&self, c: f32) -> usize {
        let log_total = ln(self.parent_visits().max(1.0));
        self.best(|child| match child.visits {
            0.0 => f32::INFINITY,
            visits => child.value + c * (log_total / visits).sqrt(),
        })
    }

    /// Keeps visits proportional to the improved policy: argmax π'(a) - N(a) / (1 + ΣN).
    fn improved(&self, c_visit: f32, c_scale: f32) -> usize {
        let policy = improved_policy(&self.children, -self.node.value(), c_visit, c_scale);
        let visits: Vec<f32> =
            (0..policy.len()).map(|child| self.candidate(child).visits).collect();
        let total: f32 = visits.iter().sum();
        let gap = |child: usize| policy[child] - visits[child] / (1.0 + total);
        (0..policy.len())
            .filter(|&child| self.is_allowed(child))
            .max_by(|&a, &b| gap(a).total_cmp(&gap(b)).then(b.cmp(&a)))
            .unwrap_or(0)
    }

    /// The first child with the best score.
    fn best(&self, score: impl Fn(&Candidate) -> f32) -> usize {
        let mut best = (f32::NEG_INFINITY, 0);
        for index in 0..self.children.len() {
            if !self.is_allowed(index) {
                continue;
            }
            let child = self.candidate(index);
            let score = match self.children.proof(index) {
                // Lost moves wait until nothing else is left.
                Proof::Loss(_) => -1e6 + score(&child).min(1e3),
                _ => score(&child),
            };
            if score > best.0 {
                best = (score, index);
            }
            if child.visits == 0.0 && !self.unordered {
                break;
            }
        }
        best.1
    }

    fn candidate(&self, child: usize) -> Candidate {
        let prior = self.children.prior(child);
        let Some(node) = self.children.node(child) else {
            return Candidate { prior, visits: 0.0, value: 0.0 };
        };
        let (finished, waiting) = (node.visits() as f32, f32::from(node.in_flight()));
        let visits = finished + waiting;
        let value = if waiting == 0.0 {
            node.value()
        } else {
            (node.value() * finished - self.virtual_loss * waiting) / visits
        };
        Candidate { prior, visits, value }
    }
}
