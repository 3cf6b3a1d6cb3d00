//! A short-lived cache of responses about runs, so that many open pages cost as much as one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;
use crate::run::lock;

/// How long a response is reused.
const LIFETIME: Duration = Duration::from_secs(1);
/// The maximum number of cached responses; further ones are not cached.
const MAX_RESPONSES: usize = 64;

/// Responses of the last second.
#[derive(Default)]
pub struct ResponseCache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Number of state changes: a response computed before a change is not cached after it.
    changes: u64,
    responses: HashMap<CacheKey, (Instant, CachedResponse)>,
}

/// The cache key: path and query, and the accepted encoding.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CacheKey(String, Option<HeaderValue>);

#[derive(Clone)]
struct CachedResponse {
    headers: HeaderMap,
    body: Bytes,
}

impl CacheKey {
    /// `None` for requests that change state, for streams and live data, and for anything except
    /// runs.
    fn of(request: &Request) -> Option<CacheKey> {
        let path = request.uri().path();
        let is_kept = path.starts_with("/api/runs")
            && !["/feed", "/live"].iter().any(|end| path.ends_with(end));
        (is_kept && *request.method() == Method::GET).then(|| {
            let encoding = request.headers().get(header::ACCEPT_ENCODING);
            CacheKey(request.uri().to_string(), encoding.cloned())
        })
    }
}

impl ResponseCache {
    /// The cached response, or else the current number of state changes.
    fn find(&self, key: &CacheKey) -> Result<CachedResponse, u64> {
        let kept = lock(&self.0);
        match kept.responses.get(key) {
            Some((given, answer)) if given.elapsed() < LIFETIME => Ok(answer.clone()),
            _ => Err(kept.changes),
        }
    }

    /// Caches a response unless the state has changed since `changes`.
    fn insert(&self, key: CacheKey, answer: CachedResponse, changes: u64) {
        let mut kept = lock(&self.0);
        kept.responses.retain(|_, (given, _)| given.elapsed() < LIFETIME);
        if kept.changes == changes && kept.responses.len() < MAX_RESPONSES {
            kept.responses.insert(key, (Instant::now(), answer));
        }
    }

    fn clear(&self) {
        let mut kept = lock(&self.0);
        kept.changes += 1;
        kept.responses.clear();
    }
}

impl IntoResponse for CachedResponse {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.headers_mut() = self.headers;
        response
    }
}

pub async fn layer(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let changes_state = !matches!(*request.method(), Method::GET | Method::HEAD);
    let Some(key) = CacheKey::of(&request) else {
        let response = next.run(request).await;
        if changes_state {
            app.response_cache.clear();
        }
        return response;
    };
    let changes = match app.response_cache.find(&key) {
        Ok(answer) => return answer.into_response(),
        Err(changes) => changes,
    };
    let (head, body) = next.run(request).await.into_parts();
    if head.status != StatusCode::OK {
        return Response::from_parts(head, body);
    }
    // These responses are complete documents, so the body has an end.
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return ApiError::Internal("the response ended early".into()).into_response();
    };
    let answer = CachedResponse { headers: head.headers, body };
    app.response_cache.insert(key, answer.clone(), changes);
    answer.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(method: Method, path: &str) -> Option<CacheKey> {
        CacheKey::of(&Request::builder().method(method).uri(path).body(Body::empty()).unwrap())
    }

    fn answer(text: &'static str) -> CachedResponse {
        CachedResponse { headers: HeaderMap::new(), body: Bytes::from_static(text.as_bytes()) }
    }

    #[test]
    fn changes_streams_and_live_data_are_never_cached() {
        assert!(key(Method::GET, "/api/runs").is_some());
        assert!(key(Method::GET, "/api/runs/zero/curves").is_some());
        assert!(key(Method::GET, "/api/runs/zero/feed?from=1").is_none());
        assert!(key(Method::GET, "/api/runs/zero/live").is_none());
        assert!(key(Method::POST, "/api/runs").is_none());
        assert!(key(Method::GET, "/api/matches").is_none());
    }

    #[test]
    fn a_response_is_reused_until_something_changes() {
        let cache = ResponseCache::default();
        let asked = || key(Method::GET, "/api/runs?x=1").unwrap();
        let changes = cache.find(&asked()).map(|_| ()).unwrap_err();
        cache.insert(asked(), answer("one"), changes);
        assert_eq!(cache.find(&asked()).unwrap_or(answer("none")).body, "one");
        assert!(cache.find(&key(Method::GET, "/api/runs").unwrap()).is_err());
        cache.clear();
        assert!(cache.find(&asked()).is_err());
        cache.insert(asked(), answer("made before the change"), changes);
        assert!(cache.find(&asked()).is_err());
    }

    #[test]
    fn the_number_of_cached_responses_is_limited() {
        let cache = ResponseCache::default();
        for number in 0..2 * MAX_RESPONSES {
            let key = key(Method::GET, &format!("/api/runs?{number}")).unwrap();
            cache.insert(key, answer("small"), 0);
        }
        assert_eq!(lock(&cache.0).responses.len(), MAX_RESPONSES);
    }
}
