//! The policy as a player: its most likely move, or one drawn by likelihood.

use std::sync::Arc;

use selfmate_arena::registry::Build;
use selfmate_arena::{PlayerKind, SpecError, SpecOptions};
use selfmate_chess::{Game, Seed};
use selfmate_nn::mlp::{Forward, Network};
use selfmate_search::player::{Limit, Score, SearchInfo, seed_of};
use selfmate_search::{Choice, Player, PlayerError, Wdl};

use super::game::sample;
use super::view::View;

/// Plays by a policy network. What it draws depends on the seed and on the game so far alone.
pub struct PolicyPlayer {
    name: String,
    network: Arc<Network>,
    temperature: f32,
    seed: Seed,
    view: View,
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
            view: View::default(),
            forward: Forward::default(),
        }
    }
}

/// A player with this network, drawing as the options say.
pub fn build(
    options: &SpecOptions<'_>,
    network: &Arc<Network>,
) -> Result<Box<dyn Player>, SpecError> {
    let temperature = options.decimal("temperature", 0.0..=100.0)?.unwrap_or(0.0);
    let network = Arc::clone(network);
    Ok(Box::new(PolicyPlayer::new(&options.label(), network, temperature, options.seed)))
}

/// A kind of player with this network.
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
        self.view.look(game.position(), &legal);
        if self.view.legal.is_empty() {
            // It may be asked about other promotions alone; then any of them.
            let any = legal.first().map(|&m| Choice::bare(m));
            return any.ok_or_else(|| PlayerError::no_move(&self.name));
        }
        self.network.forward(&self.view.features, &self.view.moves, &mut self.forward);
        let mut rng = seed_of(self.seed, game).rng();
        let place = sample(&self.forward.logits, self.temperature, &mut rng);
        let value = self.forward.value;
        Ok(Choice {
            wdl: Some(Wdl::new(value, 1.0 - value.abs())),
            score: Some(Score::from_value(value)),
            ..Choice::bare(self.view.legal[place])
        })
    }
}
