//! The `tune` learner: champion against challenger for the alpha-beta engine, and an opening book
//! from their games.
//!
//! A round makes a challenger in one of three ways (random variation, SPSA, Texel tuning) and lets
//! it play the champion until a sequential test decides whether it becomes the new champion. Every
//! trial is kept: its games, what they reveal about each weight, the moves that lost games, and the
//! openings that scored well.

mod challenger;
mod config;
mod importance;
mod loss;
mod mistake;
mod spsa;
mod texel;
mod trial;

use std::collections::BTreeSet;

use rayon::prelude::*;
use selfmate_arena::game::{PlayedGame, Termination};
use selfmate_arena::sprt::Decision;
use selfmate_arena::{LearnedBook, MatchGame, MatchReport, Tuning};
use selfmate_chess::{Game, Seed, notation};
use selfmate_run::{Checkpoint, Run, RunError};
use selfmate_selfplay::{GameSource, Stage, Watch};
use selfmate_train::evaluation::evaluate;
use selfmate_train::{
    ConfigError, End, Hardware, Learner, Round, RoundContext, SavingConfig, TrainOptions,
    TrainingError, read_bytes, read_json, state_error, train,
};
use serde::{Deserialize, Serialize};

pub use config::{LengthRamp, PoolConfig, Proposal, TrialConfig, TuneConfig, VaryConfig};
pub use importance::{Importance, Row, picture};
pub use loss::{LosingMove, LossConfig, losing_move};
pub use mistake::{MistakeKind, MistakeRow, Mistakes};
pub use spsa::{Probe, Spsa, SpsaConfig};
pub use texel::{Example, Fit, FitExamples, TexelConfig, examples, fit};
pub use trial::Trial;

use crate::charts::{Chart, EVALUATION, GAMES_PER_SECOND, Unit, chart, curve, schedule};
use crate::table::{Description, LearnerConfig, LearnerInfo, SearchKind, boxed, megabytes, parse};
use crate::tuning::{self, Genome, WEIGHTS, engine_kind, start_weights, weights};
use challenger::Challenger;
use trial::{hash_of, mean_plies, trial_path};

/// Checkpoint files: all trials, and the training state.
pub const HISTORY: &str = "history.json";
const STATE: &str = "tuning.json";
/// The first moves of all games, and the book made from them as Polyglot and as text.
const LINES: &str = "lines.txt";
pub const BOOK: &str = "book.bin";
const BOOK_TEXT: &str = "book.txt";
/// The importance of each weight.
pub const IMPORTANCE: &str = "importance.json";
/// The kinds of moves that lost games.
pub const MISTAKES: &str = "mistakes.json";

const CHARTS: &[Chart] = &[
    chart(
        "Trials",
        "share of points of the challenger against the champion",
        Unit::Share,
        &[curve("trial.score", "")],
    ),
    chart(
        "Games of the trials",
        "of the challenger against the champion",
        Unit::Amount,
        &[
            curve("trial_results.wins", "won"),
            curve("trial_results.draws", "drawn"),
            curve("trial_results.losses", "lost"),
        ],
    ),
    chart(
        "Plies of the trials",
        "mean length of a game",
        Unit::Amount,
        &[curve("trial_plies", "")],
    ),
    chart(
        "Promotions",
        "challengers that became champion so far",
        Unit::Amount,
        &[curve("promotions", "")],
    ),
    chart(
        "Texel's error",
        "mean squared error on one game in ten, before and after fitting the weights",
        Unit::Number,
        &[curve("texel.error_before", "before"), curve("texel.error_after", "after")],
    ),
    chart("Games per trial", "until the test decided", Unit::Amount, &[curve("trial_games", "")]),
    chart("Opening book", "positions", Unit::Amount, &[curve("book.positions", "")]),
    EVALUATION,
    GAMES_PER_SECOND,
    schedule("Width of variations", &[curve("vary.share", "")]),
];

pub const INFO: LearnerInfo = LearnerInfo {
    name: "tune",
    summary: "weights of alpha-beta by champion against challenger, and an opening book",
    presets: &TuneConfig::PRESETS,
    preset: |name| boxed(TuneConfig::preset(name)),
    parse: parse::<TuneConfig>,
    bounds: config::BOUNDS,
    is_distributed: false,
    has_device: false,
    search: SearchKind::NoTree,
    player: tuning::PLAYER,
    charts: CHARTS,
    descriptions: &[
        tuning::DESCRIPTION,
        Description { file: HISTORY, lines: trial::describe },
        Description { file: MISTAKES, lines: mistake::describe },
        Description { file: IMPORTANCE, lines: describe_importance },
    ],
};

impl LearnerConfig for TuneConfig {
    fn check(&self) -> Result<(), ConfigError> {
        TuneConfig::check(self)
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<Tune>(run, self, options, source, watch)
    }

    fn memory_mb(&self, threads: usize) -> Vec<(&'static str, u64)> {
        /// Bytes of a position in Texel tuning.
        const POSITION_BYTES: u64 = 2048;
        vec![
            ("games.hash_mb", 2 * (threads * self.games.hash_mb) as u64),
            ("texel.positions", megabytes(self.texel.positions as u64 * POSITION_BYTES)),
        ]
    }
}

/// The number of weights in a description.
const SHOWN: usize = 8;

fn describe_importance(bytes: &[u8]) -> Result<Vec<String>, String> {
    let rows: Vec<Row> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let mut lines = vec!["the weights that matter most:".to_owned()];
    lines.extend(rows.iter().take(SHOWN).map(|row| {
        let Row { name, gradient, certainty, .. } = row;
        format!("  {name:28} {gradient:.5} by fit, {certainty:+.1} by matches")
    }));
    Ok(lines)
}

pub struct Tune {
    genome: Genome,
    champion: Tuning,
    state: State,
    history: Vec<Trial>,
    /// The first moves of all games with White's points: `1 e2e4 e7e5 …`.
    lines: Vec<String>,
    book: LearnedBook,
    /// Trials whose games are missing and that have been reported.
    lost: BTreeSet<u64>,
}

/// The training state in a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// The relative size of the next variation.
    share: f64,
    spsa: Spsa,
    importance: Importance,
    mistakes: Mistakes,
    /// Earlier champions, oldest first.
    pool: Vec<Tuning>,
}

/// A trial that has ended, before its result is applied.
struct Ended {
    report: MatchReport,
    records: Vec<MatchGame>,
    /// The challenger's score against earlier champions, if it met them.
    pool_score: Option<f64>,
}

impl Learner for Tune {
    type Config = TuneConfig;
    const FILES: &'static [&'static str] = &[WEIGHTS, HISTORY, STATE, LINES];
    const TRAINING_FILES: &'static [&'static str] = &[STATE, LINES];

    fn saving(config: &TuneConfig) -> SavingConfig {
        config.saving
    }

    fn new(config: &TuneConfig, _: Seed, _: Hardware) -> Result<Tune, TrainingError> {
        let (genome, champion) = (config.genome()?, start_weights(&config.start)?);
        let state = State {
            share: config.vary.share,
            spsa: Spsa::new(genome.point(&champion)),
            importance: Importance::default(),
            mistakes: Mistakes::default(),
            pool: Vec::new(),
        };
        let (history, lines) = (Vec::new(), Vec::new());
        let (book, lost) = (LearnedBook::new(config.book), BTreeSet::new());
        Ok(Tune { genome, champion, state, history, lines, book, lost })
    }

    fn restore(
        config: &TuneConfig,
        checkpoint: &Checkpoint,
        _: Hardware,
    ) -> Result<Tune, TrainingError> {
        let genome = config.genome()?;
        let state: State = read_json(checkpoint, STATE)?;
        if state.spsa.point.len() != genome.len() {
            let (got, expected) = (state.spsa.point.len(), genome.len());
            return Err(state_error(
                checkpoint,
                STATE,
                &format!("{got} weights: expected {expected}"),
            ));
        }
        let mut tune = Tune {
            champion: weights(checkpoint)?,
            history: read_json(checkpoint, HISTORY)?,
            lines: Vec::new(),
            book: LearnedBook::new(config.book),
            genome,
            state,
            lost: BTreeSet::new(),
        };
        let text = String::from_utf8_lossy(read_bytes(checkpoint, LINES)?).into_owned();
        for line in text.lines() {
            tune.add_line(line).map_err(|message| state_error(checkpoint, LINES, &message))?;
        }
        Ok(tune)
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, TrainingError> {
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
            (MISTAKES, json(serde_json::to_vec_pretty(&self.state.mistakes))),
        ])
    }

    fn round(
        &mut self,
        config: &TuneConfig,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        let number = context.totals.rounds;
        let mut proposal = config.cycle[number as usize % config.cycle.len()];
        context.report(Stage::Learn, 0.0);
        let made = match proposal {
            Proposal::Vary => Some(Challenger::new(self.champion.clone())),
            Proposal::Spsa => {
                Challenger::perturbed(&self.genome, &self.state.spsa, config, context)?
            }
            Proposal::Texel => {
                let games = self.earlier_games(config.texel.trials, context)?;
                Challenger::fitted(&self.genome, &self.champion, &games, config, context)?
            }
        };
        let Some(mut challenger) = made else { return Ok(None) };
        if challenger.tuning == self.champion {
            // The fit found nothing better, and a match of two equal engines would show nothing.
            proposal = Proposal::Vary;
            let mut rng = context.seed_for("variations").rng();
            let factors = self.state.importance.factors(self.genome.len(), config.vary.importance);
            challenger.vary(&self.genome, &self.champion, self.state.share, &factors, &mut rng);
        }
        context.report(Stage::Play, 0.0);
        let Some((report, records)) =
            self.play_trial(config, &challenger.tuning, number, context)?
        else {
            return Ok(None);
        };
        let Some(pool_score) = self.meet_pool(config, &mut challenger, number, context)? else {
            return Ok(None);
        };
        let Some(mistakes) = self.analyse_losses(config, number, &records, context)? else {
            return Ok(None);
        };
        self.state.mistakes = mistakes;

        let mut round = Round { steps: 1, nodes: challenger.nodes, ..Round::default() };
        round.games = report.games + challenger.games;
        round.nodes += records.iter().map(|record| nodes(&record.played)).sum::<u64>();
        for (name, value) in &challenger.values {
            round.add(name, *value);
        }
        let ended = Ended { report, records, pool_score };
        let trial = self.conclude(config, proposal, number, challenger, &ended)?;
        round.add("trial.score", trial.score);
        round.add("trial_elo", trial.elo);
        round.add("trial_games", trial.games as f64);
        round.add("trial_results.wins", trial.wins as f64);
        round.add("trial_results.draws", trial.draws as f64);
        round.add("trial_results.losses", trial.losses as f64);
        round.add("trial_plies", trial.mean_plies);
        if let Some(score) = trial.pool_score {
            round.add("pool.score", score);
        }
        round.add("promoted", f64::from(u8::from(trial.is_promoted)));
        round.add(
            "promotions",
            self.history.iter().filter(|trial| trial.is_promoted).count() as f64,
        );
        round.add("vary.share", self.state.share);
        round.add("book.positions", self.book.positions() as f64);
        if config.evaluation.is_due(number) {
            context.report(Stage::Rate, 0.0);
            let kind = |name: &'static str| engine_kind(name, &self.champion, &config.games, None);
            if let Some(report) =
                evaluate(&config.evaluation, kind, context.seed_for("evaluation"), context)?
            {
                round.add("evaluation.score", report.score);
            }
        }
        Ok(Some(round))
    }
}

impl Tune {
    /// Finds and writes the moves by which the champion lost games of a trial; all mistakes with
    /// these, or `None` when there was no time.
    fn analyse_losses(
        &self,
        config: &TuneConfig,
        number: u64,
        records: &[MatchGame],
        context: &RoundContext<'_>,
    ) -> Result<Option<Mistakes>, TrainingError> {
        let lost: Vec<&MatchGame> = records
            .iter()
            .filter(|record| record.a_points() == 1.0)
            .take(config.losses.games)
            .collect();
        let stop = context.cancel.flag();
        let find = |record: &&MatchGame| {
            losing_move(record.game, &record.played, &self.champion, config.losses.nodes, &stop)
        };
        let losing_moves: Vec<LosingMove> =
            context.pool.install(|| lost.par_iter().filter_map(find).collect());
        if context.cancel.is_cancelled() {
            return Ok(None);
        }
        if !losing_moves.is_empty() {
            let path = trial_path(context, number, "losses.json");
            let text = serde_json::to_vec_pretty(&losing_moves).expect("plain data");
            std::fs::write(&path, text).map_err(|error| RunError::Io { path, error })?;
        }
        let mut mistakes = self.state.mistakes.clone();
        mistakes.add(lost.len(), &losing_moves);
        Ok(Some(mistakes))
    }

    /// Applies the result of a trial.
    fn conclude(
        &mut self,
        config: &TuneConfig,
        proposal: Proposal,
        number: u64,
        challenger: Challenger,
        ended: &Ended,
    ) -> Result<Trial, TrainingError> {
        let Ended { report, records, pool_score } = ended;
        let (from, to) = (self.genome.point(&self.champion), self.genome.point(&challenger.tuning));
        let steps: Vec<f64> = to.iter().zip(&from).map(|(to, from)| to - from).collect();
        let importance = &mut self.state.importance;
        for (steps, share, games) in &challenger.matches {
            importance.add_match(steps, *share, *games);
        }
        // SPSA and Texel move all weights on purpose, so their result says little about each
        // weight.
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
            self.add_line(&line).map_err(TrainingError::Teacher)?;
        }
        let sprt = report.sprt;
        let is_promoted = sprt.is_some_and(|sprt| sprt.decision == Decision::AcceptH1)
            && pool_score.is_none_or(|score| score >= 0.5);
        if is_promoted {
            let pool = &mut self.state.pool;
            pool.push(std::mem::replace(&mut self.champion, challenger.tuning));
            pool.drain(..pool.len().saturating_sub(config.pool.champions));
            self.state.share = config.vary.share;
            if proposal != Proposal::Spsa {
                // SPSA continues from the new champion.
                self.state.spsa.point = self.genome.point(&self.champion);
            }
        } else if proposal == Proposal::Spsa && report.score < 0.5 {
            // SPSA restarts from the champion after a loss.
            self.state.spsa.point = self.genome.point(&self.champion);
        } else if proposal == Proposal::Vary {
            self.state.share = (self.state.share * config.vary.growth).min(config.vary.most);
        }
        let trial = Trial {
            number,
            proposal,
            games: report.games,
            wins: report.wins,
            draws: report.draws,
            losses: report.losses,
            score: report.score,
            mean_plies: mean_plies(records),
            elo: report.elo.unwrap_or(0.0),
            elo_error: report.elo_error.unwrap_or(0.0),
            llr: sprt.map_or(0.0, |sprt| sprt.llr),
            pool_score: *pool_score,
            is_promoted,
            games_hash: hash_of(records),
        };
        self.history.push(trial.clone());
        Ok(trial)
    }

    /// Adds the first moves of a game to the book and to the list of lines.
    fn add_line(&mut self, line: &str) -> Result<(), String> {
        let (points, moves) = line.split_once(' ').unwrap_or((line, ""));
        let points: f64 =
            points.parse().map_err(|_| format!("'{points}' is not a number of points"))?;
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
    game.evals.iter().filter_map(|eval| eval.nodes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_by_name() {
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
