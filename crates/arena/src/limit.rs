//! Search limits: those of a match, as stored in its file, and those that a spec sets for its
//! player.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use selfmate_search::player::Limit;
use serde::{Deserialize, Serialize};

use crate::spec::{SpecError, SpecOptions};

/// The limit per move of both players of a match, as stored. With nothing set, each player uses its
/// own default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatchLimit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub movetime_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<TimeControl>,
}

impl MatchLimit {
    /// Simulations (tree search) or nodes (alpha-beta, other engines) per move.
    pub fn nodes(nodes: u64) -> MatchLimit {
        MatchLimit { nodes: Some(nodes), ..MatchLimit::default() }
    }

    pub fn movetime(milliseconds: u64) -> MatchLimit {
        MatchLimit { movetime_ms: Some(milliseconds), ..MatchLimit::default() }
    }

    /// The limit of one move without a clock, which ends early when `stop` is set.
    pub fn to_limit(&self, stop: &Arc<AtomicBool>) -> Limit {
        Limit {
            nodes: self.nodes,
            depth: self.depth,
            movetime: self.movetime_ms.map(Duration::from_millis),
            stop: Some(Arc::clone(stop)),
            ..Limit::default()
        }
    }
}

impl fmt::Display for MatchLimit {
    /// As in a PGN's `TimeControl` tag and in table headings; `-` without a limit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.clock.map(|clock| clock.to_string()),
            self.movetime_ms.map(|time| format!("{} s/move", time as f64 / 1000.0)),
            self.nodes.map(|nodes| format!("{nodes} nodes")),
            self.depth.map(|depth| format!("depth {depth}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "-" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// A clock with an increment, for the whole game or for a number of moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TimeControl {
    /// Time at the start, added again after each `moves` moves.
    pub base_ms: u64,
    pub increment_ms: u64,
    /// Moves per `base_ms`; `None` for the whole game.
    pub moves: Option<u32>,
}

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

/// Converts seconds with decimals, at most a year.
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

/// The limit that a spec sets for its player, from the options `nodes`, `depth` and `movetime`
/// (milliseconds), as far as the kind has them.
pub(crate) fn from_options(options: &SpecOptions<'_>) -> Result<Limit, SpecError> {
    let depth = options.number("depth", 1..=200)?;
    Ok(Limit {
        nodes: options.number("nodes", 1..=u64::MAX)?,
        depth: depth.and_then(|depth| u32::try_from(depth).ok()),
        movetime: options.number("movetime", 1..=86_400_000)?.map(Duration::from_millis),
        ..Limit::default()
    })
}

/// The limit of one move. If the spec sets any limit, its nodes and depth replace those of the
/// match, and the shorter move time counts. `default` is used where neither sets a limit. Of `own`
/// and `default` only nodes, depth and move time are used.
pub(crate) fn merge(own: &Limit, of_match: &Limit, default: &Limit) -> Limit {
    let mut merged = of_match.clone();
    if own.nodes.is_some() || own.depth.is_some() || own.movetime.is_some() {
        (merged.nodes, merged.depth) = (own.nodes, own.depth);
        merged.movetime = [own.movetime, of_match.movetime].into_iter().flatten().min();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_controls_are_read_in_the_usual_notation() {
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
    fn a_spec_sets_nodes_and_depth_and_the_match_bounds_the_time() {
        let default = Limit::nodes(400);
        let timed = Limit::movetime(Duration::from_millis(50));
        let (own, unset) = (Limit::depth(3), Limit::default());
        let merged = merge(&own, &timed, &default);
        assert_eq!((merged.depth, merged.movetime), (Some(3), timed.movetime));
        assert_eq!(merge(&own, &Limit::nodes(9), &default).nodes, None);
        assert_eq!(merge(&unset, &Limit::nodes(9), &default).nodes, Some(9));
        assert_eq!(merge(&unset, &timed, &default).nodes, None);
        assert_eq!(merge(&unset, &unset, &default).nodes, Some(400));
    }
}
