//! Guards against the ways in which self-play goes wrong.
//!
//! Every alarm is told with its meaning and with what was done. The remedy is always the same:
//! for some generations games start from more varied positions and values are learned from
//! results alone. A run that needs it again and again stops and says why.

use selfmate_selfplay::{GenerationStats, SelfPlayConfig};
use serde::{Deserialize, Serialize};

use crate::config::GuardConfig;

/// The memory of the guards; part of every checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guards {
    /// Generations for which the remedy still lasts.
    pub remedy_left: u64,
    /// Remedies begun without a quiet generation between.
    pub remedies: u32,
}

/// What a generation showed, where it is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The measure.
    pub name: &'static str,
    /// What it was.
    pub value: f64,
    /// What it should not have passed.
    pub bound: f64,
    /// What that means.
    pub meaning: &'static str,
}

/// What to do about a generation's findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is well, or the remedy is still at work.
    GoOn,
    /// The remedy begins.
    Remedy,
    /// The remedy has not helped often enough.
    GiveUp,
}

impl Guards {
    /// Looks at a generation. `divergence` is that of policy targets from the network's policy,
    /// where it is known.
    pub fn check(
        &mut self,
        generation: u64,
        stats: &GenerationStats,
        divergence: Option<f64>,
        config: &GuardConfig,
    ) -> (Vec<Finding>, Verdict) {
        if generation < config.patience {
            return (Vec::new(), Verdict::GoOn);
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
                "almost every game is drawn: soon there is nothing left to learn from results",
            ),
            over(
                "truncated_share",
                stats.truncated,
                config.max_truncated,
                "too many games are cut off: nobody knows how to win",
            ),
            under(
                "value_spread",
                stats.value_spread,
                config.min_value_spread,
                "all positions look alike: the value head has collapsed",
            ),
            under(
                "target_entropy",
                stats.entropy,
                config.min_entropy,
                "every search is sure of one move: no other is tried any more",
            ),
            divergence.and_then(|divergence| {
                over(
                    "policy_divergence",
                    divergence,
                    config.max_divergence,
                    "the network cannot follow its searches: the learning rate may be too high",
                )
            }),
        ];
        let findings: Vec<Finding> = findings.into_iter().flatten().collect();
        let was_at_work = self.remedy_left > 0;
        self.remedy_left = self.remedy_left.saturating_sub(1);
        let verdict = match (findings.is_empty(), was_at_work) {
            (true, false) => {
                self.remedies = 0;
                Verdict::GoOn
            }
            (true, true) => Verdict::GoOn,
            (false, true) if self.remedy_left > 0 => Verdict::GoOn,
            (false, _) if self.remedies >= config.max_remedies => Verdict::GiveUp,
            (false, _) => {
                self.remedies += 1;
                self.remedy_left = config.remedy_generations;
                Verdict::Remedy
            }
        };
        (findings, verdict)
    }

    /// The settings of the next games, more varied while the remedy lasts.
    pub fn adapt(&self, config: &SelfPlayConfig) -> SelfPlayConfig {
        let mut config = config.clone();
        if self.remedy_left > 0 {
            config.long_opening_share = config.long_opening_share.max(0.5);
            config.endgame_share = config.endgame_share.max(0.25);
        }
        config
    }

    /// The weight of results in value targets, all of it while the remedy lasts.
    pub fn result_weight(&self, usual: f64) -> f64 {
        if self.remedy_left > 0 { 1.0 } else { usual }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{GiveUp, GoOn, Remedy};
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
    fn a_collapse_is_named_treated_and_given_up_in_the_end() {
        let config = GuardConfig {
            patience: 2,
            remedy_generations: 2,
            max_remedies: 2,
            ..GuardConfig::default()
        };
        let drawn = GenerationStats { draws: 0.95, ..healthy() };
        let mut guards = Guards::default();
        assert_eq!(guards.check(1, &drawn, None, &config), (Vec::new(), GoOn));
        let (findings, verdict) = guards.check(2, &drawn, None, &config);
        assert_eq!((findings[0].name, findings[0].value), ("draw_share", 0.95));
        assert_eq!(verdict, Remedy);
        assert!(guards.adapt(&SelfPlayConfig::default()).long_opening_share >= 0.5);
        assert_eq!(guards.result_weight(0.5), 1.0);
        let mut verdicts: Vec<Verdict> = Vec::new();
        for generation in 3..=6 {
            verdicts.push(guards.check(generation, &drawn, None, &config).1);
        }

        assert_eq!(verdicts, [GoOn, Remedy, GoOn, GiveUp]);
    }

    #[test]
    fn a_run_that_recovers_is_left_alone() {
        let config = GuardConfig { patience: 0, remedy_generations: 1, ..GuardConfig::default() };
        let mut guards = Guards::default();
        let flat = GenerationStats { value_spread: 0.01, ..healthy() };
        assert_eq!(guards.check(1, &flat, Some(5.0), &config).0.len(), 2);
        assert_eq!(guards.check(2, &healthy(), Some(0.5), &config), (Vec::new(), GoOn));
        assert_eq!(guards.remedies, 1);
        guards.check(3, &healthy(), Some(0.5), &config);
        assert_eq!(guards, Guards::default());
    }
}
