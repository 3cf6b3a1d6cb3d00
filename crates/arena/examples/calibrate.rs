//! Measures our own rungs for `rate` against each other and against Stockfish's lowest levels.
//! Run: `cargo run --release -p selfmate-arena --example calibrate [GAMES] [MOVETIME_MS] [FOLDER]`

use selfmate_arena::rate::OWN_RUNGS;
use selfmate_arena::rating::{Meeting, rating_list};
use selfmate_arena::stats::Tally;
use selfmate_arena::*;

/// Stockfish's levels that tie our rungs to its scale.
const LEVELS: [(&str, f64); 2] = [("stockfish:elo=1350", 1350.0), ("stockfish:elo=1450", 1450.0)];
/// How many places apart players may be to meet.
const REACH: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let games = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let movetime = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let folder = arguments.next().map(std::path::PathBuf::from);
    let registry = Registry::standard();
    let names: Vec<String> =
        OWN_RUNGS.iter().chain(&LEVELS).map(|(name, _)| (*name).to_owned()).collect();
    let anchors: Vec<Option<f64>> =
        OWN_RUNGS.iter().map(|_| None).chain(LEVELS.iter().map(|(_, elo)| Some(*elo))).collect();
    let mut meetings = Vec::new();
    for a in 0..names.len() {
        for b in a + 1..names.len().min(a + 1 + REACH) {
            if anchors[a].is_some() && anchors[b].is_some() {
                continue;
            }
            let settings = GameSettings {
                limit: MoveLimit::movetime(movetime),
                margin_ms: 5000,
                ..GameSettings::default()
            };
            // Games among ourselves cost next to nothing.
            let games = if anchors[b].is_some() { games } else { 4 * games };
            let config = MatchConfig { settings, ..MatchConfig::new(&names[a], &names[b], games) };
            let store = folder
                .as_ref()
                .map(|folder| folder.join(format!("{} {}.jsonl", names[a], names[b])));
            let run = MatchRun { concurrency: 2, store, ..MatchRun::default() };
            let report = run_match(&config, &run, &registry, &mut |_| {})?;
            let tally = Tally::new(report.wins, report.draws, report.losses);
            println!(
                "{} - {}: +{} ={} -{} ({} s, {} faults)",
                names[a],
                names[b],
                report.wins,
                report.draws,
                report.losses,
                report.seconds.round(),
                report.a_faults + report.b_faults
            );
            meetings.push(Meeting { a, b, tally });
        }
    }
    for player in rating_list(&names, &meetings, &anchors) {
        println!("{:24} {:7.0} ± {:4.0}", player.name, player.elo, player.elo_error);
    }
    Ok(())
}
