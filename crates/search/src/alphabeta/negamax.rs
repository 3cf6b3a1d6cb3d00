//! Principal variation search with pruning, reductions and extensions.
//!
//! The pruning rules are in [`super::prune`].

use selfmate_chess::{Move, Position};

use super::history::Tried;
use super::order::{Hints, Picker, is_tactical, pack};
use super::prune::{LateMove, NodeContext, Singular, Verdict};
use super::score::{INFINITE, MATE, MAX_PLY, TABLE_BOUND, is_decided, mated_in};
use super::table::{Bound, Entry};
use super::worker::Worker;

impl Worker<'_> {
    /// The score of the node at `ply` for its side to move, within `alpha` and `beta`.
    ///
    /// `expect_cut` means that the parent expects a score of at least `beta` here.
    pub(super) fn negamax<const PV: bool>(
        &mut self,
        ply: usize,
        mut depth: i32,
        mut alpha: i32,
        mut beta: i32,
        expect_cut: bool,
    ) -> i32 {
        let in_check = self.stack[ply].node.in_check();
        // Check extension: never stop the search in check.
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
                return if in_check { 0 } else { self.memory.evaluate(&self.stack[ply].node) };
            }
            // Mate distance pruning: nothing is better than mating now or worse than being mated
            // now.
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
            // Near the fifty-move limit, a stored score may come from a search with a different
            // counter.
            && self.stack[ply].node.position.halfmoves() < 90
        {
            return entry.score;
        }
        // A tablebase result needs no search, except on the main line, which should show the mate.
        let (mut floor, mut ceiling) = (-INFINITE, INFINITE);
        if !is_root
            && excluded == 0
            && let Some((score, bound)) = self.probe_tables(ply)
        {
            match bound {
                Bound::Lower if score < beta => floor = score,
                Bound::Upper if score > alpha => ceiling = score,
                _ => {
                    self.store_tables(ply, depth, score, bound);
                    return score;
                }
            }
            alpha = alpha.max(floor);
        }

        let mut raw_eval = 0;
        let mut eval = -INFINITE;
        if in_check {
            self.stack[ply].eval = None;
        } else {
            if excluded == 0 {
                raw_eval = match known {
                    Some(entry) => entry.eval,
                    None => self.memory.evaluate(&self.stack[ply].node),
                };
                self.stack[ply].eval = Some(self.corrected(ply, raw_eval));
            }
            eval = self.stack[ply].eval.unwrap_or(raw_eval);
        }
        let static_eval = eval;
        if let Some(entry) = known
            && !in_check
            && entry.bound.decides(entry.score, eval + 1)
        {
            eval = entry.score;
        }
        let improving = !in_check
            && ply >= 2
            && self.stack[ply - 2].eval.is_none_or(|earlier| static_eval > earlier);
        self.stack[ply + 2].killers = [0; 2];
        self.stack[ply + 2].cutoffs = 0;

        let mut view = NodeContext {
            ply,
            depth,
            alpha,
            beta,
            in_check,
            static_eval,
            eval,
            improving,
            pv: PV,
            expect_cut,
            table_move_is_tactical: false,
        };
        if !PV && !in_check && excluded == 0 && !is_decided(beta) {
            if let Some(score) = self.prune_node(&view) {
                return score;
            }
            if self.aborted {
                return 0;
            }
        }
        let table_move = known.map_or(0, |entry| entry.best);
        // Internal iterative reduction: without a hash move, search one ply less. The next
        // iteration then has a hash move to start with.
        if table_move == 0 && excluded == 0 && depth >= 4 && (PV || expect_cut) {
            depth -= 1;
            view.depth = depth;
        }

        let node = &self.stack[ply].node;
        let mut moves = node.position.legal_moves();
        if moves.is_empty() {
            return if in_check { mated_in(ply) } else { 0 };
        }
        let quiet_context = self.quiet_context(ply);
        let hints =
            Hints { best: table_move, killers: self.stack[ply].killers, quiet: quiet_context };
        view.table_move_is_tactical =
            table_move != 0 && moves.iter().any(|m| pack(*m) == table_move && is_tactical(*m));
        let check_squares = node.check_squares();
        let mut picker = Picker::<256>::new(&mut moves, &self.memory.history, hints);

        let mut best_score = floor;
        let mut best_move: Option<Move> = None;
        let mut bound = Bound::Upper;
        let mut number = 0;
        let mut skip_quiets = false;
        let mut failed_quiets = Tried::default();
        let mut failed_captures = Tried::default();

        while let Some(picked) = picker.next(&self.stack[ply].node, &self.memory.history) {
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
            let history = if quiet { self.memory.history.quiet(m, &quiet_context) } else { 0 };
            let reduction = self.memory.reductions.of(depth, number);
            let late = LateMove { picked, quiet, checks, number, reduction, history };

            if !is_root && best_score > -TABLE_BOUND {
                view.alpha = alpha;
                match self.prune_late_move(&view, &late) {
                    Verdict::Try => {}
                    Verdict::Skip => continue,
                    Verdict::SkipQuiets => {
                        skip_quiets = true;
                        continue;
                    }
                }
            }
            self.shared.table.prefetch(self.stack[ply].node.likely_key(m));

            let mut extension = 0;
            if let Some(entry) = known
                && !is_root
                && packed == table_move
            {
                let verdict = self.singular_extension::<PV>(&view, &entry);
                if self.aborted {
                    return 0;
                }
                match verdict {
                    Singular::Extend(plies) => extension = plies,
                    Singular::CutOff(score) => return score,
                }
            }
            self.descend(ply, m);
            let new_depth = depth - 1 + extension;
            let mut score = alpha + 1;
            if number > 1 + usize::from(PV) && depth >= 3 && (quiet || picked.loses) {
                let reduced = self.reduced_depth(&view, &late, new_depth);
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
            // Only the excluded move is legal, or no root move may be searched.
            return if excluded == 0 { 0 } else { alpha };
        }
        best_score = best_score.min(ceiling);
        if let Some(m) = best_move
            && bound == Bound::Lower
        {
            let tried = [&failed_quiets, &failed_captures];
            self.record_cutoff(ply, m, depth, &quiet_context, tried);
        }
        if excluded == 0 {
            let best = best_move.map_or(0, pack);
            // A root score that leaves out moves is not the score of the position, so it is not
            // stored.
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
                && !is_decided(best_score)
                && best_move.is_none_or(|m| !is_tactical(m))
            {
                self.correct(ply, best_score - static_eval, depth);
            }
        }
        best_score
    }

    /// Sets the best line of this ply: this move, then the best line after it.
    pub(super) fn extend_line(&mut self, ply: usize, m: Move) {
        let (here, after) = self.stack.split_at_mut(ply + 1);
        let line = &mut here[ply].line;
        line.clear();
        line.push(m);
        line.extend_from_slice(&after[0].line);
    }
}
