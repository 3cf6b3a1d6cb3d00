//! A rating list: one row per player, a dot with its error bar.

use std::fmt::Write as _;

use super::{Scale, begin, escape};
use crate::rating::Rated;

const ROW: f64 = 26.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 34.0;
const NAMES: f64 = 250.0;
const PLOT: f64 = 520.0;
const NUMBERS: f64 = 130.0;

pub fn rating_svg(title: &str, players: &[Rated]) -> String {
    let scale = scale(players);
    let x = |elo: f64| NAMES + PLOT * scale.place(elo);
    let (width, height) = (NAMES + PLOT + NUMBERS, TOP + BOTTOM + ROW * players.len() as f64);
    let mut svg = begin(title, "", width, height);
    // Writing to a String cannot fail.
    for tick in scale.ticks() {
        let x = x(tick);
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
        let (low, high) = ends(player);
        let kind = if player.is_anchor { "dot anchor" } else { "dot" };
        let number = match player.elo_error {
            _ if player.is_anchor => format!("{:.0} (anchor)", player.elo),
            Some(error) => format!("{:.0} ± {error:.0}", player.elo),
            None => "?".to_owned(),
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
            x(low),
            x(high),
            x(player.elo),
            NAMES + PLOT + 14.0,
            y + 4.5,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The range of all ratings with their error bars.
fn scale(players: &[Rated]) -> Scale {
    let low = players.iter().map(|player| ends(player).0).fold(f64::INFINITY, f64::min);
    let high = players.iter().map(|player| ends(player).1).fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = if low < high { (low, high) } else { (-100.0, 100.0) };
    Scale::new(low, high, 9.0, 1).widened()
}

/// The ends of a player's error bar; both are the rating if there is no error.
fn ends(player: &Rated) -> (f64, f64) {
    let error = player.elo_error.unwrap_or(0.0);
    (player.elo - error, player.elo + error)
}

/// A name cut to the width of its column.
fn shorten(name: &str) -> String {
    if name.chars().count() <= 34 {
        return name.to_owned();
    }
    name.chars().take(33).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(name: &str, elo: f64, elo_error: f64) -> Rated {
        let is_anchor = elo_error == 0.0;
        let elo_error = Some(elo_error);
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
        let unknown = Rated { elo_error: None, is_anchor: false, ..rated("a", 5.0, 0.0) };
        assert!(rating_svg("", std::slice::from_ref(&unknown)).contains(">?</text>"));
        for players in
            [vec![], vec![rated("a", 5.0, 0.0)], vec![rated("a", -9000.0, 8000.0)], vec![unknown]]
        {
            let svg = rating_svg("", &players);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(svg.ends_with("</svg>\n"));
        }
    }
}
