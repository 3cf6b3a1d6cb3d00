//! A game of an ending as its searches decided it: all that cannot be worked out again without
//! them. It is what machines send each other, and what every game goes through on its way to the
//! learner, wherever it was played.
//!
//! | part | bytes |
//! |---|---|
//! | number of the game | 8 |
//! | walks: count, plies, deepest, known, magnitude | 8, 8, 4, 8, 8 |
//! | for each ply: place of the move among the legal ones, whether it is proven, legal moves | 1, 1, 1 |
//! | … the value, the share of each legal move | 4, 4 each |
//!
//! Lowest bytes first.

use selfmate_search::mcts::SimulationStats;

/// A game as its searches decided it.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The number of the game.
    pub number: u64,
    /// Its plies from the start position.
    pub plies: Vec<Ply>,
    /// What its searches looked like.
    pub walks: SimulationStats,
}

/// What a search decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Ply {
    /// The place of the move that was played among the legal ones.
    pub place: u8,
    /// What the search found, for the side to move.
    pub value: f32,
    /// The value is proven.
    pub is_proven: bool,
    /// The share of each legal move.
    pub policy: Box<[f32]>,
}

/// A game that cannot be one of its run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Bytes that are no game.
    #[error("not a game of an ending: {0}")]
    Bytes(&'static str),
    /// A ply that no search can have decided.
    #[error("ply {ply}: {what}")]
    Ply {
        /// Which.
        ply: usize,
        /// What is wrong.
        what: String,
    },
    /// It goes on where it is over, or ends where it is not.
    #[error("it ends after {0} plies, where it is not over")]
    Unfinished(usize),
}

impl Log {
    /// The game as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let SimulationStats { count, plies, deepest, known, magnitude } = self.walks;
        let mut bytes = Vec::new();
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(plies.to_le_bytes());
        bytes.extend(deepest.to_le_bytes());
        bytes.extend(known.to_le_bytes());
        bytes.extend(magnitude.to_le_bytes());
        for ply in &self.plies {
            // A position has at most 218 moves.
            bytes.extend([ply.place, u8::from(ply.is_proven), ply.policy.len() as u8]);
            bytes.extend(ply.value.to_le_bytes());
            bytes.extend(ply.policy.iter().flat_map(|share| share.to_le_bytes()));
        }
        bytes
    }

    /// Reads a game from an untrusted place. There is one way to write it.
    pub fn decode(bytes: &[u8]) -> Result<Log, LogError> {
        let mut rest = bytes;
        let number = u64::from_le_bytes(take(&mut rest)?);
        let walks = SimulationStats {
            count: u64::from_le_bytes(take(&mut rest)?),
            plies: u64::from_le_bytes(take(&mut rest)?),
            deepest: u32::from_le_bytes(take(&mut rest)?),
            known: u64::from_le_bytes(take(&mut rest)?),
            magnitude: f64::from_le_bytes(take(&mut rest)?),
        };
        if !walks.magnitude.is_finite() {
            return Err(LogError::Bytes("a number that is none"));
        }
        let mut plies = Vec::new();
        while !rest.is_empty() {
            let [place, is_proven, moves] = take(&mut rest)?;
            if is_proven > 1 {
                return Err(LogError::Bytes("a flag that is neither 0 nor 1"));
            }
            let value = f32::from_le_bytes(take(&mut rest)?);
            let policy: Result<Box<[f32]>, LogError> =
                (0..moves).map(|_| Ok(f32::from_le_bytes(take(&mut rest)?))).collect();
            plies.push(Ply { place, value, is_proven: is_proven == 1, policy: policy? });
        }
        Ok(Log { number, plies, walks })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], LogError> {
    let (first, left) = rest.split_first_chunk::<N>().ok_or(LogError::Bytes("it is cut short"))?;
    *rest = left;
    Ok(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_game_comes_back_and_every_cut_within_a_ply_is_noticed() {
        let ply = |place| Ply {
            place,
            value: -0.25,
            is_proven: place == 1,
            policy: [0.5, 0.25, 0.25].into(),
        };
        let walks = SimulationStats { count: 7, plies: 20, deepest: 5, known: 2, magnitude: 1.5 };
        let log = Log { number: 300, plies: vec![ply(0), ply(1)], walks };
        let bytes = log.encode();
        assert_eq!(Log::decode(&bytes), Ok(log));
        let whole = [44, 44 + 19, 44 + 38];
        for length in 0..=bytes.len() {
            assert_eq!(Log::decode(&bytes[..length]).is_ok(), whole.contains(&length), "{length}");
        }
        let mut flag = bytes;
        flag[45] = 2;
        assert!(Log::decode(&flag).unwrap_err().to_string().contains("flag"));
    }
}
