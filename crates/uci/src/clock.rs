//! Time management: from the clock to a budget for one move.
//!
//! Pure arithmetic on milliseconds. The searcher aims at the optimum, may go on up to the maximum
//! when the position is unclear, and never beyond. Measuring time is the searcher's business.

/// One side's clock, as a `go` command gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Time left.
    pub remaining_ms: u64,
    /// Time added after each move.
    pub increment_ms: u64,
    /// Moves until more time is added, this one included; `None` for the rest of the game.
    pub moves_to_go: Option<u32>,
    /// Time lost on each move between the searcher and the clock.
    pub overhead_ms: u64,
}

/// How long to think about one move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Do not start another iteration after this long.
    pub optimum_ms: u64,
    /// Stop at once after this long.
    pub maximum_ms: u64,
}

/// How many moves the rest of a game is taken to last: few enough to use the time while the game
/// is still open, as Stockfish and others do.
const HORIZON: u64 = 40;

impl Clock {
    /// The budget for this move.
    ///
    /// It never exceeds the remaining time less the overhead; with less left than that, it is 0:
    /// move at once.
    ///
    /// ```
    /// use selfmate_uci::Clock;
    /// let blitz = Clock { remaining_ms: 180_000, increment_ms: 2000, moves_to_go: None, overhead_ms: 10 };
    /// assert_eq!(blitz.budget().optimum_ms, 6440);
    /// ```
    pub fn budget(self) -> Budget {
        let available = self.remaining_ms.saturating_sub(self.overhead_ms);
        let moves = self.moves_to_go.map_or(HORIZON, |moves| u64::from(moves).clamp(1, HORIZON));
        if moves == 1 {
            // More time comes after this move, so that all of it may be used.
            return Budget { optimum_ms: portion(available, 80), maximum_ms: available };
        }
        // The time of all these moves, had they been played already, in equal shares.
        let gained = self.increment_ms.saturating_mul(moves - 1);
        let lost = self.overhead_ms.saturating_mul(moves - 1);
        let total = available.saturating_add(gained).saturating_sub(lost);
        // When overheads would eat it all, half a share of what is there must do. An increment
        // comes only after the move: before it, a bounded part of what is there. A quarter leaves
        // three increments in reserve once a game lives on them, for a machine that is slow to wake.
        let share = (total / moves).max(available / (2 * moves));
        let optimum_ms = share.min(portion(available, 25));
        let maximum_ms = optimum_ms.saturating_mul(4).min(portion(available, 50)).max(optimum_ms);
        Budget { optimum_ms, maximum_ms }
    }
}

impl Budget {
    /// Exactly this long.
    pub fn exactly(milliseconds: u64) -> Budget {
        Budget { optimum_ms: milliseconds, maximum_ms: milliseconds }
    }

    /// The shorter of both in both parts.
    #[must_use]
    pub fn min(self, other: Budget) -> Budget {
        Budget {
            optimum_ms: self.optimum_ms.min(other.optimum_ms),
            maximum_ms: self.maximum_ms.min(other.maximum_ms),
        }
    }
}

fn portion(value: u64, percent: u64) -> u64 {
    // A part of a u64 always fits in one; the detour keeps the product from overflowing.
    u64::try_from(u128::from(value) * u128::from(percent) / 100).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clock(remaining_ms: u64, increment_ms: u64, moves_to_go: Option<u32>) -> Clock {
        Clock { remaining_ms, increment_ms, moves_to_go, overhead_ms: 10 }
    }

    #[test]
    fn sudden_death_spends_a_fortieth() {
        let budget = clock(60_000, 0, None).budget();
        assert!((1400..1500).contains(&budget.optimum_ms), "{budget:?}");
        assert!(budget.maximum_ms > 2 * budget.optimum_ms);
    }

    #[test]
    fn an_increment_is_spent_as_it_comes() {
        // With hardly any time left, the increment must not be spent before it arrives.
        assert_eq!(clock(100, 1000, None).budget(), Budget { optimum_ms: 22, maximum_ms: 45 });
        let long = clock(60_000, 1000, None).budget();
        let sudden = clock(60_000, 0, None).budget();
        assert!((900..1000).contains(&(long.optimum_ms - sudden.optimum_ms)));
    }

    #[test]
    fn the_last_move_before_the_control_may_use_it_all() {
        assert_eq!(clock(1010, 0, Some(1)).budget(), Budget { optimum_ms: 800, maximum_ms: 1000 });
    }

    #[test]
    fn nothing_left_means_at_once() {
        for remaining in [0, 1, 10] {
            for moves in [None, Some(1), Some(40)] {
                assert_eq!(clock(remaining, 0, moves).budget(), Budget::exactly(0));
            }
        }
    }

    #[test]
    fn a_game_of_optimum_moves_never_runs_out() {
        for (time, increment) in [(1000, 0), (1000, 100), (10_000, 100), (60_000, 0)] {
            let mut clock = clock(time, increment, None);
            for _ in 0..300 {
                let spent = clock.budget().maximum_ms + clock.overhead_ms;
                if clock.budget().maximum_ms > 0 {
                    assert!(spent <= clock.remaining_ms, "{clock:?}");
                }
                clock.remaining_ms = clock.remaining_ms.saturating_sub(spent) + increment;
            }
        }
    }

    proptest! {
        #[test]
        fn never_more_than_there_is(
            remaining_ms: u64,
            increment_ms: u64,
            moves_to_go: Option<u32>,
            overhead_ms: u64,
        ) {
            let budget = Clock { remaining_ms, increment_ms, moves_to_go, overhead_ms }.budget();
            prop_assert!(budget.optimum_ms <= budget.maximum_ms);
            prop_assert!(budget.maximum_ms <= remaining_ms.saturating_sub(overhead_ms));
        }
    }
}
