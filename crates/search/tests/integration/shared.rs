//! Searches in which nodes of the same position share their children.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use selfmate_chess::fen::parse_game;
use selfmate_chess::notation::parse_move;
use selfmate_chess::tablebase::{Exact, Verdict};
use selfmate_chess::{Chess, Game, Move, Position, Seed};
use selfmate_search::evaluator::{Scripted, Uniform};
use selfmate_search::mcts::{
    Batch, Expansion, Proof, Search, SearchParams, StopCondition, Transpositions, run,
};
use selfmate_search::{Evaluation, Evaluator, Leaf, Wdl};

/// Few pieces, so that the same position is reached by many move orders and often repeats.
const ROOK: &str = "8/8/8/4k3/8/8/3R4/4K3 w - - 0 1";
const KINGS_AND_PAWNS: &str = "8/2p5/4k3/8/8/4K3/2P5/8 w - - 0 1";

fn params(transpositions: Transpositions) -> SearchParams {
    let expansion = Expansion::FirstVisit;
    SearchParams { transpositions, expansion, memory_mb: 16, ..SearchParams::default() }
}

fn searched(
    params: SearchParams,
    evaluator: &mut dyn Evaluator,
    game: &Game,
    simulations: u64,
) -> Search {
    let mut search = Search::new(params).unwrap();
    search.start(game, simulations, Seed::new(1));
    run(&mut search, evaluator, &StopCondition::default());
    search
}

/// Counts evaluations and checks that none is of a position beyond the end of a game.
#[derive(Default)]
struct Checking {
    evaluations: usize,
}

impl Evaluator for Checking {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        self.evaluations += leaves.len();
        for Leaf { game, .. } in leaves {
            assert!(game.position().halfmoves() < 100, "after the fifty-move rule");
            let repeats = |&ply: &usize| game.repetitions_at(ply) > 1;
            assert_eq!((0..=game.ply()).find(repeats), None, "after a repetition");
        }
        Scripted::new(Seed::new(3)).evaluate(leaves, evaluations);
    }

    fn history(&self) -> usize {
        usize::MAX
    }
}

#[test]
fn sharing_takes_fewer_evaluations_and_less_memory() {
    for expansion in [Expansion::FirstVisit, Expansion::SecondVisit, Expansion::RandomUntried] {
        let costs = |transpositions| {
            let mut evaluator = Checking::default();
            let params = SearchParams { expansion, ..params(transpositions) };
            let search = searched(params, &mut evaluator, &parse_game(ROOK).unwrap(), 10_000);
            assert_eq!(search.root_visits().iter().sum::<u32>(), 10_000);
            assert_eq!(search.simulations_in_flight(), 0);
            (evaluator.evaluations, search.nodes())
        };
        let separate = costs(Transpositions::Separate);
        let shared = costs(Transpositions::Shared);
        assert!(shared.0 * 20 < separate.0 * 19, "{expansion:?}: {shared:?}, not {separate:?}");
        assert!(shared.1 * 20 < separate.1 * 19, "{expansion:?}: {shared:?}, not {separate:?}");
    }
}

/// Within two plies, no position is reached twice.
#[test]
fn a_tree_without_transpositions_is_the_same() {
    let result = |transpositions| {
        let params = SearchParams { transpositions, memory_mb: 16, ..SearchParams::uct() };
        searched(params, &mut Checking::default(), &Game::new(), 300).result()
    };
    assert_eq!(result(Transpositions::Separate), result(Transpositions::Shared));
}

#[test]
fn two_move_orders_lead_to_the_same_children() {
    let game = Game::new();
    let transpositions = Transpositions::Shared;
    let params = SearchParams { transpositions, memory_mb: 64, ..SearchParams::uct() };
    let mut search = Search::new(params).unwrap();
    let only = ["e3", "Nf3"].map(|text| parse_move(game.position(), text).unwrap());
    search.start_among(&game, &only, 20_000, Seed::new(1));
    run(&mut search, &mut Checking::default(), &StopCondition::default());
    let line = |moves: [&str; 3]| -> Vec<Move> {
        let mut game = Game::new();
        let play = |text: &&str| {
            let m = parse_move(game.position(), text).unwrap();
            game.play(m).unwrap();
            m
        };
        moves.iter().map(play).collect()
    };
    // The clocks differ: in one order the pawn moves first.
    let pawn_first = search.view(&line(["e3", "Nf6", "Nf3"])).unwrap();
    let knight_first = search.view(&line(["Nf3", "Nf6", "e3"])).unwrap();
    assert!(pawn_first.moves.iter().any(|edge| edge.visits > 0), "{pawn_first:?}");
    assert_eq!(pawn_first.moves, knight_first.moves);
    assert_ne!(pawn_first.visits, knight_first.visits, "each parent has its own visits");
}

#[test]
fn every_path_is_checked_for_repetitions_and_the_fifty_move_rule() {
    // `Checking` panics if a simulation goes on after the end of the game. Close to the limit,
    // positions are reached before and after it.
    let kings = "8/8/4k3/8/8/4K3/8/7R w - - 0 1";
    let late = KINGS_AND_PAWNS.replace("- - 0 1", "- - 94 80");
    for fen in [ROOK, kings, KINGS_AND_PAWNS, &late] {
        for expansion in [Expansion::FirstVisit, Expansion::SecondVisit] {
            let params = SearchParams { expansion, ..params(Transpositions::Shared) };
            let game = parse_game(fen).unwrap();
            let search = searched(params, &mut Checking::default(), &game, 20_000);
            assert_eq!(search.simulations(), 20_000, "{fen}");
            assert_eq!(search.simulations_in_flight(), 0, "{fen}");
        }
    }
}

#[test]
fn proofs_hold_whatever_the_path() {
    let exact = Exact::new();
    let mut checked = 0;
    for fen in [ROOK, "8/8/8/8/8/2k5/3R4/K7 w - - 0 1", "7k/8/5K2/8/8/8/8/R7 w - - 0 1"] {
        // Uniform values and a wide search, so that positions repeat on many paths.
        let search = searched(
            params(Transpositions::Shared),
            &mut Uniform,
            &parse_game(fen).unwrap(),
            20_000,
        );
        let mut pending: Vec<(Vec<Move>, Chess)> =
            vec![(Vec::new(), parse_game(fen).unwrap().position().clone())];
        while let Some((line, position)) = pending.pop() {
            let Some(node) = search.view(&line) else { continue };
            let expected = match exact.verdict(&position).unwrap() {
                Verdict::Win(_) => Proof::Win(0),
                Verdict::Loss(_) => Proof::Loss(0),
                Verdict::Draw => Proof::Draw,
            };
            if node.proof != Proof::Unknown {
                let kind = std::mem::discriminant(&node.proof);
                assert_eq!(kind, std::mem::discriminant(&expected), "{fen}: {line:?}");
                checked += 1;
            }
            if line.len() < 5 {
                for edge in node.moves.iter().filter(|edge| edge.visits > 0) {
                    let mut next = position.clone();
                    next.play_unchecked(edge.played);
                    pending.push(([&line[..], &[edge.played]].concat(), next));
                }
            }
        }
    }
    assert!(checked > 200, "{checked}");
}

#[test]
fn a_third_occurrence_is_a_draw_without_a_proof() {
    let mut game = parse_game(ROOK).unwrap();
    let shuffle = ["Rd1", "Ke6", "Rd2", "Ke5"];
    for text in shuffle.iter().chain(&shuffle[..3]) {
        game.play(parse_move(game.position(), text).unwrap()).unwrap();
    }
    let repeating = parse_move(game.position(), "Ke5").unwrap();
    let result = searched(params(Transpositions::Shared), &mut Uniform, &game, 3_000).result();
    let m = result.moves.iter().find(|m| m.played == repeating).unwrap();
    assert!(m.visits > 10);
    assert_eq!((m.wdl, m.proof), (Wdl::DRAW, Proof::Unknown));
}

#[test]
fn mates_are_proven_with_shared_nodes() {
    for (fen, moves, budget) in [
        ("7k/8/5K2/8/8/8/8/R7 w - - 0 1", 2, 3_000),
        ("4k3/8/8/8/8/8/1R6/R3K3 w - - 0 1", 2, 10_000),
        ("6k1/8/4K3/8/8/8/8/R7 w - - 0 1", 3, 60_000),
        ("5k2/8/8/4K3/8/8/8/Q7 w - - 0 1", 3, 60_000),
    ] {
        let params = SearchParams { memory_mb: 64, ..params(Transpositions::Shared) };
        let result = searched(params, &mut Uniform, &parse_game(fen).unwrap(), budget).result();
        let Proof::Win(plies) = result.proof else { panic!("{fen}: {:?}", result.proof) };
        assert!(plies.div_ceil(2) >= moves, "{fen}: {plies}");
    }
    // Two plies before the fifty-move draw no mate can be reached.
    let late = parse_game("6k1/8/4K3/8/8/8/8/R7 w - - 98 80").unwrap();
    let result = searched(params(Transpositions::Shared), &mut Uniform, &late, 3_000).result();
    assert_eq!((result.proof, result.wdl.value()), (Proof::Unknown, 0.0));
}

#[test]
fn batches_of_leaves_leave_nothing_in_flight() {
    for (size, expansion) in
        [(1, Expansion::SecondVisit), (4, Expansion::SecondVisit), (16, Expansion::FirstVisit)]
    {
        let mut evaluator = Checking::default();
        let params = SearchParams { expansion, ..params(Transpositions::Shared) };
        let mut search = Search::new(params).unwrap();
        search.start(&parse_game(ROOK).unwrap(), 2_000, Seed::new(1));
        let mut batch = Batch::new(&evaluator);
        while search.gather(&mut batch, size) {
            batch.evaluate(&mut evaluator);
            search.apply(&mut batch);
        }
        assert_eq!(search.simulations(), 2_000, "batches of {size}");
        assert_eq!(search.root_visits().iter().sum::<u32>(), 2_000);
        assert_eq!(search.simulations_in_flight(), 0);
    }
}

#[test]
fn a_search_with_shared_nodes_starts_anew_with_every_root() {
    let mut game = parse_game(ROOK).unwrap();
    let mut search =
        searched(params(Transpositions::Shared), &mut Checking::default(), &game, 1_000);
    game.play(search.result().best.unwrap()).unwrap();
    search.start(&game, 500, Seed::new(1));
    assert!(search.root_visits().is_empty());
    run(&mut search, &mut Checking::default(), &StopCondition::default());
    let fresh = searched(params(Transpositions::Shared), &mut Checking::default(), &game, 500);
    assert_eq!(search.result(), fresh.result());
}

#[test]
fn a_search_with_shared_nodes_ends_when_its_memory_is_full() {
    let params = SearchParams { memory_mb: 1, ..params(Transpositions::Shared) };
    let search = searched(params, &mut Uniform, &Game::new(), 200_000);
    let simulations = search.simulations();
    assert!((500..200_000).contains(&simulations), "{simulations}");
    assert!(search.memory_bytes() <= 1_048_576, "{}", search.memory_bytes());
    assert_eq!(u64::from(search.root_visits().iter().sum::<u32>()), simulations);
    assert_eq!(search.simulations_in_flight(), 0);
}
