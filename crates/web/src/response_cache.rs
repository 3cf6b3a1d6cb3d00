//! Answers about runs that were given a moment ago, for whoever asks the same: many open pages cost
//! as much as one.

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

/// How long an answer is given again.
const MOMENT: Duration = Duration::from_secs(1);
/// Answers that are kept; more are made anew each time.
const MOST: usize = 64;

/// What was answered within the last moment.
#[derive(Default)]
pub struct ResponseCache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Counts changes of state: what was asked before one is not kept after it.
    changes: u64,
    answers: HashMap<Question, (Instant, Answer)>,
}

/// A path with its query, and how the answer may be encoded.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Question(String, Option<HeaderValue>);

#[derive(Clone)]
struct Answer {
    headers: HeaderMap,
    body: Bytes,
}

impl Question {
    /// `None` for what changes state, flows, is live or not about runs.
    fn of(request: &Request) -> Option<Question> {
        let path = request.uri().path();
        let is_kept = path.starts_with("/api/runs")
            && !["/feed", "/live"].iter().any(|end| path.ends_with(end));
        (is_kept && *request.method() == Method::GET).then(|| {
            let encoding = request.headers().get(header::ACCEPT_ENCODING);
            Question(request.uri().to_string(), encoding.cloned())
        })
    }
}

impl ResponseCache {
    /// The answer, if it was given a moment ago; else how many changes there were so far.
    fn find(&self, question: &Question) -> Result<Answer, u64> {
        let kept = lock(&self.0);
        match kept.answers.get(question) {
            Some((given, answer)) if given.elapsed() < MOMENT => Ok(answer.clone()),
            _ => Err(kept.changes),
        }
    }

    /// Keeps an answer to what was asked after so many changes.
    fn keep(&self, question: Question, answer: Answer, changes: u64) {
        let mut kept = lock(&self.0);
        kept.answers.retain(|_, (given, _)| given.elapsed() < MOMENT);
        if kept.changes == changes && kept.answers.len() < MOST {
            kept.answers.insert(question, (Instant::now(), answer));
        }
    }

    fn forget(&self) {
        let mut kept = lock(&self.0);
        kept.changes += 1;
        kept.answers.clear();
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.headers_mut() = self.headers;
        response
    }
}

/// The layer that answers again.
pub async fn layer(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let changes_state = !matches!(*request.method(), Method::GET | Method::HEAD);
    let Some(question) = Question::of(&request) else {
        let response = next.run(request).await;
        if changes_state {
            app.recent.forget();
        }
        return response;
    };
    let changes = match app.recent.find(&question) {
        Ok(answer) => return answer.into_response(),
        Err(changes) => changes,
    };
    let (head, body) = next.run(request).await.into_parts();
    if head.status != StatusCode::OK {
        return Response::from_parts(head, body);
    }
    // Answers are made whole by us before they are sent: they have an end.
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return ApiError::Internal("the answer broke off".into()).into_response();
    };
    let answer = Answer { headers: head.headers, body };
    app.recent.keep(question, answer.clone(), changes);
    answer.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(method: Method, path: &str) -> Option<Question> {
        Question::of(&Request::builder().method(method).uri(path).body(Body::empty()).unwrap())
    }

    fn answer(text: &'static str) -> Answer {
        Answer { headers: HeaderMap::new(), body: Bytes::from_static(text.as_bytes()) }
    }

    #[test]
    fn what_changes_state_flows_or_is_live_is_never_kept() {
        assert!(question(Method::GET, "/api/runs").is_some());
        assert!(question(Method::GET, "/api/runs/zero/curves").is_some());
        assert!(question(Method::GET, "/api/runs/zero/feed?from=1").is_none());
        assert!(question(Method::GET, "/api/runs/zero/live").is_none());
        assert!(question(Method::POST, "/api/runs").is_none());
        assert!(question(Method::GET, "/api/matches").is_none());
    }

    #[test]
    fn an_answer_is_given_again_until_something_changes() {
        let recent = ResponseCache::default();
        let asked = || question(Method::GET, "/api/runs?x=1").unwrap();
        let changes = recent.find(&asked()).map(|_| ()).unwrap_err();
        recent.keep(asked(), answer("one"), changes);
        assert_eq!(recent.find(&asked()).unwrap_or(answer("none")).body, "one");
        assert!(recent.find(&question(Method::GET, "/api/runs").unwrap()).is_err());
        recent.forget();
        assert!(recent.find(&asked()).is_err());
        recent.keep(asked(), answer("made before the change"), changes);
        assert!(recent.find(&asked()).is_err());
    }

    #[test]
    fn many_answers_are_not_kept() {
        let recent = ResponseCache::default();
        for number in 0..2 * MOST {
            let question = question(Method::GET, &format!("/api/runs?{number}")).unwrap();
            recent.keep(question, answer("small"), 0);
        }
        assert_eq!(lock(&recent.0).answers.len(), MOST);
    }
}
