//! One game of an agent, against itself or an opponent.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_chess::env::{Action, ActionSpace, Env, StepError};
use selfmate_chess::notation::uci;
use selfmate_chess::{Color, Position, Rules, Seed};
use selfmate_encode::MoveSpace;
use selfmate_search::Player;
use selfmate_search::player::Limit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::error::ApiError;
use crate::player::Players;

/// The reward of an illegal move, which does not change the position.
const ILLEGAL: f64 = -0.1;

static ACTIONS: MoveSpace = MoveSpace::Az4672;

pub struct Episode {
    env: Env,
    id: String,
    seed: u64,
    steps: u64,
    /// Plays the other side; without an opponent the agent plays both.
    opponent: Option<Box<dyn Player>>,
    agent: Option<Color>,
    has_board: bool,
    /// The permit for an opponent; their number is limited.
    _permit: Option<OwnedSemaphorePermit>,
}

/// The body of a reset. Unknown fields are ignored, as OpenEnv does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reset {
    pub seed: Option<u64>,
    pub episode_id: Option<String>,
    /// The start position.
    pub fen: Option<String>,
    /// The opponent's player spec.
    pub opponent: Option<String>,
    /// `white`, `black` or `random`; White by default when there is an opponent.
    pub agent_color: Option<String>,
    /// Truncates the game after this many plies.
    pub max_plies: Option<u32>,
    /// Whether observations and states have the board tensor; true by default.
    pub include_board: Option<bool>,
}

/// An action: a move as text or by its index.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChessAction {
    /// In UCI or SAN notation.
    #[serde(default, rename = "move")]
    pub text: Option<String>,
    /// Index in the move space `az4672`.
    #[serde(default)]
    pub action_id: Option<usize>,
    /// Ignored.
    #[serde(default)]
    #[allow(dead_code)]
    pub metadata: Option<Value>,
}

/// The result of a reset or a step.
#[derive(Clone, Debug, Serialize)]
pub struct StepResult {
    pub observation: Value,
    pub reward: Option<f64>,
    pub done: bool,
}

impl Reset {
    /// The opponent's spec; `None` when the agent plays both sides.
    pub fn opponent(&self) -> Option<&str> {
        self.opponent.as_deref().filter(|text| !matches!(*text, "" | "none" | "self"))
    }
}

impl Episode {
    /// Starts a game in which the agent plays both sides.
    pub fn alone(players: &Players) -> Result<Episode, ApiError> {
        Episode::new(&Reset::default(), players, None, &Arc::default())
    }

    /// Starts a game. If the opponent moves first, it moves now; `stop` ends its search.
    pub fn new(
        reset: &Reset,
        players: &Players,
        permit: Option<OwnedSemaphorePermit>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Episode, ApiError> {
        let bad = |error: &dyn std::fmt::Display| ApiError::Bad(error.to_string());
        if reset.episode_id.as_ref().is_some_and(|id| id.len() > 255) {
            return Err(ApiError::Bad("episode_id: expected at most 255 characters".into()));
        }
        let seed = reset.seed.unwrap_or_default();
        let root = Seed::new(seed);
        let rules = Rules { max_plies: reset.max_plies, ..Rules::default() };
        let mut env = Env::new(rules, &ACTIONS);
        env.reset(reset.fen.as_deref(), root.derive("environment")).map_err(|error| bad(&error))?;
        let opponent = match reset.opponent() {
            None => None,
            Some(text) => Some(players.build(&players.parse_opponent(text)?, seed)?),
        };
        let agent = match (reset.agent_color.as_deref(), opponent.is_some()) {
            (_, false) => None,
            (None | Some("white"), true) => Some(Color::White),
            (Some("black"), true) => Some(Color::Black),
            (Some("random"), true) => {
                let black = root.derive("agent").rng().chance(0.5);
                Some(if black { Color::Black } else { Color::White })
            }
            (Some(other), true) => {
                let text = format!("agent_color '{other}': expected white, black or random");
                return Err(ApiError::Bad(text));
            }
        };
        let id = match &reset.episode_id {
            Some(id) => id.clone(),
            None => crate::secret_name()?,
        };
        let has_board = reset.include_board.unwrap_or(true);
        let mut episode =
            Episode { env, id, seed, steps: 0, opponent, agent, has_board, _permit: permit };
        episode.reply(stop)?;
        Ok(episode)
    }

    pub fn is_slow(&self) -> bool {
        self.opponent.is_some()
    }

    /// The first observation.
    pub fn first(&self) -> StepResult {
        let done = self.env.outcome().is_some();
        self.result(None, done, Map::new())
    }

    /// The agent moves, then the opponent; `stop` ends its search. An illegal action changes
    /// nothing and gives a small negative reward.
    pub fn step(
        &mut self,
        action: &ChessAction,
        stop: &Arc<AtomicBool>,
    ) -> Result<StepResult, ApiError> {
        let action = match (&action.text, action.action_id) {
            (Some(text), None) => Action::Text(text),
            (None, Some(index)) => Action::Index(index),
            _ => {
                return Err(ApiError::Bad("action: expected either move or action_id".into()));
            }
        };
        self.steps += 1;
        let note = |key: &str, value: Value| Map::from_iter([(key.to_owned(), value)]);
        match self.env.step(action) {
            Err(error @ StepError::Over(_)) => {
                Ok(self.result(Some(0.0), true, note("error", error.to_string().into())))
            }
            Err(error) => {
                let metadata = note("error", error.to_string().into());
                Ok(self.result(Some(ILLEGAL), false, metadata))
            }
            Ok(transition) => {
                let mut reward = f64::from(transition.reward);
                if self.env.outcome().is_none()
                    && let Some(opponent_reward) = self.reply(stop)?
                {
                    reward = -opponent_reward;
                }
                let done = self.env.outcome().is_some();
                Ok(self.result(Some(reward), done, Map::new()))
            }
        }
    }

    /// The opponent moves if it is its turn. Returns its reward if it moved.
    fn reply(&mut self, stop: &Arc<AtomicBool>) -> Result<Option<f64>, ApiError> {
        let is_its_turn = self.agent.is_some_and(|agent| agent != self.env.game().turn());
        let Some(opponent) = self.opponent.as_mut().filter(|_| is_its_turn) else {
            return Ok(None);
        };
        if self.env.outcome().is_some() {
            return Ok(None);
        }
        let fault = |error: String| ApiError::Internal(format!("the opponent failed: {error}"));
        let limit = Limit { stop: Some(Arc::clone(stop)), ..Limit::default() };
        let choice =
            opponent.choose(self.env.game(), &limit).map_err(|error| fault(error.to_string()))?;
        let transition =
            self.env.step(Action::Move(choice.played)).map_err(|error| fault(error.to_string()))?;
        Ok(Some(f64::from(transition.reward)))
    }

    fn result(
        &self,
        reward: Option<f64>,
        done: bool,
        mut metadata: Map<String, Value>,
    ) -> StepResult {
        let seen = self.env.observation();
        let position = self.env.game().position();
        let ids: Vec<usize> = match self.env.outcome() {
            None => {
                self.env.legal_moves().iter().filter_map(|&m| ACTIONS.index(position, m)).collect()
            }
            Some(_) => Vec::new(),
        };
        metadata.insert("halfmove_clock".into(), position.halfmoves().into());
        metadata.insert("fullmove_number".into(), position.fullmoves().get().into());
        let mut observation = json!({
            "fen": seen.fen,
            "legal_moves": seen.legal_moves,
            "legal_action_ids": ids,
            "is_check": seen.check,
            "side_to_move": seen.side_to_move,
            "move_count": seen.move_count,
            "terminated": seen.done,
            "truncated": seen.truncated,
            "result": seen.result,
            // OpenEnv's chess client reads these from the observation.
            "done": done,
            "reward": reward,
            "metadata": metadata,
        });
        if self.has_board {
            observation["board"] = json!(seen.board);
        }
        StepResult { observation, reward, done }
    }

    pub fn state(&self) -> Value {
        let state = self.env.state();
        let mut answer = json!({
            "episode_id": self.id,
            "step_count": self.steps,
            "seed": self.seed,
            "fen": state.fen,
            "start_fen": state.start_fen,
            "current_player": state.side_to_move,
            "agent_color": self.agent.map(|agent| if agent == Color::White { "white" } else { "black" }),
            "move_history": state.moves,
            "done": state.done || state.truncated,
            "terminated": state.done,
            "truncated": state.truncated,
            "result": state.result,
        });
        if self.has_board {
            answer["board"] = json!(state.board);
        }
        answer
    }

    /// The legal moves in UCI notation, for tools.
    pub fn legal(&self) -> Vec<String> {
        let position = self.env.game().position();
        match self.env.outcome() {
            None => self.env.legal_moves().iter().map(|&m| uci(position, m)).collect(),
            Some(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn players() -> Players {
        Players::new(Path::new("nowhere"), 2)
    }

    fn begin(reset: &Reset) -> Episode {
        Episode::new(reset, &players(), None, &Arc::default()).unwrap()
    }

    fn act(episode: &mut Episode, action: &ChessAction) -> StepResult {
        episode.step(action, &Arc::default()).unwrap()
    }

    fn play(text: &str) -> ChessAction {
        ChessAction { text: Some(text.to_owned()), action_id: None, metadata: None }
    }

    #[test]
    fn the_reward_comes_with_the_mate() {
        let mut episode = begin(&Reset::default());
        assert_eq!(episode.first().reward, None);
        let moves = ["e2e4", "e7e5", "d1h5", "b8c6", "f1c4", "g8f6", "h5f7"];
        let results: Vec<StepResult> =
            moves.iter().map(|text| act(&mut episode, &play(text))).collect();
        let rewards: Vec<f64> = results.iter().filter_map(|result| result.reward).collect();
        assert_eq!(rewards, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        let last = &results[6];
        assert!(last.done && last.observation["done"] == true && last.observation["reward"] == 1.0);
        assert_eq!(last.observation["result"], "1-0");
        let state = episode.state();
        for seen in [&last.observation, &state] {
            assert_eq!((&seen["done"], &seen["terminated"]), (&json!(true), &json!(true)));
            assert_eq!((&seen["truncated"], &seen["result"]), (&json!(false), &json!("1-0")));
        }
        assert_eq!(episode.state()["step_count"], 7);
        let after = act(&mut episode, &play("a2a3"));
        assert_eq!((after.done, after.reward), (true, Some(0.0)));
    }

    #[test]
    fn a_truncated_game_is_done_but_not_terminated() {
        let mut episode = begin(&Reset { max_plies: Some(1), ..Reset::default() });
        let first = episode.first().observation;
        assert_eq!((&first["done"], &first["truncated"]), (&json!(false), &json!(false)));
        let result = act(&mut episode, &play("e4"));
        assert_eq!((result.done, result.reward), (true, Some(0.0)));
        let state = episode.state();
        for seen in [&result.observation, &state] {
            assert_eq!((&seen["done"], &seen["terminated"]), (&json!(true), &json!(false)));
            assert_eq!((&seen["truncated"], &seen["result"]), (&json!(true), &json!("*")));
        }
    }

    #[test]
    fn the_board_is_8_by_8_by_12_and_can_be_left_out() {
        let mut episode = begin(&Reset::default());
        let result = act(&mut episode, &play("e4"));
        let board = &result.observation["board"];
        assert_eq!(episode.state()["board"], *board);
        let sizes = [board, &board[3], &board[3][4]].map(|part| part.as_array().unwrap().len());
        assert_eq!(sizes, [8, 8, 12]);
        // The pawn on e4 and Black's king.
        assert_eq!((&board[3][4][0], &board[7][4][11]), (&json!(1), &json!(1)));
        assert_eq!(board[1][4], json!(vec![0; 12]));
        let mut episode = begin(&Reset { include_board: Some(false), ..Reset::default() });
        let result = act(&mut episode, &play("e4"));
        assert!(result.observation.get("board").is_none());
        assert!(episode.state().get("board").is_none());
    }

    #[test]
    fn an_illegal_move_changes_nothing() {
        let reset = Reset { episode_id: Some("ep-1".into()), ..Reset::default() };
        let mut episode = begin(&reset);
        let before = episode.state()["fen"].clone();
        let result = act(&mut episode, &play("e2e5"));
        assert_eq!((result.reward, result.done), (Some(ILLEGAL), false));
        assert!(result.observation["metadata"]["error"].as_str().unwrap().contains("not legal"));
        assert_eq!(episode.state()["fen"], before);
        assert_eq!(
            (&episode.state()["episode_id"], &episode.state()["step_count"]),
            (&json!("ep-1"), &json!(1))
        );
        let nothing = ChessAction { text: None, action_id: None, metadata: None };
        assert!(episode.step(&nothing, &Arc::default()).is_err());
    }

    #[test]
    fn the_same_seed_gives_the_same_game() {
        let game = |seed| {
            let reset = Reset {
                seed: Some(seed),
                opponent: Some("random".into()),
                agent_color: Some("random".into()),
                max_plies: Some(40),
                ..Reset::default()
            };
            let mut episode = begin(&reset);
            while episode.env.outcome().is_none() {
                let first = episode.legal()[0].clone();
                act(&mut episode, &play(&first));
            }
            (episode.state()["move_history"].clone(), episode.agent)
        };
        assert_eq!(game(7), game(7));
        assert!((0..20).any(|seed| game(seed).1 == Some(Color::Black)));
        assert!((0..20).any(|seed| game(seed).0 != game(7).0));
    }

    #[test]
    fn an_opponent_with_white_moves_first_if_white_is_to_move() {
        let reset = Reset {
            opponent: Some("greedy".into()),
            agent_color: Some("black".into()),
            ..Reset::default()
        };
        let episode = begin(&reset);
        assert_eq!(episode.state()["move_history"].as_array().unwrap().len(), 1);
        let black = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";
        let reset = Reset { fen: Some(black.into()), ..reset };
        let episode = begin(&reset);
        assert_eq!(episode.state()["move_history"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn a_stopped_opponent_moves_at_once() {
        let reset = Reset {
            opponent: Some("alphabeta:depth=40".into()),
            agent_color: Some("black".into()),
            ..Reset::default()
        };
        let stop = Arc::new(AtomicBool::new(true));
        let episode = Episode::new(&reset, &players(), None, &stop).unwrap();
        assert_eq!(episode.state()["move_history"].as_array().unwrap().len(), 1);
    }
}
