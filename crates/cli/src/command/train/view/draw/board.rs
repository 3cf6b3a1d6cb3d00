//! The last game: its result, final position and last moves.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use selfmate_chess::{Color as Side, Position, Square};

use super::{DIM, STRONG, section};
use crate::command::train::view::game::LastGame;
use crate::output::thousands;

const LIGHT: Color = Color::Indexed(180);
const DARK: Color = Color::Indexed(137);
/// The squares of the last move.
const MOVED: Color = Color::Indexed(143);

pub fn game(frame: &mut Frame<'_>, game: Option<&LastGame>, area: Rect) {
    let inner = section(frame, "Last self-play game", area);
    let Some(game) = game else {
        frame.render_widget(Line::styled(" first game in progress", DIM), inner);
        return;
    };
    let reason = game.outcome.reason.to_string();
    let mut lines = vec![
        Line::from(vec![Span::styled(format!(" {} ", game.outcome.pgn()), STRONG), reason.into()]),
        Line::styled(format!(" game {}, {} plies", thousands(game.number), game.plies), DIM),
    ];
    lines.extend((0..8).rev().map(|rank| board_row(game, rank)));
    lines.push(Line::styled("    a  b  c  d  e  f  g  h", DIM));
    let rows = usize::from(inner.height).saturating_sub(lines.len());
    let width = usize::from(inner.width).saturating_sub(2);
    lines.extend(game.tail(width, rows).into_iter().map(|line| Line::from(format!(" {line}"))));
    frame.render_widget(Paragraph::new(lines), inner);
}

fn board_row(game: &LastGame, rank: u32) -> Line<'_> {
    let mut line = Line::from(Span::styled(format!(" {} ", rank + 1), DIM));
    for file in 0..8 {
        let square = Square::new(8 * rank + file);
        let is_moved =
            game.last.is_some_and(|last| last.to() == square || last.from() == Some(square));
        let color = match (is_moved, (rank + file).is_multiple_of(2)) {
            (true, _) => MOVED,
            (false, true) => DARK,
            (false, false) => LIGHT,
        };
        let style = Style::new().bg(color);
        let piece = game.position.board().piece_at(square);
        line.push_span(match piece {
            None => Span::styled(" · ", style.fg(Color::Indexed(101))),
            Some(piece) => {
                let side = if piece.color == Side::White { 231 } else { 16 };
                let style = style.patch(STRONG).fg(Color::Indexed(side));
                Span::styled(format!(" {} ", piece.char()), style)
            }
        });
    }
    line
}
