//! Any UCI program as a player. Whatever it does wrong costs it that game and no more.

use std::time::Duration;

use selfmate_chess::{Color, Game, Position, notation};
use selfmate_search::player::{Limit, Score};
use selfmate_search::{Choice, Player, PlayerError, Wdl};
use selfmate_uci::{EngineCommand, EngineError, EngineMove, EngineProcess, Go, Info, ScoreValue};

use crate::limit::OwnLimit;
use crate::spec::{SpecError, SpecOptions};

/// Beyond its time an engine is told to stop after this long.
const MARGIN: Duration = Duration::from_millis(200);
/// How long a move by nodes or depth may take before the engine counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// An engine in its own process. After a fault (hung, gone, flood, illegal move) the process is
/// ended, the game is lost, and the next game gets a new one.
pub struct UciPlayer {
    name: String,
    command: EngineCommand,
    own: OwnLimit,
    /// How long a move without a time limit may take.
    patience: Duration,
    process: Result<EngineProcess, EngineError>,
}

impl UciPlayer {
    /// Starts an engine; `own` is what its spec allows it.
    pub fn start(
        name: &str,
        command: EngineCommand,
        own: OwnLimit,
    ) -> Result<UciPlayer, SpecError> {
        let process = EngineProcess::start(&command)
            .map_err(|error| SpecError::Engine { spec: name.to_owned(), error })?;
        Ok(UciPlayer {
            name: name.to_owned(),
            command,
            own,
            patience: PATIENCE,
            process: Ok(process),
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
        let own = SpecOptions { spec: &own, seed: options.seed };
        let patience = own.number("timeout", 1..=86_400_000)?.map(Duration::from_millis);
        let limit = OwnLimit::from_options(&own)?;
        let player = UciPlayer::start(&options.label(), command, limit)?;
        Ok(UciPlayer { patience: patience.unwrap_or(PATIENCE), ..player })
    }

    /// The process number; `None` when it does not run.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().ok().map(EngineProcess::id)
    }

    fn ask(&mut self, game: &Game, limit: &Limit) -> Result<EngineMove, EngineError> {
        let default =
            OwnLimit { movetime: Some(Duration::from_millis(100)), ..OwnLimit::default() };
        let limit = self.own.within(limit, default);
        let time = [limit.movetime, limit.clock.map(|clock| clock.own)].into_iter().flatten().min();
        let deadline = time.map_or(self.patience, |time| time + MARGIN);
        match &mut self.process {
            Ok(process) => process.go(game, &go(game.turn(), &limit), deadline),
            Err(error) => Err(error.clone()),
        }
    }
}

impl Player for UciPlayer {
    fn name(&self) -> &str {
        &self.name
    }

    fn new_game(&mut self) {
        if self.process.is_err() {
            self.process = EngineProcess::start(&self.command);
        }
        if let Ok(process) = &mut self.process
            && let Err(error) = process.new_game()
        {
            self.process = Err(error);
        }
    }

    fn choose(&mut self, game: &Game, limit: &Limit) -> Result<Choice, PlayerError> {
        match self.ask(game, limit) {
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
fn go(turn: Color, limit: &Limit) -> Go {
    let milliseconds = |time: Duration| time.as_millis() as u64;
    let mut go = Go {
        nodes: limit.nodes,
        depth: limit.depth,
        movetime: limit.movetime.map(milliseconds),
        ..Go::default()
    };
    if let Some(clock) = limit.clock {
        let (own, other) = (Some(milliseconds(clock.own)), Some(milliseconds(clock.other)));
        (go.wtime, go.btime) = if turn == Color::White { (own, other) } else { (other, own) };
        let increment = Some(milliseconds(clock.increment));
        (go.winc, go.binc) = (increment, increment);
        go.movestogo = clock.moves_to_go;
    }
    go
}

fn choice(game: &Game, answer: EngineMove) -> Choice {
    let info = answer.info.unwrap_or_default();
    let score = info.score.map(|score| match score.value {
        ScoreValue::Cp(value) => Score::Centipawns(value),
        ScoreValue::Mate(moves) => Score::Mate(moves),
    });
    let [win, draw, loss] = info.wdl.unwrap_or_default().map(|part| f32::from(part) / 1000.0);
    let wdl = info.wdl.map(|_| Wdl { win, draw, loss });
    let mut line = legal_line(game, &info);
    // An engine at a low level may not play what it thinks best.
    if line.first() != Some(&answer.best) {
        line = vec![answer.best];
    }
    Choice { played: answer.best, wdl, score, depth: info.depth, nodes: info.nodes, line }
}

/// The engine's line, as far as it can be played.
fn legal_line(game: &Game, info: &Info) -> Vec<selfmate_chess::Move> {
    let mut position = game.position().clone();
    let mut line = Vec::new();
    for text in &info.pv {
        let Ok(m) = notation::parse_uci(&position, &text.to_string()) else { break };
        position.play_unchecked(m);
        line.push(m);
    }
    line
}
