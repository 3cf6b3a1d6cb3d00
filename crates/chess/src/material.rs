//! The usual values of the pieces.

use shakmaty::{Board, Color, Role};

/// In centipawns; a king has none.
pub const fn piece_value(role: Role) -> i32 {
    match role {
        Role::Pawn => 100,
        Role::Knight | Role::Bishop => 300,
        Role::Rook => 500,
        Role::Queen => 900,
        Role::King => 0,
    }
}

/// White's material minus Black's, in centipawns.
pub fn balance(board: &Board) -> i32 {
    let count = |role, color| (board.by_role(role) & board.by_color(color)).count() as i32;
    Role::ALL
        .into_iter()
        .map(|role| piece_value(role) * (count(role, Color::White) - count(role, Color::Black)))
        .sum()
}

#[cfg(test)]
mod tests {
    use shakmaty::Position;

    use super::*;
    use crate::fen;

    #[test]
    fn the_balance_counts_for_white() {
        let balance = |text| balance(fen::parse_game(text).unwrap().position().board());
        assert_eq!(balance("4k3/8/8/8/8/8/PP6/3QK1NB b - - 0 1"), 1700);
        assert_eq!(balance("r3k3/8/8/8/8/8/8/4K3 w - - 0 1"), -500);
    }
}
