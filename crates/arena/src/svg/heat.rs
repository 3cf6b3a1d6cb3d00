//! Boards side by side with squares coloured by value, such as learned values beside tablebase
//! values.

use std::fmt::Write as _;

use super::{begin, escape};

const SQUARE: f64 = 46.0;
const TOP: f64 = 78.0;
const LEFT: f64 = 34.0;
const GAP: f64 = 52.0;
const BOTTOM: f64 = 34.0;

const STYLE: &str = ".cell{stroke:#8886}.value{font-size:11px;fill:#222}.piece{font-size:26px;fill:#222}\
.none{fill:#8883}";

/// Values from -1 to 1 in the order a1, b1, …, h8.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatBoard {
    /// Shown above the board.
    pub title: String,
    /// `None` for squares without a value.
    pub values: Vec<Option<f64>>,
}

/// Draws boards. `pieces` are drawn on all of them, given by square (a1 is 0) and symbol.
pub fn heat_svg(title: &str, boards: &[HeatBoard], pieces: &[(usize, char)]) -> String {
    let board = 8.0 * SQUARE;
    let count = boards.len().max(1) as f64;
    let width = LEFT + count * (board + GAP);
    let mut svg = begin(title, STYLE, width, TOP + board + BOTTOM);
    // Writing to a String cannot fail.
    for (index, heat) in boards.iter().enumerate() {
        let left = LEFT + index as f64 * (board + GAP);
        let _ = writeln!(
            svg,
            "<text x=\"{left:.0}\" y=\"{:.0}\">{}</text>",
            TOP - 14.0,
            escape(&heat.title)
        );
        for line in 0..8u8 {
            let middle = (f64::from(line) + 0.5) * SQUARE;
            let _ = writeln!(
                svg,
                "<text class=\"dim\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>\
                 <text class=\"dim\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
                left + middle,
                TOP + board + 18.0,
                char::from(b'a' + line),
                left - 8.0,
                TOP + middle + 5.0,
                8 - line,
            );
        }
        for square in 0..64 {
            let value = heat.values.get(square).copied().flatten();
            let x = left + (square % 8) as f64 * SQUARE;
            let y = TOP + (7 - square / 8) as f64 * SQUARE;
            let fill = match value {
                Some(value) => format!("fill=\"{}\"", colour(value)),
                None => "class=\"none\"".to_owned(),
            };
            let _ = writeln!(
                svg,
                "<g class=\"cell\"><rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{SQUARE}\" height=\"{SQUARE}\" {fill}/></g>"
            );
            let piece = pieces.iter().find(|(place, _)| *place == square);
            let (class, text) = match (piece, value) {
                (Some((_, piece)), _) => ("piece", piece.to_string()),
                (None, Some(value)) => ("value", format!("{:.2}", value + 0.0)),
                (None, None) => continue,
            };
            let (x, y) =
                (x + SQUARE / 2.0, y + SQUARE / 2.0 + if class == "piece" { 9.0 } else { 4.0 });
            let _ = writeln!(
                svg,
                "<text class=\"{class}\" x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"middle\">{}</text>",
                escape(&text)
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Blue for -1, white for 0, orange for 1.
fn colour(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1.0, 1.0) } else { 0.0 };
    let end = if value < 0.0 { [70.0, 130.0, 200.0] } else { [235.0, 130.0, 40.0] };
    let part = |end: f64| (250.0 + (end - 250.0) * value.abs()).round() as u8;
    let [red, green, blue] = end.map(part);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_coloured_by_their_values() {
        let mut values = vec![None; 64];
        (values[0], values[63]) = (Some(1.0), Some(-1.0));
        let boards = [HeatBoard { title: "a < b".to_owned(), values }];
        let svg = heat_svg("Heat", &boards, &[(8, '♔')]);
        assert!(svg.contains(&colour(1.0)) && svg.contains(&colour(-1.0)), "{svg}");
        assert_eq!(svg.matches("class=\"none\"").count(), 62);
        assert!(svg.contains('♔') && svg.contains("a &lt; b") && svg.ends_with("</svg>\n"));
        assert_eq!((colour(1.0).as_str(), colour(-1.0).as_str()), ("#eb8228", "#4682c8"));
        assert_eq!(colour(0.0), colour(f64::NAN));
        assert!(heat_svg("", &[], &[]).ends_with("</svg>\n"));
    }
}
