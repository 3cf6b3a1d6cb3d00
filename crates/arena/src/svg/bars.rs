//! A bar chart of named numbers.

use std::fmt::Write as _;

use super::{Scale, begin, escape};

const ROW: f64 = 20.0;
const TOP: f64 = 52.0;
const NAMES: f64 = 230.0;
const PLOT: f64 = 560.0;
const NUMBERS: f64 = 90.0;

/// Draws bars from zero, in the given order. Numbers must not be negative.
pub fn bars_svg(title: &str, bars: &[(String, f64)]) -> String {
    let most = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
    let scale = Scale::new(0.0, most, 8.0, -9);
    let height = TOP + 30.0 + ROW * bars.len() as f64;
    let mut svg = begin(title, ".fill{fill:#4682b4}", NAMES + PLOT + NUMBERS, height);
    // Writing to a String cannot fail.
    for (row, (name, value)) in bars.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let shown = if value.is_finite() { value.clamp(0.0, most) } else { 0.0 };
        let width = PLOT * scale.place(shown);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"fill\" x=\"{NAMES}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\
             <text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\">{value:.4}</text>",
            NAMES - 10.0,
            y + 13.0,
            escape(name),
            y + 3.0,
            ROW - 6.0,
            NAMES + width + 8.0,
            y + 13.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_numbers() {
        let bars = [("a<b".to_owned(), 2.0), ("c".to_owned(), 1.0), ("d".to_owned(), 0.0)];
        let svg = bars_svg("Bars", &bars);
        assert!(svg.contains("width=\"560.0\"") && svg.contains("width=\"280.0\""), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.ends_with("</svg>\n"));
        assert!(!bars_svg("", &[]).contains("NaN"));
        assert!(!bars_svg("", &[("x".to_owned(), f64::NAN)]).contains("width=\"NaN"));
    }
}
