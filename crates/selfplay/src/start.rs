//! Where games of self-play start: random openings, random endgames, and positions of one ending.

use selfmate_chess::tablebase::{Material, position};
use selfmate_chess::{Chess, Color, Game, Position, Rng, Role, fen};
use serde::{Deserialize, Serialize};
use shakmaty::{Bitboard, CastlingMode, FromSetup, Piece, Setup, Square};

use crate::config::SelfPlayConfig;

/// Endings that have a learner of their own. White has the third piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Krk,
    Kqk,
    Kpk,
}

impl Ending {
    pub const ALL: [Ending; 3] = [Ending::Krk, Ending::Kqk, Ending::Kpk];

    pub const fn name(self) -> &'static str {
        match self {
            Ending::Krk => "krk",
            Ending::Kqk => "kqk",
            Ending::Kpk => "kpk",
        }
    }

    pub fn by_name(name: &str) -> Option<Ending> {
        Ending::ALL.into_iter().find(|ending| ending.name() == name)
    }

    /// White's king, Black's king, White's other piece.
    pub fn material(self) -> Material {
        self.name().parse().expect("the names are those of endings")
    }
}

/// The start of a game, with its random plies already played.
pub(crate) fn random_start(config: &SelfPlayConfig, rng: &mut Rng) -> Game {
    if let Some(ending) = config.ending {
        return loop {
            let turn = Color::from_white(rng.chance(0.5));
            let game = random_ending(&ending.material(), turn, rng).map(Game::from_position);
            if let Some(game) = game.filter(|game| game.outcome().is_none()) {
                break game;
            }
        };
    }
    if rng.chance(config.endgame_share) {
        return Game::from_position(random_endgame(config.endgame_pieces, rng));
    }
    loop {
        let is_long = rng.chance(config.long_opening_share);
        let most = if is_long { config.long_opening_plies } else { config.opening_plies };
        let plies = rng.below(most as usize + 1);
        let mut game = Game::new();
        for _ in 0..plies {
            let legal = game.legal_moves();
            let Some(&m) = rng.choose(&legal) else { break };
            game.play_unchecked(m);
        }
        if game.outcome().is_none() {
            return game;
        }
    }
}

/// The pieces of an ending on random squares; `None` when that is not a legal position.
pub fn random_ending(material: &Material, turn: Color, rng: &mut Rng) -> Option<Chess> {
    let pieces = material.pieces();
    let squares: Vec<Square> = pieces.iter().map(|_| Square::new(rng.below(64) as u32)).collect();
    let placed = position(pieces, &squares, turn)?;
    // Two pieces on one square leave fewer on the board.
    (placed.board().occupied().count() == pieces.len()).then_some(placed)
}

/// A position with both kings and up to `pieces` pieces, in which the game is not over.
fn random_endgame(pieces: usize, rng: &mut Rng) -> Chess {
    loop {
        let count = 3 + rng.below(pieces.max(3) - 2);
        let mut setup = Setup::empty();
        setup.turn = if rng.chance(0.5) { Color::White } else { Color::Black };
        for number in 0..count {
            let (color, role) = match number {
                0 => (Color::White, Role::King),
                1 => (Color::Black, Role::King),
                _ => {
                    let color = if rng.chance(0.5) { Color::White } else { Color::Black };
                    (color, PIECES[rng.below(PIECES.len())])
                }
            };
            let allowed = if role == Role::Pawn { !Bitboard::BACKRANKS } else { Bitboard::FULL };
            let free: Vec<Square> = (allowed & !setup.board.occupied()).into_iter().collect();
            let Some(&square) = rng.choose(&free) else { break };
            setup.board.set_piece_at(square, Piece { color, role });
        }
        // Adjacent kings, the side not to move in check, and so on.
        let Ok(position) = Chess::from_setup(setup, CastlingMode::Standard) else { continue };
        if Game::from_position(position.clone()).outcome().is_none() {
            return position;
        }
    }
}

/// Pawns are drawn as often as all other pieces together.
const PIECES: [Role; 8] = [
    Role::Pawn,
    Role::Pawn,
    Role::Pawn,
    Role::Pawn,
    Role::Knight,
    Role::Bishop,
    Role::Rook,
    Role::Queen,
];

/// `None` for the initial position.
pub fn start_fen(game: &Game) -> Option<String> {
    (*game.start() != Chess::default()).then(|| fen::to_fen(game.start()))
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn starts_are_legal_varied_and_not_over() {
        let mut config = SelfPlayConfig { endgame_share: 0.5, ..SelfPlayConfig::default() };
        let mut fens = std::collections::HashSet::new();
        for number in 0..400 {
            let game = random_start(&config, &mut Seed::new(1).index(number).rng());
            assert!(game.outcome().is_none());
            assert!(fen::parse_fen(&fen::to_fen(game.position())).is_ok());
            fens.insert(fen::to_fen(game.position()));
        }
        assert!(fens.len() > 350, "{}", fens.len());
        config.endgame_share = 1.0;
        config.endgame_pieces = 4;
        for number in 0..100 {
            let game = random_start(&config, &mut Seed::new(2).index(number).rng());
            assert!((3..=4).contains(&game.position().board().occupied().count()));
            assert!(start_fen(&game).is_some());
        }
        config.ending = Some(Ending::Kqk);
        let mut turns = [0; 2];
        for number in 0..200 {
            let game = random_start(&config, &mut Seed::new(3).index(number).rng());
            let board = game.position().board();
            assert!(board.occupied().count() == 3 && board.queens().count() == 1);
            assert!(game.outcome().is_none());
            turns[usize::from(game.turn().is_black())] += 1;
        }
        assert!(turns.iter().all(|count| *count > 60), "{turns:?}");
    }
}
