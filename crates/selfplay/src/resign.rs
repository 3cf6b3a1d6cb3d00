//! When a game of self-play is resigned.

use selfmate_chess::Color;
use selfmate_run::GameRecord;

use crate::config::SelfPlayConfig;

/// Counts the plies in a row at which the searches of both sides were sure of the same winner.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResignCounter {
    favourite: Option<Color>,
    plies: u32,
}

impl ResignCounter {
    /// Adds the value of the next search for the side to move; the winner, once enough searches
    /// in a row agree.
    pub fn add(&mut self, value: f32, turn: Color, config: &SelfPlayConfig) -> Option<Color> {
        let bound = config.resign_value as f32;
        let favourite = match value {
            v if v >= bound => Some(turn),
            v if v <= -bound => Some(!turn),
            _ => None,
        };
        self.plies =
            if favourite.is_some() && favourite == self.favourite { self.plies + 1 } else { 1 };
        self.favourite = favourite;
        favourite.filter(|_| self.plies >= config.resign_plies)
    }
}

/// The side for which a game that was played out would have been resigned.
pub(crate) fn would_resign(record: &GameRecord, config: &SelfPlayConfig) -> Option<Color> {
    let mut counter = ResignCounter::default();
    record.positions.iter().find_map(|position| {
        counter.add(position.value, record.turn(usize::from(position.ply)), config)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_game_is_resigned_after_enough_certain_plies_in_a_row() {
        let config = SelfPlayConfig { resign_plies: 3, ..SelfPlayConfig::default() };
        let mut counter = ResignCounter::default();
        let mut add = |value, turn| counter.add(value, turn, &config);
        assert_eq!(add(0.95, Color::White), None);
        assert_eq!(add(-0.95, Color::Black), None);
        assert_eq!(add(0.5, Color::White), None);
        assert_eq!(add(-0.95, Color::Black), None);
        assert_eq!(add(0.95, Color::White), None);
        assert_eq!(add(-0.95, Color::Black), Some(Color::White));
        assert_eq!(add(0.95, Color::Black), None, "both sides must agree");
    }
}
