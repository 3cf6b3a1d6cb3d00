//! A finished game of a run or a match.

use selfmate_arena::MatchGame;
use selfmate_arena::game::Side;
use selfmate_chess::fen::to_fen;
use selfmate_chess::{Color, Game, Move, Position};
use selfmate_run::{GameRecord, RecordError};
use selfmate_search::player::Score;
use selfmate_search::{Wdl, white_value};
use serde::Serialize;
use utoipa::ToSchema;

use super::position::{MoveView, OutcomeView};
use super::search_info::value_of;

/// The number of moves shown of a policy.
const SHARES: usize = 12;

/// A finished game.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct GameView {
    /// Number in the run or match.
    pub number: u64,
    /// Name of White.
    pub white: String,
    /// Name of Black.
    pub black: String,
    /// The start position as FEN.
    pub start: String,
    /// The moves.
    pub plies: Vec<PlyView>,
    /// How it ended.
    pub outcome: OutcomeView,
    /// The name of the opening, if it has one.
    pub opening: Option<String>,
}

/// One move of a game.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PlyView {
    /// The move.
    #[serde(flatten)]
    pub played: MoveView,
    /// The position after it.
    pub fen: String,
    /// True when the move gives check.
    pub check: bool,
    /// White's expected result before the move, from -1 to 1, as its player saw it.
    pub value: Option<f32>,
    /// The probability of a draw.
    pub draw: Option<f32>,
    /// Search time in milliseconds.
    pub ms: Option<u64>,
    /// The policy before the move, most likely moves first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<Share>,
}

/// A move and its probability.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Share {
    /// The move.
    #[serde(flatten)]
    pub played: MoveView,
    /// From 0 to 1.
    pub share: f32,
}

/// A self-play game with the search results of its moves.
pub fn selfplay(record: &GameRecord) -> Result<GameView, RecordError> {
    let mut recorded = vec![None; record.moves.len() + 1];
    record.replay(|game, legal, position| {
        let mut policy: Vec<(Move, f32)> =
            legal.iter().copied().zip(position.policy.iter().copied()).collect();
        policy.sort_by(|a, b| b.1.total_cmp(&a.1));
        policy.truncate(SHARES);
        let shares = policy
            .into_iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(m, share)| Share { played: MoveView::new(game.position(), m), share });
        let white = Wdl::new(position.value, position.draw).for_white(game.turn());
        recorded[usize::from(position.ply)] = Some((white.value(), white.draw, shares.collect()));
    })?;
    let player = format!("step {}", record.network);
    let plies = plies(record.start_game()?, &record.moves, |ply, view| {
        if let Some((value, draw, policy)) = recorded[ply].take() {
            (view.value, view.draw, view.policy) = (Some(value), Some(draw), policy);
        }
    });
    Ok(GameView {
        number: record.number,
        white: player.clone(),
        black: player,
        start: to_fen(record.start_game()?.position()),
        plies,
        outcome: record.outcome.into(),
        opening: None,
    })
}

/// A game of a match between A and B; `None` when its moves cannot be replayed.
pub fn matched(record: &MatchGame, a: &str, b: &str) -> Option<GameView> {
    let game = record.played.replay().ok()?;
    let moves: Vec<Move> = game.moves().collect();
    let start = Game::from_position(game.start().clone());
    let first = record.played.opening_plies;
    let plies = plies(start.clone(), &moves, |ply, view| {
        let Some(eval) = ply.checked_sub(first).and_then(|ply| record.played.evals.get(ply)) else {
            return;
        };
        view.ms = Some(eval.ms);
        // `fen` is the position after the move.
        let mover = Color::from_white(view.fen.split(' ').nth(1) == Some("b"));
        let value = match (eval.mate, eval.cp) {
            (Some(moves), _) => Some(if moves > 0 { 1.0 } else { -1.0 }),
            (None, cp) => cp.map(|cp| value_of(Score::Centipawns(cp))),
        };
        view.value = value.map(|value: f32| white_value(value, mover));
    });
    let (white, black) = if record.a_plays == Side::White { (a, b) } else { (b, a) };
    let result = match record.played.winner {
        Some(Side::White) => "1-0",
        Some(Side::Black) => "0-1",
        None => "1/2-1/2",
    };
    let why = record.played.termination.describe();
    Some(GameView {
        number: record.game,
        white: white.to_owned(),
        black: black.to_owned(),
        start: to_fen(start.position()),
        plies,
        outcome: OutcomeView {
            result: result.to_owned(),
            reason: match &record.played.detail {
                Some(detail) => format!("{why}: {detail}"),
                None => why,
            },
        },
        opening: record.played.opening.clone(),
    })
}

/// The moves of a game, each completed by `complete`.
fn plies(
    mut game: Game,
    moves: &[Move],
    mut complete: impl FnMut(usize, &mut PlyView),
) -> Vec<PlyView> {
    let mut plies = Vec::with_capacity(moves.len());
    for (ply, &m) in moves.iter().enumerate() {
        let played = MoveView::new(game.position(), m);
        game.play_unchecked(m);
        let mut view = PlyView {
            played,
            fen: to_fen(game.position()),
            check: game.position().is_check(),
            value: None,
            draw: None,
            ms: None,
            policy: Vec::new(),
        };
        complete(ply, &mut view);
        plies.push(view);
    }
    plies
}

#[cfg(test)]
mod tests {
    use selfmate_chess::notation::parse_uci;
    use selfmate_chess::{Outcome, Reason};
    use selfmate_run::PositionRecord;

    use super::*;

    #[test]
    fn values_are_for_white_and_policies_are_sorted() {
        let mut game = Game::new();
        for text in ["f2f3", "e7e5", "g2g4", "d8h4"] {
            game.play(parse_uci(game.position(), text).unwrap()).unwrap();
        }
        let mut policy = vec![0.0; 20];
        (policy[3], policy[7]) = (0.25, 0.75);
        let recorded = PositionRecord { ply: 1, value: 0.5, draw: 0.25, policy };
        let record = GameRecord {
            number: 7,
            network: 40,
            start: None,
            moves: game.moves().collect(),
            outcome: Outcome { winner: Some(Color::Black), reason: Reason::Checkmate },
            positions: vec![recorded],
        };
        let view = selfplay(&record).unwrap();
        assert_eq!(view.plies.len(), 4);
        assert_eq!(view.plies[1].value, Some(-0.5));
        let shares: Vec<f32> = view.plies[1].policy.iter().map(|share| share.share).collect();
        assert_eq!(shares, [0.75, 0.25]);
        assert_eq!((view.plies[0].value, view.plies[3].check), (None, true));
        assert_eq!(view.outcome.result, "0-1");
    }
}
