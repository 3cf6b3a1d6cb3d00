//! The loop that every learner shares: rounds, metrics, checkpoints, ratings and the end.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use selfmate_chess::Seed;
use selfmate_run::{Progress, Rating, Record, Run};
use selfmate_selfplay::{GameSource, PlayLimits, Stage, Status, Watch, Watchdog};

use crate::error::TrainingError;
use crate::learner::{Curves, Learner, RoundContext, Totals, read_json};
use crate::options::{End, TrainOptions};
use crate::rating;
use crate::run_session::{Retention, RunSession};

/// The checkpoint file of the [`Totals`] as JSON.
pub const TOTALS: &str = "totals.json";

/// Trains until the budget is spent, there is nothing more to learn or a stop is requested,
/// starting from the latest checkpoint.
pub fn train<L: Learner>(
    run: &mut Run,
    config: &L::Config,
    options: &TrainOptions<'_>,
    source: &mut dyn GameSource,
    watch: &mut dyn Watch,
) -> Result<End, TrainingError> {
    let required: Vec<&str> = L::FILES.iter().copied().chain([TOTALS]).collect();
    let (mut session, checkpoint) =
        RunSession::open(run, options, watch, &required, L::FIXED_SETTINGS)?;
    let hardware = options.hardware;
    let threads = hardware.threads.max(1);
    let seed = Seed::new(options.seed);
    let (mut learner, mut totals) = match &checkpoint {
        Some(checkpoint) => {
            let totals: Totals = read_json(checkpoint, TOTALS)?;
            (L::restore(config, checkpoint, hardware)?, totals)
        }
        None => (L::new(config, seed, hardware)?, Totals::default()),
    };
    session.rewind(totals.rounds, totals.elapsed_s)?;
    let pool = hardware.pool()?;
    session.watch.status(&Status { elapsed_s: session.elapsed_s(), ..Status::default() });
    let mut notes = Vec::new();
    learner.prepare(config, &totals, session.run, &pool, &mut notes)?;
    notes.into_iter().for_each(|note| session.note(note));
    session.begin(totals.steps, totals.rounds)?;
    loop {
        let end = end(&learner, config, &session, &totals);
        let elapsed_s = session.elapsed_s();
        let deadline = session.deadline().filter(|_| end.is_none());
        let watchdog = Watchdog::new(options.stop, deadline);
        let mut context = RoundContext {
            seed,
            run_seed: options.seed,
            totals,
            threads,
            pool: &pool,
            cancel: watchdog.token(),
            run: &mut *session.run,
            source: &mut *source,
            watch: &mut *session.watch,
            limits: PlayLimits { stop: options.stop, deadline, status: Status::default() },
            elapsed_s,
            began: Instant::now(),
            minutes: options.budget.minutes,
            max_steps: options.budget.steps,
        };
        if let Some(end) = end {
            let values = match end {
                End::Stopped => Curves::new(),
                _ => learner.finish(config, &mut context)?,
            };
            let is_changed = !values.is_empty();
            if is_changed {
                append_progress(&mut session, &totals, values)?;
            }
            totals.steps = learner.step().unwrap_or(totals.steps);
            if is_changed || !session.is_saved(totals.steps) {
                save(&mut session, &learner, config, &mut totals)?;
            }
            return session.end(end);
        }
        let Some(mut round) = learner.round(config, &mut context)? else { continue };
        totals.add(&round, learner.step());
        let seconds = (session.elapsed_s() - elapsed_s).max(1e-9);
        round.add("round_seconds", seconds);
        round.add("games_per_second", round.games as f64 / seconds);
        append_progress(&mut session, &totals, round.values)?;
        for alarm in round.alarms {
            session.append(&Record::Alarm(alarm))?;
        }
        if learner.end(config).is_some() {
            continue;
        }
        // The last checkpoint is saved after `finish`.
        if session.is_due(L::saving(config).checkpoint_seconds) && !is_spent::<L>(&session, &totals)
        {
            save(&mut session, &learner, config, &mut totals)?;
        }
        rate_if_due(&mut session, &learner, config, &totals)?;
    }
}

/// Why the training ends now, if it does.
fn end<L: Learner>(
    learner: &L,
    config: &L::Config,
    session: &RunSession<'_>,
    totals: &Totals,
) -> Option<End> {
    if session.options.stop.load(Relaxed) {
        Some(End::Stopped)
    } else if session.is_cancelled() {
        Some(End::Finished)
    } else if learner.is_mid_round() {
        // A learner that counts its own steps can stop between any two of them.
        let is_spent = learner.step().is_some_and(|step| session.is_spent(0, step));
        is_spent.then_some(End::Finished)
    } else if let Some(end) = learner.end(config) {
        Some(end)
    } else {
        is_spent::<L>(session, totals).then_some(End::Finished)
    }
}

fn is_spent<L: Learner>(session: &RunSession<'_>, totals: &Totals) -> bool {
    session.is_spent(if L::ENDS_BY_GAMES { totals.games } else { 0 }, totals.steps)
}

fn append_progress(
    session: &mut RunSession<'_>,
    totals: &Totals,
    values: Curves,
) -> Result<(), TrainingError> {
    session.append(&Record::Progress(Progress {
        elapsed_s: session.elapsed_s(),
        generation: totals.rounds,
        games: totals.games,
        positions: totals.positions,
        simulations: totals.nodes,
        steps: totals.steps,
        values,
    }))
}

fn save<L: Learner>(
    session: &mut RunSession<'_>,
    learner: &L,
    config: &L::Config,
    totals: &mut Totals,
) -> Result<(), TrainingError> {
    totals.elapsed_s = session.elapsed_s();
    let mut files = learner.files()?;
    files.push((TOTALS, serde_json::to_vec(totals).expect("totals are plain numbers")));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let retention =
        Retention { steps: L::saving(config).keep_steps, training_files: L::TRAINING_FILES };
    session.save(totals.steps, &files, retention)
}

fn rate_if_due<L: Learner>(
    session: &mut RunSession<'_>,
    learner: &L,
    config: &L::Config,
    totals: &Totals,
) -> Result<(), TrainingError> {
    let Some(rating) = L::rating(config) else { return Ok(()) };
    let due = session.rated_s + rating.every_seconds;
    if rating.every_seconds <= 0.0 || session.elapsed_s() < due {
        return Ok(());
    }
    let Some(model) = learner.rated_model()? else { return Ok(()) };
    session.watch.status(&Status {
        stage: Stage::Rate,
        elapsed_s: session.elapsed_s(),
        generation: totals.rounds,
        games: totals.games,
        positions: totals.positions,
        simulations: totals.nodes,
        steps: totals.steps,
        done: 0.0,
    });
    let TrainOptions { seed, hardware, stop, .. } = *session.options;
    let watchdog = Watchdog::new(stop, session.deadline());
    let seed = seed.wrapping_add(totals.rounds);
    let report = rating::rate(&model, rating, seed, hardware.threads, watchdog.flag())?;
    session.rated_s = session.elapsed_s();
    // An interrupted rating depends on time, so it is not recorded.
    let Some(elo) = report.elo.filter(|_| !session.is_cancelled()) else { return Ok(()) };
    session.append(&Record::Rating(Rating {
        elapsed_s: session.rated_s,
        step: totals.steps,
        generation: totals.rounds,
        elo,
        low: report.elo_low.unwrap_or(elo),
        high: report.elo_high.unwrap_or(elo),
        games: report.games,
    }))?;
    let mistakes = rating::mistakes(&model, rating, watchdog.flag())?;
    let Some(mistakes) = mistakes.filter(|_| !session.is_cancelled()) else { return Ok(()) };
    append_progress(
        session,
        totals,
        Curves::from([("evaluation.endgame_mistakes".to_owned(), mistakes)]),
    )
}
