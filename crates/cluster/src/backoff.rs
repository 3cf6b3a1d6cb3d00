//! Exponential backoff. The jitter is derived from a name, so that workers do not retry at the same
//! moment and tests are deterministic.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Backoff {
    tries: u32,
    /// From 0 to 1.
    jitter: f64,
    longest: Duration,
}

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

impl Backoff {
    /// Other names give other waits.
    pub fn new(name: &str) -> Backoff {
        let [first, ..] = *blake3::hash(name.as_bytes()).as_bytes();
        Backoff { tries: 0, jitter: f64::from(first) / 255.0, longest: LONGEST }
    }

    #[must_use]
    pub const fn at_most(self, longest: Duration) -> Backoff {
        Backoff { longest, ..self }
    }

    pub fn next_wait(&mut self) -> Duration {
        let wait = FIRST * 2u32.pow(self.tries.min(10));
        self.tries += 1;
        wait.min(self.longest).mul_f64(self.jitter())
    }

    /// A factor from 0.5 to 1.
    pub const fn jitter(&self) -> f64 {
        0.5 + 0.5 * self.jitter
    }

    /// To be called after a success.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_limit_and_start_again_after_a_reset() {
        let mut backoff = Backoff::new("a");
        let waits: Vec<Duration> = (0..40).map(|_| backoff.next_wait()).collect();
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(waits[0] <= FIRST && waits[39] <= LONGEST && waits[39] >= LONGEST / 2);
        backoff.reset();
        assert_eq!(backoff.next_wait(), waits[0]);
        assert_ne!(Backoff::new("b").next_wait(), waits[0]);
        let mut short = Backoff::new("a").at_most(FIRST);
        assert!((0..40).all(|_| short.next_wait() <= FIRST));
    }
}
