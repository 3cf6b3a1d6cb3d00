//! Tablebases in matches: adjudication by tablebase, and players that use tablebases.
//!
//! Some tests need Syzygy tables with up to four pieces and fail without them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Arc;

use selfmate_arena::adjudicate::Adjudication;
use selfmate_arena::game::{Side, Termination};
use selfmate_arena::tablebase_cache::TablebaseRule;
use selfmate_arena::*;
use selfmate_chess::tablebase::Syzygy;
use selfmate_chess::{Color, Game, Outcome, Reason, Seed, fen, pgn};
use selfmate_search::player::{Limit, SearchInfo};

use crate::common::{play, records};

/// The folders of Syzygy tables of up to four pieces: what SELFMATE_SYZYGY names, or else those that
/// `cargo xtask setup` fetches.
fn syzygy_path() -> String {
    std::env::var("SELFMATE_SYZYGY").unwrap_or_else(|_| {
        let tables = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/syzygy");
        assert!(Path::new(tables).exists(), "no Syzygy tables: `cargo xtask setup` fetches them");
        tables.to_owned()
    })
}

#[test]
fn errors_name_tables_that_cannot_be_used() {
    let registry = Registry::standard();
    let message = |text: &str| {
        let spec = registry.parse(text).unwrap();
        registry.build(&spec, Seed::new(1)).err().unwrap().to_string()
    };
    for kind in ["alphabeta", "material", "rollout"] {
        let error = message(&format!("{kind}:syzygy=/no/such/place"));
        let start = format!("player '{kind}', option syzygy: /no/such/place: ");
        assert!(error.starts_with(&start), "{error}");
    }
    assert!(message("alphabeta:syzygy_pieces=8").contains("a whole number from 0 to 7, got '8'"));
    assert!(message("material:syzygy_50=maybe").contains("true or false, got 'maybe'"));
    // An empty list of folders means no tables.
    let none = registry.parse("alphabeta:syzygy=").unwrap();
    assert!(registry.build(&none, Seed::new(1)).is_ok());
}

#[test]
fn a_common_option_is_added_only_to_players_that_have_it() {
    let registry = Registry::standard();
    let with = |text: &str, value: &str| registry.with_option(text, "syzygy", value);
    assert_eq!(with("random", "a").unwrap(), "random");
    assert_eq!(with("alphabeta:depth=3", "a:b").unwrap(), "alphabeta:depth=3,syzygy=a:b");
    assert_eq!(with("material:syzygy=own", "a").unwrap(), "material:syzygy=own");
    assert_eq!(with("uci:engine --flag", "a").unwrap(), "uci:engine --flag");
    assert!(with("alphabeta", "a,b").unwrap_err().to_string().contains("text without commas"));
    assert!(with("stokfish", "a").is_err());
}

#[test]
fn a_match_resumes_only_with_the_same_tables() {
    let folder = tempfile::tempdir().unwrap();
    let store = Some(folder.path().join("match.jsonl"));
    let run = MatchRun { store, ..MatchRun::default() };
    let config = |tables| {
        let adjudication = Adjudication { tables, ..Adjudication::default() };
        let settings = GameSettings { adjudication, ..GameSettings::default() };
        MatchConfig { settings, ..MatchConfig::new("random", "random", 2) }
    };
    let rule = TablebaseRule { pieces: 4, files: 70 };
    play(&config(Some(rule)), &run).unwrap();
    play(&config(Some(rule)), &run).unwrap();
    for other in [None, Some(TablebaseRule { pieces: 5, ..rule })] {
        let error = play(&config(other), &run).unwrap_err().to_string();
        assert!(error.contains("was started with settings.adjudication.tables"), "{error}");
    }
}

#[test]
fn the_pgn_of_a_game_adjudicated_by_tablebase_has_a_comment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("games.pgn");
    let adjudicator = |game: &Game| {
        let winner = Some(Color::Black);
        (game.ply() >= 20).then_some(Outcome { winner, reason: Reason::Adjudication })
    };
    let run = MatchRun {
        adjudicator: Some(Arc::new(adjudicator)),
        pgn: Some(path.clone()),
        ..MatchRun::default()
    };
    play(&MatchConfig::new("random", "random", 2), &run).unwrap();
    let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
    for game in pgn::Reader::new(file).map(Result::unwrap) {
        assert_eq!(game.get("Termination"), Some("adjudication"));
        let last = game.notes.last().unwrap().comment.as_deref().unwrap();
        assert!(last.ends_with("Black wins by tablebase"), "{last}");
    }
}

#[test]
fn games_end_in_tablebase_positions() {
    let folders = syzygy_path();
    let folder = tempfile::tempdir().unwrap();
    let openings = folder.path().join("endings.epd");
    let endings = [
        ("8/8/8/4k3/8/8/2R5/4K3 w - -", Some(Side::White)),
        ("4k3/8/4K3/4P3/8/8/8/8 b - -", Some(Side::White)),
        // The previous position with colours swapped: Black's pawns move down the board.
        ("8/8/8/8/4p3/4k3/8/4K3 w - -", Some(Side::Black)),
        ("8/8/8/4k3/4P3/4K3/8/8 w - -", None),
    ];
    let lines: Vec<String> = endings
        .iter()
        .enumerate()
        .map(|(index, (fen, _))| format!("{fen} id \"{index}\";"))
        .collect();
    std::fs::write(&openings, lines.join("\n")).unwrap();
    let store = folder.path().join("match.jsonl");
    let (rule, adjudicator) = TablebaseRule::new(Arc::new(Syzygy::open(&folders).unwrap()));
    let adjudication = Adjudication { tables: Some(rule), ..Adjudication::default() };
    let config = MatchConfig {
        settings: GameSettings { adjudication, ..GameSettings::default() },
        openings: OpeningSource::File { path: openings, plies: None },
        ..MatchConfig::new("random", "random", 8)
    };
    let run = MatchRun {
        adjudicator: Some(adjudicator),
        store: Some(store.clone()),
        ..MatchRun::default()
    };
    let report = play(&config, &run).unwrap();
    assert_eq!(report.terminations.get("tablebase"), Some(&8), "{report:?}");
    for record in records(&store) {
        assert_eq!(record.played.termination, Termination::Tablebase);
        assert!(record.played.moves.is_empty());
        let name: usize = record.played.opening.as_ref().unwrap().parse().unwrap();
        assert_eq!(record.played.winner, endings[name].1, "{}", endings[name].0);
    }
}

#[test]
fn players_use_and_share_tablebases() {
    let folders = syzygy_path();
    let mut registry = Registry::standard();
    registry.set_default_tables(&folders);
    // One capture away from a position with four pieces.
    let game = fen::parse_game("4k3/8/8/3pp3/8/8/3R4/4K3 w - - 0 1").unwrap();
    for (text, hits) in [
        ("alphabeta:depth=4", true),
        ("material:sims=300", true),
        ("material:sims=300,root=gumbel", true),
        ("alphabeta:depth=4,syzygy=", false),
        ("alphabeta:depth=4,syzygy_pieces=2", false),
    ] {
        let spec = registry.parse(text).unwrap();
        let mut player = registry.build(&spec, Seed::new(1)).unwrap();
        let mut last = 0;
        let observe = &mut |eval: &SearchInfo| last = eval.tablebase_hits;
        player.choose_observed(&game, &Limit::default(), observe).unwrap();
        assert_eq!(last > 0, hits, "{text}: {last}");
        assert_eq!(player.name(), text);
    }
    let open = registry.tablebases().open(&folders).unwrap();
    assert!(Arc::ptr_eq(&open, &registry.tablebases().open(&folders).unwrap()));
    assert!(registry.tablebases().damage().is_empty());
}
