//! Selection of a child: the interior rules, and PUCT at the root.

use std::sync::atomic::Ordering::Relaxed;

use super::edge::Edge;
use super::node::Node;
use super::params::{FirstPlayUrgency, InteriorRule, Puct, PuctFormula};
use super::tree::{Children, GROUP};
use crate::math::ln;

/// The inputs of a selection rule.
pub(super) struct Choice<'a> {
    pub node: &'a Node,
    /// Simulations through the position, excluding this one.
    pub visits: u32,
    pub children: Children<'a>,
    /// How many losses each simulation in flight counts as.
    pub virtual_loss: f32,
    /// Which children may be chosen; `None` for all. A Gumbel root allows its candidates.
    pub allowed: Option<&'a [bool]>,
    /// Whether untried children may come before tried ones, as with noise or candidates at the
    /// root. Otherwise the first untried child has the highest prior of all untried ones.
    pub unordered: bool,
    /// Whether untried children come before all others.
    pub untried_first: bool,
    pub exploration: &'a Exploration,
}

/// The exploration factor by visits of the node: a logarithm or a square root. Precomputed for
/// small numbers, because every step of every simulation needs one.
pub(super) struct Exploration(Vec<f32>);

impl Exploration {
    const KEPT: u32 = 8192;

    pub fn new(rule: &InteriorRule) -> Exploration {
        Exploration(
            (0..Exploration::KEPT).map(|visits| Exploration::computed(rule, visits)).collect(),
        )
    }

    fn at(&self, rule: &InteriorRule, visits: u32) -> f32 {
        let kept = self.0.get(visits as usize).copied();
        kept.unwrap_or_else(|| Exploration::computed(rule, visits))
    }

    fn computed(rule: &InteriorRule, visits: u32) -> f32 {
        let total = visits.max(1) as f32;
        match rule {
            InteriorRule::Uct { .. } => ln(total),
            InteriorRule::Puct(puct) => {
                let grown = |base: f32| ln((total + base + 1.0) / base);
                let c = puct.c_puct + puct.c_base.map_or(0.0, grown);
                c * total.sqrt()
            }
        }
    }
}

/// Four children, one per lane, so that the compiler computes four scores at a time.
#[derive(Default)]
struct Lanes {
    prior: [f32; GROUP],
    /// Finished visits and simulations in flight.
    visits: [f32; GROUP],
    /// The mean of the finished visits, with simulations in flight counted as losses; the rule's
    /// default value for untried children.
    value: [f32; GROUP],
}

impl Choice<'_> {
    pub fn select(&self, rule: &InteriorRule) -> usize {
        let exploration = self.exploration.at(rule, self.visits);
        match rule {
            InteriorRule::Uct { c } => self.uct(*c, exploration),
            InteriorRule::Puct(puct) => self.puct(puct, exploration),
        }
    }

    fn is_allowed(&self, child: usize) -> bool {
        self.allowed.is_none_or(|allowed| allowed[child])
    }

    fn puct(&self, puct: &Puct, exploration: f32) -> usize {
        let own_value = self.node.value_to_move();
        // Without noise, all children before the first untried one were tried.
        let tried = if self.unordered { self.prior_mass_tried() } else { 0.0 };
        let urgency = |mass_before: f32| match puct.first_play_urgency {
            _ if self.untried_first => f32::INFINITY,
            FirstPlayUrgency::Absolute(value) => value,
            FirstPlayUrgency::Reduced(reduction) => {
                let mass = if self.unordered { tried } else { mass_before };
                own_value - reduction * mass.sqrt()
            }
        };
        match puct.formula {
            PuctFormula::AlphaZero => self.best(urgency, |Lanes { prior, visits, value }, i| {
                value[i] + exploration * prior[i] / (1.0 + visits[i])
            }),
            PuctFormula::SqrtRatio => self.best(urgency, |Lanes { prior, visits, value }, i| {
                value[i] + exploration * prior[i] / (1.0 + visits[i]).sqrt()
            }),
        }
    }

    fn prior_mass_tried(&self) -> f32 {
        let tried = |child: &usize| self.children.visits(*child) > 0;
        (0..self.children.len()).filter(tried).map(|child| self.children.prior(child)).sum()
    }

    fn uct(&self, c: f32, log_total: f32) -> usize {
        // An untried child has an infinite value already.
        self.best(
            |_| f32::INFINITY,
            |Lanes { visits, value, .. }, i| value[i] + c * (log_total / visits[i].max(1.0)).sqrt(),
        )
    }

    /// The first child with the highest score. `untried` is the value of an untried child, given
    /// the prior mass of those before it. This is the innermost loop of the search.
    #[inline]
    fn best(&self, untried: impl Fn(f32) -> f32, score: impl Fn(&Lanes, usize) -> f32) -> usize {
        let (mut best_score, mut best) = (f32::NEG_INFINITY, 0);
        let (mut first, mut mass) = (0, 0.0);
        self.children.prefetch_later_groups();
        for (edges, nodes) in self.children.groups() {
            let mut lanes = Lanes::default();
            let mut handicap = [0.0; GROUP];
            // How many of the four are scored, and whether this is the last group to look at.
            let (mut count, mut last) = (edges.len(), false);
            for (i, edge) in edges.iter().enumerate() {
                lanes.prior[i] = Edge(edge.load(Relaxed)).prior();
                if let Some(node) = nodes.map(|nodes| &nodes[i]) {
                    let counts = node.counts();
                    let (finished, waiting) = (counts.visits(), counts.in_flight());
                    lanes.visits[i] = (finished + u32::from(waiting)) as f32;
                    lanes.value[i] = node.value();
                    if waiting > 0 {
                        let lost = self.virtual_loss * f32::from(waiting);
                        lanes.value[i] =
                            (lanes.value[i] * finished as f32 - lost) / lanes.visits[i];
                    }
                    if counts.is_lost() {
                        // Proven losses are chosen only when nothing else is left.
                        handicap[i] = 1e6;
                    }
                }
                if lanes.visits[i] == 0.0 {
                    lanes.value[i] = untried(mass);
                    if !self.unordered {
                        (count, last) = (i + 1, true);
                        break;
                    }
                }
                mass += lanes.prior[i];
            }
            let scores: [f32; GROUP] = std::array::from_fn(|i| score(&lanes, i));
            for i in 0..count {
                let score = scores[i] - handicap[i];
                if score > best_score && self.is_allowed(first + i) {
                    (best_score, best) = (score, first + i);
                }
            }
            if last {
                break;
            }
            first += GROUP;
        }
        best
    }
}
