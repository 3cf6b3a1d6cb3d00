//! Iterative deepening: one ply deeper each time, until a limit is reached.

use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::Builder;

use selfmate_chess::{Game, Move, Position};

use super::order::pack;
use super::score::{INFINITE, MATE, MAX_PLY, Score, is_mate, mated_in};
use super::settings::Settings;
use super::tables::{rank_of, root_score};
use super::worker::{Memory, Shared, Worker};
use super::{AlphaBetaResult, Line, Report};
use crate::player::Limit;

/// Runs the main thread here and the helper threads beside it.
pub(super) fn run(
    game: &Game,
    limit: &Limit,
    shared: &Shared<'_>,
    memories: &mut [Memory],
    settings: &Settings,
    report: &mut dyn FnMut(&Report),
) -> AlphaBetaResult {
    let (first, helpers) = memories.split_first_mut().expect("at least one thread");
    let mut worker = Worker::new(game, shared, first, settings, false);
    if helpers.is_empty() {
        return Driver::new(&mut worker, game, limit).run(limit, report);
    }
    std::thread::scope(|scope| {
        for memory in helpers {
            let help = move || {
                let mut worker = Worker::new(game, shared, memory, settings, true);
                let until_stopped = Limit { only: limit.only.clone(), ..Limit::default() };
                Driver::new(&mut worker, game, &until_stopped).run(&until_stopped, &mut |_| {});
            };
            // If the system refuses another thread, the main thread searches with those it has.
            if Builder::new().spawn_scoped(scope, help).is_err() {
                break;
            }
        }
        let result = Driver::new(&mut worker, game, limit).run(limit, report);
        shared.done.store(true, Relaxed);
        result
    })
}

struct Driver<'w, 's> {
    worker: &'w mut Worker<'s>,
    /// The root moves to search.
    moves: Vec<Move>,
    /// The best lines so far, best first.
    lines: Vec<RootLine>,
}

#[derive(Clone)]
struct RootLine {
    score: i32,
    pv: Vec<Move>,
}

impl<'w, 's> Driver<'w, 's> {
    fn new(worker: &'w mut Worker<'s>, game: &Game, limit: &Limit) -> Driver<'w, 's> {
        let mut moves = game.position().legal_moves().to_vec();
        if moves.iter().any(|m| limit.only.contains(m)) {
            moves.retain(|m| limit.only.contains(m));
        }
        let ranking = worker.shared.ranking.as_ref();
        moves.sort_by_key(|m| Reverse(rank_of(ranking, *m)));
        Driver { worker, moves, lines: Vec::new() }
    }

    fn run(mut self, limit: &Limit, report: &mut dyn FnMut(&Report)) -> AlphaBetaResult {
        let Some(&first_move) = self.moves.first() else {
            return self.no_moves();
        };
        // There is always a move to play, even if the search stops at once.
        self.lines.push(RootLine { score: 0, pv: vec![first_move] });
        let wanted = limit.lines.clamp(1, self.moves.len());
        let deepest = limit.depth.unwrap_or(u32::MAX).min(MAX_PLY as u32 - 1);
        let mut finished = 0;
        for depth in 1..=deepest {
            self.worker.deepest = 0;
            for index in 0..wanted {
                self.improve_line(index, depth as i32);
                if self.worker.aborted {
                    break;
                }
            }
            if self.worker.aborted {
                break;
            }
            finished = depth;
            for index in 0..wanted {
                report(&self.report(index, depth));
            }
            if self.may_stop(limit, depth) {
                break;
            }
        }
        self.result(finished)
    }

    /// Searches the best move that is not in an earlier line, with an aspiration window around its
    /// last score.
    fn improve_line(&mut self, index: usize, depth: i32) {
        let taken: Vec<Move> = self.lines[..index].iter().map(|line| line.pv[0]).collect();
        let left = self.moves.iter().copied().filter(|m| !taken.contains(m));
        self.worker.root_moves = self.best_ranked(left).map(pack).collect();

        let last = self.lines.get(index).map(|line| line.score);
        let mut margin = self.worker.settings.aspiration_window;
        let (mut alpha, mut beta) = match last {
            Some(last) if depth >= 5 => {
                ((last - margin).max(-INFINITE), (last + margin).min(INFINITE))
            }
            _ => (-INFINITE, INFINITE),
        };
        let mut eased = 0;
        loop {
            self.worker.keys.truncate(self.worker.root_key + 1);
            let score = self.worker.negamax::<true>(0, (depth - eased).max(1), alpha, beta, false);
            let pv = self.worker.stack[0].line.clone();
            let found = RootLine {
                score: if self.worker.aborted { self.worker.root_score } else { score },
                pv,
            };
            // An aborted iteration may still improve the first line, because it searches the
            // previous best move first.
            if !found.pv.is_empty() && (!self.worker.aborted || index == 0) {
                self.set_line(index, found);
            }
            if self.worker.aborted {
                return;
            }
            margin += margin / 2;
            if score <= alpha {
                beta = (alpha + beta) / 2;
                alpha = (score - margin).max(-INFINITE);
                eased = 0;
            } else if score >= beta {
                beta = (score + margin).min(INFINITE);
                eased = (eased + 1).min(3);
            } else {
                // Only now: a line that moved up after a failed window would be found again and
                // stored twice.
                self.sort_lines(index);
                return;
            }
            if margin > 500 {
                (alpha, beta) = (-INFINITE, INFINITE);
            }
        }
    }

    fn set_line(&mut self, index: usize, found: RootLine) {
        // If the move already has another line, the two lines swap places.
        if let Some(other) = self.lines.iter().position(|line| line.pv[0] == found.pv[0])
            && other > index
        {
            self.lines.swap(index, other);
        }
        match self.lines.get_mut(index) {
            Some(line) => *line = found,
            None => self.lines.push(found),
        }
    }

    /// Sorts the lines up to this one: a later line may turn out better than an earlier one.
    fn sort_lines(&mut self, index: usize) {
        let ranking = self.worker.shared.ranking.as_ref();
        self.lines[..=index]
            .sort_by_key(|line| (Reverse(rank_of(ranking, line.pv[0])), -line.score));
    }

    /// The moves that tablebases rank first; all of them when the root is not in the tables.
    fn best_ranked(&self, moves: impl Iterator<Item = Move> + Clone) -> impl Iterator<Item = Move> {
        let ranking = self.worker.shared.ranking.as_ref();
        let best = moves.clone().map(|m| rank_of(ranking, m)).max();
        moves.filter(move |m| Some(rank_of(ranking, *m)) == best)
    }

    fn may_stop(&self, limit: &Limit, depth: u32) -> bool {
        if limit.soft_time.is_some_and(|time| self.worker.shared.started.elapsed() >= time) {
            return true;
        }
        if limit.soft_nodes.is_some_and(|nodes| self.worker.all_nodes() >= nodes) {
            return true;
        }
        // With a budget for more than this move, a longer search cannot change a forced move or a proven mate.
        let timed =
            limit.soft_time.is_some() || limit.movetime.is_some() || limit.soft_nodes.is_some();
        let score = self.lines[0].score;
        let plies_to_mate = (MATE - score.abs()) as u32;
        let settled = is_mate(score) && depth > plies_to_mate + 2 && limit.lines <= 1;
        let choices = match limit.lines {
            0 | 1 => self.best_ranked(self.moves.iter().copied()).count(),
            _ => self.moves.len(),
        };
        timed && (settled || (choices == 1 && depth >= 4))
    }

    fn report(&self, index: usize, depth: u32) -> Report {
        Report {
            depth,
            seldepth: self.worker.deepest as u32,
            multipv: index + 1,
            score: self.score(&self.lines[index]),
            nodes: self.worker.all_nodes(),
            time: self.worker.shared.started.elapsed(),
            hashfull: self.worker.shared.table.permill_used(),
            tablebase_hits: self.worker.shared.tablebase_hits.load(Relaxed),
            pv: self.lines[index].pv.clone(),
        }
    }

    /// The score of a line: the tablebase score of its first move, unless the search found a mate.
    fn score(&self, line: &RootLine) -> Score {
        let ranking = self.worker.shared.ranking.as_ref();
        let known = ranking.and_then(|ranking| ranking.find(line.pv[0]));
        Score::from_internal(known.map_or(line.score, |known| root_score(known, line.score)))
    }

    fn result(self, depth: u32) -> AlphaBetaResult {
        let lines: Vec<Line> = self
            .lines
            .iter()
            .map(|line| Line { score: self.score(line), pv: line.pv.clone() })
            .collect();
        let best = &lines[0];
        AlphaBetaResult {
            best: best.pv.first().copied(),
            ponder: best.pv.get(1).copied(),
            score: best.score,
            depth,
            nodes: self.worker.all_nodes(),
            tablebase_hits: self.worker.shared.tablebase_hits.load(Relaxed),
            pv: best.pv.clone(),
            lines,
        }
    }

    fn no_moves(&self) -> AlphaBetaResult {
        let score = if self.worker.stack[0].node.in_check() { mated_in(0) } else { 0 };
        AlphaBetaResult {
            best: None,
            ponder: None,
            score: Score::from_internal(score),
            depth: 0,
            nodes: 0,
            tablebase_hits: 0,
            pv: Vec::new(),
            lines: Vec::new(),
        }
    }
}
