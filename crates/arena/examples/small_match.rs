//! Plays 20 games between two players and prints wins, draws, losses and the Elo difference with
//! its 95 % error. Run: `cargo run --release -p selfmate-arena --example small_match`.

use selfmate_arena::{MatchConfig, MatchError, MatchReport, MatchRun, Registry, run_match};

fn main() -> Result<(), MatchError> {
    println!("{}", summary(&play()?));
    Ok(())
}

/// The default openings and seed, so that every run gives the same games.
fn play() -> Result<MatchReport, MatchError> {
    let config = MatchConfig::new("greedy", "random", 20);
    run_match(&config, &MatchRun::default(), &Registry::standard(), &mut |_| {})
}

fn summary(report: &MatchReport) -> String {
    let MatchReport { a, b, wins, draws, losses, .. } = report;
    let elo = match (report.elo, report.elo_error) {
        (Some(elo), Some(error)) => format!("{elo:+.0} ± {error:.0}"),
        // Without variance, such as after 20 wins, there is no error to print.
        _ => "unknown".to_owned(),
    };
    format!("{a} against {b}: {wins} wins, {draws} draws, {losses} losses, Elo difference {elo}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_plays_20_games_and_prints_an_elo_difference() {
        let report = play().unwrap();
        assert_eq!(report.wins + report.draws + report.losses, 20);
        let text = summary(&report);
        assert!(text.starts_with("greedy against random: "), "{text}");
        assert!(text.contains(" ± "), "{text}");
    }
}
