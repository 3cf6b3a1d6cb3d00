//! How much memory settings ask for: an estimate, so that what cannot fit is refused before a run is
//! made. What a search or a table really takes is asked for with `selfmate_search::memory`.

use selfmate_nn::residual;

use super::{ConfigError, Settings};
use crate::selfplay::SelfPlayConfig;

/// Bytes that a position takes where it is learned from, measured generously.
const SPARSE_SAMPLE_BYTES: u64 = 512;
const RESIDUAL_SAMPLE_BYTES: u64 = 256;
const TEXEL_POSITION_BYTES: u64 = 2048;
const REPLAY_POSITION_BYTES: u64 = 208;
/// Positions that runs of endings come to in hours.
const ENDGAME_POSITIONS: usize = 1_000_000;

impl Settings {
    /// The megabytes that the settings ask for at once on so many threads, and which setting asks for
    /// most of them: trees, tables, and what is kept to learn from.
    pub fn memory_mb(&self, threads: usize) -> (&'static str, u64) {
        let megabytes = |bytes: u64| bytes.div_ceil(1 << 20);
        let threads = threads.max(1) as u64;
        let selfplay =
            |play: &SelfPlayConfig| ("selfplay.memory_mb", play.trees_mb(threads as usize) as u64);
        let parts = match self {
            Settings::Zero(config) => {
                let window = config.window_positions().saturating_mul(SPARSE_SAMPLE_BYTES);
                vec![selfplay(&config.selfplay), ("learning.window", megabytes(window))]
            }
            Settings::AlphaZero(config) => {
                let batch = config.learning.batch as u64 * residual_bytes(&config.network);
                let window = config.window_positions().saturating_mul(RESIDUAL_SAMPLE_BYTES);
                vec![
                    selfplay(&config.selfplay),
                    ("learning.batch", megabytes(batch)),
                    ("learning.window", megabytes(window)),
                ]
            }
            Settings::CloneResidual(config) => {
                vec![("batch", megabytes(config.batch as u64 * residual_bytes(&config.network)))]
            }
            // A checkpoint is a second copy.
            Settings::QLearn(config) => {
                vec![("table_mb", 2 * config.table_mb.next_power_of_two() as u64)]
            }
            Settings::Evolve(config) => {
                vec![("games.hash_mb", 2 * threads * config.games.hash_mb as u64)]
            }
            Settings::Tune(config) => vec![
                ("games.hash_mb", 2 * threads * config.games.hash_mb as u64),
                (
                    "texel.positions",
                    megabytes(config.texel.positions as u64 * TEXEL_POSITION_BYTES),
                ),
            ],
            Settings::Value(config) => {
                vec![("replay", megabytes(config.replay as u64 * REPLAY_POSITION_BYTES))]
            }
            Settings::Endgame(config) => {
                let cached = config.search.transpositions as u64 * SPARSE_SAMPLE_BYTES;
                let most = config.replay.most.min(config.replay.least.max(ENDGAME_POSITIONS));
                vec![
                    ("search.transpositions", threads * megabytes(cached)),
                    ("replay.least", megabytes(most as u64 * SPARSE_SAMPLE_BYTES)),
                ]
            }
            Settings::Clone(_) | Settings::Reinforce(_) => Vec::new(),
        };
        let total = parts.iter().fold(0, |sum: u64, (_, part)| sum.saturating_add(*part));
        let largest = parts.into_iter().max_by_key(|(_, part)| *part);
        (largest.map_or("threads", |(name, _)| name), total)
    }

    /// Refuses settings that ask for more than there is.
    pub fn check_memory(&self, threads: usize, limit_mb: u64) -> Result<(), ConfigError> {
        let (setting, needed_mb) = self.memory_mb(threads);
        if needed_mb > limit_mb {
            return Err(ConfigError::Memory { setting, needed_mb, limit_mb, threads });
        }
        Ok(())
    }
}

/// Bytes that a position of a batch takes in training: its planes, and the activations of every
/// layer.
fn residual_bytes(network: &residual::Config) -> u64 {
    let activations = network.filters * (2 * network.blocks + 2);
    (64 * 4 * (network.planes + activations)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_there_is_is_refused_and_the_setting_named() {
        const GIGABYTES: u64 = 1024;
        for learner in Settings::LEARNERS {
            let settings = Settings::preset(learner, "default").unwrap();
            settings.check_memory(4, 8 * GIGABYTES).unwrap();
        }
        let paper = Settings::preset("alphazero", "paper").unwrap();
        paper.check_memory(9, 24 * GIGABYTES).unwrap();
        // The window of a run that is planned for few games is a small one.
        let small = Settings::preset("zero", "default").unwrap();
        let small = small.set(&["plan_games=1000".to_owned()]).unwrap();
        small.check_memory(4, GIGABYTES).unwrap();
        let greedy = [
            ("zero", "selfplay.memory_mb"),
            ("zero", "selfplay.games_at_once"),
            ("zero", "learning.window"),
            ("alphazero", "learning.batch"),
            ("clone-residual", "batch"),
            ("qlearn", "table_mb"),
            ("tune", "games.hash_mb"),
            ("tune", "texel.positions"),
            ("value", "replay"),
            ("krk", "search.transpositions"),
            ("krk", "replay.least"),
        ];
        for (learner, name) in greedy {
            let most = match name {
                "selfplay.games_at_once" => "4096",
                "learning.batch" | "batch" => "65536",
                "selfplay.memory_mb" | "table_mb" | "games.hash_mb" => "16384",
                _ => "100000000",
            };
            let mut given = vec![format!("{name}={most}")];
            if name == "learning.window" {
                given.push("plan_games=1000000000".to_owned());
            }
            if name == "replay" {
                given = vec!["replay=1000000000".to_owned()];
            }
            if name == "replay.least" {
                given.push("replay.most=100000000".to_owned());
            }
            let settings = Settings::preset(learner, "default").unwrap().set(&given).unwrap();
            settings.check().unwrap();
            let error = settings.check_memory(2, 4 * GIGABYTES).unwrap_err().to_string();
            let blamed = name.replace("games_at_once", "memory_mb");
            assert!(error.contains(&format!("most of it for {blamed}: ")), "{name}: {error}");
        }
    }
}
