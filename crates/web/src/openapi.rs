//! The description of the API, made from its handlers.

use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};

use crate::api::{about, cluster, endgame, feed, game, inside, matches, play, runs};

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
        game::live,
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
        endgame::list,
        endgame::heat,
        endgame::position,
        cluster::cluster,
    ),
    components(schemas(crate::view::ChoiceView, crate::tree::Ready))
)]
struct Document;

/// The document at `/openapi.json`.
pub fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    let components = document.components.get_or_insert_with(Default::default);
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme("token", token);
    // Reading is free, and so is everything on a server without a token.
    let needs = SecurityRequirement::new("token", Vec::<String>::new());
    document.security = Some(vec![needs, SecurityRequirement::default()]);
    document
}
