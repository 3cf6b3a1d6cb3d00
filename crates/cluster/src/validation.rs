//! Validates every self-play game before it is stored in the run.
//!
//! It costs no more than playing through the moves once, and cheap checks come first, so that a
//! flood of invalid games costs little. It does not repeat any search: a game with made-up search
//! results is valid here, and is left to [`crate::audit`]. Games of matches are validated in
//! [`crate::remote_match`].

use selfmate_run::GameRecord;
use selfmate_selfplay::{FinishedGame, Generation, check};

use crate::envelope::Envelope;
use crate::hash::Hash;
use crate::rejection::Rejection;

/// Validates a game whose token was verified. Returns the game and the hash of its record.
pub fn validate(
    envelope: &Envelope,
    generation: &Generation,
) -> Result<(FinishedGame, Hash), Rejection> {
    let bytes = envelope.record().map_err(Rejection::Packing)?;
    let record = GameRecord::decode(&bytes)?;
    if record.number != envelope.number {
        return Err(Rejection::Number { expected: envelope.number, got: record.number });
    }
    if record.encode()? != bytes {
        return Err(Rejection::NotCanonical);
    }
    check(&record, generation)?;
    // The worker's count only feeds a curve of the metrics. It is capped at what is possible.
    let per_move = generation.simulations.max(generation.config.fast_simulations.into());
    let most = per_move.saturating_mul(record.moves.len() as u64 + 1);
    let game = FinishedGame { simulations: envelope.simulations.min(most), record };
    Ok((game, Hash::of(&bytes)))
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Outcome, Reason};

    use super::*;
    use crate::audit::tests::{generation, play};
    use crate::envelope::MAX_RECORD;
    use crate::key::Key;
    use crate::subject::WorkerName;

    struct Fixture {
        generation: Generation,
        key: Key,
        job: Hash,
        worker: WorkerName,
        game: FinishedGame,
    }

    fn fixture() -> Fixture {
        let (key, job) = (Key::new([3; 32]), Hash::of(b"job"));
        let generation = generation();
        let game = play(&generation, 6);
        Fixture { generation, worker: WorkerName::new("a").unwrap(), key, job, game }
    }

    impl Fixture {
        /// Validates bytes as the record of a game, with the right token.
        fn send(&self, number: u64, record: &[u8]) -> Result<(FinishedGame, Hash), Rejection> {
            let token = self.key.token(&self.worker, &self.job, number);
            let envelope = Envelope::of_bytes(self.job, token, number, u64::MAX, record);
            self.validate(&self.worker, &envelope.encode())
        }

        fn validate(
            &self,
            worker: &WorkerName,
            bytes: &[u8],
        ) -> Result<(FinishedGame, Hash), Rejection> {
            let envelope = Envelope::verify(bytes, &self.key, worker, &self.job)?;
            validate(&envelope, &self.generation)
        }

        /// The kind of rejection of the game after a change.
        fn change(&self, change: fn(&mut GameRecord)) -> &'static str {
            let mut record = self.game.record.clone();
            change(&mut record);
            let bytes = record.encode().expect("the changed record can be encoded");
            let rejection = self.send(record.number, &bytes).unwrap_err();
            assert!(rejection.is_proof());
            rejection.kind()
        }
    }

    #[test]
    fn an_honest_game_is_accepted_unchanged() {
        let fixture = fixture();
        let bytes = fixture.game.record.encode().unwrap();
        let (game, hash) = fixture.send(6, &bytes).unwrap();
        assert_eq!(game.record, fixture.game.record.clone().rounded());
        assert!(game.simulations < 1_000_000, "the count of simulations is capped");
        assert_eq!(hash, Hash::of(&bytes));
    }

    #[test]
    fn a_game_without_the_senders_token_is_rejected_without_a_ban() {
        let fixture = fixture();
        let other = WorkerName::new("b").unwrap();
        let stolen = fixture.key.token(&other, &fixture.job, 6);
        let envelope = Envelope::new(fixture.job, stolen, &fixture.game).unwrap().encode();
        for bytes in [&envelope[..], &[], b"nonsense"] {
            let rejection = fixture.validate(&fixture.worker, bytes).unwrap_err();
            assert_eq!((rejection.kind(), rejection.is_proof()), ("unasked", false));
        }
        // The worker that the token belongs to may send it.
        assert!(fixture.validate(&other, &envelope).is_ok());
    }

    #[test]
    fn a_game_of_an_earlier_job_is_rejected_without_a_ban() {
        let fixture = fixture();
        let old = Hash::of(b"yesterday");
        let envelope =
            Envelope::new(old, fixture.key.token(&fixture.worker, &old, 6), &fixture.game).unwrap();
        let rejection = fixture.validate(&fixture.worker, &envelope.encode()).unwrap_err();
        assert_eq!((rejection.clone(), rejection.is_proof()), (Rejection::Late, false));
    }

    #[test]
    fn bytes_that_are_not_a_valid_record_are_rejected() {
        let fixture = fixture();
        let good = fixture.game.record.encode().unwrap();
        let kind = |number, bytes: &[u8]| fixture.send(number, bytes).unwrap_err().kind();
        assert_eq!(kind(6, &vec![0; MAX_RECORD + 1]), "packing");
        assert_eq!(kind(6, b""), "record");
        assert_eq!(kind(7, &good), "number");
        // A record with a flipped bit is invalid or another game; it never passes as this one.
        for place in 0..good.len() {
            let mut bytes = good.clone();
            bytes[place] ^= 1 << (place % 8);
            if let Ok((game, hash)) = fixture.send(6, &bytes) {
                // Made-up search results can pass validation; audits find them.
                assert_ne!(hash, Hash::of(&good));
                assert_eq!(game.record.moves.len(), fixture.game.record.moves.len());
            }
        }
        // The same number in one byte more: a varint with an empty last group.
        let mut longer = good.clone();
        longer[1] |= 0x80;
        longer.insert(2, 0);
        assert_eq!(kind(6, &longer), "spelling");
    }

    #[test]
    fn a_game_that_does_not_match_its_job_and_number_is_rejected() {
        let fixture = fixture();
        assert_eq!(fixture.change(|record| record.network += 1), "mismatch");
        assert_eq!(fixture.change(|record| _ = record.positions.pop()), "mismatch");
        let draw = |record: &mut GameRecord| {
            record.outcome = Outcome { winner: None, reason: Reason::Threefold };
        };
        assert_eq!(fixture.change(draw), "mismatch");
        let other_game = play(&generation(), 7).record;
        let renumbered = GameRecord { number: 6, ..other_game };
        let rejection = fixture.send(6, &renumbered.encode().unwrap()).unwrap_err();
        assert!(matches!(rejection, Rejection::Mismatch(_)), "{rejection}");
    }
}
