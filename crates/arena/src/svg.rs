//! A rating list as a picture: one row for each player, a dot with its error bar.

use std::fmt::Write as _;

use crate::rating::Rated;

const ROW: f64 = 26.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 34.0;
const NAMES: f64 = 250.0;
const PLOT: f64 = 520.0;
const NUMBERS: f64 = 130.0;

/// Colours that read on light and on dark pages.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#333}.title{font-size:16px;font-weight:600}\
.dim{fill:#777}.grid{stroke:#8884}.bar{stroke:#4682b4;stroke-width:2}.dot{fill:#4682b4}.anchor{fill:#d2691e}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.dim{fill:#999}.bar{stroke:#7ab8e8}.dot{fill:#7ab8e8}}";

/// Draws a rating list, best first.
pub fn rating_svg(title: &str, players: &[Rated]) -> String {
    let axis = Axis::new(players);
    let (width, height) = (NAMES + PLOT + NUMBERS, TOP + BOTTOM + ROW * players.len() as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{0}\">\n\
         <style>{STYLE}</style>\n<text class=\"title\" x=\"16\" y=\"28\">{0}</text>\n",
        escape(title)
    );
    // Writing to a String cannot fail.
    for tick in axis.ticks() {
        let x = axis.x(tick);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text class=\"dim\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick:.0}</text>",
            TOP - 8.0,
            height - BOTTOM + 4.0,
            height - BOTTOM + 20.0,
        );
    }
    for (row, player) in players.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        let (low, high) = (player.elo - player.elo_error, player.elo + player.elo_error);
        let kind = if player.is_anchor { "dot anchor" } else { "dot" };
        let number = if player.is_anchor {
            format!("{:.0} (anchor)", player.elo)
        } else {
            format!("{:.0} ± {:.0}", player.elo, player.elo_error)
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <line class=\"bar\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <circle class=\"{kind}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{number}</text>",
            NAMES - 14.0,
            y + 4.5,
            escape(&shorten(&player.name)),
            axis.x(low),
            axis.x(high),
            axis.x(player.elo),
            NAMES + PLOT + 14.0,
            y + 4.5,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// From Elo to a place in the picture.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    fn new(players: &[Rated]) -> Axis {
        let low = players.iter().map(|p| p.elo - p.elo_error).fold(f64::INFINITY, f64::min);
        let high = players.iter().map(|p| p.elo + p.elo_error).fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low < high { (low, high) } else { (-100.0, 100.0) };
        let steps = [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];
        let step = steps.into_iter().find(|step| (high - low) / step <= 9.0).unwrap_or(5000.0);
        Axis { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    fn x(&self, elo: f64) -> f64 {
        NAMES + PLOT * (elo - self.low) / (self.high - self.low)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let count = ((self.high - self.low) / self.step).round() as usize;
        (0..=count).map(|tick| self.low + self.step * tick as f64)
    }
}

/// A name that fits its column.
fn shorten(name: &str) -> String {
    if name.chars().count() <= 34 {
        return name.to_owned();
    }
    name.chars().take(33).chain(['…']).collect()
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(name: &str, elo: f64, elo_error: f64) -> Rated {
        let is_anchor = elo_error == 0.0;
        Rated { name: name.to_owned(), elo, elo_error, games: 100, points: 50.0, is_anchor }
    }

    #[test]
    fn a_list_becomes_a_picture() {
        let players = [
            rated("alphabeta:depth=4", 1712.0, 48.0),
            rated("stockfish:elo=1350", 1350.0, 0.0),
            rated("uci:<engine> & \"friends\" with a very long command line", 900.0, 120.0),
        ];
        insta::assert_snapshot!(rating_svg("Ladder, 100 ms a move", &players));
    }

    #[test]
    fn odd_lists_give_finite_pictures() {
        for players in [vec![], vec![rated("a", 5.0, 0.0)], vec![rated("a", -9000.0, 8000.0)]] {
            let svg = rating_svg("", &players);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(svg.ends_with("</svg>\n"));
        }
    }
}
