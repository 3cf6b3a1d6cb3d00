//! The example `environment` runs and prints what it should.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../examples/environment.rs"]
#[allow(dead_code, reason = "main is not called here")]
mod environment;

#[test]
fn the_environment_example_prints_the_same_games_every_time() {
    let mut out = Vec::new();
    environment::run(&mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
    Fool's mate, move by move:
      f2f3 of 20 legal moves, reward 0
      e5   of 20 legal moves, reward 0
      g4   of 19 legal moves, reward 0
      Qh4  of 30 legal moves, reward 1
      0-1 (checkmate)
      a3: the game is over: 0-1 (checkmate); reset before the next step
    A random game by action indices:
      1/2-1/2 after 368 plies
      8/5K2/8/1k6/8/8/6q1/8 w - - 100 185
    500 random games in a batch:
        80 checkmate
       120 fifty-move rule
       256 insufficient material
        31 stalemate
        13 threefold repetition
      342 plies per game
    ");
}
