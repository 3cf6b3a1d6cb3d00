//! Validation of every game of a generation before it reaches the run.
//!
//! Nothing here costs more than replaying the moves of the game once. Cheap checks come first, so that
//! a flood of invalid games costs little.

use selfmate_run::GameRecord;
use selfmate_selfplay::{FinishedGame, Generation, check};

use crate::envelope::Envelope;
use crate::hash::Hash;
use crate::rejection::Rejection;

/// Validates a game of a generation that was asked for; the hash of its record too.
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
        return Err(Rejection::Spelling);
    }
    check(&record, generation)?;
    // Only a curve depends on it; no game takes more simulations than this.
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

    struct Bench {
        generation: Generation,
        key: Key,
        job: Hash,
        worker: WorkerName,
        game: FinishedGame,
    }

    fn bench() -> Bench {
        let (key, job) = (Key::new([3; 32]), Hash::of(b"job"));
        let generation = generation();
        let game = play(&generation, 6);
        Bench { generation, worker: WorkerName::new("a").unwrap(), key, job, game }
    }

    impl Bench {
        /// Sends bytes as the record of a game, with its token.
        fn send(&self, number: u64, record: &[u8]) -> Result<(FinishedGame, Hash), Rejection> {
            let token = self.key.token(&self.worker, &self.job, number);
            let envelope = Envelope::of_bytes(self.job, token, number, u64::MAX, record);
            self.judge(&self.worker, &envelope.encode())
        }

        fn judge(
            &self,
            worker: &WorkerName,
            bytes: &[u8],
        ) -> Result<(FinishedGame, Hash), Rejection> {
            let envelope = Envelope::asked(bytes, &self.key, worker, &self.job)?;
            validate(&envelope, &self.generation)
        }

        /// Sends the game after a change; the word for what is wrong.
        fn change(&self, change: fn(&mut GameRecord)) -> &'static str {
            let mut record = self.game.record.clone();
            change(&mut record);
            let bytes = record.encode().expect("a change that can be written");
            let rejection = self.send(record.number, &bytes).unwrap_err();
            assert!(rejection.is_proof());
            rejection.kind()
        }
    }

    #[test]
    fn an_honest_game_is_taken_as_it_is() {
        let bench = bench();
        let bytes = bench.game.record.encode().unwrap();
        let (game, hash) = bench.send(6, &bytes).unwrap();
        assert_eq!(game.record, bench.game.record.clone().rounded());
        assert!(game.simulations < 1_000_000, "a number that no game reaches");
        assert_eq!(hash, Hash::of(&bytes));
    }

    #[test]
    fn a_game_without_the_right_token_is_held_against_nobody() {
        let bench = bench();
        let other = WorkerName::new("b").unwrap();
        let stolen = bench.key.token(&other, &bench.job, 6);
        let envelope = Envelope::new(bench.job, stolen, &bench.game).unwrap().encode();
        for bytes in [&envelope[..], &[], b"nonsense"] {
            let rejection = bench.judge(&bench.worker, bytes).unwrap_err();
            assert_eq!((rejection.kind(), rejection.is_proof()), ("unasked", false));
        }
        // Whom it belongs to may send it.
        assert!(bench.judge(&other, &envelope).is_ok());
    }

    #[test]
    fn a_game_of_an_old_order_is_late_and_no_fault() {
        let bench = bench();
        let old = Hash::of(b"yesterday");
        let envelope =
            Envelope::new(old, bench.key.token(&bench.worker, &old, 6), &bench.game).unwrap();
        let rejection = bench.judge(&bench.worker, &envelope.encode()).unwrap_err();
        assert_eq!((rejection.clone(), rejection.is_proof()), (Rejection::Late, false));
    }

    #[test]
    fn bytes_that_are_no_game_are_refused() {
        let bench = bench();
        let good = bench.game.record.encode().unwrap();
        let kind = |number, bytes: &[u8]| bench.send(number, bytes).unwrap_err().kind();
        assert_eq!(kind(6, &vec![0; MAX_RECORD + 1]), "packing");
        assert_eq!(kind(6, b""), "record");
        assert_eq!(kind(7, &good), "number");
        // Every flipped bit of the record is another game or none: none is taken as this one.
        for place in 0..good.len() {
            let mut bytes = good.clone();
            bytes[place] ^= 1 << (place % 8);
            if let Ok((game, hash)) = bench.send(6, &bytes) {
                // Results of searches can be invented without breaking a rule; audits find those.
                assert_ne!(hash, Hash::of(&good));
                assert_eq!(game.record.moves.len(), bench.game.record.moves.len());
            }
        }
        // A number written with a useless zero group.
        let mut longer = good.clone();
        longer[1] |= 0x80;
        longer.insert(2, 0);
        assert_eq!(kind(6, &longer), "spelling");
    }

    #[test]
    fn lies_about_a_game_are_refused() {
        let bench = bench();
        assert_eq!(bench.change(|record| record.network += 1), "mismatch");
        assert_eq!(bench.change(|record| _ = record.positions.pop()), "mismatch");
        let draw = |record: &mut GameRecord| {
            record.outcome = Outcome { winner: None, reason: Reason::Threefold };
        };
        assert_eq!(bench.change(draw), "mismatch");
        let other_game = play(&generation(), 7).record;
        let disguised = GameRecord { number: 6, ..other_game };
        let rejection = bench.send(6, &disguised.encode().unwrap()).unwrap_err();
        assert!(matches!(rejection, Rejection::Mismatch(_)), "{rejection}");
    }
}
