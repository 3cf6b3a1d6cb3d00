//! What went wrong with a request, as a status and one JSON document.

use std::fmt::Display;
use std::path::Path;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{self, FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Why a request has no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// It is not as `/openapi.json` describes it.
    #[error("{0}")]
    Malformed(String),
    /// It is as described, but chess or the lab does not allow it.
    #[error("{0}")]
    Bad(String),
    /// It comes without the token.
    #[error(
        "this changes something, and this server asks for its token: expected the header Authorization: Bearer TOKEN"
    )]
    Token,
    /// It comes from the wrong place.
    #[error("{0}")]
    Forbidden(String),
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// Things are not as they would have to be.
    #[error("{0}")]
    Conflict(String),
    /// There is too much to do already.
    #[error("{0}")]
    Busy(String),
    /// The body or the head is not what it should be, by the given status.
    #[error("{1}")]
    Refused(StatusCode, String),
    /// Our fault.
    #[error("{0}")]
    Internal(String),
}

/// The body of every answer that is not what was asked for.
#[derive(Serialize, ToSchema)]
pub struct Problem {
    /// What is wrong, for people.
    pub error: String,
}

impl ApiError {
    pub fn status(&self) -> StatusCode {
        match self {
            ApiError::Malformed(_) => StatusCode::BAD_REQUEST,
            ApiError::Bad(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ApiError::Token => StatusCode::UNAUTHORIZED,
            ApiError::Forbidden(_) => StatusCode::FORBIDDEN,
            ApiError::NotFound(_) => StatusCode::NOT_FOUND,
            ApiError::Conflict(_) => StatusCode::CONFLICT,
            ApiError::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
            ApiError::Refused(status, _) => *status,
            ApiError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl ApiError {
    /// The same, without the path of the folder of runs.
    #[must_use]
    pub fn without_paths(self, runs: &Path) -> ApiError {
        let clean = |text: String| without_paths(&text, runs);
        match self {
            ApiError::Malformed(text) => ApiError::Malformed(clean(text)),
            ApiError::Bad(text) => ApiError::Bad(clean(text)),
            ApiError::Token => ApiError::Token,
            ApiError::Forbidden(text) => ApiError::Forbidden(clean(text)),
            ApiError::NotFound(text) => ApiError::NotFound(clean(text)),
            ApiError::Conflict(text) => ApiError::Conflict(clean(text)),
            ApiError::Busy(text) => ApiError::Busy(clean(text)),
            ApiError::Refused(status, text) => ApiError::Refused(status, clean(text)),
            ApiError::Internal(text) => ApiError::Internal(clean(text)),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let problem = Json(Problem { error: self.to_string() });
        let mut response = (self.status(), problem).into_response();
        let headers = response.headers_mut();
        match self {
            ApiError::Busy(_) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            ApiError::Token => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

/// A text as a client may read it: where the runs are is nobody's business. The folder is given as
/// a whole path, as [`crate::app::App`] has it.
pub fn without_paths(text: &dyn Display, runs: &Path) -> String {
    let (text, folder) = (text.to_string(), runs.display().to_string());
    let inside = format!("{folder}{}", std::path::MAIN_SEPARATOR);
    text.replace(&inside, "runs/").replace(&folder, "runs")
}

/// The body of a request, as JSON.
pub struct Posted<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Posted<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Posted<T>, ApiError> {
        let refused = |rejection: JsonRejection| match rejection.status() {
            StatusCode::UNPROCESSABLE_ENTITY => ApiError::Malformed(rejection.body_text()),
            status => ApiError::Refused(status, rejection.body_text()),
        };
        // Serde would take a list of values for a struct too; here only names count.
        let Json(fields) =
            Json::<Map<String, Value>>::from_request(request, state).await.map_err(refused)?;
        let mut value = Value::Object(fields);
        make_whole(&mut value);
        let value = serde_json::from_value(value)
            .map_err(|error| ApiError::Malformed(error.to_string()))?;
        Ok(Posted(value))
    }
}

/// Turns `8.0` into `8`: to JSON they are the same number, to serde only the second is an integer.
fn make_whole(value: &mut Value) {
    // Above this a float does not know its neighbours.
    const EXACT: f64 = (1_u64 << 53) as f64;
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64()
                && number.is_f64()
                && float.fract() == 0.0
                && float.abs() <= EXACT
            {
                *number = (float as i64).into();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(make_whole),
        Value::Object(fields) => fields.values_mut().for_each(make_whole),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// An optional number that also fits into 63 bits: JSON Schema's `int64`, which is what clients in other
/// languages have.
pub fn int64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<u64>::deserialize(deserializer)?;
    match number {
        Some(number) if i64::try_from(number).is_err() => {
            Err(D::Error::custom(format!("{number}: expected a number below 2^63")))
        }
        number => Ok(number),
    }
}

/// What stands behind the question mark.
pub struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asked<T>, ApiError> {
        let refused = |rejection: QueryRejection| {
            ApiError::Refused(rejection.status(), rejection.body_text())
        };
        let Query(value) = Query::from_request_parts(parts, state).await.map_err(refused)?;
        Ok(Asked(value))
    }
}

/// The parts of the path that have names.
pub struct Named<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Named<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named<T>, ApiError> {
        let refused =
            |rejection: PathRejection| ApiError::Refused(rejection.status(), rejection.body_text());
        let extract::Path(value) =
            extract::Path::from_request_parts(parts, state).await.map_err(refused)?;
        Ok(Named(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_floats_are_integers() {
        let mut value =
            serde_json::json!({"a": [8.0, 8.5, -2.0, 1e300], "b": {"c": 7}, "d": "1.0"});
        make_whole(&mut value);
        let whole = serde_json::json!({"a": [8, 8.5, -2, 1e300], "b": {"c": 7}, "d": "1.0"});
        assert_eq!(value, whole);
    }

    #[test]
    fn texts_do_not_say_where_the_runs_are() {
        let clean = |text: &str, runs: &str| without_paths(&text, Path::new(runs));
        assert_eq!(clean("no run 'x' in /home/me/lab", "/home/me/lab"), "no run 'x' in runs");
        assert_eq!(clean("/home/me/lab/a/run.toml: 1.5", "/home/me/lab"), "runs/a/run.toml: 1.5");
    }
}
