//! The alpha-beta engine as a player.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use selfmate_chess::{Game, Seed};
use selfmate_search::alphabeta::{self, AlphaBeta, AlphaBetaLimit};
use selfmate_search::player::{Limit, Score, SearchInfo, seed_of};
use selfmate_search::{Choice, Player, PlayerError};

use crate::limit;
use crate::registry::PlayerKind;
use crate::spec::{SpecError, SpecOptions};
use crate::tablebase_cache;
use crate::tuning::Tuning;

/// Used when neither the spec nor the match sets a limit.
const DEFAULT_DEPTH: u32 = 6;

/// An alpha-beta search that plays. Nothing is kept from one game to the next.
pub struct AlphaBetaPlayer {
    name: String,
    search: AlphaBeta,
    own: Limit,
    blunders: Blunders,
}

/// How often to play a random legal move instead: for weak opponents and for the lower rungs of
/// `rate`.
#[derive(Clone, Copy, Debug)]
struct Blunders {
    percent: usize,
    seed: Seed,
}

impl AlphaBetaPlayer {
    /// `own` is the limit set in the player's spec.
    pub fn new(name: &str, search: AlphaBeta, own: Limit) -> AlphaBetaPlayer {
        let blunders = Blunders { percent: 0, seed: Seed::new(0) };
        AlphaBetaPlayer { name: name.to_owned(), search, own, blunders }
    }
}

/// The kind of specs such as `alphabeta:depth=4,hash=16`.
pub(super) fn kind() -> PlayerKind {
    let kind = PlayerKind::new(
        "alphabeta",
        "the alpha-beta engine with a hand-written evaluation",
        |options| {
            let tuning = match options.spec.option("weights") {
                Some(name) => Tuning::named(name).map_err(|error| SpecError::Other {
                    spec: options.label(),
                    reason: error.to_string(),
                })?,
                None => Tuning::default(),
            };
            build(options, &tuning)
        },
    );
    declare(kind).option("weights", "plain, default, or a file written by evolve or tune")
}

/// Adds the options of [`build`] to a kind.
#[must_use]
pub fn declare(kind: PlayerKind) -> PlayerKind {
    let kind = kind
        .option("depth", "plies of search (6)")
        .option("nodes", "nodes for each move")
        .option("movetime", "milliseconds for each move")
        .option("hash", "megabytes for the table (16)")
        .option("threads", "threads in one search (1)")
        .option("blunder", "percent of moves that are random (0)");
    tablebase_cache::declare(kind)
}

/// An alpha-beta player with these weights and the options of its spec.
pub fn build(options: &SpecOptions<'_>, tuning: &Tuning) -> Result<Box<dyn Player>, SpecError> {
    let hash = options.number("hash", 1..=65_536)?.unwrap_or(16);
    let no_memory = |error| SpecError::memory(&options.label(), error);
    let mut search = tuning.engine(hash as usize).map_err(no_memory)?;
    let threads = options.number("threads", 1..=256)?.unwrap_or(1) as usize;
    search.set_threads(threads).map_err(no_memory)?;
    search.set_tables(tablebase_cache::read(options)?);
    let own = limit::from_options(options)?;
    let percent = options.number("blunder", 0..=100)?.unwrap_or(0) as usize;
    let blunders = Blunders { percent, seed: options.seed.derive("blunder") };
    let player = AlphaBetaPlayer::new(&options.label(), search, own);
    Ok(Box::new(AlphaBetaPlayer { blunders, ..player }))
}

impl Player for AlphaBetaPlayer {
    fn name(&self) -> &str {
        &self.name
    }

    fn new_game(&mut self) {
        self.search.clear();
    }

    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        observe: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError> {
        if self.blunders.percent > 0 {
            let mut rng = seed_of(self.blunders.seed, game).rng();
            let is_blunder = rng.below(100) < self.blunders.percent;
            if let Some(&m) = rng.choose(&limit.candidates(game)).filter(|_| is_blunder) {
                return Ok(Choice::bare(m));
            }
        }
        let default = Limit::depth(DEFAULT_DEPTH);
        let limit = limit::merge(&self.own, limit, &default);
        let budget = limit.clock.map(|clock| super::budget_of(&clock));
        let maximum = budget.map(|budget| Duration::from_millis(budget.maximum_ms));
        let until = AlphaBetaLimit {
            depth: limit.depth,
            nodes: limit.nodes,
            movetime: [limit.movetime, maximum].into_iter().flatten().min(),
            soft_time: budget.map(|budget| Duration::from_millis(budget.optimum_ms)),
            multipv: limit.lines,
            searchmoves: limit.only,
        };
        let never = AtomicBool::new(false);
        let stop = limit.stop.as_deref().unwrap_or(&never);
        let result =
            self.search.search(game, &until, stop, &mut |report| observe(&search_info(report)));
        let played = result.best.ok_or_else(|| PlayerError::no_move(&self.name))?;
        Ok(Choice {
            played,
            wdl: None,
            score: Some(score(result.score)),
            depth: Some(result.depth),
            nodes: Some(result.nodes),
            line: result.pv,
            elapsed: None,
        })
    }
}

fn search_info(report: &alphabeta::Report) -> SearchInfo {
    SearchInfo {
        rank: report.multipv,
        line: report.pv.clone(),
        score: score(report.score),
        wdl: None,
        depth: report.depth,
        deepest: report.seldepth,
        nodes: report.nodes,
        elapsed: report.time,
        permille_full: report.hashfull,
        tablebase_hits: report.tablebase_hits,
        visits: None,
        prior: None,
    }
}

fn score(score: alphabeta::Score) -> Score {
    match score {
        alphabeta::Score::Cp(value) => Score::Centipawns(value),
        alphabeta::Score::Mate(moves) => Score::Mate(moves),
    }
}

#[cfg(test)]
mod tests {
    use super::Tuning;
    use crate::match_runner::{MatchConfig, MatchRun, run_match};
    use crate::registry::Registry;

    #[test]
    fn weights_are_read_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.toml");
        // An engine that gives a queen no value loses it soon.
        let mut tuning = Tuning::plain();
        tuning.evaluation.piece_value.mg = [100, 100, 100, 100, 0];
        tuning.evaluation.piece_value.eg = [100, 100, 100, 100, 0];
        std::fs::write(&path, tuning.to_toml()).unwrap();
        let careless = format!("alphabeta:depth=2,weights={}", path.display());
        let config = MatchConfig::new(&careless, "alphabeta:depth=2", 10);
        let report =
            run_match(&config, &MatchRun::default(), &Registry::standard(), &mut |_| {}).unwrap();
        assert!(report.score < 0.35, "{report:?}");
    }

    #[test]
    fn blunders_cost_games() {
        let config = MatchConfig::new("alphabeta:depth=1,blunder=30", "alphabeta:depth=1", 20);
        let report =
            run_match(&config, &MatchRun::default(), &Registry::standard(), &mut |_| {}).unwrap();
        assert!(report.score < 0.3, "{report:?}");
    }
}
