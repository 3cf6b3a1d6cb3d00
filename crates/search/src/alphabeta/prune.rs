//! What the search does not look at, or looks at more closely: pruning and extensions.
//!
//! Each rule is a bet that a full search would not change the outcome. Nodes in check or near
//! mate scores are never given up as a whole, nor those on the principal variation.

use super::order::Picked;
use super::score::{MAX_PLY, is_decided};
use super::see;
use super::table::{Bound, Entry};
use super::worker::Worker;

/// What is known of a node before its moves are tried.
#[derive(Clone, Copy)]
pub(super) struct Outlook {
    pub(super) ply: usize,
    pub(super) depth: i32,
    pub(super) alpha: i32,
    pub(super) beta: i32,
    pub(super) in_check: bool,
    pub(super) static_eval: i32,
    /// The static evaluation, or the table's score where that says more.
    pub(super) eval: i32,
    /// Better than two plies ago.
    pub(super) improving: bool,
}

/// A move that is not the first to be tried.
pub(super) struct LateMove {
    pub(super) picked: Picked,
    pub(super) quiet: bool,
    pub(super) checks: bool,
    /// From 1.
    pub(super) number: usize,
    pub(super) reduction: i32,
    pub(super) history: i32,
}

pub(super) enum Verdict {
    Try,
    Skip,
    /// Neither this nor any later quiet move, checks aside.
    SkipQuiets,
}

pub(super) enum OnlyMove {
    /// Plies to search the move deeper; negative when others are as good.
    Extend(i32),
    /// Several moves reach beta.
    CutOff(i32),
}

impl Worker<'_> {
    /// Bets that a node far outside the window will stay there.
    pub(super) fn give_up(&mut self, view: &Outlook) -> Option<i32> {
        let &Outlook { ply, depth, alpha, beta, eval, .. } = view;
        // Reverse futility: so far above beta that no single move will lose it all.
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
        // Null move: if passing is good enough, a real move will be too. Not without
        // pieces other than pawns and kings, where having to move is often what loses.
        let passed_before = ply > 0 && self.stack[ply - 1].played.is_none();
        if depth >= 3
            && eval >= beta
            && view.static_eval >= beta - 20 * depth + 120
            && !passed_before
            && self.stack[ply].node.has_officers()
            && self.descend_by_pass(ply)
        {
            let reduction = self.settings.null_move_base
                + depth / self.settings.null_move_divisor
                + ((eval - beta) / 200).min(3);
            let score = -self.negamax::<false>(ply + 1, depth - reduction, -beta, -beta + 1, true);
            if !self.aborted && score >= beta {
                // A mate found by passing is no mate, and a known win no win.
                return Some(if is_decided(score) { beta } else { score });
            }
        }
        None
    }

    /// Bets that a late move is as bad as it looks.
    pub(super) fn prune_or_reduce(&self, view: &Outlook, late: &LateMove) -> Verdict {
        let node = &self.stack[view.ply].node;
        let depth = view.depth;
        let m = late.picked.m;
        if late.quiet && !late.checks {
            let left = (depth - late.reduction).max(0);
            // Late quiet moves are rarely good, less so when things get worse.
            let enough = (3 + depth * depth) / (2 - i32::from(view.improving));
            if depth <= 8 && late.number as i32 > enough {
                return Verdict::SkipQuiets;
            }
            // Futility: what a quiet move can gain does not reach alpha.
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

    /// Singular extension: is the table's move clearly better than every other?
    pub(super) fn only_move<const PV: bool>(
        &mut self,
        view: &Outlook,
        entry: &Entry,
        expect_cut: bool,
    ) -> OnlyMove {
        let &Outlook { ply, depth, beta, .. } = view;
        if depth < 7
            || entry.depth < depth - 3
            || entry.bound == Bound::Upper
            || is_decided(entry.score)
        {
            return OnlyMove::Extend(0);
        }
        let target = entry.score - self.settings.singular_margin * depth;
        self.stack[ply].excluded = entry.best;
        let others = self.negamax::<false>(ply, (depth - 1) / 2, target - 1, target, expect_cut);
        self.stack[ply].excluded = 0;
        if others < target {
            let by_far = !PV && others < target - 25 && ply < MAX_PLY / 2;
            OnlyMove::Extend(1 + i32::from(by_far))
        } else if target >= beta {
            OnlyMove::CutOff(target)
        } else if entry.score >= beta {
            OnlyMove::Extend(-1)
        } else {
            OnlyMove::Extend(0)
        }
    }
}
