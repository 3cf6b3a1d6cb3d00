//! A trained network as a player, in tree search or in alpha-beta.
//!
//! In Monte Carlo tree search the network gives values and priors. In alpha-beta the value of a
//! sparse network replaces the hand-written evaluation. Alpha-beta is much stronger at equal time,
//! so it is the default for sparse networks. A residual network is too slow for alpha-beta and
//! always uses tree search.

use std::path::Path;
use std::sync::Arc;

use selfmate_nn::device::evaluators;
use selfmate_nn::sparse::{Network, NetworkStaticEvaluator, WeightsError};
use selfmate_nn::{Device, Model, conv, mlp};
use selfmate_search::alphabeta::{self, AlphaBeta};
use selfmate_search::mcts::{
    Expansion, FirstPlayUrgency, Gumbel, InteriorRule, Puct, RootRule, SearchParams,
};
use selfmate_search::{Evaluator, Player};

use super::{AlphaBetaPlayer, MctsOptions};
use crate::limit;
use crate::registry::PlayerKind;
use crate::resolved_player::{Loaded, content_hash};
use crate::spec::{PlayerSpec, SpecError, SpecOptions};
use crate::tablebase_cache;
use selfmate_run::bounded_file;

/// Options of tree search only, and options of alpha-beta only.
const ONLY_MCTS: [&str; 5] = ["sims", "root", "c_puct", "policy_temperature", "temperature"];
const ONLY_ALPHABETA: [&str; 3] = ["depth", "nodes", "scale"];

/// The largest weight file that is read.
const MAX_NETWORK: u64 = 1 << 30;

/// The kind of specs such as `net:FILE,search=alphabeta`.
pub(super) fn kind() -> PlayerKind {
    let kind = PlayerKind::loading("net", "a network from its weight file", |options| {
        let path = Path::new(options.argument("FILE")?);
        let other = |error: WeightsError| SpecError::Other {
            spec: options.label(),
            reason: error.to_string(),
        };
        let bytes = bounded_file::read(path, MAX_NETWORK)
            .map_err(|source| other(WeightsError::Io { path: path.to_owned(), source }))?;
        let (model, _) = Model::decode(&bytes).map_err(|error| {
            other(WeightsError::File { path: path.to_owned(), source: Box::new(error) })
        })?;
        Ok(loaded(options.spec.clone(), &bytes, model))
    });
    declare(kind.argument("FILE"))
}

/// The player of `spec`, with a network decoded from `bytes`.
pub fn loaded(spec: PlayerSpec, bytes: &[u8], model: Model) -> Loaded {
    Loaded {
        spec,
        identity: content_hash(bytes),
        build: Arc::new(move |options| build(options, &model)),
        book: None,
        network: Some(bytes.into()),
    }
}

/// Adds the options of [`build`] to a kind.
#[must_use]
pub fn declare(kind: PlayerKind) -> PlayerKind {
    MctsOptions::declare(kind.option(
        "search",
        "alphabeta, or mcts as in self-play (default: alphabeta, or mcts if sims, root… are given)",
    ))
    .option("device", "cpu, or a device of Burn, for residual networks (cpu)")
    .option("depth", "plies of search, for alphabeta (6)")
    .option("nodes", "nodes for each move, for alphabeta")
    .option("scale", "centipawns for each unit of log odds, for alphabeta (370)")
}

/// A player with this network and the search that the options choose. `memory` is the size of the
/// tree (default 256 MB) or of alpha-beta's hash table (default 16 MB).
pub fn build(options: &SpecOptions<'_>, model: &Model) -> Result<Box<dyn Player>, SpecError> {
    let wants_mcts = ONLY_MCTS.iter().any(|name| options.spec.option(name).is_some());
    let search = options.choice("search", &["mcts", "alphabeta"])?;
    let device = match options.spec.option("device") {
        None => None,
        Some(text) if !matches!(model, Model::Residual(_)) => {
            return Err(options.bad("device", text, "it only for residual networks"));
        }
        Some(text) => Some(
            text.parse::<Device>()
                .map_err(|error| options.bad("device", text, &error.to_string()))?,
        ),
    };
    match model {
        Model::Sparse(weights) => {
            let network = Network::new(weights);
            if search.map_or(!wants_mcts, |chosen| chosen == 1) {
                return alphabeta(options, network);
            }
            let make = move |_| Box::new(network.clone()) as Box<dyn Evaluator>;
            mcts(options, Expansion::SecondVisit, make)
        }
        Model::Residual(weights) => {
            if search == Some(1) {
                let expected = "mcts, because a residual network is too slow for alpha-beta";
                return Err(options.bad("search", "alphabeta", expected));
            }
            let device = device.unwrap_or(Device::Cpu);
            let evaluators = evaluators(weights, device)
                .map_err(|error| options.bad("device", &device.to_string(), &error.to_string()))?;
            mcts(options, Expansion::FirstVisit, move |_| evaluators())
        }
        Model::Mlp(network) => {
            let network = Arc::clone(network);
            ending(options, search, move |_| {
                Box::new(mlp::NetworkEvaluator::new(Arc::clone(&network))) as Box<dyn Evaluator>
            })
        }
        Model::Conv(network) => {
            let network = Arc::clone(network);
            ending(options, search, move |_| {
                Box::new(conv::NetworkEvaluator::new(Arc::clone(&network))) as Box<dyn Evaluator>
            })
        }
    }
}

/// A player with the network of an ending.
fn ending(
    options: &SpecOptions<'_>,
    search: Option<usize>,
    make: impl Fn(usize) -> Box<dyn Evaluator> + Send + 'static,
) -> Result<Box<dyn Player>, SpecError> {
    if search == Some(1) {
        let expected = "mcts, as the network of an ending has no alpha-beta";
        return Err(options.bad("search", "alphabeta", expected));
    }
    reject(options, &ONLY_ALPHABETA, "search=alphabeta")?;
    let settings = MctsOptions::read(options, ending_params())?;
    Ok(Box::new(settings.player(&options.label(), options.seed, make)?))
}

/// The search of the endgame learners, without noise. The discount makes a nearer mate better.
fn ending_params() -> SearchParams {
    let gumbel = Gumbel { candidates: 16, c_scale: 0.2, noise: 0.0, ..Gumbel::default() };
    SearchParams {
        root: RootRule::Gumbel(gumbel),
        interior: InteriorRule::Puct(Puct {
            c_puct: 1.5,
            first_play_urgency: FirstPlayUrgency::Reduced(0.2),
            ..Puct::default()
        }),
        expansion: Expansion::FirstVisit,
        discount: 0.98,
        memory_mb: 16,
        ..SearchParams::default()
    }
}

fn alphabeta(options: &SpecOptions<'_>, network: Network) -> Result<Box<dyn Player>, SpecError> {
    reject(options, &ONLY_MCTS, "search=mcts")?;
    let memory = options.number("memory", 1..=1 << 20)?.unwrap_or(16);
    let no_memory = |error| SpecError::memory(&options.label(), error);
    let mut search =
        AlphaBeta::new(alphabeta::Weights::default(), memory as usize).map_err(no_memory)?;
    let evaluator = match options.decimal("scale", 1.0..=10_000.0)? {
        Some(scale) => NetworkStaticEvaluator::with_scale(network, scale),
        None => NetworkStaticEvaluator::new(network),
    };
    search.set_evaluator(Box::new(evaluator));
    let threads = options.number("threads", 1..=256)?.unwrap_or(1) as usize;
    search.set_threads(threads).map_err(no_memory)?;
    search.set_tables(tablebase_cache::read(options)?);
    let own = limit::from_options(options)?;
    Ok(Box::new(AlphaBetaPlayer::new(&options.label(), search, own)))
}

fn mcts(
    options: &SpecOptions<'_>,
    expansion: Expansion,
    make: impl FnMut(usize) -> Box<dyn Evaluator> + Send + 'static,
) -> Result<Box<dyn Player>, SpecError> {
    reject(options, &ONLY_ALPHABETA, "search=alphabeta")?;
    let params = SearchParams { expansion, ..SearchParams::default() };
    let settings = MctsOptions::read(options, params)?;
    Ok(Box::new(settings.player(&options.label(), options.seed, make)?))
}

/// Rejects options that the chosen search does not have.
fn reject(options: &SpecOptions<'_>, names: &[&str], search: &str) -> Result<(), SpecError> {
    let found = names.iter().find_map(|name| Some((name, options.spec.option(name)?)));
    match found {
        Some((name, value)) => Err(options.bad(name, value, &format!("it together with {search}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Seed, fen, notation};
    use selfmate_nn::sparse::{self, SparseConfig, Weights, WeightsInfo};
    use selfmate_search::player::{Limit, Score};

    use super::*;
    use crate::registry::Registry;

    fn file(folder: &tempfile::TempDir) -> String {
        let config = SparseConfig { hidden: 64, ..SparseConfig::default() };
        let weights = Weights::random(config, Seed::new(1)).unwrap();
        let path = folder.path().join("random.safetensors");
        std::fs::write(&path, sparse::encode(&weights, WeightsInfo::default()).unwrap()).unwrap();
        path.display().to_string()
    }

    fn player(text: &str) -> Result<Box<dyn Player>, SpecError> {
        let registry = Registry::standard();
        registry.build(&registry.parse(text)?, Seed::new(1))
    }

    #[test]
    fn both_searches_find_a_mate_with_a_random_network() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder);
        let game = fen::parse_game("6rk/6pp/8/6N1/8/8/8/K7 w - - 0 1").unwrap();
        for options in [
            "sims=200",
            "sims=64,root=gumbel,memory=1",
            "search=mcts,threads=2,sims=200",
            "depth=2",
            "search=alphabeta",
            "search=alphabeta,depth=3,memory=1,threads=2",
            "search=alphabeta,nodes=2000",
        ] {
            let text = format!("net:{file},{options}");
            let mut player = player(&text).unwrap();
            assert_eq!(player.name(), text);
            let choice = player.choose(&game, &Limit::default()).unwrap();
            assert_eq!(notation::san(game.position(), choice.played), "Nf7#", "{text}");
            assert_eq!(choice.score, Some(Score::Mate(1)), "{text}");
        }
    }

    #[test]
    fn alphabeta_uses_the_network_instead_of_the_hand_written_evaluation() {
        let folder = tempfile::tempdir().unwrap();
        let mut player = player(&format!("net:{},search=alphabeta", file(&folder))).unwrap();
        // A random network gives a queen no value.
        let game = fen::parse_game("4k3/8/8/8/8/8/8/3QK3 w - - 0 1").unwrap();
        let choice = player.choose(&game, &Limit::depth(1)).unwrap();
        assert!(matches!(choice.score, Some(Score::Centipawns(-300..=300))), "{choice:?}");
    }

    #[test]
    fn errors_name_bad_files_and_options() {
        let folder = tempfile::tempdir().unwrap();
        let good = file(&folder);
        let cut = folder.path().join("cut.safetensors");
        let bytes = std::fs::read(&good).unwrap();
        std::fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
        let message = |text: String| player(&text).err().map(|error| error.to_string()).unwrap();
        let contains = |text: String, parts: &[&str]| {
            let message = message(text);
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        };
        contains("net:nowhere.safetensors".into(), &["nowhere.safetensors: ", "No such file"]);
        contains(format!("net:{}", cut.display()), &["cut.safetensors: not a whole safetensors"]);
        assert_eq!(message("net".into()), "player 'net': expected net:FILE");
        contains(format!("net:{good},search=best"), &["option search: expected mcts or alphabeta"]);
        contains(
            format!("net:{good},sims=50,depth=3"),
            &["option depth: expected it together with search=alphabeta, got '3'"],
        );
        contains(
            format!("net:{good},search=alphabeta,sims=3"),
            &["option sims: expected it together with search=mcts, got '3'"],
        );
    }
}
