//! Time management: from the clock to a budget for one move.
//!
//! Pure arithmetic on milliseconds. A search aims at the optimum and may go on up to the maximum if
//! the position is unclear, but never beyond. Measuring time is left to the search.

/// The clock of one side, as given by a `go` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    pub remaining_ms: u64,
    /// Added after each move.
    pub increment_ms: u64,
    /// Moves to the next time control, this one included; `None` for sudden death.
    pub moves_to_go: Option<u32>,
    /// Time lost per move to communication.
    pub overhead_ms: u64,
}

/// The time for one move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBudget {
    /// No new iteration should start after this time.
    pub optimum_ms: u64,
    /// The search must stop at this time.
    pub maximum_ms: u64,
}

/// The constants of the time manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeConstants {
    /// The assumed number of moves left in a game. Small enough to spend most of the time while the
    /// game is still undecided, as Stockfish and others do.
    pub moves_left: u64,
    /// The maximum of a move in percent of its optimum.
    pub maximum: u64,
    /// The largest optimum in percent of the available time.
    pub optimum_cap: u64,
    /// The largest maximum in percent of the available time, at most 100.
    pub maximum_cap: u64,
}

impl Default for TimeConstants {
    fn default() -> TimeConstants {
        TimeConstants { moves_left: 40, maximum: 400, optimum_cap: 25, maximum_cap: 50 }
    }
}

impl Clock {
    /// The budget for this move.
    ///
    /// It never exceeds the remaining time minus the overhead. If that is negative it is 0: move at
    /// once.
    ///
    /// ```
    /// use selfmate_uci::Clock;
    /// let blitz = Clock { remaining_ms: 180_000, increment_ms: 2000, moves_to_go: None, overhead_ms: 10 };
    /// assert_eq!(blitz.budget().optimum_ms, 6440);
    /// ```
    pub fn budget(self) -> TimeBudget {
        self.budget_with(&TimeConstants::default())
    }

    /// The budget for this move with these constants. The unit is arbitrary: nodes work as well.
    pub fn budget_with(self, constants: &TimeConstants) -> TimeBudget {
        let available = self.remaining_ms.saturating_sub(self.overhead_ms);
        let moves_left = constants.moves_left.max(1);
        let moves =
            self.moves_to_go.map_or(moves_left, |moves| u64::from(moves).clamp(1, moves_left));
        if moves == 1 {
            // New time is added after this move, so all of it may be used.
            return TimeBudget { optimum_ms: portion(available, 80), maximum_ms: available };
        }
        // All time for the moves left, in equal shares.
        let gained = self.increment_ms.saturating_mul(moves - 1);
        let lost = self.overhead_ms.saturating_mul(moves - 1);
        let total = available.saturating_add(gained).saturating_sub(lost);
        // If overheads use up everything, take half a share of the available time. The increment comes
        // only after the move, so a move gets at most a quarter (`optimum_cap`) of the available time. In
        // games that depend on the increment this keeps a reserve of three increments for a machine
        // that is slow to respond.
        let share = (total / moves).max(available / moves.saturating_mul(2));
        let cap = portion(available, constants.maximum_cap.min(100));
        let optimum_ms = share.min(portion(available, constants.optimum_cap)).min(cap);
        let maximum_ms = portion(optimum_ms, constants.maximum).min(cap).max(optimum_ms);
        TimeBudget { optimum_ms, maximum_ms }
    }
}

impl TimeBudget {
    pub fn exactly(milliseconds: u64) -> TimeBudget {
        TimeBudget { optimum_ms: milliseconds, maximum_ms: milliseconds }
    }

    /// The shorter optimum and the shorter maximum.
    #[must_use]
    pub fn min(self, other: TimeBudget) -> TimeBudget {
        TimeBudget {
            optimum_ms: self.optimum_ms.min(other.optimum_ms),
            maximum_ms: self.maximum_ms.min(other.maximum_ms),
        }
    }
}

fn portion(value: u64, percent: u64) -> u64 {
    // u128 keeps the product from overflowing.
    u64::try_from(u128::from(value) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clock(remaining_ms: u64, increment_ms: u64, moves_to_go: Option<u32>) -> Clock {
        Clock { remaining_ms, increment_ms, moves_to_go, overhead_ms: 10 }
    }

    #[test]
    fn sudden_death_uses_a_fortieth_of_the_time() {
        let budget = clock(60_000, 0, None).budget();
        assert!((1400..1500).contains(&budget.optimum_ms), "{budget:?}");
        assert!(budget.maximum_ms > 2 * budget.optimum_ms);
    }

    #[test]
    fn an_increment_is_used_only_after_it_is_added() {
        // With little time left, the increment must not be used before it is added.
        assert_eq!(clock(100, 1000, None).budget(), TimeBudget { optimum_ms: 22, maximum_ms: 45 });
        let long = clock(60_000, 1000, None).budget();
        let sudden = clock(60_000, 0, None).budget();
        assert!((900..1000).contains(&(long.optimum_ms - sudden.optimum_ms)));
    }

    #[test]
    fn constants_change_the_shares() {
        let clock = clock(60_010, 0, None);
        let constants = TimeConstants { moves_left: 20, maximum: 200, ..TimeConstants::default() };
        let (usual, other) = (clock.budget(), clock.budget_with(&constants));
        assert!(other.optimum_ms > 3 * usual.optimum_ms / 2, "{other:?}");
        assert_eq!(other.maximum_ms, 2 * other.optimum_ms);
    }

    #[test]
    fn the_last_move_before_the_time_control_may_use_all_time() {
        assert_eq!(
            clock(1010, 0, Some(1)).budget(),
            TimeBudget { optimum_ms: 800, maximum_ms: 1000 }
        );
    }

    #[test]
    fn without_time_left_the_budget_is_zero() {
        for remaining in [0, 1, 10] {
            for moves in [None, Some(1), Some(40)] {
                assert_eq!(clock(remaining, 0, moves).budget(), TimeBudget::exactly(0));
            }
        }
    }

    #[test]
    fn a_game_of_maximum_budgets_never_runs_out_of_time() {
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
        fn a_budget_never_exceeds_the_available_time(
            remaining_ms: u64,
            increment_ms: u64,
            moves_to_go: Option<u32>,
            overhead_ms: u64,
        ) {
            let budget = Clock { remaining_ms, increment_ms, moves_to_go, overhead_ms }.budget();
            prop_assert!(budget.optimum_ms <= budget.maximum_ms);
            prop_assert!(budget.maximum_ms <= remaining_ms.saturating_sub(overhead_ms));
        }

        #[test]
        fn no_constants_make_a_budget_exceed_the_available_time(
            remaining_ms: u64,
            increment_ms: u64,
            moves_left: u64,
            maximum: u64,
            optimum_cap: u64,
            maximum_cap: u64,
        ) {
            let constants = TimeConstants { moves_left, maximum, optimum_cap, maximum_cap };
            let clock = Clock { remaining_ms, increment_ms, moves_to_go: None, overhead_ms: 0 };
            let budget = clock.budget_with(&constants);
            prop_assert!(budget.optimum_ms <= budget.maximum_ms);
            prop_assert!(budget.maximum_ms <= remaining_ms);
        }
    }
}
