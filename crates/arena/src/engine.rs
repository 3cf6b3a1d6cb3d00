//! Any UCI program as a player. Whatever it does wrong costs it that game and no more.

use std::time::Duration;

use selfmate_chess::{Color, Game, Move, Position};
use selfmate_search::player::{Limit, Score, SearchInfo};
use selfmate_search::{Choice, Player, PlayerError, Wdl};
use selfmate_uci::{
    EngineCommand, EngineError, EngineMove, EngineOption, EngineProcess, Go, Info, ScoreValue,
};

use crate::limit::SpecLimit;
use crate::spec::{SpecError, SpecOptions};

/// Beyond its time an engine is told to stop after this long.
const MARGIN: Duration = Duration::from_millis(200);
/// How long a move by nodes or depth may take before the engine counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);
const MULTIPV: &str = "MultiPV";

/// An engine in its own process. After a fault (hung, gone, flood, illegal move) the process is
/// ended, the game is lost, and the next game gets a new one.
pub struct UciPlayer {
    name: String,
    command: EngineCommand,
    own: SpecLimit,
    /// How long a move without a time limit may take.
    patience: Duration,
    process: Result<EngineProcess, EngineError>,
    /// The number of lines it was last asked for.
    lines: usize,
}

impl UciPlayer {
    /// Starts an engine; `own` is what its spec allows it.
    pub fn start(
        name: &str,
        command: EngineCommand,
        own: SpecLimit,
    ) -> Result<UciPlayer, SpecError> {
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
    /// its arguments are for us.
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
        let limit = SpecLimit::from_options(&own)?;
        let player = UciPlayer::start(&options.label(), command, limit)?;
        Ok(UciPlayer { patience: patience.unwrap_or(PATIENCE), ..player })
    }

    /// What the program calls itself, with its version; `None` when it does not run.
    pub fn version(&self) -> Option<&str> {
        self.process.as_ref().ok().map(EngineProcess::name)
    }

    /// The process number; `None` when it does not run.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().ok().map(EngineProcess::id)
    }

    fn ask(
        &mut self,
        game: &Game,
        limit: &Limit,
        observe: &mut dyn FnMut(&SearchInfo),
    ) -> Result<EngineMove, EngineError> {
        let default =
            SpecLimit { movetime: Some(Duration::from_millis(100)), ..SpecLimit::default() };
        let limit = self.own.within(limit, default);
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
            if let Some(thought) = thought(game, info) {
                observe(&thought);
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
        match self.ask(game, limit, observe) {
            Ok(answer) => Ok(choice(game, answer)),
            Err(error) => {
                let reason = error.to_string();
                self.process = Err(error);
                Err(PlayerError { player: self.name.clone(), reason })
            }
        }
    }
}

/// The command for a limit.
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

fn choice(game: &Game, answer: EngineMove) -> Choice {
    let info = answer.info.unwrap_or_default();
    let mut line = legal_line(game, &info);
    // An engine at a low level may not play what it thinks best.
    if line.first() != Some(&answer.best) {
        line = vec![answer.best];
    }
    Choice {
        played: answer.best,
        wdl: wdl(&info),
        score: score(&info),
        depth: info.depth,
        nodes: info.nodes,
        line,
        elapsed: Some(answer.elapsed),
    }
}

/// What an engine says, if it is about a line that can be played.
fn thought(game: &Game, info: &Info) -> Option<SearchInfo> {
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

/// The engine's line, as far as it can be played.
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
