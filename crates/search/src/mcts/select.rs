//! Which child a walk takes: the rules below the root, and at a PUCT root.

use super::gumbel::improved_policy;
use super::node::Node;
use super::params::{FirstPlayUrgency, InteriorRule, Puct};
use super::result::Proof;
use crate::math::ln;

/// What a rule looks at.
pub(super) struct Choice<'a> {
    pub node: &'a Node,
    pub children: &'a [Node],
    /// What each walk under way counts, in losses.
    pub virtual_loss: f32,
    /// Which children may be chosen: all, or a Gumbel root's candidates.
    pub allowed: Option<&'a [bool]>,
    /// Whether children without visits may stand before others with: noise and candidates at
    /// the root allow it. Elsewhere the first such child has the best prior of all the rest.
    pub unordered: bool,
}

impl Choice<'_> {
    pub fn select(&self, rule: &InteriorRule) -> usize {
        match rule {
            InteriorRule::Uct { c } => self.uct(*c),
            InteriorRule::Puct(puct) => self.puct(puct),
            InteriorRule::Improved { c_visit, c_scale } => self.improved(*c_visit, *c_scale),
        }
    }

    fn is_allowed(&self, index: usize) -> bool {
        self.allowed.is_none_or(|allowed| allowed[index])
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
                let tried = |child: &&Node| child.visits() > 0;
                let mass: f32 = if self.unordered {
                    self.children.iter().filter(tried).map(Node::prior).sum()
                } else {
                    self.children.iter().take_while(tried).map(Node::prior).sum()
                };
                -self.node.value() - reduction * mass.sqrt()
            }
        };
        self.best(|child, visits| {
            let value = if visits == 0.0 { urgency } else { self.value(child, visits) };
            value + exploration * child.prior() / (1.0 + visits)
        })
    }

    fn uct(&self, c: f32) -> usize {
        let log_total = ln(self.parent_visits().max(1.0));
        self.best(|child, visits| {
            if visits == 0.0 {
                f32::INFINITY
            } else {
                self.value(child, visits) + c * (log_total / visits).sqrt()
            }
        })
    }

    /// Keeps visits proportional to the improved policy: argmax π'(a) - N(a) / (1 + ΣN).
    fn improved(&self, c_visit: f32, c_scale: f32) -> usize {
        let policy = improved_policy(self.children, -self.node.value(), c_visit, c_scale);
        let visits = |child: &Node| (child.visits() + u32::from(child.in_flight())) as f32;
        let total: f32 = self.children.iter().map(visits).sum();
        let gap = |i: usize| policy[i] - visits(&self.children[i]) / (1.0 + total);
        (0..self.children.len())
            .filter(|&i| self.is_allowed(i))
            .max_by(|&a, &b| gap(a).total_cmp(&gap(b)).then(b.cmp(&a)))
            .unwrap_or(0)
    }

    /// The first child with the best score.
    fn best(&self, score: impl Fn(&Node, f32) -> f32) -> usize {
        let mut best = (f32::NEG_INFINITY, 0);
        for (index, child) in self.children.iter().enumerate() {
            if !self.is_allowed(index) {
                continue;
            }
            let visits = (child.visits() + u32::from(child.in_flight())) as f32;
            let score = match child.proof() {
                // Lost moves wait until nothing else is left.
                Proof::Loss(_) => -1e6 + score(child, visits).min(1e3),
                _ => score(child, visits),
            };
            if score > best.0 {
                best = (score, index);
            }
            if visits == 0.0 && !self.unordered {
                break;
            }
        }
        best.1
    }

    /// The mean of a child with the walks under way counted as losses.
    fn value(&self, child: &Node, visits: f32) -> f32 {
        let waiting = f32::from(child.in_flight());
        if waiting == 0.0 {
            child.value()
        } else {
            (child.value() * (visits - waiting) - self.virtual_loss * waiting) / visits
        }
    }
}
