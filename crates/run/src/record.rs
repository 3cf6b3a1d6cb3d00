//! A game as bytes: about 36 for each recorded position.
//!
//! Version, number, network, outcome, start, moves, recorded positions. Integers are written in
//! groups of seven bits, everything else is little-endian. Policies are sorted by packed move, so
//! that the bytes do not depend on the move generator. They have no length: the reader replays the
//! game and knows the legal moves. Everything read is validated.

use selfmate_chess::{Color, MoveList, Outcome, Reason};
use selfmate_search::PackedMove;

use crate::frame::MAX_FRAME;
use crate::game::{
    GameRecord, PositionRecord, RecordError, draw_bits, draw_from, value_bits, value_from,
};
use crate::policy;

const VERSION: u8 = 1;

impl GameRecord {
    /// Encodes the game, or returns what is wrong with it.
    pub fn encode(&self) -> Result<Vec<u8>, RecordError> {
        if self.moves.len() > usize::from(u16::MAX) {
            let what = format!("{} moves: expected at most 65535", self.moves.len());
            return Err(self.fault(None, what));
        }
        let mut positions = Vec::new();
        let mut previous = 0;
        let end = self.try_replay(|_, legal, recorded| {
            check(recorded)?;
            number(&mut positions, u64::from(recorded.ply - previous));
            previous = recorded.ply;
            positions.extend(value_bits(recorded.value).to_le_bytes());
            positions.push(draw_bits(recorded.draw));
            let bytes = policy::pack(&recorded.policy);
            positions.extend(sorted(legal).into_iter().map(|(_, index)| bytes[index]));
            Ok(())
        })?;
        self.check_outcome(&end)?;

        let mut bytes = vec![VERSION];
        number(&mut bytes, self.number);
        number(&mut bytes, self.network);
        bytes.push(outcome_byte(self.outcome));
        let start = self.start.as_deref().unwrap_or_default();
        let Ok(length) = u8::try_from(start.len()) else {
            return Err(self.fault(None, "the FEN is longer than 255 bytes"));
        };
        bytes.push(length);
        bytes.extend(start.as_bytes());
        number(&mut bytes, self.moves.len() as u64);
        bytes.extend(self.moves.iter().flat_map(|&m| PackedMove::new(m).0.to_le_bytes()));
        number(&mut bytes, self.positions.len() as u64);
        bytes.append(&mut positions);
        if bytes.len() > MAX_FRAME {
            let what = format!("{} bytes: expected at most {MAX_FRAME}", bytes.len());
            return Err(self.fault(None, what));
        }
        Ok(bytes)
    }

    /// Decodes a game written by [`GameRecord::encode`]. All moves must be legal.
    pub fn decode(bytes: &[u8]) -> Result<GameRecord, RecordError> {
        let unread = |what: &str| RecordError { number: None, ply: None, what: what.into() };
        let mut bytes = Bytes(bytes);
        match bytes.byte() {
            Some(VERSION) => {}
            Some(other) => {
                return Err(unread(&format!("version {other}: expected version {VERSION}")));
            }
            None => return Err(unread("no bytes")),
        }
        let number = bytes.number().ok_or_else(|| unread("truncated before its number"))?;
        let fault = |what: &str| RecordError { number: Some(number), ply: None, what: what.into() };
        let cut = || fault("truncated");
        let network = bytes.number().ok_or_else(cut)?;
        let outcome = bytes.byte().ok_or_else(cut)?;
        let outcome = outcome_from(outcome)
            .ok_or_else(|| fault(&format!("unknown outcome code {outcome:#x}")))?;
        let length = bytes.byte().ok_or_else(cut)?;
        let start = bytes.take(length.into()).ok_or_else(cut)?;
        let start = str::from_utf8(start).map_err(|_| fault("the FEN is not valid UTF-8"))?;
        let count = bytes.number().ok_or_else(cut)?;
        if count > u64::from(u16::MAX) {
            return Err(fault(&format!("{count} moves: expected at most 65535")));
        }
        let moves = bytes.take(2 * count as usize).ok_or_else(cut)?;
        let recorded = bytes.number().ok_or_else(cut)?;
        let start = (!start.is_empty()).then(|| start.to_owned());
        let mut record =
            GameRecord { number, network, start, moves: vec![], outcome, positions: vec![] };
        record.read_positions(moves.as_chunks().0, recorded, &mut bytes)?;
        Ok(record)
    }

    /// Plays the packed moves and reads the recorded positions.
    fn read_positions(
        &mut self,
        moves: &[[u8; 2]],
        mut recorded: u64,
        bytes: &mut Bytes,
    ) -> Result<(), RecordError> {
        let mut game = self.start_game()?;
        self.moves.reserve(moves.len());
        let mut next = self.next_ply(0, recorded, bytes)?;
        for ply in 0..=moves.len() {
            let legal = game.legal_moves();
            if next == Some(ply as u64) {
                let cut = || self.fault(Some(ply), "truncated");
                let value = bytes.take(2).ok_or_else(cut)?;
                let value = value_from(i16::from_le_bytes([value[0], value[1]]));
                let draw = draw_from(bytes.byte().ok_or_else(cut)?);
                let packed = bytes.take(legal.len()).ok_or_else(cut)?;
                let mut in_order = vec![0; packed.len()];
                for ((_, index), &byte) in sorted(&legal).into_iter().zip(packed) {
                    in_order[index] = byte;
                }
                let policy = policy::unpack(&in_order);
                let position = PositionRecord { ply: ply as u16, value, draw, policy };
                check(&position).map_err(|what| self.fault(Some(ply), what))?;
                self.positions.push(position);
                recorded -= 1;
                next = self.next_ply(ply as u64, recorded, bytes)?;
                if next == Some(ply as u64) {
                    return Err(self.fault(Some(ply), "the position is recorded twice"));
                }
            }
            let Some(&packed) = moves.get(ply) else { break };
            let packed = PackedMove(u16::from_le_bytes(packed));
            let m = legal.into_iter().find(|&m| PackedMove::new(m) == packed).ok_or_else(|| {
                let fen = selfmate_chess::fen::to_fen(game.position());
                self.fault(Some(ply), format!("move code {:#06x} is not legal in {fen}", packed.0))
            })?;
            game.play_unchecked(m);
            self.moves.push(m);
        }
        if let Some(ply) = next {
            let what = format!("a position at ply {ply}: expected none after {}", moves.len());
            return Err(self.fault(None, what));
        }
        if !bytes.0.is_empty() {
            return Err(
                self.fault(None, format!("{} bytes after the end of the record", bytes.0.len()))
            );
        }
        self.check_outcome(&game)
    }

    /// The ply of the next recorded position, if any are left.
    fn next_ply(&self, ply: u64, left: u64, bytes: &mut Bytes) -> Result<Option<u64>, RecordError> {
        if left == 0 {
            return Ok(None);
        }
        let gap = bytes.number().ok_or_else(|| self.fault(None, "truncated"))?;
        Ok(Some(ply.saturating_add(gap)))
    }
}

/// The legal moves sorted by packed form, each with its index in `legal`.
fn sorted(legal: &MoveList) -> Vec<(u16, usize)> {
    let packed = legal.iter().enumerate().map(|(index, &m)| (PackedMove::new(m).0, index));
    let mut sorted: Vec<_> = packed.collect();
    sorted.sort_unstable();
    sorted
}

fn check(recorded: &PositionRecord) -> Result<(), String> {
    let PositionRecord { value, draw, policy, .. } = recorded;
    if !(-1.0..=1.0).contains(value) {
        return Err(format!("the value is {value}: expected a number from -1 to 1"));
    }
    if !(0.0..=1.0).contains(draw) {
        return Err(format!("the draw probability is {draw}: expected a number from 0 to 1"));
    }
    policy::check(policy)
}

/// The reason is in the lower four bits, the winner above.
fn outcome_byte(outcome: Outcome) -> u8 {
    let winner = match outcome.winner {
        None => 0,
        Some(Color::White) => 1,
        Some(Color::Black) => 2,
    };
    winner << 4 | reason_code(outcome.reason)
}

fn outcome_from(byte: u8) -> Option<Outcome> {
    let winner = match byte >> 4 {
        0 => None,
        1 => Some(Color::White),
        2 => Some(Color::Black),
        _ => return None,
    };
    let reason = REASONS.into_iter().find(|&reason| reason_code(reason) == byte & 15)?;
    Some(Outcome { winner, reason })
}

const REASONS: [Reason; 9] = [
    Reason::Checkmate,
    Reason::Stalemate,
    Reason::InsufficientMaterial,
    Reason::Threefold,
    Reason::Fivefold,
    Reason::FiftyMoves,
    Reason::SeventyFiveMoves,
    Reason::Truncated,
    Reason::Adjudication,
];

/// Part of the file format: never change a number. Add new reasons to [`REASONS`] too.
const fn reason_code(reason: Reason) -> u8 {
    match reason {
        Reason::Checkmate => 0,
        Reason::Stalemate => 1,
        Reason::InsufficientMaterial => 2,
        Reason::Threefold => 3,
        Reason::Fivefold => 4,
        Reason::FiftyMoves => 5,
        Reason::SeventyFiveMoves => 6,
        Reason::Truncated => 7,
        Reason::Adjudication => 8,
    }
}

/// Writes an integer in groups of seven bits, lowest first.
fn number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The unread bytes. `None` from any method means that they ended too early.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
