//! Invariants of the tree, mates, golden trees, reuse, memory and threads.
#![allow(clippy::unwrap_used)] // helpers of tests may fail as tests do

use std::fmt::Write;

use proptest::prelude::*;
use selfmate_chess::fen::parse_game;
use selfmate_chess::notation::{parse_move, san, uci};
use selfmate_chess::{Game, Seed};
use selfmate_search::evaluator::{Playout, Rollout, Scripted, Uniform};
use selfmate_search::mcts::{
    Batch, Expansion, FirstPlayUrgency, Gumbel, GumbelSearch, InteriorRule, Lockstep, PolicyTarget,
    Proof, Puct, PuctFormula, RootRule, Search, SearchParams, SearchResult, SearchSlot,
    StopCondition, Temperature, Transpositions, ValueTarget, run, run_parallel,
};
use selfmate_search::{Evaluation, Evaluator, Leaf, Wdl};

/// Small trees keep the tests fast.
fn small(mut params: SearchParams) -> SearchParams {
    params.memory_mb = 16;
    params
}

fn search(
    params: SearchParams,
    evaluator: &mut dyn Evaluator,
    game: &Game,
    simulations: u64,
    seed: u64,
) -> SearchResult {
    let mut search = Search::new(params).unwrap();
    search.start(game, simulations, Seed::new(seed));
    run(&mut search, evaluator, &StopCondition::default());
    search.result()
}

fn puct(formula: PuctFormula) -> InteriorRule {
    let first_play_urgency = FirstPlayUrgency::Absolute(0.0);
    InteriorRule::Puct(Puct { formula, first_play_urgency, ..Puct::default() })
}

fn rules() -> Vec<(&'static str, SearchParams)> {
    let gumbel = |search| RootRule::Gumbel(Gumbel { search, ..Gumbel::default() });
    let base = SearchParams { memory_mb: 16, ..SearchParams::default() };
    vec![
        ("puct", base.clone()),
        ("uct", small(SearchParams::uct())),
        ("alphazero", small(SearchParams::alphazero())),
        ("gumbel", small(SearchParams::gumbel())),
        ("top-k", SearchParams { root: gumbel(GumbelSearch::TopK), ..base.clone() }),
        ("first visit", SearchParams { expansion: Expansion::FirstVisit, ..base.clone() }),
        ("random untried", SearchParams { expansion: Expansion::RandomUntried, ..base.clone() }),
        ("sqrt ratio", SearchParams { interior: puct(PuctFormula::SqrtRatio), ..base.clone() }),
        ("shared", SearchParams { transpositions: Transpositions::Shared, ..base }),
    ]
}

#[test]
fn every_rule_spends_its_budget_and_visits_add_up() {
    for (name, params) in rules() {
        for simulations in [1, 2, 33, 500] {
            let mut evaluator = Scripted::new(Seed::new(1));
            let result = search(params.clone(), &mut evaluator, &Game::new(), simulations, 7);
            assert_eq!(result.simulations, simulations, "{name}");
            let visits: u64 = result.moves.iter().map(|m| u64::from(m.visits)).sum();
            assert_eq!(visits, simulations, "{name}: a fresh root's visits are its simulations");
            assert_eq!(result.moves.len(), 20, "{name}");
            let policy: f32 = result.policy_target.iter().sum();
            assert!((policy - 1.0).abs() < 1e-4, "{name}: {policy}");
            assert!(result.best.is_some());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_tree() {
    for (name, params) in rules() {
        let once = |seed| {
            let mut evaluator = Scripted::new(Seed::new(1));
            search(params.clone(), &mut evaluator, &Game::new(), 400, seed)
        };
        assert_eq!(once(3), once(3), "{name}");
    }
    let params = small(SearchParams::alphazero());
    let once = |seed| search(params.clone(), &mut Uniform, &Game::new(), 100, seed);
    assert_ne!(once(3).moves, once(4).moves, "noise follows the seed");
}

/// Games on two threads, each stepping several in lockstep with one batched evaluator, give the
/// same trees as each game on its own.
#[test]
fn lockstep_games_on_two_threads_give_the_same_trees() {
    let starts: Vec<Game> = ["e4", "d4", "Nf3", "c4", "g3", "b3"]
        .iter()
        .map(|text| {
            let mut game = Game::new();
            let m = parse_move(game.position(), text).unwrap();
            game.play(m).unwrap();
            game
        })
        .collect();
    for transpositions in [Transpositions::Separate, Transpositions::Shared] {
        let params = SearchParams { transpositions, ..small(SearchParams::gumbel()) };
        lockstep_gives_the_same_trees(&params, &starts);
    }
}

fn lockstep_gives_the_same_trees(params: &SearchParams, starts: &[Game]) {
    let alone = |index: usize| {
        let mut evaluator = Scripted::new(Seed::new(2));
        search(params.clone(), &mut evaluator, &starts[index], 64, index as u64)
    };
    let lockstep = |games: std::ops::Range<usize>| -> Vec<SearchResult> {
        let mut evaluator = Scripted::new(Seed::new(2));
        let mut seats: Vec<SearchSlot> =
            games.clone().map(|_| SearchSlot::new(params.clone(), &evaluator).unwrap()).collect();
        for (seat, index) in seats.iter_mut().zip(games) {
            seat.start(&starts[index], 64, Seed::new(index as u64));
        }
        let mut lockstep = Lockstep::default();
        while seats.iter().any(SearchSlot::is_busy) {
            lockstep.step(seats.iter_mut(), &mut evaluator);
        }
        seats.iter_mut().map(|seat| seat.search().result()).collect()
    };
    let together: Vec<SearchResult> = std::thread::scope(|scope| {
        let first = scope.spawn(|| lockstep(0..3));
        let second = scope.spawn(|| lockstep(3..6));
        let mut results = first.join().unwrap();
        results.extend(second.join().unwrap());
        results
    });
    for (index, result) in together.iter().enumerate() {
        assert_eq!(*result, alone(index), "game {index}");
    }
}

/// Requesting priors later changes when they are computed, not what is searched.
#[test]
fn expanding_at_the_second_visit_gives_the_same_tree() {
    let result = |expansion| {
        let params = SearchParams { expansion, ..small(SearchParams::default()) };
        search(params, &mut Scripted::new(Seed::new(8)), &Game::new(), 2_000, 1)
    };
    assert_eq!(result(Expansion::FirstVisit), result(Expansion::SecondVisit));
}

/// All positions are drawn; the first two legal moves have priors of 0.8 and 0.2.
struct FourToOne;

impl Evaluator for FourToOne {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            evaluation.wdl = Wdl::DRAW;
            evaluation.logits = vec![-30.0; leaf.legal.len()];
            let logits = evaluation.logits.iter_mut();
            logits.zip([4f32.ln(), 0.0]).for_each(|(logit, value)| *logit = value);
        }
    }
}

#[test]
fn moves_of_equal_value_are_visited_by_prior_or_by_its_square() {
    for (formula, expected) in [(PuctFormula::AlphaZero, 4.0), (PuctFormula::SqrtRatio, 16.0)] {
        let params = SearchParams { interior: puct(formula), ..small(SearchParams::default()) };
        let result = search(params, &mut FourToOne, &Game::new(), 3_400, 1);
        let ratio = f64::from(result.moves[0].visits) / f64::from(result.moves[1].visits);
        assert!((ratio / expected - 1.0).abs() < 0.02, "{formula:?}: {ratio}");
    }
}

#[test]
fn random_expansion_tries_every_move_once_in_a_random_order() {
    let params = SearchParams {
        expansion: Expansion::RandomUntried,
        interior: puct(PuctFormula::AlphaZero),
        ..small(SearchParams::default())
    };
    // One simulation tries one of the 20 moves, whatever the priors are.
    let mut tried = std::collections::BTreeMap::new();
    for seed in 0..400 {
        let result = search(params.clone(), &mut FourToOne, &Game::new(), 1, seed);
        *tried.entry(uci(Game::new().position(), result.best.unwrap())).or_insert(0) += 1;
    }
    assert_eq!(tried.len(), 20);
    assert!(tried.values().all(|count| (4..=40).contains(count)), "{tried:?}");
    // As many simulations as moves try each of them once; PUCT decides after that.
    let visits = |simulations| -> Vec<u32> {
        let result = search(params.clone(), &mut FourToOne, &Game::new(), simulations, 1);
        result.moves.iter().map(|m| m.visits).collect()
    };
    assert_eq!(visits(20), [1; 20]);
    assert!(visits(120)[0] > 60);
}

#[test]
fn either_policy_target_goes_with_either_root() {
    let target = |root, policy_target| {
        let params = SearchParams { root, policy_target, ..small(SearchParams::default()) };
        let mut evaluator = Scripted::new(Seed::new(4));
        let result = search(params, &mut evaluator, &Game::new(), 200, 1);
        let visits: Vec<f32> = result.moves.iter().map(|m| m.visits as f32 / 200.0).collect();
        (result.policy_target, visits)
    };
    let gumbel = Gumbel::default();
    let Gumbel { c_visit, c_scale, .. } = gumbel;
    let improved = Some(PolicyTarget::Improved { c_visit, c_scale });
    for root in [RootRule::Puct(None), RootRule::Gumbel(gumbel)] {
        let (shares, visits) = target(root, Some(PolicyTarget::Visits));
        assert_eq!(shares, visits);
        let (shares, visits) = target(root, improved);
        assert!(shares.iter().all(|share| *share > 0.0) && shares != visits);
        // Without the setting, the root rule decides.
        let own = if root == RootRule::Puct(None) { Some(PolicyTarget::Visits) } else { improved };
        assert_eq!(target(root, None), target(root, own));
    }
}

#[test]
fn the_value_target_is_the_mean_of_simulations_or_of_moves_or_the_best_moves_value() {
    let game = Game::new();
    let run_search = |value_target| {
        let gumbel = Gumbel { candidates: usize::MAX, ..Gumbel::default() };
        let root = RootRule::Gumbel(gumbel);
        let params = SearchParams { root, value_target, discount: 0.9, ..SearchParams::default() };
        let mut search = Search::new(small(params)).unwrap();
        search.start(&game, 200, Seed::new(3));
        run(&mut search, &mut Scripted::new(Seed::new(4)), &StopCondition::default());
        (search.decision(&game.legal_moves()).unwrap().wdl, search.result())
    };
    let (mean, result) = run_search(ValueTarget::Mean);
    assert_eq!(mean, result.wdl);
    let value_of = |wdl: Wdl| 0.9 * wdl.value();
    let (best, _) = run_search(ValueTarget::Best);
    assert!((best.value() - value_of(result.moves[0].wdl)).abs() < 1e-5);
    let (policy, _) = run_search(ValueTarget::Policy);
    let weighted = result.moves.iter().zip(&result.policy_target);
    let weighted: f32 = weighted.map(|(m, share)| share * value_of(m.wdl)).sum();
    assert!((policy.value() - weighted).abs() < 1e-5);
    // The search spends simulations on moves that it rejects.
    assert!(mean.value() < policy.value(), "{mean:?} {policy:?}");
}

#[test]
fn a_batch_leaves_no_virtual_visit_behind() {
    for size in [1, 4, 16] {
        let mut evaluator = Scripted::new(Seed::new(1));
        let mut search = Search::new(small(SearchParams::default())).unwrap();
        search.start(&Game::new(), 300, Seed::new(1));
        let mut batch = Batch::new(&evaluator);
        loop {
            search.gather(&mut batch, size);
            if batch.is_empty() {
                break;
            }
            batch.evaluate(&mut evaluator);
            search.apply(&mut batch);
        }
        let result = search.result();
        assert_eq!(result.simulations, 300, "batches of {size}");
        assert_eq!(result.moves.iter().map(|m| m.visits).sum::<u32>(), 300);
        assert_eq!(search.simulations_in_flight(), 0);
    }
}

/// Position, moves to mate (checked with Stockfish), and the simulations for a search with a
/// uniform evaluator.
const MATES: &[(&str, u8, u64)] = &[
    ("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", 1, 200),
    ("r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4", 1, 400),
    ("k7/8/2K5/8/8/8/8/1Q6 w - - 0 1", 1, 200),
    ("7k/8/5K2/8/8/8/8/R7 w - - 0 1", 2, 3_000),
    ("2k5/8/2K5/8/8/8/8/3Q4 w - - 0 1", 2, 3_000),
    ("4k3/8/8/8/8/8/1R6/R3K3 w - - 0 1", 2, 10_000),
    ("6k1/8/4K3/8/8/8/8/R7 w - - 0 1", 3, 60_000),
    ("5k2/8/8/4K3/8/8/8/Q7 w - - 0 1", 3, 60_000),
    ("8/5k2/8/4K3/8/8/8/Q7 w - - 0 1", 4, 400_000),
];

#[test]
fn mates_are_proven_with_a_uniform_evaluator() {
    for &(fen, moves, budget) in MATES {
        let game = parse_game(fen).unwrap();
        let result = search(SearchParams::default(), &mut Uniform, &game, budget, 1);
        let best = san(game.position(), result.best.unwrap());
        match result.proof {
            Proof::Win(plies) => assert!(
                plies.div_ceil(2) >= moves,
                "{fen}: {best} cannot mate in {plies} plies, the shortest takes {moves} moves"
            ),
            proof => panic!("{fen}: {proof:?} after {} simulations, {best}", result.simulations),
        }
        assert_eq!(result.wdl, Wdl::WIN);
    }
}

#[test]
fn a_lost_position_is_proven_lost_and_a_stalemate_avoided() {
    // Black to move is mated in one whatever it plays.
    let game = parse_game("k7/8/1K6/8/8/8/8/7R b - - 0 1").unwrap();
    let result = search(small(SearchParams::default()), &mut Uniform, &game, 500, 1);
    assert_eq!(result.proof, Proof::Loss(2));
    // Qb6 would be stalemate; the search must keep the win.
    let game = parse_game("k7/8/8/2K5/8/8/8/1Q6 w - - 0 1").unwrap();
    let result = search(small(SearchParams::default()), &mut Uniform, &game, 20_000, 1);
    assert!(matches!(result.proof, Proof::Win(_)), "{:?}", result.proof);
}

#[test]
fn a_position_without_moves_has_no_best_move() {
    for fen in ["7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "R6k/6pp/8/8/8/8/8/K7 b - - 0 1"] {
        let game = parse_game(fen).unwrap();
        let result = search(small(SearchParams::default()), &mut Uniform, &game, 100, 1);
        assert_eq!((result.best, result.simulations), (None, 0));
    }
}

#[test]
fn the_subtree_is_kept_when_the_game_continues() {
    let mut evaluator = Scripted::new(Seed::new(3));
    let mut search = Search::new(small(SearchParams::default())).unwrap();
    let mut game = Game::new();
    search.start(&game, 1000, Seed::new(1));
    run(&mut search, &mut evaluator, &StopCondition::default());
    let result = search.result();
    let expected = result.moves[0].visits;
    assert_eq!(result.best, Some(result.moves[0].played));
    game.play(result.best.unwrap()).unwrap();
    search.start(&game, 0, Seed::new(2));
    let kept: u32 = search.result().moves.iter().map(|m| m.visits).sum();
    assert_eq!(kept + 1, expected, "the move's visits are those of its replies and its own");
    // A different game has nothing to keep.
    let mut other = Game::new();
    let m = parse_move(other.position(), "a3").unwrap();
    other.play(m).unwrap();
    other.play(parse_move(other.position(), "a6").unwrap()).unwrap();
    search.start(&other, 0, Seed::new(2));
    assert!(search.result().moves.is_empty());
}

#[test]
fn memory_stays_below_its_limit_and_the_search_continues() {
    let params = SearchParams { memory_mb: 2, ..SearchParams::default() };
    let mut search = Search::new(params).unwrap();
    search.start(&Game::new(), 200_000, Seed::new(1));
    run(&mut search, &mut Uniform, &StopCondition::default());
    assert_eq!(search.simulations(), 200_000);
    assert!(search.memory_bytes() <= 2 * 1_048_576, "{}", search.memory_bytes());
    assert_eq!(search.result().moves.iter().map(|m| m.visits).sum::<u32>(), 200_000);
}

#[test]
fn threads_share_a_tree_without_losing_a_simulation() {
    for (name, params) in rules() {
        let mut search = Search::new(params).unwrap();
        search.start(&Game::new(), 20_000, Seed::new(1));
        let mut evaluators: Vec<Box<dyn Evaluator>> =
            vec![Box::new(Scripted::new(Seed::new(1))), Box::new(Scripted::new(Seed::new(1)))];
        run_parallel(&mut search, &mut evaluators, &StopCondition::default());
        let result = search.result();
        assert_eq!(result.simulations, 20_000, "{name}");
        assert_eq!(result.moves.iter().map(|m| m.visits).sum::<u32>(), 20_000, "{name}");
        assert_eq!(search.simulations_in_flight(), 0, "{name}");
    }
}

#[test]
fn threads_share_a_small_tree_that_is_recycled() {
    let mut search = Search::new(SearchParams { memory_mb: 1, ..SearchParams::default() }).unwrap();
    search.start(&Game::new(), 100_000, Seed::new(1));
    let mut evaluators: Vec<Box<dyn Evaluator>> = vec![Box::new(Uniform), Box::new(Uniform)];
    run_parallel(&mut search, &mut evaluators, &StopCondition::default());
    assert_eq!(search.simulations(), 100_000);
    assert_eq!(search.simulations_in_flight(), 0);
}

#[test]
fn a_search_can_be_restricted_to_some_root_moves() {
    let game = Game::new();
    let only =
        [parse_move(game.position(), "a3").unwrap(), parse_move(game.position(), "h3").unwrap()];
    let mut search = Search::new(small(SearchParams::default())).unwrap();
    search.start_among(&game, &only, 100, Seed::new(1));
    run(&mut search, &mut Uniform, &StopCondition::default());
    let result = search.result();
    assert_eq!(result.moves.len(), 2);
    assert!(only.contains(&result.best.unwrap()));
}

#[test]
fn mates_are_proven_among_some_root_moves_too() {
    let game = parse_game("7k/8/5K2/8/8/8/8/R7 w - - 0 1").unwrap();
    let all: Vec<_> = game.legal_moves().to_vec();
    let mut search = Search::new(small(SearchParams::default())).unwrap();
    search.start_among(&game, &all, 3_000, Seed::new(1));
    run(&mut search, &mut Uniform, &StopCondition::default());
    let result = search.result();
    assert!(matches!(result.moves[0].proof, Proof::Win(_)), "{:?}", result.moves[0]);
}

#[test]
fn a_tree_is_not_reused_for_another_halfmove_clock() {
    let mut search = Search::new(small(SearchParams::default())).unwrap();
    let mut proof = |fen: &str| {
        search.start(&parse_game(fen).unwrap(), 60_000, Seed::new(1));
        run(&mut search, &mut Uniform, &StopCondition::default());
        search.result().proof
    };
    assert!(matches!(proof("6k1/8/4K3/8/8/8/8/R7 w - - 0 1"), Proof::Win(_)));
    // Two plies before the fifty-move draw no mate can be reached.
    assert_eq!(proof("6k1/8/4K3/8/8/8/8/R7 w - - 98 80"), Proof::Draw);
}

#[test]
fn threads_end_at_once_in_a_position_without_moves() {
    let game = parse_game("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1").unwrap();
    let mut search = Search::new(small(SearchParams::default())).unwrap();
    search.start(&game, u64::MAX, Seed::new(1));
    let mut evaluators: Vec<Box<dyn Evaluator>> = vec![Box::new(Uniform), Box::new(Uniform)];
    run_parallel(&mut search, &mut evaluators, &StopCondition::default());
    assert_eq!(search.result().best, None);
}

#[test]
fn a_proven_win_is_the_policy_target() {
    let game = parse_game("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1").unwrap();
    let result = search(small(SearchParams::default()), &mut Uniform, &game, 800, 1);
    assert_eq!(san(game.position(), result.best.unwrap()), "Ra8#");
    assert_eq!(result.policy_target[0], 1.0);
}

#[test]
fn a_batch_can_serve_one_search_after_another() {
    let mut evaluator = Scripted::new(Seed::new(1));
    let mut search = Search::new(small(SearchParams::default())).unwrap();
    let mut batch = Batch::new(&evaluator);
    for round in 0..40 {
        // Stopped at a different step each time, also with an unfinished simulation.
        search.clear();
        search.start(&Game::new(), 50, Seed::new(1));
        for _ in 0..round {
            search.gather(&mut batch, 1);
            batch.evaluate(&mut evaluator);
            search.apply(&mut batch);
        }
        assert!(search.simulations() <= 50);
    }
}

#[test]
fn a_search_continues_beyond_its_halving_table() {
    let mut evaluator = Scripted::new(Seed::new(1));
    let mut search = Search::new(small(SearchParams::gumbel())).unwrap();
    search.start(&Game::new(), 1 << 21, Seed::new(1));
    run(&mut search, &mut evaluator, &StopCondition::default());
    let mut visits = search.root_visits();
    visits.sort_unstable_by(|a, b| b.cmp(a));
    assert!(visits[1] > visits[0] / 2, "{visits:?}");
}

#[test]
fn temperature_draws_moves_by_visits() {
    let params = SearchParams {
        temperature: Temperature { value: 1.0, plies: 60 },
        ..small(SearchParams::default())
    };
    let mut seen = std::collections::HashSet::new();
    for seed in 0..40 {
        let mut evaluator = Scripted::new(Seed::new(1));
        let result = search(params.clone(), &mut evaluator, &Game::new(), 200, seed);
        seen.insert(uci(Game::new().position(), result.best.unwrap()));
    }
    assert!(seen.len() > 8, "{seen:?}");
}

#[test]
fn rollouts_see_who_is_ahead() {
    for playout in [Playout::Full, Playout::Random { plies: 200 }, Playout::Material { plies: 40 }]
    {
        let game = parse_game("k7/8/8/8/8/8/1R6/KQ6 w - - 0 1").unwrap();
        let mut rollout = Rollout::new(playout, Seed::new(1));
        let mean = (0..400).map(|_| rollout.play(&game).value()).sum::<f32>() / 400.0;
        assert!(mean > 0.1, "{playout:?}: {mean}");
    }
}

#[test]
fn a_golden_tree() {
    let mut text = String::new();
    let castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
    let mut searches: Vec<_> =
        rules().into_iter().map(|(name, params)| (name, params, castling, 200)).collect();
    // Deep enough for many transpositions.
    let rook = "8/8/8/4k3/8/8/3R4/4K3 w - - 0 1";
    for name in ["puct", "shared"] {
        let (_, params) = rules().into_iter().find(|(rule, _)| *rule == name).unwrap();
        searches.push((name, params, rook, 2_000));
    }
    for (name, params, fen, simulations) in searches {
        let mut evaluator = Scripted::new(Seed::new(5));
        let game = parse_game(fen).unwrap();
        let result = search(params, &mut evaluator, &game, simulations, 11);
        writeln!(text, "{name}: value {:.4}", result.wdl.value()).unwrap();
        for (m, policy) in result.moves.iter().zip(&result.policy_target).take(4) {
            writeln!(
                text,
                "  {:6} visits {:3} prior {:.4} q {:+.4} target {policy:.4}",
                san(game.position(), m.played),
                m.visits,
                m.prior,
                m.wdl.value()
            )
            .unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_position_can_be_searched(seed in any::<u64>(), plies in 0..120usize, rule in 0..9usize) {
        let mut game = Game::new();
        let mut rng = Seed::new(seed).rng();
        for _ in 0..plies {
            if game.outcome().is_some() { break; }
            let m = *rng.choose(&game.legal_moves()).unwrap();
            game.play_unchecked(m);
        }
        let (_, params) = rules().swap_remove(rule);
        let legal = game.legal_moves();
        let result = search(params, &mut Scripted::new(Seed::new(seed)), &game, 60, seed);
        match result.best {
            Some(best) => prop_assert!(legal.contains(&best)),
            None => prop_assert!(legal.is_empty()),
        }
        let total = result.wdl.win + result.wdl.draw + result.wdl.loss;
        prop_assert!((total - 1.0).abs() < 1e-4);
    }
}
