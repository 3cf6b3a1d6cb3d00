//! How long to wait before trying again: longer each time, never the same for all.

use std::time::Duration;

/// Waits between tries, from a fraction of a second to half a minute.
#[derive(Clone, Debug)]
pub struct Backoff {
    tries: u32,
    /// Between 0 and 1, different for each worker, so that they do not all come back at once.
    jitter: f64,
    longest: Duration,
}

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

impl Backoff {
    /// Waits that differ from those of other names.
    pub fn new(name: &str) -> Backoff {
        let [first, ..] = *blake3::hash(name.as_bytes()).as_bytes();
        Backoff { tries: 0, jitter: f64::from(first) / 255.0, longest: LONGEST }
    }

    /// Never longer than this.
    #[must_use]
    pub const fn at_most(self, longest: Duration) -> Backoff {
        Backoff { longest, ..self }
    }

    /// The next wait.
    pub fn next_wait(&mut self) -> Duration {
        let wait = FIRST * 2u32.pow(self.tries.min(10));
        self.tries += 1;
        wait.min(self.longest).mul_f64(self.jitter())
    }

    /// From a half to one, different for each name.
    pub const fn jitter(&self) -> f64 {
        0.5 + 0.5 * self.jitter
    }

    /// All is well again.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_start_again() {
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
