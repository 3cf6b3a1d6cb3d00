//! The environment: rewards, rejected actions, masks, seeds, batches.

use selfmate_chess::env::{Action, ActionSpace, BatchEnv, Env, StepError};
use selfmate_chess::fen::to_fen;
use selfmate_chess::{Chess, DrawRules, Move, Rules, Seed};

/// From-square times 64 plus to-square.
struct FromTo;

impl ActionSpace for FromTo {
    fn name(&self) -> &'static str {
        "from-to"
    }
    fn size(&self) -> usize {
        4096
    }
    fn index(&self, _: &Chess, m: Move) -> Option<usize> {
        Some(usize::from(m.from()?) * 64 + usize::from(m.to()))
    }
}

fn env() -> Env {
    Env::new(Rules::default(), &FromTo)
}

#[test]
fn rewards_are_for_the_side_that_moved() {
    let mut env = env();
    for text in ["f2f3", "e5", "g4"] {
        let step = env.step(Action::Text(text)).unwrap();
        assert_eq!((step.reward, step.done, step.truncated), (0, false, false));
    }
    let step = env.step(Action::Text("Qh4#")).unwrap();
    assert_eq!((step.reward, step.done, step.truncated), (1, true, false));
    let (seen, state) = (env.observation(), env.state());
    assert_eq!((seen.done, seen.truncated, seen.result), (true, false, Some("0-1")));
    assert_eq!((state.done, state.truncated, state.result), (true, false, Some("0-1")));
    assert!(matches!(env.step(Action::Text("e4")), Err(StepError::Over(_))));
}

#[test]
fn a_game_at_the_ply_cap_is_truncated_and_not_done() {
    let rules = Rules { draws: DrawRules::Claimed, max_plies: Some(1) };
    let mut env = Env::new(rules, &FromTo);
    let step = env.step(Action::Text("e4")).unwrap();
    assert_eq!((step.reward, step.done, step.truncated), (0, false, true));
    let (seen, state) = (env.observation(), env.state());
    assert_eq!((seen.done, seen.truncated, seen.result), (false, true, Some("*")));
    assert_eq!((state.done, state.truncated, state.result), (false, true, Some("*")));
}

#[test]
fn rejected_actions_leave_the_state_unchanged() {
    let mut env = env();
    let before = env.state();
    assert!(matches!(env.step(Action::Text("e5")), Err(StepError::Move(_))));
    assert!(matches!(env.step(Action::Text("zz")), Err(StepError::Move(_))));
    let error = env.step(Action::Index(4095)).unwrap_err().to_string();
    assert!(error.starts_with("action 4095 of from-to is not legal"), "{error}");
    assert!(env.reset(Some("nonsense"), Seed::new(1)).is_err());
    assert_eq!(env.state(), before);
}

#[test]
fn the_mask_contains_exactly_the_legal_moves() {
    let mut env = env();
    env.reset(Some("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"), Seed::new(1)).unwrap();
    let mask = env.action_mask();
    assert_eq!(mask.iter().filter(|legal| **legal).count(), 26);
    for (index, &legal) in mask.iter().enumerate() {
        let mut copy = env.clone();
        assert_eq!(copy.step(Action::Index(index)).is_ok(), legal, "action {index}");
    }
}

#[test]
fn observations_describe_the_position() {
    let mut env = env();
    env.step(Action::Text("e4")).unwrap();
    let seen = env.observation();
    assert_eq!(seen.fen, "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
    assert_eq!((seen.side_to_move, seen.check, seen.move_count), ("black", false, 1));
    assert_eq!(seen.legal_moves.len(), 20);
    assert_eq!(seen.board[3][4][0], 1, "a white pawn on e4");
    assert_eq!(seen.board[7][4][11], 1, "the black king on e8");
    let pieces: u32 = seen.board.as_flattened().as_flattened().iter().map(|&x| u32::from(x)).sum();
    assert_eq!(pieces, 32);
    assert_eq!((seen.done, seen.truncated, seen.result), (false, false, None));
    let state = env.state();
    assert_eq!((state.side_to_move, state.board), (seen.side_to_move, seen.board));
    assert_eq!((state.done, state.truncated, state.result), (false, false, None));
}

#[test]
fn the_same_seed_plays_the_same_game() {
    let game = |seed| {
        let mut env = env();
        env.reset(None, Seed::new(seed)).unwrap();
        while let Some(m) = env.sample() {
            env.step(Action::Move(m)).unwrap();
        }
        env.state()
    };
    assert_eq!(game(1), game(1));
    assert_ne!(game(1), game(2));
}

#[test]
fn a_batch_plays_the_same_games_as_single_environments() {
    let seed = Seed::new(9);
    let mut batch = BatchEnv::new(200, seed, Rules::default(), &FromTo);
    while batch.step_random() > 0 {}
    for (index, played) in batch.envs().iter().enumerate().step_by(37) {
        let mut alone = env();
        alone.reset(None, seed.index(index as u64)).unwrap();
        while let Some(m) = alone.sample() {
            alone.step(Action::Move(m)).unwrap();
        }
        assert_eq!(played.state(), alone.state());
    }
    let played: Vec<_> = batch.envs().iter().map(Env::state).collect();
    batch.reset(seed);
    assert!(batch.envs().iter().all(|env| env.game().ply() == 0));
    let plies: usize = played.iter().map(|state| state.step_count).sum();
    assert_eq!(
        std::iter::repeat_with(|| batch.play_random(7)).take_while(|n| *n > 0).sum::<usize>(),
        plies
    );
    assert_eq!(batch.envs().iter().map(Env::state).collect::<Vec<_>>(), played);
}

#[test]
fn a_batch_returns_results_in_the_order_of_its_environments() {
    let mut batch = BatchEnv::new(3, Seed::new(1), Rules::default(), &FromTo);
    let results = batch.step(&[Action::Text("e4"), Action::Text("e5"), Action::Text("d4")]);
    assert!(results[0].is_ok() && results[1].is_err() && results[2].is_ok());
    let fens: Vec<String> = batch.envs().iter().map(|e| to_fen(e.game().position())).collect();
    assert!(fens[0].contains("4P3") && fens[1].contains("RNBQKBNR w") && fens[2].contains("3P4"));
}
