//! A position as text for the terminal.

use selfmate_chess::{Chess, Color, Position, Square};

/// The board with coordinates, seen from one side.
pub fn board_text(position: &Chess, from: Color) -> String {
    let mut text = String::new();
    let order = |i: u32| if from == Color::White { 7 - i } else { i };
    for row in 0..8 {
        let rank = order(row);
        text += &format!("{} ", rank + 1);
        for column in 0..8 {
            let file = 7 - order(column);
            let piece = position.board().piece_at(Square::new(rank * 8 + file));
            text.push(' ');
            text.push(piece.map_or('.', selfmate_chess::Piece::char));
        }
        text.push('\n');
    }
    text += if from == Color::White { "   a b c d e f g h\n" } else { "   h g f e d c b a\n" };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_sees_its_own_pieces_at_the_bottom() {
        let position = selfmate_chess::fen::parse_fen("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1").unwrap();
        insta::assert_snapshot!(format!(
            "{}\n{}",
            board_text(&position, Color::White),
            board_text(&position, Color::Black)
        ));
    }
}
