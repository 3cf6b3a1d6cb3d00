//! A UCI engine as a player. If the engine misbehaves it loses that game; the match continues.

use std::time::Duration;

use selfmate_chess::{Color, Game, Move, Position};
use selfmate_search::player::{Limit, Score, SearchInfo};
use selfmate_search::{Choice, Player, PlayerError, Wdl};
use selfmate_uci::{
    EngineCommand, EngineError, EngineMove, EngineOption, EngineProcess, Go, Info, ScoreValue,
};

use crate::limit;
use crate::spec::{SpecError, SpecOptions};

/// An engine is sent `stop` when it exceeds its time by this much.
const MARGIN: Duration = Duration::from_millis(200);
/// The default time for a move limited by nodes or depth; after that the engine counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);
const MULTIPV: &str = "MultiPV";

/// An engine in its own process. After a fault (no answer, exit, output flood, illegal move) the
/// process is killed, the game is lost and the next game starts a new process.
pub struct UciPlayer {
    name: String,
    command: EngineCommand,
    own: Limit,
    /// The maximum time for a move without a time limit.
    patience: Duration,
    process: Result<EngineProcess, EngineError>,
    /// The `MultiPV` value that the engine was last sent.
    lines: usize,
}

impl UciPlayer {
    /// Starts an engine. `own` is the limit set in its spec.
    pub fn start(name: &str, command: EngineCommand, own: Limit) -> Result<UciPlayer, SpecError> {
        let process = EngineProcess::start(&command)
            .map_err(|error| SpecError::Engine { spec: name.to_owned(), error })?;
        Ok(UciPlayer {
            name: name.to_owned(),
            command,
            own,
            patience: PATIENCE,
            process: Ok(process),
            lines: 1,
        })
    }

    /// Starts the engine of a `uci:` spec. Words such as `option.Hash=64` and `nodes=1000` among
    /// the arguments are read here and not passed to the engine.
    pub fn from_spec(options: &SpecOptions<'_>) -> Result<UciPlayer, SpecError> {
        let mut command = EngineCommand::parse(options.argument("COMMAND")?);
        let mut own = options.spec.clone();
        let mut arguments = Vec::new();
        for word in std::mem::take(&mut command.arguments) {
            match word.split_once('=') {
                Some((key, value)) if key.starts_with("option.") => {
                    command = command.option(&key["option.".len()..], value);
                }
                Some((key @ ("nodes" | "depth" | "movetime" | "timeout"), value)) => {
                    own.options.push((key.to_owned(), value.to_owned()));
                }
                _ => arguments.push(word),
            }
        }
        command.arguments = arguments;
        let own = SpecOptions { spec: &own, ..*options };
        let patience = own.number("timeout", 1..=86_400_000)?.map(Duration::from_millis);
        let limit = limit::from_options(&own)?;
        let player = UciPlayer::start(&options.label(), command, limit)?;
        Ok(UciPlayer { patience: patience.unwrap_or(PATIENCE), ..player })
    }

    /// The engine's name and version; `None` when it is not running.
    pub fn version(&self) -> Option<&str> {
        self.process.as_ref().ok().map(EngineProcess::name)
    }

    /// `None` when the engine is not running.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().ok().map(EngineProcess::id)
    }

    fn search(
        &mut self,
        game: &Game,
        limit: &Limit,
        observe: &mut dyn FnMut(&SearchInfo),
    ) -> Result<EngineMove, EngineError> {
        let default = Limit::movetime(Duration::from_millis(100));
        let limit = limit::merge(&self.own, limit, &default);
        let time = [limit.movetime, limit.clock.map(|clock| clock.own)].into_iter().flatten().min();
        let deadline = time.map_or(self.patience, |time| time + MARGIN);
        let process = self.process.as_mut().map_err(|error| error.clone())?;
        if self.lines != limit.lines.max(1)
            && EngineOption::find(process.options(), MULTIPV).is_some()
        {
            self.lines = limit.lines.max(1);
            process.set_option(MULTIPV, Some(&self.lines.to_string()))?;
        }
        let stop = limit.stop.as_deref();
        process.go_observed(game, &go(game, &limit), deadline, stop, &mut |info| {
            if let Some(info) = search_info(game, info) {
                observe(&info);
            }
        })
    }
}

impl Player for UciPlayer {
    fn name(&self) -> &str {
        &self.name
    }

    fn new_game(&mut self) {
        if self.process.is_err() {
            self.process = EngineProcess::start(&self.command);
            self.lines = 1;
        }
        if let Ok(process) = &mut self.process
            && let Err(error) = process.new_game()
        {
            self.process = Err(error);
        }
    }

    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        observe: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError> {
        match self.search(game, limit, observe) {
            Ok(engine_move) => Ok(choice(game, engine_move)),
            Err(error) => {
                let reason = error.to_string();
                self.process = Err(error);
                Err(PlayerError { player: self.name.clone(), reason })
            }
        }
    }
}

fn go(game: &Game, limit: &Limit) -> Go {
    let milliseconds = |time: Duration| time.as_millis() as u64;
    let mut go = Go {
        nodes: limit.nodes,
        depth: limit.depth,
        movetime: limit.movetime.map(milliseconds),
        searchmoves: limit.only.iter().map(|m| m.to_uci(game.castling_mode())).collect(),
        ..Go::default()
    };
    if let Some(clock) = limit.clock {
        let (own, other) = (Some(milliseconds(clock.own)), Some(milliseconds(clock.other)));
        (go.wtime, go.btime) =
            if game.turn() == Color::White { (own, other) } else { (other, own) };
        let increment = Some(milliseconds(clock.increment));
        (go.winc, go.binc) = (increment, increment);
        go.movestogo = clock.moves_to_go;
    }
    go
}

fn choice(game: &Game, engine_move: EngineMove) -> Choice {
    let info = engine_move.info.unwrap_or_default();
    let mut line = legal_line(game, &info);
    // At a reduced level an engine may play another move than its best line.
    if line.first() != Some(&engine_move.best) {
        line = vec![engine_move.best];
    }
    Choice {
        played: engine_move.best,
        wdl: wdl(&info),
        score: score(&info),
        depth: info.depth,
        nodes: info.nodes,
        line,
        elapsed: Some(engine_move.elapsed),
    }
}

/// An `info` line with a score and a playable line.
fn search_info(game: &Game, info: &Info) -> Option<SearchInfo> {
    let line = legal_line(game, info);
    (!line.is_empty()).then_some(())?;
    Some(SearchInfo {
        rank: info.multipv.unwrap_or(1) as usize,
        line,
        score: score(info)?,
        wdl: wdl(info),
        depth: info.depth.unwrap_or(0),
        deepest: info.seldepth.or(info.depth).unwrap_or(0),
        nodes: info.nodes.unwrap_or(0),
        elapsed: Duration::from_millis(info.time.unwrap_or(0)),
        permille_full: info.hashfull.unwrap_or(0),
        tablebase_hits: info.tbhits.unwrap_or(0),
        visits: None,
        prior: None,
    })
}

fn score(info: &Info) -> Option<Score> {
    info.score.map(|score| match score.value {
        ScoreValue::Cp(value) => Score::Centipawns(value),
        ScoreValue::Mate(moves) => Score::Mate(moves),
    })
}

fn wdl(info: &Info) -> Option<Wdl> {
    let [win, draw, loss] = info.wdl?.map(|part| f32::from(part) / 1000.0);
    Some(Wdl { win, draw, loss })
}

/// The legal start of the engine's principal variation.
fn legal_line(game: &Game, info: &Info) -> Vec<Move> {
    let mut position = game.position().clone();
    let mut line = Vec::new();
    for text in &info.pv {
        let Ok(m) = text.to_move(&position) else { break };
        position.play_unchecked(m);
        line.push(m);
    }
    line
}
