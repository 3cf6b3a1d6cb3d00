//! How long players may think: a match's limits, and those a spec sets for its player alone.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use selfmate_search::player::Limit;
use serde::{Deserialize, Serialize};

use crate::spec::{SpecError, SpecOptions};

/// How long both players of a match may think. Nothing set: each as its own default says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MoveLimit {
    /// Simulations or nodes for each move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    /// Plies of search for each move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Milliseconds for each move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub movetime_ms: Option<u64>,
    /// A clock for the game.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<TimeControl>,
}

impl MoveLimit {
    /// So many simulations or nodes.
    pub fn nodes(nodes: u64) -> MoveLimit {
        MoveLimit { nodes: Some(nodes), ..MoveLimit::default() }
    }

    /// So many milliseconds.
    pub fn movetime(milliseconds: u64) -> MoveLimit {
        MoveLimit { movetime_ms: Some(milliseconds), ..MoveLimit::default() }
    }
}

impl fmt::Display for MoveLimit {
    /// As a PGN's `TimeControl` and a table's heading show it; `-` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.clock.map(|clock| clock.to_string()),
            self.movetime_ms.map(|time| format!("{} s/move", time as f64 / 1000.0)),
            // Each player counts what its search is made of.
            self.nodes.map(|nodes| format!("{nodes} simulations or nodes")),
            self.depth.map(|depth| format!("depth {depth}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "-" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// A clock with an increment, for all moves or for each so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TimeControl {
    /// Time at the start, and again after each `moves`.
    pub base_ms: u64,
    /// Time added after each move.
    pub increment_ms: u64,
    /// Moves for each `base_ms`; `None` for the whole game.
    pub moves: Option<u32>,
}

/// A text that is no time control.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time control '{0}': expected SECONDS+INCREMENT, such as 10+0.1, 1:30+1 or 40/60+0.6")]
pub struct TimeControlError(String);

impl FromStr for TimeControl {
    type Err = TimeControlError;

    fn from_str(text: &str) -> Result<TimeControl, TimeControlError> {
        let parse = || {
            let (moves, rest) = match text.trim().split_once('/') {
                Some((moves, rest)) => (Some(moves.parse().ok().filter(|n| *n > 0)?), rest),
                None => (None, text.trim()),
            };
            let (base, increment) = rest.split_once('+').unwrap_or((rest, "0"));
            let base_ms = match base.split_once(':') {
                Some((minutes, seconds)) => {
                    60_000 * minutes.parse::<u32>().ok().map(u64::from)? + milliseconds(seconds)?
                }
                None => milliseconds(base)?,
            };
            let increment_ms = milliseconds(increment)?;
            (base_ms > 0).then_some(TimeControl { base_ms, increment_ms, moves })
        };
        parse().ok_or_else(|| TimeControlError(text.to_owned()))
    }
}

/// Seconds with decimals; at most a year.
fn milliseconds(text: &str) -> Option<u64> {
    let seconds: f64 = text.parse().ok()?;
    (0.0..=31_536_000.0).contains(&seconds).then_some((seconds * 1000.0).round() as u64)
}

impl fmt::Display for TimeControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(moves) = self.moves {
            write!(f, "{moves}/")?;
        }
        write!(f, "{}", self.base_ms as f64 / 1000.0)?;
        match self.increment_ms {
            0 => Ok(()),
            increment => write!(f, "+{}", increment as f64 / 1000.0),
        }
    }
}

impl From<TimeControl> for String {
    fn from(control: TimeControl) -> String {
        control.to_string()
    }
}

impl TryFrom<String> for TimeControl {
    type Error = TimeControlError;

    fn try_from(text: String) -> Result<TimeControl, TimeControlError> {
        text.parse()
    }
}

/// What a spec allows its player, whatever the match says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecLimit {
    /// Simulations or nodes for each move.
    pub nodes: Option<u64>,
    /// Plies of search for each move.
    pub depth: Option<u32>,
    /// Time for each move.
    pub movetime: Option<Duration>,
}

impl SpecLimit {
    /// From the options `nodes`, `depth` and `movetime` (milliseconds), as far as a kind has them.
    pub fn from_options(options: &SpecOptions<'_>) -> Result<SpecLimit, SpecError> {
        let depth = options.number("depth", 1..=200)?;
        Ok(SpecLimit {
            nodes: options.number("nodes", 1..=u64::MAX)?,
            depth: depth.and_then(|depth| u32::try_from(depth).ok()),
            movetime: options.number("movetime", 1..=86_400_000)?.map(Duration::from_millis),
        })
    }

    /// The limit that holds for a move: the spec's own effort instead of the match's, the
    /// match's time as an upper bound, and `default` where nobody sets anything.
    pub fn within(self, limit: &Limit, default: SpecLimit) -> Limit {
        let mut merged = limit.clone();
        if self != SpecLimit::default() {
            (merged.nodes, merged.depth) = (self.nodes, self.depth);
            merged.movetime = [self.movetime, limit.movetime].into_iter().flatten().min();
        }
        let unlimited = merged.nodes.is_none()
            && merged.depth.is_none()
            && merged.movetime.is_none()
            && merged.clock.is_none();
        if unlimited {
            merged.nodes = default.nodes;
            merged.depth = default.depth;
            merged.movetime = default.movetime;
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_controls_are_read_as_match_runners_write_them() {
        let control = |base_ms, increment_ms, moves| TimeControl { base_ms, increment_ms, moves };
        for (text, expected) in [
            ("10+0.1", control(10_000, 100, None)),
            ("0.5", control(500, 0, None)),
            ("40/60+0.6", control(60_000, 600, Some(40))),
            ("1:30+1", control(90_000, 1000, None)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
        }
        for text in ["", "x", "-1", "0", "1+x", "0/5", "1e99", "NaN", "inf+1"] {
            assert!(text.parse::<TimeControl>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_spec_decides_the_effort_and_the_match_the_time() {
        let default = SpecLimit { nodes: Some(400), ..SpecLimit::default() };
        let timed = Limit::movetime(Duration::from_millis(50));
        let own = SpecLimit { depth: Some(3), ..SpecLimit::default() };
        let merged = own.within(&timed, default);
        assert_eq!((merged.depth, merged.movetime), (Some(3), timed.movetime));
        assert_eq!(own.within(&Limit::nodes(9), default).nodes, None);
        assert_eq!(SpecLimit::default().within(&Limit::nodes(9), default).nodes, Some(9));
        assert_eq!(SpecLimit::default().within(&timed, default).nodes, None);
        assert_eq!(SpecLimit::default().within(&Limit::default(), default).nodes, Some(400));
    }
}
