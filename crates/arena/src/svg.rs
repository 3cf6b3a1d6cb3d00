//! SVG pictures for light and dark pages: rating lists, curves over time, intervals, bars and
//! boards of values.

mod bars;
mod curve;
mod heat;
mod interval;
mod rating;

pub use bars::bars_svg;
pub use curve::{Curve, Panel, Point, Size, Unit, curves_svg};
pub use heat::{HeatBoard, heat_svg};
pub use interval::{Interval, interval_svg};
pub use rating::rating_svg;

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#333}.title{font-size:16px;font-weight:600}\
.dim{fill:#777}.grid{stroke:#8884}.bar{stroke:#4682b4;stroke-width:2}.dot{fill:#4682b4}.anchor{fill:#d2691e}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.dim{fill:#999}.bar{stroke:#7ab8e8}.dot{fill:#7ab8e8}}";

/// The start of a picture, with its title.
fn begin(title: &str, style: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{0}\">\n\
         <style>{STYLE}{style}</style>\n<text class=\"title\" x=\"16\" y=\"28\">{0}</text>\n",
        escape(title)
    )
}

/// A range of numbers with round ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    /// A range with at most about `most` ticks. Ticks are 1, 2 or 5 times a power of ten apart; the
    /// exponent of that power is at least `least`.
    fn new(low: f64, high: f64, most: f64, least: i32) -> Scale {
        let steps = (least..least + 20).flat_map(|power| [1.0, 2.0, 5.0].map(|m| tick(m, power)));
        let step = steps.into_iter().find(|step| (high - low) / step <= most);
        Scale { low, high, step: step.unwrap_or(high - low) }
    }

    /// Widened so that it starts and ends at a tick.
    fn widened(self) -> Scale {
        let Scale { low, high, step } = self;
        Scale { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    /// The relative position of a number: 0 at the low end, 1 at the high end.
    fn place(&self, number: f64) -> f64 {
        (number - self.low) / (self.high - self.low)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let first = (self.low / self.step - 1e-9).ceil();
        let last = (self.high / self.step + 1e-9).floor();
        (0..=(last - first).max(0.0) as usize).map(move |tick| (first + tick as f64) * self.step)
    }
}

/// Division is exact for the shown digits where a negative power of ten is not.
fn tick(mantissa: f64, power: i32) -> f64 {
    if power < 0 { mantissa / 10f64.powi(-power) } else { mantissa * 10f64.powi(power) }
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

    #[test]
    fn ticks_are_round_and_not_too_many() {
        let ticks = |low, high, least| {
            Scale::new(low, high, 5.0, least).widened().ticks().collect::<Vec<_>>()
        };
        assert_eq!(ticks(0.0, 2.2, -6), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
        assert_eq!(ticks(-12.0, 31.0, 1), [-20.0, -10.0, 0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(ticks(0.0, 3.0, 1), [0.0, 10.0]);
        let inner: Vec<_> = Scale::new(0.0, 57.0, 6.0, -6).ticks().collect();
        assert_eq!(inner, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
    }
}
