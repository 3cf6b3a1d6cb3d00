//! Which kinds of moves turned the games that the champion lost, by phase of the game.

use std::collections::BTreeMap;

use selfmate_arena::players::{best_exchange, exchange_gain};
use selfmate_chess::{Chess, Move, Position, Role};
use selfmate_search::alphabeta::Score;
use selfmate_search::phase::Phase;
use serde::{Deserialize, Serialize};

use super::loss::LosingMove;

/// The kind of a losing move. If several fit, the first one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MistakeKind {
    /// There was a forced mate.
    MissedMate,
    /// The opponent mates by force after it.
    AllowedMate,
    /// A capture that loses material on its square.
    BadExchange,
    /// The opponent can win a piece at once.
    HangingPiece,
    /// Another move of a pawn.
    Pawn,
    /// Anything else: the loss comes several moves later.
    Other,
}

/// The material in centipawns that counts as a piece: an exchange for a pawn does not.
const PIECE: i32 = 200;

impl MistakeKind {
    pub const ALL: [MistakeKind; 6] = [
        MistakeKind::MissedMate,
        MistakeKind::AllowedMate,
        MistakeKind::BadExchange,
        MistakeKind::HangingPiece,
        MistakeKind::Pawn,
        MistakeKind::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            MistakeKind::MissedMate => "missed mate",
            MistakeKind::AllowedMate => "allowed mate",
            MistakeKind::BadExchange => "bad exchange",
            MistakeKind::HangingPiece => "hanging piece",
            MistakeKind::Pawn => "pawn move",
            MistakeKind::Other => "other",
        }
    }

    /// The kind of a move, with the mover's score before it and one own move later.
    pub fn of(position: &Chess, m: Move, before: Score, after: Score) -> MistakeKind {
        let is_mating = |score| matches!(score, Score::Mate(moves) if moves > 0);
        let is_mated = |score| matches!(score, Score::Mate(moves) if moves <= 0);
        if is_mating(before) && !is_mating(after) {
            return MistakeKind::MissedMate;
        }
        if is_mated(after) && !is_mated(before) {
            return MistakeKind::AllowedMate;
        }
        let mut next = position.clone();
        next.play_unchecked(m);
        let captured = m.capture().map_or(0, |_| exchange_gain(position, m));
        if m.is_capture() && captured < 0 {
            MistakeKind::BadExchange
        } else if best_exchange(&next) - captured.max(0) >= PIECE {
            MistakeKind::HangingPiece
        } else if m.role() == Role::Pawn {
            MistakeKind::Pawn
        } else {
            MistakeKind::Other
        }
    }
}

/// How often each kind of mistake was made in each phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistakes {
    /// Lost games that were analysed; not every one has a losing move.
    pub games: u64,
    pub rows: Vec<MistakeRow>,
}

/// The mistakes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MistakeRow {
    pub kind: MistakeKind,
    pub opening: u64,
    pub middlegame: u64,
    pub endgame: u64,
}

impl MistakeRow {
    pub fn total(&self) -> u64 {
        self.opening + self.middlegame + self.endgame
    }
}

impl Mistakes {
    /// Adds the losing moves of some lost games.
    pub fn add(&mut self, games: usize, losing_moves: &[LosingMove]) {
        self.games += games as u64;
        let mut rows: BTreeMap<MistakeKind, MistakeRow> =
            self.rows.iter().map(|row| (row.kind, *row)).collect();
        for losing_move in losing_moves {
            let kind = losing_move.kind;
            let new = MistakeRow { kind, opening: 0, middlegame: 0, endgame: 0 };
            let row = rows.entry(kind).or_insert(new);
            match losing_move.phase {
                Phase::Opening => row.opening += 1,
                Phase::Middlegame => row.middlegame += 1,
                Phase::Endgame => row.endgame += 1,
            }
        }
        self.rows = rows.into_values().collect();
    }

    pub fn parse(bytes: &[u8]) -> Result<Mistakes, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}

/// The table as text.
pub(super) fn describe(bytes: &[u8]) -> Result<Vec<String>, String> {
    let Mistakes { games, rows } = Mistakes::parse(bytes)?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = vec![
        format!("the moves that turned {games} of the games that the champion lost:"),
        format!("  {:14}{:>9}{:>12}{:>9}{:>7}", "", "opening", "middlegame", "endgame", "all"),
    ];
    lines.extend(rows.iter().map(|row| {
        let MistakeRow { kind, opening, middlegame, endgame } = row;
        let name = kind.name();
        format!("  {name:14}{opening:>9}{middlegame:>12}{endgame:>9}{:>7}", row.total())
    }));
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{fen, notation};

    use super::*;

    #[test]
    fn each_kind_is_recognised() {
        let cp = Score::Cp;
        for (fen, san, before, after, expected) in [
            // The knight leaves the queen undefended.
            (
                "3r2k1/8/8/3q4/8/2N5/8/3Q2K1 w - - 0 30",
                "Nb5",
                cp(0),
                cp(-900),
                MistakeKind::HangingPiece,
            ),
            (
                "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 30",
                "h3",
                Score::Mate(1),
                cp(0),
                MistakeKind::MissedMate,
            ),
            (
                "6k1/5ppp/8/8/8/8/r4PPP/1R4K1 w - - 0 30",
                "Rc1",
                cp(0),
                Score::Mate(-1),
                MistakeKind::AllowedMate,
            ),
            // The queen takes a pawn that a pawn defends.
            (
                "6k1/5p2/4p3/3p4/8/8/3Q4/6K1 w - - 0 30",
                "Qxd5",
                cp(300),
                cp(-500),
                MistakeKind::BadExchange,
            ),
            ("6k1/5ppp/8/8/8/8/5PPP/6K1 w - - 0 30", "g4", cp(0), cp(-200), MistakeKind::Pawn),
            ("6k1/5ppp/8/8/8/8/5PPP/6K1 w - - 0 30", "Kh1", cp(0), cp(-200), MistakeKind::Other),
            // A pawn is no piece, and a piece that was won before counts against one that is lost.
            ("6k1/8/8/3p4/8/2N5/3P4/1r4K1 w - - 0 30", "Kf2", cp(0), cp(-200), MistakeKind::Other),
        ] {
            let position = fen::parse_fen(fen).unwrap();
            let m = notation::parse_san(&position, san).unwrap();
            assert_eq!(MistakeKind::of(&position, m, before, after), expected, "{fen} {san}");
        }
    }

    #[test]
    fn counts_are_added_by_kind_and_phase() {
        let losing_move = |kind, phase| LosingMove {
            game: 0,
            ply: 0,
            fen: String::new(),
            played: String::new(),
            better: String::new(),
            before: 0,
            after: -300,
            kind,
            phase,
        };
        let mut mistakes = Mistakes::default();
        mistakes.add(2, &[losing_move(MistakeKind::Other, Phase::Opening)]);
        mistakes.add(
            2,
            &[
                losing_move(MistakeKind::Pawn, Phase::Endgame),
                losing_move(MistakeKind::Other, Phase::Opening),
            ],
        );
        let row =
            |kind, opening, middlegame, endgame| MistakeRow { kind, opening, middlegame, endgame };
        let rows = vec![row(MistakeKind::Pawn, 0, 0, 1), row(MistakeKind::Other, 2, 0, 0)];
        assert_eq!(mistakes, Mistakes { games: 4, rows });
        let lines = describe(&serde_json::to_vec(&mistakes).unwrap()).unwrap();
        assert_eq!(lines[0], "the moves that turned 4 of the games that the champion lost:");
        assert_eq!(lines[3], "  other                 2           0        0      2");
    }
}
