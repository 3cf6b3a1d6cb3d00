//! Endgames: learned values of all squares beside tablebase values.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use selfmate_chess::fen::to_fen;
use selfmate_chess::{Color, Game};
use selfmate_methods::endgame::{MoveDetail, Oracle, Placement, PositionDetail, Trained, ValueMap};
use selfmate_search::white_value;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::blocking::{run_blocking, run_on_core};
use crate::error::{ApiError, PathParams, Problem, QueryParams};
use crate::view::{MoveView, OutcomeView};

/// The maximum time for solving an ending.
const LONGEST: Duration = Duration::from_secs(60);

/// A run that has learned an ending.
#[derive(Serialize, ToSchema)]
pub struct Ending {
    /// The run.
    pub run: String,
    /// `krk`, `kqk` or `kpk`.
    pub ending: &'static str,
    /// White's king, Black's king and White's other piece, as FEN letters.
    pub pieces: Vec<char>,
    /// Steps of its checkpoints.
    pub steps: Vec<u64>,
}

/// The position to evaluate.
#[derive(Clone, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EndgameQuery {
    /// Pieces and their squares such as `Ke3,Rd4`, Black's in lower case.
    #[param(max_length = 32, pattern = r"^[KQRBNPkqrbnp][a-h][1-8](,[KQRBNPkqrbnp][a-h][1-8])*$")]
    place: String,
    /// The side to move; White by default.
    #[serde(default)]
    turn: Turn,
    /// The step of a checkpoint; the newest by default.
    #[serde(default)]
    step: Option<u64>,
}

/// The side to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// White.
    #[default]
    White,
    /// Black.
    Black,
}

impl Turn {
    fn color(self) -> Color {
        Color::from_white(self == Turn::White)
    }

    /// Converts a value of the side to move to White's.
    fn white(self, value: f64) -> f64 {
        // Adding zero avoids negative zero.
        white_value(value, self.color()) + 0.0
    }
}

/// Two pieces are fixed, the third is tried on every square. Values are White's, from -1 to 1, in
/// the order a1, b1, …; `null` for illegal positions.
#[derive(Serialize, ToSchema)]
pub struct ValueMapView {
    /// The run.
    pub run: String,
    /// The step of the checkpoint.
    pub step: u64,
    /// The fixed pieces.
    pub place: String,
    /// The third piece, as a FEN letter.
    pub piece: char,
    /// The side to move.
    pub turn: Turn,
    /// The discount of a win per ply.
    pub discount: f64,
    /// The network's value.
    pub learned: Vec<Option<f64>>,
    /// The tablebase value.
    pub tablebase: Vec<Option<f64>>,
    /// Plies to mate; `null` for draws and illegal positions.
    pub plies: Vec<Option<u8>>,
    /// The mean absolute difference between learned and tablebase values.
    pub error: f64,
}

/// A position of an ending. Values are White's.
#[derive(Serialize, ToSchema)]
pub struct EndingPosition {
    /// The step of the checkpoint.
    pub step: u64,
    /// The position.
    pub fen: String,
    /// The side to move.
    pub turn: Turn,
    /// The network's value.
    pub learned: f64,
    /// The tablebase value.
    pub tablebase: f64,
    /// Plies to mate; `null` for a draw.
    pub plies: Option<u8>,
    /// The outcome; `null` while the game is not over.
    pub outcome: Option<OutcomeView>,
    /// Moves, the best first.
    pub moves: Vec<EndingMove>,
}

/// A move of an ending. Values are White's.
#[derive(Serialize, ToSchema)]
pub struct EndingMove {
    /// The move.
    #[serde(flatten)]
    pub played: MoveView,
    /// The tablebase value after the move.
    pub tablebase: f64,
    /// Plies to mate, counted from before the move; `null` for a draw.
    pub plies: Option<u8>,
    /// The network's value of the position after the move.
    pub learned: f64,
    /// True when no other move is better.
    pub is_best: bool,
}

/// The runs that have learned an ending.
#[utoipa::path(get, path = "/api/endgames", tag = "endgames", responses((status = 200, body = Vec<Ending>)))]
pub async fn list(State(app): State<Arc<App>>) -> Result<Json<Vec<Ending>>, ApiError> {
    run_blocking(&app, |app| {
        let names = selfmate_run::list(&app.runs_path).map_err(|error| app.fault(&error))?;
        // The page of runs reports runs that cannot be read.
        let ending = |run: String| {
            let reader = app.runs.find(&run).ok()?;
            let config = reader.config().ok()??.parse::<toml::Table>().ok()?;
            let ending = selfmate_selfplay::Ending::by_name(config.get("learner")?.as_str()?)?;
            let pieces = ending.material().pieces().iter().map(|piece| piece.char()).collect();
            let steps = reader.steps().ok().filter(|steps| !steps.is_empty())?;
            Some(Ending { run, ending: ending.name(), pieces, steps })
        };
        Ok(Json(names.into_iter().filter_map(ending).collect()))
    })
    .await
}

/// The network of a run and the solved ending.
async fn open(
    app: &Arc<App>,
    run: String,
    step: Option<u64>,
) -> Result<(Arc<Trained>, Oracle), ApiError> {
    let trained = run_blocking(app, move |app| {
        let reader = app.runs.find(&run).map_err(|error| app.absent(&error))?;
        app.endgames.trained(&reader, step).map_err(|error| app.absent(&error))
    })
    .await?;
    let ending = trained.ending();
    let oracle = if app.endgames.is_solved(ending) {
        app.endgames.oracle(ending)?
    } else {
        run_on_core(app, LONGEST, move |app, _| app.endgames.oracle(ending)).await?
    };
    Ok((trained, oracle))
}

/// Learned and tablebase values with a piece on every square.
#[utoipa::path(get, path = "/api/endgames/{run}/values", tag = "endgames", params(("run" = String, Path), EndgameQuery),
    responses((status = 200, body = ValueMapView), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub async fn values(
    State(app): State<Arc<App>>,
    PathParams(run): PathParams<String>,
    QueryParams(asked): QueryParams<EndgameQuery>,
) -> Result<Json<ValueMapView>, ApiError> {
    let placement = parse(&asked.place)?;
    let (trained, oracle) = open(&app, run.clone(), asked.step).await?;
    run_blocking(&app, move |_| {
        let Trained { config, step, network, .. } = &*trained;
        let (turn, discount) = (asked.turn, config.selfplay.discount);
        let map = ValueMap::new(&oracle, network, discount, &placement, turn.color())
            .map_err(|error| ApiError::Bad(error.to_string()))?;
        let white = |values: &[Option<f64>]| -> Vec<Option<f64>> {
            values.iter().map(|value| value.map(|value| turn.white(value))).collect()
        };
        Ok(Json(ValueMapView {
            run,
            step: *step,
            place: placement.to_string(),
            piece: map.piece,
            turn,
            discount,
            learned: white(&map.learned),
            tablebase: white(&map.tablebase),
            plies: map.plies,
            error: map.error,
        }))
    })
    .await
}

/// A position of an ending with its moves.
#[utoipa::path(get, path = "/api/endgames/{run}/position", tag = "endgames", params(("run" = String, Path), EndgameQuery),
    responses((status = 200, body = EndingPosition), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub async fn position(
    State(app): State<Arc<App>>,
    PathParams(run): PathParams<String>,
    QueryParams(asked): QueryParams<EndgameQuery>,
) -> Result<Json<EndingPosition>, ApiError> {
    let placement = parse(&asked.place)?;
    let (trained, oracle) = open(&app, run, asked.step).await?;
    run_blocking(&app, move |_| {
        let Trained { config, step, network, .. } = &*trained;
        let (turn, discount) = (asked.turn, config.selfplay.discount);
        let found = PositionDetail::new(&oracle, network, discount, &placement, turn.color())
            .map_err(|error| ApiError::Bad(error.to_string()))?;
        let one = |detail: &MoveDetail| EndingMove {
            played: MoveView::new(&found.position, detail.played),
            tablebase: turn.white(Oracle::value(detail.verdict, discount)),
            plies: detail.verdict.plies(),
            learned: turn.white(detail.learned),
            is_best: detail.is_best,
        };
        Ok(Json(EndingPosition {
            step: *step,
            fen: to_fen(&found.position),
            turn,
            learned: turn.white(found.learned),
            tablebase: turn.white(Oracle::value(found.verdict, discount)),
            plies: found.verdict.plies(),
            outcome: Game::from_position(found.position.clone()).outcome().map(OutcomeView::from),
            moves: found.moves.iter().map(one).collect(),
        }))
    })
    .await
}

fn is_piece_on_square(text: &str) -> bool {
    match *text.as_bytes() {
        [piece, file, rank] => {
            b"KQRBNPkqrbnp".contains(&piece)
                && (b'a'..=b'h').contains(&file)
                && (b'1'..=b'8').contains(&rank)
        }
        _ => false,
    }
}

fn parse(text: &str) -> Result<Placement, ApiError> {
    if text.len() > 32 {
        return Err(ApiError::Malformed("place: expected at most 32 characters".into()));
    }
    let place = text.parse::<Placement>();
    // Text that does not match the documented pattern is malformed; other errors depend on the
    // board.
    place.map_err(|error| match text.split(',').all(is_piece_on_square) {
        true => ApiError::Bad(format!("place: {error}")),
        false => ApiError::Malformed(format!("place: {error}")),
    })
}
