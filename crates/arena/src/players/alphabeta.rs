//! The alpha-beta engine as a player.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use selfmate_chess::{Game, Seed};
use selfmate_search::alphabeta::{self, AlphaBeta, Settings};
use selfmate_search::phase::Phase;
use selfmate_search::player::{Limit, Score, SearchInfo, seed_of};
use selfmate_search::{Choice, Player, PlayerError};
use selfmate_uci::{TimeBudget, TimeConstants};

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
    node_clock: Option<NodeClock>,
}

/// A clock that counts nodes: the time manager divides them among the moves of a game. The same
/// engine then always plays the same game, which a real clock does not allow.
#[derive(Clone, Copy, Debug)]
struct NodeClock {
    /// For the whole game.
    nodes: u64,
    spent: u64,
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
        AlphaBetaPlayer { name: name.to_owned(), search, own, blunders, node_clock: None }
    }

    /// Gives the player this many nodes for a whole game.
    #[must_use]
    pub fn with_game_nodes(self, nodes: u64) -> AlphaBetaPlayer {
        AlphaBetaPlayer { node_clock: Some(NodeClock { nodes, spent: 0 }), ..self }
    }

    fn time_constants(&self) -> TimeConstants {
        let settings = self.search.settings();
        let number = |value: i32| u64::try_from(value).unwrap_or(0);
        TimeConstants {
            moves_left: number(settings.time_moves_left),
            maximum: number(settings.time_maximum),
            optimum_cap: number(settings.time_optimum_cap),
            maximum_cap: number(settings.time_maximum_cap),
        }
    }
}

impl NodeClock {
    fn budget(&self, constants: &TimeConstants) -> TimeBudget {
        let clock = selfmate_uci::Clock {
            remaining_ms: self.nodes.saturating_sub(self.spent),
            increment_ms: 0,
            moves_to_go: None,
            overhead_ms: 0,
        };
        clock.budget_with(constants)
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
        .option("game_nodes", "nodes for a whole game, divided by the time manager")
        .option("depth_opening", "most plies in the opening (32: no limit)")
        .option("depth_middlegame", "most plies in the middlegame (32: no limit)")
        .option("depth_endgame", "most plies in the endgame (32: no limit)")
        .option("time_moves_left", "with a clock: assumed number of moves left (40)")
        .option("time_maximum", "with a clock: maximum in percent of the time aimed at (400)")
        .option("time_optimum_cap", "with a clock: most to aim at, in percent of the clock (25)")
        .option("time_maximum_cap", "with a clock: most for a move, in percent of the clock (50)")
        .option("hash", "megabytes for the table (16)")
        .option("threads", "threads in one search (1)")
        .option("blunder", "percent of moves that are random (0)");
    tablebase_cache::declare(kind)
}

/// An alpha-beta player with these weights and the options of its spec.
pub fn build(options: &SpecOptions<'_>, tuning: &Tuning) -> Result<Box<dyn Player>, SpecError> {
    let hash = options.number("hash", 1..=65_536)?.unwrap_or(16);
    let no_memory = |error| SpecError::memory(&options.label(), error);
    let tuning = with_play_options(options, tuning)?;
    let mut search = tuning.engine(hash as usize).map_err(no_memory)?;
    let threads = options.number("threads", 1..=256)?.unwrap_or(1) as usize;
    search.set_threads(threads).map_err(no_memory)?;
    search.set_tables(tablebase_cache::read(options)?);
    let own = limit::from_options(options)?;
    let percent = options.number("blunder", 0..=100)?.unwrap_or(0) as usize;
    let blunders = Blunders { percent, seed: options.seed.derive("blunder") };
    let player = AlphaBetaPlayer::new(&options.label(), search, own);
    let player = match options.number("game_nodes", 1..=u64::MAX)? {
        Some(nodes) => player.with_game_nodes(nodes),
        None => player,
    };
    Ok(Box::new(AlphaBetaPlayer { blunders, ..player }))
}

/// The tuning with the depths and time constants that the spec sets.
fn with_play_options(options: &SpecOptions<'_>, tuning: &Tuning) -> Result<Tuning, SpecError> {
    let mut tuning = tuning.clone();
    for (row, value) in Settings::TABLE.iter().zip(tuning.search.flat_mut()) {
        if Settings::PLAY.contains(&row.name)
            && let Some(given) = options.number(row.name, row.min as u64..=row.max as u64)?
        {
            *value = given as i32;
        }
    }
    Ok(tuning)
}

impl Player for AlphaBetaPlayer {
    fn name(&self) -> &str {
        &self.name
    }

    fn new_game(&mut self) {
        self.search.clear();
        if let Some(clock) = &mut self.node_clock {
            clock.spent = 0;
        }
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
        let max_depth = self.search.settings().max_depth(Phase::of(game.position()));
        let default = match (self.node_clock, max_depth) {
            (Some(_), _) => Limit::default(),
            (None, depth) => Limit::depth(depth.unwrap_or(DEFAULT_DEPTH)),
        };
        let mut limit = limit::merge(&self.own, limit, &default);
        let constants = self.time_constants();
        let node_budget = self.node_clock.map(|clock| clock.budget(&constants));
        // A search without any node has no score.
        let max_nodes = node_budget.map(|budget| budget.maximum_ms.max(1));
        let budget = limit.clock.map(|clock| super::budget_of(&clock, &constants));
        let maximum = budget.map(|budget| Duration::from_millis(budget.maximum_ms));
        limit.depth = [limit.depth, max_depth].into_iter().flatten().min();
        limit.nodes = [limit.nodes, max_nodes].into_iter().flatten().min();
        limit.soft_nodes = node_budget.map(|budget| budget.optimum_ms);
        limit.movetime = [limit.movetime, maximum].into_iter().flatten().min();
        limit.soft_time = budget.map(|budget| Duration::from_millis(budget.optimum_ms));
        let never = AtomicBool::new(false);
        let stop = limit.stop.as_deref().unwrap_or(&never);
        let result =
            self.search.search(game, &limit, stop, &mut |report| observe(&search_info(report)));
        if let Some(clock) = &mut self.node_clock {
            clock.spent = clock.spent.saturating_add(result.nodes);
        }
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
    use selfmate_chess::{Game, Seed, fen};
    use selfmate_search::Choice;
    use selfmate_search::player::Limit;

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

    fn first_choice(spec: &str, fen: &str) -> Choice {
        let registry = Registry::standard();
        let spec = registry.parse(spec).unwrap();
        let mut player = registry.build(&spec, Seed::new(1)).unwrap();
        player.choose(&fen::parse_game(fen).unwrap(), &Limit::default()).unwrap()
    }

    #[test]
    fn depth_is_limited_by_phase() {
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        let ending = "8/5pk1/8/8/8/8/5PK1/8 w - - 0 40";
        let depth = |spec: &str, fen: &str| first_choice(spec, fen).depth;
        let phases = "alphabeta:depth_opening=2,depth_endgame=8";
        assert_eq!((depth(phases, start), depth(phases, ending)), (Some(2), Some(8)));
        // Without other limits the usual depth counts in the other phases, and another limit bounds it.
        assert_eq!(depth("alphabeta:depth_endgame=8", start), Some(6));
        assert_eq!(depth("alphabeta:depth=3,depth_endgame=8", ending), Some(3));
        let registry = Registry::standard();
        let spec = registry.parse("alphabeta:depth_opening=33").unwrap();
        let error = registry.build(&spec, Seed::new(1)).map(drop).unwrap_err().to_string();
        assert!(error.contains("depth_opening: expected a whole number from 1 to 32"), "{error}");
    }

    #[test]
    fn the_time_manager_divides_the_nodes_of_a_game() {
        let registry = Registry::standard();
        let nodes = |spec: &str| {
            let spec = registry.parse(spec).unwrap();
            let mut player = registry.build(&spec, Seed::new(1)).unwrap();
            let (mut total, mut first) = (0, 0);
            let mut game = Game::new();
            player.new_game();
            for _ in 0..30 {
                let choice = player.choose(&game, &Limit::default()).unwrap();
                total += choice.nodes.unwrap();
                if first == 0 {
                    first = total;
                }
                game.play(choice.played).unwrap();
            }
            (first, total)
        };
        let (first, total) = nodes("alphabeta:game_nodes=40000");
        assert!(
            (1000..10_000).contains(&first) && (first..=41_000).contains(&total),
            "{first} {total}"
        );
        let (early, _) = nodes("alphabeta:game_nodes=40000,time_moves_left=10");
        assert!(early > first, "{early} {first}");
        assert_eq!(nodes("alphabeta:game_nodes=40000"), (first, total));
    }

    #[test]
    fn blunders_cost_games() {
        let config = MatchConfig::new("alphabeta:depth=1,blunder=30", "alphabeta:depth=1", 20);
        let report =
            run_match(&config, &MatchRun::default(), &Registry::standard(), &mut |_| {}).unwrap();
        assert!(report.score < 0.3, "{report:?}");
    }
}
