//! Draws the scene, as a pure function, for any size of terminal.

mod board;
mod number;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};
use selfmate_selfplay::Stage;

use super::scene::Scene;
use super::spark::{range, spark};
use crate::command::train::lines::clock;
use crate::output::thousands;
use number::{digits, percent, short, whole};

const DIM: Style = Style::new().fg(Color::DarkGray);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// Rows of a section title.
const RULE: u16 = 1;
/// Columns for the game beside the numbers.
const GAME_WIDTH: u16 = 30;
/// Columns for the numbers beside the game.
const NUMBERS_WIDTH: u16 = 44;

/// A curve: label, metric name and format.
type Row = (&'static str, &'static str, fn(f64) -> String);
const ROWS: [Row; 9] = [
    ("value loss", "loss.value", digits),
    ("policy loss", "loss.policy", digits),
    ("divergence", "policy_divergence", digits),
    ("value spread", "value_spread", digits),
    ("draws", "draw_share", percent),
    ("truncated", "truncated_share", percent),
    ("resigned", "resigned_share", percent),
    ("plies/game", "plies", digits),
    ("entropy", "target_entropy", digits),
];

pub fn draw(frame: &mut Frame<'_>, scene: &Scene) {
    let mut rest = frame.area();
    let area = take(&mut rest, 1);
    header(frame, scene, area);
    let area = take(&mut rest, 1);
    stage(frame, scene, area);
    let area = take_last(&mut rest, 1);
    footer(frame, scene, area);
    if rest.height >= 14 {
        let rows = if rest.height >= 30 { 5 } else { 2 };
        let area = take_last(&mut rest, RULE + rows);
        messages(frame, scene, area);
    }
    if rest.width >= NUMBERS_WIDTH + GAME_WIDTH {
        let width = if rest.width >= 110 { 40 } else { GAME_WIDTH };
        let area = Rect { x: rest.right() - width, width, ..rest };
        board::game(frame, scene.game.as_ref(), area);
        rest.width -= width + 1;
    }
    numbers(frame, scene, rest);
}

/// Takes rows from the top of the rest, at most as many as there are.
fn take(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    let area = Rect { height: rows, ..*rest };
    *rest = Rect { y: rest.y + rows, height: rest.height - rows, ..*rest };
    area
}

/// Takes rows from the bottom.
fn take_last(rest: &mut Rect, rows: u16) -> Rect {
    rest.height -= rows.min(rest.height);
    let bottom = rest.bottom();
    Rect { y: bottom, height: rows.min(u16::MAX - bottom), ..*rest }
}

/// Drops columns on the left.
fn take_left(area: &mut Rect, columns: u16) {
    let columns = columns.min(area.width);
    *area = Rect { x: area.x + columns, width: area.width - columns, ..*area };
}

/// Draws a section with its title and returns the area for its content.
fn section(frame: &mut Frame<'_>, title: &str, area: Rect) -> Rect {
    let title = Span::styled(format!(" {title} "), STRONG.fg(Color::Cyan));
    let block = Block::new().borders(Borders::TOP).border_style(DIM).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

fn header(frame: &mut Frame<'_>, scene: &Scene, area: Rect) {
    let title = &scene.title;
    let budget = title.budget;
    let trained = clock(scene.elapsed_s());
    let mut time = format!("trained {}", trained.trim());
    if let Some(left) = scene.left_s() {
        time += &format!(", {} left ", clock(left).trim());
    } else if let Some(games) = budget.games {
        time += &format!(", until {} games ", thousands(games));
    } else if let Some(steps) = budget.steps {
        time += &format!(", until {} steps ", thousands(steps));
    } else {
        time += " ";
    }
    let time = Line::from(time).right_aligned();
    let mut name = Line::styled(format!(" {}", title.run), STRONG);
    let about = format!("  {}, seed {}, {} threads", title.learner, title.seed, title.threads);
    // The time has priority, then the name.
    let room = usize::from(area.width).saturating_sub(time.width() + name.width());
    if about.len() < room {
        name.push_span(Span::raw(about));
    }
    frame.render_widget(name, area);
    if room > 0 {
        frame.render_widget(time, area);
    }
}

/// The current stage and its progress.
fn stage(frame: &mut Frame<'_>, scene: &Scene, area: Rect) {
    let status = &scene.status;
    let (generation, color) = match status.stage {
        Stage::Start => (status.generation, Color::Gray),
        Stage::Play => (status.generation + 1, Color::Green),
        Stage::Learn => (status.generation + 1, Color::Yellow),
        Stage::Rate => (status.generation, Color::Magenta),
    };
    let text = format!(" {:8}  generation {}  ", status.stage.name(), thousands(generation));
    let mut line = Line::from(Span::styled(text, STRONG.fg(color)));
    let room = usize::from(area.width).saturating_sub(line.width() + 7);
    // Rating games do not report their progress.
    if matches!(status.stage, Stage::Play | Stage::Learn) && room >= 4 {
        let done = status.done.clamp(0.0, 1.0);
        let full = (done * room as f64).round() as usize;
        line.push_span(Span::styled("━".repeat(full), Style::new().fg(color)));
        line.push_span(Span::styled("─".repeat(room - full), DIM));
        line.push_span(format!(" {:3.0} %", 100.0 * done));
    } else if status.stage == Stage::Rate {
        line.push_span("games against players of known strength");
    }
    frame.render_widget(line, area);
}

fn footer(frame: &mut Frame<'_>, scene: &Scene, area: Rect) {
    let line = if scene.is_stopping {
        let text = " stopping when everything is saved; press Ctrl-C to stop at once";
        Line::styled(text, STRONG.fg(Color::Yellow))
    } else {
        Line::styled(" q  stop and save; run the same command again to resume", DIM)
    };
    frame.render_widget(line, area);
}

/// Alarms, the newest first, then notes.
fn messages(frame: &mut Frame<'_>, scene: &Scene, area: Rect) {
    let mut inner = section(frame, "Alarms and notes", area);
    take_left(&mut inner, 1);
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut names = Vec::new();
    for alarm in scene.alarms.iter().rev() {
        // Only the newest of each name.
        if names.contains(&&alarm.name) {
            continue;
        }
        names.push(&alarm.name);
        let (time, name) = (clock(alarm.elapsed_s), alarm.name.replace('_', " "));
        lines.push(Line::from(vec![
            format!("{}  ", time.trim()).into(),
            format!("{name} {} (bound {})", digits(alarm.value), digits(alarm.bound)).red().bold(),
            format!(": {}; {}", alarm.meaning, alarm.action).into(),
        ]));
    }
    if lines.is_empty() {
        lines.push(Line::from("no alarms".green()));
    }
    lines.extend(scene.notes.iter().rev().take(3).map(|note| Line::styled(note.as_str(), DIM)));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), inner);
}

/// Totals, ratings and curves, as many as fit.
fn numbers(frame: &mut Frame<'_>, scene: &Scene, mut rest: Rect) {
    let area = take(&mut rest, RULE + 4);
    totals(frame, scene, area);
    let curves = RULE + ROWS.len() as u16;
    let strength = match rest.height.saturating_sub(curves) {
        _ if scene.ratings.is_empty() => 3,
        left => left.saturating_sub(curves).clamp(left.clamp(4, 7), 10),
    };
    let area = take(&mut rest, strength);
    elo(frame, scene, area);
    learning(frame, scene, rest);
}

fn totals(frame: &mut Frame<'_>, scene: &Scene, area: Rect) {
    let inner = section(frame, "Progress", area);
    let status = &scene.status;
    let value = |name: &str, text: fn(f64) -> String| scene.latest(name).map_or("-".into(), text);
    // Short generations cannot be measured while they are played.
    let (games, simulations) = match scene.speed.per_second() {
        Some((games, simulations)) => (short(games), short(simulations)),
        None => (value("games_per_second", short), value("simulations_per_second", short)),
    };
    let cells = [
        ("games", thousands(status.games), "games/s", games),
        ("positions", thousands(status.positions), "sims/s", simulations),
        (
            "sims",
            short(status.simulations as f64),
            "sims/move",
            value("simulations_per_move", whole),
        ),
        ("steps", thousands(status.steps), "learn rate", value("learning_rate", digits)),
    ];
    let gap = if inner.width >= 46 { 5 } else { 1 };
    let lines = cells.map(|(left, total, right, speed)| {
        Line::from(vec![
            Span::styled(format!(" {left:10}"), DIM),
            format!("{total:>10}{:gap$}", "").into(),
            Span::styled(format!("{right:10}"), DIM),
            format!("{speed:>7}").into(),
        ])
    });
    frame.render_widget(Paragraph::new(lines.to_vec()), inner);
}

fn elo(frame: &mut Frame<'_>, scene: &Scene, area: Rect) {
    let inner = section(frame, "Strength", area);
    let title = &scene.title;
    let nodes = title.rating_nodes;
    let how = if inner.width >= 76 {
        format!("at {nodes} nodes per move, against built-in rungs")
    } else {
        format!("{nodes} nodes, built-in rungs")
    };
    let mut lines = Vec::new();
    match scene.ratings.last() {
        Some(rating) => {
            let text = format!(" Elo {:.0} ", rating.elo);
            let interval = format!("[{:.0}, {:.0}] ", rating.low, rating.high);
            lines.push(Line::from(vec![
                Span::styled(text, STRONG),
                interval.into(),
                Span::styled(how, DIM),
            ]));
            let elos: Vec<f64> = scene.ratings.iter().map(|rating| rating.elo).collect();
            let label = match range(&elos) {
                Some((low, high)) if elos.len() > 1 => {
                    format!(" {} ratings, from {low:.0} to {high:.0}", elos.len())
                }
                _ => " first rating".to_owned(),
            };
            let (width, height) = (inner.width.saturating_sub(2), inner.height.saturating_sub(2));
            for row in spark(&elos, width.into(), height.into()) {
                lines.push(Line::styled(format!(" {row}"), Style::new().fg(Color::Cyan)));
            }
            lines.push(Line::styled(label, DIM));
        }
        None if title.rating_seconds > 0.0 => {
            let every = title.rating_seconds;
            lines.push(" not rated yet".into());
            lines.push(Line::styled(format!(" every {every:.0} s: {how}"), DIM));
        }
        None => lines.push(Line::styled(" no ratings: rating.every_seconds is 0", DIM)),
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

fn learning(frame: &mut Frame<'_>, scene: &Scene, area: Rect) {
    let mut rest = section(frame, "Curves, one number per generation", area);
    let shown = ROWS.iter().filter(|(_, key, _)| scene.curves.contains_key(*key));
    let height = (rest.height / ROWS.len() as u16).clamp(1, 3);
    for &(name, key, text) in shown {
        let Some((curve, latest)) = scene.curves.get(key).zip(scene.latest(key)) else { continue };
        let area = take(&mut rest, height);
        let mut lines: Vec<Line<'_>> = Vec::new();
        let bounds = match range(curve) {
            Some((low, high)) if low < high => format!(" {}..{}", text(low), text(high)),
            _ => String::new(),
        };
        let is_wide = area.width >= 56;
        let room = if is_wide { 18 } else { 1 };
        let width = usize::from(area.width).saturating_sub(22 + room);
        let rows = spark(curve, width, area.height.into());
        for (index, row) in rows.iter().enumerate() {
            let is_last = index + 1 == rows.len();
            let (name, latest) = if is_last { (name, text(latest)) } else { ("", String::new()) };
            lines.push(Line::from(vec![
                Span::styled(format!(" {name:12}"), DIM),
                format!("{latest:>7}  ").into(),
                Span::styled(format!("{row:width$}"), Style::new().fg(Color::Blue)),
                Span::styled(if is_last && is_wide { bounds.clone() } else { String::new() }, DIM),
            ]));
        }
        frame.render_widget(Paragraph::new(lines), area);
    }
    if scene.curves.is_empty() && rest.height > 0 {
        frame.render_widget(Line::styled(" curves appear after the first generation", DIM), rest);
    }
}
