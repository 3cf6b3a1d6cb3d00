//! Evaluations, times and clocks in comments, in the two common forms:
//! `+0.31/12 0.45s` (cutechess, fastchess) and `[%eval 0.31] [%clk 0:01:00]` (lichess).

use std::fmt;

use shakmaty::Color;

/// What an engine reported about its move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eval {
    pub score: Option<PovScore>,
    /// In plies.
    pub depth: Option<u32>,
    /// The time spent on the move.
    pub time_ms: Option<u64>,
    /// The remaining time after the move.
    pub clock_ms: Option<u64>,
}

/// A score and its point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PovScore {
    /// From the point of view of the side that moved, as in `+0.31/12`.
    Mover(Score),
    /// From White's point of view, as in `[%eval 0.31]`.
    White(Score),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    Centipawns(i32),
    /// Mate in this many moves (not plies); negative if the other side mates.
    Mate(i32),
}

impl PovScore {
    /// The score from White's point of view, for a move made by `mover`.
    pub fn for_white(self, mover: Color) -> Score {
        match self {
            PovScore::Mover(score) if mover == Color::Black => score.negated(),
            PovScore::Mover(score) | PovScore::White(score) => score,
        }
    }

    /// The score from the point of view of `mover`, who made the move.
    pub fn for_mover(self, mover: Color) -> Score {
        match self {
            PovScore::White(score) if mover == Color::Black => score.negated(),
            PovScore::Mover(score) | PovScore::White(score) => score,
        }
    }
}

impl Score {
    /// The score from the other side's point of view.
    #[must_use]
    pub fn negated(self) -> Score {
        match self {
            Score::Centipawns(value) => Score::Centipawns(value.saturating_neg()),
            Score::Mate(moves) => Score::Mate(moves.saturating_neg()),
        }
    }
}

impl Eval {
    /// Finds an engine's report in a comment; `None` if there is none.
    ///
    /// ```
    /// use selfmate_chess::pgn::{Eval, PovScore, Score};
    /// let eval = Eval::parse("-M3/20 0.1s, Black resigns").unwrap();
    /// assert_eq!(eval.score, Some(PovScore::Mover(Score::Mate(-3))));
    /// assert_eq!((eval.depth, eval.time_ms), (Some(20), Some(100)));
    /// ```
    pub fn parse(comment: &str) -> Option<Eval> {
        let mut eval = Eval::default();
        let mut free = String::new();
        let mut rest = comment;
        while let Some((before, command)) = rest.split_once("[%") {
            let Some((command, after)) = command.split_once(']') else { break };
            free.push_str(before);
            free.push(' ');
            eval.command(command.trim());
            rest = after;
        }
        free.push_str(rest);
        eval.plain(&free);
        (eval != Eval::default()).then_some(eval)
    }

    fn command(&mut self, command: &str) {
        let Some((name, value)) = command.split_once(char::is_whitespace) else { return };
        let value = value.trim();
        match name {
            "eval" => {
                let (score, depth) = value.split_once(',').unwrap_or((value, ""));
                let score = match score.strip_prefix('#') {
                    Some(moves) => moves.parse().ok().map(Score::Mate),
                    None => centipawns(score),
                };
                self.score = score.map(PovScore::White).or(self.score);
                self.depth = depth.trim().parse().ok().or(self.depth);
            }
            "clk" => self.clock_ms = clock(value).or(self.clock_ms),
            "emt" => self.time_ms = clock(value).or(self.time_ms),
            _ => {}
        }
    }

    /// `+0.31/12 0.45s`: the first word of this form, then an optional time.
    fn plain(&mut self, text: &str) {
        let mut words = text.split_whitespace().map(|word| word.trim_end_matches([',', ';']));
        let mut first = true;
        let found = words.by_ref().find_map(|word| {
            let is_first = std::mem::take(&mut first);
            // Later in the text, a signed number without a depth is part of a sentence.
            score_and_depth(word).filter(|(_, depth)| is_first || depth.is_some())
        });
        let Some((score, depth)) = found else {
            // Players without scores, such as the random player, report only their time.
            let first = text.split_whitespace().next().unwrap_or("");
            self.time_ms = self.time_ms.or_else(|| seconds(first));
            return;
        };
        self.score = self.score.or(Some(PovScore::Mover(score)));
        self.depth = self.depth.or(depth);
        self.time_ms = self.time_ms.or_else(|| seconds(words.next()?));
    }
}

impl fmt::Display for Eval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match (self.score, self.depth) {
            (Some(PovScore::Mover(score)), Some(depth)) => parts.push(format!("{score}/{depth}")),
            (Some(PovScore::Mover(score)), None) => parts.push(format!("{score}")),
            _ => {}
        }
        if let Some(time) = self.time_ms {
            parts.push(format!("{}s", Seconds(time)));
        }
        if let Some(PovScore::White(score)) = self.score {
            let depth = self.depth.map(|depth| format!(",{depth}")).unwrap_or_default();
            parts.push(match score {
                Score::Centipawns(_) => {
                    format!("[%eval {}{depth}]", score.to_string().trim_start_matches('+'))
                }
                Score::Mate(moves) => format!("[%eval #{moves}{depth}]"),
            });
        }
        if let Some(clock) = self.clock_ms {
            let (hours, minutes) = (clock / 3_600_000, clock / 60_000 % 60);
            let seconds = clock % 60_000;
            let pad = if seconds < 10_000 { "0" } else { "" };
            parts.push(format!("[%clk {hours}:{minutes:02}:{pad}{}]", Seconds(seconds)));
        }
        f.write_str(&parts.join(" "))
    }
}

impl fmt::Display for Score {
    /// Always with a sign, so that a score without a depth is recognised.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Score::Centipawns(value) => {
                let (sign, value) = (if value < 0 { '-' } else { '+' }, value.unsigned_abs());
                write!(f, "{sign}{}.{:02}", value / 100, value % 100)
            }
            // Mate in 0: the side is mated.
            Score::Mate(moves) => {
                let sign = if moves > 0 { '+' } else { '-' };
                write!(f, "{sign}M{}", moves.unsigned_abs())
            }
        }
    }
}

/// Milliseconds written as seconds, without trailing zeros.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:03}", self.0 / 1000, self.0 % 1000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// `+0.31/12`, `0.00/7`, `-M3/20`. Without a depth only with a sign, because `1/2` is a result.
fn score_and_depth(word: &str) -> Option<(Score, Option<u32>)> {
    let signed = word.starts_with(['+', '-']);
    let (score, depth) = match word.split_once('/') {
        Some((score, depth)) => (score, Some(depth.parse().ok()?)),
        None if signed => (word, None),
        None => return None,
    };
    let unsigned = score.trim_start_matches(['+', '-']);
    if let Some(moves) = unsigned.strip_prefix(['M', '#']) {
        let moves = i32::try_from(moves.parse::<u32>().ok()?).ok()?;
        return Some((Score::Mate(if score.starts_with('-') { -moves } else { moves }), depth));
    }
    unsigned.contains('.').then_some(())?;
    Some((centipawns(score)?, depth))
}

fn centipawns(text: &str) -> Option<Score> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    let value: f64 = text.parse().ok().filter(|_| plain)?;
    let value = (value * 100.0).round();
    (value.abs() <= f64::from(i32::MAX)).then_some(Score::Centipawns(value as i32))
}

/// `0.45s`
fn seconds(word: &str) -> Option<u64> {
    milliseconds(word.strip_suffix('s')?)
}

/// `1:02:03`, `2:03.5`
fn clock(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    for part in text.split(':') {
        total = total.checked_mul(60)?.checked_add(milliseconds(part)?)?;
    }
    Some(total)
}

fn milliseconds(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| plain)?;
    // Ten thousand years. A larger float could not represent single milliseconds.
    (seconds < 3.2e11).then_some((seconds * 1000.0).round() as u64)
}
