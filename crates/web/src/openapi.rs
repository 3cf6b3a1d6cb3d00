//! The OpenAPI document, generated from the handlers.

use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};

use utoipa::openapi::{Content, Ref, RefOr};

use crate::api::{about, cluster, endgame, feed, game, inside, matches, play, runs};

#[derive(OpenApi)]
#[openapi(
    info(title = "selfmate", description = "Training runs, games, play, searches and the arena."),
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
        play::player,
        play::choose_move,
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
        endgame::values,
        endgame::position,
        cluster::cluster,
    ),
    components(schemas(crate::error::Problem, crate::view::ChoiceView, crate::tree::Ready))
)]
struct Document;

pub fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    let components = document.components.get_or_insert_with(Default::default);
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme("token", token);
    // Reading needs no token, and a server without a token needs none at all.
    let needs = SecurityRequirement::new("token", Vec::<String>::new());
    document.security = Some(vec![needs, SecurityRequirement::default()]);
    for item in document.paths.paths.values_mut() {
        item.get.iter_mut().for_each(|operation| add_rejections(operation, false));
        item.post.iter_mut().for_each(|operation| add_rejections(operation, true));
    }
    document
}

/// Adds the responses that come from the layers before the handler; handlers list only their own.
fn add_rejections(operation: &mut Operation, changes_state: bool) {
    let mut add = |status: &str, description: &str| {
        let responses = &mut operation.responses.responses;
        responses.entry(status.to_owned()).or_insert_with(|| RefOr::T(problem(description)));
    };
    add("403", "Host or Origin is not allowed");
    add("408", "the response took too long");
    add("503", "the server is busy");
    if changes_state {
        add("401", "the token is missing or wrong");
    }
    if operation.request_body.is_some() {
        add("400", "the body is not JSON or does not match the schema");
        add("413", "the body is too large");
        add("415", "the body is not declared as application/json");
        add("422", "the body matches the schema, but the request is not possible");
    } else if operation.parameters.is_some() {
        add("400", "a parameter does not match its schema");
    }
}

fn problem(description: &str) -> Response {
    let content = Content::new(Some(Ref::from_schema_name("Problem")));
    ResponseBuilder::new().description(description).content("application/json", content).build()
}
