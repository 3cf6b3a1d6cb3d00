//! Counters of the server, for `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;

/// Counts since the server started.
#[derive(Debug, Default)]
pub struct Counters {
    /// Responses by the first digit of their status.
    responses: [AtomicU64; 6],
    refused: AtomicU64,
    searches: AtomicU64,
    steps: AtomicU64,
}

impl Counters {
    fn responded(&self, status: u16) {
        self.responses[usize::from(status / 100).min(5)].fetch_add(1, Relaxed);
    }

    /// A request was rejected by access control.
    pub fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub fn searched(&self) {
        self.searches.fetch_add(1, Relaxed);
    }

    pub fn stepped(&self) {
        self.steps.fetch_add(1, Relaxed);
    }
}

pub async fn layer(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    app.counters.responded(response.status().as_u16());
    response
}

/// All metrics in Prometheus text format.
pub fn prometheus(app: &App) -> String {
    let mut text = String::new();
    let mut write = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
        text += &format!("# HELP selfmate_{name} {help}\n# TYPE selfmate_{name} {kind}\n");
        for (labels, value) in samples {
            text += &format!("selfmate_{name}{labels} {value}\n");
        }
    };
    let counters = &app.counters;
    let one = |value: f64| vec![(String::new(), value)];
    let responses = counters.responses.iter().enumerate().skip(1);
    let responses: Vec<_> = responses
        .map(|(class, count)| (format!("{{class=\"{class}xx\"}}"), count.load(Relaxed) as f64))
        .collect();
    write("http_responses_total", "counter", "Responses by class of status.", &responses);
    let refused = counters.refused.load(Relaxed) as f64;
    write(
        "http_refused_total",
        "counter",
        "Requests rejected for Host, Origin or token.",
        &one(refused),
    );
    let searches = counters.searches.load(Relaxed) as f64;
    write("searches_total", "counter", "Searches started.", &one(searches));
    let steps = counters.steps.load(Relaxed) as f64;
    write("openenv_steps_total", "counter", "Steps taken in environments.", &one(steps));
    let episodes = app.episodes.len() as f64;
    write("openenv_sessions", "gauge", "Environments in use.", &one(episodes));
    let trainings = app.trainings.names().len() as f64;
    write("trainings", "gauge", "Trainings that this server runs.", &one(trainings));
    let mut games = Vec::new();
    let mut elo = Vec::new();
    for summary in app.runs.summaries(&app.trainings) {
        let labels = format!("{{run=\"{}\"}}", escape(&summary.name));
        games.push((labels.clone(), summary.games as f64));
        elo.extend(summary.rating.map(|rating| (labels, rating.elo)));
    }
    write("run_games", "gauge", "Self-play games of a run.", &games);
    write("run_elo", "gauge", "The newest rating of a run.", &elo);
    text
}

/// Escapes a label value.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out_of_their_quotes() {
        assert_eq!(escape("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
