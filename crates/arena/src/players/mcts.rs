//! Monte Carlo tree search as a player, for any evaluator.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use selfmate_chess::tablebase::Tables;
use selfmate_chess::{Game, Move, Seed};
use selfmate_search::mcts::{
    self, Gumbel, InteriorRule, NodeView, Proof, RootRule, Search, SearchParams, SearchResult,
    Temperature, run_parallel,
};
use selfmate_search::memory::check_room;
use selfmate_search::player::{Limit, Score, SearchInfo};
use selfmate_search::{Choice, Evaluator, Player, PlayerError};

use crate::limit;
use crate::registry::PlayerKind;
use crate::spec::{SpecError, SpecOptions};
use crate::tablebase_cache;
use selfmate_uci::TimeConstants;

/// Used when neither the spec nor the match sets a limit.
const DEFAULT_SIMS: u64 = 400;
/// Memory per thread beside the tree: its stack and its evaluator's buffers.
const THREAD_BYTES: usize = 8 << 20;

/// A tree search that plays. The tree is kept between the moves of a game; nothing is kept from one
/// game to the next.
pub struct MctsPlayer {
    name: String,
    search: Search,
    evaluators: Vec<Box<dyn Evaluator>>,
    /// Makes the evaluator of a thread.
    make: Box<dyn FnMut(usize) -> Box<dyn Evaluator> + Send>,
    seed: Seed,
    own: Limit,
    default: Limit,
    /// The speed of the last timed search. A Gumbel root needs a simulation budget before it
    /// starts.
    sims_per_second: f64,
}

#[derive(Clone, Debug)]
pub struct MctsOptions {
    pub params: SearchParams,
    /// Threads that share the tree. With more than one, results are not reproducible.
    pub threads: usize,
    /// The spec's own limit (`sims` or `movetime`).
    pub own: Limit,
    /// Used when neither the spec nor the match sets a limit.
    pub default_sims: u64,
    /// Tablebases for lookups in the tree.
    pub tables: Option<Tables>,
}

impl MctsOptions {
    #[must_use]
    pub fn declare(kind: PlayerKind) -> PlayerKind {
        let kind = kind
            .option("sims", "simulations for each move (400)")
            .option("movetime", "milliseconds for each move")
            .option("root", "puct or gumbel: how the move is chosen (puct)")
            .option("threads", "threads in one tree (1)")
            .option("memory", "megabytes for the tree (256)")
            .option("c_puct", "weight of exploration (1.5)")
            .option("policy_temperature", "above 1 flattens the priors (1)")
            .option("temperature", "above 0 draws moves by visits for 30 moves (0)");
        tablebase_cache::declare(kind)
    }

    /// Reads the options of a spec over the kind's default parameters.
    pub fn read(
        options: &SpecOptions<'_>,
        mut params: SearchParams,
    ) -> Result<MctsOptions, SpecError> {
        // Root noise is only for self-play.
        match options.choice("root", &["puct", "gumbel"])? {
            Some(0) => params.root = RootRule::Puct(None),
            Some(_) => params.root = RootRule::Gumbel(Gumbel { noise: 0.0, ..Gumbel::default() }),
            None => {}
        }
        if let Some(c) = options.decimal("c_puct", 0.0..=100.0)? {
            match &mut params.interior {
                InteriorRule::Puct(puct) => puct.c_puct = c,
                InteriorRule::Uct { c: uct } => *uct = c,
            }
        }
        if let Some(temperature) = options.decimal("policy_temperature", 0.01..=100.0)? {
            params.policy_temperature = temperature;
            params.root_policy_temperature = temperature;
        }
        if let Some(value) = options.decimal("temperature", 0.0..=100.0)? {
            params.temperature = Temperature { value, plies: 60 };
        }
        if let Some(memory) = options.number("memory", 1..=1 << 20)? {
            params.memory_mb = memory as usize;
        }
        let movetime = options.number("movetime", 1..=86_400_000)?.map(Duration::from_millis);
        Ok(MctsOptions {
            params,
            threads: options.number("threads", 1..=256)?.unwrap_or(1) as usize,
            own: Limit {
                nodes: options.number("sims", 1..=u64::MAX)?,
                movetime,
                ..Limit::default()
            },
            default_sims: DEFAULT_SIMS,
            tables: tablebase_cache::read(options)?,
        })
    }

    /// Builds the player with an evaluator for each thread. Fails if there is too little memory.
    pub fn player<F>(self, name: &str, seed: Seed, mut make: F) -> Result<MctsPlayer, SpecError>
    where
        F: FnMut(usize) -> Box<dyn Evaluator> + Send + 'static,
    {
        let mut search =
            Search::new(self.params).map_err(|error| SpecError::memory(name, error))?;
        let threads = self.threads.saturating_mul(THREAD_BYTES);
        check_room(threads, "search threads").map_err(|error| SpecError::memory(name, error))?;
        search.set_tables(self.tables);
        Ok(MctsPlayer {
            name: name.to_owned(),
            search,
            evaluators: (0..self.threads).map(&mut make).collect(),
            make: Box::new(make),
            seed: seed.derive("mcts"),
            own: self.own,
            default: Limit::nodes(self.default_sims),
            sims_per_second: 1000.0,
        })
    }
}

impl MctsPlayer {
    /// Searches and returns the full result; [`Player::choose`] keeps only the move and its line.
    pub fn search(
        &mut self,
        game: &Game,
        limit: &Limit,
        observe: &mut dyn FnMut(&SearchInfo),
    ) -> SearchResult {
        let started = Instant::now();
        let limit = limit::merge(&self.own, limit, &self.default);
        let time = move_time(&limit);
        let simulations = match (limit.nodes, time, self.search.params().root) {
            (Some(nodes), _, _) => nodes,
            (None, Some(time), RootRule::Gumbel(_)) => {
                (self.sims_per_second * time.as_secs_f64()).max(16.0) as u64
            }
            (None, Some(_), RootRule::Puct(_)) => u64::from(u32::MAX),
            // Only a depth was set, which a tree search ignores.
            (None, None, _) => self.default.nodes.unwrap_or(DEFAULT_SIMS),
        };
        let seed = self.seed.index(game.ply() as u64);
        self.search.start_among(game, &limit.only, simulations, seed);
        let deadline = time.and_then(|time| started.checked_add(time));
        let stop = limit.stop.as_deref().map(|stop: &AtomicBool| stop);
        let mut interval = FIRST_REPORT;
        loop {
            // The search pauses only for reports and then continues.
            let report_at = started + interval;
            let pause = deadline.map_or(report_at, |deadline| deadline.min(report_at));
            let until = mcts::StopCondition { deadline: Some(pause), stop };
            run_parallel(&mut self.search, &mut self.evaluators, &until);
            let over = self.search.remaining() == 0
                || self.search.is_solved()
                || stop.is_some_and(|stop| stop.load(Relaxed))
                || Instant::now() < pause
                || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            self.report(limit.lines, started.elapsed(), observe);
            if over {
                break;
            }
            interval *= 2;
        }
        let result = self.search.result();
        if time.is_some() && result.simulations > 0 {
            self.sims_per_second =
                result.simulations as f64 / started.elapsed().as_secs_f64().max(1e-6);
        }
        result
    }

    /// Reports the best lines so far.
    fn report(&self, lines: usize, elapsed: Duration, observe: &mut dyn FnMut(&SearchInfo)) {
        let result = self.search.result();
        let deepest = result.moves.iter().map(|m| m.line.len()).max().unwrap_or(0) as u32;
        for (index, statistics) in result.moves.iter().take(lines.max(1)).enumerate() {
            observe(&SearchInfo {
                rank: index + 1,
                line: statistics.line.clone(),
                score: mate_score(statistics.proof, 1)
                    .unwrap_or_else(|| Score::from_value(statistics.wdl.value())),
                wdl: Some(statistics.wdl),
                depth: statistics.line.len() as u32,
                deepest,
                nodes: result.simulations,
                elapsed,
                permille_full: self.search.permille_full(),
                tablebase_hits: result.tablebase_hits,
                visits: Some(statistics.visits),
                prior: Some(statistics.prior),
            });
        }
    }
}

/// A proven result as a score; `None` where the distance to mate is unknown. `ahead` plies are
/// played before the proven position is reached.
fn mate_score(proof: Proof, ahead: u8) -> Option<Score> {
    match proof {
        Proof::Win(plies) | Proof::Loss(plies) if plies >= Proof::DISTANT => None,
        Proof::Win(plies) => Some(Score::Mate(i32::from((plies + ahead).div_ceil(2)))),
        Proof::Loss(plies) => Some(Score::Mate(-i32::from((plies + ahead) / 2))),
        Proof::Draw => Some(Score::Centipawns(0)),
        Proof::Unknown => None,
    }
}

/// Time until the first report; each following interval is twice as long.
const FIRST_REPORT: Duration = Duration::from_millis(100);

/// The time for a move: the move time or the share of the clock, whichever is shorter.
fn move_time(limit: &Limit) -> Option<Duration> {
    let budget =
        limit.clock.map(|clock| super::budget_of(&clock, &TimeConstants::default()).optimum_ms);
    [limit.movetime, budget.map(Duration::from_millis)].into_iter().flatten().min()
}

impl Player for MctsPlayer {
    fn name(&self) -> &str {
        &self.name
    }

    fn new_game(&mut self) {
        self.search.clear();
        self.evaluators = (0..self.evaluators.len()).map(&mut self.make).collect();
    }

    fn look(&self, line: &[Move]) -> Option<NodeView> {
        self.search.view(line)
    }

    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        observe: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError> {
        let result = self.search(game, limit, observe);
        let played = result.best.ok_or_else(|| PlayerError::no_move(&self.name))?;
        let best = result.moves.first();
        let score = mate_score(result.proof, 0);
        Ok(Choice {
            played,
            wdl: Some(result.wdl),
            score,
            depth: best.map(|best| best.line.len() as u32),
            nodes: Some(result.simulations),
            line: best.map_or_else(|| vec![played], |best| best.line.clone()),
            elapsed: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{fen, notation};

    use super::*;
    use crate::registry::Registry;

    #[test]
    fn tree_searches_find_a_mate_and_report_it() {
        let game = fen::parse_game("6rk/6pp/8/6N1/8/8/8/K7 w - - 0 1").unwrap();
        let registry = Registry::standard();
        for text in ["rollout:sims=200", "material:sims=200", "material:sims=64,root=gumbel"] {
            let spec = registry.parse(text).unwrap();
            let mut player = registry.build(&spec, Seed::new(1)).unwrap();
            let choice = player.choose(&game, &Limit::default()).unwrap();
            assert_eq!(notation::san(game.position(), choice.played), "Nf7#", "{text}");
            assert_eq!(choice.score, Some(Score::Mate(1)), "{text}");
            assert_eq!(choice.line, [choice.played], "{text}");
        }
    }

    #[test]
    fn the_root_option_replaces_the_root_rule_of_the_kind() {
        let registry = Registry::standard();
        let rule = |text: &str, usual: SearchParams| {
            let spec = registry.parse(text).unwrap();
            let tablebases = tablebase_cache::TablebaseCache::default();
            let options = SpecOptions { spec: &spec, seed: Seed::new(1), tablebases: &tablebases };
            MctsOptions::read(&options, usual).unwrap().params.root
        };
        for usual in [SearchParams::default(), SearchParams::gumbel()] {
            assert_eq!(rule("material:root=puct", usual.clone()), RootRule::Puct(None));
            assert!(matches!(rule("material:root=gumbel", usual.clone()), RootRule::Gumbel(_)));
            assert_eq!(rule("material", usual.clone()), usual.root);
        }
    }

    #[test]
    fn nothing_is_kept_from_one_game_to_the_next() {
        let registry = Registry::standard();
        let spec = registry.parse("rollout:sims=100").unwrap();
        let mut player = registry.build(&spec, Seed::new(1)).unwrap();
        let mut play = || {
            player.new_game();
            let mut game = Game::new();
            for _ in 0..6 {
                let choice = player.choose(&game, &Limit::default()).unwrap();
                game.play(choice.played).unwrap();
            }
            game.key()
        };
        assert_eq!(play(), play());
    }

    #[test]
    fn time_limits_are_kept() {
        let registry = Registry::standard();
        // More than a year of simulations.
        let sims = 1_000_000_000_000;
        for root in ["puct", "gumbel"] {
            let text = format!("material:root={root},sims={sims}");
            let spec = registry.parse(&text).unwrap();
            let mut player = registry.build(&spec, Seed::new(1)).unwrap();
            let limit = Limit::movetime(Duration::from_millis(30));
            let choice = player.choose(&Game::new(), &limit).unwrap();
            assert!((1..sims).contains(&choice.nodes.unwrap()), "{text}");
        }
    }
}
