//! One game of the table, and the updates that follow from it.
//!
//! Where the table plays both sides, the target of a move is its reward minus the best value of the
//! next state: `r - γ max Q(s', a')`. The next state is the opponent's, so its value is negated
//! (Littman 1994, minimax Q-learning with alternating moves). A random opponent is part of the
//! environment: only the table's moves are updated, and the next state is the one after the reply,
//! `r + γ max Q(s'', a'')` (Watkins 1989). Updates run from the last move backwards, so that a
//! result reaches the first move at once (Lin 1992).
//!
//! In whole games of chess most positions never occur again. There only the first new positions of
//! a game enter the table, as in a search tree (Coulom 2006). The moves after them are random, a
//! rollout whose result is the target of the last move in the table.

use selfmate_chess::{Color, Game, Outcome, Reason, Rng};
use selfmate_search::player::Limit;
use selfmate_search::{Player, PlayerError, flip_value};

use super::state::State;
use super::table::{LearningRate, Table};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayConfig {
    /// The probability that the table plays a random move.
    pub epsilon: f64,
    /// The table's side against a random opponent; `None` if the table plays both sides.
    pub side: Option<Color>,
    /// The table plays and learns this many plies; 0 means all.
    pub table_plies: u32,
    /// A game is truncated after this many plies.
    pub max_plies: u32,
    /// How many new positions enter the table; 0 means no limit.
    pub new_states: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episode {
    /// The keys of all legal moves of all positions, one position after the other.
    pairs: Vec<u64>,
    steps: Vec<Step>,
    /// The side that learns; `None` for both.
    side: Option<Color>,
    /// The result for the side that learns, or for the last mover if both do; `None` if truncated.
    pub reward: Option<f32>,
    /// The table's last move was mate.
    is_mate: bool,
    /// Moves of the learning side or sides after those that enter the table.
    rollout_moves: u32,
    /// Truncated in a position that does not enter the table.
    ends_in_rollout: bool,
    pub winner: Option<Color>,
    /// All plies, including those after the table's.
    pub plies: u32,
}

/// A position of a game and the move that was played there.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    state: u64,
    /// The range of its moves in `pairs`.
    first: u32,
    count: u16,
    /// The move that was played; `None` in the last position of a truncated game.
    played: Option<u16>,
}

impl Episode {
    /// Plays a game. After the table's plies, `finisher` plays both sides to the end; without a
    /// finisher the game is truncated there.
    pub fn play(
        table: &Table,
        mut game: Game,
        play_config: &PlayConfig,
        finisher: Option<&mut dyn Player>,
        rng: &mut Rng,
    ) -> Result<Episode, PlayerError> {
        let mut episode = Episode { side: play_config.side, ..Episode::default() };
        let first = game.ply();
        let (by_table, most) = match play_config.table_plies {
            0 => (play_config.max_plies, play_config.max_plies),
            plies => (plies.min(play_config.max_plies), play_config.max_plies),
        };
        let mut new_states = 0;
        loop {
            let legal = game.legal_moves();
            let ply = (game.ply() - first) as u32;
            let mover = game.turn();
            let is_ours = play_config.side.is_none_or(|side| side == mover);
            if let Some(outcome) = game.outcome_given(&legal) {
                let was_ours = play_config.side.is_none_or(|side| side != mover);
                let is_mate = outcome.reason == Reason::Checkmate;
                episode.is_mate = is_mate && was_ours && episode.rollout_moves == 0;
                episode.set_outcome(outcome, !mover);
                return Ok(episode.with_plies(ply));
            }
            let is_over = ply >= by_table;
            if is_over
                && by_table < most
                && let Some(finisher) = finisher
            {
                return episode.finish(game, first, finisher, most - ply);
            }
            let is_rollout = play_config.new_states > 0 && new_states >= play_config.new_states;
            if is_over && (is_rollout || !is_ours) {
                episode.ends_in_rollout = is_rollout;
                return Ok(episode.with_plies(ply));
            }
            if is_rollout || !is_ours {
                episode.rollout_moves += u32::from(is_ours);
                game.play_unchecked(legal[rng.below(legal.len())]);
                continue;
            }
            let state = State::of(game.position());
            let begin = episode.pairs.len();
            episode.pairs.extend(state.pairs(&legal));
            // The entry of a state may have been replaced while those of its moves remain.
            let is_known = episode.pairs[begin..].iter().any(|&pair| table.get(pair).is_some());
            new_states += u32::from(!is_known);
            let choice = (!is_over).then(|| {
                if !is_known || rng.chance(play_config.epsilon) {
                    rng.below(legal.len())
                } else {
                    choose(table, &episode.pairs[begin..], rng)
                }
            });
            episode.steps.push(Step {
                state: state.key,
                first: begin as u32,
                count: legal.len() as u16,
                played: choice.map(|choice| choice as u16),
            });
            let Some(choice) = choice else { return Ok(episode.with_plies(ply)) };
            game.play_unchecked(legal[choice]);
        }
    }

    /// Lets `finisher` play on; the result is the reward of the table's last move.
    fn finish(
        mut self,
        mut game: Game,
        first: usize,
        finisher: &mut dyn Player,
        plies: u32,
    ) -> Result<Episode, PlayerError> {
        let last_mover = !game.turn();
        let ply = (game.ply() - first) as u32;
        finisher.new_game();
        for done in 0..=plies {
            if let Some(outcome) = game.outcome() {
                self.set_outcome(outcome, last_mover);
                return Ok(self.with_plies(ply + done));
            }
            if done == plies {
                break;
            }
            let choice = finisher.choose(&game, &Limit::default())?;
            game.play(choice.played).map_err(|error| PlayerError {
                player: finisher.name().to_owned(),
                reason: error.to_string(),
            })?;
        }
        // The result is unknown, so the last move is not updated.
        Ok(self.with_plies(ply + plies))
    }

    fn set_outcome(&mut self, outcome: Outcome, last_mover: Color) {
        self.winner = outcome.winner;
        let side = self.side.unwrap_or(last_mover);
        self.reward = Some(f32::from(outcome.reward(side)));
    }

    fn with_plies(mut self, plies: u32) -> Episode {
        self.plies = plies;
        self
    }

    pub fn moves(&self) -> usize {
        self.steps.iter().filter(|step| step.played.is_some()).count()
    }

    /// Updates a table, the last move first. Returns the sum of the absolute errors.
    pub fn update(&self, table: &mut Table, learning_rate: LearningRate, gamma: f32) -> f64 {
        let mut error_sum = 0.0;
        // The target of the last move comes from the reward, that of earlier moves from the best
        // value of the next position, which is the opponent's where both sides learn.
        let earlier = |value: f32, moves: u32| {
            let discounted = value * gamma.powi(moves as i32);
            let is_opponents = self.side.is_none() && moves % 2 == 1;
            if is_opponents { flip_value(discounted) } else { discounted }
        };
        let mut expected = self.reward.map(|reward| earlier(reward, self.rollout_moves));
        if self.ends_in_rollout {
            expected = Some(0.0);
        }
        // One mate is enough to know the value of the move.
        let mut step_rate = if self.is_mate { LearningRate::REPLACE } else { learning_rate };
        for step in self.steps.iter().rev() {
            let pairs = &self.pairs[step.first as usize..][..usize::from(step.count)];
            if let (Some(played), Some(target)) = (step.played, expected) {
                let pair = pairs[usize::from(played)];
                let before = table.get(pair).map_or(0.0, |(value, _)| value);
                error_sum += f64::from((target - before).abs());
                table.learn(step.state, pair, target, step_rate);
                step_rate = learning_rate;
            }
            expected = Some(earlier(table.best(pairs), 1));
        }
        error_sum
    }
}

/// The index of the best move; a random one of them if there are several.
pub fn choose(table: &Table, pairs: &[u64], rng: &mut Rng) -> usize {
    let mut best = (f32::NEG_INFINITY, 0, 0);
    for (index, &pair) in pairs.iter().enumerate() {
        let value = table.get(pair).map_or(0.0, |(value, _)| value);
        if value > best.0 {
            best = (value, index, 1);
        } else if value == best.0 {
            // Reservoir sampling: each of n equal moves is kept with probability 1/n.
            best.2 += 1;
            if rng.below(best.2) == 0 {
                best.1 = index;
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use selfmate_arena::players::RandomPlayer;
    use selfmate_chess::fen::parse_game;
    use selfmate_chess::{Seed, notation};
    use selfmate_search::Choice;
    use selfmate_search::player::SearchInfo;

    use super::*;

    const GREEDY: PlayConfig =
        PlayConfig { epsilon: 0.0, side: None, table_plies: 0, max_plies: 4, new_states: 0 };
    const TENTH: LearningRate = LearningRate { alpha: 0.1, doubt: 0 };
    const HALF: LearningRate = LearningRate { alpha: 0.5, doubt: 0 };

    fn play(table: &Table, fen: &str, play_config: &PlayConfig, seed: u64) -> Episode {
        let mut random = RandomPlayer::new("random", Seed::new(seed));
        let mut rng = Seed::new(seed).rng();
        Episode::play(table, parse_game(fen).unwrap(), play_config, Some(&mut random), &mut rng)
            .unwrap()
    }

    fn value(table: &Table, fen: &str, san: &str) -> Option<f32> {
        let game = parse_game(fen).unwrap();
        let m = notation::parse_san(game.position(), san).unwrap();
        Some(table.get(State::of(game.position()).pair(m))?.0)
    }

    #[test]
    fn the_error_of_a_finisher_that_does_not_move_names_it() {
        struct Mute;
        impl Player for Mute {
            fn name(&self) -> &str {
                "mute"
            }

            fn choose_observed(
                &mut self,
                _: &Game,
                _: &Limit,
                _: &mut dyn FnMut(&SearchInfo),
            ) -> Result<Choice, PlayerError> {
                Err(PlayerError { player: "mute".to_owned(), reason: "says nothing".to_owned() })
            }
        }
        let play_config = PlayConfig { table_plies: 2, ..GREEDY };
        let mut rng = Seed::new(1).rng();
        let (table, game) = (Table::new(1), Game::new());
        let played = Episode::play(&table, game, &play_config, Some(&mut Mute), &mut rng);
        assert!(played.unwrap_err().to_string().contains("mute"));
    }

    #[test]
    fn a_mate_is_found_and_what_allows_it_is_a_loss() {
        // White mates with Ra8; one move earlier Black could have gone to f8 or to h8 and mate.
        let (before, mate) = ("6k1/8/6K1/8/8/8/8/R7 b - - 0 1", "6k1/8/6K1/8/8/8/8/R7 w - - 0 1");
        let mut table = Table::new(1);
        for seed in 0..400 {
            let play_config = PlayConfig { epsilon: 0.5, ..GREEDY };
            play(&table, mate, &play_config, seed).update(&mut table, HALF, 0.9);
            play(&table, before, &play_config, seed).update(&mut table, HALF, 0.9);
        }
        assert!(value(&table, mate, "Ra8#").unwrap() > 0.9);
        let waiting = value(&table, mate, "Rb1").unwrap();
        assert!(waiting < 0.9, "{waiting}");
        // A win for White is a loss for Black: the target is negated.
        assert!(value(&table, before, "Kh8").unwrap() < -0.5);
        let game = play(&table, mate, &GREEDY, 1);
        assert_eq!((game.plies, game.winner), (1, Some(Color::White)));
    }

    #[test]
    fn a_truncated_game_is_learned_from_the_values_of_the_table() {
        let fen = "8/8/8/3k4/8/8/8/K6R w - - 0 1";
        let mut table = Table::new(1);
        let episode = play(&table, fen, &PlayConfig { max_plies: 3, ..GREEDY }, 1);
        assert_eq!((episode.reward, episode.plies, episode.moves()), (None, 3, 3));
        // All values are 0, so only the entries are new.
        assert_eq!(episode.update(&mut table, TENTH, 0.99), 0.0);
        assert_eq!((table.pairs(), table.best(&episode.pairs)), (3, 0.0));
    }

    #[test]
    fn a_result_reaches_the_first_move_at_once() {
        // Random moves until someone is mated: one game is enough to update the first move.
        let fen = "k7/8/1K6/8/8/8/8/7R w - - 0 1";
        let play_config = PlayConfig { max_plies: 12, ..GREEDY };
        let mut tried = 0;
        for seed in 0..200 {
            let mut table = Table::new(1);
            let episode = play(&table, fen, &play_config, seed);
            if episode.winner.is_some() && episode.plies >= 5 {
                episode.update(&mut table, TENTH, 0.99);
                let first = table.get(episode.pairs[usize::from(episode.steps[0].played.unwrap())]);
                assert!(first.unwrap().0 > 0.5, "{first:?}");
                tried += 1;
            }
        }
        assert!(tried > 0);
    }

    #[test]
    fn against_a_random_opponent_only_the_tables_moves_are_learned() {
        let fen = "k7/8/1K6/8/8/8/8/7R w - - 0 1";
        for (side, sign) in [(Color::White, 1.0), (Color::Black, -1.0)] {
            let play_config = PlayConfig { side: Some(side), max_plies: 30, ..GREEDY };
            let mut mates = 0;
            for seed in 0..50 {
                let mut table = Table::new(1);
                let episode = play(&table, fen, &play_config, seed);
                assert!(episode.moves() as u32 <= episode.plies.div_ceil(2));
                if episode.winner.is_some() && episode.moves() > 0 {
                    assert_eq!(episode.reward, Some(sign));
                    episode.update(&mut table, TENTH, 0.99);
                    let known = episode.pairs.iter().filter_map(|&pair| table.get(pair));
                    assert!(known.into_iter().all(|(value, _)| value * sign > 0.5));
                    mates += 1;
                }
            }
            assert!(mates > 0);
        }
    }

    #[test]
    fn one_new_position_learns_the_discounted_result_of_the_rollout() {
        let fen = "k7/8/1K6/8/8/8/8/7R w - - 0 1";
        let play_config =
            PlayConfig { side: Some(Color::White), max_plies: 60, new_states: 1, ..GREEDY };
        let (mut won, mut cut_off) = (0, 0);
        for seed in 0..50 {
            let mut table = Table::new(1);
            let episode = play(&table, fen, &play_config, seed);
            assert_eq!(episode.moves(), 1);
            episode.update(&mut table, TENTH, 0.9);
            assert_eq!((table.states(), table.pairs()), (1, 1));
            // The result is discounted once per later move of White.
            let moves = episode.plies.div_ceil(2) as i32;
            let expected = match episode.reward {
                Some(reward) => reward * 0.9f32.powi(moves - 1),
                None => 0.0,
            };
            won += u32::from(episode.winner.is_some());
            cut_off += u32::from(episode.reward.is_none());
            assert!((table.best(&episode.pairs) - expected).abs() < 1e-5);
            // In the next game that position is in the table, so the following one is new.
            let next = play(&table, fen, &play_config, seed);
            assert!(next.moves() <= 2);
        }
        assert!(won > 0 && cut_off > 0, "{won} {cut_off}");
    }

    #[test]
    fn with_both_sides_learning_the_rollout_result_is_for_the_mover() {
        let fen = "k7/8/1K6/8/8/8/8/7R w - - 0 1";
        let play_config = PlayConfig { max_plies: 200, new_states: 1, ..GREEDY };
        let mut signs = [0, 0];
        for seed in 0..200 {
            let mut table = Table::new(1);
            let episode = play(&table, fen, &play_config, seed);
            episode.update(&mut table, TENTH, 0.9);
            // White moved first, so the value of its move is positive if White won.
            let Some(winner) = episode.winner else { continue };
            let sign = if winner == Color::White { 1.0 } else { -1.0 };
            let expected = sign * 0.9f32.powi(episode.plies as i32 - 1);
            assert!((table.best(&episode.pairs) - expected).abs() < 1e-6);
            signs[episode.plies as usize % 2] += 1;
        }
        assert!(signs[1] > 0, "{signs:?}");
    }

    #[test]
    fn a_mate_is_learned_from_one_game() {
        let fen = "6k1/8/6K1/8/8/8/8/R7 w - - 0 1";
        let careful = LearningRate { alpha: 0.1, doubt: 9 };
        let mut mates = 0;
        for seed in 0..100 {
            let mut table = Table::new(1);
            let episode = play(&table, fen, &PlayConfig { max_plies: 1, ..GREEDY }, seed);
            episode.update(&mut table, careful, 0.99);
            if episode.winner.is_some() {
                assert_eq!(value(&table, fen, "Ra8#"), Some(1.0));
                mates += 1;
            }
        }
        assert!(mates > 0);
    }

    #[test]
    fn the_table_plays_only_the_first_plies() {
        let play_config = PlayConfig { table_plies: 2, max_plies: 400, ..GREEDY };
        let mut learned = 0;
        for seed in 0..20 {
            let mut table = Table::new(1);
            let episode = play(&table, "8/8/8/8/8/1k6/7q/K7 b - - 0 1", &play_config, seed);
            assert!(episode.moves() <= 2 && episode.plies >= 1);
            episode.update(&mut table, TENTH, 0.99);
            learned += table.pairs();
        }
        assert!(learned > 0);
    }

    #[test]
    fn ties_are_broken_at_random() {
        let table = Table::new(1);
        let mut rng = Seed::new(3).rng();
        let mut seen = [0; 4];
        for _ in 0..400 {
            seen[choose(&table, &[11, 12, 13, 14], &mut rng)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 60), "{seen:?}");
    }
}
