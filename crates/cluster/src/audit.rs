//! Compares a game that a worker sent with a replay of it.
//!
//! With the sparse network and with an MLP the replay is equal bit for bit. Inference of the one is in
//! integers, of the other in floats that are added in a fixed order without fused operations; the
//! search adds, multiplies and divides in a fixed order, and logarithm and hyperbolic tangent come from
//! `libm`, which gives the same bits on every system.
//!
//! Networks with convolutions add floats in an order that depends on the vector units of the processor. There,
//! each position of the sent game is searched again, along the moves that were sent. The results must
//! be close and the moves must be those that the search chooses, except in a few plies
//! ([`Agreement::Diverged`]); a worker whose games diverge too often is banned.
//!
//! This module only compares. The auditor replays the games, and the collector bans.

use selfmate_nn::Model;
use selfmate_run::{GameRecord, PositionRecord};
use selfmate_selfplay::Recomputed;

/// How closely a replay on another machine matches the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// The same bits on every machine.
    Exact,
    /// Up to rounding of floats.
    Rounded,
}

/// The result of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Equal, or within rounding where networks compute in floats.
    Same,
    /// A few plies differ by more than rounding, the first at `ply`. It happens to honest workers
    /// where two moves are almost equal, so one such game does not lead to a ban.
    Diverged { ply: usize },
    /// The network does not play this game. The text says where it differs; the worker is banned.
    Different(String),
}

/// Largest differences that count as rounding. A change of the last bit moves at most a visit or two
/// of a search of sixteen or more.
const VALUE_TOLERANCE: f32 = 0.15;
const POLICY_TOLERANCE: f32 = 0.3;
/// One in this many plies may differ by more.
const PLIES_PER_DEVIATION: usize = 8;

impl Exactness {
    pub const fn of(model: &Model) -> Exactness {
        match model {
            Model::Sparse(_) | Model::Mlp(_) => Exactness::Exact,
            Model::Residual(_) | Model::Conv(_) => Exactness::Rounded,
        }
    }
}

/// Compares a game with its replay where replays are exact. Both must be rounded as they are stored.
pub fn compare(sent: &GameRecord, own: &GameRecord) -> Agreement {
    if sent == own {
        return Agreement::Same;
    }
    let diverged = first_difference(&sent.moves, &own.moves);
    Agreement::Different(difference(sent, own, diverged))
}

/// Compares a game with searches along its own moves, where networks compute in floats.
pub fn compare_recomputed(sent: &GameRecord, own: &Recomputed) -> Agreement {
    let plies = |positions: &[PositionRecord]| positions.iter().map(|p| p.ply).collect::<Vec<_>>();
    if plies(&sent.positions) != plies(&own.positions) {
        return Agreement::Different("other positions were searched".to_owned());
    }
    let pairs = sent.positions.iter().zip(&own.positions);
    let searches =
        pairs.filter(|(sent, own)| !is_close(sent, own)).map(|(sent, _)| sent.ply.into());
    let played = sent.moves.iter().skip(own.first).zip(&own.moves).enumerate();
    let moves = played.filter(|(_, (sent, own))| sent != own).map(|(place, _)| own.first + place);
    let deviations: Vec<usize> = searches.chain(moves).collect();
    classify(&deviations, own.moves.len())
}

/// Classifies a game by the plies that differ by more than rounding.
pub(crate) fn classify(deviations: &[usize], plies: usize) -> Agreement {
    let Some(&ply) = deviations.iter().min() else { return Agreement::Same };
    // Even the shortest game may have one.
    if deviations.len() > 1 + plies / PLIES_PER_DEVIATION {
        let count = deviations.len();
        return Agreement::Different(format!(
            "{count} searches and moves of {plies} plies differ, from ply {ply}"
        ));
    }
    Agreement::Diverged { ply }
}

/// The index of the first difference; the length of the shorter list if there is none before.
fn first_difference<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Describes the first difference, for the owner of the worker.
fn difference(sent: &GameRecord, own: &GameRecord, diverged: usize) -> String {
    let position = sent.positions.iter().zip(&own.positions).find(|(sent, own)| sent != own);
    let searched = position.map_or(usize::MAX, |(sent, own)| sent.ply.min(own.ply).into());
    let is_move = diverged < sent.moves.len().max(own.moves.len()) && diverged < searched;
    match (is_move, searched) {
        (true, _) => format!("different move at ply {diverged}"),
        (false, usize::MAX) => format!("different end at ply {diverged}"),
        (false, ply) => format!("different search at ply {ply}"),
    }
}

fn is_close(sent: &PositionRecord, own: &PositionRecord) -> bool {
    let distance: f32 =
        sent.policy.iter().zip(&own.policy).map(|(sent, own)| (sent - own).abs()).sum();
    sent.policy.len() == own.policy.len()
        && (sent.value - own.value).abs() <= VALUE_TOLERANCE
        && distance / 2.0 <= POLICY_TOLERANCE
}

/// Whether a worker's audited games diverge too often for rounding: more than a quarter of at least
/// twenty. The collector then bans the worker.
pub const fn diverges_too_often(diverged: u64, audited: u64) -> bool {
    audited >= 20 && 4 * diverged > audited
}

/// The probability that a worker that fakes a share of its games is found within this many games,
/// if a share of games is audited.
pub fn detection_probability(faked: f64, audited: f64, games: u32) -> f64 {
    1.0 - libm::pow(1.0 - faked * audited, f64::from(games))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::AtomicBool;

    use selfmate_chess::Seed;
    use selfmate_nn::sparse::{Network, SparseConfig, Weights};
    use selfmate_selfplay::{FinishedGame, Generation, SelfPlayer};

    use super::*;
    use crate::hash::Hash;
    use crate::job;
    use crate::key::Key;
    use crate::subject::WorkerName;

    pub(crate) fn tiny_shape() -> SparseConfig {
        SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() }
    }

    pub(crate) fn generation() -> Generation {
        job::tests::generation_job().generation()
    }

    pub(crate) fn play(generation: &Generation, number: u64) -> FinishedGame {
        let shape = tiny_shape();
        let network = Network::new(&Weights::random(shape, Seed::new(1)).unwrap());
        let mut player = SelfPlayer::new(&generation.config, Box::new(network));
        let (mut next, mut games) = (Some(number), Vec::new());
        let stop = AtomicBool::new(false);
        player.play(generation, || next.take(), |played| games.push(played), &stop);
        games.pop().expect("one game")
    }

    #[test]
    fn the_smallest_forgery_is_found() {
        let generation = generation();
        let own = play(&generation, 3).record.rounded();
        let compare = |sent: &GameRecord| compare(sent, &own);
        assert_eq!(compare(&play(&generation, 3).record.rounded()), Agreement::Same);
        let mut sent = own.clone();
        sent.positions[2].value += 0.001;
        let ply = own.positions[2].ply;
        let text = format!("different search at ply {ply}");
        assert_eq!(compare(&sent), Agreement::Different(text));
        let mut sent = own.clone();
        sent.moves.pop();
        assert!(matches!(compare(&sent), Agreement::Different(_)));
        let fewer = Generation { simulations: 2, ..generation.clone() };
        let cheap = play(&fewer, 3).record.rounded();
        assert!(matches!(compare(&cheap), Agreement::Different(_)));
    }

    fn player(generation: &Generation) -> SelfPlayer {
        let shape = tiny_shape();
        let network = Network::new(&Weights::random(shape, Seed::new(1)).unwrap());
        SelfPlayer::new(&generation.config, Box::new(network))
    }

    #[test]
    fn only_rounding_is_tolerated_where_networks_compute_in_floats() {
        let generation = generation();
        let stop = AtomicBool::new(false);
        let mut player = player(&generation);
        let mut compare = |sent: &GameRecord| {
            compare_recomputed(sent, &player.recompute(&generation, sent, &stop).unwrap())
        };
        let own = play(&generation, 3).record.rounded();
        assert_eq!(compare(&own), Agreement::Same);
        let mut sent = own.clone();
        sent.positions.iter_mut().for_each(|position| position.value += 0.01);
        assert_eq!(compare(&sent), Agreement::Same);
        let forge = |position: &mut PositionRecord| {
            let last = position.policy.len() - 1;
            position.policy.fill(0.0);
            position.policy[last] = 1.0;
            position.value = if position.value > 0.0 { -0.5 } else { 0.5 };
        };
        let mut sent = own.clone();
        forge(&mut sent.positions[4]);
        assert_eq!(compare(&sent), Agreement::Diverged { ply: own.positions[4].ply.into() });
        let mut sent = own.clone();
        sent.positions.iter_mut().for_each(forge);
        assert!(matches!(compare(&sent), Agreement::Different(_)));
        let mut sent = own.clone();
        sent.positions.pop();
        assert_eq!(
            compare(&sent),
            Agreement::Different("other positions were searched".to_owned())
        );
        assert!(
            !diverges_too_often(5, 19) && !diverges_too_often(5, 20) && diverges_too_often(6, 20)
        );
    }

    /// The worker sends honest search results, but plays other moves.
    #[test]
    fn moves_that_the_search_did_not_choose_are_found() {
        let generation = generation();
        let stop = AtomicBool::new(false);
        let mut player = player(&generation);
        let mut sent = play(&generation, 3).record.rounded();
        let first = player.recompute(&generation, &sent, &stop).unwrap().first;
        // After the opening, always the last legal move.
        let mut game = selfmate_chess::Game::new();
        if let Some(fen) = &sent.start {
            game = selfmate_chess::fen::parse_game(fen).unwrap();
        }
        sent.moves.truncate(first);
        sent.moves.iter().for_each(|&m| game.play(m).unwrap());
        for _ in 0..20 {
            let legal = game.legal_moves();
            let Some(&m) = legal.last().filter(|_| game.outcome().is_none()) else { break };
            game.play(m).unwrap();
            sent.moves.push(m);
        }
        let own = player.recompute(&generation, &sent, &stop).unwrap();
        sent.positions = own.positions.clone();
        let found = compare_recomputed(&sent, &own);
        let Agreement::Different(what) = found else { panic!("{found:?}") };
        assert!(what.contains("moves of"), "{what}");
    }

    #[test]
    fn one_faked_game_in_ten_is_found_within_1500_games() {
        assert!(detection_probability(0.1, 0.02, 1500) > 0.95);
        assert!(detection_probability(0.1, 0.02, 1400) < 0.95);
        // The same with the real selection of audits, over many cheating workers.
        let (key, job) = (Key::new([9; 32]), Hash::of(b"job"));
        let mut found: Vec<u64> = (0..400)
            .map(|cheat| {
                let worker = WorkerName::from_any(&format!("cheat-{cheat}"));
                let mut rng = Seed::new(5).index(cheat).rng();
                let is_found =
                    |number: &u64| rng.chance(0.1) && key.is_audited(&worker, &job, *number, 0.02);
                (0..).find(is_found).expect("an endless range")
            })
            .collect();
        found.sort_unstable();
        let (median, late) = (found[200], found[380]);
        assert!((250..450).contains(&median), "median {median}");
        assert!(late < 2000, "95 % are found within {late}");
    }
}
