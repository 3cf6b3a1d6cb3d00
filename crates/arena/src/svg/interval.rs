//! Named means with their intervals: a dot and a bar for each.

use std::fmt::Write as _;

use super::{Scale, begin, escape};

const ROW: f64 = 22.0;
const TOP: f64 = 56.0;
const NAMES: f64 = 260.0;
const PLOT: f64 = 520.0;
const NUMBERS: f64 = 150.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    pub name: String,
    pub mean: f64,
    /// Half the width of the interval; `None` when it is unknown.
    pub half: Option<f64>,
}

/// Draws means with intervals, in the given order. Intervals are cut at `bounds`.
pub fn interval_svg(title: &str, rows: &[Interval], bounds: (f64, f64)) -> String {
    let ends = |row: &Interval| {
        let half = row.half.filter(|half| half.is_finite()).unwrap_or(0.0);
        [row.mean - half, row.mean + half].map(|end| end.clamp(bounds.0, bounds.1))
    };
    let finite = rows.iter().filter(|row| row.mean.is_finite());
    let all: Vec<f64> = finite.flat_map(ends).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min).min(0.0f64.max(bounds.0));
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = if all.is_empty() || high <= low { (low.min(0.0), 1.0) } else { (low, high) };
    let scale = Scale::new(low, high, 8.0, -6).widened();
    let bottom = TOP + ROW * rows.len() as f64;
    let mut svg = begin(title, "", NAMES + PLOT + NUMBERS, bottom + 36.0);
    // Writing to a String cannot fail.
    for tick in scale.ticks() {
        let x = NAMES + PLOT * scale.place(tick);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\"/>\
             <text class=\"dim\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            TOP - 8.0,
            bottom + 18.0,
            (tick * 1e6).round() / 1e6,
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            NAMES - 12.0,
            y + 4.0,
            escape(&row.name)
        );
        if !row.mean.is_finite() {
            continue;
        }
        let [left, right] = ends(row).map(|end| NAMES + PLOT * scale.place(end));
        let dot = NAMES + PLOT * scale.place(row.mean.clamp(bounds.0, bounds.1));
        let half = row.half.map_or(String::new(), |half| format!(" ± {half:.3}"));
        let _ = writeln!(
            svg,
            "<line class=\"bar\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <circle class=\"dot\" cx=\"{dot:.1}\" cy=\"{y:.1}\" r=\"4\"/>\
             <text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\">{:.3}{half}</text>",
            NAMES + PLOT + 14.0,
            y + 4.0,
            row.mean + 0.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, mean: f64, half: Option<f64>) -> Interval {
        Interval { name: name.to_owned(), mean, half }
    }

    #[test]
    fn intervals_are_cut_at_the_bounds_and_rows_without_a_mean_have_no_mark() {
        let rows = [
            row("a<b", 0.9, Some(0.3)),
            row("c", 0.5, None),
            row("d", f64::NAN, Some(0.1)),
            row("e", 0.2, Some(f64::INFINITY)),
        ];
        let svg = interval_svg("Shares", &rows, (0.0, 1.0));
        // From 0.6 to 1 on a scale from 0 to 1.
        assert!(svg.contains("x1=\"572.0\" x2=\"780.0\""), "{svg}");
        assert_eq!(svg.matches("class=\"dot\"").count(), 3);
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN"), "{svg}");
        assert!(interval_svg("", &[], (0.0, 1.0)).ends_with("</svg>\n"));
    }
}
