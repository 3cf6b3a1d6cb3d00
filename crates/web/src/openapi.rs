//! The description of the API, made from its handlers.

use utoipa::OpenApi;

use crate::api::{about, feed, game, inside, matches, play, runs};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "selfmate",
        description = "The lab in a browser: runs, games, play, searches, the arena."
    ),
    paths(
        about::about,
        about::metrics,
        runs::list,
        runs::start,
        runs::show,
        runs::curves,
        feed::feed,
        runs::resume,
        runs::stop,
        game::generations,
        game::list,
        game::show,
        game::latest,
        play::position,
        play::think,
        play::review,
        play::pgn,
        inside::grow,
        inside::node,
        matches::list,
        matches::start,
        matches::show,
        matches::stop,
        matches::resume,
        matches::game,
        matches::pgn,
        matches::ladders,
    ),
    components(schemas(crate::view::ChoiceView, crate::tree::Ready))
)]
struct Document;

/// The document at `/openapi.json`.
pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}
