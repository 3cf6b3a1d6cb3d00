//! A game of self-play in an ending: a pure function of its seed, the network and the config.
//!
//! A [`SelfPlayer`] plays it, a [`Referee`] works out what is learned from it, and refuses what
//! cannot have been played: it does not matter who did.

use std::sync::Arc;

use selfmate_chess::{Color, Outcome, Seed};
use selfmate_nn::mlp::Network;
use selfmate_search::mcts::{Proof, SimulationStats};

use super::config::EndgameConfig;
use super::lab::Lab;
use super::log::{Log, LogError, Ply};
use super::replay::Sample;
use super::thinker::{Manner, NetworkEvaluator, Priors, Thinker};
use super::view::View;

/// A finished game.
pub struct Played {
    /// Its positions with their targets, in order.
    pub samples: Vec<Sample>,
    /// How it ended; `None` when it was cut off.
    pub outcome: Option<Outcome>,
    /// What its searches looked like.
    pub walks: SimulationStats,
}

/// Plays games, one after the other.
pub struct SelfPlayer {
    config: EndgameConfig,
    lab: Lab,
    thinker: Thinker,
}

impl SelfPlayer {
    /// A player with this network.
    pub fn new(config: &EndgameConfig, lab: &Lab, network: &Arc<Network>) -> SelfPlayer {
        let network = Arc::clone(network);
        SelfPlayer {
            thinker: Thinker::new(&config.search, Manner::Explore, config.discount, network),
            config: config.clone(),
            lab: lab.clone(),
        }
    }

    /// Plays the game with this number from a random position of the ending. The seed is that of
    /// all games of the run.
    pub fn play(&mut self, seed: Seed, number: u64) -> Log {
        self.play_until(seed, number, &|| false).expect("nobody tells it to halt")
    }

    /// The same; `None` when it was told to halt.
    pub fn play_until(&mut self, seed: Seed, number: u64, halt: &dyn Fn() -> bool) -> Option<Log> {
        let seed = seed.index(number);
        let mut game = start(&self.lab, seed);
        let (mut plies, mut walks) = (Vec::new(), SimulationStats::default());
        self.thinker.search.clear();
        loop {
            let legal = game.legal_moves();
            let is_long = game.ply() >= self.config.max_plies as usize;
            if is_long || game.outcome_given(&legal).is_some() {
                return Some(Log { number, plies, walks });
            }
            if halt() {
                return None;
            }
            let seed = seed.index(game.ply() as u64);
            self.thinker.think(&game, self.config.search.simulations, seed);
            let search = &self.thinker.search;
            let mut decision = search.decision(&legal).expect("a game that goes on has a move");
            let known = proven(search.proof(), self.config.discount);
            if known.is_some() {
                // The search stopped when it knew: its shares are those of a search cut short.
                for (share, m) in decision.policy_target.iter_mut().zip(&legal) {
                    *share = if *m == decision.best { 1.0 } else { 0.0 };
                }
            }
            walks.add(&self.thinker.take_stats());
            let place = legal.iter().position(|m| *m == decision.best);
            plies.push(Ply {
                // A position has at most 218 moves.
                place: place.expect("the best move is a legal one") as u8,
                value: known.unwrap_or(decision.wdl.value()),
                is_proven: known.is_some(),
                policy: decision.policy_target.into(),
            });
            game.play_unchecked(decision.best);
        }
    }
}

/// Where a game starts.
fn start(lab: &Lab, seed: Seed) -> selfmate_chess::Game {
    lab.draw(&mut seed.derive("start").rng())
}

/// Works out what is learned from games.
pub struct Referee {
    config: EndgameConfig,
    lab: Lab,
    judge: NetworkEvaluator,
}

/// A position while its game is gone through.
struct Step<'a> {
    view: View,
    ply: &'a Ply,
}

/// How far the shares of a position may be from adding up to one.
const SLACK: f32 = 1e-3;

impl Referee {
    /// For games of this network.
    pub fn new(config: &EndgameConfig, lab: &Lab, network: &Arc<Network>) -> Referee {
        let judge = NetworkEvaluator::new(Arc::clone(network), Priors::Uniform);
        Referee { config: config.clone(), lab: lab.clone(), judge }
    }

    /// Goes through a game. The seed is that of all games of the run.
    pub fn finish(&mut self, log: &Log, seed: Seed) -> Result<Played, LogError> {
        let mut game = start(&self.lab, seed.index(log.number));
        let (mut steps, mut view) = (Vec::new(), View::default());
        let mut plies = log.plies.iter();
        let outcome = loop {
            let legal = game.legal_moves();
            if let Some(outcome) = game.outcome_given(&legal) {
                break Some(outcome);
            }
            let ply = game.ply();
            if ply >= self.config.max_plies as usize {
                break None;
            }
            let Some(decided) = plies.next() else { return Err(LogError::Unfinished(ply)) };
            self.check(decided, legal.len()).map_err(|what| LogError::Ply { ply, what })?;
            view.look(game.position(), &legal);
            steps.push(Step { view: view.clone(), ply: decided });
            game.play_unchecked(legal[usize::from(decided.place)]);
        };
        if plies.next().is_some() {
            let what = "it goes on after it is over".to_owned();
            return Err(LogError::Ply { ply: steps.len(), what });
        }
        // For the side to move at the end.
        let last = match outcome {
            Some(outcome) => points(outcome, game.turn()),
            None => self.judge.value(&game),
        };
        // Only a curve depends on it; nobody searches more than this.
        let most = self.config.search.simulations.saturating_mul(log.plies.len() as u64);
        let walks = SimulationStats { count: log.walks.count.min(most), ..log.walks };
        let samples = samples(log.number, &steps, last, outcome.is_some(), &self.config);
        Ok(Played { samples, outcome, walks })
    }

    /// Says what no search can have decided.
    fn check(&self, ply: &Ply, legal: usize) -> Result<(), String> {
        let Ply { place, value, is_proven, policy } = ply;
        if policy.len() != legal || usize::from(*place) >= legal {
            return Err(format!("move {place} and {} shares for {legal} moves", policy.len()));
        }
        if !(-1.0..=1.0).contains(value) {
            return Err(format!("a value of {value}: expected -1 to 1"));
        }
        let is_share =
            |share: &f32| (0.0..=1.0 + SLACK).contains(share) && share.is_sign_positive();
        let sum: f32 = policy.iter().sum();
        if !policy.iter().all(is_share) || (sum - 1.0).abs() > SLACK {
            return Err(format!("shares that add up to {sum}: expected 1"));
        }
        let is_worth = |plies: u8| worth(plies, self.config.discount) == value.abs();
        if *is_proven && (policy[usize::from(*place)] != 1.0 || !(0..=u8::MAX).any(is_worth)) {
            return Err(format!("a value of {value} that nothing proves"));
        }
        Ok(())
    }
}

/// The value of a proven win or loss. A proven draw may be one of this game only, by repetition.
fn proven(proof: Proof, discount: f64) -> Option<f32> {
    match proof {
        Proof::Win(plies) => Some(worth(plies, discount)),
        Proof::Loss(plies) => Some(-worth(plies, discount)),
        Proof::Draw | Proof::Unknown => None,
    }
}

/// What a win after so many plies is worth.
fn worth(plies: u8, discount: f64) -> f32 {
    discount.powi(i32::from(plies)) as f32
}

fn points(outcome: Outcome, side: Color) -> f32 {
    match outcome.winner {
        None => 0.0,
        Some(winner) if winner == side => 1.0,
        Some(_) => -1.0,
    }
}

/// Targets from the end backwards: the value of a position is that of the next one, as the other
/// side sees it and a ply further away; how much of the next one is its search's opinion and how
/// much its own target is lambda.
fn samples(
    game: u64,
    steps: &[Step<'_>],
    last: f32,
    is_over: bool,
    config: &EndgameConfig,
) -> Vec<Sample> {
    let (discount, lambda) = (config.discount as f32, config.lambda as f32);
    let (mut next, mut got) = (last, is_over.then_some(last));
    let mut samples: Vec<Sample> = steps
        .iter()
        .rev()
        .map(|step| {
            let Ply { value, is_proven, .. } = *step.ply;
            got = got.map(|got| -discount * got);
            let target = if is_proven { value } else { -discount * next };
            next = (1.0 - lambda) * value + lambda * target;
            sample(game, step, target, got)
        })
        .collect();
    samples.reverse();
    samples
}

fn sample(game: u64, step: &Step<'_>, value: f32, outcome: Option<f32>) -> Sample {
    let numbered = step.view.moves.iter().zip(&step.ply.policy);
    let (moves, mut policy): (Vec<u16>, Vec<f32>) =
        numbered.filter_map(|(number, share)| Some(((*number)?, *share))).unzip();
    // Promotions without a number leave a gap; a position that has only them would leave nothing.
    let sum: f32 = policy.iter().sum();
    let even = 1.0 / moves.len().max(1) as f32;
    policy.iter_mut().for_each(|share| *share = if sum > 1e-6 { *share / sum } else { even });
    Sample {
        game,
        features: step.view.features.as_slice().into(),
        moves: moves.into(),
        policy: policy.into(),
        value: value.clamp(-1.0, 1.0),
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use selfmate_nn::mlp::MlpConfig;

    use super::super::lab::EndingName;
    use super::*;

    fn ply(value: f32, is_proven: bool) -> Ply {
        Ply { place: 0, value, is_proven, policy: [0.3, 0.4, 0.3].into() }
    }

    fn step(ply: &Ply) -> Step<'_> {
        let mut view = View::default();
        view.moves.extend([Some(7), None, Some(9)]);
        Step { view, ply }
    }

    #[test]
    fn targets_worked_out_by_hand() {
        let config = EndgameConfig { discount: 0.5, lambda: 0.5, ..EndgameConfig::tiny() };
        // Mated at the end: the last to move won.
        let plies = [ply(0.2, false), ply(-0.6, false), ply(0.8, false)];
        let samples = samples(4, &plies.each_ref().map(step), -1.0, true, &config);
        let values: Vec<f32> = samples.iter().map(|sample| sample.value).collect();
        // Last: -0.5 · -1 = 0.5; before: -0.5 · (0.4 + 0.25) = -0.325; first: -0.5 · (-0.3 - 0.1625).
        assert_eq!(values, [0.23125, -0.325, 0.5]);
        let got: Vec<Option<f32>> = samples.iter().map(|sample| sample.outcome).collect();
        assert_eq!(got, [Some(0.125), Some(-0.25), Some(0.5)]);
        assert_eq!(samples[0].moves[..], [7, 9]);
        assert_eq!(samples[0].policy[..], [0.5, 0.5]);
        assert!(samples.iter().all(|sample| sample.game == 4));
    }

    #[test]
    fn what_is_proven_is_the_target() {
        let config = EndgameConfig { discount: 0.5, lambda: 1.0, ..EndgameConfig::tiny() };
        let plies = [ply(0.0, false), ply(-0.25, true)];
        let samples = samples(0, &plies.each_ref().map(step), 0.0, false, &config);
        assert_eq!((samples[0].value, samples[1].value), (0.125, -0.25));
        assert_eq!(proven(Proof::Win(3), 0.5), Some(0.125));
        assert_eq!(proven(Proof::Loss(2), 0.5), Some(-0.25));
        assert_eq!(proven(Proof::Draw, 0.5), None);
    }

    /// A lab, a network and a game of theirs.
    fn bench(ending: EndingName) -> (EndgameConfig, Lab, Arc<Network>) {
        let config = EndgameConfig { ending, ..EndgameConfig::tiny() };
        let shape = MlpConfig { first: 8, second: 8 };
        let network = Arc::new(Network::random(shape, Seed::new(1)).unwrap());
        (config, Lab::new(ending).unwrap(), network)
    }

    #[test]
    fn games_end_and_depend_on_their_number_alone() {
        let seed = Seed::new(2);
        for ending in EndingName::ALL {
            let (config, lab, network) = bench(ending);
            let mut player = SelfPlayer::new(&config, &lab, &network);
            let mut referee = Referee::new(&config, &lab, &network);
            let logs: Vec<Log> = (0..6).map(|number| player.play(seed, number)).collect();
            let again = SelfPlayer::new(&config, &lab, &network).play(seed, 5);
            assert_eq!(again, logs[5]);
            let games: Vec<Played> =
                logs.iter().map(|log| referee.finish(log, seed).unwrap()).collect();
            assert!(games.iter().all(|game| game.samples.len() <= config.max_plies as usize));
            assert_ne!(games[0].samples, games[1].samples);
            for (log, game) in logs.iter().zip(&games) {
                assert_eq!((log.plies.len(), log.walks), (game.samples.len(), game.walks));
            }
            for sample in games.iter().flat_map(|game| &game.samples) {
                assert_eq!(sample.moves.len(), sample.policy.len());
                let sum: f32 = sample.policy.iter().sum();
                assert!((sum - 1.0).abs() < 1e-3 || sample.moves.is_empty(), "{sum}");
            }
        }
    }

    #[test]
    fn what_no_search_can_have_decided_is_refused() {
        let seed = Seed::new(2);
        let (config, lab, network) = bench(EndingName::Krk);
        let mut referee = Referee::new(&config, &lab, &network);
        let good = SelfPlayer::new(&config, &lab, &network).play(seed, 3);
        assert!(referee.finish(&good, seed).is_ok() && good.plies.len() > 2);
        let mut refused = |change: fn(&mut Log)| {
            let mut log = good.clone();
            change(&mut log);
            referee.finish(&log, seed).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let short = format!("it ends after {} plies, where it is not over", good.plies.len() - 1);
        assert_eq!(refused(|log| _ = log.plies.pop()), short);
        assert!(refused(|log| log.plies.push(log.plies[0].clone())).contains("after it is over"));
        assert!(refused(|log| log.plies[1].place = 200).contains("move 200"));
        assert!(refused(|log| log.plies[1].policy = [1.0].into()).contains("1 shares"));
        assert!(refused(|log| log.plies[1].policy[0] += 0.5).contains("add up to"));
        assert!(refused(|log| log.plies[1].policy[0] = f32::NAN).contains("add up to"));
        assert!(refused(|log| log.plies[1].value = f32::NAN).contains("a value of NaN"));
        assert!(refused(|log| log.plies[1].value = 1.5).contains("a value of 1.5"));
        let lie = |log: &mut Log| {
            let Ply { place, value, is_proven, policy } = &mut log.plies[1];
            policy.fill(0.0);
            policy[usize::from(*place)] = 1.0;
            (*value, *is_proven) = (0.123, true);
        };
        assert!(refused(lie).contains("nothing proves"));
        // Another game's number is another start: its moves are not those of this one.
        assert!(!refused(|log| log.number += 1).is_empty());
    }
}
