//! A game to learn from, and what it teaches.
//!
//! Where the table plays both sides, the target of a move is what it brings at once, less what the
//! other side can expect after it: `r - γ max Q(s', a')`. The next state is the opponent's, so its
//! value is negated (Littman 1994, minimax Q-learning with alternating moves). Where the opponent
//! plays any move it is part of the world: only the table's moves are learned, and the next state is
//! the one after the reply, `r + γ max Q(s'', a'')` (Watkins 1989). A game is learned from its end
//! backwards, so that a result reaches the first move at once (Lin 1992).
//!
//! Of a whole game of chess hardly a position ever comes again. There the table takes in only the
//! first new positions of a game, as a search tree does (Coulom 2006), and any move is played after
//! them: their result is what the last of them learns.

use selfmate_chess::{Color, Game, Outcome, Reason, Rng};
use selfmate_search::player::Limit;
use selfmate_search::{Player, PlayerError};

use super::state::State;
use super::table::{LearningRate, Table};

/// How a game is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Manner {
    /// How often the table plays any move.
    pub epsilon: f64,
    /// The side that the table has, against one that plays any move; none for both.
    pub side: Option<Color>,
    /// The table plays and learns so many plies; 0 for all.
    pub table_plies: u32,
    /// A game is cut off after so many plies.
    pub max_plies: u32,
    /// New positions of a game that are learned; 0 for all.
    pub new_states: u32,
}

/// A game by the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episode {
    /// The numbers of all legal moves of all positions, one position after the other.
    pairs: Vec<u64>,
    steps: Vec<Step>,
    /// The side that learns; none for both.
    side: Option<Color>,
    /// What the last mover got, or the side that learns; `None` when the game was cut off.
    pub reward: Option<f32>,
    /// The table's last move mated.
    is_mate: bool,
    /// Moves after those that are learned, of whoever learns.
    beyond: u32,
    /// Cut off in a position that the table takes no notice of.
    is_unseen: bool,
    /// The winner.
    pub winner: Option<Color>,
    /// All plies, those after the table's included.
    pub plies: u32,
}

/// A position of a game and the move that was played there.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    state: u64,
    /// Where its moves begin, and how many there are.
    first: u32,
    count: u16,
    /// The move that was played; none in the position where a game was cut off.
    played: Option<u16>,
}

impl Episode {
    /// Plays a game. After the table's plies `finisher` plays both sides to the end; without one the
    /// game is cut off there.
    pub fn play(
        table: &Table,
        mut game: Game,
        manner: &Manner,
        finisher: Option<&mut dyn Player>,
        rng: &mut Rng,
    ) -> Result<Episode, PlayerError> {
        let mut episode = Episode { side: manner.side, ..Episode::default() };
        let first = game.ply();
        let (by_table, most) = match manner.table_plies {
            0 => (manner.max_plies, manner.max_plies),
            plies => (plies.min(manner.max_plies), manner.max_plies),
        };
        let mut new_states = 0;
        loop {
            let legal = game.legal_moves();
            let ply = (game.ply() - first) as u32;
            let mover = game.turn();
            let is_ours = manner.side.is_none_or(|side| side == mover);
            if let Some(outcome) = game.outcome_given(&legal) {
                let was_ours = manner.side.is_none_or(|side| side != mover);
                let is_mate = outcome.reason == Reason::Checkmate;
                episode.is_mate = is_mate && was_ours && episode.beyond == 0;
                episode.end(outcome, !mover);
                return Ok(episode.ended(ply));
            }
            let is_over = ply >= by_table;
            if is_over
                && by_table < most
                && let Some(finisher) = finisher
            {
                return episode.finish(game, first, finisher, most - ply);
            }
            let is_beyond = manner.new_states > 0 && new_states >= manner.new_states;
            if is_over && (is_beyond || !is_ours) {
                episode.is_unseen = is_beyond;
                return Ok(episode.ended(ply));
            }
            if is_beyond || !is_ours {
                episode.beyond += u32::from(is_ours);
                game.play_unchecked(legal[rng.below(legal.len())]);
                continue;
            }
            let state = State::of(game.position());
            let begin = episode.pairs.len();
            episode.pairs.extend(state.pairs(&legal));
            // A position may have been forgotten before its moves.
            let is_known = episode.pairs[begin..].iter().any(|&pair| table.get(pair).is_some());
            new_states += u32::from(!is_known);
            let choice = (!is_over).then(|| {
                if !is_known || rng.chance(manner.epsilon) {
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
            let Some(choice) = choice else { return Ok(episode.ended(ply)) };
            game.play_unchecked(legal[choice]);
        }
    }

    /// Lets others play on; their result is the reward of the table's last move.
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
                self.end(outcome, last_mover);
                return Ok(self.ended(ply + done));
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
        // Nobody knows who would have won: the move is not learned from.
        Ok(self.ended(ply + plies))
    }

    fn end(&mut self, outcome: Outcome, last_mover: Color) {
        self.winner = outcome.winner;
        let side = self.side.unwrap_or(last_mover);
        self.reward = Some(2.0 * outcome.points(side) as f32 - 1.0);
    }

    fn ended(mut self, plies: u32) -> Episode {
        self.plies = plies;
        self
    }

    /// How many moves the table made.
    pub fn moves(&self) -> usize {
        self.steps.iter().filter(|step| step.played.is_some()).count()
    }

    /// Teaches a table, the last move first. Returns by how much values were wrong, summed.
    pub fn teach(&self, table: &mut Table, pace: LearningRate, gamma: f32) -> f64 {
        let mut wrong = 0.0;
        // What the last mover can expect; for all before, the best of the next position, which is
        // the opponent's where both sides learn.
        let later = if self.side.is_some() { gamma } else { -gamma };
        let mut expected = self.reward.map(|reward| reward * later.powi(self.beyond as i32));
        if self.is_unseen {
            expected = Some(0.0);
        }
        // That a move mates need not be seen twice.
        let mut pace_here = if self.is_mate { LearningRate::AT_ONCE } else { pace };
        for step in self.steps.iter().rev() {
            let pairs = &self.pairs[step.first as usize..][..usize::from(step.count)];
            if let (Some(played), Some(target)) = (step.played, expected) {
                let pair = pairs[usize::from(played)];
                let before = table.get(pair).map_or(0.0, |(value, _)| value);
                wrong += f64::from((target - before).abs());
                table.learn(step.state, pair, target, pace_here);
                pace_here = pace;
            }
            expected = Some(later * table.best(pairs));
        }
        wrong
    }
}

/// The place of the best move; any of them when several are.
pub fn choose(table: &Table, pairs: &[u64], rng: &mut Rng) -> usize {
    let mut best = (f32::NEG_INFINITY, 0, 0);
    for (index, &pair) in pairs.iter().enumerate() {
        let value = table.get(pair).map_or(0.0, |(value, _)| value);
        if value > best.0 {
            best = (value, index, 1);
        } else if value == best.0 {
            // Each of n equal ones is kept with a chance of one in n.
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

    const GREEDY: Manner =
        Manner { epsilon: 0.0, side: None, table_plies: 0, max_plies: 4, new_states: 0 };
    const TENTH: LearningRate = LearningRate { alpha: 0.1, doubt: 0 };
    const HALF: LearningRate = LearningRate { alpha: 0.5, doubt: 0 };

    fn play(table: &Table, fen: &str, manner: &Manner, seed: u64) -> Episode {
        let mut random = RandomPlayer::new("random", Seed::new(seed));
        let mut rng = Seed::new(seed).rng();
        Episode::play(table, parse_game(fen).unwrap(), manner, Some(&mut random), &mut rng).unwrap()
    }

    /// What the table says of a move.
    fn value(table: &Table, fen: &str, san: &str) -> Option<f32> {
        let game = parse_game(fen).unwrap();
        let m = notation::parse_san(game.position(), san).unwrap();
        Some(table.get(State::of(game.position()).pair(m))?.0)
    }

    #[test]
    fn a_finisher_that_does_not_move_is_named() {
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
        let manner = Manner { table_plies: 2, ..GREEDY };
        let mut rng = Seed::new(1).rng();
        let (table, game) = (Table::new(1), Game::new());
        let played = Episode::play(&table, game, &manner, Some(&mut Mute), &mut rng);
        assert!(played.unwrap_err().to_string().contains("mute"));
    }

    #[test]
    fn a_mate_is_found_and_what_allows_it_is_a_loss() {
        // White mates with Ra8; before it Black could have stepped to f8 or into mate on h8.
        let (before, mate) = ("6k1/8/6K1/8/8/8/8/R7 b - - 0 1", "6k1/8/6K1/8/8/8/8/R7 w - - 0 1");
        let mut table = Table::new(1);
        for seed in 0..400 {
            let manner = Manner { epsilon: 0.5, ..GREEDY };
            play(&table, mate, &manner, seed).teach(&mut table, HALF, 0.9);
            play(&table, before, &manner, seed).teach(&mut table, HALF, 0.9);
        }
        assert!(value(&table, mate, "Ra8#").unwrap() > 0.9);
        let waiting = value(&table, mate, "Rb1").unwrap();
        assert!(waiting < 0.9, "{waiting}");
        // What White wins Black loses: the target is negated.
        assert!(value(&table, before, "Kh8").unwrap() < -0.5);
        let game = play(&table, mate, &GREEDY, 1);
        assert_eq!((game.plies, game.winner), (1, Some(Color::White)));
    }

    #[test]
    fn a_game_that_is_cut_off_is_worth_what_the_table_thinks() {
        let fen = "8/8/8/3k4/8/8/8/K6R w - - 0 1";
        let mut table = Table::new(1);
        let episode = play(&table, fen, &Manner { max_plies: 3, ..GREEDY }, 1);
        assert_eq!((episode.reward, episode.plies, episode.moves()), (None, 3, 3));
        // Nothing is known, so nothing is learned but that it was there.
        assert_eq!(episode.teach(&mut table, TENTH, 0.99), 0.0);
        assert_eq!((table.pairs(), table.best(&episode.pairs)), (3, 0.0));
    }

    #[test]
    fn a_result_reaches_the_first_move_at_once() {
        // Both sides shuffle until somebody is mated: one game tells the first move.
        let fen = "k7/8/1K6/8/8/8/8/7R w - - 0 1";
        let manner = Manner { max_plies: 12, ..GREEDY };
        let mut tried = 0;
        for seed in 0..200 {
            let mut table = Table::new(1);
            let episode = play(&table, fen, &manner, seed);
            if episode.winner.is_some() && episode.plies >= 5 {
                episode.teach(&mut table, TENTH, 0.99);
                let first = table.get(episode.pairs[usize::from(episode.steps[0].played.unwrap())]);
                assert!(first.unwrap().0 > 0.5, "{first:?}");
                tried += 1;
            }
        }
        assert!(tried > 0);
    }

    #[test]
    fn against_any_move_only_the_tables_moves_are_learned_and_no_value_is_negated() {
        let fen = "k7/8/1K6/8/8/8/8/7R w - - 0 1";
        for (side, sign) in [(Color::White, 1.0), (Color::Black, -1.0)] {
            let manner = Manner { side: Some(side), max_plies: 30, ..GREEDY };
            let mut mates = 0;
            for seed in 0..50 {
                let mut table = Table::new(1);
                let episode = play(&table, fen, &manner, seed);
                assert!(episode.moves() as u32 <= episode.plies.div_ceil(2));
                if episode.winner.is_some() && episode.moves() > 0 {
                    assert_eq!(episode.reward, Some(sign));
                    episode.teach(&mut table, TENTH, 0.99);
                    let known = episode.pairs.iter().filter_map(|&pair| table.get(pair));
                    assert!(known.into_iter().all(|(value, _)| value * sign > 0.5));
                    mates += 1;
                }
            }
            assert!(mates > 0);
        }
    }

    #[test]
    fn a_game_teaches_one_new_position_and_its_result_from_afar() {
        let fen = "k7/8/1K6/8/8/8/8/7R w - - 0 1";
        let manner = Manner { side: Some(Color::White), max_plies: 60, new_states: 1, ..GREEDY };
        let (mut won, mut cut_off) = (0, 0);
        for seed in 0..50 {
            let mut table = Table::new(1);
            let episode = play(&table, fen, &manner, seed);
            assert_eq!(episode.moves(), 1);
            episode.teach(&mut table, TENTH, 0.9);
            assert_eq!((table.states(), table.pairs()), (1, 1));
            // The move that mated stands a move of White's after the one before it.
            let moves = episode.plies.div_ceil(2) as i32;
            let expected = match episode.reward {
                Some(reward) => reward * 0.9f32.powi(moves - 1),
                None => 0.0,
            };
            won += u32::from(episode.winner.is_some());
            cut_off += u32::from(episode.reward.is_none());
            assert!((table.best(&episode.pairs) - expected).abs() < 1e-5);
            // The next game knows that position, and so the one after it is new.
            let next = play(&table, fen, &manner, seed);
            assert!(next.moves() <= 2);
        }
        assert!(won > 0 && cut_off > 0, "{won} {cut_off}");
    }

    #[test]
    fn where_both_learn_a_result_from_afar_changes_sides() {
        let fen = "k7/8/1K6/8/8/8/8/7R w - - 0 1";
        let manner = Manner { max_plies: 200, new_states: 1, ..GREEDY };
        let mut signs = [0, 0];
        for seed in 0..200 {
            let mut table = Table::new(1);
            let episode = play(&table, fen, &manner, seed);
            episode.teach(&mut table, TENTH, 0.9);
            // White moved first, so what it learned has its sign if White won.
            let Some(winner) = episode.winner else { continue };
            let sign = if winner == Color::White { 1.0 } else { -1.0 };
            let expected = sign * 0.9f32.powi(episode.plies as i32 - 1);
            assert!((table.best(&episode.pairs) - expected).abs() < 1e-6);
            signs[episode.plies as usize % 2] += 1;
        }
        assert!(signs[1] > 0, "{signs:?}");
    }

    #[test]
    fn a_mate_is_known_at_once() {
        let fen = "6k1/8/6K1/8/8/8/8/R7 w - - 0 1";
        let careful = LearningRate { alpha: 0.1, doubt: 9 };
        let mut mates = 0;
        for seed in 0..100 {
            let mut table = Table::new(1);
            let episode = play(&table, fen, &Manner { max_plies: 1, ..GREEDY }, seed);
            episode.teach(&mut table, careful, 0.99);
            if episode.winner.is_some() {
                assert_eq!(value(&table, fen, "Ra8#"), Some(1.0));
                mates += 1;
            }
        }
        assert!(mates > 0);
    }

    #[test]
    fn only_the_first_plies_are_the_tables() {
        let manner = Manner { table_plies: 2, max_plies: 400, ..GREEDY };
        let mut learned = 0;
        for seed in 0..20 {
            let mut table = Table::new(1);
            let episode = play(&table, "8/8/8/8/8/1k6/7q/K7 b - - 0 1", &manner, seed);
            assert!(episode.moves() <= 2 && episode.plies >= 1);
            episode.teach(&mut table, TENTH, 0.99);
            learned += table.pairs();
        }
        assert!(learned > 0);
    }

    #[test]
    fn equal_moves_are_all_played() {
        let table = Table::new(1);
        let mut rng = Seed::new(3).rng();
        let mut seen = [0; 4];
        for _ in 0..400 {
            seen[choose(&table, &[11, 12, 13, 14], &mut rng)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 60), "{seen:?}");
    }
}
