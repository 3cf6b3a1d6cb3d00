//! The `tune` learner: champion against challenger for the alpha-beta engine, and an opening book
//! from their games.
//!
//! A round makes a challenger in one of three ways (random variation, simultaneous perturbation,
//! Texel's fit) and lets it play the champion until a sequential test decides. Whoever wins is
//! champion. Every trial is kept: its games, what they say of each weight, the moves by which games
//! were lost, and the openings that did well.

mod challenger;
mod config;
mod importance;
mod loss;
mod spsa;
mod texel;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use rayon::prelude::*;
use selfmate_arena::game::{PlayedGame, Termination};
use selfmate_arena::resolved_player::content_hash;
use selfmate_arena::sprt::Decision;
use selfmate_arena::store::{RecordStore, StoreError};
use selfmate_arena::{
    GameRecord, LearnedBook, MatchConfig, MatchError, MatchReport, MatchRun, Registry, Tuning,
};
use selfmate_chess::{Game, Seed, notation};
use selfmate_run::{Checkpoint, RunError, atomic};
use serde::{Deserialize, Serialize};

pub use config::{Proposal, TrialConfig, TuneConfig, VaryConfig};
pub use importance::{Importance, Row, picture};
pub use loss::{LossConfig, Turn, turn};
pub use spsa::{Probe, Spsa, SpsaConfig};
pub use texel::{Example, Fit, Lessons, TexelConfig, examples, fit};

use crate::exam::{contest_in, examine};
use crate::learner::{Hardware, LearnError};
use crate::rounds::{Method, Room, Round, SavingConfig, bytes, fault, json};
use crate::tuning::{Genome, WEIGHTS, engine_kind, first, weights};
use crate::watch::Stage;
use challenger::Challenger;

/// Files of a checkpoint: the history of all trials and what only training needs …
pub const HISTORY: &str = "history.json";
const STATE: &str = "tuning.json";
/// … the first moves of all games, the book that they make, as Polyglot and as text …
const LINES: &str = "lines.txt";
const BOOK: &str = "book.bin";
const BOOK_TEXT: &str = "book.txt";
/// … and which weights matter.
pub const IMPORTANCE: &str = "importance.json";

/// A champion and what is known of it.
pub struct Tune {
    genome: Genome,
    champion: Tuning,
    state: State,
    history: Vec<Trial>,
    /// The first moves of all games with White's points: `1 e2e4 e7e5 …`.
    lines: Vec<String>,
    book: LearnedBook,
    /// Trials whose games are gone, once that has been said.
    lost: BTreeSet<u64>,
}

/// What only training needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// The share by which the next variation goes.
    share: f64,
    spsa: Spsa,
    importance: Importance,
}

/// A challenger and how it fared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number, from 0.
    pub number: u64,
    /// How it was made.
    pub proposal: Proposal,
    /// Games of the trial.
    pub games: u64,
    /// The challenger's share of the points.
    pub score: f64,
    /// The same as Elo, and half its 95 % interval.
    pub elo: f64,
    /// See `elo`.
    pub elo_error: f64,
    /// The log-likelihood ratio of the test.
    pub llr: f64,
    /// It is the new champion.
    pub is_promoted: bool,
    /// The hash of its games: a later fit learns from these and no others. Trials of earlier
    /// versions have none.
    #[serde(default)]
    pub games_hash: Option<String>,
}

impl Method for Tune {
    type Config = TuneConfig;
    const FILES: &'static [&'static str] = &[WEIGHTS, HISTORY, STATE, LINES];
    const TRAINING: &'static [&'static str] = &[STATE, LINES];

    fn saving(config: &TuneConfig) -> SavingConfig {
        config.saving
    }

    fn new(config: &TuneConfig, _: Seed, _: Hardware) -> Result<Tune, LearnError> {
        let (genome, champion) = (config.genome()?, first(&config.start)?);
        let state = State {
            share: config.vary.share,
            spsa: Spsa::new(genome.point(&champion)),
            importance: Importance::default(),
        };
        let (history, lines) = (Vec::new(), Vec::new());
        let (book, lost) = (LearnedBook::new(config.book), BTreeSet::new());
        Ok(Tune { genome, champion, state, history, lines, book, lost })
    }

    fn restore(
        config: &TuneConfig,
        checkpoint: &Checkpoint,
        _: Hardware,
    ) -> Result<Tune, LearnError> {
        let genome = config.genome()?;
        let state: State = json(checkpoint, STATE)?;
        if state.spsa.point.len() != genome.len() {
            let (got, expected) = (state.spsa.point.len(), genome.len());
            return Err(fault(checkpoint, STATE, &format!("{got} weights: expected {expected}")));
        }
        let mut tune = Tune {
            champion: weights(checkpoint)?,
            history: json(checkpoint, HISTORY)?,
            lines: Vec::new(),
            book: LearnedBook::new(config.book),
            genome,
            state,
            lost: BTreeSet::new(),
        };
        let text = String::from_utf8_lossy(bytes(checkpoint, LINES)?).into_owned();
        for line in text.lines() {
            tune.add_line(line).map_err(|message| fault(checkpoint, LINES, &message))?;
        }
        Ok(tune)
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, LearnError> {
        let json = |value: serde_json::Result<Vec<u8>>| value.expect("plain data");
        let lines: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        let rows = self.state.importance.table(self.genome.names());
        Ok(vec![
            (WEIGHTS, self.champion.to_toml().into_bytes()),
            (HISTORY, json(serde_json::to_vec_pretty(&self.history))),
            (STATE, json(serde_json::to_vec(&self.state))),
            (LINES, lines.into_bytes()),
            (BOOK, self.book.polyglot().to_bytes()),
            (BOOK_TEXT, self.book.to_text().into_bytes()),
            (IMPORTANCE, json(serde_json::to_vec_pretty(&rows))),
        ])
    }

    fn round(
        &mut self,
        config: &TuneConfig,
        room: &mut Room<'_>,
    ) -> Result<Option<Round>, LearnError> {
        let number = room.totals.rounds;
        let mut proposal = config.cycle[number as usize % config.cycle.len()];
        room.tell(Stage::Learn, 0.0);
        let made = match proposal {
            Proposal::Vary => Some(Challenger::new(self.champion.clone())),
            Proposal::Spsa => Challenger::perturbed(&self.genome, &self.state.spsa, config, room)?,
            Proposal::Texel => {
                let games = self.earlier_games(config.texel.trials, room)?;
                Challenger::fitted(&self.genome, &self.champion, &games, config, room)?
            }
        };
        let Some(mut challenger) = made else { return Ok(None) };
        if challenger.tuning == self.champion {
            // A fit that found nothing better; a trial of two equals would say nothing.
            proposal = Proposal::Vary;
            let mut rng = room.seed_for("variations").rng();
            challenger.vary(&self.genome, &self.champion, self.state.share, &mut rng);
        }
        room.tell(Stage::Play, 0.0);
        let Some((report, records)) = self.trial(config, &challenger.tuning, number, room)? else {
            return Ok(None);
        };
        self.look_at_losses(config, number, &records, room)?;

        let mut round = Round { steps: 1, nodes: challenger.nodes, ..Round::default() };
        round.games = report.games + challenger.games;
        round.nodes += records.iter().map(|record| nodes(&record.played)).sum::<u64>();
        for (name, value) in &challenger.values {
            round.add(name, *value);
        }
        let trial = self.conclude(config, proposal, number, challenger, &report, &records)?;
        round.add("trial.score", trial.score);
        round.add("trial_elo", trial.elo);
        round.add("trial_games", trial.games as f64);
        round.add("promoted", f64::from(u8::from(trial.is_promoted)));
        round.add(
            "promotions",
            self.history.iter().filter(|trial| trial.is_promoted).count() as f64,
        );
        round.add("vary.share", self.state.share);
        round.add("book.positions", self.book.positions() as f64);
        if config.exam.is_due(number) {
            room.tell(Stage::Rate, 0.0);
            let kind = |name: &'static str| engine_kind(name, &self.champion, &config.games);
            if let Some(report) = examine(&config.exam, kind, room.seed_for("exam"), room)? {
                round.add("exam.score", report.score);
            }
        }
        Ok(Some(round))
    }
}

impl Tune {
    /// Lets a challenger play the champion until the test decides; `None` when there was no time.
    /// The games are kept as they end, so that a trial that was cut short goes on.
    fn trial(
        &self,
        config: &TuneConfig,
        challenger: &Tuning,
        number: u64,
        room: &mut Room<'_>,
    ) -> Result<Option<(MatchReport, Vec<GameRecord>)>, LearnError> {
        let mut registry = Registry::standard();
        for (name, tuning) in [("challenger", challenger), ("champion", &self.champion)] {
            // Games of other engines under the same names are not theirs.
            let hash = content_hash(tuning.to_toml().as_bytes());
            let kind = engine_kind(name, tuning, &config.games);
            registry.register(kind.version(move |_| Ok(hash.clone())));
        }
        let store = trial_path(room, number, "games");
        let path = trial_path(room, number, "toml");
        std::fs::write(&path, challenger.to_toml())
            .map_err(|error| RunError::Io { path, error })?;
        let contest = MatchConfig {
            settings: config.games.settings(),
            // Seeds of matches are told in files as signed numbers.
            seed: room.seed_for("trials").rng().bits() >> 1,
            sprt: Some(config.sprt()),
            ..MatchConfig::new("challenger", "champion", config.trial.games)
        };
        let run = || MatchRun { store: Some(store.clone()), ..MatchRun::default() };
        let report = match contest_in(&contest, run(), &registry, room) {
            // Its games can be played again, and come out the same.
            Err(LearnError::Match(MatchError::Store(
                error @ (StoreError::Damaged { .. } | StoreError::Different { .. }),
            ))) => {
                room.note(&format!("{error}; set aside, playing the trial again"));
                atomic::set_aside(&store)?;
                contest_in(&contest, run(), &registry, room)?
            }
            report => report?,
        };
        let Some(report) = report else { return Ok(None) };
        let records = trial_games(room, number, report.games).map_err(MatchError::from)?;
        Ok(Some((report, records)))
    }

    /// The games of the last so many trials. A trial whose games are not those that it was decided
    /// by is named, set aside and left out; one whose games are gone is named and left out.
    fn earlier_games(
        &mut self,
        trials: usize,
        room: &mut Room<'_>,
    ) -> Result<Vec<GameRecord>, LearnError> {
        let mut games = Vec::new();
        for trial in self.history.iter().rev().take(trials) {
            if self.lost.contains(&trial.number) {
                continue;
            }
            let path = trial_path(room, trial.number, "games");
            let wrong = match trial_games(room, trial.number, trial.games) {
                Ok(records) => match trial.misfit(&records) {
                    None => {
                        games.extend(records);
                        continue;
                    }
                    Some(what) => format!("{}: {what}", path.display()),
                },
                Err(error @ StoreError::Damaged { .. }) => error.to_string(),
                Err(StoreError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                    // Where an earlier session has set them aside, it has said so.
                    if !atomic::aside(&path).exists() {
                        let path = path.display();
                        room.note(&format!("{path}: {error}; learning without this trial"));
                    }
                    self.lost.insert(trial.number);
                    continue;
                }
                Err(error) => return Err(MatchError::from(error).into()),
            };
            atomic::set_aside(&path)?;
            room.note(&format!("{wrong}; set aside, learning without this trial"));
            self.lost.insert(trial.number);
        }
        Ok(games)
    }

    /// Writes down by which moves the champion lost games of a trial.
    fn look_at_losses(
        &self,
        config: &TuneConfig,
        number: u64,
        records: &[GameRecord],
        room: &Room<'_>,
    ) -> Result<(), LearnError> {
        let lost: Vec<&GameRecord> = records
            .iter()
            .filter(|record| record.a_points() == 1.0)
            .take(config.losses.games)
            .collect();
        let stop = room.halt.flag();
        let look = |record: &&GameRecord| {
            turn(record.game, &record.played, &self.champion, config.losses.nodes, &stop)
        };
        let turns: Vec<Turn> = room.pool.install(|| lost.par_iter().filter_map(look).collect());
        // They are for people to read: a trial that is decided does not wait for them.
        if turns.is_empty() || room.halt.is_over() {
            return Ok(());
        }
        let path = trial_path(room, number, "losses.json");
        let text = serde_json::to_vec_pretty(&turns).expect("plain data");
        std::fs::write(&path, text).map_err(|error| RunError::Io { path, error }.into())
    }

    /// Takes the result of a trial.
    fn conclude(
        &mut self,
        config: &TuneConfig,
        proposal: Proposal,
        number: u64,
        challenger: Challenger,
        report: &MatchReport,
        records: &[GameRecord],
    ) -> Result<Trial, LearnError> {
        let (from, to) = (self.genome.point(&self.champion), self.genome.point(&challenger.tuning));
        let steps: Vec<f64> = to.iter().zip(&from).map(|(to, from)| to - from).collect();
        let importance = &mut self.state.importance;
        for (steps, share, games) in &challenger.matches {
            importance.add_match(steps, *share, *games);
        }
        // Where all weights were moved by design, a result says nothing about each.
        if proposal == Proposal::Vary {
            importance.add_match(&steps, report.score - 0.5, report.games as f64);
        }
        if let Some(gradient) = challenger.gradient {
            importance.set_gradient(gradient);
        }
        if let Some(spsa) = challenger.spsa {
            self.state.spsa = spsa;
        }
        let played = challenger.played.iter().chain(records.iter().map(|record| &record.played));
        let is_line =
            |game: &&PlayedGame| game.fen.is_none() && game.termination != Termination::Truncated;
        for game in played.filter(is_line) {
            let moves = game.moves.iter().take(config.book.plies as usize);
            let line = moves.fold(game.white_points().to_string(), |line, m| line + " " + m);
            self.add_line(&line).map_err(LearnError::Teacher)?;
        }
        let sprt = report.sprt;
        let is_promoted = sprt.is_some_and(|sprt| sprt.decision == Decision::AcceptH1);
        if is_promoted {
            self.champion = challenger.tuning;
            self.state.share = config.vary.share;
            if proposal != Proposal::Spsa {
                // The walk goes on from the new champion.
                self.state.spsa.point = self.genome.point(&self.champion);
            }
        } else if proposal == Proposal::Spsa && report.score < 0.5 {
            // A walk that led down starts anew.
            self.state.spsa.point = self.genome.point(&self.champion);
        } else if proposal == Proposal::Vary {
            self.state.share = (self.state.share * config.vary.growth).min(config.vary.most);
        }
        let trial = Trial {
            number,
            proposal,
            games: report.games,
            score: report.score,
            elo: report.elo.unwrap_or(0.0),
            elo_error: report.elo_error.unwrap_or(0.0),
            llr: sprt.map_or(0.0, |sprt| sprt.llr),
            is_promoted,
            games_hash: Some(hash_of(records)),
        };
        self.history.push(trial.clone());
        Ok(trial)
    }

    /// Adds the first moves of a game to the book.
    fn add_line(&mut self, line: &str) -> Result<(), String> {
        let (points, moves) = line.split_once(' ').unwrap_or((line, ""));
        let points: f64 = points.parse().map_err(|_| format!("'{points}' are no points"))?;
        let mut game = Game::new();
        for text in moves.split_whitespace() {
            let m =
                notation::parse_uci(game.position(), text).map_err(|error| error.to_string())?;
            game.play_unchecked(m);
        }
        self.book.add(&game, points);
        self.lines.push(line.to_owned());
        Ok(())
    }
}

fn nodes(game: &PlayedGame) -> u64 {
    game.thoughts.iter().filter_map(|thought| thought.nodes).sum()
}

impl Trial {
    /// Why these games are not those that it was decided by, if they are not.
    fn misfit(&self, records: &[GameRecord]) -> Option<String> {
        if records.len() as u64 != self.games {
            return Some(format!("{} games: expected {}", records.len(), self.games));
        }
        let is_other = self.games_hash.as_ref().is_some_and(|hash| *hash != hash_of(records));
        is_other.then(|| "not the games that the trial was decided by".to_owned())
    }
}

/// The hash of games, but for the time that moves took: that differs each time they are played.
fn hash_of(records: &[GameRecord]) -> String {
    let mut records = records.to_vec();
    for record in &mut records {
        record.played.thoughts.iter_mut().for_each(|thought| thought.ms = 0);
    }
    content_hash(&serde_json::to_vec(&records).expect("records are plain data with text keys"))
}

/// The games of a trial, in their order. What was played on other threads after the game that
/// decided does not count.
fn trial_games(room: &Room<'_>, number: u64, count: u64) -> Result<Vec<GameRecord>, StoreError> {
    let path = trial_path(room, number, "games");
    let stored = RecordStore::read::<GameRecord>(&path)?;
    let mut records = stored.map_or(Vec::new(), |(_, records)| records);
    records.retain(|record| record.game < count);
    records.sort_by_key(|record| record.game);
    records.dedup_by_key(|record| record.game);
    Ok(records)
}

fn trial_path(room: &Room<'_>, number: u64, end: &str) -> PathBuf {
    room.run.matches_path().join(format!("trial-{number:06}.{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_named() {
        for name in TuneConfig::PRESETS {
            TuneConfig::preset(name).unwrap().check().unwrap();
        }
        let mut config = TuneConfig { cycle: Vec::new(), ..TuneConfig::tiny() };
        assert!(config.check().unwrap_err().to_string().starts_with("cycle is empty"));
        config = TuneConfig::tiny();
        config.texel.positions = 0;
        assert!(config.check().unwrap_err().to_string().starts_with("texel.positions is 0"));
        config = TuneConfig::tiny();
        config.trial.elo1 = -1.0;
        assert!(config.check().unwrap_err().to_string().contains("SPRT bounds 0,-1"));
    }
}
