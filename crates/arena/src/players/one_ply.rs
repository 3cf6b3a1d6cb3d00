//! A player that looks one ply ahead with an evaluation of four weights.

use selfmate_chess::{Bitboard, Chess, Color, Game, Position, Role, Seed, Square};
use selfmate_search::player::{Limit, Score, SearchInfo};
use selfmate_search::{Choice, Player, PlayerError};
use serde::{Deserialize, Serialize};

use crate::registry::PlayerKind;
use crate::spec::{SpecError, SpecOptions};

/// The weights of the evaluation. A term is the difference between the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnePlyWeights {
    /// Material in pawns: 3 for a knight or bishop, 5 for a rook, 9 for a queen.
    pub material: f64,
    /// Pieces and pawns on the four squares in the middle.
    pub centre: f64,
    /// Own pawns next to the king, minus squares next to it that the opponent attacks.
    pub king_safety: f64,
    /// Knights and bishops that have left their home squares.
    pub development: f64,
}

impl Default for OnePlyWeights {
    fn default() -> OnePlyWeights {
        OnePlyWeights { material: 1.0, centre: 0.3, king_safety: 0.5, development: 0.4 }
    }
}

impl OnePlyWeights {
    /// The names, in the order of [`OnePlyWeights::flat`].
    pub const NAMES: [&str; 4] = ["material", "centre", "king_safety", "development"];
    /// The largest value of a weight; the smallest is 0.
    pub const MAX: f64 = 10.0;

    pub fn flat(&self) -> [f64; 4] {
        [self.material, self.centre, self.king_safety, self.development]
    }

    pub fn from_flat([material, centre, king_safety, development]: [f64; 4]) -> OnePlyWeights {
        OnePlyWeights { material, centre, king_safety, development }
    }

    /// Parses the text of a file. The error describes the problem.
    pub fn parse(text: &str) -> Result<OnePlyWeights, String> {
        let weights: OnePlyWeights = toml::from_str(text).map_err(|error| error.to_string())?;
        for (name, value) in OnePlyWeights::NAMES.into_iter().zip(weights.flat()) {
            if !(0.0..=OnePlyWeights::MAX).contains(&value) {
                let most = OnePlyWeights::MAX;
                return Err(format!("{name} is {value}: expected a number from 0 to {most}"));
            }
        }
        Ok(weights)
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a table of plain numbers")
    }

    /// The score for one side, in pawns.
    pub fn score(&self, position: &Chess, side: Color) -> f64 {
        let (own, other) = (terms(position, side), terms(position, !side));
        let weighted = self.flat().into_iter().zip(own).zip(other);
        weighted.map(|((weight, own), other)| weight * f64::from(own - other)).sum()
    }
}

/// The four terms of one side.
fn terms(position: &Chess, side: Color) -> [i32; 4] {
    let board = position.board();
    let own = board.by_color(side);
    let count = |squares: Bitboard| squares.count() as i32;
    let material =
        [(Role::Pawn, 1), (Role::Knight, 3), (Role::Bishop, 3), (Role::Rook, 5), (Role::Queen, 9)]
            .into_iter()
            .map(|(role, worth)| worth * count(own & board.by_role(role)))
            .sum();
    let centre = [Square::D4, Square::E4, Square::D5, Square::E5];
    let centre = centre.into_iter().filter(|square| own.contains(*square)).count() as i32;
    let king = board.king_of(side);
    let around = Square::ALL
        .into_iter()
        .filter(|square| king.is_some_and(|king| king.distance(*square) == 1));
    let king_safety = around
        .map(|square| {
            let is_shelter = (own & board.pawns()).contains(square);
            let is_attacked = !board.attacks_to(square, !side, board.occupied()).is_empty();
            i32::from(is_shelter) - i32::from(is_attacked)
        })
        .sum();
    let home = |role: Role, squares: [Square; 2]| {
        let pieces = own & board.by_role(role);
        let at_home = squares.into_iter().filter(|square| pieces.contains(*square)).count() as i32;
        count(pieces) - at_home
    };
    let development = match side {
        Color::White => {
            home(Role::Knight, [Square::B1, Square::G1])
                + home(Role::Bishop, [Square::C1, Square::F1])
        }
        Color::Black => {
            home(Role::Knight, [Square::B8, Square::G8])
                + home(Role::Bishop, [Square::C8, Square::F8])
        }
    };
    [material, centre, king_safety, development]
}

/// Plays the move after which its evaluation is best.
#[derive(Clone, Debug)]
pub struct OnePlyPlayer {
    name: String,
    weights: OnePlyWeights,
    seed: Seed,
}

impl OnePlyPlayer {
    /// Equal moves are drawn from this seed.
    pub fn new(name: &str, weights: OnePlyWeights, seed: Seed) -> OnePlyPlayer {
        OnePlyPlayer { name: name.to_owned(), weights, seed: seed.derive("oneply") }
    }
}

/// The kind of specs such as `oneply:centre=0.5`.
pub(super) fn kind() -> PlayerKind {
    PlayerKind::new(
        "oneply",
        "one ply ahead with four weights: material, centre, king safety, development",
        |options| Ok(Box::new(OnePlyPlayer::new(&options.label(), read(options)?, options.seed))),
    )
    .option("material", "the weight of material (1.0)")
    .option("centre", "the weight of the four squares in the middle (0.3)")
    .option("king_safety", "the weight of pawns and attacks next to the king (0.5)")
    .option("development", "the weight of knights and bishops that have moved (0.4)")
}

fn read(options: &SpecOptions<'_>) -> Result<OnePlyWeights, SpecError> {
    let mut flat = OnePlyWeights::default().flat();
    for (name, value) in OnePlyWeights::NAMES.into_iter().zip(&mut flat) {
        if let Some(given) = options.decimal(name, 0.0..=OnePlyWeights::MAX as f32)? {
            *value = f64::from(given);
        }
    }
    Ok(OnePlyWeights::from_flat(flat))
}

impl Player for OnePlyPlayer {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        _: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError> {
        let side = game.turn();
        let candidates = limit.candidates(game);
        let mut game_after = game.clone();
        let (mut best, mut most) = (Vec::new(), f64::NEG_INFINITY);
        for &m in &candidates {
            game_after.play_unchecked(m);
            let score = match game_after.outcome() {
                Some(outcome) if outcome.winner == Some(side) => {
                    return Ok(Choice { score: Some(Score::Mate(1)), ..Choice::bare(m) });
                }
                // Draws; repetitions would otherwise repeat forever between two good positions.
                Some(_) => 0.0,
                None if game_after.repetitions() > 1 => 0.0,
                None => self.weights.score(game_after.position(), side),
            };
            game_after.undo();
            if score > most {
                best.clear();
                most = score;
            }
            if score == most {
                best.push(m);
            }
        }
        let choice = super::draw_move(&self.name, self.seed, game, &best)?;
        let nodes = Some(candidates.len() as u64);
        // Rounded, so that it is the same on every machine.
        let score = Some(Score::Centipawns((100.0 * most).round() as i32));
        Ok(Choice { score, nodes, ..choice })
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{fen, notation};

    use super::*;
    use crate::registry::Registry;

    fn plays(spec: &str, fen: &str) -> String {
        let registry = Registry::standard();
        let spec = registry.parse(spec).unwrap();
        let mut player = registry.build(&spec, Seed::new(1)).unwrap();
        let game = fen::parse_game(fen).unwrap();
        let choice = player.choose(&game, &Limit::default()).unwrap();
        notation::san(game.position(), choice.played)
    }

    #[test]
    fn each_term_decides_a_move() {
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        let developed = plays("oneply:material=0,centre=0,king_safety=0,development=1", start);
        assert!(developed.starts_with('N'), "{developed}");
        let central = plays("oneply:material=0,centre=1,king_safety=0,development=0", start);
        assert!(["e4", "d4"].contains(&central.as_str()), "{central}");
        let hanging = "4k3/8/8/3q4/8/8/8/3RK3 w - - 0 1";
        assert_eq!(plays("oneply", hanging), "Rxd5");
        assert_eq!(plays("oneply", "6k1/5ppp/8/8/1n6/8/5PPP/R5K1 w - - 0 1"), "Ra8#");
        let shelter = "6k1/8/8/8/8/8/r4PPP/6K1 w - - 0 1";
        let safe = plays("oneply:material=0,centre=0,king_safety=1,development=0", shelter);
        assert_ne!(safe, "g4", "the pawns stay in front of the king");
    }

    #[test]
    fn the_score_of_a_mirrored_position_is_negated() {
        let weights = OnePlyWeights::default();
        let position =
            fen::parse_fen("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 2 3")
                .unwrap();
        let (white, black) =
            (weights.score(&position, Color::White), weights.score(&position, Color::Black));
        assert!(black > 0.3 && (white + black).abs() < 1e-9, "{white} {black}");
        assert_eq!(weights.score(&Chess::default(), Color::White), 0.0);
    }

    #[test]
    fn a_file_round_trips_and_errors_name_the_weight() {
        let weights = OnePlyWeights { centre: 0.25, ..OnePlyWeights::default() };
        assert_eq!(OnePlyWeights::parse(&weights.to_toml()).unwrap(), weights);
        let error = OnePlyWeights::parse(&weights.to_toml().replace("0.25", "11.0")).unwrap_err();
        assert_eq!(error, "centre is 11: expected a number from 0 to 10");
        assert!(OnePlyWeights::parse("").is_err());
    }
}
