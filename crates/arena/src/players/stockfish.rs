//! Stockfish as a player, limited by level, nodes, depth or time.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use selfmate_uci::{EngineCommand, EngineOption, EngineProcess, OptionKind};
use serde::{Deserialize, Serialize};

use crate::engine::UciPlayer;
use crate::limit;
use crate::registry::PlayerKind;
use crate::spec::{SpecError, SpecOptions};

/// The kind, and the program that is looked up in PATH.
const NAME: &str = "stockfish";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program of all `stockfish` players of this process, before the first one is built.
pub fn set_stockfish(path: &Path) {
    PROGRAM.get_or_init(|| path.to_owned());
}

/// The program that was set.
pub fn stockfish_program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

fn engine() -> EngineCommand {
    match stockfish_program() {
        Some(path) => EngineCommand::new(path.to_string_lossy()),
        None => EngineCommand::new(NAME),
    }
}

/// The range of `UCI_Elo` of an installed Stockfish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EloRange {
    /// Its name and version; the Elo scale differs between versions.
    pub engine: String,
    /// The lowest `UCI_Elo`.
    pub min: i64,
    pub max: i64,
}

/// Starts the installed Stockfish to read its range of `UCI_Elo`.
pub fn stockfish_elo_range() -> Result<EloRange, SpecError> {
    let error = |error| SpecError::Engine { spec: NAME.to_owned(), error };
    let engine = EngineProcess::start(&engine()).map_err(error)?;
    match EngineOption::find(engine.options(), "UCI_Elo").map(|option| &option.kind) {
        Some(&OptionKind::Spin { min, max, .. }) => {
            Ok(EloRange { engine: engine.name().to_owned(), min, max })
        }
        _ => Err(SpecError::Other {
            spec: NAME.to_owned(),
            reason: format!("{} has no option UCI_Elo with a range", engine.name()),
        }),
    }
}

/// The kind of specs such as `stockfish:elo=1500` and `stockfish:skill=3,nodes=1000`.
pub(super) fn kind() -> PlayerKind {
    PlayerKind::new(NAME, "Stockfish at full strength or at a lower level", |options| {
        Ok(Box::new(player(options)?))
    })
    .version(|options| Ok(player(options)?.version().unwrap_or(NAME).to_owned()))
    .option("elo", "its UCI_Elo level, 1350 to 2850 in version 15")
    .option("skill", "its Skill Level, 0 to 20")
    .option("nodes", "nodes for each move")
    .option("depth", "plies of search")
    .option("movetime", "milliseconds for each move")
    .option("threads", "threads (1)")
    .option("hash", "megabytes for the table (16)")
}

fn player(options: &SpecOptions<'_>) -> Result<UciPlayer, SpecError> {
    let own = limit::from_options(options)?;
    UciPlayer::start(&options.label(), command(options)?, own)
}

fn command(options: &SpecOptions<'_>) -> Result<EngineCommand, SpecError> {
    let threads = options.number("threads", 1..=1024)?.unwrap_or(1);
    let hash = options.number("hash", 1..=33_554_432)?.unwrap_or(16);
    let mut command =
        engine().option("Threads", threads.to_string()).option("Hash", hash.to_string());
    let elo = options.number("elo", 0..=10_000)?;
    let skill = options.number("skill", 0..=20)?;
    match (elo, skill) {
        (Some(elo), Some(_)) => {
            return Err(options.bad(
                "skill",
                &skill.unwrap_or(0).to_string(),
                &format!("either skill or elo={elo}, not both"),
            ));
        }
        (Some(elo), None) => {
            command =
                command.option("UCI_LimitStrength", "true").option("UCI_Elo", elo.to_string());
        }
        (None, Some(skill)) => command = command.option("Skill Level", skill.to_string()),
        (None, None) => {}
    }
    Ok(command)
}
