//! All tunable numbers of the alpha-beta engine, as a readable file.
//!
//! ```toml
//! [evaluation.bishop_pair]
//! mg = [23]
//! eg = [54]
//!
//! [search]
//! null_move_base = 4
//! ```
//!
//! Missing numbers have the engine's default values. A line `network = "FILE"` before the tables
//! makes the engine evaluate with a sparse network, so that the search can be tuned for it.

use std::io;
use std::path::{Path, PathBuf};

use selfmate_nn::sparse::{self, Network, NetworkStaticEvaluator};
use selfmate_search::alphabeta::{AlphaBeta, Settings, Weights};
use selfmate_search::memory::MemoryError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use selfmate_run::bounded_file;

/// The thousands of numbers with their names take about a hundredth of this.
const MAX_BYTES: u64 = 4 << 20;
/// The largest sparse network is far smaller.
const MAX_NETWORK: u64 = 64 << 20;

/// The tunable numbers of an alpha-beta engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tuning {
    /// Evaluates instead of `evaluation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFile>,
    pub evaluation: Weights,
    pub search: Settings,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Such as `piece_value.mg.knight` or `search.razor_margin`.
    pub name: String,
    pub min: i32,
    pub max: i32,
}

/// Why a file of weights cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TuningError {
    #[error("weights {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The content is invalid.
    #[error("weights {}: {message}", path.display())]
    Content { path: PathBuf, message: String },
}

impl Tuning {
    /// Piece values and piece-square tables only: the usual start for tuning.
    pub fn plain() -> Tuning {
        Tuning { evaluation: Weights::plain(), ..Tuning::default() }
    }

    /// The numbers for `plain`, `default` or the path of a file.
    pub fn named(text: &str) -> Result<Tuning, TuningError> {
        match text {
            "plain" => Ok(Tuning::plain()),
            "default" => Ok(Tuning::default()),
            file => Tuning::load(Path::new(file)),
        }
    }

    pub fn load(path: &Path) -> Result<Tuning, TuningError> {
        let failed = |error| TuningError::Io { path: path.to_owned(), error };
        let wrong = |message| TuningError::Content { path: path.to_owned(), message };
        // Devices are rejected: one may have no end, and an empty one would mean the defaults.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(wrong(
                "not a regular file: expected one written by evolve or tune".to_owned(),
            ));
        }
        let bytes = bounded_file::read(path, MAX_BYTES).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|error| failed(io::Error::other(error)))?;
        let tuning = Tuning::parse(&text).map_err(wrong)?;
        if text.parse::<toml::Table>().is_ok_and(|table| table.is_empty()) {
            return Err(wrong(
                "the file has no weights: expected [evaluation] or [search]".to_owned(),
            ));
        }
        Ok(tuning)
    }

    /// Parses the text of a file. The error describes the problem.
    pub fn parse(text: &str) -> Result<Tuning, String> {
        let tuning: Tuning = toml::from_str(text).map_err(|error| error.to_string())?;
        for (parameter, value) in Tuning::parameters().iter().zip(tuning.flat()) {
            if !(parameter.min..=parameter.max).contains(&value) {
                let Parameter { name, min, max } = parameter;
                return Err(format!("{name} is {value}: expected {min} to {max}"));
            }
        }
        Ok(tuning)
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("tables of plain numbers")
    }

    /// All parameters, in the order of [`Tuning::flat`].
    pub fn parameters() -> Vec<Parameter> {
        let weights = Weights::table().into_iter().map(|row| Parameter {
            name: row.name,
            min: row.min,
            max: row.max,
        });
        let settings = Settings::TABLE.iter().map(|row| Parameter {
            name: format!("search.{}", row.name),
            min: row.min,
            max: row.max,
        });
        weights.chain(settings).collect()
    }

    pub fn flat(&self) -> Vec<i32> {
        let mut flat = self.evaluation.flat();
        flat.extend(self.search.flat());
        flat
    }

    /// Mutable references in the order of [`Tuning::parameters`].
    pub fn flat_mut(&mut self) -> Vec<&mut i32> {
        let mut flat = self.evaluation.flat_mut();
        flat.extend(self.search.flat_mut());
        flat
    }

    /// An engine with these numbers. Fails if there is too little memory for its hash table.
    pub fn engine(&self, hash_mb: usize) -> Result<AlphaBeta, MemoryError> {
        let mut engine =
            AlphaBeta::with_settings(self.evaluation.clone(), self.search.clone(), hash_mb)?;
        if let Some(file) = &self.network {
            let scale = self.search.network_scale as f32;
            let evaluator = NetworkStaticEvaluator::with_scale(file.network.clone(), scale);
            engine.set_evaluator(Box::new(evaluator));
        }
        Ok(engine)
    }
}

/// A sparse network and the name of its file, which alone is serialised.
#[derive(Clone)]
pub struct NetworkFile {
    name: String,
    network: Network,
}

impl NetworkFile {
    pub fn load(name: &str) -> Result<NetworkFile, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("network {name}: {error}");
        let bytes = bounded_file::read(Path::new(name), MAX_NETWORK).map_err(|e| wrong(&e))?;
        let (weights, _) = sparse::decode(&bytes).map_err(|error| wrong(&error))?;
        Ok(NetworkFile { name: name.to_owned(), network: Network::new(&weights) })
    }
}

impl std::fmt::Debug for NetworkFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NetworkFile").field(&self.name).finish()
    }
}

impl PartialEq for NetworkFile {
    fn eq(&self, other: &NetworkFile) -> bool {
        self.name == other.name
    }
}

impl Eq for NetworkFile {}

impl Serialize for NetworkFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl<'de> Deserialize<'de> for NetworkFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NetworkFile, D::Error> {
        let name = String::deserialize(deserializer)?;
        NetworkFile::load(&name).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_round_trips_and_missing_numbers_have_defaults() {
        let mut tuning = Tuning::plain();
        tuning.search.razor_margin = 333;
        assert_eq!(Tuning::parse(&tuning.to_toml()).unwrap(), tuning);
        assert_eq!(Tuning::parse("").unwrap(), Tuning::default());
        let one = Tuning::parse("[evaluation.bishop_pair]\nmg = [1]\neg = [2]").unwrap();
        assert_eq!(one.evaluation.bishop_pair.eg, [2]);
        assert_eq!(one.evaluation.piece_value, Weights::default().piece_value);
    }

    #[test]
    fn errors_name_the_invalid_number() {
        let error = |text: &str| Tuning::parse(text).unwrap_err();
        assert!(error("[evaluation.bishop_pair]\nmg = [1]\neg = [2, 3]").contains("expected 1"));
        assert_eq!(
            error("[search]\nrazor_margin = 9000"),
            "search.razor_margin is 9000: expected 50 to 600"
        );
        assert!(error("[search]\nrazor = 1").contains("razor"));
        let missing = Tuning::load(Path::new("nowhere.toml")).unwrap_err().to_string();
        assert!(missing.starts_with("weights nowhere.toml: "), "{missing}");
    }

    #[test]
    fn a_network_evaluates_in_place_of_the_weights() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("random.safetensors");
        let config = sparse::SparseConfig { hidden: 64, ..sparse::SparseConfig::default() };
        let weights = sparse::Weights::random(config, selfmate_chess::Seed::new(1)).unwrap();
        let bytes = sparse::encode(&weights, sparse::WeightsInfo::default()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let file = path.to_str().unwrap();
        let text = |scale: i32| format!("network = {file:?}\n[search]\nnetwork_scale = {scale}");
        // A random network gives a queen no value, and its scores grow with the scale.
        let game = selfmate_chess::fen::parse_game("4k3/8/8/8/8/8/8/3QK3 w - - 0 1").unwrap();
        let [small, large] = [100, 1000].map(|scale| {
            let tuning = Tuning::parse(&text(scale)).unwrap();
            assert_eq!(Tuning::parse(&tuning.to_toml()).unwrap(), tuning);
            tuning.engine(1).unwrap().evaluate(&game)
        });
        assert!(small.abs() < 100 && (large - 10 * small).abs() <= 10, "{small} {large}");
        std::fs::write(&path, "no network").unwrap();
        let error = Tuning::parse(&text(100)).unwrap_err();
        assert!(error.contains(&format!("network {file}: ")), "{error}");
    }

    #[test]
    fn a_file_without_weights_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = |path: &Path| Tuning::load(path).unwrap_err().to_string();
        assert!(
            error(folder.path())
                .ends_with("not a regular file: expected one written by evolve or tune")
        );
        #[cfg(unix)]
        for device in ["/dev/null", "/dev/zero"] {
            assert!(
                error(Path::new(device))
                    .starts_with(&format!("weights {device}: not a regular file"))
            );
        }
        let path = folder.path().join("weights.toml");
        for text in ["", "\n", "# piece_value\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(
                error(&path).contains("the file has no weights: expected [evaluation]"),
                "{text}"
            );
        }
    }

    #[test]
    fn names_and_numbers_are_in_the_same_order() {
        let parameters = Tuning::parameters();
        let mut tuning = Tuning::default();
        assert_eq!(parameters.len(), tuning.flat().len());
        let place = parameters.iter().position(|p| p.name == "search.razor_margin").unwrap();
        *tuning.flat_mut()[place] = 77;
        assert_eq!(tuning.search.razor_margin, 77);
    }
}
