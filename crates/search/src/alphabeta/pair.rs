//! A middlegame and an endgame value in one machine word.
//!
//! Both halves are added, subtracted and scaled in one instruction. Each half must stay within 16
//! bits.

use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair(i32);

impl Pair {
    pub(super) const fn new(mg: i32, eg: i32) -> Pair {
        Pair((mg << 16).wrapping_add(eg))
    }

    pub(super) const fn mg(self) -> i32 {
        // A negative lower half has borrowed one from the upper half; add it back.
        (self.0.wrapping_add(0x8000) >> 16) as i16 as i32
    }

    pub(super) const fn eg(self) -> i32 {
        self.0 as i16 as i32
    }
}

impl Add for Pair {
    type Output = Pair;
    fn add(self, other: Pair) -> Pair {
        Pair(self.0.wrapping_add(other.0))
    }
}

impl Sub for Pair {
    type Output = Pair;
    fn sub(self, other: Pair) -> Pair {
        Pair(self.0.wrapping_sub(other.0))
    }
}

impl Neg for Pair {
    type Output = Pair;
    fn neg(self) -> Pair {
        Pair(self.0.wrapping_neg())
    }
}

impl Mul<i32> for Pair {
    type Output = Pair;
    fn mul(self, times: i32) -> Pair {
        Pair(self.0.wrapping_mul(times))
    }
}

impl AddAssign for Pair {
    fn add_assign(&mut self, other: Pair) {
        *self = *self + other;
    }
}

impl SubAssign for Pair {
    fn sub_assign(&mut self, other: Pair) {
        *self = *self - other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_do_not_mix() {
        for (mg, eg) in [(0, 0), (1, -1), (-1, 1), (-300, -7), (1200, 900), (-1, -1)] {
            let pair = Pair::new(mg, eg);
            assert_eq!((pair.mg(), pair.eg()), (mg, eg));
            let sum = pair + Pair::new(-5, 9) * 3 - Pair::new(2, -2);
            assert_eq!((sum.mg(), sum.eg()), (mg - 17, eg + 29));
            assert_eq!(((-pair).mg(), (-pair).eg()), (-mg, -eg));
        }
    }
}
