//! Games against itself: each a pure function of the run's seed, its number, the network and the
//! config.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use selfmate_chess::{Color, Game, Move, MoveList, Outcome, Reason, Rng, Seed, fen, notation};
use selfmate_run::{GameRecord, LiveGame, PositionRecord};
use selfmate_search::Evaluator;
use selfmate_search::mcts::{
    Dirichlet, FirstPlayUrgency, Gumbel, GumbelSearch, InteriorRule, Lockstep, Puct, RootRule,
    SearchParams, SearchSlot, Temperature,
};

use super::config::{Root, SelfPlayConfig};
use super::start::{random_start, start_fen};

/// What all games of a generation share.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// How to play.
    pub config: SelfPlayConfig,
    /// The seed of all games of the run.
    pub seed: Seed,
    /// Simulations for a move.
    pub sims: u64,
    /// The step of the network that plays.
    pub network: u64,
}

impl Generation {
    /// The seed of all games of a run.
    pub fn seed_of_run(seed: u64) -> Seed {
        Seed::new(seed).derive("games")
    }
}

/// What a game's number decides before anything is searched.
pub(super) struct Opening {
    /// The game after its random plies.
    pub game: Game,
    /// May be given up.
    pub resigns: bool,
    /// The root of its searches.
    pub seed: Seed,
    /// What is drawn from next: whether each search is a quick one.
    pub rng: Rng,
}

impl Opening {
    /// The opening of a game.
    pub fn new(generation: &Generation, number: u64) -> Opening {
        let config = &generation.config;
        let seed = generation.seed.index(number);
        let mut rng = seed.rng();
        let game = random_start(config, &mut rng);
        Opening { game, resigns: rng.chance(config.resign_share), seed, rng }
    }
}

/// Draws whether the next search is a quick one.
pub(super) fn draw_quick(config: &SelfPlayConfig, rng: &mut Rng) -> bool {
    config.quick_share > 0.0 && rng.chance(config.quick_share)
}

/// Plays games: one at a time with a cheap evaluator, many in lockstep with a dear one.
pub struct SelfPlayer {
    evaluator: Box<dyn Evaluator>,
    tables: Vec<Table>,
    lockstep: Lockstep,
    window: Option<Arc<Window>>,
}

/// Through which games can be seen while they are played.
#[derive(Debug, Default)]
pub struct Window {
    is_asked: AtomicBool,
    games: Mutex<Vec<LiveGame>>,
}

impl Window {
    /// One that somebody looks through from the first move on.
    pub fn asked() -> Arc<Window> {
        let window = Window::default();
        window.is_asked.store(true, Relaxed);
        Arc::new(window)
    }

    /// What was to be seen when somebody asked last; asks again.
    pub fn look(&self) -> Vec<LiveGame> {
        self.is_asked.store(true, Relaxed);
        self.games.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows the games, when somebody has asked: a player who is not watched only reads a flag.
    fn show(&self, tables: &[Table]) {
        if self.is_asked.load(Relaxed) {
            self.is_asked.store(false, Relaxed);
            let games = tables.iter().filter_map(|table| Some(table.game.as_ref()?.live()));
            let games = games.take(SHOWN).collect();
            *self.games.lock().unwrap_or_else(PoisonError::into_inner) = games;
        }
    }
}

/// The most games of one player that can be seen.
const SHOWN: usize = 4;

/// What searches find along the moves of a game.
#[derive(Clone, Debug, PartialEq)]
pub struct Retraced {
    /// The ply of the first search.
    pub first: usize,
    /// What each search would have played.
    pub moves: Vec<Move>,
    /// What those found that are kept.
    pub positions: Vec<PositionRecord>,
}

/// A finished game, and the work that went into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// The game.
    pub record: GameRecord,
    /// Simulations of all its searches.
    pub simulations: u64,
}

impl SelfPlayer {
    /// A player with this evaluator.
    ///
    /// # Panics
    ///
    /// When there is no memory for its trees; see [`SelfPlayConfig::check_memory`].
    pub fn new(config: &SelfPlayConfig, evaluator: Box<dyn Evaluator>) -> SelfPlayer {
        let params = params(config);
        let slot = || SearchSlot::new(params.clone(), &*evaluator);
        let table =
            |_| Table { slot: slot().unwrap_or_else(|error| panic!("{error}")), game: None };
        let tables = (0..config.games_at_once.max(1)).map(table).collect();
        SelfPlayer { tables, evaluator, lockstep: Lockstep::default(), window: None }
    }

    /// Lets others see its games.
    pub fn set_window(&mut self, window: Arc<Window>) {
        self.window = Some(window);
    }

    /// Plays the games whose numbers `next` gives, until it gives no more or `stop` is set; games
    /// under way are then forgotten. The simulations that went into those.
    pub fn play(
        &mut self,
        generation: &Generation,
        mut next: impl FnMut() -> Option<u64>,
        mut done: impl FnMut(Played),
        stop: &AtomicBool,
    ) -> u64 {
        loop {
            for table in self.tables.iter_mut().filter(|table| table.game.is_none()) {
                let Some(number) = next() else { break };
                table.begin(generation, number);
            }
            if self.tables.iter().all(|table| table.game.is_none()) {
                return 0;
            }
            self.think(stop);
            if stop.load(Relaxed) {
                return self.tables.iter_mut().map(Table::forget).sum();
            }
            for table in self.tables.iter_mut().filter(|table| !table.slot.is_busy()) {
                if let Some(played) = table.move_on(generation) {
                    done(played);
                }
            }
            if let Some(window) = &self.window {
                window.show(&self.tables);
            }
        }
    }

    /// Searches every position of a game again, along its moves, which must be legal. `None` when
    /// it was stopped.
    pub fn retrace(
        &mut self,
        generation: &Generation,
        sent: &GameRecord,
        stop: &AtomicBool,
    ) -> Option<Retraced> {
        let SelfPlayer { evaluator, tables, .. } = self;
        let table = tables.first_mut()?;
        table.begin(generation, sent.number);
        let mut in_play = table.game.take()?;
        let (first, mut moves) = (in_play.first, Vec::new());
        loop {
            table.slot.run(&mut **evaluator, stop);
            if stop.load(Relaxed) {
                return None;
            }
            let ply = in_play.game.ply();
            let best = in_play.judge(&mut table.slot).0;
            moves.push(best);
            // One that was given up ends with a search.
            let Some(&played) = sent.moves.get(ply) else { break };
            if in_play.advance(played, &generation.config).is_some() {
                break;
            }
            in_play.think(&mut table.slot, generation);
        }
        Some(Retraced { first, moves, positions: in_play.positions })
    }

    /// Searches until the search of a game has ended.
    fn think(&mut self, stop: &AtomicBool) {
        let SelfPlayer { evaluator, tables, lockstep, .. } = self;
        if let [table] = &mut tables[..] {
            return table.slot.run(&mut **evaluator, stop);
        }
        let has_ended = |table: &Table| table.game.is_some() && !table.slot.is_busy();
        while !stop.load(Relaxed) && !tables.iter().any(has_ended) {
            lockstep.step(tables.iter_mut().map(|table| &mut table.slot), &mut **evaluator);
        }
    }
}

/// A place for one game at a time.
struct Table {
    slot: SearchSlot,
    game: Option<InPlay>,
}

/// A game while it is played.
struct InPlay {
    number: u64,
    seed: Seed,
    rng: Rng,
    game: Game,
    legal: MoveList,
    /// The ply at which the random start ended.
    first: usize,
    /// May be given up.
    resigns: bool,
    /// The search under way is one of the quick ones.
    is_quick: bool,
    positions: Vec<PositionRecord>,
    simulations: u64,
    streak: Streak,
}

impl Table {
    fn begin(&mut self, generation: &Generation, number: u64) {
        let Opening { game, resigns, seed, rng } = Opening::new(generation, number);
        let mut in_play = InPlay {
            number,
            seed,
            resigns,
            rng,
            legal: game.legal_moves(),
            first: game.ply(),
            game,
            is_quick: false,
            positions: Vec::new(),
            simulations: 0,
            streak: Streak::default(),
        };
        self.slot.search().clear();
        in_play.think(&mut self.slot, generation);
        self.game = Some(in_play);
    }

    /// Gives up the game, if there is one; the simulations that went into it.
    fn forget(&mut self) -> u64 {
        let Some(in_play) = self.game.take() else { return 0 };
        in_play.simulations + self.slot.search().simulations()
    }

    /// Plays the move that was searched for; the game, if it ends with that.
    fn move_on(&mut self, generation: &Generation) -> Option<Played> {
        let in_play = self.game.as_mut()?;
        let outcome = in_play.play(&mut self.slot, &generation.config);
        let Some(outcome) = outcome else {
            in_play.think(&mut self.slot, generation);
            return None;
        };
        let InPlay { number, game, positions, simulations, .. } = self.game.take()?;
        let record = GameRecord {
            number,
            network: generation.network,
            start: start_fen(&game),
            moves: game.moves().collect(),
            outcome,
            positions,
        };
        Some(Played { record, simulations })
    }
}

impl InPlay {
    fn live(&self) -> LiveGame {
        let judged = self.positions.last();
        let white = |judged: &PositionRecord| {
            let moved = self.game.ply() - usize::from(judged.ply);
            if (self.game.turn() == Color::White) == moved.is_multiple_of(2) {
                judged.value
            } else {
                -judged.value
            }
        };
        let before = self.game.positions_back().nth(1);
        LiveGame {
            number: self.number,
            fen: fen::to_fen(self.game.position()),
            last: before.zip(self.game.last_move()).map(|(before, m)| notation::uci(before, m)),
            plies: self.game.ply(),
            value: judged.map(white),
        }
    }

    /// Begins the search for the next move.
    fn think(&mut self, slot: &mut SearchSlot, generation: &Generation) {
        let config = &generation.config;
        self.is_quick = draw_quick(config, &mut self.rng);
        let sims = if self.is_quick { u64::from(config.quick_sims) } else { generation.sims };
        let is_noisy = self.game.ply() - self.first < config.noisy_plies as usize;
        slot.search().set_root_rule(root_rule(config, is_noisy));
        slot.start(&self.game, sims, self.seed.index(self.game.ply() as u64));
    }

    /// Plays what the search found; how the game ends, if it does.
    fn play(&mut self, slot: &mut SearchSlot, config: &SelfPlayConfig) -> Option<Outcome> {
        let (best, value) = self.judge(slot);
        let favourite = self.streak.add(value, self.game.turn(), config);
        if self.resigns && favourite.is_some() {
            return Some(Outcome { winner: favourite, reason: Reason::Adjudication });
        }
        self.advance(best, config)
    }

    /// Keeps what the search found; its move and the value for the side to move.
    fn judge(&mut self, slot: &mut SearchSlot) -> (Move, f32) {
        let search = slot.search();
        self.simulations += search.simulations();
        let decision = search.decision(&self.legal).expect("the game goes on, so there is a move");
        let value = decision.wdl.value();
        if !self.is_quick {
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
        let is_capped = self.game.ply() - self.first >= config.max_plies as usize;
        let capped = Outcome { winner: None, reason: Reason::Truncated };
        self.game.outcome_given(&self.legal).or(is_capped.then_some(capped))
    }
}

fn params(config: &SelfPlayConfig) -> SearchParams {
    SearchParams {
        root: root_rule(config, true),
        interior: InteriorRule::Puct(Puct {
            c_puct: config.c_puct,
            first_play_urgency: FirstPlayUrgency::Reduced(config.first_play_urgency),
            ..Puct::default()
        }),
        expansion: config.expansion,
        policy_temperature: 1.0,
        root_policy_temperature: 1.0,
        virtual_loss: 1.0,
        discount: config.discount,
        temperature: match config.root {
            // Its noise is enough.
            Root::Gumbel => Temperature { value: 0.0, plies: 0 },
            Root::Puct => Temperature { value: 1.0, plies: config.noisy_plies },
        },
        memory_mb: config.memory_mb,
    }
}

fn root_rule(config: &SelfPlayConfig, is_noisy: bool) -> RootRule {
    match config.root {
        Root::Gumbel => RootRule::Gumbel(Gumbel {
            candidates: config.candidates,
            c_visit: config.c_visit,
            c_scale: config.c_scale,
            noise: if is_noisy { 1.0 } else { 0.0 },
            search: GumbelSearch::SequentialHalving,
        }),
        Root::Puct => RootRule::Puct(Some(Dirichlet {
            alpha: config.dirichlet_alpha,
            epsilon: config.dirichlet_share,
        })),
    }
}

/// For how many plies in a row the searches of both sides have been sure of the same winner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streak {
    favourite: Option<Color>,
    plies: u32,
}

impl Streak {
    /// Adds the value of the next search for the side that moves; the winner, once it is sure
    /// enough.
    pub fn add(&mut self, value: f32, turn: Color, config: &SelfPlayConfig) -> Option<Color> {
        let favourite = match value {
            v if v >= config.resign_value => Some(turn),
            v if v <= -config.resign_value => Some(!turn),
            _ => None,
        };
        self.plies =
            if favourite.is_some() && favourite == self.favourite { self.plies + 1 } else { 1 };
        self.favourite = favourite;
        favourite.filter(|_| self.plies >= config.resign_plies)
    }
}

/// The winner that the searches of a game were sure enough of to give it up, in games that were
/// played on regardless.
pub fn would_resign(record: &GameRecord, config: &SelfPlayConfig) -> Option<Color> {
    let mut streak = Streak::default();
    record
        .positions
        .iter()
        .find_map(|judged| streak.add(judged.value, record.turn(usize::from(judged.ply)), config))
}

#[cfg(test)]
mod tests {
    use selfmate_nn::sparse::{Network, SparseConfig, Weights};
    use selfmate_nn::{Model, residual};

    use super::*;
    use crate::alphazero::AlphaZeroConfig;
    use crate::selfplay::evaluators;
    use crate::zero::ZeroConfig;

    fn play(player: &mut SelfPlayer, generation: &Generation, numbers: &[u64]) -> Vec<Played> {
        let mut numbers = numbers.iter().copied();
        let mut games = Vec::new();
        let stop = AtomicBool::new(false);
        player.play(generation, || numbers.next(), |played| games.push(played), &stop);
        games.sort_by_key(|played| played.record.number);
        games
    }

    #[test]
    fn a_game_is_seen_through_the_window_by_those_who_asked() {
        let shape = SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() };
        let network = Network::new(&Weights::random(shape, Seed::new(1)).unwrap());
        let config = SelfPlayConfig { quick_share: 0.0, ..ZeroConfig::tiny().selfplay };
        let generation =
            Generation { config: config.clone(), seed: Seed::new(2), sims: 8, network: 0 };
        let mut player = SelfPlayer::new(&config, Box::new(network));
        let window = Arc::new(Window::default());
        player.set_window(Arc::clone(&window));
        play(&mut player, &generation, &[0]);
        assert_eq!(window.look(), [], "nobody had asked");
        let games = play(&mut player, &generation, &[1]);
        let seen = window.look();
        let [seen] = &seen[..] else { panic!("{seen:?}") };
        let record = &games[0].record;
        let mut game = record.start_game().unwrap();
        for &m in &record.moves[..seen.plies] {
            game.play(m).unwrap();
        }
        let judged =
            record.positions.iter().find(|judged| usize::from(judged.ply) + 1 == seen.plies);
        let value = judged.map(|judged| match record.turn(usize::from(judged.ply)) {
            Color::White => judged.value,
            Color::Black => -judged.value,
        });
        assert_eq!((seen.number, &seen.fen), (1, &fen::to_fen(game.position())));
        assert!(seen.value.is_some() && seen.value == value, "{seen:?}, {value:?}");
        let last = record.moves[seen.plies - 1];
        game.undo();
        assert_eq!(seen.last, Some(notation::uci(game.position(), last)));
    }

    #[test]
    fn a_game_depends_on_nothing_but_its_number() {
        let shape = SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() };
        let network = Network::new(&Weights::random(shape, Seed::new(1)).unwrap());
        for root in [Root::Gumbel, Root::Puct] {
            let config = SelfPlayConfig { root, ..ZeroConfig::tiny().selfplay };
            let generation =
                Generation { config: config.clone(), seed: Seed::new(2), sims: 8, network: 0 };
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
    fn a_game_of_a_residual_network_depends_on_nothing_but_its_number() {
        let tiny = AlphaZeroConfig::tiny();
        let weights = residual::Weights::random(tiny.network, Seed::new(1)).unwrap();
        let evaluators = evaluators(&Model::Residual(weights));
        let generation =
            Generation { config: tiny.selfplay, seed: Seed::new(2), sims: 8, network: 0 };
        let at_once = |games_at_once, numbers: &[u64]| {
            let config = SelfPlayConfig { games_at_once, ..generation.config.clone() };
            play(&mut SelfPlayer::new(&config, evaluators()), &generation, numbers)
        };
        assert_eq!(at_once(4, &[0, 1, 2]), at_once(1, &[2, 1, 0]));
    }

    #[test]
    fn along_its_own_moves_a_game_is_searched_as_it_was_played() {
        let tiny = ZeroConfig::tiny();
        let network = Network::new(&Weights::random(tiny.network, Seed::new(1)).unwrap());
        let generation =
            Generation { config: tiny.selfplay, seed: Seed::new(2), sims: 8, network: 0 };
        let mut player = SelfPlayer::new(&generation.config, Box::new(network));
        for Played { record, .. } in play(&mut player, &generation, &[0, 1, 2, 3]) {
            let stop = AtomicBool::new(false);
            let Retraced { first, moves, positions } =
                player.retrace(&generation, &record, &stop).unwrap();
            assert_eq!(positions, record.positions);
            let played = &record.moves[first..];
            // One that was given up has one search more.
            assert_eq!(&moves[..played.len()], played);
            let is_given_up = record.outcome.reason == Reason::Adjudication;
            assert_eq!(moves.len() - played.len(), usize::from(is_given_up));
        }
    }

    #[test]
    fn a_player_that_is_stopped_forgets_its_games() {
        let config = ZeroConfig::tiny();
        let network = Network::new(&Weights::random(config.network, Seed::new(1)).unwrap());
        let mut player = SelfPlayer::new(&config.selfplay, Box::new(network));
        let selfplay = config.selfplay;
        let generation = Generation { config: selfplay, seed: Seed::new(2), sims: 8, network: 0 };
        let stop = AtomicBool::new(true);
        player.play(&generation, || Some(1), |_| panic!("a game has ended"), &stop);
        assert_eq!(play(&mut player, &generation, &[3])[0].record.number, 3);
    }

    #[test]
    fn games_that_are_cut_tell_what_went_into_them() {
        let config = ZeroConfig::tiny();
        let network = Network::new(&Weights::random(config.network, Seed::new(1)).unwrap());
        // At a second table it is asked for a game after each move of the first.
        let selfplay = SelfPlayConfig { games_at_once: 2, quick_share: 0.0, ..config.selfplay };
        let mut player = SelfPlayer::new(&selfplay, Box::new(network));
        let generation = Generation { config: selfplay, seed: Seed::new(2), sims: 8, network: 0 };
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

    #[test]
    fn a_game_is_given_up_after_enough_certain_plies_in_a_row() {
        let config = SelfPlayConfig { resign_plies: 3, ..SelfPlayConfig::default() };
        let mut streak = Streak::default();
        let mut add = |value, turn| streak.add(value, turn, &config);
        assert_eq!(add(0.95, Color::White), None);
        assert_eq!(add(-0.95, Color::Black), None);
        assert_eq!(add(0.5, Color::White), None);
        assert_eq!(add(-0.95, Color::Black), None);
        assert_eq!(add(0.95, Color::White), None);
        assert_eq!(add(-0.95, Color::Black), Some(Color::White));
        assert_eq!(add(0.95, Color::Black), None, "both sides must agree");
    }
}
