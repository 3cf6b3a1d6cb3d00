//! Trained players: `run:NAME`, and `default`, the network that ships with selfmate.

use std::num::IntErrorKind;
use std::path::Path;
use std::sync::Arc;

use selfmate_arena::players::{LoadedBook, net};
use selfmate_arena::resolved_player::content_hash;
use selfmate_arena::{
    Loaded, PlayerKind, PlayerSpec, PolyglotBook, Registry, SpecError, SpecOptions,
};
use selfmate_nn::Model;
use selfmate_nn::sparse::{self, Weights};
use selfmate_run::{Checkpoint, RunReader, SkippedCheckpoints};
use selfmate_train::MODEL;

use crate::table::{LEARNERS, LearnerInfo, Loader, SearchKind, learner};
use crate::tune::BOOK;

/// The network of a real run; see `nets/README.md`.
const SHIPPED: &[u8] = include_bytes!("../../../nets/zero.safetensors");

/// Called when a player uses an older checkpoint because newer ones are damaged; possibly more than
/// once for the same checkpoint.
pub type OnSkipped = dyn Fn(&SkippedCheckpoints) + Send + Sync;

/// Adds the trained players to a registry; `runs` is the folder of the runs.
pub fn register(registry: &mut Registry, runs: &Path, on_skipped: Arc<OnSkipped>) {
    let runs: Arc<Path> = runs.into();
    let run = "the newest player of a run, or the one of a step";
    let run = PlayerKind::loading("run", run, move |options| load(options, &runs, &*on_skipped));
    let run = net::declare(run.argument("NAME or NAME@STEP"));
    registry.register(run.option("blunder", "percent of moves that are random, for tuned weights"));
    let shipped = "the network that ships with selfmate";
    let shipped = PlayerKind::loading("default", shipped, |options| {
        Ok(net::loaded(options.spec.clone(), SHIPPED, shipped_model()))
    });
    registry.register(net::declare(shipped));
}

pub fn shipped_weights() -> Weights {
    let (weights, _) = sparse::decode(SHIPPED).expect("a test reads the shipped network");
    weights
}

fn shipped_model() -> Model {
    Model::Sparse(shipped_weights().into())
}

/// The network of a player's spec: `default`, `net:FILE`, `run:NAME@STEP` or just a run's name.
pub fn model(text: &str, runs: &Path, on_skipped: &OnSkipped) -> Result<Model, String> {
    match text.split_once(':') {
        Some(("net", file)) => {
            let loaded = Model::load(Path::new(file));
            loaded.map(|(model, _)| model).map_err(|error| error.to_string())
        }
        None if text == "default" => Ok(shipped_model()),
        run => {
            let argument = run.filter(|(kind, _)| *kind == "run").map_or(text, |(_, name)| name);
            let (_, checkpoint) = checkpoint_of_run(argument, runs, on_skipped)?;
            let bytes = checkpoint.files.get(MODEL);
            let bytes = bytes.ok_or_else(|| {
                format!("run '{argument}' has no network of zero, alphazero or clone")
            })?;
            Model::decode(bytes).map(|(model, _)| model).map_err(|error| error.to_string())
        }
    }
}

/// How a player chooses its moves. For runs it depends on the learner.
pub fn search_kind(registry: &Registry, spec: &PlayerSpec, runs: &Path) -> SearchKind {
    if spec.kind == "run" {
        return learner_of(spec, runs).map_or(SearchKind::NoTree, |info| info.search);
    }
    let kind = registry.kinds().iter().find(|kind| kind.name() == spec.kind);
    let has = |name| kind.is_some_and(|kind| kind.options().any(|(option, _)| option == name));
    match (has("search"), has("root")) {
        (true, _) => SearchKind::Either,
        (false, true) => SearchKind::Tree,
        (false, false) => SearchKind::NoTree,
    }
}

/// True if a player's network can run on devices other than the CPU.
pub fn has_device(spec: &PlayerSpec, runs: &Path) -> bool {
    match (spec.kind.as_str(), spec.argument.as_deref()) {
        ("run", _) => learner_of(spec, runs).is_some_and(|info| info.has_device),
        ("net", Some(file)) => {
            matches!(Model::load(Path::new(file)), Ok((Model::Residual(_), _)))
        }
        _ => false,
    }
}

/// The learner of a `run:` player.
fn learner_of(spec: &PlayerSpec, runs: &Path) -> Option<&'static LearnerInfo> {
    let name = spec.argument.as_deref()?;
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let run = RunReader::find(runs, name).ok()?;
    let config: toml::Table = run.config().ok()??.parse().ok()?;
    learner(config.get("learner")?.as_str()?)
}

/// Loads the player `NAME` or `NAME@STEP`; its spec then has the step. The file names in the
/// checkpoint decide which learner's format it has.
fn load(
    options: &SpecOptions<'_>,
    runs: &Path,
    on_skipped: &OnSkipped,
) -> Result<Loaded, SpecError> {
    let wrong = |reason: String| SpecError::Other { spec: options.label(), reason };
    let found = checkpoint_of_run(options.argument("NAME")?, runs, on_skipped);
    let (name, checkpoint) = found.map_err(wrong)?;
    let spec = PlayerSpec { argument: Some(name), ..options.spec.clone() };
    let formats = LEARNERS.iter().map(|info| info.player);
    let mut present =
        formats.filter_map(|format| Some((checkpoint.files.get(format.file)?, format.load)));
    let (bytes, loader) =
        present.next().ok_or_else(|| wrong("the run has no player yet".to_owned()))?;
    match loader {
        Loader::Own { options: known, load } => {
            check_options(options, known)?;
            let (build, identity) = (load(bytes).map_err(wrong)?, content_hash(bytes));
            // The book of a young run is empty, which is no Polyglot file.
            let book = checkpoint.files.get(BOOK).filter(|bytes| !bytes.is_empty());
            let book = book.map(|bytes| PolyglotBook::parse(bytes)).transpose().map_err(wrong)?;
            let book = book.map(LoadedBook::new);
            Ok(Loaded { spec, identity, build, network: None, book })
        }
        Loader::Network => {
            if let Some(value) = options.spec.option("blunder") {
                return Err(options.bad(
                    "blunder",
                    value,
                    "no such option for this run, only for those of evolve and tune",
                ));
            }
            let (model, _) = Model::decode(bytes).map_err(|error| wrong(error.to_string()))?;
            Ok(net::loaded(spec, bytes, model))
        }
    }
}

/// Options that chess programs offer to every player, even if it ignores them.
const OFFERED: [&str; 6] = ["book", "threads", "memory", "syzygy", "syzygy_pieces", "syzygy_50"];

/// An error for an option that the player does not have.
fn check_options(options: &SpecOptions<'_>, known: &[&str]) -> Result<(), SpecError> {
    let is_known = |name: &str| OFFERED.contains(&name) || known.contains(&name);
    match options.spec.options.iter().find(|(name, _)| !is_known(name)) {
        Some((name, value)) => {
            let expected =
                if known.is_empty() { "no options".to_owned() } else { known.join(", ") };
            Err(options.bad(name, value, &format!("{expected} for this run")))
        }
        None => Ok(()),
    }
}

/// The checkpoint `NAME` or `NAME@STEP`, with its name in the second form.
fn checkpoint_of_run(
    argument: &str,
    runs: &Path,
    on_skipped: &OnSkipped,
) -> Result<(String, Checkpoint), String> {
    let (name, step) = match argument.split_once('@') {
        None => (argument, None),
        Some((name, step)) => {
            let parsed = step.parse::<u64>();
            let expected = match &parsed {
                Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
                    format!("a number of at most {}", u64::MAX)
                }
                _ => "a number".to_owned(),
            };
            let message = format!("'{step}' is no step: expected {expected}, as in {name}@1000");
            (name, Some(parsed.map_err(|_| message)?))
        }
    };
    let run = RunReader::find(runs, name).map_err(|error| error.to_string())?;
    let checkpoint = match step {
        Some(step) => Some(run.load_checkpoint(step).map_err(|error| error.to_string())?),
        None => {
            let latest = run.latest_checkpoint(&[]).map_err(|error| error.to_string())?;
            if let Some(skipped) = latest.skipped_checkpoints() {
                on_skipped(&skipped);
            }
            if let (None, Some(damage)) = (&latest.checkpoint, latest.damages.first()) {
                return Err(format!("run '{name}' has no undamaged checkpoint: {damage}"));
            }
            latest.checkpoint
        }
    };
    let checkpoint = checkpoint.ok_or_else(|| format!("run '{name}' has no checkpoint yet"))?;
    Ok((format!("{name}@{}", checkpoint.step), checkpoint))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use selfmate_arena::adjudicate::Adjudication;
    use selfmate_arena::{GameSettings, MatchConfig, MatchEvent, MatchRun, run_match};
    use selfmate_chess::{Game, Seed};
    use selfmate_nn::sparse::{SparseConfig, WeightsInfo};
    use selfmate_run::Run;
    use selfmate_search::player::Limit;

    use super::*;

    fn save(run: &mut Run, step: u64) {
        let config = SparseConfig { hidden: 64, ..SparseConfig::default() };
        let weights = Weights::random(config, Seed::new(step)).unwrap();
        let model = sparse::encode_for_play(&weights, WeightsInfo { step }).unwrap();
        run.save_checkpoint(step, &[(MODEL, &model)]).unwrap();
    }

    #[test]
    fn a_match_keeps_its_checkpoint_while_the_run_continues() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        let mut run = Run::open(&runs.join("tonight")).unwrap();
        run.write_config("").unwrap();
        save(&mut run, 1);
        let mut registry = Registry::standard();
        register(&mut registry, &runs, Arc::new(|_| {}));
        let adjudication = Adjudication { max_plies: Some(20), ..Adjudication::default() };
        let settings = GameSettings { adjudication, ..GameSettings::default() };
        let mut config =
            MatchConfig { settings, ..MatchConfig::new("run:tonight,depth=1", "random", 4) };
        let store = Some(folder.path().join("match.jsonl"));
        let kept = MatchRun { store, ..MatchRun::default() };
        let report = run_match(&config, &kept, &registry, &mut |event| {
            if let MatchEvent::Finished { report, .. } = event {
                save(&mut run, 1 + report.games);
            }
        });
        assert_eq!(report.unwrap().a, "run:tonight@1,depth=1");
        config.games = 6;
        let report = run_match(&config, &kept, &registry, &mut |_| {}).unwrap();
        assert_eq!((report.a.as_str(), report.games), ("run:tonight@1,depth=1", 6));
        let fresh = run_match(&config, &MatchRun::default(), &registry, &mut |_| {}).unwrap();
        assert_eq!(fresh.a, "run:tonight@5,depth=1");
        run.remove_checkpoint(1).unwrap();
        config.games = 8;
        let error = run_match(&config, &kept, &registry, &mut |_| {}).unwrap_err().to_string();
        assert!(
            error.contains("was started with 'run:tonight@1,depth=1', which no longer exists: "),
            "{error}"
        );
        assert!(error.contains("no checkpoint of step 1: there are 2, 3, 4, 5"), "{error}");
    }

    #[test]
    fn an_older_checkpoint_in_place_of_a_damaged_one_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        let mut run = Run::open(&runs.join("tonight")).unwrap();
        run.write_config("").unwrap();
        save(&mut run, 1);
        save(&mut run, 2);
        let newest = runs.join("tonight/checkpoints/2").join(MODEL);
        let reported: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&reported);
        let report =
            move |passed: &SkippedCheckpoints| sink.lock().unwrap().push(passed.to_string());
        let mut registry = Registry::standard();
        register(&mut registry, &runs, Arc::new(report.clone()));
        let pin = |text: &str| registry.resolve(text).unwrap().name().to_owned();
        assert_eq!(pin("run:tonight"), "run:tonight@2");
        assert!(reported.lock().unwrap().is_empty());
        std::fs::write(&newest, "damaged").unwrap();
        assert_eq!(pin("run:tonight"), "run:tonight@1");
        model("tonight", &runs, &report).unwrap();
        // A checkpoint that was requested by its step is not reported.
        assert_eq!(pin("run:tonight@1"), "run:tonight@1");
        let reported = reported.lock().unwrap();
        assert_eq!(reported.len(), 2, "{reported:?}");
        let path = newest.display().to_string();
        assert!(reported.iter().all(|text| text.starts_with(&path)), "{reported:?}");
        assert!(
            reported.iter().all(|text| text.ends_with("step 1 is used instead")),
            "{reported:?}"
        );
    }

    #[test]
    fn the_shipped_network_plays() {
        let mut registry = Registry::standard();
        register(&mut registry, Path::new("nowhere"), Arc::new(|_| {}));
        for text in ["default:depth=4", "default:sims=100"] {
            let spec = registry.parse(text).unwrap();
            let mut player = registry.build(&spec, Seed::new(1)).unwrap();
            let mut game = Game::new();
            let choice = player.choose(&game, &Limit::default()).unwrap();
            game.play(choice.played).unwrap();
        }
        assert_eq!(shipped_weights().config().hidden, 256);
    }
}
