//! The table as a player: the best move, with ties broken at random. Moves that are not in the
//! table count as 0.

use std::sync::Arc;

use selfmate_arena::registry::Build;
use selfmate_chess::{Game, Seed};
use selfmate_search::player::{Limit, Score, SearchInfo, seed_of};
use selfmate_search::{Choice, Player, PlayerError, Wdl};

use super::episode::choose;
use super::state::State;
use super::table::Table;

/// Plays by a table. Its random choices depend only on the seed and the game so far.
pub struct TablePlayer {
    name: String,
    table: Arc<Table>,
    seed: Seed,
}

impl TablePlayer {
    pub fn new(name: &str, table: Arc<Table>, seed: Seed) -> TablePlayer {
        TablePlayer { name: name.to_owned(), table, seed: seed.derive("table") }
    }
}

/// For [`crate::table::Loader`].
pub(super) fn load(bytes: &[u8]) -> Result<Arc<Build>, String> {
    let table = Arc::new(Table::decode(bytes).map_err(|error| error.to_string())?);
    Ok(Arc::new(move |options| {
        Ok(Box::new(TablePlayer::new(&options.label(), Arc::clone(&table), options.seed)))
    }))
}

impl Player for TablePlayer {
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
        let pairs: Vec<u64> = State::of(game.position()).pairs(&legal).collect();
        let index = choose(&self.table, &pairs, &mut seed_of(self.seed, game).rng());
        let known = self.table.get(pairs[index]).map(|(value, _)| value);
        Ok(Choice {
            wdl: known.map(|value| Wdl::new(value, 1.0 - value.abs())),
            score: known.map(Score::from_value),
            ..Choice::bare(legal[index])
        })
    }
}
