//! Plays one game between two players and checks finished games. Matches are in `match_runner`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use selfmate_chess::{Color, Game, Outcome, Reason, notation};
use selfmate_search::player::{Clock, Limit, Score};
use selfmate_search::{Choice, Player};
use serde::{Deserialize, Serialize};

use crate::adjudicate::{Adjudication, Adjudicator};
use crate::limit::{MatchLimit, TimeControl};
use crate::openings::Opening;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GameSettings {
    pub limit: MatchLimit,
    pub adjudication: Adjudication,
    /// A player may exceed its time by this much without losing.
    pub margin_ms: u64,
}

impl Default for GameSettings {
    fn default() -> GameSettings {
        GameSettings {
            limit: MatchLimit::default(),
            adjudication: Adjudication::default(),
            margin_ms: 500,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayedGame {
    /// The start position, if it is not the standard one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub opening: Option<String>,
    /// The number of `moves` that belong to the opening.
    pub opening_plies: usize,
    /// In UCI notation, starting with the opening.
    pub moves: Vec<String>,
    /// One entry for each move after the opening.
    #[serde(alias = "thoughts")] // the name in files of earlier versions
    pub evals: Vec<MoveEval>,
    pub winner: Option<Side>,
    pub termination: Termination,
    /// Details of the termination, such as what an engine did wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
}

/// What a player reported for its move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveEval {
    /// In centipawns, for the mover.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cp: Option<i32>,
    /// Moves to mate; negative when the mover is mated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mate: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<u32>,
    /// Simulations (tree search) or nodes (alpha-beta, other engines).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nodes: Option<u64>,
    pub ms: u64,
}

/// The side to move, as stored in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    White,
    Black,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    Rules(Reason),
    /// Both players reported an even score for long enough.
    DrawAdjudicated,
    /// The loser, or both players, reported a lost score for long enough.
    WinAdjudicated,
    Tablebase,
    /// The game reached the ply cap: it has no result and scores half a point.
    #[serde(alias = "ply_cap")]
    Truncated,
    /// The loser exceeded its time.
    TimeForfeit,
    /// The loser's engine failed: no answer, exit, output flood or illegal move.
    Fault,
}

/// Plays a game. Returns `None` if it was stopped before its end.
pub fn play_game(
    white: &mut dyn Player,
    black: &mut dyn Player,
    opening: &Opening,
    settings: &GameSettings,
    adjudicator: Option<&PositionAdjudicator>,
    stop: &Arc<AtomicBool>,
) -> Option<PlayedGame> {
    white.new_game();
    black.new_game();
    let mut game_in_progress = GameInProgress::new(opening, settings, adjudicator);
    loop {
        if stop.load(Relaxed) {
            return None;
        }
        if let Some((winner, termination)) = game_in_progress.over() {
            return Some(game_in_progress.finish(opening, winner, termination, None));
        }
        let turn = game_in_progress.game.turn();
        let player: &mut dyn Player = if turn == Color::White { white } else { black };
        let limit = game_in_progress.limit(turn, stop);
        let started = Instant::now();
        let choice = player.choose(&game_in_progress.game, &limit);
        // An external engine is not charged for the work done before it receives `go`.
        let measured = choice.as_ref().ok().and_then(|choice| choice.elapsed);
        let elapsed = measured.unwrap_or_else(|| started.elapsed());
        if stop.load(Relaxed) {
            // The search may have been interrupted, so its move does not count.
            return None;
        }
        let lost = Some(!turn);
        match choice {
            Err(error) => {
                return Some(game_in_progress.finish(
                    opening,
                    lost,
                    Termination::Fault,
                    Some(error.reason),
                ));
            }
            Ok(choice) => {
                if let Some(over) = game_in_progress.overstepped(turn, elapsed) {
                    let detail = Some(format!("{} ms over its time", over.as_millis()));
                    return Some(game_in_progress.finish(
                        opening,
                        lost,
                        Termination::TimeForfeit,
                        detail,
                    ));
                }
                let eval = move_eval(&choice, elapsed);
                if let Err(error) = game_in_progress.game.play(choice.played) {
                    let detail = Some(error.to_string());
                    return Some(game_in_progress.finish(
                        opening,
                        lost,
                        Termination::Fault,
                        detail,
                    ));
                }
                game_in_progress.add_eval(turn, eval);
            }
        }
    }
}

/// Checks a finished game against its opening and against where the settings end a game. The error
/// describes the first difference.
pub(crate) fn check_game(
    played: &PlayedGame,
    opening: &Opening,
    settings: &GameSettings,
) -> Result<(), String> {
    let mut game_in_progress = GameInProgress::new(opening, settings, None);
    let first = opening.game.ply();
    let plies = played.moves.len();
    if plies.checked_sub(first) != Some(played.evals.len()) {
        return Err(format!("{} move evaluations for {plies} plies", played.evals.len()));
    }
    for (ply, eval) in (first..).zip(&played.evals) {
        if game_in_progress.over().is_some() {
            return Err(format!("the game continues although it was over at ply {ply}"));
        }
        let turn = game_in_progress.game.turn();
        let m = notation::parse_uci(game_in_progress.game.position(), &played.moves[ply])
            .map_err(|error| format!("ply {ply}: {error}"))?;
        game_in_progress.game.play_unchecked(m);
        game_in_progress.add_eval(turn, *eval);
    }
    let Some((winner, termination)) = game_in_progress.over() else {
        return Err(format!("the game is not over after {plies} plies"));
    };
    // Compares the rest: opening, result, reason and the notation of moves.
    let again = game_in_progress.finish(opening, winner, termination, None);
    if again == *played {
        Ok(())
    } else {
        Err("the opening, result, reason or notation of the game differs".to_owned())
    }
}

/// Searches every position of a game again with both players. Returns the plies where they would
/// play another move, or where their scores differ by more than `slack` centipawns. `None` when it
/// was stopped or a player fails.
pub(crate) fn second_guess(
    white: &mut dyn Player,
    black: &mut dyn Player,
    opening: &Opening,
    settings: &GameSettings,
    played: &PlayedGame,
    slack: u32,
    stop: &Arc<AtomicBool>,
) -> Option<Vec<usize>> {
    white.new_game();
    black.new_game();
    let mut game_in_progress = GameInProgress::new(opening, settings, None);
    let mut odd = Vec::new();
    for (ply, sent) in (opening.game.ply()..).zip(&played.evals) {
        let m =
            notation::parse_uci(game_in_progress.game.position(), played.moves.get(ply)?).ok()?;
        let turn = game_in_progress.game.turn();
        let player: &mut dyn Player = if turn == Color::White { white } else { black };
        let choice =
            player.choose(&game_in_progress.game, &game_in_progress.limit(turn, stop)).ok()?;
        if stop.load(Relaxed) {
            return None;
        }
        let own = move_eval(&choice, Duration::ZERO);
        let is_close = match (sent.cp, own.cp) {
            (Some(sent), Some(own)) => sent.abs_diff(own) <= slack,
            // One player sees a mate that the other does not see yet, or there is no score.
            _ => true,
        };
        if choice.played != m || !is_close {
            odd.push(ply);
        }
        game_in_progress.game.play_unchecked(m);
    }
    Some(odd)
}

/// Returns the outcome of positions with a known result, such as tablebase positions.
pub type PositionAdjudicator = dyn Fn(&Game) -> Option<Outcome> + Send + Sync;

/// The state of a game: board, clocks and adjudication.
struct GameInProgress<'a> {
    game: Game,
    settings: &'a GameSettings,
    by_position: Option<&'a PositionAdjudicator>,
    adjudicator: Adjudicator,
    evals: Vec<MoveEval>,
    clocks: Option<Clocks>,
}

impl<'a> GameInProgress<'a> {
    fn new(
        opening: &Opening,
        settings: &'a GameSettings,
        by_position: Option<&'a PositionAdjudicator>,
    ) -> GameInProgress<'a> {
        GameInProgress {
            game: opening.game.clone(),
            settings,
            by_position,
            adjudicator: Adjudicator::new(settings.adjudication),
            evals: Vec::new(),
            clocks: settings.limit.clock.map(Clocks::new),
        }
    }

    fn over(&self) -> Option<(Option<Color>, Termination)> {
        if let Some(outcome) = self.game.outcome() {
            return Some((outcome.winner, Termination::Rules(outcome.reason)));
        }
        if let Some(outcome) = self.by_position.and_then(|adjudicate| adjudicate(&self.game)) {
            return Some((outcome.winner, Termination::Tablebase));
        }
        self.adjudicator.verdict(&self.game)
    }

    fn limit(&self, turn: Color, stop: &Arc<AtomicBool>) -> Limit {
        let clock = self.clocks.as_ref().map(|clocks| clocks.of(turn));
        Limit { clock, ..self.settings.limit.to_limit(stop) }
    }

    /// Charges a move to the clock. Returns by how much the player exceeded its time.
    fn overstepped(&mut self, turn: Color, elapsed: Duration) -> Option<Duration> {
        let margin = Duration::from_millis(self.settings.margin_ms);
        let by_clock = self.clocks.as_mut().and_then(|clocks| clocks.charge(turn, elapsed, margin));
        let allowed = self.settings.limit.movetime_ms.map(Duration::from_millis);
        let by_move = allowed.and_then(|allowed| elapsed.checked_sub(allowed));
        by_clock.or(by_move.filter(|over| *over > margin))
    }

    fn add_eval(&mut self, mover: Color, eval: MoveEval) {
        self.adjudicator.add_score(mover, &eval);
        self.evals.push(eval);
    }

    fn finish(
        self,
        opening: &Opening,
        winner: Option<Color>,
        termination: Termination,
        detail: Option<String>,
    ) -> PlayedGame {
        let mode = self.game.castling_mode();
        let start = self.game.start();
        let is_usual = *start == selfmate_chess::Chess::default();
        PlayedGame {
            fen: (!is_usual).then(|| selfmate_chess::fen::to_fen(start)),
            opening: opening.name.clone(),
            opening_plies: opening.game.ply(),
            moves: self.game.moves().map(|m| m.to_uci(mode).to_string()).collect(),
            evals: self.evals,
            winner: winner.map(Side::from),
            termination,
            detail,
        }
    }
}

struct Clocks {
    control: TimeControl,
    left: [Duration; 2],
    moves: [u32; 2],
}

impl Clocks {
    fn new(control: TimeControl) -> Clocks {
        Clocks { control, left: [Duration::from_millis(control.base_ms); 2], moves: [0; 2] }
    }

    fn of(&self, turn: Color) -> Clock {
        let side = turn as usize;
        let moves_to_go = self.control.moves.map(|moves| moves - self.moves[side] % moves);
        Clock {
            own: self.left[side],
            other: self.left[1 - side],
            increment: Duration::from_millis(self.control.increment_ms),
            moves_to_go,
        }
    }

    /// Subtracts the time of a move. Returns by how much the player exceeded its time.
    fn charge(&mut self, turn: Color, elapsed: Duration, margin: Duration) -> Option<Duration> {
        let side = turn as usize;
        let over = elapsed.checked_sub(self.left[side]).filter(|over| *over > margin);
        self.moves[side] += 1;
        let mut added = self.control.increment_ms;
        if self.control.moves.is_some_and(|moves| self.moves[side].is_multiple_of(moves)) {
            added += self.control.base_ms;
        }
        self.left[side] = self.left[side].saturating_sub(elapsed) + Duration::from_millis(added);
        over
    }
}

fn move_eval(choice: &Choice, elapsed: Duration) -> MoveEval {
    let mut eval = MoveEval {
        depth: choice.depth,
        nodes: choice.nodes,
        ms: elapsed.as_millis() as u64,
        ..MoveEval::default()
    };
    // A network's value is converted to centipawns, so that its games read like all others.
    match choice.score.or_else(|| choice.wdl.map(|wdl| Score::from_value(wdl.value()))) {
        Some(Score::Centipawns(value)) => eval.cp = Some(value),
        Some(Score::Mate(moves)) => eval.mate = Some(moves),
        None => {}
    }
    eval
}

impl From<Color> for Side {
    fn from(color: Color) -> Side {
        if color == Color::White { Side::White } else { Side::Black }
    }
}

impl PlayedGame {
    pub fn white_points(&self) -> f64 {
        match self.winner {
            Some(Side::White) => 1.0,
            Some(Side::Black) => 0.0,
            None => 0.5,
        }
    }

    /// Replays the moves. The error names the first illegal move.
    pub fn replay(&self) -> Result<Game, notation::MoveError> {
        let start = match &self.fen {
            Some(fen) => selfmate_chess::fen::parse_game(fen)
                .map_err(|error| notation::MoveError::Syntax(error.to_string()))?,
            None => Game::new(),
        };
        self.moves.iter().try_fold(start, |mut game, text| {
            let m = notation::parse_uci(game.position(), text)?;
            game.play_unchecked(m);
            Ok(game)
        })
    }
}

#[cfg(test)]
mod tests {
    use selfmate_search::PlayerError;
    use selfmate_search::player::SearchInfo as Seen;

    use super::*;

    /// Plays the first legal move and reports that it took this long.
    struct Measured(Option<Duration>);

    impl Player for Measured {
        fn name(&self) -> &str {
            "measured"
        }

        fn choose_observed(
            &mut self,
            game: &Game,
            _: &Limit,
            _: &mut dyn FnMut(&Seen),
        ) -> Result<Choice, PlayerError> {
            Ok(Choice { elapsed: self.0, ..Choice::bare(game.legal_moves()[0]) })
        }
    }

    #[test]
    fn a_player_that_measures_its_own_time_is_charged_that_time() {
        let hour = Duration::from_secs(3600);
        for limit in [
            MatchLimit::movetime(60_000),
            MatchLimit { clock: "60+0".parse().ok(), ..MatchLimit::default() },
        ] {
            let adjudication = Adjudication { max_plies: Some(4), ..Adjudication::default() };
            let settings = GameSettings { limit, adjudication, ..GameSettings::default() };
            for (time, expected) in [
                (None, Termination::Truncated),
                (Some(Duration::from_millis(7)), Termination::Truncated),
                (Some(hour), Termination::TimeForfeit),
            ] {
                let opening = Opening { game: Game::new(), name: None };
                let stop = Arc::new(AtomicBool::new(false));
                let (mut white, mut black) = (Measured(None), Measured(time));
                let played = play_game(&mut white, &mut black, &opening, &settings, None, &stop);
                let played = played.unwrap();
                assert_eq!(played.termination, expected, "{time:?}");
                if expected == Termination::Truncated && time.is_some() {
                    assert_eq!(played.evals[1].ms, 7);
                }
            }
        }
    }
}
