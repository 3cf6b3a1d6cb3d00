//! Pruning and extensions.
//!
//! Each rule assumes that a full search would not change the result. Nodes in check, with mate
//! scores or on the principal variation are never pruned as a whole.

use super::order::{Picked, pack};
use super::reduce::PLY;
use super::score::{MAX_PLY, is_decided};
use super::see;
use super::table::{Bound, Entry};
use super::worker::Worker;

/// The data about a node before its moves are searched.
#[derive(Clone, Copy)]
pub(super) struct NodeContext {
    pub(super) ply: usize,
    pub(super) depth: i32,
    pub(super) alpha: i32,
    pub(super) beta: i32,
    pub(super) in_check: bool,
    pub(super) static_eval: i32,
    /// The static evaluation, or the hash score when it is a better bound.
    pub(super) eval: i32,
    /// The evaluation is better than two plies ago.
    pub(super) improving: bool,
    /// On the principal variation.
    pub(super) pv: bool,
    /// The parent expects a score of at least `beta`.
    pub(super) expect_cut: bool,
    /// The hash move is a capture or a promotion.
    pub(super) table_move_is_tactical: bool,
}

/// Any move but the first.
pub(super) struct LateMove {
    pub(super) picked: Picked,
    pub(super) quiet: bool,
    pub(super) checks: bool,
    /// Starts at 1.
    pub(super) number: usize,
    /// The reduction by depth and number alone, in parts of [`PLY`].
    pub(super) reduction: i32,
    pub(super) history: i32,
}

impl LateMove {
    pub(super) fn packed(&self) -> u16 {
        pack(self.picked.m)
    }
}

pub(super) enum Verdict {
    Try,
    Skip,
    /// Skip this and all later quiet moves, except checks.
    SkipQuiets,
}

pub(super) enum Singular {
    /// Plies to extend; negative when other moves are as good.
    Extend(i32),
    /// Several moves reach beta.
    CutOff(i32),
}

impl Worker<'_> {
    /// Prunes a node whose evaluation is far outside the window.
    pub(super) fn prune_node(&mut self, view: &NodeContext) -> Option<i32> {
        let &NodeContext { ply, depth, alpha, beta, eval, .. } = view;
        // Reverse futility: so far above beta that a single move will not lose the advantage.
        let margin = self.settings.reverse_futility_margin * (depth - i32::from(view.improving));
        if depth <= 8 && eval - margin >= beta && !is_decided(eval) {
            return Some((eval + beta) / 2);
        }
        // Razoring: so far below alpha that only a capture could help.
        if depth <= 3 && eval + self.settings.razor_margin * depth < alpha {
            let score = self.quiesce::<false>(ply, alpha, alpha + 1);
            if score <= alpha || self.aborted {
                return Some(score);
            }
        }
        // Null move: if passing reaches beta, a real move will too. Not with pawns only, where
        // zugzwang is common.
        let passed_before = ply > 0 && self.stack[ply - 1].played.is_none();
        if depth >= 3
            && eval >= beta
            && view.static_eval >= beta - 20 * depth + 120
            && !passed_before
            && self.stack[ply].node.has_pieces()
            && self.descend_by_pass(ply)
        {
            let reduction = self.settings.null_move_base
                + depth / self.settings.null_move_divisor
                + ((eval - beta) / 200).min(3);
            let score = -self.negamax::<false>(ply + 1, depth - reduction, -beta, -beta + 1, true);
            if !self.aborted && score >= beta {
                // A mate or tablebase win found after passing proves nothing.
                return Some(if is_decided(score) { beta } else { score });
            }
        }
        None
    }

    /// Decides whether to search or skip a late move.
    pub(super) fn prune_late_move(&self, view: &NodeContext, late: &LateMove) -> Verdict {
        let node = &self.stack[view.ply].node;
        let depth = view.depth;
        let m = late.picked.m;
        if late.quiet && !late.checks {
            let left = (depth - late.reduction / PLY).max(0);
            // Late move pruning: earlier when the evaluation is not improving.
            let enough = (3 + depth * depth) / (2 - i32::from(view.improving));
            if depth <= 8 && late.number as i32 > enough {
                return Verdict::SkipQuiets;
            }
            // Futility: a quiet move cannot raise the score to alpha.
            let hope = self.settings.futility_base + self.settings.futility_margin * left;
            if !view.in_check && left <= 7 && view.static_eval + hope <= view.alpha {
                return Verdict::SkipQuiets;
            }
            if left <= 4 && late.history < -self.settings.history_pruning * (left + 1) {
                return Verdict::Skip;
            }
            let loss = self.settings.see_quiet_margin * left * left;
            if depth <= 8 && !see::gains(node, m, -loss) {
                return Verdict::Skip;
            }
        } else if late.quiet || late.picked.loses {
            let loss = self.settings.see_capture_margin * depth;
            if depth <= 6 && !see::gains(node, m, -loss) {
                return Verdict::Skip;
            }
        }
        Verdict::Try
    }

    /// Singular extension: is the hash move clearly better than all others?
    pub(super) fn singular_extension<const PV: bool>(
        &mut self,
        view: &NodeContext,
        entry: &Entry,
    ) -> Singular {
        let &NodeContext { ply, depth, beta, expect_cut, .. } = view;
        if depth < 7
            || entry.depth < depth - 3
            || entry.bound == Bound::Upper
            || is_decided(entry.score)
        {
            return Singular::Extend(0);
        }
        let target = entry.score - self.settings.singular_margin * depth;
        self.stack[ply].excluded = entry.best;
        let others = self.negamax::<false>(ply, (depth - 1) / 2, target - 1, target, expect_cut);
        self.stack[ply].excluded = 0;
        if others < target {
            let by_far = !PV && others < target - 25 && ply < MAX_PLY / 2;
            Singular::Extend(1 + i32::from(by_far))
        } else if target >= beta {
            Singular::CutOff(target)
        } else if entry.score >= beta {
            Singular::Extend(-1)
        } else {
            Singular::Extend(0)
        }
    }
}
