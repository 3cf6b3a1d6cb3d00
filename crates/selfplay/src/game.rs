//! Games against itself: each a pure function of the run's seed, its number, the network and the
//! config.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use selfmate_chess::{Game, Move, MoveList, Outcome, Reason, Rng, Seed, fen, notation};
use selfmate_run::{GameRecord, LiveGame, PositionRecord};
use selfmate_search::mcts::{
    Dirichlet, FirstPlayUrgency, Gumbel, GumbelSearch, InteriorRule, Lockstep, PolicyTarget, Proof,
    Puct, RootRule, SearchParams, SearchSlot, Temperature, Transpositions,
};
use selfmate_search::{Evaluator, white_value};

use crate::config::{PolicyTargetName, RootRuleName, SelfPlayConfig};
use crate::evaluator::configured;
use crate::live_feed::LiveFeed;
use crate::resign::ResignCounter;
use crate::start::{random_start, start_fen};

/// What all games of a generation share.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    pub config: SelfPlayConfig,
    /// The seed of all games of the run.
    pub seed: Seed,
    /// Simulations per move.
    pub simulations: u64,
    /// The step of the network that plays.
    pub network: u64,
}

impl Generation {
    /// The seed of all games of a run.
    pub fn games_seed(run_seed: u64) -> Seed {
        Seed::new(run_seed).derive("games")
    }
}

/// What the number of a game decides before the first search.
pub(crate) struct GameStart {
    /// The game after its random plies.
    pub game: Game,
    pub may_resign: bool,
    /// The root of the seeds of its searches.
    pub seed: Seed,
    /// Draws whether each search is a fast one.
    pub rng: Rng,
}

impl GameStart {
    pub fn new(generation: &Generation, number: u64) -> GameStart {
        let config = &generation.config;
        let seed = generation.seed.index(number);
        let mut rng = seed.rng();
        let game = random_start(config, &mut rng);
        GameStart { game, may_resign: rng.chance(config.resign_share), seed, rng }
    }
}

/// Draws whether the next search is a fast one.
pub(crate) fn draw_fast(config: &SelfPlayConfig, rng: &mut Rng) -> bool {
    config.fast_share > 0.0 && rng.chance(config.fast_share)
}

/// Plays games: one at a time with a cheap evaluator, many in lockstep with an expensive one.
pub struct SelfPlayer {
    evaluator: Box<dyn Evaluator>,
    slots: Vec<GameSlot>,
    lockstep: Lockstep,
    feed: Option<Arc<LiveFeed>>,
}

/// What the searches find along the moves of a game that is already played.
#[derive(Clone, Debug, PartialEq)]
pub struct Recomputed {
    /// The ply of the first search.
    pub first: usize,
    /// The move that each search would have played.
    pub moves: Vec<Move>,
    pub positions: Vec<PositionRecord>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FinishedGame {
    pub record: GameRecord,
    /// Simulations of all its searches.
    pub simulations: u64,
}

impl SelfPlayer {
    /// # Panics
    ///
    /// When there is no memory for its trees; see [`SelfPlayConfig::check_memory`].
    pub fn new(config: &SelfPlayConfig, evaluator: Box<dyn Evaluator>) -> SelfPlayer {
        let evaluator = configured(config, evaluator);
        let params = search_params(config);
        let slot = |_| {
            let search = SearchSlot::new(params.clone(), &*evaluator);
            GameSlot { search: search.unwrap_or_else(|error| panic!("{error}")), game: None }
        };
        let slots = (0..config.games_at_once.max(1)).map(slot).collect();
        SelfPlayer { slots, evaluator, lockstep: Lockstep::default(), feed: None }
    }

    /// Shows its games while they are played.
    pub fn set_feed(&mut self, feed: Arc<LiveFeed>) {
        self.feed = Some(feed);
    }

    /// Plays the games whose numbers `next` returns, until it returns none or `stop` is set; then
    /// games under way are dropped. Returns the simulations of the dropped games.
    pub fn play(
        &mut self,
        generation: &Generation,
        mut next: impl FnMut() -> Option<u64>,
        mut finished: impl FnMut(FinishedGame),
        stop: &AtomicBool,
    ) -> u64 {
        loop {
            for slot in self.slots.iter_mut().filter(|slot| slot.game.is_none()) {
                let Some(number) = next() else { break };
                slot.begin(generation, number);
            }
            if self.slots.iter().all(|slot| slot.game.is_none()) {
                return 0;
            }
            self.search(stop);
            if stop.load(Relaxed) {
                return self.slots.iter_mut().map(GameSlot::drop_game).sum();
            }
            for slot in self.slots.iter_mut().filter(|slot| !slot.search.is_busy()) {
                if let Some(game) = slot.make_move(generation) {
                    finished(game);
                }
            }
            if let Some(feed) = &self.feed {
                let games = self.slots.iter().filter_map(|slot| slot.game.as_ref());
                feed.publish(games.map(GameInProgress::live));
            }
        }
    }

    /// Searches every position of a game again, along its moves, which must be legal. `None` when
    /// `stop` was set before the end.
    pub fn recompute(
        &mut self,
        generation: &Generation,
        record: &GameRecord,
        stop: &AtomicBool,
    ) -> Option<Recomputed> {
        let SelfPlayer { evaluator, slots, .. } = self;
        let slot = slots.first_mut()?;
        slot.begin(generation, record.number);
        let mut game = slot.game.take()?;
        let (first, mut moves) = (game.first, Vec::new());
        loop {
            slot.search.run(&mut **evaluator, stop);
            if stop.load(Relaxed) {
                return None;
            }
            let ply = game.game.ply();
            moves.push(game.record_search(&mut slot.search, &generation.config).0);
            // A game that was resigned ends with a search and no move.
            let Some(&played) = record.moves.get(ply) else { break };
            if game.advance(played, &generation.config).is_some() {
                break;
            }
            game.start_search(&mut slot.search, generation);
        }
        Some(Recomputed { first, moves, positions: game.positions })
    }

    /// Runs until the search of at least one game has ended.
    fn search(&mut self, stop: &AtomicBool) {
        let SelfPlayer { evaluator, slots, lockstep, .. } = self;
        if let [slot] = &mut slots[..] {
            return slot.search.run(&mut **evaluator, stop);
        }
        let has_ended = |slot: &GameSlot| slot.game.is_some() && !slot.search.is_busy();
        while !stop.load(Relaxed) && !slots.iter().any(has_ended) {
            lockstep.step(slots.iter_mut().map(|slot| &mut slot.search), &mut **evaluator);
        }
    }
}

/// Room for one game and its search.
struct GameSlot {
    search: SearchSlot,
    game: Option<GameInProgress>,
}

struct GameInProgress {
    number: u64,
    seed: Seed,
    rng: Rng,
    game: Game,
    legal: MoveList,
    /// The ply at which the random start ended.
    first: usize,
    may_resign: bool,
    /// The search under way is a fast one.
    is_fast: bool,
    positions: Vec<PositionRecord>,
    simulations: u64,
    resign_counter: ResignCounter,
}

impl GameSlot {
    fn begin(&mut self, generation: &Generation, number: u64) {
        let GameStart { game, may_resign, seed, rng } = GameStart::new(generation, number);
        let mut game = GameInProgress {
            number,
            seed,
            may_resign,
            rng,
            legal: game.legal_moves(),
            first: game.ply(),
            game,
            is_fast: false,
            positions: Vec::new(),
            simulations: 0,
            resign_counter: ResignCounter::default(),
        };
        self.search.search().clear();
        game.start_search(&mut self.search, generation);
        self.game = Some(game);
    }

    /// Drops the game, if there is one; the simulations that went into it.
    fn drop_game(&mut self) -> u64 {
        let Some(game) = self.game.take() else { return 0 };
        game.simulations + self.search.search().simulations()
    }

    /// Plays the move that was searched for; the game, if it ends with that.
    fn make_move(&mut self, generation: &Generation) -> Option<FinishedGame> {
        let game = self.game.as_mut()?;
        let Some(outcome) = game.make_move(&mut self.search, &generation.config) else {
            game.start_search(&mut self.search, generation);
            return None;
        };
        let GameInProgress { number, game, positions, simulations, .. } = self.game.take()?;
        let record = GameRecord {
            number,
            network: generation.network,
            start: start_fen(&game),
            moves: game.moves().collect(),
            outcome,
            positions,
        };
        Some(FinishedGame { record, simulations })
    }
}

impl GameInProgress {
    fn live(&self) -> LiveGame {
        let value_for_white = |position: &PositionRecord| {
            let plies_since = self.game.ply() - usize::from(position.ply);
            let is_same_turn = plies_since.is_multiple_of(2);
            let turn = if is_same_turn { self.game.turn() } else { !self.game.turn() };
            white_value(position.value, turn)
        };
        let before = self.game.positions_back().nth(1);
        LiveGame {
            number: self.number,
            fen: fen::to_fen(self.game.position()),
            last: before.zip(self.game.last_move()).map(|(before, m)| notation::uci(before, m)),
            plies: self.game.ply(),
            value: self.positions.last().map(value_for_white),
        }
    }

    fn start_search(&mut self, slot: &mut SearchSlot, generation: &Generation) {
        let config = &generation.config;
        self.is_fast = draw_fast(config, &mut self.rng);
        let simulations = match self.is_fast {
            true => u64::from(config.fast_simulations),
            false => generation.simulations,
        };
        let has_noise = self.game.ply() - self.first < config.noise_plies as usize;
        slot.search().set_root_rule(root_rule(config, has_noise));
        slot.start(&self.game, simulations, self.seed.index(self.game.ply() as u64));
    }

    /// Plays the move that the search found; how the game ends, if it does.
    fn make_move(&mut self, slot: &mut SearchSlot, config: &SelfPlayConfig) -> Option<Outcome> {
        let (best, value) = self.record_search(slot, config);
        let favourite = self.resign_counter.add(value, self.game.turn(), config);
        if self.may_resign && favourite.is_some() {
            return Some(Outcome { winner: favourite, reason: Reason::Adjudication });
        }
        self.advance(best, config)
    }

    /// Records what the search found; its move, and the value for the side to move.
    fn record_search(&mut self, slot: &mut SearchSlot, config: &SelfPlayConfig) -> (Move, f32) {
        let search = slot.search();
        self.simulations += search.simulations();
        let mut decision = search.decision(&self.legal).expect("an unfinished game has a move");
        let mut value = decision.wdl.value();
        if config.proven_targets
            && let Some(proven) = proven_value(search.proof(), config.discount as f32)
        {
            value = proven;
            // The search stopped at the proof: its visits are those of a search cut short.
            for (share, m) in decision.policy_target.iter_mut().zip(&self.legal) {
                *share = if *m == decision.best { 1.0 } else { 0.0 };
            }
        }
        if !self.is_fast {
            self.positions.push(PositionRecord {
                ply: self.game.ply() as u16,
                value,
                draw: decision.wdl.draw,
                policy: decision.policy_target,
            });
        }
        (decision.best, value)
    }

    /// Plays a move; how the game ends, if it does.
    fn advance(&mut self, m: Move, config: &SelfPlayConfig) -> Option<Outcome> {
        self.game.play_unchecked(m);
        self.legal = self.game.legal_moves();
        let is_truncated = self.game.ply() - self.first >= config.max_plies as usize;
        let truncated = Outcome { winner: None, reason: Reason::Truncated };
        self.game.outcome_given(&self.legal).or(is_truncated.then_some(truncated))
    }
}

/// The value of a proven win or loss. A draw may be proven for this game only, by repetition.
fn proven_value(proof: Proof, discount: f32) -> Option<f32> {
    let discounted = |plies: u8| discount.powi(i32::from(plies));
    match proof {
        Proof::Win(plies) => Some(discounted(plies)),
        Proof::Loss(plies) => Some(-discounted(plies)),
        Proof::Draw | Proof::Unknown => None,
    }
}

/// The search of self-play.
pub fn search_params(config: &SelfPlayConfig) -> SearchParams {
    SearchParams {
        root: root_rule(config, config.noise_plies > 0),
        interior: InteriorRule::Puct(Puct {
            c_puct: config.c_puct as f32,
            c_base: (config.c_puct_base > 0.0).then_some(config.c_puct_base as f32),
            first_play_urgency: match config.unvisited_value {
                Some(value) => FirstPlayUrgency::Absolute(value as f32),
                None => FirstPlayUrgency::Reduced(config.first_play_urgency as f32),
            },
            formula: config.puct_formula,
        }),
        expansion: config.expansion,
        transpositions: match config.shared_nodes {
            true => Transpositions::Shared,
            false => Transpositions::Separate,
        },
        policy_temperature: 1.0,
        root_policy_temperature: 1.0,
        virtual_loss: 1.0,
        discount: config.discount as f32,
        temperature: match config.root_rule {
            RootRuleName::Puct => Temperature { value: 1.0, plies: config.temperature_plies },
            _ => Temperature { value: 0.0, plies: 0 },
        },
        policy_target: match config.policy_target {
            PolicyTargetName::RootRule => None,
            PolicyTargetName::Visits => Some(PolicyTarget::Visits),
            PolicyTargetName::Improved => Some(PolicyTarget::Improved {
                c_visit: config.c_visit as f32,
                c_scale: config.c_scale as f32,
            }),
        },
        value_target: config.value_target,
        memory_mb: config.memory_mb,
    }
}

fn root_rule(config: &SelfPlayConfig, has_noise: bool) -> RootRule {
    let gumbel = |search| {
        RootRule::Gumbel(Gumbel {
            candidates: config.candidates,
            c_visit: config.c_visit as f32,
            c_scale: config.c_scale as f32,
            noise: if has_noise { 1.0 } else { 0.0 },
            search,
        })
    };
    match config.root_rule {
        RootRuleName::Gumbel => gumbel(GumbelSearch::SequentialHalving),
        RootRuleName::TopK => gumbel(GumbelSearch::TopK),
        RootRuleName::Puct => RootRule::Puct(Some(Dirichlet {
            alpha: config.dirichlet_alpha as f32,
            epsilon: config.dirichlet_epsilon as f32,
        })),
        RootRuleName::Greedy => RootRule::Puct(None),
    }
}

#[cfg(test)]
mod tests {
    use selfmate_nn::sparse::{Network, SparseConfig, Weights};
    use selfmate_nn::{Model, residual};

    use super::*;
    use crate::evaluators;

    fn tiny_network() -> Network {
        let shape = SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() };
        Network::new(&Weights::random(shape, Seed::new(1)).unwrap())
    }

    fn play(
        player: &mut SelfPlayer,
        generation: &Generation,
        numbers: &[u64],
    ) -> Vec<FinishedGame> {
        let mut numbers = numbers.iter().copied();
        let mut games = Vec::new();
        let stop = AtomicBool::new(false);
        player.play(generation, || numbers.next(), |played| games.push(played), &stop);
        games.sort_by_key(|played| played.record.number);
        games
    }

    #[test]
    fn games_are_shown_when_they_were_requested() {
        let network = tiny_network();
        let config = SelfPlayConfig { fast_share: 0.0, ..SelfPlayConfig::tiny() };
        let generation =
            Generation { config: config.clone(), seed: Seed::new(2), simulations: 8, network: 0 };
        let mut player = SelfPlayer::new(&config, Box::new(network));
        let feed = Arc::new(LiveFeed::default());
        player.set_feed(Arc::clone(&feed));
        play(&mut player, &generation, &[0]);
        assert_eq!(feed.take(), [], "not requested");
        let games = play(&mut player, &generation, &[1]);
        let seen = feed.take();
        let [seen] = &seen[..] else { panic!("{seen:?}") };
        let record = &games[0].record;
        let mut game = record.start_game().unwrap();
        for &m in &record.moves[..seen.plies] {
            game.play(m).unwrap();
        }
        let recorded = record.positions.iter().find(|p| usize::from(p.ply) + 1 == seen.plies);
        let value = recorded.map(|p| white_value(p.value, record.turn(usize::from(p.ply))));
        assert_eq!((seen.number, &seen.fen), (1, &fen::to_fen(game.position())));
        assert!(seen.value.is_some() && seen.value == value, "{seen:?}, {value:?}");
        let last = record.moves[seen.plies - 1];
        game.undo();
        assert_eq!(seen.last, Some(notation::uci(game.position(), last)));
    }

    #[test]
    fn a_game_depends_only_on_its_number() {
        let network = tiny_network();
        for (root_rule, shared_nodes) in [
            (RootRuleName::Gumbel, false),
            (RootRuleName::Gumbel, true),
            (RootRuleName::TopK, false),
            (RootRuleName::Puct, false),
            (RootRuleName::Puct, true),
            (RootRuleName::Greedy, false),
        ] {
            let config = SelfPlayConfig { root_rule, shared_nodes, ..SelfPlayConfig::tiny() };
            let generation = Generation {
                config: config.clone(),
                seed: Seed::new(2),
                simulations: 8,
                network: 0,
            };
            let mut player = SelfPlayer::new(&config, Box::new(network.clone()));
            let games = play(&mut player, &generation, &[0, 1, 2, 3, 4, 5]);
            // In another order, and many at once.
            for games_at_once in [1, 4] {
                let config = SelfPlayConfig { games_at_once, ..config.clone() };
                let mut other = SelfPlayer::new(&config, Box::new(network.clone()));
                assert_eq!(play(&mut other, &generation, &[5, 4, 3, 2, 1, 0]), games);
            }
            for played in &games {
                let game = played.record.replay(|_, _, _| {}).unwrap();
                assert_eq!(game.ply(), played.record.moves.len());
                assert!(played.simulations > 0);
            }
        }
    }

    /// Of a residual network too: a position has the same result in any batch.
    #[test]
    fn a_game_of_a_residual_network_depends_only_on_its_number() {
        let shape = residual::Config { blocks: 1, filters: 16, ..residual::Config::small() };
        let weights = residual::Weights::random(shape, Seed::new(1)).unwrap();
        let evaluators = evaluators(&Model::Residual(weights));
        let generation = Generation {
            config: SelfPlayConfig::tiny(),
            seed: Seed::new(2),
            simulations: 8,
            network: 0,
        };
        let at_once = |games_at_once, numbers: &[u64]| {
            let config = SelfPlayConfig { games_at_once, ..generation.config.clone() };
            play(&mut SelfPlayer::new(&config, evaluators()), &generation, numbers)
        };
        assert_eq!(at_once(4, &[0, 1, 2]), at_once(1, &[2, 1, 0]));
    }

    #[test]
    fn recomputing_a_game_gives_the_same_searches() {
        let network = tiny_network();
        let generation = Generation {
            config: SelfPlayConfig::tiny(),
            seed: Seed::new(2),
            simulations: 8,
            network: 0,
        };
        let mut player = SelfPlayer::new(&generation.config, Box::new(network));
        for FinishedGame { record, .. } in play(&mut player, &generation, &[0, 1, 2, 3]) {
            let stop = AtomicBool::new(false);
            let Recomputed { first, moves, positions } =
                player.recompute(&generation, &record, &stop).unwrap();
            assert_eq!(positions, record.positions);
            let played = &record.moves[first..];
            // A game that was resigned has one search more.
            assert_eq!(&moves[..played.len()], played);
            let is_resigned = record.outcome.reason == Reason::Adjudication;
            assert_eq!(moves.len() - played.len(), usize::from(is_resigned));
        }
    }

    #[test]
    fn a_player_that_is_stopped_drops_its_games() {
        let network = tiny_network();
        let selfplay = SelfPlayConfig::tiny();
        let mut player = SelfPlayer::new(&selfplay, Box::new(network));
        let generation =
            Generation { config: selfplay, seed: Seed::new(2), simulations: 8, network: 0 };
        let stop = AtomicBool::new(true);
        player.play(&generation, || Some(1), |_| panic!("a game has ended"), &stop);
        assert_eq!(play(&mut player, &generation, &[3])[0].record.number, 3);
    }

    #[test]
    fn the_simulations_of_dropped_games_are_counted() {
        let network = tiny_network();
        // The second slot asks for a game after each move of the first.
        let selfplay =
            SelfPlayConfig { games_at_once: 2, fast_share: 0.0, ..SelfPlayConfig::tiny() };
        let mut player = SelfPlayer::new(&selfplay, Box::new(network));
        let generation =
            Generation { config: selfplay, seed: Seed::new(2), simulations: 8, network: 0 };
        let (stop, mut asked) = (AtomicBool::new(false), 0);
        let next = || {
            asked += 1;
            stop.store(asked == 5, Relaxed);
            (asked == 1).then_some(3)
        };
        let cut = player.play(&generation, next, |_| panic!("a game has ended"), &stop);
        assert_eq!(cut, 3 * 8);
        let stop = AtomicBool::new(false);
        assert_eq!(player.play(&generation, || None, |_| panic!("there is no game"), &stop), 0);
    }
}
