//! The value network as a player: one ply of look-ahead.

use std::sync::Arc;

use selfmate_arena::PlayerKind;
use selfmate_arena::registry::Build;
use selfmate_chess::{Game, Seed};
use selfmate_nn::valuenet::{BatchNetwork, Network};
use selfmate_search::player::{Limit, Score, SearchInfo, seed_of};
use selfmate_search::{Choice, Player, PlayerError, Wdl};

use super::game::{OnePly, best};

/// Plays the move with the lowest value for the opponent.
pub struct ValuePlayer {
    name: String,
    network: Arc<BatchNetwork>,
    seed: Seed,
    one_ply: OnePly,
}

impl ValuePlayer {
    pub fn new(name: &str, network: Arc<BatchNetwork>, seed: Seed) -> ValuePlayer {
        ValuePlayer {
            name: name.to_owned(),
            network,
            seed: seed.derive("value"),
            one_ply: OnePly::default(),
        }
    }
}

pub fn kind(name: &str, network: &Network) -> PlayerKind {
    let network = Arc::new(BatchNetwork::new(network));
    PlayerKind::new(name, "a value network, one ply ahead", move |options| {
        Ok(Box::new(ValuePlayer::new(&options.label(), Arc::clone(&network), options.seed)))
    })
}

/// For [`crate::table::Loader`].
pub(super) fn load(bytes: &[u8]) -> Result<Arc<Build>, String> {
    let (network, _) = Network::decode(bytes).map_err(|error| error.to_string())?;
    let network = Arc::new(BatchNetwork::new(&network));
    Ok(Arc::new(move |options| {
        Ok(Box::new(ValuePlayer::new(&options.label(), Arc::clone(&network), options.seed)))
    }))
}

impl Player for ValuePlayer {
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
        if legal.is_empty() {
            return Err(PlayerError::no_move(&self.name));
        }
        let values = self.one_ply.move_values(&self.network, &mut game.clone(), &legal);
        let index = best(&values, &mut seed_of(self.seed, game).rng());
        let value = values[index];
        Ok(Choice {
            wdl: Some(Wdl::new(value, 1.0 - value.abs())),
            score: Some(Score::from_value(value)),
            depth: Some(1),
            nodes: Some(legal.len() as u64),
            ..Choice::bare(legal[index])
        })
    }
}
