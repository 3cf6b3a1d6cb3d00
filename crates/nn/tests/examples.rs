//! The examples run and give plausible results.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../examples/train_tiny.rs"]
mod train_tiny;

#[test]
fn the_losses_of_train_tiny_fall() {
    let (losses, _) = train_tiny::train(100).unwrap();
    let (first, last) = (losses[0], losses[99]);
    assert!(last.policy < 0.5 * first.policy, "{first:?} to {last:?}");
    assert!(last.value < 0.5 * first.value, "{first:?} to {last:?}");
    train_tiny::main().unwrap();
}
