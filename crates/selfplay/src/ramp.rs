//! A linear schedule.

use serde::{Deserialize, Serialize};

/// A value that changes linearly over a part of the plan and is constant before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    pub from: f64,
    pub to: f64,
    /// The share of the plan at which the value begins to change.
    pub begin: f64,
    /// The share of the plan at which it reaches `to`.
    pub end: f64,
}

impl Ramp {
    pub const fn new(from: f64, to: f64, begin: f64, end: f64) -> Ramp {
        Ramp { from, to, begin, end }
    }

    pub const fn constant(value: f64) -> Ramp {
        Ramp::new(value, value, 0.0, 1.0)
    }

    /// The value when this share of the plan is done.
    pub fn at(&self, progress: f64) -> f64 {
        let span = (self.end - self.begin).max(f64::MIN_POSITIVE);
        let share = ((progress - self.begin) / span).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_changes_only_between_its_ends() {
        let ramp = Ramp::new(1.0, 3.0, 0.25, 0.75);
        assert_eq!([0.0, 0.25, 0.5, 0.75, 2.0].map(|p| ramp.at(p)), [1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(Ramp::new(1.0, 3.0, 0.5, 0.5).at(0.5), 1.0);
        assert_eq!(Ramp::new(1.0, 3.0, 0.5, 0.5).at(0.6), 3.0);
    }
}
