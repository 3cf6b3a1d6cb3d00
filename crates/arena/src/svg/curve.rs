//! Curves over time: panels with a common time axis.

use std::fmt::Write as _;

use super::{Scale, begin, escape};

/// A part of the picture with curves that share a vertical axis.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    /// How numbers are written.
    pub unit: Unit,
    pub size: Size,
    /// The first four curves have their own colours; all further ones are grey.
    pub curves: Vec<Curve>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The full width of the picture.
    Wide,
    /// Half the width.
    Half,
    /// A third of the width.
    Small,
}

impl Size {
    fn width(self) -> f64 {
        match self {
            Size::Wide => WIDTH,
            Size::Half => WIDTH / 2.0,
            Size::Small => WIDTH / 3.0,
        }
    }

    fn height(self) -> f64 {
        match self {
            Size::Wide => 300.0,
            Size::Half => 214.0,
            Size::Small => 170.0,
        }
    }

    /// The approximate maximum number of ticks on the time axis and on the vertical axis.
    fn ticks(self) -> (f64, f64) {
        match self {
            Size::Wide => (14.0, 9.0),
            Size::Half => (7.0, 5.0),
            Size::Small => (5.0, 4.0),
        }
    }
}

/// How the numbers of a panel are written, and where the axis starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The axis covers the lowest to the highest number.
    Number,
    /// The axis starts at zero.
    Amount,
    /// Fractions shown as percent, from 0.
    Share,
}

#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    /// In order of time.
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Minutes since the start.
    pub minutes: f64,
    pub value: f64,
    /// The error bar, as (low, high).
    pub bar: Option<(f64, f64)>,
}

const WIDTH: f64 = 960.0;
const TOP: f64 = 58.0;
/// Margins around the curves of a panel.
const LEFT: f64 = 60.0;
const RIGHT: f64 = 18.0;
const ABOVE: f64 = 32.0;
const BELOW: f64 = 32.0;
/// Longer curves are reduced to means of neighbouring points.
const MOST_POINTS: usize = 400;

const STYLE: &str = "text{font-size:12px}.title{font-size:16px}.name{font-size:13px;font-weight:600}\
.dim{font-size:11px}.axis{stroke:#8888}.mark{stroke:#c0392b;stroke-dasharray:3 3;opacity:.7}\
path{fill:none;stroke-width:1.8;stroke-linejoin:round}.whisker{stroke-width:1.3;opacity:.7}\
.s0{stroke:#4682b4}.s1{stroke:#d2691e}.s2{stroke:#2e9b62}.s3{stroke:#a45fb8}.s4{stroke:#888}\
.f0{fill:#4682b4}.f1{fill:#d2691e}.f2{fill:#2e9b62}.f3{fill:#a45fb8}.f4{fill:#888}";

/// Draws panels in rows of equal size. `marks` are minutes that get a vertical line in every panel.
pub fn curves_svg(title: &str, subtitle: &str, panels: &[Panel], marks: &[f64]) -> String {
    let mut places = Vec::new();
    let (mut x, mut y, mut row) = (0.0, TOP, 0.0);
    let mut before = None;
    for panel in panels {
        let size = panel.size;
        if before.is_some_and(|before| before != size) || x + size.width() > WIDTH + 1.0 {
            (x, y) = (0.0, y + row);
        }
        places.push((x, y));
        (x, row, before) = (x + size.width(), size.height(), Some(size));
    }
    let mut svg = begin(title, STYLE, WIDTH, y + row + 8.0);
    // Writing to a String cannot fail.
    let _ = writeln!(svg, "<text class=\"dim\" x=\"16\" y=\"46\">{}</text>", escape(subtitle));
    let points = panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
    let end = points.map(|point| point.minutes).fold(0.0, f64::max);
    let end = if end > 0.0 { end } else { 1.0 };
    for (panel, (x, y)) in panels.iter().zip(places) {
        let size = panel.size;
        let frame = Frame {
            left: x + LEFT,
            right: x + size.width() - RIGHT,
            top: y + ABOVE,
            bottom: y + size.height() - BELOW,
            minutes: Scale::new(0.0, end, size.ticks().0, -3),
            numbers: numbers(panel),
        };
        draw(&mut svg, panel, &frame, marks);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The drawing area of a panel with its scales.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    minutes: Scale,
    numbers: Scale,
}

impl Frame {
    fn x(&self, minutes: f64) -> f64 {
        self.left + (self.right - self.left) * self.minutes.place(minutes)
    }

    fn y(&self, number: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.numbers.place(number)
    }
}

/// The vertical range of a panel.
fn numbers(panel: &Panel) -> Scale {
    let points = panel.curves.iter().flat_map(|curve| &curve.points);
    let ends = points.flat_map(|point| {
        let (low, high) = point.bar.unwrap_or((point.value, point.value));
        [low, high]
    });
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| {
        (f64::min(low, end), f64::max(high, end))
    });
    let (low, high) = match panel.unit {
        Unit::Number => (low, high),
        Unit::Amount => (low.min(0.0), high),
        Unit::Share => (0.0, high.clamp(0.05, 1.0)),
    };
    // A constant curve still needs a range.
    let (low, high) = match (low.is_finite() && high.is_finite(), low < high) {
        (true, true) => (low, high),
        (true, false) if low != 0.0 => (low - low.abs() / 2.0, low + low.abs() / 2.0),
        (true, false) => (-1.0, 1.0),
        (false, _) => (0.0, 1.0),
    };
    Scale::new(low, high, panel.size.ticks().1, -6).widened()
}

fn draw(svg: &mut String, panel: &Panel, frame: &Frame, marks: &[f64]) {
    let Frame { left, right, top, bottom, .. } = *frame;
    let _ = writeln!(
        svg,
        "<g><text class=\"name\" x=\"{left}\" y=\"{:.0}\">{}</text>",
        top - 12.0,
        escape(&panel.title)
    );
    for tick in frame.numbers.ticks() {
        let y = frame.y(tick);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"dim\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            y + 4.0,
            label(panel.unit, tick, frame.numbers.step)
        );
    }
    let _ = writeln!(
        svg,
        "<line class=\"axis\" x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>"
    );
    for tick in frame.minutes.ticks() {
        let x = frame.x(tick);
        let unit = if tick == 0.0 { " min" } else { "" };
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{:.0}\"/>\
             <text class=\"dim\" x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}{unit}</text>",
            bottom + 4.0,
            bottom + 17.0,
            label(Unit::Number, tick, frame.minutes.step)
        );
    }
    for &mark in marks.iter().filter(|&&mark| (0.0..=frame.minutes.high).contains(&mark)) {
        let x = frame.x(mark);
        let _ = writeln!(
            svg,
            "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>"
        );
    }
    // Names are placed from the right, the last curve first.
    let mut end = right;
    for (index, curve) in panel.curves.iter().enumerate().rev() {
        let Some(last) = curve.points.last() else { continue };
        let step = last.value.abs().max(1e-6) / 100.0;
        let text = format!("{} {}", curve.name, label(panel.unit, last.value, step));
        let text = text.trim();
        let _ = writeln!(
            svg,
            "<text class=\"f{}\" x=\"{end:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
            index.min(4),
            top - 12.0,
            escape(text)
        );
        end -= 6.6 * text.chars().count() as f64 + 14.0;
    }
    for (index, curve) in panel.curves.iter().enumerate() {
        line(svg, frame, index.min(4), &thinned(&curve.points));
    }
    svg.push_str("</g>\n");
}

fn line(svg: &mut String, frame: &Frame, colour: usize, points: &[Point]) {
    let has_bars = points.iter().any(|point| point.bar.is_some());
    for point in points {
        let (x, y) = (frame.x(point.minutes), frame.y(point.value));
        if let Some((low, high)) = point.bar {
            let (low, high, left, right) = (frame.y(low), frame.y(high), x - 4.0, x + 4.0);
            let _ = writeln!(
                svg,
                "<path class=\"whisker s{colour}\" d=\"M{left:.1} {low:.1}H{right:.1}M{left:.1} {high:.1}\
                 H{right:.1}M{x:.1} {low:.1}V{high:.1}\"/>"
            );
        }
        if has_bars || points.len() == 1 {
            let _ =
                writeln!(svg, "<circle class=\"f{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
        }
    }
    if points.len() > 1 {
        let path =
            points.iter().map(|p| format!("{:.1} {:.1}", frame.x(p.minutes), frame.y(p.value)));
        let path = path.collect::<Vec<_>>().join("L");
        let _ = writeln!(svg, "<path class=\"s{colour}\" d=\"M{path}\"/>");
    }
}

/// At most [`MOST_POINTS`] points, each the mean of neighbouring points. Curves with error bars are
/// not reduced.
fn thinned(points: &[Point]) -> Vec<Point> {
    let group = points.len().div_ceil(MOST_POINTS).max(1);
    if group == 1 || points.iter().any(|point| point.bar.is_some()) {
        return points.to_vec();
    }
    let mean = |group: &[Point]| {
        let count = group.len() as f64;
        let of = |number: fn(&Point) -> f64| group.iter().map(number).sum::<f64>() / count;
        Point { minutes: of(|p| p.minutes), value: of(|p| p.value), bar: None }
    };
    points.chunks(group).map(mean).collect()
}

/// A label with as many digits as ticks `step` apart need.
fn label(unit: Unit, number: f64, step: f64) -> String {
    if unit == Unit::Share {
        return format!("{:.0}%", number * 100.0);
    }
    if number == 0.0 {
        return "0".into();
    }
    let (number, step, end) = match number.abs().max(step) {
        size if size >= 1e6 => (number / 1e6, step / 1e6, "M"),
        size if size >= 10e3 => (number / 1e3, step / 1e3, "k"),
        _ => (number, step, ""),
    };
    let decimals = (0..6).find(|&decimals| step * 10f64.powi(decimals) >= 0.999).unwrap_or(6);
    format!("{number:.*}{end}", decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        let point = |&(minutes, value)| Point { minutes, value, bar: None };
        Curve { name: name.into(), points: points.iter().map(point).collect() }
    }

    fn panel(title: &str, unit: Unit, curves: Vec<Curve>) -> Panel {
        Panel { title: title.into(), unit, size: Size::Half, curves }
    }

    #[test]
    fn curves_become_a_picture() {
        let mut elo = curve("", &[(0.0, 100.0), (5.0, 420.0), (10.0, 615.0)]);
        for point in &mut elo.points {
            point.bar = Some((point.value - 60.0, point.value + 70.0));
        }
        let panels = [
            Panel { size: Size::Wide, ..panel("Elo", Unit::Number, vec![elo]) },
            panel(
                "Losses",
                Unit::Number,
                vec![
                    curve("policy", &[(0.0, 3.2), (10.0, 2.1)]),
                    curve("value", &[(0.0, 1.0), (10.0, 0.62)]),
                ],
            ),
            panel(
                "Drawn & <capped>",
                Unit::Share,
                vec![curve("drawn", &[(0.0, 0.1), (10.0, 0.4)])],
            ),
            panel("Simulations a second", Unit::Amount, vec![curve("", &[(3.0, 51_234.0)])]),
        ];
        insta::assert_snapshot!(curves_svg("first", "zero, seed 1", &panels, &[4.0]));
    }

    #[test]
    fn odd_curves_give_finite_pictures() {
        let flat = curve("flat", &[(0.0, 2.0), (1.0, 2.0)]);
        let huge = curve("huge", &[(0.0, -1e300), (1.0, 1e300)]);
        for curves in [vec![], vec![curve("none", &[])], vec![flat], vec![huge]] {
            for unit in [Unit::Number, Unit::Amount, Unit::Share] {
                let svg = curves_svg("", "", &[panel("", unit, curves.clone())], &[f64::NAN, 9.0]);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                assert!(svg.ends_with("</svg>\n"));
            }
        }
    }

    #[test]
    fn long_curves_are_thinned_to_means() {
        let points: Vec<_> = (0..1000).map(|n| (f64::from(n), f64::from(n % 2))).collect();
        let thin = thinned(&curve("", &points).points);
        assert!(thin.len() <= MOST_POINTS);
        assert_eq!(thin[0], Point { minutes: 1.0, value: 1.0 / 3.0, bar: None });
    }

    #[test]
    fn labels_are_as_exact_as_needed() {
        let cases = [(0.25, 0.05, "0.25"), (1500.0, 500.0, "1500"), (51_234.0, 512.0, "51.2k")];
        for (number, step, text) in cases {
            assert_eq!(label(Unit::Number, number, step), text);
        }
        assert_eq!(label(Unit::Share, 0.123, 0.1), "12%");
        assert_eq!(label(Unit::Amount, 0.0, 20_000.0), "0");
    }
}
