//! The API as a client sees it. One file, because each test file is linked separately.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod client;

use std::time::{Duration, Instant};

use client::{Lines, Socket, config, get, post, serve};
use selfmate_chess::notation::parse_uci;
use selfmate_chess::{Color, Game, Outcome, Reason, Seed};
use selfmate_methods::endgame::{EndgameConfig, EndgameShape};
use selfmate_methods::{RunConfig, Settings};
use selfmate_nn::mlp::{MlpConfig, Network};
use selfmate_nn::sparse::WeightsInfo;
use selfmate_run::{Budget, GameRecord, LiveGame, PositionRecord, Progress, Rating, Record, Run};
use selfmate_web::{ClusterView, ClusterWatcher, Config, Server, WorkerView};
use serde_json::{Value, json};

fn progress(generation: u64) -> Record {
    let values = [("loss.value".to_owned(), 1.0 / generation as f64)].into();
    Record::Progress(Progress {
        elapsed_s: 60.0 * generation as f64,
        generation,
        games: 16 * generation,
        values,
        ..Progress::default()
    })
}

fn mate(number: u64) -> GameRecord {
    let mut game = Game::new();
    for text in ["f2f3", "e7e5", "g2g4", "d8h4"] {
        game.play(parse_uci(game.position(), text).unwrap()).unwrap();
    }
    let recorded = PositionRecord { ply: 0, value: 0.25, draw: 0.5, policy: vec![0.05; 20] };
    GameRecord {
        number,
        network: 3,
        start: None,
        moves: game.moves().collect(),
        outcome: Outcome { winner: Some(Color::Black), reason: Reason::Checkmate },
        positions: vec![recorded],
    }
}

#[test]
fn a_run_can_be_watched_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(&folder.path().join("first")).unwrap();
    run.write_config("learner = \"zero\"\nseed = 7\n[zero]\nplan_games = 256").unwrap();
    run.append_metric(&progress(1)).unwrap();
    let server = serve(folder.path());
    let address = server.address();
    let runs = get(address, "/api/runs").json();
    assert_eq!((&runs[0]["name"], &runs[0]["games"]), (&json!("first"), &json!(16)));
    let curves = get(address, "/api/runs/first/curves").json();
    assert_eq!((&curves["records"], &curves["values"]["loss.value"]), (&json!(1), &json!([1.0])));

    let mut feed = Lines::open(address, "/api/runs/first/feed?after=1");
    feed.find("HTTP/1.1 200");
    run.append_metric(&progress(2)).unwrap();
    assert!(feed.find("data: ").contains("\"generation\":2"));
    let (elo, low, high) = (512.0, 480.0, 545.0);
    let rating = Rating { elapsed_s: 130.0, step: 9, generation: 2, elo, low, high, games: 40 };
    run.append_metric(&Record::Rating(rating)).unwrap();
    assert!(feed.find("data: ").contains("\"elo\":512"));
    // Resuming from an earlier record invalidates what was sent.
    run.rewind_metrics(1).unwrap();
    feed.find("event: restart");
    assert!(feed.find("data: {").contains("\"generation\":1"));

    // A client that was away while the run was rewound and continued starts over, on any server.
    let place = get(address, "/api/runs/first/curves").json()["place"].as_str().unwrap().to_owned();
    run.append_metric(&progress(4)).unwrap();
    let mut same = Lines::open(address, &format!("/api/runs/first/feed?after={place}"));
    assert!(same.find("data: ").contains("\"generation\":4"));
    run.rewind_metrics(0).unwrap();
    run.append_metric(&progress(7)).unwrap();
    run.append_metric(&progress(8)).unwrap();
    let next = serve(folder.path());
    let mut back = Lines::open(next.address(), &format!("/api/runs/first/feed?after={place}"));
    back.find("event: restart");
    assert!(back.find("data: {").contains("\"generation\":7"));
    assert_eq!(get(address, "/api/runs/first/feed?after=x").status, 400);

    let detail = get(address, "/api/runs/first").json();
    assert_eq!(detail["config"]["zero"]["plan_games"], 256);
    assert_eq!(get(address, "/api/runs/second").status, 404);

    // Responses are cached for a moment, until something changes.
    let curves = || get(address, "/api/runs/first/curves").json()["records"].as_u64().unwrap();
    // Files are not looked at each time, so that a new record may take a while to be seen.
    let change_until = |records: u64| {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            post(address, "/api/position", "{}");
            let seen = curves();
            if seen == records {
                break;
            }
            assert!(Instant::now() < deadline, "{seen} records, expected {records}");
        }
    };
    let mut records = run.metrics().unwrap().0.len() as u64;
    // A machine that stands still may let the moment pass; what it answers then proves nothing.
    let answered_within_a_moment = (0..20).any(|_| {
        change_until(records);
        let asked = Instant::now();
        post(address, "/api/position", "{}");
        assert_eq!(curves(), records);
        run.append_metric(&progress(9)).unwrap();
        let again = curves();
        let is_in_time = asked.elapsed() < Duration::from_millis(900);
        assert!(again == records || !is_in_time, "{again}");
        records += 1;
        is_in_time
    });
    assert!(answered_within_a_moment, "twenty pairs of requests took too long to tell anything");
    change_until(records);
}

#[test]
fn games_are_listed_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(&folder.path().join("first")).unwrap();
    run.write_config("learner = \"zero\"").unwrap();
    let (journal, _) = run.journal(1).unwrap();
    journal.seal(&run, &[mate(0), mate(1)]).unwrap();
    let (mut journal, _) = run.journal(2).unwrap();
    journal.append(&mate(2)).unwrap();
    let (number, plies) = (3, 4);
    let fen = "8/8/8/8/8/8/8/K1k5 w - - 0 1".to_owned();
    let live = LiveGame { number, fen, last: None, plies, value: Some(0.25) };
    run.show_live(&[live]).unwrap();
    let server = serve(folder.path());
    let address = server.address();
    let shown = get(address, "/api/runs/first/live").json();
    assert_eq!((&shown[0]["number"], &shown[0]["value"]), (&json!(3), &json!(0.25)));
    run.hide_live().unwrap();
    assert_eq!(get(address, "/api/runs/first/live").json(), json!([]));
    let generations = get(address, "/api/runs/first/games").json();
    assert_eq!(generations, json!({ "sealed": [1], "open": 2, "open_games": 1 }));
    let rows = get(address, "/api/runs/first/games/1").json();
    assert_eq!((rows.as_array().unwrap().len(), &rows[1]["result"]), (2, &json!("0-1")));
    let game = get(address, "/api/runs/first/games/1/1").json();
    assert_eq!(game["plies"][3]["san"], "Qh4#");
    assert!((game["plies"][0]["draw"].as_f64().unwrap() - 0.5).abs() < 0.01);
    assert_eq!(get(address, "/api/runs/first/games/latest").json()["number"], 2);
    assert_eq!(get(address, "/api/runs/first/games/1/9").status, 404);
    assert_eq!(get(address, "/api/runs/first/games/77").status, 404);
}

#[test]
fn a_search_is_streamed_and_ends_with_a_move() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let body = json!({
        "player": "material", "fen": "6rk/6pp/8/6N1/8/8/8/K7 w - - 0 1",
        "limit": { "sims": 200 }, "lines": 3,
    });
    let answer = post(server.address(), "/api/search", &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let lines = answer.lines();
    let (choice, infos) = lines.split_last().unwrap();
    assert_eq!((&choice["kind"], &choice["played"]["san"]), (&json!("choice"), &json!("Nf7#")));
    assert_eq!(choice["score"], json!({ "mate": 1 }));
    assert!(infos.iter().all(|info| info["kind"] == "info"));
    let over = json!({ "player": "random", "moves": ["f3", "e5", "g4", "Qh4#"] });
    assert_eq!(post(server.address(), "/api/search", &over.to_string()).status, 422);
    let review = json!({ "player": "material", "moves": ["f3", "e5", "g4", "Qh4#"], "limit": { "sims": 400 } });
    let verdicts = post(server.address(), "/api/review", &review.to_string()).lines();
    assert_eq!(verdicts.len(), 5);
    assert_eq!((&verdicts[4]["value"], &verdicts[4]["best"]), (&json!(-1.0), &json!(null)));
    assert_eq!(verdicts[3]["best"]["san"], "Qh4#");
    assert_eq!(
        (&verdicts[4]["played"]["san"], &verdicts[4]["check"]),
        (&json!("Qh4#"), &json!(true))
    );
    assert_eq!(verdicts[0]["played"], json!(null));
    let pgn =
        post(server.address(), "/api/pgn", r#"{"moves": ["e4"], "white": "A", "result": "1-0"}"#);
    assert!(pgn.text().contains("[White \"A\"]") && pgn.text().ends_with("1. e4 1-0\n"), "{pgn:?}");
}

#[test]
fn players_can_be_checked_before_a_game() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let ask = |body: Value| post(server.address(), "/api/player", &body.to_string());
    for (player, limit, has_tree) in [
        ("default", json!({ "sims": 16 }), true),
        ("default", json!({ "movetime_ms": 100 }), false),
        ("material", json!({}), true),
        ("alphabeta:depth=3", json!({}), false),
        ("random", json!({ "movetime_ms": 100 }), false),
    ] {
        let answer = ask(json!({ "player": player, "limit": limit }));
        assert_eq!(answer.status, 200, "{player}: {answer:?}");
        assert_eq!(answer.json()["searches_tree"], has_tree, "{player} {limit}");
    }
    for player in ["nonsense", "", "run:nobody", "uci:sh", "alphabeta:depth=x"] {
        let answer = ask(json!({ "player": player }));
        assert_eq!(answer.status, 422, "{player}: {answer:?}");
    }
    assert_eq!(ask(json!({ "player": "random", "limit": { "sims": 0 } })).status, 400);
}

#[test]
fn a_move_without_visits_has_no_score() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let body = json!({ "player": "material", "limit": { "sims": 2 }, "lines": 20 });
    let lines = post(server.address(), "/api/search", &body.to_string()).lines();
    let infos = lines.iter().filter(|line| line["kind"] == "info");
    let (visited, unvisited): (Vec<&Value>, Vec<&Value>) =
        infos.partition(|info| info["visits"].as_u64() > Some(0));
    assert!(!visited.is_empty() && !unvisited.is_empty(), "{lines:?}");
    assert!(visited.iter().all(|info| info["score"].is_object()));
    assert!(unvisited.iter().all(|info| info["score"].is_null() && info["value"].is_null()));
}

#[test]
fn a_tree_is_searched_and_its_nodes_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    for root in ["puct", "gumbel"] {
        let body = json!({ "player": "material", "root": root, "sims": 100, "moves": ["e4"] });
        let lines = post(server.address(), "/api/inside", &body.to_string()).lines();
        let sims: Vec<u64> = lines.iter().filter_map(|line| line["sims"].as_u64()).collect();
        assert_eq!(sims, [1, 2, 4, 8, 16, 32, 64, 100], "{root}");
        let tree = lines.last().unwrap()["tree"].as_str().unwrap().to_owned();
        let node = get(server.address(), &format!("/api/inside/{tree}")).json();
        let visits: u64 =
            node["moves"].as_array().unwrap().iter().map(|m| m["visits"].as_u64().unwrap()).sum();
        assert_eq!(visits, 100, "{root}");
        let first = node["moves"][0]["uci"].as_str().unwrap();
        let below = get(server.address(), &format!("/api/inside/{tree}?line={first}")).json();
        assert_eq!(below["visits"], node["moves"][0]["visits"], "{root}");
        assert_eq!(get(server.address(), &format!("/api/inside/{tree}?line=e2e4")).status, 422);
    }
    assert_eq!(get(server.address(), "/api/inside/nothing").status, 404);
}

#[test]
fn a_match_is_played_and_its_games_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let address = server.address();
    let order = json!({ "players": ["greedy", "random"], "games": 2 });
    let started = post(address, "/api/matches", &order.to_string());
    assert_eq!((started.status, started.json()), (201, json!(["000001"])));
    let mut shown = get(address, "/api/matches/000001").json();
    while shown["state"] != "finished" {
        std::thread::yield_now();
        shown = get(address, "/api/matches/000001").json();
    }
    assert_eq!(shown["games"].as_array().unwrap().len(), 2);
    let game = get(address, "/api/matches/000001/games/1").json();
    assert_eq!((&game["white"], &game["black"]), (&json!("random"), &json!("greedy")));
    let pgn = get(address, "/api/matches/000001/pgn").text();
    assert_eq!(pgn.matches("[Event ").count(), 2);
    assert_eq!(get(address, "/api/ladders").json()[0]["players"][0]["name"], "greedy");
    assert!(
        get(address, "/metrics").text().contains("selfmate_http_responses_total{class=\"2xx\"}")
    );
}

#[test]
fn errors_do_not_contain_a_relative_path_of_the_runs_folder() {
    for folder in ["no-such-lab", "./no-such-lab", "no-such-lab/inner"] {
        let server = serve(std::path::Path::new(folder));
        let address = server.address();
        let answers = [
            get(address, "/api/runs/nobody"),
            get(address, "/api/endgames/nobody/values?place=Kg6,kg8"),
            post(address, "/api/search", &json!({ "player": "run:nobody" }).to_string()),
        ];
        for answer in answers {
            assert!(answer.status >= 400, "{answer:?}");
            assert!(!answer.text().contains("no-such-lab"), "{answer:?}");
        }
        assert!(get(address, "/api/runs/nobody").text().contains("no run 'nobody' in runs: "));
    }
}

#[test]
fn a_token_is_measured_in_characters() {
    let folder = tempfile::tempdir().unwrap();
    let start = |token: &str| {
        Server::start(Config { token: Some(token.to_owned()), ..config(folder.path()) })
    };
    // 8 characters that take 16 bytes.
    let error = start("äöüßäöüß").err().unwrap().to_string();
    assert_eq!(error, "the token has 8 characters: expected at least 16");
    assert!(start("0123456789abcdef").is_ok());
}

#[test]
fn an_ending_is_shown_beside_its_tablebase() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(&folder.path().join("rook")).unwrap();
    let settings = Settings::preset("krk", "tiny").unwrap();
    let config = settings.downcast::<EndgameConfig>().unwrap();
    let EndgameShape { first, second, .. } = config.network;
    let network = Network::random(MlpConfig { first, second }, Seed::new(1)).unwrap();
    let model = network.encode_canonical(WeightsInfo { step: 20 }).unwrap();
    run.write_config(&RunConfig::new(1, settings.clone()).to_toml()).unwrap();
    let server = serve(folder.path());
    let address = server.address();
    let values = "/api/endgames/rook/values?place=Kg6,kg8";
    assert_eq!(get(address, "/api/endgames").json(), json!([]));
    assert!(get(address, values).text().contains("no checkpoint yet"));
    run.save_checkpoint(20, &[("model.safetensors", &model)]).unwrap();
    let all = get(address, "/api/endgames").json();
    let wanted =
        json!([{ "run": "rook", "ending": "krk", "pieces": ["K", "k", "R"], "steps": [20] }]);
    assert_eq!(all, wanted);
    // Mate in one with the rook on a1. On a8 Black would already be in check.
    let found = get(address, values).json();
    assert_eq!((&found["piece"], &found["step"]), (&json!("R"), &json!(20)));
    assert_eq!(
        (&found["plies"][0], &found["tablebase"][0]),
        (&json!(1), &json!(config.selfplay.discount))
    );
    assert_eq!((&found["learned"][56], &found["tablebase"][56]), (&json!(null), &json!(null)));
    assert!(numbers(&found["learned"]).iter().all(|value| value.abs() <= 1.0));
    assert_eq!(numbers(&found["learned"]).len(), numbers(&found["tablebase"]).len());
    // With Black to move the values are still White's.
    let black = get(address, "/api/endgames/rook/values?place=Kg6,Ra1&turn=black&step=20").json();
    assert!(numbers(&black["tablebase"]).iter().all(|value| *value >= 0.0));
    let position = get(address, "/api/endgames/rook/position?place=Kg6,kg8,Ra1").json();
    let best = &position["moves"][0];
    assert_eq!((&best["san"], &best["is_best"]), (&json!("Ra8#"), &json!(true)));
    assert_eq!((&position["turn"], &position["outcome"]), (&json!("white"), &json!(null)));
    let over = get(address, "/api/endgames/rook/position?place=Kg6,kg8,Ra8&turn=black").json();
    assert_eq!((&over["tablebase"], &over["moves"]), (&json!(1.0), &json!([])));
    for (asked, status) in [
        ("rook/values", 400),
        ("rook/values?place=Kg6", 422),
        ("rook/values?place=Kg6,Qa1", 422),
        ("rook/values?place=Kg6,Rg6", 422),
        ("rook/position?place=Kg6,kg8,Rg8", 422),
        ("rook/values?place=nonsense", 400),
        ("rook/values?place=Kg6,kg8&turn=green", 400),
        ("rook/values?place=Kg6,kg8&step=21", 404),
        ("rook/position?place=Kg6,kg7,Ra1", 422),
        ("rook/position?place=Kg6,kg8", 422),
        ("nobody/values?place=Kg6,kg8", 404),
    ] {
        let answer = get(address, &format!("/api/endgames/{asked}"));
        assert_eq!(answer.status, status, "{asked}: {answer:?}");
    }
}

#[test]
fn runs_of_all_learners_play_and_tree_searches_can_be_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(&folder.path().join("rook")).unwrap();
    let settings = Settings::preset("krk", "tiny").unwrap();
    let config = settings.downcast::<EndgameConfig>().unwrap();
    let EndgameShape { first, second, .. } = config.network;
    let network = Network::random(MlpConfig { first, second }, Seed::new(1)).unwrap();
    let model = network.encode_canonical(WeightsInfo { step: 20 }).unwrap();
    run.write_config(&RunConfig::new(1, settings.clone()).to_toml()).unwrap();
    run.save_checkpoint(20, &[("model.safetensors", &model)]).unwrap();
    let mut table = Run::open(&folder.path().join("table")).unwrap();
    let settings = Settings::preset("qlearn", "tiny").unwrap();
    table.write_config(&RunConfig::new(1, settings).to_toml()).unwrap();
    let server = serve(folder.path());
    // An ending's network always uses tree search, without an option.
    let fen = "6k1/8/6K1/8/8/8/8/R7 w - - 0 1";
    let think = json!({ "player": "run:rook", "fen": fen, "limit": { "sims": 64 } }).to_string();
    let lines = post(server.address(), "/api/search", &think).lines();
    assert_eq!(lines.last().unwrap()["played"]["san"], "Ra8#");
    // The root rule of the request counts, not that of the run.
    let quiet = "8/8/4k3/8/3R4/4K3/8/8 w - - 0 1";
    let visits = |root: &str| {
        let body = json!({ "player": "run:rook", "fen": quiet, "sims": 64, "root": root });
        let lines = post(server.address(), "/api/inside", &body.to_string()).lines();
        let last = lines.iter().rfind(|line| line["kind"] == "snapshot").unwrap().clone();
        let mut visits: Vec<(String, u64)> = last["moves"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| (m["uci"].as_str().unwrap().to_owned(), m["visits"].as_u64().unwrap()))
            .collect();
        visits.sort();
        visits
    };
    assert_ne!(visits("puct"), visits("gumbel"));
    // A search that has proven a mate reports fewer simulations than allowed.
    let body = json!({ "player": "material", "fen": fen, "sims": 1024 }).to_string();
    let lines = post(server.address(), "/api/inside", &body).lines();
    let last = lines.iter().rfind(|line| line["kind"] == "snapshot").unwrap();
    let sum: u64 =
        last["moves"].as_array().unwrap().iter().map(|m| m["visits"].as_u64().unwrap()).sum();
    assert_eq!((&last["sims"], &last["proof"]), (&json!(1024), &json!("win")), "{last}");
    assert_eq!(last["simulations"], json!(sum));
    assert!(sum < 1024, "{sum}");
    assert_eq!((&last["value"], &last["moves"][0]["q"]), (&json!(1.0), &json!(1.0)));
    assert_eq!(last["moves"][0]["proof"], "win");
    // Only players with tree search are offered.
    let about = get(server.address(), "/api/about").json();
    let offered = about["players"].as_array().unwrap();
    let trees: Vec<&str> = offered
        .iter()
        .filter(|kind| kind["searches_tree"] == true)
        .map(|kind| kind["name"].as_str().unwrap())
        .collect();
    assert!(trees.contains(&"material") && !trees.contains(&"greedy"), "{trees:?}");
    let runs = get(server.address(), "/api/runs").json();
    let has_tree = |name: &str| {
        let run = runs.as_array().unwrap().iter().find(|run| run["name"] == name).unwrap();
        run["searches_tree"].clone()
    };
    assert_eq!((has_tree("rook"), has_tree("table")), (json!(true), json!(false)));
    let inside = |player: &str| json!({ "player": player, "fen": fen, "sims": 8 }).to_string();
    let lines = post(server.address(), "/api/inside", &inside("run:rook@20")).lines();
    assert_eq!(lines.last().unwrap()["kind"], "ready", "{lines:?}");
    let answer = post(server.address(), "/api/inside", &inside("run:table"));
    assert_eq!(answer.status, 422);
    assert!(answer.text().contains("'run:table' does not use tree search"), "{answer:?}");
}

/// A run that has trained for `elapsed_s` of a budget.
fn budgeted(folder: &std::path::Path, name: &str, elapsed_s: f64, budget: Option<Budget>) {
    let mut run = Run::open(&folder.join(name)).unwrap();
    let settings = Settings::preset("zero", "tiny").unwrap();
    run.write_config(&RunConfig::new(1, settings).to_toml()).unwrap();
    let start = Record::Start { version: "0.1.0".into(), seed: 1, threads: 1, budget };
    let end = Record::End { elapsed_s, reason: "stopped".to_owned() };
    let progress = Progress { elapsed_s, generation: 1, games: 16, ..Progress::default() };
    for record in [start, Record::Progress(progress), end] {
        run.append_metric(&record).unwrap();
    }
}

/// A server whose trainings write their arguments to a file and end.
#[cfg(unix)]
fn serve_with_recorder(folder: &std::path::Path) -> (Server, std::path::PathBuf) {
    use std::io::Write as _;
    let (program, arguments) = (folder.join("program"), folder.join("arguments"));
    // Written by a child process, so that no process started by another test has the file open for
    // writing.
    let write = format!("cat > {0} && chmod +x {0}", program.display());
    let mut shell = std::process::Command::new("sh");
    let mut shell = shell.args(["-c", &write]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = shell.stdin.take().unwrap();
    let (file, part) = (arguments.display(), format!("{}.part", arguments.display()));
    write!(input, "#!/bin/sh\necho \"$@\" > {part} && mv {part} {file}\n").unwrap();
    drop(input);
    assert!(shell.wait().unwrap().success());
    let runs = folder.join("runs");
    (Server::start(Config { program, ..config(&runs) }).unwrap(), arguments)
}

#[cfg(unix)]
#[test]
fn a_resume_keeps_the_budget_and_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let minutes = |minutes| Some(Budget { minutes: Some(minutes), ..Budget::default() });
    budgeted(&runs, "open", 30.0, minutes(1.5));
    budgeted(&runs, "longer", 30.0, minutes(1.5));
    budgeted(&runs, "spent", 90.0, minutes(1.5));
    budgeted(&runs, "unbounded", 90.0, Some(Budget::default()));
    let games = Some(Budget { games: Some(1000), steps: Some(5000), ..Budget::default() });
    budgeted(&runs, "games", 30.0, games);
    budgeted(&runs, "old", 90.0, None);
    let (server, file) = serve_with_recorder(folder.path());
    let resume = |run: &str, body: Value| {
        let _ = std::fs::remove_file(&file);
        let path = format!("/api/runs/{run}/resume");
        let ask = || post(server.address(), &path, &body.to_string());
        let mut answer = ask();
        // Earlier trainings may take a moment to end, and their number is limited.
        while answer.status == 503 {
            answer = ask();
        }
        if answer.status != 202 {
            return Err((answer.status, answer.text()));
        }
        loop {
            if let Ok(text) = std::fs::read_to_string(&file) {
                return Ok(text);
            }
            std::thread::yield_now();
        }
    };
    let shown = get(server.address(), "/api/runs/open").json();
    assert_eq!(shown["budget"]["minutes"], 1.5);
    assert_eq!((&shown["budget"]["is_spent"], &shown["threads"]), (&json!(false), &json!(1)));
    let arguments = resume("open", json!({})).unwrap();
    assert!(arguments.contains("--minutes=1.5 --threads=1 "), "{arguments}");
    let arguments = resume("longer", json!({ "more_minutes": 2 })).unwrap();
    assert!(arguments.contains("--minutes=2.5 --threads=1 "), "{arguments}");
    // Bounds that are not reached yet still apply.
    let arguments = resume("games", json!({ "more_minutes": 2 })).unwrap();
    assert!(arguments.contains("--minutes=2.5 --games=1000 --steps=5000 "), "{arguments}");
    let spent = get(server.address(), "/api/runs/spent").json();
    assert_eq!(spent["budget"]["is_spent"], true);
    let (status, text) = resume("spent", json!({})).unwrap_err();
    assert!(status == 422 && text.contains("set more_minutes"), "{status} {text}");
    let arguments = resume("spent", json!({ "more_minutes": 0.5 })).unwrap();
    assert!(arguments.contains("--minutes=2 "), "{arguments}");
    for run in ["unbounded", "old"] {
        let arguments = resume(run, json!({})).unwrap();
        assert!(!arguments.contains("--minutes"), "{arguments}");
    }
    for (wrong, status) in [
        (json!({ "minutes": 1 }), 422),
        (json!({ "minutes": 5, "more_minutes": 5 }), 422),
        (json!({ "more_minutes": 0 }), 400),
        (json!({ "more_minutes": -1 }), 400),
        (json!({ "games": 16 }), 422),
    ] {
        assert_eq!(resume("spent", wrong.clone()).unwrap_err().0, status, "{wrong}");
    }
}

#[cfg(unix)]
#[test]
fn a_wrong_setting_is_rejected_before_the_run_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let (server, arguments) = serve_with_recorder(folder.path());
    let start = |set: &str| {
        let order = json!({ "name": "wrong", "learner": "zero", "set": [set], "minutes": 1 });
        post(server.address(), "/api/runs", &order.to_string())
    };
    let answer = start("selfplay.nonsense=1");
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.text().contains("nonsense"), "{answer:?}");
    assert_eq!(get(server.address(), "/api/runs/wrong").status, 404);
    assert!(!arguments.exists());
    assert_eq!(start("selfplay.simulations.to=200").status, 201);
}

/// The numbers of a list that also contains `null`.
fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().filter_map(Value::as_f64).collect()
}

#[test]
fn the_openapi_document_lists_all_routes() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Some(ClusterWatcher::new(|| Ok(ClusterView::default())));
    let server = Server::start(Config { cluster, ..config(folder.path()) }).unwrap();
    let document = get(server.address(), "/openapi.json").json();
    let paths = document["paths"].as_object().unwrap();
    // All routes of the source are documented.
    let source = include_str!("../src/api.rs").split(".nest(").next().unwrap();
    let routes = source.split(".route(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let mut count = 0;
    for route in routes {
        assert!(paths.contains_key(&format!("/api{route}")), "{route} is not documented");
        count += 1;
    }
    assert_eq!(paths.len(), count + 1, "and /metrics");
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    for (path, methods) in paths.iter().filter(|(path, _)| !path.contains('{')) {
        if methods.get("get").is_some() {
            assert_eq!(get(server.address(), path).status, 200, "{path}");
        } else {
            // An empty body is a client error, which shows that the route exists.
            let status = post(server.address(), path, "").status;
            assert!(
                (400..=422).contains(&status) && status != 404 && status != 405,
                "{path} {status}"
            );
        }
    }
}

#[test]
fn the_environment_is_served_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let address = server.address();
    assert_eq!(get(address, "/openenv/health").json()["status"], "healthy");
    let document = get(address, "/openenv/openapi.json").json();
    assert!(document["info"]["version"].as_str().unwrap().starts_with("1."));
    assert!(["/reset", "/step", "/state"].iter().all(|path| document["paths"][path].is_object()));
    assert_eq!(post(address, "/openenv/step", r#"{"action": {"move": "e2e4"}}"#).status, 409);
    let reset =
        post(address, "/openenv/reset", r#"{"seed": 42, "episode_id": "ep-1", "extra": 1}"#);
    assert_eq!((reset.status, &reset.json()["reward"]), (200, &json!(null)));
    let cookie = reset.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let step = post(address, "/openenv/step", r#"{"action": {"move": "e2e4"}}"#).json();
    assert_eq!((&step["done"], &step["observation"]["move_count"]), (&json!(false), &json!(1)));
    assert_eq!(step["observation"]["board"][3][4][0], 1, "a white pawn on e4");
    // Another session starts; the first is found by its cookie.
    post(address, "/openenv/reset", "{}");
    let state =
        client::get_with(address, "/openenv/state", &format!("Cookie: {cookie}\r\n")).json();
    assert_eq!((&state["episode_id"], &state["step_count"]), (&json!("ep-1"), &json!(1)));
    assert_eq!((&state["board"], &state["result"]), (&step["observation"]["board"], &Value::Null));
    let small = post(address, "/openenv/reset", r#"{"include_board": false}"#).json();
    assert!(small["observation"]["fen"].is_string() && small["observation"].get("board").is_none());
    assert_eq!(post(address, "/openenv/step", r#"{"action": {"colour": 1}}"#).status, 422);
    assert_eq!(post(address, "/openenv/mcp", "{}").json()["jsonrpc"], "2.0");
    let schema = get(address, "/openenv/schema").json();
    assert!(["action", "observation", "state"].iter().all(|part| schema[part].is_object()));
    // Everything that is sent is described.
    for (part, sent) in [("observation", &step["observation"]), ("state", &state)] {
        for key in sent.as_object().unwrap().keys() {
            assert!(schema[part]["properties"][key].is_object(), "{part}: {key}");
        }
    }
}

#[test]
fn the_environment_is_served_over_websockets() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let mut first = Socket::open(server.address(), "/openenv/ws");
    let mut second = Socket::open(server.address(), "/openenv/ws");
    let reset = first.ask(r#"{"type": "reset", "data": {"seed": 1}}"#);
    assert_eq!((&reset["type"], &reset["data"]["done"]), (&json!("observation"), &json!(false)));
    let step = first.ask(r#"{"type": "step", "data": {"move": "e4"}}"#);
    assert_eq!(step["data"]["observation"]["move_count"], 1);
    assert_eq!(second.ask(r#"{"type": "state"}"#)["data"]["step_count"], 0);
    for (text, code) in [
        ("{", "INVALID_JSON"),
        (r#"{"type": "dance"}"#, "UNKNOWN_TYPE"),
        (r#"{"type": "step", "data": {"colour": 1}}"#, "VALIDATION_ERROR"),
        (r#"{"type": "reset", "data": {"opponent": "uci:sh"}}"#, "VALIDATION_ERROR"),
    ] {
        assert_eq!(first.ask(text)["data"]["code"], code, "{text}");
    }
    let seeded = |socket: &mut Socket| {
        socket.ask(
            r#"{"type": "reset", "data": {"seed": 5, "opponent": "random", "max_plies": 30}}"#,
        );
        let mut history = Vec::new();
        loop {
            let moves = socket.ask(r#"{"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "look"}}}"#);
            let Some(first) = moves["data"]["result"]["legal_moves"][0].as_str() else { break };
            let result =
                socket.ask(&format!(r#"{{"type": "step", "data": {{"move": "{first}"}}}}"#));
            history.push(result["data"]["observation"]["fen"].clone());
        }
        history
    };
    assert_eq!(seeded(&mut first), seeded(&mut second));
}

#[test]
fn a_watched_cluster_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let answer = get(server.address(), "/api/cluster");
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("--nats"), "{answer:?}");
    assert_eq!(get(server.address(), "/api/about").json()["watches_cluster"], false);

    let worker = WorkerView { name: "north-1".to_owned(), games: 7, ..WorkerView::default() };
    let view = ClusterView {
        run: "big".to_owned(),
        generation: Some(3),
        rejected: [("late".to_owned(), 2)].into(),
        workers: vec![worker],
        ..ClusterView::default()
    };
    let cluster = Some(ClusterWatcher::new(move || Ok(view.clone())));
    let server = Server::start(Config { cluster, ..config(folder.path()) }).unwrap();
    let seen = get(server.address(), "/api/cluster").json();
    assert_eq!((&seen["run"], &seen["generation"]), (&json!("big"), &json!(3)));
    assert_eq!((&seen["rejected"]["late"], &seen["workers"][0]["games"]), (&json!(2), &json!(7)));
    assert_eq!(get(server.address(), "/api/about").json()["watches_cluster"], true);

    let cluster = Some(ClusterWatcher::new(|| Err("no learner answers".to_owned())));
    let server = Server::start(Config { cluster, ..config(folder.path()) }).unwrap();
    let answer = get(server.address(), "/api/cluster");
    assert_eq!((answer.status, answer.json()["error"].clone()), (503, json!("no learner answers")));
}

#[test]
fn an_invalid_search_is_rejected_before_the_stream_starts() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let ask = |fen: Value, sims: u64| {
        let body = json!({ "player": "material", "fen": fen, "sims": sims });
        post(server.address(), "/api/inside", &body.to_string()).status
    };
    assert_eq!(ask(Value::Null, 8), 200);
    assert_eq!((ask(Value::Null, 0), ask(Value::Null, 200_001)), (400, 400));
    let mate = json!("R5k1/5ppp/8/8/8/8/8/K7 b - - 0 1");
    assert_eq!(ask(mate, 8), 422);
}
