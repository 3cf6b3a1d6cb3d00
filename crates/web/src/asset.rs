//! The built page, embedded in the binary. Nothing is read from the file system.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{Embed, EmbeddedFile};

use crate::error::ApiError;

#[derive(Embed)]
#[folder = "$OUT_DIR/page"]
struct Page;

/// Written by `build.rs` when the page was not built.
const MISSING: &str = "missing.txt";

/// Why the page was not built; `None` if it was.
pub fn missing() -> Option<String> {
    let file = Page::get(MISSING)?;
    Some(String::from_utf8_lossy(&file.data).trim().to_owned())
}

/// Serves a file of the page.
pub async fn serve(uri: Uri, headers: HeaderMap) -> Response {
    let path = match uri.path() {
        "/" => "index.html",
        path => path.trim_start_matches('/'),
    };
    if let ("index.html", Some(missing)) = (path, missing()) {
        let text = format!("The API works, but the page is missing: {missing}\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    }
    match Page::get(path) {
        Some(file) if path != MISSING => answer(path, &file, &headers),
        _ => ApiError::NotFound(format!("there is no file '{}'", uri.path())).into_response(),
    }
}

fn answer(path: &str, file: &EmbeddedFile, headers: &HeaderMap) -> Response {
    let hash: String =
        file.metadata.sha256_hash()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    let known =
        headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Body::from(file.data.to_vec()).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    // Names under assets/ contain a hash of their content.
    let cache = if path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json" | "webmanifest") => "application/json",
        _ => "application/octet-stream",
    }
}
