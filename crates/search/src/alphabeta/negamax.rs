//! The search itself: principal variation search with pruning, reductions and extensions.
//!
//! Each step names what it bets on. All bets are off in check and near mate scores, and
//! only the null-window searches (`PV = false`) give up on a node early.

use selfmate_chess::{Move, Position};

use super::order::{Hints, Picker, is_tactical, pack};
use super::score::{INFINITE, MATE, MATE_BOUND, MAX_PLY, is_mate, mated_in};
use super::see;
use super::table::{Bound, Entry};
use super::worker::Worker;

impl Worker<'_> {
    /// The score of the node at `ply` for its side to move, within `alpha` and `beta`.
    ///
    /// `expect_cut` says that the parent hopes for a score of at least `beta` here.
    pub(super) fn negamax<const PV: bool>(
        &mut self,
        ply: usize,
        mut depth: i32,
        mut alpha: i32,
        mut beta: i32,
        expect_cut: bool,
    ) -> i32 {
        let in_check = self.stack[ply].node.in_check();
        // A check must be answered, so it is not the place to stop.
        depth += i32::from(in_check);
        if depth <= 0 {
            return self.quiesce::<PV>(ply, alpha, beta);
        }
        if self.out_of_budget() {
            return 0;
        }
        if PV {
            self.stack[ply].line.clear();
            self.deepest = self.deepest.max(ply);
        }
        let is_root = ply == 0;
        if !is_root {
            if self.is_draw(ply) {
                return 0;
            }
            if ply >= MAX_PLY {
                return if in_check { 0 } else { self.memory.eval.evaluate(&self.stack[ply].node) };
            }
            // No line from here can be better than mating now or worse than being mated now.
            alpha = alpha.max(mated_in(ply));
            beta = beta.min(MATE - ply as i32 - 1);
            if alpha >= beta {
                return alpha;
            }
        }

        let excluded = self.stack[ply].excluded;
        let key = self.stack[ply].node.key;
        let known = if excluded == 0 { self.shared.table.probe(key, ply) } else { None };
        if let Some(entry) = known
            && !PV
            && entry.depth >= depth
            && entry.bound.decides(entry.score, beta)
            // Near the fifty-move limit a stored score may be of another world.
            && self.stack[ply].node.position.halfmoves() < 90
        {
            return entry.score;
        }

        let mut raw_eval = 0;
        let mut eval = -INFINITE;
        if in_check {
            self.stack[ply].eval = None;
        } else {
            if excluded == 0 {
                raw_eval = match known {
                    Some(entry) => entry.eval,
                    None => self.memory.eval.evaluate(&self.stack[ply].node),
                };
                self.stack[ply].eval = Some(self.corrected(ply, raw_eval));
            }
            eval = self.stack[ply].eval.unwrap_or(raw_eval);
        }
        let static_eval = eval;
        if let Some(entry) = known
            && !in_check
            && entry.bound != Bound::None
            && entry.bound.decides(entry.score, eval + 1)
        {
            eval = entry.score;
        }
        let improving = !in_check
            && ply >= 2
            && self.stack[ply - 2].eval.is_none_or(|earlier| static_eval > earlier);
        self.stack[ply + 2].killers = [0; 2];

        if !PV && !in_check && excluded == 0 && !is_mate(beta) {
            if let Some(score) = self.give_up(ply, depth, alpha, beta, eval, static_eval, improving)
            {
                return score;
            }
            if self.aborted {
                return 0;
            }
        }
        let table_move = known.map_or(0, |entry| entry.best);
        // Without a first move to try, a shallower search finds one almost as well.
        if table_move == 0 && excluded == 0 && depth >= 4 && (PV || expect_cut) {
            depth -= 1;
        }

        let node = &self.stack[ply].node;
        let us = node.turn();
        let moves = node.position.legal_moves();
        if moves.is_empty() {
            return if in_check { mated_in(ply) } else { 0 };
        }
        let before = self.before(ply);
        let hints = Hints { best: table_move, killers: self.stack[ply].killers, before };
        let table_move_is_tactical =
            table_move != 0 && moves.iter().any(|m| pack(*m) == table_move && is_tactical(*m));
        let check_squares = node.check_squares();
        let mut picker = Picker::new(moves, node, &self.memory.history, &hints);

        let mut best_score = -INFINITE;
        let mut best_move: Option<Move> = None;
        let mut bound = Bound::Upper;
        let mut number = 0;
        let mut skip_quiets = false;
        let mut failed_quiets = Tried::default();
        let mut failed_captures = Tried::default();

        while let Some(picked) = picker.next(&self.stack[ply].node) {
            let m = picked.m;
            let packed = pack(m);
            if packed == excluded || (is_root && !self.root_moves.contains(&packed)) {
                continue;
            }
            let quiet = !is_tactical(m);
            let checks = check_squares[m.role() as usize].contains(m.to());
            if quiet && skip_quiets && !checks {
                continue;
            }
            number += 1;
            let history = if quiet { self.memory.history.quiet(us, m, before) } else { 0 };
            let mut reduction = self.memory.reductions.plies(depth, number);

            if !is_root && best_score > -MATE_BOUND {
                let left = (depth - reduction).max(0);
                if quiet && !checks {
                    // Late quiet moves are rarely good, less so when things get worse.
                    if depth <= 8
                        && number as i32 > (3 + depth * depth) / (2 - i32::from(improving))
                    {
                        skip_quiets = true;
                        continue;
                    }
                    let hope = self.settings.futility_base + self.settings.futility_margin * left;
                    if !in_check && left <= 7 && static_eval + hope <= alpha {
                        skip_quiets = true;
                        continue;
                    }
                    if left <= 4 && history < -self.settings.history_pruning * (left + 1) {
                        continue;
                    }
                    if depth <= 8
                        && !see::gains(
                            &self.stack[ply].node,
                            m,
                            -self.settings.see_quiet_margin * left * left,
                        )
                    {
                        continue;
                    }
                } else if (picked.loses || quiet)
                    && depth <= 6
                    && !see::gains(
                        &self.stack[ply].node,
                        m,
                        -self.settings.see_capture_margin * depth,
                    )
                {
                    continue;
                }
            }

            // Extend the table's move when every other move is clearly worse.
            let mut extension = 0;
            if let Some(entry) = known
                && !is_root
                && packed == table_move
                && depth >= 7
                && entry.depth >= depth - 3
                && matches!(entry.bound, Bound::Lower | Bound::Exact)
                && !is_mate(entry.score)
            {
                let target = entry.score - self.settings.singular_margin * depth;
                self.stack[ply].excluded = packed;
                let others =
                    self.negamax::<false>(ply, (depth - 1) / 2, target - 1, target, expect_cut);
                self.stack[ply].excluded = 0;
                if self.aborted {
                    return 0;
                }
                if others < target {
                    extension = 1 + i32::from(!PV && others < target - 25 && ply < MAX_PLY / 2);
                } else if target >= beta {
                    // More than one move is too good: someone will cut off here.
                    return target;
                } else if entry.score >= beta {
                    extension = -1;
                }
            }

            self.descend(ply, m);
            let new_depth = depth - 1 + extension;
            let gives_check = self.stack[ply + 1].node.in_check();
            let mut score = alpha + 1;
            if number > 1 + usize::from(PV) && depth >= 3 && (quiet || picked.loses) {
                reduction -= i32::from(PV)
                    + i32::from(gives_check)
                    + history / self.settings.reduction_history;
                reduction -= i32::from(hints.killers.contains(&packed));
                reduction += i32::from(expect_cut)
                    + i32::from(!improving)
                    + i32::from(table_move_is_tactical);
                let reduced = (new_depth - reduction).clamp(1, new_depth.max(1));
                score = -self.negamax::<false>(ply + 1, reduced, -alpha - 1, -alpha, true);
                if score > alpha && reduced < new_depth {
                    score =
                        -self.negamax::<false>(ply + 1, new_depth, -alpha - 1, -alpha, !expect_cut);
                }
            } else if !PV || number > 1 {
                score = -self.negamax::<false>(ply + 1, new_depth, -alpha - 1, -alpha, !expect_cut);
            }
            if PV && score > alpha {
                score = -self.negamax::<true>(ply + 1, new_depth, -beta, -alpha, false);
            }
            if self.aborted {
                return 0;
            }

            if score > best_score {
                best_score = score;
                if score > alpha {
                    best_move = Some(m);
                    if PV {
                        self.extend_line(ply, m);
                    }
                    if is_root {
                        self.root_score = score;
                    }
                    if score >= beta {
                        bound = Bound::Lower;
                        break;
                    }
                    bound = Bound::Exact;
                    alpha = score;
                }
            }
            if quiet {
                failed_quiets.push(m);
            } else {
                failed_captures.push(m);
            }
        }

        if number == 0 {
            // Only the excluded move is legal, or the root may play none.
            return if excluded == 0 { 0 } else { alpha };
        }
        if let Some(m) = best_move
            && bound == Bound::Lower
        {
            self.remember_cut(ply, m, depth, &failed_quiets, &failed_captures);
        }
        if excluded == 0 {
            let best = best_move.map_or(0, pack);
            // The root's score may leave out moves, so it is no fact about the position.
            if !is_root || self.root_moves.len() == self.stack[0].node.position.legal_moves().len()
            {
                let entry = Entry { best, score: best_score, eval: raw_eval, depth, bound };
                self.shared.table.store(key, ply, entry);
            }
            let surprising = match bound {
                Bound::Lower => best_score > static_eval,
                Bound::Upper => best_score < static_eval,
                _ => true,
            };
            if !in_check
                && surprising
                && !is_mate(best_score)
                && best_move.is_none_or(|m| !is_tactical(m))
            {
                let difference = best_score - raw_eval;
                self.memory.correction.learn(&self.stack[ply].node, difference, depth);
            }
        }
        best_score
    }

    /// Bets that a node far outside the window will stay there.
    #[allow(clippy::too_many_arguments)]
    fn give_up(
        &mut self,
        ply: usize,
        depth: i32,
        alpha: i32,
        beta: i32,
        eval: i32,
        static_eval: i32,
        improving: bool,
    ) -> Option<i32> {
        // Reverse futility: so far above beta that no single move will lose it all.
        let margin = self.settings.reverse_futility_margin * (depth - i32::from(improving));
        if depth <= 8 && eval - margin >= beta && !is_mate(eval) {
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
        // officers, where having to move is often what loses.
        let passed_before = ply > 0 && self.stack[ply - 1].played.is_none();
        if depth >= 3
            && eval >= beta
            && static_eval >= beta - 20 * depth + 120
            && !passed_before
            && self.stack[ply].node.has_officers()
            && self.descend_by_pass(ply)
        {
            let reduction = self.settings.null_move_base
                + depth / self.settings.null_move_divisor
                + ((eval - beta) / 200).min(3);
            let score = -self.negamax::<false>(ply + 1, depth - reduction, -beta, -beta + 1, true);
            if !self.aborted && score >= beta {
                return Some(if is_mate(score) { beta } else { score });
            }
        }
        None
    }

    /// The best line from here: this move, then the best line after it.
    pub(super) fn extend_line(&mut self, ply: usize, m: Move) {
        let (here, after) = self.stack.split_at_mut(ply + 1);
        let line = &mut here[ply].line;
        line.clear();
        line.push(m);
        line.extend_from_slice(&after[0].line);
    }

    /// Rewards the move that cut off and blames those that were tried before it.
    fn remember_cut(&mut self, ply: usize, m: Move, depth: i32, quiets: &Tried, captures: &Tried) {
        let us = self.stack[ply].node.turn();
        let before = self.before(ply);
        let bonus = (self.settings.history_bonus * depth).min(2000);
        let history = &mut self.memory.history;
        if is_tactical(m) {
            history.reward_capture(us, m, bonus);
        } else {
            history.reward_quiet(us, m, before, bonus);
            for tried in quiets.moves() {
                history.reward_quiet(us, tried, before, -bonus);
            }
            let killers = &mut self.stack[ply].killers;
            if killers[0] != pack(m) {
                *killers = [pack(m), killers[0]];
            }
        }
        for tried in captures.moves() {
            history.reward_capture(us, tried, -bonus);
        }
    }
}

/// The first moves that were tried at a node and did not cut off.
#[derive(Default)]
struct Tried {
    moves: [Option<Move>; 32],
    len: usize,
}

impl Tried {
    fn push(&mut self, m: Move) {
        if self.len < self.moves.len() {
            self.moves[self.len] = Some(m);
            self.len += 1;
        }
    }

    fn moves(&self) -> impl Iterator<Item = Move> + '_ {
        self.moves[..self.len].iter().copied().flatten()
    }
}
