//! Where games of self-play start: random openings, and endgames made of random pieces.

use selfmate_chess::{Chess, Color, Game, Rng, Role, fen};
use shakmaty::{Bitboard, CastlingMode, FromSetup, Piece, Setup, Square};

use super::config::SelfPlayConfig;

/// The start of a game, with the moves already played at random.
pub fn random_start(config: &SelfPlayConfig, rng: &mut Rng) -> Game {
    if rng.chance(config.endgame_share) {
        return Game::from_position(random_endgame(config.endgame_pieces, rng));
    }
    loop {
        let is_wild = rng.chance(config.wild_share);
        let most = if is_wild { config.wild_plies } else { config.opening_plies };
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
        // Kings side by side, the wrong side in check and the like.
        let Ok(position) = Chess::from_setup(setup, CastlingMode::Standard) else { continue };
        if Game::from_position(position.clone()).outcome().is_none() {
            return position;
        }
    }
}

/// What pieces are drawn from: pawns as often as all pieces other than pawns and kings together.
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

/// The start position in words, unless it is the usual one.
pub fn start_fen(game: &Game) -> Option<String> {
    (*game.start() != Chess::default()).then(|| fen::to_fen(game.start()))
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Position, Seed};

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
    }
}
