//! One ply of look-ahead: mate, or the move that wins the most by exchanges on its target square.

use selfmate_chess::material::piece_value;
use selfmate_chess::{Chess, Game, Move, Position, Role, Seed, Square};
use selfmate_search::player::{Limit, Score, SearchInfo};
use selfmate_search::{Choice, Player, PlayerError};

/// Mates if it can. Otherwise it plays one of the moves that win the most material after all
/// recaptures on the target square. Moves that lose nothing there count 0, so it does not hang the
/// piece it moves, but it does not see other attacked pieces.
#[derive(Clone, Debug)]
pub struct GreedyPlayer {
    name: String,
    seed: Seed,
}

impl GreedyPlayer {
    /// Equal moves are drawn from this seed.
    pub fn new(name: &str, seed: Seed) -> GreedyPlayer {
        GreedyPlayer { name: name.to_owned(), seed: seed.derive("greedy") }
    }
}

impl Player for GreedyPlayer {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        _: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError> {
        let position = game.position();
        let mut best = Vec::new();
        let mut most = i32::MIN;
        for &m in &limit.candidates(game) {
            let mut after = position.clone();
            after.play_unchecked(m);
            if after.is_checkmate() {
                return Ok(Choice { score: Some(Score::Mate(1)), ..Choice::bare(m) });
            }
            let won = gain(position, m, &after);
            if won > most {
                best.clear();
                most = won;
            }
            if won == most {
                best.push(m);
            }
        }
        super::draw_move(&self.name, self.seed, game, &best)
    }
}

/// The most the side to move can win at once by an exchange, in centipawns.
pub fn best_exchange(position: &Chess) -> i32 {
    let gains = position.capture_moves().into_iter().map(|m| exchange_gain(position, m));
    gains.max().unwrap_or(0).max(0)
}

/// The material a move wins or loses after all recaptures on its target square, in centipawns.
pub fn exchange_gain(position: &Chess, m: Move) -> i32 {
    let mut after = position.clone();
    after.play_unchecked(m);
    gain(position, m, &after)
}

/// [`exchange_gain`] with the position after the move.
fn gain(position: &Chess, m: Move, after: &Chess) -> i32 {
    debug_assert_eq!(position.turn(), !after.turn());
    let promoted = m.promotion().map_or(0, |role| worth(role) - worth(Role::Pawn));
    let lost = if m.is_castle() { 0 } else { exchange(after, m.to()) };
    m.capture().map_or(0, worth) + promoted - lost
}

/// The material the side to move wins by capturing on a square with its least valuable piece; 0 if
/// it is better not to.
fn exchange(position: &Chess, square: Square) -> i32 {
    let captures = position.capture_moves();
    let on_square = captures.iter().filter(|m| m.to() == square && !m.is_en_passant());
    let Some(&m) = on_square.min_by_key(|m| (worth(m.role()), m.from())) else { return 0 };
    let mut after = position.clone();
    after.play_unchecked(m);
    (m.capture().map_or(0, worth) - exchange(&after, square)).max(0)
}

/// In centipawns. A bishop is worth a little more than a knight, and the king captures last in an
/// exchange.
fn worth(role: Role) -> i32 {
    match role {
        Role::Bishop => 310,
        Role::King => 10_000,
        _ => piece_value(role),
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{fen, notation};

    use super::*;

    fn plays(fen: &str) -> String {
        let game = fen::parse_game(fen).unwrap();
        let mut player = GreedyPlayer::new("greedy", Seed::new(1));
        let choice = player.choose(&game, &Limit::default()).unwrap();
        notation::san(game.position(), choice.played)
    }

    #[test]
    fn it_mates_captures_and_avoids_losing_exchanges() {
        for (fen, expected) in [
            ("6k1/5ppp/8/8/q7/8/5PPP/R5K1 w - - 0 1", "Rxa4"),
            ("6k1/5ppp/8/8/1n6/8/5PPP/R5K1 w - - 0 1", "Ra8#"),
            // The pawn is defended by a pawn, the knight is undefended.
            ("6k1/5p2/4p3/3p4/1n6/8/3Q2P1/6K1 w - - 0 1", "Qxb4"),
            // Promoting wins more than capturing a pawn.
            ("8/P6k/8/8/8/p7/1N6/K7 w - - 0 1", "a8=Q"),
        ] {
            assert_eq!(plays(fen), expected, "{fen}");
        }
        // It does not capture the defended pawn with the queen.
        let quiet = plays("6k1/5p2/4p3/3p4/8/8/3Q4/6K1 w - - 0 1");
        assert!(!quiet.starts_with("Qxd5"), "{quiet}");
    }

    #[test]
    fn best_exchange_counts_recaptures() {
        let value = |fen: &str| best_exchange(&fen::parse_fen(fen).unwrap());
        assert_eq!(value("4k3/8/8/3p4/8/8/8/3RK3 w - - 0 1"), 100);
        assert_eq!(value("4k3/8/2p5/3p4/8/8/8/3RK3 w - - 0 1"), 0);
        assert_eq!(value("4k3/8/2p5/3n4/4P3/8/8/4K3 w - - 0 1"), 200);
        assert_eq!(value("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"), 0);
    }
}
