//! Looks at every game before it comes near the run.
//!
//! Nothing here costs more than playing the game through once; cheap checks come first, so that a
//! flood of nonsense costs little.

use selfmate_learn::selfplay::{Generation, Played, check};
use selfmate_run::GameRecord;

use crate::hash::Hash;
use crate::key::Key;
use crate::parcel::Parcel;
use crate::refusal::Refusal;
use crate::subject::WorkerName;

/// What games are measured by.
pub struct Intake {
    key: Key,
    order: Hash,
    generation: Generation,
}

/// A game that may be taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The game.
    pub played: Played,
    /// The hash of its record: two games are the same when this is.
    pub hash: Hash,
}

impl Intake {
    /// For the games of this order.
    pub fn new(key: Key, order: Hash, generation: Generation) -> Intake {
        Intake { key, order, generation }
    }

    /// Looks at what a worker sent.
    pub fn judge(&self, worker: &WorkerName, bytes: &[u8]) -> Result<Delivery, Refusal> {
        let parcel = Parcel::asked(bytes, &self.key, worker, &self.order)?;
        let bytes = parcel.record().map_err(Refusal::Packing)?;
        let record = GameRecord::decode(&bytes)?;
        if record.number != parcel.number {
            return Err(Refusal::Number { expected: parcel.number, got: record.number });
        }
        if record.encode()? != bytes {
            return Err(Refusal::Spelling);
        }
        check(&record, &self.generation)?;
        // Only a curve depends on it; nobody searches more than this.
        let sims = self.generation.sims.max(self.generation.config.quick_sims.into());
        let most = sims.saturating_mul(record.moves.len() as u64 + 1);
        let played = Played { simulations: parcel.simulations.min(most), record };
        Ok(Delivery { played, hash: Hash::of(&bytes) })
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Outcome, Reason};

    use super::*;
    use crate::audit::tests::{generation, play};
    use crate::parcel::MAX_RECORD;

    struct Bench {
        intake: Intake,
        key: Key,
        order: Hash,
        worker: WorkerName,
        game: Played,
    }

    fn bench() -> Bench {
        let (key, order) = (Key::new([3; 32]), Hash::of(b"order"));
        let generation = generation();
        let game = play(&generation, 6);
        Bench {
            intake: Intake::new(key.clone(), order, generation),
            worker: WorkerName::new("a").unwrap(),
            key,
            order,
            game,
        }
    }

    impl Bench {
        /// Sends bytes as the record of a game, with its token.
        fn send(&self, number: u64, record: &[u8]) -> Result<Delivery, Refusal> {
            let token = self.key.token(&self.worker, &self.order, number);
            let parcel = Parcel::of_bytes(self.order, token, number, u64::MAX, record);
            self.intake.judge(&self.worker, &parcel.encode())
        }

        /// Sends the game after a change; the word for what is wrong.
        fn change(&self, change: fn(&mut GameRecord)) -> &'static str {
            let mut record = self.game.record.clone();
            change(&mut record);
            let bytes = record.encode().expect("a change that can be written");
            let refusal = self.send(record.number, &bytes).unwrap_err();
            assert!(refusal.is_proof());
            refusal.kind()
        }
    }

    #[test]
    fn an_honest_game_is_taken_as_it_is() {
        let bench = bench();
        let bytes = bench.game.record.encode().unwrap();
        let delivery = bench.send(6, &bytes).unwrap();
        assert_eq!(delivery.played.record, bench.game.record.clone().rounded());
        assert!(delivery.played.simulations < 1_000_000, "a claim that nobody believes");
        assert_eq!(delivery.hash, Hash::of(&bytes));
    }

    #[test]
    fn a_game_without_the_right_token_is_held_against_nobody() {
        let Bench { intake, key, order, worker, game } = bench();
        let other = WorkerName::new("b").unwrap();
        let stolen = key.token(&other, &order, 6);
        let parcel = Parcel::new(order, stolen, &game).unwrap().encode();
        for bytes in [&parcel[..], &[], b"nonsense"] {
            let refusal = intake.judge(&worker, bytes).unwrap_err();
            assert_eq!((refusal.kind(), refusal.is_proof()), ("unasked", false));
        }
        // Whom it belongs to may send it.
        assert!(intake.judge(&other, &parcel).is_ok());
    }

    #[test]
    fn a_game_of_an_old_order_is_late_and_no_fault() {
        let Bench { intake, key, worker, game, .. } = bench();
        let old = Hash::of(b"yesterday");
        let parcel = Parcel::new(old, key.token(&worker, &old, 6), &game).unwrap();
        let refusal = intake.judge(&worker, &parcel.encode()).unwrap_err();
        assert_eq!((refusal.clone(), refusal.is_proof()), (Refusal::Late, false));
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
            if let Ok(delivery) = bench.send(6, &bytes) {
                // What a search found can be made up without breaking a rule; that is for audits.
                assert_ne!(delivery.hash, Hash::of(&good));
                assert_eq!(delivery.played.record.moves.len(), bench.game.record.moves.len());
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
        assert_eq!(bench.change(|record| record.network += 1), "misfit");
        assert_eq!(bench.change(|record| _ = record.positions.pop()), "misfit");
        let draw = |record: &mut GameRecord| {
            record.outcome = Outcome { winner: None, reason: Reason::Threefold };
        };
        assert_eq!(bench.change(draw), "misfit");
        let other_game = play(&generation(), 7).record;
        let disguised = GameRecord { number: 6, ..other_game };
        let refusal = bench.send(6, &disguised.encode().unwrap()).unwrap_err();
        assert!(matches!(refusal, Refusal::Misfit(_)), "{refusal}");
    }
}
