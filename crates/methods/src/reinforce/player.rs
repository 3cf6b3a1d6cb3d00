//! The policy as a player: its most likely move, or one drawn by likelihood.

use std::sync::Arc;

use selfmate_arena::registry::Build;
use selfmate_arena::{PlayerKind, SpecError, SpecOptions};
use selfmate_chess::{Game, Seed};
use selfmate_nn::mlp::{Forward, Network};
use selfmate_search::player::{Limit, Score, SearchInfo, seed_of};
use selfmate_search::{Choice, Player, PlayerError, Wdl};

use super::game::sample;
use super::input::PolicyInput;

/// Plays moves of a policy network. Its random choices depend only on the seed and the game so far.
pub struct PolicyPlayer {
    name: String,
    network: Arc<Network>,
    temperature: f32,
    seed: Seed,
    input: PolicyInput,
    forward: Forward,
}

impl PolicyPlayer {
    /// A player that draws moves at a temperature; 0 for the most likely move.
    pub fn new(name: &str, network: Arc<Network>, temperature: f32, seed: Seed) -> PolicyPlayer {
        PolicyPlayer {
            name: name.to_owned(),
            network,
            temperature,
            seed: seed.derive("policy"),
            input: PolicyInput::default(),
            forward: Forward::default(),
        }
    }
}

pub fn build(
    options: &SpecOptions<'_>,
    network: &Arc<Network>,
) -> Result<Box<dyn Player>, SpecError> {
    let temperature = options.decimal("temperature", 0.0..=100.0)?.unwrap_or(0.0);
    let network = Arc::clone(network);
    Ok(Box::new(PolicyPlayer::new(&options.label(), network, temperature, options.seed)))
}

pub fn kind(name: &str, network: Arc<Network>) -> PlayerKind {
    PlayerKind::new(name, "a policy network", move |options| build(options, &network))
        .option("temperature", "0 for the most likely move (0)")
}

/// For [`crate::table::Loader`].
pub(super) fn load(bytes: &[u8]) -> Result<Arc<Build>, String> {
    let (network, _) = Network::decode(bytes).map_err(|error| error.to_string())?;
    let network = Arc::new(network);
    Ok(Arc::new(move |options| build(options, &network)))
}

impl Player for PolicyPlayer {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        _: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError> {
        let legal = limit.candidates(game);
        self.input.encode(game.position(), &legal);
        if self.input.legal.is_empty() {
            // The limit may allow underpromotions only, which the policy cannot express.
            let any = legal.first().map(|&m| Choice::bare(m));
            return any.ok_or_else(|| PlayerError::no_move(&self.name));
        }
        self.network.forward(&self.input.features, &self.input.moves, &mut self.forward);
        let mut rng = seed_of(self.seed, game).rng();
        let index = sample(&self.forward.logits, self.temperature, &mut rng);
        let value = self.forward.value;
        Ok(Choice {
            wdl: Some(Wdl::new(value, 1.0 - value.abs())),
            score: Some(Score::from_value(value)),
            ..Choice::bare(self.input.legal[index])
        })
    }
}
