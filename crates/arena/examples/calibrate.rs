//! Measures the built-in rungs of `rate` against each other and against Stockfish's levels. Run:
//! `cargo run --release -p selfmate-arena --example calibrate -- low|high [GAMES] [MOVETIME_MS]
//! [FOLDER]`. `low` covers the rungs up to depth 1, `high` those from just below depth 1 upwards.
//! GAMES is the number of games against each Stockfish level; two rungs play four times as many.
//! Games run one at a time.

use selfmate_arena::adjudicate::{Adjudication, ResignRule, ResignSides};
use selfmate_arena::rate::{DEPTH_RUNGS, OWN_RUNGS};
use selfmate_arena::rating::{Meeting, rating_list};
use selfmate_arena::stats::{Tally, score_of_elo};
use selfmate_arena::*;

/// Rungs play each other if they are at most this many places apart.
const MAX_PLACES_APART: usize = 3;
/// A rung plays a Stockfish level if their expected ratings differ by at most this much.
const MAX_ELO_APART: f64 = 160.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let part = arguments.next().unwrap_or_default();
    let games = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let movetime = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let folder = arguments.next().map(std::path::PathBuf::from);
    let (own, levels): (Vec<(&str, f64)>, Vec<u32>) = match part.as_str() {
        "low" => (OWN_RUNGS.into(), vec![1350, 1450]),
        "high" => {
            let just_below = &OWN_RUNGS[OWN_RUNGS.len() - 2..];
            ([just_below, &DEPTH_RUNGS].concat(), (1350..=2550).step_by(150).collect())
        }
        _ => return Err("expected low|high [GAMES] [MOVETIME_MS] [FOLDER]".into()),
    };
    // As in the live ratings during training: the last moves of decided games carry no information.
    let resign = Some(ResignRule { move_count: 3, score: 1000, sides: ResignSides::Both });
    let settings = GameSettings {
        limit: MatchLimit::movetime(movetime),
        margin_ms: 5000,
        adjudication: Adjudication { resign, max_plies: Some(300), ..Adjudication::default() },
    };
    let levels = levels.iter().map(|elo| (format!("stockfish:elo={elo}"), f64::from(*elo)));
    let players: Vec<(String, f64)> =
        own.iter().map(|(name, elo)| ((*name).to_owned(), *elo)).chain(levels).collect();
    let names: Vec<String> = players.iter().map(|(name, _)| name.clone()).collect();
    let anchors: Vec<Option<f64>> = players
        .iter()
        .enumerate()
        .map(|(index, (_, elo))| (index >= own.len()).then_some(*elo))
        .collect();
    let mut meetings = Vec::new();
    for a in 0..own.len() {
        for b in a + 1..players.len() {
            let is_level = anchors[b].is_some();
            let meet = match is_level {
                true => (players[a].1 - players[b].1).abs() <= MAX_ELO_APART,
                false => b <= a + MAX_PLACES_APART,
            };
            if !meet {
                continue;
            }
            let games = if is_level { games } else { 4 * games };
            let config = MatchConfig {
                settings: settings.clone(),
                ..MatchConfig::new(&names[a], &names[b], games)
            };
            let file = format!("{} {}.jsonl", names[a], names[b]);
            let store = folder.as_ref().map(|folder| folder.join(file));
            let run = MatchRun { store, ..MatchRun::default() };
            let report = run_match(&config, &run, &Registry::standard(), &mut |_| {})?;
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
    let list = rating_list(&names, &meetings, &anchors);
    let elo = |name: &str| list.iter().find(|rated| rated.name == name).map_or(0.0, |r| r.elo);
    println!(
        "\npairings that do not fit the scale: points scored, points expected, standard deviations"
    );
    for Meeting { a, b, tally } in &meetings {
        let expected = score_of_elo(elo(&names[*a]) - elo(&names[*b]));
        let games = tally.games() as f64;
        let spread = (expected * (1.0 - expected) * games).sqrt();
        let off = (tally.points() - expected * games) / spread;
        if off.abs() > 1.96 {
            let (points, expected) = (tally.points(), expected * games);
            println!("{} - {}: {points:.1}, {expected:.1}, {off:+.1}", names[*a], names[*b]);
        }
    }
    println!();
    for player in &list {
        let error = player.elo_error.map_or("?".to_owned(), |error| format!("{error:.0}"));
        println!("{:30} {:7.0} ± {error:>4} {:6} games", player.name, player.elo, player.games);
    }
    Ok(())
}
