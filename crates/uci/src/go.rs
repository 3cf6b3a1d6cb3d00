//! The `go` command: what to search, and when to stop.
//!
//! Plain data. [`crate::clock`] turns clocks into a budget for one move.

use std::fmt;
use std::str::SplitWhitespace;

use selfmate_chess::{Color, Game, Move};
use shakmaty::uci::UciMove;

use crate::clock::{Clock, TimeBudget};

/// The limits of one search. Without any limit the search runs until `stop`.
///
/// ```
/// use selfmate_chess::Color;
/// use selfmate_uci::{Command, Go};
///
/// let Command::Go(go) = Command::parse("go wtime 60000 btime 50000 winc 1000 binc 1000") else {
///     panic!("expected a go command");
/// };
/// assert_eq!((go.wtime, go.depth), (Some(60_000), None));
/// let budget = go.budget(Color::White, 10).expect("time is limited");
/// assert!(budget.optimum_ms < budget.maximum_ms);
///
/// assert_eq!(Go::nodes(800).to_string(), "go nodes 800");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Go {
    /// Search only these moves; all if empty.
    pub searchmoves: Vec<UciMove>,
    /// Search on the opponent's time, until `ponderhit` or `stop`.
    pub ponder: bool,
    /// White's remaining time, in milliseconds.
    pub wtime: Option<u64>,
    /// Black's remaining time, in milliseconds.
    pub btime: Option<u64>,
    /// White's increment per move, in milliseconds.
    pub winc: Option<u64>,
    /// Black's increment per move, in milliseconds.
    pub binc: Option<u64>,
    /// Moves to the next time control.
    pub movestogo: Option<u32>,
    /// In plies.
    pub depth: Option<u32>,
    /// Nodes or simulations.
    pub nodes: Option<u64>,
    /// Search for a mate in this many moves.
    pub mate: Option<u32>,
    /// Time for this move, in milliseconds.
    pub movetime: Option<u64>,
    /// Search until `stop`, whatever else is set.
    pub infinite: bool,
    /// Count the leaves of the move tree instead of searching (not UCI).
    pub perft: Option<u32>,
}

impl Go {
    pub fn nodes(nodes: u64) -> Go {
        Go { nodes: Some(nodes), ..Go::default() }
    }

    pub fn depth(depth: u32) -> Go {
        Go { depth: Some(depth), ..Go::default() }
    }

    pub fn movetime(milliseconds: u64) -> Go {
        Go { movetime: Some(milliseconds), ..Go::default() }
    }

    /// Parses what follows the word `go`. Unknown words and limits without a number are skipped.
    /// Negative numbers count as 0: GUIs send them when the time is about to run out.
    pub fn parse(text: &str) -> Go {
        let mut go = Go::default();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "searchmoves" => {
                    while let Some(m) = next_move(&mut words) {
                        go.searchmoves.push(m);
                    }
                }
                "ponder" => go.ponder = true,
                "infinite" => go.infinite = true,
                "wtime" => set(&mut go.wtime, &mut words),
                "btime" => set(&mut go.btime, &mut words),
                "winc" => set(&mut go.winc, &mut words),
                "binc" => set(&mut go.binc, &mut words),
                "movestogo" => set(&mut go.movestogo, &mut words),
                "depth" => set(&mut go.depth, &mut words),
                "nodes" => set(&mut go.nodes, &mut words),
                "mate" => set(&mut go.mate, &mut words),
                "movetime" => set(&mut go.movetime, &mut words),
                "perft" => set(&mut go.perft, &mut words),
                _ => {}
            }
        }
        go
    }

    /// The clock of one side; `None` without a time control.
    pub fn clock(&self, turn: Color, overhead_ms: u64) -> Option<Clock> {
        // As in Stockfish: a side without a given time has none left and must move at once.
        self.wtime.or(self.btime)?;
        let (time, increment) = turn.fold_wb((self.wtime, self.winc), (self.btime, self.binc));
        Some(Clock {
            remaining_ms: time.unwrap_or(0),
            increment_ms: increment.unwrap_or(0),
            moves_to_go: self.movestogo.filter(|moves| *moves > 0),
            overhead_ms,
        })
    }

    /// The time for this move from the clock and `movetime`; `None` if time is not limited.
    pub fn budget(&self, turn: Color, overhead_ms: u64) -> Option<TimeBudget> {
        if self.infinite {
            return None;
        }
        let clock = self.clock(turn, overhead_ms).map(Clock::budget);
        match (clock, self.movetime.map(TimeBudget::exactly)) {
            (Some(clock), Some(movetime)) => Some(clock.min(movetime)),
            (clock, movetime) => clock.or(movetime),
        }
    }

    /// The legal moves among `searchmoves`; all legal moves if it contains none.
    pub fn root_moves(&self, game: &Game) -> Vec<Move> {
        let named: Vec<Move> =
            self.searchmoves.iter().filter_map(|uci| uci.to_move(game.position()).ok()).collect();
        if named.is_empty() { game.legal_moves().to_vec() } else { named }
    }
}

impl fmt::Display for Go {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("go")?;
        if self.ponder {
            f.write_str(" ponder")?;
        }
        let numbers = [
            ("wtime", self.wtime),
            ("btime", self.btime),
            ("winc", self.winc),
            ("binc", self.binc),
            ("movestogo", self.movestogo.map(u64::from)),
            ("depth", self.depth.map(u64::from)),
            ("nodes", self.nodes),
            ("mate", self.mate.map(u64::from)),
            ("movetime", self.movetime),
            ("perft", self.perft.map(u64::from)),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                write!(f, " {name} {value}")?;
            }
        }
        if self.infinite {
            f.write_str(" infinite")?;
        }
        // Last, because some engines read everything that follows as moves.
        if !self.searchmoves.is_empty() {
            f.write_str(" searchmoves")?;
            for m in &self.searchmoves {
                write!(f, " {m}")?;
            }
        }
        Ok(())
    }
}

/// Takes the next word if it is a move.
pub(crate) fn next_move(words: &mut SplitWhitespace<'_>) -> Option<UciMove> {
    let m = words.clone().next()?.parse().ok()?;
    words.next();
    Some(m)
}

/// Takes the next word if it is an integer. Clamps it to the range.
pub(crate) fn next_number(words: &mut SplitWhitespace<'_>, min: i128, max: i128) -> Option<i128> {
    let word = words.clone().next()?;
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    words.next();
    let overflow = if word.starts_with('-') { i128::MIN } else { i128::MAX };
    Some(word.parse().unwrap_or(overflow).clamp(min, max))
}

/// The integer types of message fields.
pub(crate) trait Number: TryFrom<i128> {
    const RANGE: (i128, i128);
}

impl Number for u16 {
    const RANGE: (i128, i128) = (0, u16::MAX as i128);
}

impl Number for u32 {
    const RANGE: (i128, i128) = (0, u32::MAX as i128);
}

impl Number for u64 {
    const RANGE: (i128, i128) = (0, u64::MAX as i128);
}

impl Number for i32 {
    const RANGE: (i128, i128) = (i32::MIN as i128, i32::MAX as i128);
}

/// Sets `field` from the next word. Does nothing if that is not a number.
pub(crate) fn set<T: Number>(field: &mut Option<T>, words: &mut SplitWhitespace<'_>) {
    if let Some(value) = next_number(words, T::RANGE.0, T::RANGE.1) {
        *field = T::try_from(value).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_parsed() {
        let go = Go::parse(
            "wtime 1000 btime 2000 winc 10 binc 20 movestogo 5 depth 6 nodes 7 mate 8 \
             movetime 9 infinite ponder searchmoves e2e4 d2d4 perft 3",
        );
        let moves: Vec<String> = go.searchmoves.iter().map(ToString::to_string).collect();
        assert_eq!(moves, ["e2e4", "d2d4"]);
        assert_eq!(
            (go.wtime, go.btime, go.winc, go.binc),
            (Some(1000), Some(2000), Some(10), Some(20))
        );
        assert_eq!((go.movestogo, go.depth, go.nodes), (Some(5), Some(6), Some(7)));
        assert_eq!((go.mate, go.movetime, go.perft), (Some(8), Some(9), Some(3)));
        assert!(go.infinite && go.ponder);
    }

    #[test]
    fn numbers_out_of_range_are_clamped_and_bad_ones_skipped() {
        assert_eq!(Go::parse("wtime -35").wtime, Some(0));
        assert_eq!(
            Go::parse("depth 99999999999999999999999999999999999999999").depth,
            Some(u32::MAX)
        );
        assert_eq!(Go::parse("wtime -99999999999999999999999999999999999999999").wtime, Some(0));
        let go = Go::parse("depth movetime 50");
        assert_eq!((go.depth, go.movetime), (None, Some(50)));
        assert_eq!(Go::parse("movetime 1.5 - + nodes"), Go::default());
    }

    #[test]
    fn root_moves_ignore_illegal_moves() {
        let game = Game::new();
        assert_eq!(Go::parse("searchmoves e2e4 e2e5").root_moves(&game).len(), 1);
        assert_eq!(Go::parse("searchmoves e2e5").root_moves(&game).len(), 20);
    }

    #[test]
    fn a_side_without_a_given_time_moves_at_once() {
        let go = Go::parse("wtime 60000");
        assert!(go.budget(Color::White, 10).unwrap().maximum_ms > 1000);
        assert_eq!(go.budget(Color::Black, 10).unwrap().maximum_ms, 0);
        assert_eq!(Go::parse("depth 3").budget(Color::White, 10), None);
        assert_eq!(
            Go::parse("movetime 70").budget(Color::White, 10),
            Some(TimeBudget::exactly(70))
        );
    }
}
