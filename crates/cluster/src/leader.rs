//! Leader election: a broker account has one coordinator, because two would take each other's games.
//!
//! A candidate asks for others, subscribes, and asks again. An established leader stays; among
//! candidates that start at the same time, the one with the lowest id stays. Every candidate
//! subscribes before it asks for the second time, so of any two at least one hears of the other, and
//! both apply the same rule. A leader that dies is not replaced: the user starts another.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use crate::broker::Broker;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::key::Key;
use crate::message::{decode, encode};
use crate::subject::{HERE, WorkerName};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Candidate {
    /// Random.
    id: Hash,
    /// Name of the run or match.
    run: String,
    /// Whether it has won its election.
    is_settled: bool,
}

impl Candidate {
    /// Whether `other` stays and `self` has to stop.
    fn yields_to(&self, other: &Candidate) -> bool {
        other.id != self.id
            && !self.is_settled
            && (other.is_settled || other.id.as_bytes() < self.id.as_bytes())
    }
}

/// How long to wait for the answer of a leader.
const REPLY_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait for candidates that start at the same time.
const ELECTION_TIME: Duration = Duration::from_millis(500);

/// Becomes the leader; an error if another coordinator is. Afterwards a background task answers later
/// candidates for as long as the runtime lives.
pub async fn claim(broker: &Broker, run: &str, url: &str) -> Result<(), ClusterError> {
    let doing = "looking for another coordinator";
    let name = WorkerName::from_any("learner");
    let id = Key::random()?.token(&name, &Hash::of(run.as_bytes()), 0);
    let candidate = Candidate { id, run: run.to_owned(), is_settled: false };
    let taken =
        |other: &Candidate| ClusterError::Taken { url: url.to_owned(), run: other.run.clone() };
    // A leader that does not answer does not count.
    if let Ok(Some(answer)) = broker.request(HERE, encode(&candidate), REPLY_TIMEOUT).await
        && let Ok(other) = decode::<Candidate>(&answer)
        && candidate.yields_to(&other)
    {
        return Err(taken(&other));
    }
    let client = broker.client();
    let own = Arc::new(Mutex::new((candidate.clone(), None)));
    let mut asked = client.subscribe(HERE).await.map_err(ClusterError::broker(doing))?;
    let (answering, replies) = (Arc::clone(&own), client.clone());
    tokio::spawn(async move {
        while let Some(message) = asked.next().await {
            let Ok(other) = decode::<Candidate>(&message.payload) else { continue };
            let answer = {
                let mut own = answering.lock().unwrap_or_else(PoisonError::into_inner);
                if own.0.yields_to(&other) {
                    own.1 = Some(other.clone());
                }
                (other.id != own.0.id).then(|| own.0.clone())
            };
            if let (Some(answer), Some(reply)) = (answer, message.reply) {
                // If this is lost, the other candidate's second request gets another answer.
                let _ = replies.publish(reply, encode(&answer).into()).await;
            }
        }
    });
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.map_err(ClusterError::broker(doing))?;
    let question = client.publish_with_reply(HERE, inbox, encode(&candidate).into()).await;
    question.map_err(ClusterError::broker(doing))?;
    let until = tokio::time::Instant::now() + ELECTION_TIME;
    while let Ok(Some(answer)) = tokio::time::timeout_at(until, answers.next()).await {
        if let Ok(other) = decode::<Candidate>(&answer.payload)
            && candidate.yields_to(&other)
        {
            return Err(taken(&other));
        }
    }
    let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(other) = &own.1 {
        return Err(taken(other));
    }
    own.0.is_settled = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_candidates_exactly_one_yields() {
        let candidate = |name: &[u8], is_settled| {
            let (id, run) = (Hash::of(name), "a".to_owned());
            Candidate { id, run, is_settled }
        };
        let pairs = [(false, false), (true, false), (false, true)];
        for (one, other) in pairs.map(|(a, b)| (candidate(b"one", a), candidate(b"other", b))) {
            assert_ne!(one.yields_to(&other), other.yields_to(&one), "{one:?} {other:?}");
        }
        let one = candidate(b"one", false);
        assert!(!one.yields_to(&one));
        assert!(one.yields_to(&candidate(b"other", true)));
    }
}
