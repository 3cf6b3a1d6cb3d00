//! `selfmate uci`: any player as a UCI engine on standard input and output.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use selfmate_arena::{PlayerSpec, Registry};
use selfmate_chess::{Game, Seed};
use selfmate_search::memory::{self, MemoryError};
use selfmate_search::player::{Clock, Limit, Score, SearchInfo};
use selfmate_search::{Player, alphabeta};
use selfmate_uci::{BestMove, Control, EngineOption, Go, Info, UciEngine};

use crate::output::{score_text, wdl_text};
use crate::player;

#[derive(clap::Args)]
pub struct Args {
    /// The player [default: the network that ships with selfmate]
    #[arg(default_value = "default", hide_default_value = true)]
    player: String,
    /// Seed of the player's randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&warnings);
    let registry = player::registry_with(Arc::new(move |skipped_checkpoints| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(skipped_checkpoints.to_string());
    }));
    let (spec, player) = player::build_from(&registry, &args.player, args.seed)?;
    let mut engine = Engine {
        registry,
        own: (spec.kind.clone(), spec.argument.clone()),
        spec,
        player,
        seed: Seed::new(args.seed),
        lines: 1,
        overhead_ms: DEFAULT_OVERHEAD_MS,
        printed: Vec::new(),
        warnings,
    };
    Ok(selfmate_uci::serve(&mut engine, io::stdin().lock(), io::stdout())?)
}

const DEFAULT_OVERHEAD_MS: u64 = 10;
/// The network file, under the option name of lc0.
const WEIGHTS_FILE: &str = "WeightsFile";

/// A UCI option that sets a player option, under the name that GUIs know.
struct Setting {
    uci: &'static str,
    player: &'static str,
    option: fn() -> EngineOption,
}

const SETTINGS: &[Setting] = &[
    Setting {
        uci: "Threads",
        player: "threads",
        option: || EngineOption::spin("Threads", 1, 1, 256),
    },
    Setting { uci: "Hash", player: "hash", option: || hash_option(16) },
    Setting { uci: "Hash", player: "memory", option: || hash_option(256) },
    Setting { uci: "CPuct", player: "c_puct", option: || EngineOption::string("CPuct", "1.5") },
    Setting {
        uci: "PolicyTemperature",
        player: "policy_temperature",
        option: || EngineOption::string("PolicyTemperature", "1.0"),
    },
    Setting {
        uci: "Temperature",
        player: "temperature",
        option: || EngineOption::string("Temperature", "0.0"),
    },
    Setting {
        uci: "SyzygyPath",
        player: "syzygy",
        option: || EngineOption::string("SyzygyPath", ""),
    },
    Setting {
        uci: "SyzygyProbeLimit",
        player: "syzygy_pieces",
        option: || EngineOption::spin("SyzygyProbeLimit", 7, 0, 7),
    },
    Setting {
        uci: "Syzygy50MoveRule",
        player: "syzygy_50",
        option: || EngineOption::check("Syzygy50MoveRule", true),
    },
];

/// `Hash`, up to the memory limit of this process.
fn hash_option(default: i64) -> EngineOption {
    let most = i64::try_from(memory::limit_mb()).unwrap_or(i64::MAX).min(MOST_HASH);
    EngineOption::spin("Hash", default, 1, most.max(default))
}

/// The maximum `Hash` of players, in megabytes.
const MOST_HASH: i64 = 65_536;

struct Engine {
    registry: Registry,
    /// The initial kind of player and its argument.
    own: (String, Option<String>),
    spec: PlayerSpec,
    player: Box<dyn Player>,
    seed: Seed,
    /// Lines to report (MultiPV).
    lines: usize,
    overhead_ms: u64,
    /// Warnings about damaged tables and checkpoints that were already printed.
    printed: Vec<String>,
    /// Warnings about checkpoints that were skipped when the player was built.
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Engine {
    /// True when this kind of player has an option.
    fn has(&self, option: &str) -> bool {
        let kind = self.registry.kinds().iter().find(|kind| kind.name() == self.spec.kind);
        kind.is_some_and(|kind| kind.options().any(|(name, _)| name == option))
    }

    /// The settings of this kind of player.
    fn settings(&self) -> impl Iterator<Item = &'static Setting> {
        SETTINGS.iter().filter(move |setting| self.has(setting.player))
    }

    /// Replaces the player. If the new one cannot be built, the old one stays.
    fn rebuild(&mut self, spec: PlayerSpec) -> Result<(), String> {
        self.player = self.registry.build(&spec, self.seed).map_err(|error| error.to_string())?;
        self.spec = spec;
        Ok(())
    }

    /// Plays with the network of a file, or with the initial player if no file is named.
    fn set_weights(&mut self, file: &str) -> Result<(), String> {
        let (kind, argument) = match file {
            "" => self.own.clone(),
            _ => ("net".to_owned(), Some(file.to_owned())),
        };
        self.rebuild(PlayerSpec { kind, argument, options: self.spec.options.clone() })
    }

    /// The limit of a `go` command.
    fn limit(&self, game: &Game, go: &Go) -> Limit {
        let milliseconds = Duration::from_millis;
        // Players subtract the default overhead themselves.
        let more_overhead = self.overhead_ms.saturating_sub(DEFAULT_OVERHEAD_MS);
        let other = go.clock(!game.turn(), 0).map_or(0, |clock| clock.remaining_ms);
        let clock = go.clock(game.turn(), self.overhead_ms).map(|clock| Clock {
            own: milliseconds(clock.remaining_ms.saturating_sub(more_overhead)),
            other: milliseconds(other),
            increment: milliseconds(clock.increment_ms),
            moves_to_go: clock.moves_to_go,
        });
        let timed = go.movetime.is_some() || clock.is_some();
        let depth = go.depth.or(go.mate.map(|moves| moves.saturating_mul(2)));
        let endless = go.infinite || go.ponder || !(timed || depth.is_some() || go.nodes.is_some());
        Limit {
            nodes: if endless { Some(u64::MAX) } else { go.nodes },
            depth,
            movetime: go.movetime.filter(|_| !go.ponder).map(milliseconds),
            clock: clock.filter(|_| !go.ponder && !go.infinite),
            only: if go.searchmoves.is_empty() { Vec::new() } else { go.root_moves(game) },
            lines: self.lines,
            ..Limit::default()
        }
    }
}

impl UciEngine for Engine {
    fn id(&self) -> (String, String) {
        let name = format!("selfmate {} {}", env!("CARGO_PKG_VERSION"), self.player.name());
        (name, "the selfmate developers".into())
    }

    fn options(&self) -> Vec<EngineOption> {
        let mut options: Vec<EngineOption> =
            self.settings().map(|setting| (setting.option)()).collect();
        // All network players have the option `search`.
        if self.has("search") {
            options.push(EngineOption::string(WEIGHTS_FILE, ""));
        }
        // Match runners expect these two options of every engine.
        for (name, default) in [("Threads", 1), ("Hash", 1)] {
            if EngineOption::find(&options, name).is_none() {
                options.push(EngineOption::spin(name, default, default, default));
            }
        }
        options.extend([
            EngineOption::button("Clear Hash"),
            EngineOption::check("Ponder", false),
            EngineOption::spin("MultiPV", 1, 1, 256),
            EngineOption::spin("Move Overhead", DEFAULT_OVERHEAD_MS as i64, 0, 10_000),
        ]);
        options
    }

    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number =
            || value.parse::<u64>().map_err(|_| format!("'{value}': expected a whole number"));
        match name {
            "MultiPV" => self.lines = number()? as usize,
            "Move Overhead" => self.overhead_ms = number()?,
            "Clear Hash" => self.player.new_game(),
            WEIGHTS_FILE => self.set_weights(value)?,
            _ => {
                let Some(setting) = self.settings().find(|setting| setting.uci == name) else {
                    return Ok(());
                };
                let mut spec = self.spec.clone();
                spec.options.push((setting.player.to_owned(), value.to_owned()));
                self.rebuild(spec)?;
            }
        }
        Ok(())
    }

    fn new_game(&mut self) {
        self.player.new_game();
    }

    fn go(
        &mut self,
        game: &Game,
        go: &Go,
        control: &Control,
        report: &mut (dyn FnMut(Info) + Send),
    ) -> BestMove {
        for warning in
            std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
        {
            if !self.printed.contains(&warning) {
                report(Info::text(format!("warning: {warning}")));
                self.printed.push(warning);
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let limit = Limit { stop: Some(Arc::clone(&stop)), ..self.limit(game, go) };
        // After a ponderhit the search gets its own time.
        let after_ponderhit =
            if go.ponder { go.budget(game.turn(), self.overhead_ms) } else { None };
        let done = AtomicBool::new(false);
        let choice = std::thread::scope(|scope| {
            let watch = || {
                while !done.load(Ordering::Relaxed) {
                    let spent = control.elapsed().zip(after_ponderhit);
                    let out_of_time = spent
                        .is_some_and(|(time, budget)| time.as_millis() as u64 >= budget.optimum_ms);
                    if control.is_stopped() || out_of_time {
                        stop.store(true, Ordering::Relaxed);
                        return;
                    }
                    std::thread::park_timeout(Duration::from_millis(1));
                }
            };
            if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, watch) {
                // Without the thread a `stop` would not be noticed, so the search ends at once.
                report(Info::text(format!("cannot start a thread: {error}")));
                stop.store(true, Ordering::Relaxed);
            }
            let observe = &mut |search_info: &SearchInfo| report(info(search_info, game));
            let choice = self.player.choose_observed(game, &limit, observe);
            done.store(true, Ordering::Relaxed);
            choice
        });
        for damage in self.registry.tablebases().damage() {
            if !self.printed.contains(&damage) {
                report(Info::text(format!("a damaged table is not used: {damage}")));
                self.printed.push(damage);
            }
        }
        match choice {
            Ok(choice) => {
                BestMove { best: Some(choice.played), ponder: choice.line.get(1).copied() }
            }
            Err(error) => {
                report(Info::text(error.to_string()));
                BestMove { best: None, ponder: None }
            }
        }
    }

    fn extra(&mut self, command: &str, game: &Game, control: &Control) -> Option<String> {
        match command.split_whitespace().next()? {
            "bench" => Some(bench_lines(control).unwrap_or_else(|error| error.to_string())),
            "eval" => Some(self.evaluation(game)),
            _ => None,
        }
    }
}

impl Engine {
    /// The player's evaluation after one node.
    fn evaluation(&mut self, game: &Game) -> String {
        let mut last = None;
        let observe = &mut |info: &SearchInfo| last = Some(info.clone());
        match self.player.choose_observed(game, &Limit::nodes(1), observe) {
            Err(error) => error.to_string(),
            Ok(choice) => {
                let score = choice.score.or(last.as_ref().map(|info| info.score));
                let score = score.map_or("no evaluation".into(), score_text);
                let wdl = choice.wdl.map(|wdl| format!(" ({})", wdl_text(wdl)));
                format!("Evaluation for the side to move: {score}{}", wdl.unwrap_or_default())
            }
        }
    }
}

/// The deterministic benchmark in the format of Stockfish.
fn bench_lines(control: &Control) -> Result<String, MemoryError> {
    let started = Instant::now();
    let Some(nodes) = alphabeta::bench_until(control.stop_flag())? else {
        return Ok(Info::text("bench stopped").to_string());
    };
    let elapsed = started.elapsed();
    let per_second = (nodes as f64 / elapsed.as_secs_f64().max(1e-9)) as u64;
    let milliseconds = elapsed.as_millis();
    Ok(format!(
        "Total time (ms) : {milliseconds}\nNodes searched  : {nodes}\nNodes/second    : {per_second}"
    ))
}

/// Converts a report to an `info` line.
fn info(search_info: &SearchInfo, game: &Game) -> Info {
    let seconds = search_info.elapsed.as_secs_f64();
    let mode = game.castling_mode();
    Info {
        depth: Some(search_info.depth),
        seldepth: Some(search_info.deepest),
        multipv: Some(search_info.rank as u32),
        score: Some(match search_info.score {
            Score::Centipawns(value) => selfmate_uci::Score::cp(value),
            Score::Mate(moves) => selfmate_uci::Score::mate(moves),
        }),
        wdl: search_info.wdl.map(per_mille),
        nodes: Some(search_info.nodes),
        nps: Some((search_info.nodes as f64 / seconds.max(1e-3)) as u64),
        hashfull: Some(search_info.permille_full),
        tbhits: Some(search_info.tablebase_hits),
        time: Some(search_info.elapsed.as_millis() as u64),
        pv: search_info.line.iter().map(|m| m.to_uci(mode)).collect(),
        ..Info::default()
    }
}

/// Win, draw and loss in thousandths that sum to 1000.
fn per_mille(wdl: selfmate_search::Wdl) -> [u16; 3] {
    let win = (wdl.win * 1000.0).round() as u16;
    let loss = ((wdl.loss * 1000.0).round() as u16).min(1000 - win);
    [win, 1000 - win - loss, loss]
}
