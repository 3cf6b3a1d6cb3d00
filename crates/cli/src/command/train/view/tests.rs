//! The live view of a made-up run, at several sizes.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use selfmate_chess::notation::parse_uci;
use selfmate_chess::{Color, Game, Outcome, Reason};
use selfmate_run::Budget;
use selfmate_run::{Alarm, Progress, Rating};
use selfmate_selfplay::Stage;

use super::draw::draw;
use super::*;

fn progress(generation: u64) -> Record {
    let done = generation as f64 / 60.0;
    let wave = [0.7, -0.9, 0.2, -0.4, 1.0, 0.0, -0.6][generation as usize % 7];
    let values = [
        ("loss.value", 1.0 - 0.3 * done + 0.02 * wave),
        ("loss.policy", 3.2 - 1.1 * done.sqrt() + 0.03 * wave),
        ("policy_divergence", 0.8 - 0.2 * done),
        ("value_spread", 0.1 + 0.4 * done),
        ("draw_share", 0.3 * (1.0 - done) + 0.05 + 0.02 * wave),
        ("truncated_share", 0.3 * (1.0 - done) + 0.02),
        ("resigned_share", 0.4 * done),
        ("plies", 140.0 - 45.0 * done + 4.0 * wave),
        ("target_entropy", 3.1 - 1.5 * done.sqrt()),
        ("simulations_per_move", 32.0 + 96.0 * done),
        ("learning_rate", 0.0015),
        ("games_per_second", 40.0),
        ("simulations_per_second", 250e3),
    ];
    Record::Progress(Progress {
        elapsed_s: 30.0 * generation as f64,
        generation,
        games: 1024 * generation,
        positions: 92_000 * generation,
        simulations: 4_100_000 * generation,
        steps: 110 * generation,
        values: values.map(|(name, value)| (name.to_owned(), value)).into(),
    })
}

fn rating(generation: u64) -> Record {
    let elo = 500.0 + 100.0 * (generation as f64).sqrt();
    Record::Rating(Rating {
        elapsed_s: 30.0 * generation as f64,
        step: 110 * generation,
        generation,
        elo,
        low: elo - 110.0,
        high: elo + 112.0,
        games: 40,
    })
}

fn game() -> GameRecord {
    let mut game = Game::new();
    for text in ["e2e4", "e7e5", "d1h5", "b8c6", "f1c4", "g8f6", "h5f7"] {
        let m = parse_uci(game.position(), text).unwrap();
        game.play(m).unwrap();
    }
    GameRecord {
        number: 38_912,
        network: 4_400,
        start: None,
        moves: game.moves().collect(),
        outcome: Outcome { winner: Some(Color::White), reason: Reason::Checkmate },
        positions: Vec::new(),
    }
}

fn scene() -> Scene {
    let title = Title {
        run: "first".into(),
        learner: "zero".into(),
        seed: 7,
        threads: 2,
        budget: Budget { minutes: Some(60.0), ..Budget::default() },
        rating_nodes: 2000,
        rating_seconds: 60.0,
    };
    let mut records = Vec::new();
    for generation in 1..=38 {
        records.push(progress(generation));
        if generation % 3 == 0 {
            records.push(rating(generation));
        }
    }
    records.push(Record::Alarm(Alarm {
        elapsed_s: 1140.0,
        generation: 38,
        name: "draw_share".into(),
        value: 0.914,
        bound: 0.9,
        meaning: "almost all games are draws".into(),
        action: "for 8 generations: more varied starts, values from results alone".into(),
    }));
    let mut scene = Scene::new(title, records);
    let status = Status {
        stage: Stage::Play,
        done: 0.0,
        elapsed_s: 1140.0,
        generation: 38,
        games: 38_912,
        positions: 3_496_000,
        simulations: 155_800_000,
        steps: 4_180,
    };
    scene.take(Message::Status(status));
    scene.take(Message::Status(Status {
        done: 0.43,
        elapsed_s: 1150.0,
        games: 39_352,
        positions: 3_536_480,
        simulations: 157_880_000,
        ..status
    }));
    scene.take(Message::Game(game()));
    scene.take(Message::Note("generation 12 was damaged; set aside".into()));
    scene
}

fn picture(scene: &Scene, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, scene)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_wide_terminal_shows_everything() {
    insta::assert_snapshot!(picture(&scene(), 120, 40));
}

#[test]
fn a_normal_terminal_shows_almost_everything() {
    insta::assert_snapshot!(picture(&scene(), 80, 24));
}

#[test]
fn a_small_terminal_shows_the_most_important_parts() {
    insta::assert_snapshot!(picture(&scene(), 40, 10));
}

#[test]
fn a_new_run_has_placeholders_and_stopping_is_shown() {
    let title = Title { run: "new".into(), rating_nodes: 64, ..scene().title };
    let mut scene = Scene::new(title, Vec::new());
    scene.is_stopping = true;
    insta::assert_snapshot!(picture(&scene, 80, 20));
}

#[test]
fn drawing_works_at_any_size() {
    let full = scene();
    let empty = Scene::default();
    for width in (1..=130).step_by(3) {
        for height in 1..=50 {
            picture(&full, width, height);
            picture(&empty, width, height);
        }
    }
}

#[test]
fn a_resume_drops_what_will_be_played_again() {
    let mut scene = scene();
    // The learner reports its status before it reports the resume.
    scene.take(Message::Status(Status { generation: 36, ..scene.status }));
    let resume = Record::Resume {
        elapsed_s: 1160.0,
        step: 3960,
        generation: 36,
        notes: vec![],
        threads: None,
        budget: None,
    };
    scene.take(Message::Record(resume));
    assert!(scene.curves.values().all(|curve| curve.len() == 36));
    assert_eq!((scene.ratings.len(), scene.alarms.len()), (12, 0));
    scene.take(Message::Record(progress(37)));
    assert!(scene.curves.values().all(|curve| curve.len() == 37));
}
