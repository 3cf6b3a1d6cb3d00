//! One full game as readable text: the environment and the encodings at every ply.

use std::fmt::Write;

use selfmate_chess::env::{Action, ActionSpace, Env};
use selfmate_chess::notation::san;
use selfmate_chess::{Rules, Seed};
use selfmate_encode::sparse::sparse768;
use selfmate_encode::{MoveSpace, Planes};

#[test]
fn one_full_game() {
    let mut text = String::new();
    let mut env = Env::new(Rules::default(), &MoveSpace::Az4672);
    env.reset(None, Seed::new(7)).unwrap();
    while let Some(m) = env.sample() {
        let position = env.game().position().clone();
        let seen = env.observation();
        let mask = env.action_mask().iter().filter(|legal| **legal).count();
        let index = MoveSpace::Az4672.index(&position, m).unwrap();
        let mut features = Vec::new();
        sparse768(&position, &mut features);
        let features: u32 = features.into_iter().map(u32::from).sum();
        let planes = Planes::ALL.map(|planes| checksum(&planes.encoded(env.game())));
        writeln!(text, "{:3}  {}", seen.move_count, seen.fen).unwrap();
        writeln!(
            text,
            "     {} legal, {}, features {features}, planes {}",
            mask,
            if seen.check { "check" } else { "no check" },
            planes.map(|sum| format!("{sum:08x}")).join(" ")
        )
        .unwrap();
        let played = san(&position, m);
        let step = env.step(Action::Index(index)).unwrap();
        writeln!(text, "     {played} = action {index}, reward {}", step.reward).unwrap();
    }
    let last = env.observation();
    writeln!(text, "{:3}  {}", last.move_count, last.fen).unwrap();
    writeln!(text, "     {}", env.outcome().unwrap()).unwrap();
    insta::assert_snapshot!(text);
}

/// FNV-1a over the bits of the values.
fn checksum(values: &[f32]) -> u32 {
    values.iter().fold(0x811C_9DC5, |sum, v| (sum ^ v.to_bits()).wrapping_mul(0x0100_0193))
}
