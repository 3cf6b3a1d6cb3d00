//! The example runs, and its game is complete and deterministic.
#![allow(clippy::unwrap_used)] // tests may panic

#[path = "../examples/one_game.rs"]
mod one_game;

#[test]
fn the_game_of_the_example_is_recorded_and_deterministic() {
    one_game::main().unwrap();
    let record = one_game::play(3).unwrap();
    assert_eq!(record, one_game::play(3).unwrap());
    assert_ne!(record.moves, one_game::play(4).unwrap().moves);
    for position in &record.positions {
        assert!((position.policy.iter().sum::<f32>() - 1.0).abs() < 1e-3);
        assert!(position.value.abs() <= 1.0);
    }
    let lines = one_game::describe(&record).unwrap();
    assert!(!lines.is_empty() && lines.len() == record.positions.len());
    assert!(lines.iter().all(|line| line.contains(" %")), "{lines:#?}");
}
