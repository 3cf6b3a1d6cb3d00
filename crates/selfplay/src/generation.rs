//! Playing a generation: what is on disk is used, the rest is played and sealed.

use std::collections::HashSet;

use selfmate_run::{GameRecord, Run, RunError};

use crate::error::SelfPlayError;
use crate::sink::{GameSink, PlayLimits};
use crate::source::{Completion, GameSource, GenerationJob};
use crate::watch::Watch;

/// A generation, or what there was time for.
pub struct PlayedGeneration {
    /// All games as they are stored; `None` when there was no time for all of them. Finished games
    /// stay in the journal.
    pub games: Option<Vec<GameRecord>>,
    /// Simulations of the games that were played now.
    pub simulations: u64,
}

/// Has the games of a generation played, except those that are on disk already.
pub fn play_generation(
    run: &mut Run,
    watch: &mut dyn Watch,
    source: &mut dyn GameSource,
    mut job: GenerationJob<'_>,
    limits: &PlayLimits<'_>,
) -> Result<PlayedGeneration, SelfPlayError> {
    let (index, network) = (job.index, job.generation.network);
    let wanted: HashSet<u64> = job.numbers.iter().copied().collect();
    let is_ours = |game: &GameRecord| wanted.contains(&game.number) && game.network == network;
    if run.chunks()?.contains(&index) {
        match run.read_chunk(index) {
            Ok(games) if games.iter().all(is_ours) && !games.is_empty() => {
                let mut valid = games;
                valid.retain(|game| !source.is_invalid(game.number));
                if valid.len() == wanted.len() {
                    return Ok(PlayedGeneration { games: Some(valid), simulations: 0 });
                }
                let missing = wanted.len() - valid.len();
                watch.note(&format!(
                    "generation {index}: {missing} games that were removed are played again"
                ));
                // The journal first: after a kill in between the chunk is still there.
                let (mut journal, _) = run.journal(index)?;
                journal.replace(&valid)?;
                run.remove_chunk(index)?;
            }
            Ok(_) => {
                let what = format!("the stored games of generation {index} are other games");
                set_aside(run, watch, index, &what)?;
            }
            Err(RunError::Damaged(damage)) => set_aside(run, watch, index, &damage.to_string())?,
            Err(error) => return Err(error.into()),
        }
    }

    let (journal, mut games) = run.journal(index)?;
    games.retain(is_ours);
    let found: HashSet<u64> = games.iter().map(|game| game.number).collect();
    job.numbers.retain(|number| !found.contains(number));

    let mut sink = GameSink::new(run, journal, games, wanted.len(), watch, limits);
    // Also when no game is missing: a source may have to check the games that were found.
    let completion = source.play(&job, &mut sink)?;
    let GameSink { journal, games, simulations, .. } = sink;
    if games.len() < wanted.len() || completion == Completion::Incomplete {
        return Ok(PlayedGeneration { games: None, simulations });
    }
    journal.seal(run, &games)?;
    // Learn from what is stored, so that a resumed run learns the same.
    Ok(PlayedGeneration { games: Some(run.read_chunk(index)?), simulations })
}

fn set_aside(
    run: &mut Run,
    watch: &mut dyn Watch,
    index: u64,
    what: &str,
) -> Result<(), SelfPlayError> {
    watch.note(&format!("{what}; set aside, playing them again"));
    run.set_aside(index)?;
    Ok(())
}
