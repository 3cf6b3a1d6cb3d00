//! Solves an ending backwards from its mates.
//!
//! Positions are found in layers, by plies to mate. Whoever can move to a position that is mated
//! in n mates in n + 1; whoever has only moves to positions that mate in n or less is mated in
//! n + 1. So a position is found when the last of its moves is, and all that are never found are
//! draws. Captures and promotions lead to smaller endings, which are solved before.

use std::sync::Arc;

use shakmaty::{Bitboard, Color, Piece, Rank, Role, Square, attacks};

use super::ending::{DRAW, Ending, ILLEGAL, Placement, UNKNOWN, Verdict};
use super::material::Material;

/// What a pawn becomes.
const PROMOTIONS: [Role; 4] = [Role::Queen, Role::Rook, Role::Bishop, Role::Knight];

/// A loss further away than any: a capture or promotion that does not lose at all.
const ESCAPE: u8 = u8::MAX;

/// A smaller ending, and who of the larger one stands where in it.
pub(super) struct Exit {
    ending: Arc<Ending>,
    /// For each piece of the smaller ending his place in the larger.
    places: Vec<usize>,
    /// The colours are changed and the board is turned round.
    is_swapped: bool,
}

impl Exit {
    /// Finds the pieces of a smaller ending among those left; `ending` has them, or the same with
    /// the colours changed.
    pub fn new(left: &[(usize, Piece)], ending: Arc<Ending>) -> Exit {
        let left_pieces = Material::new(left.iter().map(|(_, piece)| *piece));
        let is_swapped = left_pieces.as_ref() != Some(ending.material());
        let mut left = left.to_vec();
        let pieces = ending.material().pieces().iter();
        let places = pieces.map(|piece| {
            let wanted = if is_swapped { piece.role.of(!piece.color) } else { *piece };
            let found = left.iter().position(|(_, other)| *other == wanted);
            left.swap_remove(found.expect("the ending has the pieces that are left")).0
        });
        Exit { places: places.collect(), ending, is_swapped }
    }

    /// What the placement comes to without those that are not in the smaller ending.
    pub fn verdict(&self, placement: &Placement) -> Option<Verdict> {
        let mut smaller = *placement;
        for (square, &place) in smaller.squares.iter_mut().zip(&self.places) {
            let there = placement.squares[place];
            *square = if self.is_swapped { there.flip_vertical() } else { there };
        }
        let turn = if self.is_swapped { !placement.turn } else { placement.turn };
        self.ending.verdict(&smaller.squares[..self.places.len()], turn)
    }
}

/// Solves an ending; `find` gives the smaller ones.
pub(super) fn solve<E>(
    material: &Material,
    find: impl Fn(Material) -> Result<Arc<Ending>, E>,
) -> Result<Ending, E> {
    let exits = exits(material, find)?;
    let ending = Ending::unknown(material.clone());
    let count = ending.values.len();
    let mut solver = Solver {
        exits,
        moves: vec![0; count],
        win: vec![0; count],
        loss: vec![0; count],
        later: vec![Vec::new(); usize::from(DRAW)],
        ending,
    };
    let mated: Vec<u32> =
        (0..count).filter(|&number| solver.look(number)).map(|number| number as u32).collect();
    solver.spread(mated);
    for value in &mut solver.ending.values {
        *value = if *value == UNKNOWN { DRAW } else { *value };
    }
    Ok(solver.ending)
}

/// An ending while it is solved; all lists go by the numbers of its placements.
struct Solver {
    ending: Ending,
    exits: Exits,
    /// Moves within the ending that are not yet known to lose.
    moves: Vec<u8>,
    /// The quickest win by a move that leaves the ending; 0 for none.
    win: Vec<u8>,
    /// The longest loss by such moves, [`ESCAPE`] when one of them does not lose; 0 for none.
    loss: Vec<u8>,
    /// Placements to look at again in a later layer, for a move that leaves the ending.
    later: Vec<Vec<u32>>,
}

impl Solver {
    /// Looks at all moves of a placement once. True when it is mate.
    fn look(&mut self, number: usize) -> bool {
        let ending = &self.ending;
        let placement = ending.placement(number);
        if !ending.is_legal(&placement) {
            self.ending.values[number] = ILLEGAL;
            return false;
        }
        let side = placement.turn;
        let pieces = ending.material().pieces();
        let (own, other) = by_side(&placement, pieces);
        let (mut inside, mut outside, mut win, mut loss) = (0, 0, 0, 0);
        for (mover, (piece, from)) in pieces.iter().zip(placement.squares).enumerate() {
            if piece.color != side {
                continue;
            }
            for to in targets(*piece, from, own, other) {
                let taken =
                    placement.squares[..pieces.len()].iter().position(|square| *square == to);
                let mut after = Placement { turn: !side, ..placement };
                after.squares[mover] = to;
                if ending.is_in_check(&after, side, taken) {
                    continue;
                }
                let is_promotion = piece.role == Role::Pawn && Bitboard::BACKRANKS.contains(to);
                if taken.is_none() && !is_promotion {
                    inside += 1;
                    continue;
                }
                for exit in self.exits.find(mover, taken, is_promotion) {
                    outside += 1;
                    match exit.verdict(&after) {
                        Some(Verdict::Loss(plies)) => {
                            win = if win == 0 { plies + 1 } else { win.min(plies + 1) };
                        }
                        Some(Verdict::Win(plies)) => loss = loss.max(plies + 1),
                        Some(Verdict::Draw) => loss = ESCAPE,
                        None => unreachable!("a legal move leads to a position"),
                    }
                }
            }
        }
        if inside + outside == 0 {
            let is_mate = ending.is_in_check(&placement, side, None);
            self.ending.values[number] = if is_mate { 0 } else { DRAW };
            return is_mate;
        }
        (self.moves[number], self.win[number], self.loss[number]) = (inside, win, loss);
        if win != 0 {
            self.later[usize::from(win)].push(number as u32);
        } else if inside == 0 && loss != ESCAPE {
            self.later[usize::from(loss)].push(number as u32);
        }
        false
    }

    /// Goes from the mates to all that follows from them, a ply at a time.
    fn spread(&mut self, mated: Vec<u32>) {
        let mut layer = mated;
        for plies in 0..DRAW {
            for number in std::mem::take(&mut self.later[usize::from(plies)]) {
                let value = &mut self.ending.values[number as usize];
                if *value == UNKNOWN {
                    *value = plies;
                    layer.push(number);
                }
            }
            let mut next = Vec::new();
            for number in layer {
                self.tell(number as usize, plies, &mut next);
            }
            layer = next;
        }
        assert!(layer.is_empty(), "no ending of four pieces has so long a mate");
    }

    /// Tells the placements a move before what has been found; `next` are those found by it.
    fn tell(&mut self, number: usize, plies: u8, next: &mut Vec<u32>) {
        let found = self.ending.placement(number);
        let side = !found.turn;
        let occupied = self.ending.occupied(&found);
        for mover in 0..self.ending.material().pieces().len() {
            let piece = self.ending.material().pieces()[mover];
            if piece.color != side {
                continue;
            }
            for from in origins(piece, found.squares[mover], occupied) {
                let mut before = Placement { turn: side, ..found };
                before.squares[mover] = from;
                let number = self.ending.number(&before);
                if self.ending.values[number] != UNKNOWN {
                    continue;
                }
                if !plies.is_multiple_of(2) {
                    self.moves[number] -= 1;
                    if self.moves[number] > 0 || self.win[number] != 0 {
                        continue;
                    }
                    // A move that leaves the ending may lose later, or not at all.
                    let loss = self.loss[number];
                    if loss > plies + 1 {
                        if loss != ESCAPE {
                            self.later[usize::from(loss)].push(number as u32);
                        }
                        continue;
                    }
                }
                self.ending.values[number] = plies + 1;
                next.push(number as u32);
            }
        }
    }
}

/// The endings that captures and promotions lead to.
struct Exits {
    /// By the piece who moves and the one he takes (the last place is nobody): a single ending, or
    /// four when he is promoted.
    by_capture: Vec<Vec<Option<Exit>>>,
    by_promotion: Vec<Vec<Vec<Exit>>>,
}

impl Exits {
    fn find(&self, mover: usize, taken: Option<usize>, is_promotion: bool) -> &[Exit] {
        let taken = taken.unwrap_or(self.by_capture.len());
        if is_promotion {
            &self.by_promotion[mover][taken]
        } else {
            self.by_capture[mover][taken].as_slice()
        }
    }
}

fn exits<E>(
    material: &Material,
    find: impl Fn(Material) -> Result<Arc<Ending>, E>,
) -> Result<Exits, E> {
    let pieces = material.pieces();
    let exit =
        |mover: usize, taken: usize, role: Role| -> Result<Exit, E> {
            let left = pieces.iter().copied().enumerate().filter(|(place, _)| *place != taken);
            let left: Vec<(usize, Piece)> =
                left.map(|(place, piece)| {
                    if place == mover { (place, role.of(piece.color)) } else { (place, piece) }
                })
                .collect();
            let smaller = Material::new(left.iter().map(|(_, piece)| *piece));
            Ok(Exit::new(&left, find(smaller.expect("kings are not taken"))?))
        };
    let (mut by_capture, mut by_promotion) = (Vec::new(), Vec::new());
    for (mover, piece) in pieces.iter().enumerate() {
        let (mut captures, mut promotions) = (Vec::new(), Vec::new());
        for taken in 0..=pieces.len() {
            let victim = pieces.get(taken);
            let is_capture = victim
                .is_some_and(|victim| victim.color != piece.color && victim.role != Role::King);
            captures.push(is_capture.then(|| exit(mover, taken, piece.role)).transpose()?);
            let is_promotion = piece.role == Role::Pawn && (is_capture || victim.is_none());
            let roles: &[Role] = if is_promotion { &PROMOTIONS } else { &[] };
            let exits = roles.iter().map(|role| exit(mover, taken, *role));
            promotions.push(exits.collect::<Result<_, E>>()?);
        }
        by_capture.push(captures);
        by_promotion.push(promotions);
    }
    Ok(Exits { by_capture, by_promotion })
}

/// The squares of the side to move, and of the other.
fn by_side(placement: &Placement, pieces: &[Piece]) -> (Bitboard, Bitboard) {
    let of = |side: Color| -> Bitboard {
        let pieces = pieces.iter().zip(placement.squares).filter(|(piece, _)| piece.color == side);
        pieces.map(|(_, square)| square).collect()
    };
    (of(placement.turn), of(!placement.turn))
}

/// Where a piece can go: empty squares and pieces of the other side.
fn targets(piece: Piece, from: Square, own: Bitboard, other: Bitboard) -> Bitboard {
    if piece.role != Role::Pawn {
        return attacks::attacks(from, piece, own | other) & !own;
    }
    let empty = !(own | other);
    let forward = piece.color.fold_wb(8, -8);
    let mut squares = attacks::pawn_attacks(piece.color, from) & other;
    if let Some(one) = from.offset(forward).filter(|square| empty.contains(*square)) {
        squares.add(one);
        let home = piece.color.fold_wb(Rank::Second, Rank::Seventh);
        let two = one.offset(forward).filter(|two| from.rank() == home && empty.contains(*two));
        squares.extend(two);
    }
    squares
}

/// Where a piece may have come from without taking or becoming anything.
fn origins(piece: Piece, to: Square, occupied: Bitboard) -> Bitboard {
    if piece.role != Role::Pawn {
        return attacks::attacks(to, piece, occupied) & !occupied;
    }
    let back = piece.color.fold_wb(-8, 8);
    let mut squares = Bitboard::EMPTY;
    if let Some(one) = to.offset(back).filter(|square| !occupied.contains(*square)) {
        squares.add(one);
        let far = piece.color.fold_wb(Rank::Fourth, Rank::Fifth);
        let two = one.offset(back).filter(|two| to.rank() == far && !occupied.contains(*two));
        squares.extend(two);
    }
    squares & !Bitboard::BACKRANKS
}
