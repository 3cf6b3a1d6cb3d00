//! Errors of requests, as a status and one JSON document; and extractors that use them.

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

/// Why a request failed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The request does not match `/openapi.json`.
    #[error("{0}")]
    Malformed(String),
    /// The request is well-formed, but the rules of chess or the state of the runs do not allow it.
    #[error("{0}")]
    Bad(String),
    #[error(
        "changes need the token of this server: expected the header Authorization: Bearer TOKEN"
    )]
    Token,
    /// The request comes from another site.
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    NotFound(String),
    /// The current state does not allow the request.
    #[error("{0}")]
    Conflict(String),
    /// The server is at its limits.
    #[error("{0}")]
    Busy(String),
    /// The body or the head is invalid; with this status.
    #[error("{1}")]
    Refused(StatusCode, String),
    #[error("{0}")]
    Internal(String),
}

/// The body of every error response.
#[derive(Serialize, ToSchema)]
pub struct Problem {
    /// A readable message.
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
    /// Removes the path of the runs folder.
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

/// Removes the path of the runs folder from a text for clients. The folder must be an absolute
/// path, as in [`crate::app::App`].
pub fn without_paths(text: &dyn Display, runs: &Path) -> String {
    let (text, folder) = (text.to_string(), runs.display().to_string());
    let inside = format!("{folder}{}", std::path::MAIN_SEPARATOR);
    text.replace(&inside, "runs/").replace(&folder, "runs")
}

/// Extracts the JSON body of a request.
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<JsonBody<T>, ApiError> {
        let refused = |rejection: JsonRejection| match rejection.status() {
            StatusCode::UNPROCESSABLE_ENTITY => ApiError::Malformed(rejection.body_text()),
            status => ApiError::Refused(status, rejection.body_text()),
        };
        // Serde would also accept a list of values for a struct; only named fields are allowed
        // here.
        let Json(fields) =
            Json::<Map<String, Value>>::from_request(request, state).await.map_err(refused)?;
        let mut value = Value::Object(fields);
        make_whole(&mut value);
        let value = serde_json::from_value(value)
            .map_err(|error| ApiError::Malformed(error.to_string()))?;
        Ok(JsonBody(value))
    }
}

/// Turns `8.0` into `8`. They are the same number in JSON, but serde accepts only the second as an
/// integer.
fn make_whole(value: &mut Value) {
    // Above this, floats no longer represent every integer.
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

/// An optional number that fits into 63 bits: JSON Schema's `int64`, which clients in other
/// languages can represent.
pub fn int64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<u64>::deserialize(deserializer)?;
    match number {
        Some(number) if i64::try_from(number).is_err() => {
            Err(D::Error::custom(format!("{number}: expected a number below 2^63")))
        }
        number => Ok(number),
    }
}

/// Extracts the query parameters.
pub struct QueryParams<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<QueryParams<T>, ApiError> {
        let refused = |rejection: QueryRejection| {
            ApiError::Refused(rejection.status(), rejection.body_text())
        };
        let Query(value) = Query::from_request_parts(parts, state).await.map_err(refused)?;
        Ok(QueryParams(value))
    }
}

pub struct PathParams<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PathParams<T>, ApiError> {
        let refused =
            |rejection: PathRejection| ApiError::Refused(rejection.status(), rejection.body_text());
        let extract::Path(value) =
            extract::Path::from_request_parts(parts, state).await.map_err(refused)?;
        Ok(PathParams(value))
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
    fn paths_of_the_runs_folder_are_removed() {
        let clean = |text: &str, runs: &str| without_paths(&text, Path::new(runs));
        assert_eq!(clean("no run 'x' in /home/me/lab", "/home/me/lab"), "no run 'x' in runs");
        assert_eq!(clean("/home/me/lab/a/run.toml: 1.5", "/home/me/lab"), "runs/a/run.toml: 1.5");
    }
}
