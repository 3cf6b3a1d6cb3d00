//! Guards against the known failures of self-play.
//!
//! An alarm reports what it means and what was done. The remedy is always the same: for some
//! generations, games start from more varied positions and values are learned from results alone. A
//! run that keeps needing the remedy stops with a reason.

use selfmate_selfplay::{GenerationStats, SelfPlayConfig};
use serde::{Deserialize, Serialize};

use crate::config::GuardConfig;

/// The state of the guards; part of every checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guards {
    /// Generations for which the remedy will still be active.
    pub remedy_left: u64,
    /// Remedies since the last generation without findings or remedy.
    pub remedies: u32,
}

/// A statistic of a generation that is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    pub name: &'static str,
    pub value: f64,
    pub bound: f64,
    pub meaning: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do, or the remedy is active.
    Continue,
    /// Start the remedy.
    Remedy,
    /// Stop the run: the remedy did not help often enough.
    Stop,
}

impl Guards {
    /// Checks a generation. `divergence` is that of the policy targets from the network's policy,
    /// if known.
    pub fn check(
        &mut self,
        generation: u64,
        stats: &GenerationStats,
        divergence: Option<f64>,
        config: &GuardConfig,
    ) -> (Vec<Finding>, Verdict) {
        if generation < config.patience {
            return (Vec::new(), Verdict::Continue);
        }
        let over = |name, value: f64, bound, meaning| {
            (value > bound).then_some(Finding { name, value, bound, meaning })
        };
        let under = |name, value: f64, bound, meaning| {
            (value < bound).then_some(Finding { name, value, bound, meaning })
        };
        let findings = [
            over(
                "draw_share",
                stats.draws,
                config.max_draws,
                "almost all games are drawn: results contain little to learn from",
            ),
            over(
                "truncated_share",
                stats.truncated,
                config.max_truncated,
                "too many games are truncated: neither side can win",
            ),
            under(
                "value_spread",
                stats.value_spread,
                config.min_value_spread,
                "all positions have about the same value: the value head has collapsed",
            ),
            under(
                "target_entropy",
                stats.entropy,
                config.min_entropy,
                "searches consider only one move: other moves are no longer explored",
            ),
            divergence.and_then(|divergence| {
                over(
                    "policy_divergence",
                    divergence,
                    config.max_divergence,
                    "the network's policy does not follow its searches: the learning rate may be too high",
                )
            }),
        ];
        let findings: Vec<Finding> = findings.into_iter().flatten().collect();
        let was_active = self.remedy_left > 0;
        self.remedy_left = self.remedy_left.saturating_sub(1);
        let verdict = match (findings.is_empty(), was_active) {
            (true, false) => {
                self.remedies = 0;
                Verdict::Continue
            }
            (true, true) => Verdict::Continue,
            (false, true) if self.remedy_left > 0 => Verdict::Continue,
            (false, _) if self.remedies >= config.max_remedies => Verdict::Stop,
            (false, _) => {
                self.remedies += 1;
                self.remedy_left = config.remedy_generations;
                Verdict::Remedy
            }
        };
        (findings, verdict)
    }

    /// The settings of the next games: more varied starts while the remedy is active.
    pub fn adapt(&self, config: &SelfPlayConfig) -> SelfPlayConfig {
        let mut config = config.clone();
        if self.remedy_left > 0 {
            config.long_opening_share = config.long_opening_share.max(0.5);
            config.endgame_share = config.endgame_share.max(0.25);
        }
        config
    }

    /// The weight of results in value targets: 1 while the remedy is active.
    pub fn result_weight(&self, usual: f64) -> f64 {
        if self.remedy_left > 0 { 1.0 } else { usual }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Continue, Remedy, Stop};
    use super::*;

    fn healthy() -> GenerationStats {
        GenerationStats {
            draws: 0.3,
            value_spread: 0.4,
            entropy: 1.0,
            ..GenerationStats::default()
        }
    }

    #[test]
    fn a_collapse_starts_the_remedy_and_finally_stops_the_run() {
        let config = GuardConfig {
            patience: 2,
            remedy_generations: 2,
            max_remedies: 2,
            ..GuardConfig::default()
        };
        let drawn = GenerationStats { draws: 0.95, ..healthy() };
        let mut guards = Guards::default();
        assert_eq!(guards.check(1, &drawn, None, &config), (Vec::new(), Continue));
        let (findings, verdict) = guards.check(2, &drawn, None, &config);
        assert_eq!((findings[0].name, findings[0].value), ("draw_share", 0.95));
        assert_eq!(verdict, Remedy);
        assert!(guards.adapt(&SelfPlayConfig::default()).long_opening_share >= 0.5);
        assert_eq!(guards.result_weight(0.5), 1.0);
        let mut verdicts: Vec<Verdict> = Vec::new();
        for generation in 3..=6 {
            verdicts.push(guards.check(generation, &drawn, None, &config).1);
        }
        assert_eq!(verdicts, [Continue, Remedy, Continue, Stop]);
    }

    #[test]
    fn a_run_that_recovers_resets_the_guards() {
        let config = GuardConfig { patience: 0, remedy_generations: 1, ..GuardConfig::default() };
        let mut guards = Guards::default();
        let flat = GenerationStats { value_spread: 0.01, ..healthy() };
        assert_eq!(guards.check(1, &flat, Some(5.0), &config).0.len(), 2);
        assert_eq!(guards.check(2, &healthy(), Some(0.5), &config), (Vec::new(), Continue));
        assert_eq!(guards.remedies, 1);
        guards.check(3, &healthy(), Some(0.5), &config);
        assert_eq!(guards, Guards::default());
    }
}
