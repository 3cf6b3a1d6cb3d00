//! The reset/step environment that people in reinforcement learning know.
//!
//! An [`Env`] is a game plus its legal moves, a numbering of actions and a seeded generator.
//! Rewards are for the side that moved. The environment does not choose an opponent's moves:
//! both sides act through [`Env::step`]. [`BatchEnv`] steps many on all cores.

use rayon::prelude::*;
use serde::Serialize;
use shakmaty::{Board, Chess, Color, Move, MoveList, Position};

use crate::fen::{FenError, parse_fen, to_fen};
use crate::game::Game;
use crate::notation::{MoveError, parse_move, uci};
use crate::outcome::{Outcome, Rules};
use crate::seed::{Rng, Seed};

/// A fixed numbering of moves. Implemented by the move encodings of `selfmate-encode`.
pub trait ActionSpace: Send + Sync {
    /// Its name, such as `az4672`.
    fn name(&self) -> &'static str;
    /// How many numbers there are.
    fn size(&self) -> usize;
    /// The number of a legal move; `None` for a move this space has no number for.
    fn index(&self, position: &Chess, m: Move) -> Option<usize>;
}

/// One game to act in.
#[derive(Clone)]
pub struct Env {
    game: Game,
    legal: MoveList,
    outcome: Option<Outcome>,
    actions: &'static dyn ActionSpace,
    rng: Rng,
}

/// What to do in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// A move.
    Move(Move),
    /// A move in UCI or SAN.
    Text(&'a str),
    /// A number of the environment's action space.
    Index(usize),
}

/// What a step led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Transition {
    /// For the side that moved: 1 for a win, -1 for a loss, 0 otherwise.
    pub reward: i8,
    /// The rules ended the game.
    pub done: bool,
    /// The ply cap cut the game off.
    pub truncated: bool,
}

/// Why a step was refused. The environment is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The game has ended.
    #[error("the game is over ({0}): reset before the next step")]
    Over(Outcome),
    /// The text or move is not legal here.
    #[error(transparent)]
    Move(#[from] MoveError),
    /// The number is no legal move here.
    #[error(
        "action {index} of {space} is not legal in {fen}: expected one of the {legal} that the mask allows"
    )]
    Index {
        /// The number given.
        index: usize,
        /// The action space.
        space: &'static str,
        /// The position.
        fen: String,
        /// How many moves are legal.
        legal: usize,
    },
}

/// What an agent sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// The position as FEN.
    pub fen: String,
    /// `white` or `black`.
    pub side_to_move: &'static str,
    /// The pieces; see [`board_tensor`].
    pub board: BoardTensor,
    /// The legal moves in UCI; empty when the game is over.
    pub legal_moves: Vec<String>,
    /// The side to move is in check.
    pub check: bool,
    /// Moves played since the start.
    pub move_count: usize,
    /// `1-0`, `0-1`, `1/2-1/2`, `*` when cut off; `None` while the game goes on.
    pub result: Option<&'static str>,
}

/// Where an environment stands, for saving and showing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    /// The position the game started from.
    pub start_fen: String,
    /// The current position.
    pub fen: String,
    /// The moves that led from one to the other, in UCI.
    pub moves: Vec<String>,
    /// Steps taken since the reset.
    pub step_count: usize,
}

impl Env {
    /// An environment at the usual start position, seeded with 0.
    pub fn new(rules: Rules, actions: &'static dyn ActionSpace) -> Env {
        let game = Game::new().with_rules(rules);
        let legal = game.legal_moves();
        let outcome = game.outcome_given(&legal);
        Env { game, legal, outcome, actions, rng: Seed::new(0).rng() }
    }

    /// Starts a new game from a FEN (`None`: the usual start) with a seed for [`Env::sample`].
    pub fn reset(&mut self, fen: Option<&str>, seed: Seed) -> Result<(), FenError> {
        let start = fen.map_or_else(|| Ok(Chess::default()), parse_fen)?;
        self.reset_to(start, seed);
        Ok(())
    }

    /// As [`Env::reset`], from a position.
    pub fn reset_to(&mut self, start: Chess, seed: Seed) {
        self.game.restart(start);
        self.rng = seed.rng();
        self.refresh();
    }

    /// Plays a move for the side to move.
    pub fn step(&mut self, action: Action<'_>) -> Result<Transition, StepError> {
        if let Some(outcome) = self.outcome {
            return Err(StepError::Over(outcome));
        }
        let m = self.resolve(action)?;
        Ok(self.advance(m))
    }

    /// A legal move drawn from the environment's own generator; `None` when the game is over.
    pub fn sample(&mut self) -> Option<Move> {
        if self.outcome.is_some() { None } else { self.rng.choose(&self.legal).copied() }
    }

    /// Plays the move that [`Env::sample`] would draw, without looking it up again; `None` when the
    /// game is over.
    pub fn step_random(&mut self) -> Option<Transition> {
        let m = self.sample()?;
        Some(self.advance(m))
    }

    /// The game so far.
    pub fn game(&self) -> &Game {
        &self.game
    }

    /// How the game ended, or `None` while it goes on.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// The legal moves; what a rule has ended still lists the moves of its last position.
    pub fn legal_moves(&self) -> &[Move] {
        &self.legal
    }

    /// Which numbers of the action space are legal now.
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

    /// What an agent sees now.
    pub fn observation(&self) -> Observation {
        let position = self.game.position();
        Observation {
            fen: to_fen(position),
            side_to_move: if position.turn() == Color::White { "white" } else { "black" },
            board: board_tensor(position.board()),
            legal_moves: match self.outcome {
                None => self.legal.iter().map(|&m| uci(position, m)).collect(),
                Some(_) => Vec::new(),
            },
            check: position.is_check(),
            move_count: self.game.ply(),
            result: self.outcome.map(Outcome::pgn),
        }
    }

    /// Where the game stands.
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
        }
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

    /// Plays a legal move in a game that goes on.
    fn advance(&mut self, m: Move) -> Transition {
        let mover = self.game.turn();
        self.game.play_unchecked(m);
        self.refresh();
        self.transition(mover)
    }

    fn refresh(&mut self) {
        // A list has room for 256 moves and holds 30: only those are worth copying.
        self.legal.clear();
        self.legal
            .try_extend_from_slice(&self.game.legal_moves())
            .expect("one list has as much room as another");
        self.outcome = self.game.outcome_given(&self.legal);
    }

    fn transition(&self, mover: Color) -> Transition {
        match self.outcome {
            None => Transition { reward: 0, done: false, truncated: false },
            Some(outcome) => Transition {
                reward: match outcome.winner {
                    None => 0,
                    Some(winner) if winner == mover => 1,
                    Some(_) => -1,
                },
                done: !outcome.is_truncated(),
                truncated: outcome.is_truncated(),
            },
        }
    }
}

/// Many environments that step together on all cores.
pub struct BatchEnv {
    envs: Vec<Env>,
}

impl BatchEnv {
    /// `count` environments at the start position, environment `i` seeded with `seed.index(i)`.
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

    /// Starts all games over from the start position, in the memory the batch already has;
    /// environment `i` is seeded with `seed.index(i)`.
    pub fn reset(&mut self, seed: Seed) {
        for (index, env) in self.envs.iter_mut().enumerate() {
            env.reset_to(Chess::default(), seed.index(index as u64));
        }
    }

    /// The environments.
    pub fn envs(&self) -> &[Env] {
        &self.envs
    }

    /// The environments, to reset or step one by one.
    pub fn envs_mut(&mut self) -> &mut [Env] {
        &mut self.envs
    }

    /// One action in each environment; results in the same order.
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

    /// Plays a random legal move in each environment that is still running; returns how many were.
    pub fn step_random(&mut self) -> usize {
        self.play_random(1)
    }

    /// Plays up to `plies` random legal moves in each environment; returns how many were played.
    ///
    /// The games are those that as many calls of [`BatchEnv::step_random`] would play. This is
    /// faster: a game stays in the processor's cache for all its moves, and cores wait for each
    /// other once.
    pub fn play_random(&mut self, plies: usize) -> usize {
        self.envs
            .par_iter_mut()
            .with_min_len(Self::CHUNK.div_ceil(plies.max(1)))
            .map(|env| (0..plies).map_while(|_| env.step_random()).count())
            .sum()
    }

    /// A step takes about a third of a microsecond: fewer per task would only move work around.
    const CHUNK: usize = 64;
}

/// Pieces as numbers: `[rank][file][piece]`, rank 1 and file a first, pieces in the order
/// P N B R Q K p n b r q k.
pub type BoardTensor = [[[u8; 12]; 8]; 8];

/// The 8×8×12 board tensor of a position.
pub fn board_tensor(board: &Board) -> BoardTensor {
    let mut tensor = [[[0; 12]; 8]; 8];
    for (square, piece) in board {
        let channel = usize::from(piece.role) - 1 + if piece.color == Color::White { 0 } else { 6 };
        tensor[usize::from(square.rank())][usize::from(square.file())][channel] = 1;
    }
    tensor
}
