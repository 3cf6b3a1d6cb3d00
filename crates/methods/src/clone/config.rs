//! The settings of the `clone` learner.

use selfmate_arena::Registry;
use selfmate_nn::residual::{self, Optimiser, TrainingConfig, ValueHead};
use selfmate_nn::sparse::{SparseConfig, TrainerConfig};
use selfmate_selfplay::Ramp;
use selfmate_train::ConfigError;
use selfmate_train::SavingConfig;
use selfmate_train::bounds::{self, Bounds, NamedBounds};
use serde::{Deserialize, Serialize};

use super::pgn::PgnConfig;
use super::teacher::TeacherConfig;

/// The bounds of settings that no other learner has.
pub(super) const BOUNDS: &[NamedBounds] = &[
    ("games", Bounds::new(2.0, 1e9)),
    ("chunk_games", bounds::ROUND),
    ("gathering_share", bounds::SHARE),
    ("teacher.lines", Bounds::new(1.0, 256.0)),
    ("teacher.temperature", Bounds::above_zero(1e6)),
    ("teacher.loose_share", bounds::SHARE),
    ("pgn.min_elo", Bounds::new(0.0, 1e6)),
    ("held_out", Bounds::new(2.0, 1e9)),
    ("passes", Bounds::above_zero(1000.0)),
    ("patience", bounds::SOME),
];

/// The settings, generic over the network's shape and the optimiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config<N, T> {
    pub source: Source,
    /// The most games to learn from.
    pub games: u64,
    /// Games per sealed file.
    pub chunk_games: u64,
    /// The share of a time budget for gathering games. It is rounded down to whole files, but at
    /// least one is gathered.
    pub gathering_share: f64,
    pub teacher: TeacherConfig,
    pub pgn: PgnConfig,
    /// The folder of the run to learn from.
    pub run: String,
    /// One in this many games is held out for validation.
    pub held_out: u64,
    pub network: N,
    /// Positions per batch.
    pub batch: usize,
    /// Batches per round.
    pub round_batches: u64,
    /// The learning rate, ramped over all passes.
    pub rate: Ramp,
    /// The most passes over all positions.
    pub passes: u64,
    /// Training stops after this many passes without improvement.
    pub patience: u64,
    /// The weight of a game's result in the value target; the rest is the teacher's value.
    pub result_weight: f64,
    pub trainer: T,
    pub saving: SavingConfig,
}

/// Where the games come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A teacher plays them.
    Teacher,
    /// PGN files.
    Pgn,
    /// The sealed games of another run.
    Run,
}

/// The settings for a sparse network.
pub type CloneConfig = Config<SparseConfig, TrainerConfig>;

impl Default for CloneConfig {
    fn default() -> CloneConfig {
        let teachers = ["stockfish:nodes=1000", "stockfish:nodes=3000", "stockfish:nodes=500"];
        CloneConfig {
            source: Source::Teacher,
            games: 12_000,
            chunk_games: 60,
            gathering_share: 0.85,
            teacher: TeacherConfig {
                players: teachers.map(str::to_owned).to_vec(),
                lines: 4,
                temperature: 40.0,
                opening_plies: 10,
                loose_share: 0.1,
                max_plies: 200,
            },
            pgn: PgnConfig::default(),
            run: String::new(),
            held_out: 20,
            network: SparseConfig::default(),
            batch: 2048,
            round_batches: 100,
            rate: Ramp::new(1.5e-3, 1e-4, 0.0, 1.0),
            passes: 8,
            patience: 3,
            result_weight: 0.3,
            trainer: TrainerConfig::default(),
            saving: SavingConfig { checkpoint_seconds: 30.0, keep_steps: 1000 },
        }
    }
}

impl CloneConfig {
    /// The names that [`CloneConfig::preset`] accepts.
    pub const PRESETS: [&str; 3] = ["default", "pgn", "tiny"];

    pub fn preset(name: &str) -> Option<CloneConfig> {
        match name {
            "default" => Some(CloneConfig::default()),
            "pgn" => Some(CloneConfig {
                source: Source::Pgn,
                games: 100_000,
                pgn: PgnConfig { files: vec!["games.pgn".to_owned()], ..PgnConfig::default() },
                ..CloneConfig::default()
            }),
            "tiny" => Some(CloneConfig::tiny()),
            _ => None,
        }
    }

    /// A run of a few seconds that learns almost nothing, from alpha-beta and greedy, for tests.
    pub fn tiny() -> CloneConfig {
        let default = CloneConfig::default();
        CloneConfig {
            games: 24,
            chunk_games: 8,
            teacher: TeacherConfig {
                players: vec!["alphabeta:nodes=100,hash=1".to_owned(), "greedy".to_owned()],
                lines: 2,
                max_plies: 30,
                ..default.teacher
            },
            held_out: 6,
            network: SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() },
            batch: 64,
            round_batches: 4,
            passes: 3,
            saving: SavingConfig { checkpoint_seconds: 0.0, keep_steps: 8 },
            ..default
        }
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_common()?;
        self.network.check().map_err(|error| ConfigError::Parse {
            file: "network".to_owned(),
            message: error.to_string(),
        })
    }
}

/// The settings for a residual network.
pub type ResidualCloneConfig = Config<residual::Config, TrainingConfig>;

impl ResidualCloneConfig {
    /// The names that [`ResidualCloneConfig::preset`] accepts.
    pub const PRESETS: [&str; 3] = CloneConfig::PRESETS;

    /// The preset for a sparse network, with a residual network instead.
    pub fn preset(name: &str) -> Option<ResidualCloneConfig> {
        let common = CloneConfig::preset(name)?;
        let is_tiny = name == "tiny";
        let small = residual::Config { value: ValueHead::Wdl, ..residual::Config::small() };
        let network =
            if is_tiny { residual::Config { blocks: 1, filters: 16, ..small } } else { small };
        let adam = Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
        let trainer = TrainingConfig { optimiser: adam, ..TrainingConfig::default() };
        let batch = if is_tiny { common.batch } else { 256 };
        let rate = Ramp::new(2e-3, 2e-4, 0.3, 1.0);
        Some(Config { batch, rate, ..common.with(network, trainer) })
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_common()?;
        self.network.check().map_err(|error| ConfigError::Parse {
            file: "network".to_owned(),
            message: error.to_string(),
        })
    }
}

impl<N, T> Config<N, T> {
    /// The same settings for another network.
    pub(super) fn with<M, U>(self, network: M, trainer: U) -> Config<M, U> {
        Config {
            source: self.source,
            games: self.games,
            chunk_games: self.chunk_games,
            gathering_share: self.gathering_share,
            teacher: self.teacher,
            pgn: self.pgn,
            run: self.run,
            held_out: self.held_out,
            network,
            batch: self.batch,
            round_batches: self.round_batches,
            rate: self.rate,
            passes: self.passes,
            patience: self.patience,
            result_weight: self.result_weight,
            trainer,
            saving: self.saving,
        }
    }

    /// Checks everything except the network's shape.
    pub fn check_common(&self) -> Result<(), ConfigError>
    where
        N: Serialize,
        T: Serialize,
    {
        bounds::check(self, BOUNDS)?;
        let wrong = |field, got: String, expected| ConfigError::Value { field, got, expected };
        if self.teacher.players.is_empty() {
            return Err(wrong("teacher.players", "empty".to_owned(), "at least one player"));
        }
        for player in &self.teacher.players {
            Registry::standard().parse(player).map_err(|_| {
                wrong("teacher.players", player.clone(), "players such as stockfish:nodes=2000")
            })?;
        }
        match self.source {
            Source::Pgn if self.pgn.files.is_empty() => {
                Err(wrong("pgn.files", "empty".to_owned(), "at least one file"))
            }
            Source::Run if self.run.is_empty() => {
                Err(wrong("run", "empty".to_owned(), "the folder of a run"))
            }
            _ => Ok(()),
        }
    }
}
