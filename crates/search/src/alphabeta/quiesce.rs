//! Quiescence search: captures only, until the static evaluation is reliable.

use selfmate_chess::Position;

use super::captures::tactical_moves;
use super::history::QuietContext;
use super::order::{Hints, Picker, is_tactical, pack};
use super::score::{INFINITE, MAX_PLY, TABLE_BOUND, mated_in};
use super::see;
use super::table::{Bound, Entry};
use super::worker::Worker;

impl Worker<'_> {
    pub(super) fn quiesce<const PV: bool>(&mut self, ply: usize, mut alpha: i32, beta: i32) -> i32 {
        if self.out_of_budget() {
            return 0;
        }
        if PV {
            self.stack[ply].line.clear();
            self.deepest = self.deepest.max(ply);
        }
        if self.is_draw(ply) {
            return 0;
        }
        let in_check = self.stack[ply].node.in_check();
        if ply >= MAX_PLY {
            return if in_check { 0 } else { self.memory.evaluate(&self.stack[ply].node) };
        }
        let key = self.stack[ply].node.key;
        let known = self.shared.table.probe(key, ply);
        if let Some(entry) = known
            && !PV
            && entry.bound.decides(entry.score, beta)
        {
            return entry.score;
        }

        let mut raw_eval = 0;
        let mut best_score = -INFINITE;
        if !in_check {
            raw_eval = match known {
                Some(entry) => entry.eval,
                None => self.memory.evaluate(&self.stack[ply].node),
            };
            best_score = self.corrected(ply, raw_eval);
            if let Some(entry) = known
                && entry.bound.decides(entry.score, best_score + 1)
            {
                best_score = entry.score;
            }
            if best_score >= beta {
                if known.is_none() {
                    let entry = Entry {
                        best: 0,
                        score: best_score,
                        eval: raw_eval,
                        depth: 0,
                        bound: Bound::Lower,
                    };
                    self.shared.table.store(key, ply, entry);
                }
                return best_score;
            }
            alpha = alpha.max(best_score);
        }
        let stand_pat = best_score;

        let node = &self.stack[ply].node;
        let mut moves = if in_check { node.position.legal_moves() } else { tactical_moves(node) };
        if in_check && moves.is_empty() {
            return mated_in(ply);
        }
        let hints = Hints {
            best: known.map_or(0, |entry| entry.best),
            killers: [0; 2],
            quiet: match in_check {
                true => self.quiet_context(ply),
                false => QuietContext::captures_only(node.turn()),
            },
        };
        let mut picker = Picker::<64>::new(&mut moves, &self.memory.history, hints);
        let mut best_move = 0;
        let mut bound = Bound::Upper;
        while let Some(picked) = picker.next(&self.stack[ply].node, &self.memory.history) {
            let m = picked.m;
            if best_score > -TABLE_BOUND {
                if in_check {
                    // In check, one quiet evasion that avoids mate is enough.
                    if !is_tactical(m) {
                        break;
                    }
                } else {
                    if picked.loses {
                        break;
                    }
                    let victim = m.capture().map_or(0, |role| see::VALUE[role as usize]);
                    let gain = stand_pat + victim + self.settings.delta_margin;
                    if !m.is_promotion() && gain <= alpha {
                        best_score = best_score.max(gain);
                        continue;
                    }
                }
            }
            self.shared.table.prefetch(self.stack[ply].node.likely_key(m));
            self.descend(ply, m);
            let score = -self.quiesce::<PV>(ply + 1, -beta, -alpha);
            if self.aborted {
                return 0;
            }
            if score > best_score {
                best_score = score;
                if score > alpha {
                    best_move = pack(m);
                    if PV {
                        self.extend_line(ply, m);
                    }
                    if score >= beta {
                        bound = Bound::Lower;
                        break;
                    }
                    alpha = score;
                }
            }
        }
        let entry = Entry { best: best_move, score: best_score, eval: raw_eval, depth: 0, bound };
        self.shared.table.store(key, ply, entry);
        best_score
    }
}
