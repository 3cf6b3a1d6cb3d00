//! Checks whether a game from another machine can belong to a generation.
//!
//! Decoding a record has already checked that its moves are legal and its numbers are finite. This
//! module checks everything that follows from a game's number and the config without a search: the
//! start, which positions are recorded, and where the game ends. To check the results of searches,
//! the game has to be recomputed.

use selfmate_chess::{Outcome, Reason};
use selfmate_run::{GameRecord, RecordError};

use crate::config::SelfPlayConfig;
use crate::game::{GameStart, Generation, draw_fast};
use crate::resign::ResignCounter;
use crate::start::start_fen;

/// Why a game cannot belong to a generation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordMismatch {
    #[error("played by the network of step {got}: expected step {expected}")]
    Network { expected: u64, got: u64 },
    #[error("the start is not that of its number, at ply {ply}")]
    Start { ply: usize },
    #[error("goes on after it was over at ply {ply}")]
    Over { ply: usize },
    /// The end does not follow from the moves, the rules and the config.
    #[error("ends with '{got}': expected {expected}")]
    End { got: Outcome, expected: &'static str },
    /// A position is recorded that should not be, or the other way round.
    #[error("the recorded positions are not those of its number, at ply {ply}")]
    Position { ply: usize },
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Values are stored with 16 bits, so the value of a search may differ from the stored one by this
/// much.
const ROUNDING: f64 = 1.0 / 32_767.0;

/// Checks a game against the generation that it claims to belong to.
pub fn check(record: &GameRecord, generation: &Generation) -> Result<(), RecordMismatch> {
    if record.network != generation.network {
        return Err(RecordMismatch::Network { expected: generation.network, got: record.network });
    }
    let start = GameStart::new(generation, record.number);
    check_start(record, &start)?;
    let config = &generation.config;
    check_end(record, &start, config)?;
    let may_resign = start.may_resign;
    check_recorded(record, start, config)?;
    // Fast searches are not recorded, and without all values a resignation cannot be checked.
    if config.fast_share == 0.0 {
        check_resignation(record, may_resign, config)?;
    }
    Ok(())
}

fn check_start(record: &GameRecord, start: &GameStart) -> Result<(), RecordMismatch> {
    if record.start != start_fen(&start.game) {
        return Err(RecordMismatch::Start { ply: 0 });
    }
    let mut played = record.moves.iter();
    for (ply, m) in start.game.moves().enumerate() {
        if played.next() != Some(&m) {
            return Err(RecordMismatch::Start { ply });
        }
    }
    Ok(())
}

/// The game ends by the rules, the ply cap or a resignation, and not before or after.
fn check_end(
    record: &GameRecord,
    start: &GameStart,
    config: &SelfPlayConfig,
) -> Result<(), RecordMismatch> {
    let mut game = start.game.clone();
    let first = game.ply();
    for &m in &record.moves[first..] {
        let ply = game.ply();
        // The start is never over, so this checks every position except the last.
        if game.outcome().is_some() || ply - first >= config.max_plies as usize {
            return Err(RecordMismatch::Over { ply });
        }
        game.play(m).map_err(|error| RecordError {
            number: Some(record.number),
            ply: Some(ply),
            what: error.to_string(),
        })?;
    }
    let got = record.outcome;
    let expected = match (game.outcome(), got.reason) {
        (Some(outcome), _) if outcome == got => return Ok(()),
        (Some(_), _) => "the result by the rules",
        (None, Reason::Adjudication) if !start.may_resign => "a game without resignation",
        (None, Reason::Adjudication) if got.winner.is_some() => return Ok(()),
        (None, Reason::Adjudication) => "a winner",
        (None, Reason::Truncated) if game.ply() - first == config.max_plies as usize => {
            return Ok(());
        }
        (None, _) => "more moves",
    };
    Err(RecordMismatch::End { got, expected })
}

/// Every search except the fast ones is recorded.
fn check_recorded(
    record: &GameRecord,
    mut start: GameStart,
    config: &SelfPlayConfig,
) -> Result<(), RecordMismatch> {
    let first = start.game.ply();
    // The search that resigned the game has no move after it.
    let is_resigned = record.outcome.reason == Reason::Adjudication;
    let end = record.moves.len() + usize::from(is_resigned);
    let mut recorded = record.positions.iter().map(|position| usize::from(position.ply)).peekable();
    for ply in first..end {
        let is_fast = draw_fast(config, &mut start.rng);
        if recorded.next_if_eq(&ply).is_some() == is_fast {
            return Err(RecordMismatch::Position { ply });
        }
    }
    recorded.next().map_or(Ok(()), |ply| Err(RecordMismatch::Position { ply }))
}

/// A game is resigned when the values of its searches require it, allowing for their rounding.
fn check_resignation(
    record: &GameRecord,
    may_resign: bool,
    config: &SelfPlayConfig,
) -> Result<(), RecordMismatch> {
    let with =
        |slack: f64| SelfPlayConfig { resign_value: config.resign_value + slack, ..config.clone() };
    let (lenient, strict) = (with(-ROUNDING), with(ROUNDING));
    let (mut may, mut must) = (ResignCounter::default(), ResignCounter::default());
    let got = record.outcome;
    let is_resigned = got.reason == Reason::Adjudication;
    let mut favourite = None;
    for (index, position) in record.positions.iter().enumerate() {
        let turn = record.turn(usize::from(position.ply));
        favourite = may.add(position.value, turn, &lenient);
        let is_due = must.add(position.value, turn, &strict).is_some();
        let is_last = index + 1 == record.positions.len();
        if may_resign && is_due && !(is_resigned && is_last) {
            return Err(RecordMismatch::End { got, expected: "an earlier resignation" });
        }
    }
    if is_resigned && favourite != got.winner {
        return Err(RecordMismatch::End { got, expected: "searches sure of that winner" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use selfmate_chess::Color;
    use selfmate_nn::sparse::{self, Network};

    use super::*;
    use crate::SelfPlayer;

    fn games(config: &SelfPlayConfig) -> (Generation, Vec<GameRecord>) {
        // A trained network is certain of some results, a random one of none.
        let file = include_bytes!("../../../nets/zero.safetensors");
        let network = Network::new(&sparse::decode(file).unwrap().0);
        let generation = Generation {
            config: config.clone(),
            seed: Generation::games_seed(3),
            simulations: 4,
            network: 7,
        };
        let mut player = SelfPlayer::new(config, Box::new(network));
        let (mut numbers, mut games) = (0..24, Vec::new());
        player.play(
            &generation,
            || numbers.next(),
            |played| games.push(played.record.rounded()),
            &AtomicBool::new(false),
        );
        (generation, games)
    }

    /// Early resignations in half of the games and a low ply cap, so that games end in every way.
    fn config() -> SelfPlayConfig {
        SelfPlayConfig {
            resign_value: 0.5,
            resign_plies: 2,
            resign_share: 0.5,
            max_plies: 40,
            ..SelfPlayConfig::tiny()
        }
    }

    #[test]
    fn games_that_were_played_are_accepted() {
        for fast_share in [0.0, 0.4] {
            let (generation, games) = games(&SelfPlayConfig { fast_share, ..config() });
            for game in &games {
                assert_eq!(check(game, &generation), Ok(()), "game {}", game.number);
            }
            let resigned = |game: &&GameRecord| game.outcome.reason == Reason::Adjudication;
            let resigned = games.iter().filter(resigned).count();
            assert!(resigned > 0 && resigned < games.len(), "{resigned}");
        }
    }

    #[test]
    fn every_falsified_game_is_rejected() {
        let (generation, games) = games(&config());
        let falsify = |test: fn(&GameRecord) -> bool, change: fn(&mut GameRecord)| {
            let mut game = games.iter().find(|game| test(game)).expect("such a game").clone();
            change(&mut game);
            check(&game, &generation).expect_err("rejected").to_string()
        };
        let any = |_: &GameRecord| true;
        let resigned = |game: &GameRecord| game.outcome.reason == Reason::Adjudication;
        let long = |game: &GameRecord| game.moves.len() > 20;
        assert!(
            falsify(any, |game| game.network = 8).starts_with("played by the network of step 8")
        );
        assert!(falsify(any, |game| game.number += 100).contains("is not that of its number"));
        assert!(falsify(long, |game| game.moves.truncate(1)).len() > 10);
        let other_winner = falsify(resigned, |game| {
            game.outcome.winner = game.outcome.winner.map(|winner| !winner);
        });
        assert!(other_winner.contains("sure of that winner"), "{other_winner}");
        let no_winner = falsify(resigned, |game| game.outcome.winner = None);
        assert!(no_winner.contains("expected a winner"), "{no_winner}");
        let text = falsify(resigned, |game| _ = game.positions.pop());
        assert!(text.contains("recorded positions"), "{text}");
        let truncated = |game: &GameRecord| game.outcome.reason == Reason::Truncated;
        let text = falsify(truncated, |game| {
            game.outcome = Outcome { winner: Some(Color::White), reason: Reason::Adjudication };
        });
        assert!(text.starts_with("ends with") || text.contains("recorded positions"), "{text}");
        let text = falsify(truncated, |game| {
            game.outcome = Outcome { winner: None, reason: Reason::Threefold };
        });
        assert!(text.starts_with("ends with") || text.contains("recorded positions"), "{text}");
    }
}
