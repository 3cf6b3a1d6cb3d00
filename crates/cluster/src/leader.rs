//! One learner in an account: two would take each other's games.
//!
//! Whoever arrives asks who is there, listens, and asks again. One that is settled stays; of those
//! that arrive at the same time the one with the lowest card stays. Everybody listens before asking
//! for the second time, so of any two at least one hears of the other, and both by the same rule.

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

/// What learners show to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Card {
    /// Nobody else has it.
    id: Hash,
    /// What is trained or played.
    run: String,
    /// It was there before.
    is_settled: bool,
}

impl Card {
    /// True when whoever shows this stays and `self` has to go.
    fn yields_to(&self, other: &Card) -> bool {
        other.id != self.id
            && !self.is_settled
            && (other.is_settled || other.id.as_bytes() < self.id.as_bytes())
    }
}

/// How long to wait for the answer of another learner.
const ALONE: Duration = Duration::from_secs(3);
/// How long to listen for others that arrive at the same time.
const MEET: Duration = Duration::from_millis(500);

/// Settles down as the only learner; an error when another is there. Answers those that come later
/// for as long as the runtime lives.
pub async fn settle(broker: &Broker, run: &str, url: &str) -> Result<(), ClusterError> {
    let doing = "looking for another learner";
    let nobody = WorkerName::from_any("learner");
    let id = Key::random()?.token(&nobody, &Hash::of(run.as_bytes()), 0);
    let card = Card { id, run: run.to_owned(), is_settled: false };
    let taken = |other: &Card| ClusterError::Taken { url: url.to_owned(), run: other.run.clone() };
    // One that does not answer is as good as none.
    if let Ok(Some(answer)) = broker.request(HERE, encode(&card), ALONE).await
        && let Ok(other) = decode::<Card>(&answer)
        && card.yields_to(&other)
    {
        return Err(taken(&other));
    }
    let client = broker.client();
    let own = Arc::new(Mutex::new((card.clone(), None)));
    let mut asked = client.subscribe(HERE).await.map_err(ClusterError::broker(doing))?;
    let (answering, replies) = (Arc::clone(&own), client.clone());
    tokio::spawn(async move {
        while let Some(message) = asked.next().await {
            let Ok(other) = decode::<Card>(&message.payload) else { continue };
            let answer = {
                let mut own = answering.lock().unwrap_or_else(PoisonError::into_inner);
                if own.0.yields_to(&other) {
                    own.1 = Some(other.clone());
                }
                (other.id != own.0.id).then(|| own.0.clone())
            };
            if let (Some(answer), Some(reply)) = (answer, message.reply) {
                // Who does not hear it asks in vain, and finds out by the next.
                let _ = replies.publish(reply, encode(&answer).into()).await;
            }
        }
    });
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.map_err(ClusterError::broker(doing))?;
    let question = client.publish_with_reply(HERE, inbox, encode(&card).into()).await;
    question.map_err(ClusterError::broker(doing))?;
    let until = tokio::time::Instant::now() + MEET;
    while let Ok(Some(answer)) = tokio::time::timeout_at(until, answers.next()).await {
        if let Ok(other) = decode::<Card>(&answer.payload)
            && card.yields_to(&other)
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
    fn of_two_learners_exactly_one_stays() {
        let card = |name: &[u8], is_settled| {
            let (id, run) = (Hash::of(name), "a".to_owned());
            Card { id, run, is_settled }
        };
        let pairs = [(false, false), (true, false), (false, true)];
        for (one, other) in pairs.map(|(a, b)| (card(b"one", a), card(b"other", b))) {
            assert_ne!(one.yields_to(&other), other.yields_to(&one), "{one:?} {other:?}");
        }
        let one = card(b"one", false);
        assert!(!one.yields_to(&one));
        assert!(one.yields_to(&card(b"other", true)));
    }
}
