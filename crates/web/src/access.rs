//! Access control: which requests are allowed. The checks are pure functions of the request head;
//! `layer` calls them before anything else.
//!
//! A page of another site must not reach this server through the browser of its visitor. Three
//! checks prevent that: the Host must be an address or a known name (which defeats DNS rebinding),
//! the Origin must be this server, and bodies must be JSON, which HTML forms cannot send. On
//! servers that other machines can reach, changes also need a token.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

#[derive(Debug)]
pub struct Access {
    /// Hashed, so that the comparison takes constant time.
    token: Option<blake3::Hash>,
    hosts: Vec<String>,
}

impl Access {
    pub fn new(token: Option<&str>, hosts: &[String]) -> Access {
        let token = token.map(|token| blake3::hash(token.as_bytes()));
        Access { token, hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect() }
    }

    pub fn asks_for_token(&self) -> bool {
        self.token.is_some()
    }

    /// Allows a request or returns why it is rejected.
    pub fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), ApiError> {
        let host = only(headers, &header::HOST)?
            .ok_or_else(|| ApiError::Forbidden("the Host header is missing".into()))?;
        if !self.is_known_host(host) {
            return Err(ApiError::Forbidden(format!(
                "Host '{host}' is unknown: expected an address, localhost or a name given with --host"
            )));
        }
        if let Some(origin) = only(headers, &header::ORIGIN)?
            && !is_same_origin(origin, host)
        {
            return Err(ApiError::Forbidden(format!(
                "Origin '{origin}' is not this server: expected http://{host}"
            )));
        }
        if only(headers, &FETCH_SITE)?
            .is_some_and(|site| matches!(site, "cross-site" | "same-site"))
        {
            // Following a link to the page is allowed; fetching from another site is not.
            let follows_link = *method == Method::GET
                && only(headers, &FETCH_MODE)? == Some("navigate")
                && path == "/";
            if !follows_link {
                return Err(ApiError::Forbidden(
                    "the request comes from a page of another site".into(),
                ));
            }
        }
        if changes_state(method, headers) && !self.is_authorised(headers)? {
            return Err(ApiError::Token);
        }
        Ok(())
    }

    /// An attacker's domain name may resolve to this server, so only known names are allowed; IP
    /// addresses are always safe.
    fn is_known_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((address, port)) if is_port(port) => {
                    return address.parse::<Ipv6Addr>().is_ok();
                }
                _ => return false,
            },
            None => match host.split_once(':') {
                Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
                Some(_) => return false,
                None => host,
            },
        };
        let name = name.to_ascii_lowercase();
        name == "localhost" || name.parse::<Ipv4Addr>().is_ok() || self.hosts.contains(&name)
    }

    fn is_authorised(&self, headers: &HeaderMap) -> Result<bool, ApiError> {
        let Some(token) = &self.token else { return Ok(true) };
        let given = only(headers, &header::AUTHORIZATION)?;
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        // Comparing BLAKE3 hashes takes constant time.
        Ok(given.is_some_and(|given| blake3::hash(given.as_bytes()) == *token))
    }
}

pub async fn layer(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let uri = request.uri();
    match app.access.check(request.method(), uri.path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => {
            app.counters.refused();
            error.into_response()
        }
    }
}

/// The single value of a header. Repeated headers are rejected, because proxies and servers read
/// them differently.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let reject =
        |what: &str| ApiError::Forbidden(format!("{name} {what}: expected one plain value"));
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| reject("is not text")),
        (Some(_), Some(_)) => Err(reject("occurs twice")),
    }
}

/// Our own page has this host as its origin, possibly with https from a proxy.
fn is_same_origin(origin: &str, host: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| origin.strip_prefix(scheme).is_some_and(|own| own.eq_ignore_ascii_case(host)))
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A WebSocket starts with GET but may change state.
fn changes_state(method: &Method, headers: &HeaderMap) -> bool {
    !matches!(*method, Method::GET | Method::HEAD) || headers.contains_key(header::UPGRADE)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn check(access: &Access, method: &Method, pairs: &[(&'static str, &str)]) -> Result<(), u16> {
        let answer = access.check(method, "/api/runs", &headers(pairs));
        answer.map_err(|error| error.status().as_u16())
    }

    #[test]
    fn only_addresses_and_known_names_are_allowed_as_hosts() {
        let access = Access::new(None, &["Lab.Example".to_owned()]);
        for host in [
            "localhost",
            "localhost:8000",
            "LOCALHOST:1",
            "127.0.0.1",
            "10.0.0.7:80",
            "[::1]:9",
            "[fe80::1]",
            "lab.example:8000",
        ] {
            assert_eq!(check(&access, &Method::GET, &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[::1",
            "[x]",
            "localhost:80:80",
            "localhost:x",
            "127.0.0.1@evil.example",
            "lab.example.",
        ] {
            assert_eq!(check(&access, &Method::GET, &[("host", host)]), Err(403), "{host}");
        }
        assert_eq!(check(&access, &Method::GET, &[]), Err(403));
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(check(&access, &Method::GET, &twice), Err(403));
    }

    #[test]
    fn only_pages_of_this_server_may_send_requests() {
        let access = Access::new(None, &[]);
        let with = |name: &'static str, value: &str| {
            check(&access, &Method::POST, &[("host", "localhost:8000"), (name, value)])
        };
        assert_eq!(with("origin", "http://localhost:8000"), Ok(()));
        assert_eq!(with("origin", "https://localhost:8000"), Ok(()));
        for origin in
            ["null", "http://localhost", "http://localhost:8001", "http://evil.example", ""]
        {
            assert_eq!(with("origin", origin), Err(403), "{origin}");
        }
        assert_eq!(with("sec-fetch-site", "same-origin"), Ok(()));
        assert_eq!(with("sec-fetch-site", "none"), Ok(()));
        assert_eq!(with("sec-fetch-site", "cross-site"), Err(403));
        assert_eq!(with("sec-fetch-site", "same-site"), Err(403));
    }

    #[test]
    fn a_link_from_another_site_can_only_open_the_page() {
        let access = Access::new(None, &[]);
        let pairs = [
            ("host", "localhost"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
        ];
        assert_eq!(access.check(&Method::GET, "/", &headers(&pairs)), Ok(()));
        assert_eq!(check(&access, &Method::GET, &pairs), Err(403));
        assert!(access.check(&Method::POST, "/", &headers(&pairs)).is_err());
    }

    #[test]
    fn changes_need_the_token_but_reading_does_not() {
        let access = Access::new(Some("secret"), &[]);
        let with = |method, token: &str| {
            check(&access, &method, &[("host", "10.0.0.7"), ("authorization", token)])
        };
        assert_eq!(check(&access, &Method::GET, &[("host", "10.0.0.7")]), Ok(()));
        assert_eq!(check(&access, &Method::POST, &[("host", "10.0.0.7")]), Err(401));
        assert_eq!(with(Method::POST, "Bearer secret"), Ok(()));
        for token in ["Bearer secre", "Bearer secrets", "Bearer ", "secret", "Basic secret"] {
            assert_eq!(with(Method::DELETE, token), Err(401), "{token}");
        }
        let upgrade = [("host", "10.0.0.7"), ("upgrade", "websocket")];
        assert_eq!(check(&access, &Method::GET, &upgrade), Err(401));
    }
}
