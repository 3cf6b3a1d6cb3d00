//! The pieces of an ending and its name: `KRK`, `KBNK`, `KRKP`.

use std::fmt;
use std::str::FromStr;

use shakmaty::{Board, Color, Piece, Role};

/// The pieces of both sides, with one king each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Material {
    /// Both kings, then White's pieces, then Black's, each side's from the queen down.
    pieces: Vec<Piece>,
}

/// The text is not the name of an ending.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an ending: expected White's pieces, then Black's, such as KRK or KRKP")]
pub struct MaterialError(String);

impl Material {
    /// `None` unless each side has exactly one king.
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Option<Material> {
        let mut pieces: Vec<Piece> = pieces.into_iter().collect();
        pieces.sort_by_key(|piece| {
            (piece.role != Role::King, piece.color.is_black(), -(piece.role as i8))
        });
        let kings: Vec<Color> = pieces
            .iter()
            .filter(|piece| piece.role == Role::King)
            .map(|piece| piece.color)
            .collect();
        (kings == [Color::White, Color::Black]).then_some(Material { pieces })
    }

    /// `None` unless each side has exactly one king.
    pub fn of(board: &Board) -> Option<Material> {
        Material::new(board.iter().map(|(_, piece)| piece))
    }

    /// White's king, Black's king, White's other pieces, Black's other pieces.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    pub fn has_pawns(&self, side: Color) -> bool {
        self.pieces.contains(&Role::Pawn.of(side))
    }

    /// The same pieces with colours swapped.
    #[must_use]
    pub fn swapped(&self) -> Material {
        let pieces = self.pieces.iter().map(|piece| piece.role.of(!piece.color));
        Material::new(pieces).expect("each side still has a king")
    }

    /// True if White has more pieces, or as many and none weaker. Only such endings have tables; the
    /// others use them with colours swapped.
    pub fn is_white_stronger(&self) -> bool {
        let side = |color| {
            let pieces = self.pieces.iter().filter(move |piece| piece.color == color);
            let roles: Vec<Role> = pieces.map(|piece| piece.role).collect();
            (roles.len(), roles)
        };
        side(Color::White) >= side(Color::Black)
    }
}

impl FromStr for Material {
    type Err = MaterialError;

    /// Parses `KRKP`, and `KRvKP` as in Syzygy file names.
    fn from_str(text: &str) -> Result<Material, MaterialError> {
        let letters: String = text.to_ascii_uppercase().replace('V', "");
        let second = letters.rfind('K').unwrap_or(0);
        let pieces: Option<Vec<Piece>> = letters
            .char_indices()
            .map(|(place, letter)| {
                Role::from_char(letter).map(|role| role.of(Color::from_white(place < second)))
            })
            .collect();
        // The first letter must be a king: without this check "RKK" would be read as KRK.
        let pieces = pieces.filter(|_| letters.starts_with('K')).and_then(Material::new);
        pieces.ok_or_else(|| MaterialError(text.to_owned()))
    }
}

impl fmt::Display for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for color in Color::ALL {
            for piece in self.pieces.iter().filter(|piece| piece.color == color) {
                write!(f, "{}", piece.role.upper_char())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_sorted() {
        for (text, name) in
            [("KRK", "KRK"), ("knbk", "KBNK"), ("KKP", "KKP"), ("KPvKR", "KPKR"), ("KK", "KK")]
        {
            let material: Material = text.parse().unwrap();
            assert_eq!(material.to_string(), name);
        }
        for text in ["", "K", "KRX", "RKK", "KKK", "KR-K", "KRKé"] {
            assert!(text.parse::<Material>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_stronger_side_is_recognised() {
        for (name, is_stronger) in
            [("KRK", true), ("KKR", false), ("KRKP", true), ("KPKR", false), ("KK", true)]
        {
            let material: Material = name.parse().unwrap();
            assert_eq!(material.is_white_stronger(), is_stronger, "{name}");
            assert!(is_stronger || material.swapped().is_white_stronger(), "{name}");
            assert_eq!(material.swapped().swapped(), material);
        }
    }
}
