//! Whether a game from another machine can be a game of a generation.
//!
//! Decoding a record has already checked that its moves are legal and its numbers finite. This module
//! checks everything that a game's number and the config decide without a search: the start, which
//! positions are recorded, and where the game has to end. To check what the searches found, the game
//! has to be recomputed.

use selfmate_chess::{Outcome, Reason};
use selfmate_run::{GameRecord, RecordError};

use crate::config::SelfPlayConfig;
use crate::game::{GameStart, Generation, draw_fast};
use crate::resign::ResignCounter;
use crate::start::start_fen;

/// Why a game cannot be one of a generation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordMismatch {
    /// Played by another network.
    #[error("played by the network of step {got}: expected step {expected}")]
    Network {
        /// The generation's.
        expected: u64,
        /// The game's.
        got: u64,
    },
    /// Another start than the one of its number.
    #[error("the start is not that of its number, at ply {ply}")]
    Start {
        /// Where it differs.
        ply: usize,
    },
    /// Goes on after it was over.
    #[error("goes on after it was over at ply {ply}")]
    Over {
        /// Where it was over.
        ply: usize,
    },
    /// Another end than the last position has.
    #[error("ends with '{got}': expected {expected}")]
    End {
        /// What the game says.
        got: Outcome,
        /// What the rules and the config say.
        expected: &'static str,
    },
    /// A position is judged that should not be, or the other way round.
    #[error("the judged positions are not those of its number, at ply {ply}")]
    Position {
        /// The first such position.
        ply: usize,
    },
    /// Cannot be played at all.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Values are stored with 16 bits; a search's value may have been this far from the stored one.
const ROUNDING: f64 = 1.0 / 32_767.0;

/// Checks a game against the generation that it is said to be of.
pub fn check(record: &GameRecord, generation: &Generation) -> Result<(), RecordMismatch> {
    if record.network != generation.network {
        return Err(RecordMismatch::Network { expected: generation.network, got: record.network });
    }
    let start = GameStart::new(generation, record.number);
    check_start(record, &start)?;
    let config = &generation.config;
    check_end(record, &start, config)?;
    let may_resign = start.may_resign;
    check_judged(record, start, config)?;
    // All searches are on record only where none is a quick one.
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

/// The game ends where the rules, the cap or a resignation end it, and nowhere else.
fn check_end(
    record: &GameRecord,
    start: &GameStart,
    config: &SelfPlayConfig,
) -> Result<(), RecordMismatch> {
    let mut game = start.game.clone();
    let first = game.ply();
    for &m in &record.moves[first..] {
        let ply = game.ply();
        // The start is never over, so this looks at every position but the last.
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
        (Some(_), _) => "what the rules say",
        (None, Reason::Adjudication) if !start.may_resign => "a game played out",
        (None, Reason::Adjudication) if got.winner.is_some() => return Ok(()),
        (None, Reason::Adjudication) => "a winner",
        (None, Reason::Truncated) if game.ply() - first == config.max_plies as usize => {
            return Ok(());
        }
        (None, _) => "a game that goes on",
    };
    Err(RecordMismatch::End { got, expected })
}

/// Every search but the quick ones is on record.
fn check_judged(
    record: &GameRecord,
    mut start: GameStart,
    config: &SelfPlayConfig,
) -> Result<(), RecordMismatch> {
    let first = start.game.ply();
    // The search that gave a game up was followed by no move.
    let is_resigned = record.outcome.reason == Reason::Adjudication;
    let end = record.moves.len() + usize::from(is_resigned);
    let mut judged = record.positions.iter().map(|judged| usize::from(judged.ply)).peekable();
    for ply in first..end {
        let is_fast = draw_fast(config, &mut start.rng);
        if judged.next_if_eq(&ply).is_some() == is_fast {
            return Err(RecordMismatch::Position { ply });
        }
    }
    judged.next().map_or(Ok(()), |ply| Err(RecordMismatch::Position { ply }))
}

/// A game is given up when its searches say so, as far as the stored values can tell.
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
    for (index, judged) in record.positions.iter().enumerate() {
        let turn = record.turn(usize::from(judged.ply));
        favourite = may.add(judged.value, turn, &lenient);
        let is_due = must.add(judged.value, turn, &strict).is_some();
        let is_last = index + 1 == record.positions.len();
        if may_resign && is_due && !(is_resigned && is_last) {
            return Err(RecordMismatch::End { got, expected: "a game given up before" });
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
        // A trained network is sure of some results, a random one of none.
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
    fn games_that_were_played_fit() {
        for fast_share in [0.0, 0.4] {
            let (generation, games) = games(&SelfPlayConfig { fast_share, ..config() });
            for game in &games {
                assert_eq!(check(game, &generation), Ok(()), "game {}", game.number);
            }
            let given_up = |game: &&GameRecord| game.outcome.reason == Reason::Adjudication;
            let given_up = games.iter().filter(given_up).count();
            assert!(given_up > 0 && given_up < games.len(), "{given_up}");
        }
    }

    #[test]
    fn every_lie_about_a_game_is_found() {
        let (generation, games) = games(&config());
        let lie = |test: fn(&GameRecord) -> bool, change: fn(&mut GameRecord)| {
            let mut game = games.iter().find(|game| test(game)).expect("such a game").clone();
            change(&mut game);
            check(&game, &generation).expect_err("a lie").to_string()
        };
        let any = |_: &GameRecord| true;
        let given_up = |game: &GameRecord| game.outcome.reason == Reason::Adjudication;
        let long = |game: &GameRecord| game.moves.len() > 20;
        assert!(lie(any, |game| game.network = 8).starts_with("played by the network of step 8"));
        assert!(lie(any, |game| game.number += 100).contains("is not that of its number"));
        assert!(lie(long, |game| game.moves.truncate(1)).len() > 10);
        let other_winner = lie(given_up, |game| {
            game.outcome.winner = game.outcome.winner.map(|winner| !winner);
        });
        assert!(other_winner.contains("sure of that winner"), "{other_winner}");
        let nobody = lie(given_up, |game| game.outcome.winner = None);
        assert!(nobody.contains("expected a winner"), "{nobody}");
        let text = lie(given_up, |game| _ = game.positions.pop());
        assert!(text.contains("judged positions"), "{text}");
        let truncated = |game: &GameRecord| game.outcome.reason == Reason::Truncated;
        let text = lie(truncated, |game| {
            game.outcome = Outcome { winner: Some(Color::White), reason: Reason::Adjudication };
        });
        assert!(text.starts_with("ends with") || text.contains("judged"), "{text}");
        let text = lie(truncated, |game| {
            game.outcome = Outcome { winner: None, reason: Reason::Threefold };
        });
        assert!(text.starts_with("ends with") || text.contains("judged"), "{text}");
    }
}
