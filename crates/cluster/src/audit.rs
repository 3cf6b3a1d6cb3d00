//! A game played again must be the same game.
//!
//! With the sparse network it is, bit for bit: its play is whole numbers, and the search's floats
//! are additions, multiplications and divisions in a fixed order. Only the noise at the root asks
//! the system for a logarithm, in 64 bits, and rounds it to 32: two systems that differ in the last
//! bit differ in the result once in some hundred million draws. A residual network computes in
//! floats, and processors with other vector units add in another order. There, the positions of the
//! game that was sent are searched again, along its own moves: what the searches found must be close
//! and what was played must be what they choose, but for a few of both, where two moves are all but
//! equal; and a worker in too many of whose games that happens is refused as well.

use selfmate_nn::Model;
use selfmate_run::{GameRecord, PositionRecord};
use selfmate_selfplay::Recomputed;

/// How exactly games can be played again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// To the bit, on every machine.
    Exact,
    /// But for the rounding of floats.
    Rounded,
}

/// What playing a game again has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The same game, but for rounding where there is some.
    Same,
    /// The same, but for a little more than rounding in a few places.
    Diverged {
        /// The first of them.
        ply: usize,
    },
    /// Not what this network plays.
    Different(String),
}

/// How far values and policies may be apart where floats are rounded. A change of the last bit
/// moves a visit or two of a search at most, of sixteen or more.
const VALUE_SLACK: f32 = 0.15;
const POLICY_SLACK: f32 = 0.3;
/// One in so many plies may be further apart.
const FEW: usize = 8;

impl Exactness {
    /// That of a network's play.
    pub const fn of(model: &Model) -> Exactness {
        match model {
            Model::Sparse(_) | Model::Mlp(_) => Exactness::Exact,
            Model::Residual(_) => Exactness::Rounded,
        }
    }
}

/// Compares a game with what came out when it was played again, both as they are stored, where
/// that is exact.
pub fn compare(sent: &GameRecord, own: &GameRecord) -> Agreement {
    if sent == own {
        return Agreement::Same;
    }
    let diverged = first_difference(&sent.moves, &own.moves);
    Agreement::Different(difference(sent, own, diverged))
}

/// Compares a game with what the searches find along its moves, where floats are rounded.
pub fn compare_recomputed(sent: &GameRecord, own: &Recomputed) -> Agreement {
    let plies = |positions: &[PositionRecord]| positions.iter().map(|p| p.ply).collect::<Vec<_>>();
    if plies(&sent.positions) != plies(&own.positions) {
        return Agreement::Different("other positions are judged".to_owned());
    }
    let pairs = sent.positions.iter().zip(&own.positions);
    let searches =
        pairs.filter(|(sent, own)| !is_close(sent, own)).map(|(sent, _)| sent.ply.into());
    let played = sent.moves.iter().skip(own.first).zip(&own.moves).enumerate();
    let moves = played.filter(|(_, (sent, own))| sent != own).map(|(place, _)| own.first + place);
    let odd: Vec<usize> = searches.chain(moves).collect();
    few(&odd, own.moves.len())
}

/// What it means that so many plies of a game are otherwise, where floats are rounded.
pub(crate) fn few(odd: &[usize], plies: usize) -> Agreement {
    let Some(&ply) = odd.iter().min() else { return Agreement::Same };
    // A game that is short may have one.
    if odd.len() > 1 + plies / FEW {
        let odd = odd.len();
        return Agreement::Different(format!(
            "{odd} searches and moves of {plies} plies are others, from ply {ply}"
        ));
    }
    Agreement::Diverged { ply }
}

/// The first place in which two lists differ; the end of the shorter when neither does before.
fn first_difference<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// In words, for the one who has to explain it to the owner of a worker.
fn difference(sent: &GameRecord, own: &GameRecord, diverged: usize) -> String {
    let judged = sent.positions.iter().zip(&own.positions).find(|(sent, own)| sent != own);
    let searched = judged.map_or(usize::MAX, |(sent, own)| sent.ply.min(own.ply).into());
    let is_move = diverged < sent.moves.len().max(own.moves.len()) && diverged < searched;
    match (is_move, searched) {
        (true, _) => format!("another move at ply {diverged}"),
        (false, usize::MAX) => format!("another end at ply {diverged}"),
        (false, ply) => format!("another search at ply {ply}"),
    }
}

fn is_close(sent: &PositionRecord, own: &PositionRecord) -> bool {
    let distance: f32 =
        sent.policy.iter().zip(&own.policy).map(|(sent, own)| (sent - own).abs()).sum();
    sent.policy.len() == own.policy.len()
        && (sent.value - own.value).abs() <= VALUE_SLACK
        && distance / 2.0 <= POLICY_SLACK
}

/// True when a worker's games part from their recomputation too often to be rounding: more than a
/// quarter of at least twenty.
pub const fn diverges_too_often(diverged: u64, audited: u64) -> bool {
    audited >= 20 && 4 * diverged > audited
}

/// The chance that somebody who makes up a share of games is found out within so many games.
pub fn detection(faked: f64, audited: f64, games: u32) -> f64 {
    1.0 - (1.0 - faked * audited).powf(f64::from(games))
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
    fn the_smallest_forgery_shows() {
        let generation = generation();
        let own = play(&generation, 3).record.rounded();
        let compare = |sent: &GameRecord| compare(sent, &own);
        assert_eq!(compare(&play(&generation, 3).record.rounded()), Agreement::Same);
        let mut sent = own.clone();
        sent.positions[2].value += 0.001;
        let ply = own.positions[2].ply;
        let text = format!("another search at ply {ply}");
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
    fn rounding_is_forgiven_where_floats_are_rounded_and_nothing_else() {
        let generation = generation();
        let stop = AtomicBool::new(false);
        let mut player = player(&generation);
        let mut compare = |sent: &GameRecord| {
            compare_recomputed(sent, &player.recompute(&generation, sent, &stop).unwrap())
        };
        let own = play(&generation, 3).record.rounded();
        assert_eq!(compare(&own), Agreement::Same);
        let mut sent = own.clone();
        sent.positions.iter_mut().for_each(|judged| judged.value += 0.01);
        assert_eq!(compare(&sent), Agreement::Same);
        let forge = |judged: &mut PositionRecord| {
            let last = judged.policy.len() - 1;
            judged.policy.fill(0.0);
            judged.policy[last] = 1.0;
            judged.value = if judged.value > 0.0 { -0.5 } else { 0.5 };
        };
        let mut sent = own.clone();
        forge(&mut sent.positions[4]);
        assert_eq!(compare(&sent), Agreement::Diverged { ply: own.positions[4].ply.into() });
        let mut sent = own.clone();
        sent.positions.iter_mut().for_each(forge);
        assert!(matches!(compare(&sent), Agreement::Different(_)));
        let mut sent = own.clone();
        sent.positions.pop();
        assert_eq!(compare(&sent), Agreement::Different("other positions are judged".to_owned()));
        assert!(
            !diverges_too_often(5, 19) && !diverges_too_often(5, 20) && diverges_too_often(6, 20)
        );
    }

    /// Who searches as it should and plays something else is found out too.
    #[test]
    fn moves_that_no_search_has_chosen_are_found() {
        let generation = generation();
        let stop = AtomicBool::new(false);
        let mut player = player(&generation);
        let mut sent = play(&generation, 3).record.rounded();
        let first = player.recompute(&generation, &sent, &stop).unwrap().first;
        // From the first search on the last of the legal moves, each time.
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
        assert!(detection(0.1, 0.02, 1500) > 0.95);
        assert!(detection(0.1, 0.02, 1400) < 0.95);
        // The same by the choice that is really made, over many cheats.
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
        assert!(late < 2000, "95 of 100 within {late}");
    }
}
