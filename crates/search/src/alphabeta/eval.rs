//! The static evaluation: the score of a position without search.
//!
//! Every number comes from [`Weights`]; this file defines when each of them counts. Terms are
//! computed for each side and subtracted, so a mirrored position has the negated score. King danger
//! grows with the square of its units: one attacker counts little, three count a lot.

use selfmate_chess::{Bitboard, Board, Chess, Color, Position, Role, Square};
use shakmaty::attacks;

use super::node::{Node, SquareTables};
use super::pair::Pair;
use super::pawns::{self, PawnCache};
use super::score::taper;
use super::weights::Weights;

pub struct StaticEval {
    weights: Weights,
    pub(super) tables: SquareTables,
    pawns: PawnCache,
}

/// The pieces of one side, and attack data collected during the evaluation.
struct Side {
    us: Color,
    king: Square,
    pieces: Bitboard,
    pawns: Bitboard,
    pawn_attacks: Bitboard,
    /// The king's square, the squares next to it, and those in front of it.
    ring: Bitboard,
    /// All squares this side attacks, in total and by role; `Role` starts at 1.
    attacked: Bitboard,
    attacked_by: [Bitboard; 7],
    /// Danger units of this side's attack on the enemy king.
    danger: Pair,
}

impl StaticEval {
    pub fn new(weights: Weights) -> StaticEval {
        StaticEval { tables: SquareTables::new(&weights), pawns: PawnCache::new(), weights }
    }

    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The score for the side to move, in centipawns.
    pub fn score(&mut self, position: &Chess) -> i32 {
        let node = Node::new(position, &self.tables);
        self.evaluate(&node)
    }

    pub(super) fn evaluate(&mut self, node: &Node) -> i32 {
        let board = node.position.board();
        let pawns = self.pawns.get(node.pawn_key, board, &self.weights);
        let mut white = Side::new(board, Color::White);
        let mut black = Side::new(board, Color::Black);
        let mut total = node.squares + pawns.score;
        total += self.minor_and_major_pieces(board, &mut white, &black)
            - self.minor_and_major_pieces(board, &mut black, &white);
        total += self.danger(board, &white, &black) - self.danger(board, &black, &white);
        total += self.threats(board, &white, &black) - self.threats(board, &black, &white);
        total += self.centre(&white) - self.centre(&black);
        let passed = Bitboard(pawns.passed);
        if passed.any() {
            total += self.passed(board, passed, &white, &black);
            total -= self.passed(board, passed, &black, &white);
        }
        total += self.mop_up(&white, &black) - self.mop_up(&black, &white);

        let ahead = if total.eg() > 0 { &white } else { &black };
        let scale = winning_chances(board, ahead);
        let tempo = self.weights.tempo.at(0);
        if node.turn().is_white() {
            taper(total + tempo, scale, node.phase)
        } else {
            taper(tempo - total, scale, node.phase)
        }
    }

    /// Mobility, king attack, outposts and rook files of knights, bishops, rooks and queens.
    #[inline(always)]
    fn minor_and_major_pieces(&self, board: &Board, side: &mut Side, enemy: &Side) -> Pair {
        let w = &self.weights;
        let us = side.us;
        let occupied = board.occupied();
        let mut score = Pair::default();
        // The mobility area: not our pawns or king, nor squares that enemy pawns attack.
        let usable = !(side.pawns | Bitboard::from(side.king) | enemy.pawn_attacks);
        let safe_from_pawns = Bitboard(!pawns::attack_span(enemy.pawns.0, enemy.us));
        let outposts = safe_from_pawns & side.pawn_attacks & outpost_ranks(us);

        for square in board.knights() & side.pieces {
            let reach = attacks::knight_attacks(square);
            side.attack(Role::Knight, reach, enemy, w);
            score += w.knight_mobility.at((reach & usable).count());
            if outposts.contains(square) {
                score += w.outpost.at(0);
            }
        }
        let bishops = board.bishops() & side.pieces;
        for square in bishops {
            // X-rays through our own queens: bishop and queen work together.
            let reach = attacks::bishop_attacks(square, occupied ^ (board.queens() & side.pieces));
            side.attack(Role::Bishop, reach, enemy, w);
            score += w.bishop_mobility.at((reach & usable).count());
            if outposts.contains(square) {
                score += w.outpost.at(1);
            }
        }
        if bishops.more_than_one() {
            score += w.bishop_pair.at(0);
        }
        let heavy = board.rooks_and_queens() & side.pieces;
        for square in board.rooks() & side.pieces {
            let reach = attacks::rook_attacks(square, occupied ^ heavy);
            side.attack(Role::Rook, reach, enemy, w);
            score += w.rook_mobility.at((reach & usable).count());
            let file = Bitboard::from_file(square.file());
            if (file & side.pawns).is_empty() {
                score += if (file & enemy.pawns).is_empty() {
                    w.rook_open_file.at(0)
                } else {
                    w.rook_half_open_file.at(0)
                };
            }
            if pawns::relative_rank(square, us) == 6 {
                score += w.rook_on_seventh.at(0);
            }
        }
        for square in board.queens() & side.pieces {
            let reach = attacks::queen_attacks(square, occupied);
            side.attack(Role::Queen, reach, enemy, w);
            score += w.queen_mobility.at((reach & usable).count());
        }
        let home = if us.is_white() { Bitboard(0x42) } else { Bitboard(0x42 << 56) };
        let undeveloped = (home & board.knights() & side.pieces).count()
            + (Bitboard(if us.is_white() { 0x24 } else { 0x24 << 56 }) & bishops).count();
        score + w.undeveloped.at(0) * undeveloped as i32
    }

    /// The score of this side's attack on the enemy king.
    #[inline(always)]
    fn danger(&self, board: &Board, side: &Side, enemy: &Side) -> Pair {
        let w = &self.weights;
        let mut units = side.danger;
        let occupied = board.occupied();
        let safe = !side.pieces & (!enemy.attacked | weakly_defended(side, enemy));
        let straight = attacks::rook_attacks(enemy.king, occupied);
        let diagonal = attacks::bishop_attacks(enemy.king, occupied);
        let checks = [
            (Role::Knight, attacks::knight_attacks(enemy.king)),
            (Role::Bishop, diagonal),
            (Role::Rook, straight),
            (Role::Queen, straight | diagonal),
        ];
        for (index, (role, from)) in checks.into_iter().enumerate() {
            if (from & side.attacked_by[role as usize] & safe).any() {
                units += w.king_safe_check.at(index);
            }
        }
        if (board.queens() & side.pieces).is_empty() {
            units += w.king_no_queen.at(0);
        }
        let (mg, eg) = (units.mg().clamp(0, 1000), units.eg().clamp(0, 1000));
        Pair::new(mg * mg / 256, eg * eg / 256)
    }

    /// Enemy pieces (no pawns or king) that something cheaper attacks, or that are attacked and
    /// undefended.
    #[inline(always)]
    fn threats(&self, board: &Board, side: &Side, enemy: &Side) -> Pair {
        let w = &self.weights;
        let minor_and_major_pieces = enemy.pieces & !(board.pawns() | board.kings());
        let by_minor =
            side.attacked_by[Role::Knight as usize] | side.attacked_by[Role::Bishop as usize];
        let by_rook = side.attacked_by[Role::Rook as usize];
        w.threat_by_pawn.at(0) * (minor_and_major_pieces & side.pawn_attacks).count() as i32
            + w.threat_by_minor.at(0)
                * (minor_and_major_pieces & board.rooks() & by_minor).count() as i32
            + w.threat_by_minor.at(1)
                * (minor_and_major_pieces & board.queens() & by_minor).count() as i32
            + w.threat_by_rook.at(0)
                * (minor_and_major_pieces & board.queens() & by_rook).count() as i32
            + w.hanging.at(0)
                * (minor_and_major_pieces & side.attacked & !enemy.attacked).count() as i32
    }

    #[inline(always)]
    fn centre(&self, side: &Side) -> Pair {
        let centre = Bitboard(0x0000_0018_1800_0000);
        self.weights.centre_pawn.at(0) * (centre & side.pawns).count() as i32
            + self.weights.centre_control.at(0) * (centre & side.attacked).count() as i32
    }

    #[inline(always)]
    fn passed(&self, board: &Board, passed: Bitboard, side: &Side, enemy: &Side) -> Pair {
        let w = &self.weights;
        let mut score = Pair::default();
        for square in passed & side.pieces {
            let rank = pawns::relative_rank(square, side.us);
            score += w.passed.at(rank);
            let next = Bitboard(pawns::forward(Bitboard::from(square).0, side.us));
            if rank < 3 {
                continue;
            }
            if (next & board.occupied()).any() {
                score += w.passed_blocked.at(0);
            } else if (next & enemy.attacked).is_empty() {
                score += w.passed_safe.at(0);
            }
            // The distance of the kings matters more for an advanced pawn.
            let urgency = rank as i32 - 2;
            if let Some(next) = next.first() {
                let own = next.distance(side.king) as i32;
                let other = next.distance(enemy.king) as i32;
                let race = w.passed_own_king.at(0) * own + w.passed_enemy_king.at(0) * other;
                score += race * urgency;
            }
        }
        score
    }

    /// Drives a bare king to the edge, where it can be mated.
    #[inline(always)]
    fn mop_up(&self, side: &Side, enemy: &Side) -> Pair {
        if enemy.pieces.more_than_one() {
            return Pair::default();
        }
        let (file, rank) = (u32::from(enemy.king) & 7, u32::from(enemy.king) >> 3);
        let from_middle = |line: u32| 3_i32.max(line as i32) - 4_i32.min(line as i32);
        let edge = from_middle(file) + from_middle(rank);
        let apart = side.king.distance(enemy.king) as i32;
        self.weights.mop_up.at(0) * edge + self.weights.mop_up.at(1) * (7 - apart)
    }
}

impl Side {
    #[inline(always)]
    fn new(board: &Board, us: Color) -> Side {
        let pieces = board.by_color(us);
        let pawns = board.pawns() & pieces;
        let king = board.king_of(us).expect("both sides have a king");
        let pawn_attacks = Bitboard(pawns::attacks(pawns.0, us));
        let around = attacks::king_attacks(king) | Bitboard::from(king);
        let mut attacked_by = [Bitboard::EMPTY; 7];
        attacked_by[Role::Pawn as usize] = pawn_attacks;
        attacked_by[Role::King as usize] = attacks::king_attacks(king);
        Side {
            us,
            king,
            pieces,
            pawns,
            pawn_attacks,
            ring: around | Bitboard(pawns::forward(around.0, us)),
            attacked: pawn_attacks | attacks::king_attacks(king),
            attacked_by,
            danger: Pair::default(),
        }
    }

    #[inline(always)]
    fn attack(&mut self, role: Role, reach: Bitboard, enemy: &Side, weights: &Weights) {
        self.attacked |= reach;
        self.attacked_by[role as usize] |= reach;
        let ring = (reach & enemy.ring).count() as i32;
        if ring > 0 {
            self.danger +=
                weights.king_attacker.at(role as usize - 2) + weights.king_ring_attack.at(0) * ring;
        }
    }
}

/// Squares that we attack with more than the king and that only the enemy king defends.
fn weakly_defended(side: &Side, enemy: &Side) -> Bitboard {
    let by = |s: &Side, role: Role| s.attacked_by[role as usize];
    let others = enemy.pawn_attacks
        | by(enemy, Role::Knight)
        | by(enemy, Role::Bishop)
        | by(enemy, Role::Rook)
        | by(enemy, Role::Queen);
    by(enemy, Role::King)
        & !others
        & (side.pawn_attacks
            | by(side, Role::Knight)
            | by(side, Role::Bishop)
            | by(side, Role::Rook))
}

fn outpost_ranks(us: Color) -> Bitboard {
    // The fourth to sixth rank from the owner's side.
    if us.is_white() { Bitboard(0x0000_FFFF_FF00_0000) } else { Bitboard(0x0000_00FF_FFFF_0000) }
}

/// How much of an endgame advantage can be converted, in 64ths.
fn winning_chances(board: &Board, ahead: &Side) -> i32 {
    let minor_and_major_pieces = |color: Color| {
        let pieces = board.by_color(color);
        let minors = (board.knights() | board.bishops()) & pieces;
        3 * minors.count()
            + 5 * (board.rooks() & pieces).count()
            + 9 * (board.queens() & pieces).count()
    };
    let (us, them) = (minor_and_major_pieces(ahead.us), minor_and_major_pieces(!ahead.us));
    if ahead.pawns.is_empty() && us <= them + 3 {
        // Without pawns, one extra minor piece does not win, and a lone minor piece never does.
        return if us <= 3 { 0 } else { 12 };
    }
    let bishops = board.bishops();
    let opposite = us == 3
        && them == 3
        && bishops.count() == 2
        && (bishops & Bitboard::LIGHT_SQUARES).count() == 1
        && (bishops & ahead.pieces).count() == 1;
    if opposite { 32 } else { 64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use selfmate_chess::fen::{parse_fen, to_fen};
    use selfmate_chess::{Game, Seed};

    use super::*;

    /// The position with colours and ranks swapped.
    fn mirrored(position: &Chess) -> Chess {
        let fen = to_fen(position);
        let fields: Vec<&str> = fen.split(' ').collect();
        let swap = |text: &str| -> String {
            let case = |c: char| {
                if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
            };
            text.chars().map(case).collect()
        };
        let ranks: Vec<String> = fields[0].split('/').rev().map(swap).collect();
        let turn = if fields[1] == "w" { "b" } else { "w" };
        let en_passant = fields[3].replace('3', "x").replace('6', "3").replace('x', "6");
        let text = format!("{} {turn} {} {en_passant} 0 1", ranks.join("/"), swap(fields[2]));
        parse_fen(&text).expect("a mirrored position is valid")
    }

    proptest! {
        #[test]
        fn a_mirrored_position_has_the_same_score_for_its_side_to_move(seed in 0u64..1 << 40) {
            let mut rng = Seed::new(seed).rng();
            let mut game = Game::new();
            let mut eval = StaticEval::new(Weights::default());
            let mut plain = StaticEval::new(Weights::plain());
            while game.outcome().is_none() && game.ply() < 120 {
                let legal = game.legal_moves();
                game.play_unchecked(legal[rng.below(legal.len())]);
                let mirror = mirrored(game.position());
                prop_assert_eq!(eval.score(game.position()), eval.score(&mirror));
                prop_assert_eq!(plain.score(game.position()), plain.score(&mirror));
            }
        }
    }

    fn white_score(fen: &str) -> i32 {
        let position = parse_fen(fen).expect("a position");
        let score = StaticEval::new(Weights::default()).score(&position);
        if position.turn().is_white() { score } else { -score }
    }

    #[test]
    fn the_start_position_is_worth_one_tempo() {
        let start = StaticEval::new(Weights::default()).score(&Chess::default());
        assert_eq!(start, Weights::default().tempo.mg[0]);
        assert_eq!(StaticEval::new(Weights::plain()).score(&Chess::default()), 0);
    }

    #[test]
    fn known_positions_score_as_expected() {
        // A knight up; a lone bishop cannot win; a passed pawn on the seventh beats one on the
        // second.
        assert!(white_score("4k3/pppp4/8/8/8/8/PPPPN3/4K3 w - - 0 1") > 200);
        assert_eq!(white_score("4k3/8/8/8/8/8/8/4KB2 w - - 0 1").abs() / 50, 0);
        assert!(
            white_score("8/P3k3/8/8/8/8/8/4K3 w - - 0 1")
                > white_score("8/4k3/8/8/8/8/P7/4K3 w - - 0 1") + 50
        );
        // A castled king behind its pawns is safer than one in the open centre.
        let castled = white_score("r1bq1rk1/ppp2ppp/2n2n2/8/8/2N2N2/PPP2PPP/R1BQ1RK1 w - - 0 1");
        let open = white_score("r1bq1rk1/ppp2ppp/2n2n2/8/8/2N2N2/PPP2PPP/R1BQK2R w - - 0 1");
        assert!(castled > open);
    }
}
