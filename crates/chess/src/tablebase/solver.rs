//! Retrograde analysis: solves an ending backwards from its checkmates.
//!
//! Positions are solved in layers, by plies to mate. A position is won in n + 1 plies if a move leads
//! to a position lost in n, and lost in n + 1 if all moves lead to positions won in n or fewer. A
//! loss is found with the last of its moves. Positions that are never found are draws. Captures and
//! promotions lead to smaller endings, which are solved first.

use std::sync::Arc;

use shakmaty::{Bitboard, Color, Piece, Rank, Role, Square, attacks};

use super::ending::{DRAW, Ending, ILLEGAL, Placement, UNKNOWN, Verdict};
use super::material::Material;

const PROMOTIONS: [Role; 4] = [Role::Queen, Role::Rook, Role::Bishop, Role::Knight];

/// Larger than any distance: a capture or promotion that does not lose.
const ESCAPE: u8 = u8::MAX;

/// Looks up placements of one ending in the table of another: a smaller one after a capture or
/// promotion, or the same one with colours swapped.
pub(super) struct TableLookup {
    ending: Arc<Ending>,
    /// For each piece of the smaller ending, its index in the larger one.
    places: Vec<usize>,
    /// Colours are swapped and the board is flipped.
    is_swapped: bool,
}

impl TableLookup {
    /// `left` are the pieces that remain, with their indices in the larger ending. `ending` has the
    /// same pieces, or the same with colours swapped.
    pub fn new(left: &[(usize, Piece)], ending: Arc<Ending>) -> TableLookup {
        let left_pieces = Material::new(left.iter().map(|(_, piece)| *piece));
        let is_swapped = left_pieces.as_ref() != Some(ending.material());
        let mut left = left.to_vec();
        let pieces = ending.material().pieces().iter();
        let places = pieces.map(|piece| {
            let wanted = if is_swapped { piece.role.of(!piece.color) } else { *piece };
            let found = left.iter().position(|(_, other)| *other == wanted);
            left.swap_remove(found.expect("the ending has the pieces that are left")).0
        });
        TableLookup { places: places.collect(), ending, is_swapped }
    }

    /// The value of the placement in the smaller ending.
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

/// Solves an ending; `find` returns the smaller ones.
pub(super) fn solve<E>(
    material: &Material,
    find: impl Fn(Material) -> Result<Arc<Ending>, E>,
) -> Result<Ending, E> {
    let conversions = conversions(material, find)?;
    let ending = Ending::unknown(material.clone());
    let count = ending.values.len();
    let mut solver = Solver {
        conversions,
        moves: vec![0; count],
        win: vec![0; count],
        loss: vec![0; count],
        pending: vec![Vec::new(); usize::from(DRAW)],
        ending,
    };
    let mated: Vec<u32> =
        (0..count).filter(|&index| solver.initialise(index)).map(|index| index as u32).collect();
    solver.propagate(mated);
    for value in &mut solver.ending.values {
        *value = if *value == UNKNOWN { DRAW } else { *value };
    }
    Ok(solver.ending)
}

/// The state of the solver. All lists are indexed by placement.
struct Solver {
    ending: Ending,
    conversions: Conversions,
    /// The number of moves within the ending that are not yet known to lose.
    moves: Vec<u8>,
    /// The quickest win by a move into a smaller ending; 0 for none.
    win: Vec<u8>,
    /// The longest loss by such moves; [`ESCAPE`] if one of them does not lose, 0 for none.
    loss: Vec<u8>,
    /// By distance: placements whose value is set by a move into a smaller ending.
    pending: Vec<Vec<u32>>,
}

impl Solver {
    /// Initialises a placement from its legal moves. Returns true for checkmate.
    fn initialise(&mut self, index: usize) -> bool {
        let ending = &self.ending;
        let placement = ending.placement(index);
        if !ending.is_legal(&placement) {
            self.ending.values[index] = ILLEGAL;
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
                for conversion in self.conversions.find(mover, taken, is_promotion) {
                    outside += 1;
                    match conversion.verdict(&after) {
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
            self.ending.values[index] = if is_mate { 0 } else { DRAW };
            return is_mate;
        }
        (self.moves[index], self.win[index], self.loss[index]) = (inside, win, loss);
        if win != 0 {
            self.pending[usize::from(win)].push(index as u32);
        } else if inside == 0 && loss != ESCAPE {
            self.pending[usize::from(loss)].push(index as u32);
        }
        false
    }

    /// Propagates from the checkmates to all positions that depend on them, one ply at a time.
    fn propagate(&mut self, mated: Vec<u32>) {
        let mut layer = mated;
        for plies in 0..DRAW {
            for index in std::mem::take(&mut self.pending[usize::from(plies)]) {
                let value = &mut self.ending.values[index as usize];
                if *value == UNKNOWN {
                    *value = plies;
                    layer.push(index);
                }
            }
            let mut next = Vec::new();
            for index in layer {
                self.update_predecessors(index as usize, plies, &mut next);
            }
            layer = next;
        }
        assert!(layer.is_empty(), "mates of four pieces take fewer than {DRAW} plies");
    }

    /// Updates the predecessors of a solved placement. Those solved by it are added to `next`.
    fn update_predecessors(&mut self, index: usize, plies: u8, next: &mut Vec<u32>) {
        let found = self.ending.placement(index);
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
                let index = self.ending.index(&before);
                if self.ending.values[index] != UNKNOWN {
                    continue;
                }
                if !plies.is_multiple_of(2) {
                    self.moves[index] -= 1;
                    if self.moves[index] > 0 || self.win[index] != 0 {
                        continue;
                    }
                    // A move into a smaller ending may lose later, or not at all.
                    let loss = self.loss[index];
                    if loss > plies + 1 {
                        if loss != ESCAPE {
                            self.pending[usize::from(loss)].push(index as u32);
                        }
                        continue;
                    }
                }
                self.ending.values[index] = plies + 1;
                next.push(index as u32);
            }
        }
    }
}

struct Conversions {
    /// Indexed by the moving piece and the captured piece; the last index means no capture.
    by_capture: Vec<Vec<Option<TableLookup>>>,
    by_promotion: Vec<Vec<Vec<TableLookup>>>,
}

impl Conversions {
    fn find(&self, mover: usize, taken: Option<usize>, is_promotion: bool) -> &[TableLookup] {
        let taken = taken.unwrap_or(self.by_capture.len());
        if is_promotion {
            &self.by_promotion[mover][taken]
        } else {
            self.by_capture[mover][taken].as_slice()
        }
    }
}

fn conversions<E>(
    material: &Material,
    find: impl Fn(Material) -> Result<Arc<Ending>, E>,
) -> Result<Conversions, E> {
    let pieces = material.pieces();
    let conversion =
        |mover: usize, taken: usize, role: Role| -> Result<TableLookup, E> {
            let left = pieces.iter().copied().enumerate().filter(|(place, _)| *place != taken);
            let left: Vec<(usize, Piece)> =
                left.map(|(place, piece)| {
                    if place == mover { (place, role.of(piece.color)) } else { (place, piece) }
                })
                .collect();
            let smaller = Material::new(left.iter().map(|(_, piece)| *piece));
            Ok(TableLookup::new(&left, find(smaller.expect("kings are never captured"))?))
        };
    let (mut by_capture, mut by_promotion) = (Vec::new(), Vec::new());
    for (mover, piece) in pieces.iter().enumerate() {
        let (mut captures, mut promotions) = (Vec::new(), Vec::new());
        for taken in 0..=pieces.len() {
            let victim = pieces.get(taken);
            let is_capture = victim
                .is_some_and(|victim| victim.color != piece.color && victim.role != Role::King);
            captures.push(is_capture.then(|| conversion(mover, taken, piece.role)).transpose()?);
            let is_promotion = piece.role == Role::Pawn && (is_capture || victim.is_none());
            let roles: &[Role] = if is_promotion { &PROMOTIONS } else { &[] };
            let conversions = roles.iter().map(|role| conversion(mover, taken, *role));
            promotions.push(conversions.collect::<Result<_, E>>()?);
        }
        by_capture.push(captures);
        by_promotion.push(promotions);
    }
    Ok(Conversions { by_capture, by_promotion })
}

/// The squares of the side to move and of the other side.
fn by_side(placement: &Placement, pieces: &[Piece]) -> (Bitboard, Bitboard) {
    let of = |side: Color| -> Bitboard {
        let pieces = pieces.iter().zip(placement.squares).filter(|(piece, _)| piece.color == side);
        pieces.map(|(_, square)| square).collect()
    };
    (of(placement.turn), of(!placement.turn))
}

/// The squares a piece can move to, captures included.
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

/// The squares a piece may have come from without a capture or promotion.
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
