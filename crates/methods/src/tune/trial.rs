//! Trials of challengers: how they are played, their results, and the games they were decided by.

use std::io::ErrorKind;
use std::path::PathBuf;

use selfmate_arena::players::LoadedBook;
use selfmate_arena::resolved_player::content_hash;
use selfmate_arena::store::{RecordStore, StoreError};
use selfmate_arena::{MatchConfig, MatchError, MatchGame, MatchReport, MatchRun, Registry, Tuning};
use selfmate_run::{RunError, atomic_file};
use selfmate_train::engine_match::{EngineMatchConfig, openings};
use selfmate_train::evaluation::match_in_round;
use selfmate_train::{RoundContext, TrainingError};
use serde::{Deserialize, Serialize};

use super::Tune;
use super::challenger::Challenger;
use super::config::{Proposal, TuneConfig};
use crate::tuning::engine_kind;

/// A challenger against the champion. Results are the challenger's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Counts from 0.
    pub number: u64,
    pub proposal: Proposal,
    pub games: u64,
    pub wins: u64,
    pub draws: u64,
    pub losses: u64,
    /// The share of the points.
    pub score: f64,
    /// The mean length of the games, openings included.
    pub mean_plies: f64,
    /// The Elo difference, and half the width of its 95 % interval.
    pub elo: f64,
    pub elo_error: f64,
    /// The log-likelihood ratio of the sequential test.
    pub llr: f64,
    /// The share of the points against earlier champions, in trials that include them.
    pub pool_score: Option<f64>,
    pub is_promoted: bool,
    /// The hash of its games, so that later fits use exactly these.
    pub games_hash: String,
}

impl Trial {
    /// Why these are not the games that decided the trial, if so.
    fn mismatch(&self, records: &[MatchGame]) -> Option<String> {
        if records.len() as u64 != self.games {
            return Some(format!("{} games: expected {}", records.len(), self.games));
        }
        let is_other = self.games_hash != hash_of(records);
        is_other.then(|| "not the games that the trial was decided by".to_owned())
    }
}

impl Tune {
    /// Plays the challenger against the champion until the test decides; `None` when there was no
    /// time. Games are stored as they end, so that an interrupted trial continues.
    pub(super) fn play_trial(
        &self,
        config: &TuneConfig,
        challenger: &Tuning,
        number: u64,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<(MatchReport, Vec<MatchGame>)>, TrainingError> {
        let mut registry = Registry::standard();
        let book = config.trial.book.then(|| LoadedBook::new(self.book.polyglot()));
        for (name, tuning) in [("challenger", challenger), ("champion", &self.champion)] {
            // Stored games of other engines with the same names are not theirs.
            let weights = content_hash(tuning.to_toml().as_bytes());
            let parts = [Some(weights), book.as_ref().map(|book| book.identity().to_owned())];
            let hash = parts.into_iter().flatten().collect::<Vec<String>>().join(", book ");
            let kind = engine_kind(name, tuning, &config.games, book.clone());
            registry.register(kind.version(move |_| Ok(hash.clone())));
        }
        let store = trial_path(context, number, "games");
        let path = trial_path(context, number, "toml");
        std::fs::write(&path, challenger.to_toml())
            .map_err(|error| RunError::Io { path, error })?;
        let max_plies = config.trial.max_plies.at(number);
        let config = MatchConfig {
            settings: EngineMatchConfig { max_plies, ..config.games }.settings(),
            // Match seeds are stored as signed integers.
            seed: context.seed_for("trials").rng().bits() >> 1,
            sprt: Some(config.sprt()),
            ..MatchConfig::new("challenger", "champion", config.trial.games)
        };
        let run = || MatchRun { store: Some(store.clone()), ..MatchRun::default() };
        let report = match match_in_round(&config, run(), &registry, context) {
            // The games are deterministic, so they can be played again.
            Err(TrainingError::Match(MatchError::Store(
                error @ (StoreError::Damaged { .. } | StoreError::Different { .. }),
            ))) => {
                context.note(&format!("{error}; set aside, playing the trial again"));
                atomic_file::set_aside(&store)?;
                match_in_round(&config, run(), &registry, context)?
            }
            report => report?,
        };
        let Some(report) = report else { return Ok(None) };
        let records = trial_games(context, number, report.games).map_err(MatchError::from)?;
        Ok(Some((report, records)))
    }

    /// The score of the challenger against earlier champions, `Some(None)` if it does not meet them;
    /// `None` when there was no time.
    pub(super) fn meet_pool(
        &self,
        config: &TuneConfig,
        challenger: &mut Challenger,
        number: u64,
        context: &RoundContext<'_>,
    ) -> Result<Option<Option<f64>>, TrainingError> {
        if self.state.pool.is_empty() || !config.pool.is_due(number) {
            return Ok(Some(None));
        }
        let openings = openings(config.pool.pairs, context.seed_for("pool"))?;
        let max_plies = config.trial.max_plies.at(number);
        let games = EngineMatchConfig { max_plies, ..config.games };
        let (tuning, cancel) = (&challenger.tuning, context.cancel);
        let played =
            context.pool.install(|| games.share(tuning, &self.state.pool, &openings, cancel));
        Ok(played.map(|(score, nodes)| {
            challenger.games += 2 * openings.len() as u64;
            challenger.nodes += nodes;
            Some(score)
        }))
    }

    /// The games of the latest trials. If the stored games are not those that decided the trial,
    /// they are reported, set aside and left out; missing games are reported and left out.
    pub(super) fn earlier_games(
        &mut self,
        trials: usize,
        context: &mut RoundContext<'_>,
    ) -> Result<Vec<MatchGame>, TrainingError> {
        let mut games = Vec::new();
        for trial in self.history.iter().rev().take(trials) {
            if self.lost.contains(&trial.number) {
                continue;
            }
            let path = trial_path(context, trial.number, "games");
            let wrong = match trial_games(context, trial.number, trial.games) {
                Ok(records) => match trial.mismatch(&records) {
                    None => {
                        games.extend(records);
                        continue;
                    }
                    Some(what) => format!("{}: {what}", path.display()),
                },
                Err(error @ StoreError::Damaged { .. }) => error.to_string(),
                Err(StoreError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                    // If an earlier session set the games aside, it has reported that.
                    if !atomic_file::aside(&path).exists() {
                        let path = path.display();
                        context.note(&format!("{path}: {error}; learning without this trial"));
                    }
                    self.lost.insert(trial.number);
                    continue;
                }
                Err(error) => return Err(MatchError::from(error).into()),
            };
            atomic_file::set_aside(&path)?;
            context.note(&format!("{wrong}; set aside, learning without this trial"));
            self.lost.insert(trial.number);
        }
        Ok(games)
    }
}

/// The mean number of plies of these games.
pub(super) fn mean_plies(records: &[MatchGame]) -> f64 {
    let plies: usize = records.iter().map(|record| record.played.moves.len()).sum();
    plies as f64 / records.len().max(1) as f64
}

/// The hash of the games without the time that moves took, which differs from run to run.
pub(super) fn hash_of(records: &[MatchGame]) -> String {
    let mut records = records.to_vec();
    for record in &mut records {
        record.played.evals.iter_mut().for_each(|eval| eval.ms = 0);
    }
    content_hash(&serde_json::to_vec(&records).expect("records are plain data with text keys"))
}

/// The games of a trial, in order. Games that other threads finished after the deciding one do not
/// count.
fn trial_games(
    context: &RoundContext<'_>,
    number: u64,
    count: u64,
) -> Result<Vec<MatchGame>, StoreError> {
    let path = trial_path(context, number, "games");
    let stored = RecordStore::read::<MatchGame>(&path)?;
    let mut records = stored.map_or(Vec::new(), |(_, records)| records);
    records.retain(|record| record.game < count);
    records.sort_by_key(|record| record.game);
    records.dedup_by_key(|record| record.game);
    Ok(records)
}

pub(super) fn trial_path(context: &RoundContext<'_>, number: u64, end: &str) -> PathBuf {
    context.run.matches_path().join(format!("trial-{number:06}.{end}"))
}

/// The number of trials in a description.
const SHOWN: usize = 8;

/// The latest trials as text.
pub(super) fn describe(bytes: &[u8]) -> Result<Vec<String>, String> {
    let history: Vec<Trial> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let promoted = history.iter().filter(|trial| trial.is_promoted).count();
    let mut lines = vec![format!("{} trials, {promoted} promotions; the last:", history.len())];
    lines.extend(history.iter().rev().take(SHOWN).map(|trial| {
        let Trial { number, proposal, wins, draws, losses, mean_plies, elo, elo_error, .. } = trial;
        let verdict = if trial.is_promoted { "promoted" } else { "rejected" };
        let name = proposal.name();
        let pool = trial.pool_score.map_or_else(String::new, |score| {
            format!(", {:.0} % against earlier champions", 100.0 * score)
        });
        format!(
            "  {number:5}  {name:6} {verdict}  +{wins} ={draws} -{losses}, Elo {elo:+.0} ± {elo_error:.0}, \
             {mean_plies:.0} plies per game{pool}"
        )
    }));
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_described_with_its_results_and_length() {
        let trial = Trial {
            number: 3,
            proposal: Proposal::Texel,
            games: 60,
            wins: 30,
            draws: 20,
            losses: 10,
            score: 2.0 / 3.0,
            mean_plies: 88.4,
            elo: 120.4,
            elo_error: 60.2,
            llr: 2.95,
            pool_score: Some(0.75),
            is_promoted: true,
            games_hash: String::new(),
        };
        let lines = describe(&serde_json::to_vec(&[trial]).unwrap()).unwrap();
        assert_eq!(
            lines,
            [
                "1 trials, 1 promotions; the last:",
                "      3  texel  promoted  +30 =20 -10, Elo +120 ± 60, 88 plies per game, 75 % against \
                 earlier champions"
            ]
        );
    }
}
