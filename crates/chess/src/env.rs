//! The reset/step environment of reinforcement learning.
//!
//! An [`Env`] holds a game, its legal moves, an action space and a seeded generator. Rewards are
//! for the side that moved. The environment does not play an opponent's moves: both sides act
//! through [`Env::step`]. [`BatchEnv`] steps many environments on all cores.

use rayon::prelude::*;
use serde::Serialize;
use shakmaty::{Board, Chess, Color, Move, MoveList, Position};

use crate::fen::{FenError, parse_fen, to_fen};
use crate::game::Game;
use crate::notation::{MoveError, parse_move, uci};
use crate::outcome::{Outcome, Rules};
use crate::seed::{Rng, Seed};

/// A fixed numbering of moves. `selfmate-encode` implements it for its move encodings.
pub trait ActionSpace: Send + Sync {
    /// A short identifier, such as `az4672`.
    fn name(&self) -> &'static str;
    /// The number of indices; every index is below it.
    fn size(&self) -> usize;
    /// The index of a legal move; `None` if the space cannot express the move.
    fn index(&self, position: &Chess, m: Move) -> Option<usize>;
}

/// An environment with one game.
///
/// ```
/// use selfmate_chess::env::{Action, ActionSpace, Env};
/// use selfmate_chess::{Chess, Move, Rules, Seed};
///
/// /// The square a piece leaves and the square it goes to.
/// struct FromTo;
///
/// impl ActionSpace for FromTo {
///     fn name(&self) -> &'static str {
///         "from-to"
///     }
///     fn size(&self) -> usize {
///         64 * 64
///     }
///     fn index(&self, _: &Chess, m: Move) -> Option<usize> {
///         Some(usize::from(m.from()?) * 64 + usize::from(m.to()))
///     }
/// }
///
/// let mut env = Env::new(Rules::default(), &FromTo);
/// env.reset(None, Seed::new(1))?;
/// let step = env.step(Action::Text("e4"))?;
/// assert_eq!((step.reward, step.done), (0, false));
///
/// // Black answers by index: e7 is square 52, e5 is square 36.
/// assert!(env.action_mask()[52 * 64 + 36]);
/// env.step(Action::Index(52 * 64 + 36))?;
/// assert_eq!(env.observation().move_count, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Env {
    game: Game,
    legal: MoveList,
    outcome: Option<Outcome>,
    actions: &'static dyn ActionSpace,
    rng: Rng,
}

/// The move to play in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    Move(Move),
    /// UCI or SAN.
    Text(&'a str),
    /// An index of the environment's action space.
    Index(usize),
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Transition {
    /// For the side that moved: 1 for a win, -1 for a loss, 0 otherwise.
    pub reward: i8,
    /// The rules ended the game. Not set for a truncated game.
    pub done: bool,
    /// The game reached the ply cap. It has no result.
    pub truncated: bool,
}

/// Why a step was rejected. The environment is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    #[error("the game is over: {0}; reset before the next step")]
    Over(Outcome),
    #[error(transparent)]
    Move(#[from] MoveError),
    #[error(
        "action {index} of {space} is not legal in {fen}: expected an index that the action mask allows ({legal} legal moves)"
    )]
    Index {
        index: usize,
        space: &'static str,
        fen: String,
        /// The number of legal moves.
        legal: usize,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Observation {
    pub fen: String,
    /// `white` or `black`.
    pub side_to_move: &'static str,
    /// See [`board_tensor`].
    pub board: BoardTensor,
    /// In UCI notation; empty when the game is over.
    pub legal_moves: Vec<String>,
    pub check: bool,
    pub move_count: usize,
    /// As in [`Transition`].
    pub done: bool,
    /// As in [`Transition`].
    pub truncated: bool,
    /// `1-0`, `0-1`, `1/2-1/2`, or `*` for a truncated game; `None` while the game is not over.
    pub result: Option<&'static str>,
}

/// A summary of an environment, for saving and display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    pub start_fen: String,
    pub fen: String,
    /// The moves from `start_fen` to `fen`, in UCI notation.
    pub moves: Vec<String>,
    pub step_count: usize,
    /// `white` or `black`.
    pub side_to_move: &'static str,
    /// See [`board_tensor`].
    pub board: BoardTensor,
    /// As in [`Transition`].
    pub done: bool,
    /// As in [`Transition`].
    pub truncated: bool,
    /// As in [`Observation`].
    pub result: Option<&'static str>,
}

impl Env {
    /// Starts at the standard starting position, with seed 0.
    pub fn new(rules: Rules, actions: &'static dyn ActionSpace) -> Env {
        let game = Game::new().with_rules(rules);
        let legal = game.legal_moves();
        let outcome = game.outcome_given(&legal);
        Env { game, legal, outcome, actions, rng: Seed::new(0).rng() }
    }

    /// Starts a new game from a FEN (`None`: the standard start). The seed is for [`Env::sample`].
    pub fn reset(&mut self, fen: Option<&str>, seed: Seed) -> Result<(), FenError> {
        let start = fen.map_or_else(|| Ok(Chess::default()), parse_fen)?;
        self.reset_to(start, seed);
        Ok(())
    }

    /// Like [`Env::reset`], from a position.
    pub fn reset_to(&mut self, start: Chess, seed: Seed) {
        self.game.restart(start);
        self.rng = seed.rng();
        self.refresh();
    }

    pub fn step(&mut self, action: Action<'_>) -> Result<Transition, StepError> {
        if let Some(outcome) = self.outcome {
            return Err(StepError::Over(outcome));
        }
        let m = self.resolve(action)?;
        Ok(self.advance(m))
    }

    /// Draws a legal move from the environment's generator; `None` when the game is over.
    pub fn sample(&mut self) -> Option<Move> {
        if self.outcome.is_some() { None } else { self.rng.choose(&self.legal).copied() }
    }

    /// Plays the move that [`Env::sample`] would draw, without a second legality check; `None` when
    /// the game is over.
    pub fn step_random(&mut self) -> Option<Transition> {
        let m = self.sample()?;
        Some(self.advance(m))
    }

    pub fn game(&self) -> &Game {
        &self.game
    }

    /// How the game ended; `None` while it is not over.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// The legal moves of the current position, even if a draw rule has already ended the game.
    pub fn legal_moves(&self) -> &[Move] {
        &self.legal
    }

    /// For each index of the action space: whether it is legal now. All false when the game is over.
    pub fn action_mask(&self) -> Vec<bool> {
        let mut mask = vec![false; self.actions.size()];
        if self.outcome.is_none() {
            for &m in &self.legal {
                if let Some(index) = self.actions.index(self.game.position(), m) {
                    mask[index] = true;
                }
            }
        }
        mask
    }

    pub fn observation(&self) -> Observation {
        let position = self.game.position();
        Observation {
            fen: to_fen(position),
            side_to_move: self.side_to_move(),
            board: board_tensor(position.board()),
            legal_moves: match self.outcome {
                None => self.legal.iter().map(|&m| uci(position, m)).collect(),
                Some(_) => Vec::new(),
            },
            check: position.is_check(),
            move_count: self.game.ply(),
            done: self.is_done(),
            truncated: self.is_truncated(),
            result: self.outcome.map(Outcome::pgn),
        }
    }

    pub fn state(&self) -> State {
        let mut position = self.game.start().clone();
        let moves = self.game.moves().map(|m| {
            let text = uci(&position, m);
            position.play_unchecked(m);
            text
        });
        State {
            moves: moves.collect(),
            start_fen: to_fen(self.game.start()),
            fen: to_fen(self.game.position()),
            step_count: self.game.ply(),
            side_to_move: self.side_to_move(),
            board: board_tensor(self.game.position().board()),
            done: self.is_done(),
            truncated: self.is_truncated(),
            result: self.outcome.map(Outcome::pgn),
        }
    }

    /// Whether the rules ended the game.
    pub fn is_done(&self) -> bool {
        self.outcome.is_some_and(|outcome| !outcome.is_truncated())
    }

    /// Whether the ply cap ended the game.
    pub fn is_truncated(&self) -> bool {
        self.outcome.is_some_and(Outcome::is_truncated)
    }

    fn side_to_move(&self) -> &'static str {
        if self.game.turn() == Color::White { "white" } else { "black" }
    }

    fn resolve(&self, action: Action<'_>) -> Result<Move, StepError> {
        let position = self.game.position();
        match action {
            Action::Text(text) => Ok(parse_move(position, text)?),
            Action::Move(m) if self.legal.contains(&m) => Ok(m),
            Action::Move(m) => {
                Err(MoveError::Illegal { text: uci(position, m), fen: to_fen(position) }.into())
            }
            Action::Index(index) => self
                .legal
                .iter()
                .copied()
                .find(|&m| self.actions.index(position, m) == Some(index))
                .ok_or_else(|| StepError::Index {
                    index,
                    space: self.actions.name(),
                    fen: to_fen(position),
                    legal: self.legal.len(),
                }),
        }
    }

    /// Plays a legal move in a game that is not over.
    fn advance(&mut self, m: Move) -> Transition {
        let mover = self.game.turn();
        self.game.play_unchecked(m);
        self.refresh();
        self.transition(mover)
    }

    fn refresh(&mut self) {
        // A list has room for 256 moves and usually holds about 30. This copies only those.
        self.legal.clear();
        self.legal
            .try_extend_from_slice(&self.game.legal_moves())
            .expect("both lists have the same capacity");
        self.outcome = self.game.outcome_given(&self.legal);
    }

    fn transition(&self, mover: Color) -> Transition {
        Transition {
            reward: self.outcome.map_or(0, |outcome| outcome.reward(mover)),
            done: self.is_done(),
            truncated: self.is_truncated(),
        }
    }
}

pub struct BatchEnv {
    envs: Vec<Env>,
}

impl BatchEnv {
    /// Starts `count` games. Environment `i` gets the seed `seed.index(i)`.
    pub fn new(
        count: usize,
        seed: Seed,
        rules: Rules,
        actions: &'static dyn ActionSpace,
    ) -> BatchEnv {
        let mut batch = BatchEnv { envs: vec![Env::new(rules, actions); count] };
        batch.reset(seed);
        batch
    }

    /// Restarts all games from the starting position and keeps the allocated memory. Environment
    /// `i` gets the seed `seed.index(i)`.
    pub fn reset(&mut self, seed: Seed) {
        for (index, env) in self.envs.iter_mut().enumerate() {
            env.reset_to(Chess::default(), seed.index(index as u64));
        }
    }

    pub fn envs(&self) -> &[Env] {
        &self.envs
    }

    /// For resetting or stepping single environments.
    pub fn envs_mut(&mut self) -> &mut [Env] {
        &mut self.envs
    }

    /// Takes one action in each environment. The results are in the same order.
    ///
    /// # Panics
    ///
    /// Panics if there is not exactly one action for each environment.
    pub fn step(&mut self, actions: &[Action<'_>]) -> Vec<Result<Transition, StepError>> {
        assert_eq!(actions.len(), self.envs.len(), "one action for each environment");
        self.envs
            .par_iter_mut()
            .with_min_len(Self::CHUNK)
            .zip(actions)
            .map(|(env, action)| env.step(*action))
            .collect()
    }

    /// Plays a random legal move in each game that is not over; returns how many games that was.
    pub fn step_random(&mut self) -> usize {
        self.play_random(1)
    }

    /// Plays up to `plies` random legal moves in each environment; returns the total number played.
    ///
    /// The games are the same as with `plies` calls of [`BatchEnv::step_random`]. This is faster:
    /// each game stays in the CPU cache for all its moves, and the threads synchronise once.
    pub fn play_random(&mut self, plies: usize) -> usize {
        self.envs
            .par_iter_mut()
            .with_min_len(Self::CHUNK.div_ceil(plies.max(1)))
            .map(|env| (0..plies).map_while(|_| env.step_random()).count())
            .sum()
    }

    /// A step takes about a third of a microsecond. Smaller tasks would cost more than they share.
    const CHUNK: usize = 64;
}

/// Pieces as numbers: `[rank][file][piece]`, rank 1 and file a first, pieces in the order
/// P N B R Q K p n b r q k.
pub type BoardTensor = [[[u8; 12]; 8]; 8];

pub fn board_tensor(board: &Board) -> BoardTensor {
    let mut tensor = [[[0; 12]; 8]; 8];
    for (square, piece) in board {
        let channel = usize::from(piece.role) - 1 + if piece.color == Color::White { 0 } else { 6 };
        tensor[usize::from(square.rank())][usize::from(square.file())][channel] = 1;
    }
    tensor
}
