//! Exact tables of endings with up to four pieces, solved when first needed and then kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use shakmaty::{Chess, Color, Move, Piece, Position, Square};

use super::ending::{Ending, MAX_PIECES, Placement, Verdict};
use super::material::Material;
use super::solver::{self, TableLookup};

#[derive(Default)]
pub struct Exact {
    endings: Mutex<HashMap<Material, Arc<Ending>>>,
}

/// An ending that cannot be solved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExactError {
    #[error("{material}: {pieces} pieces: expected at most {MAX_PIECES}")]
    Pieces { material: Material, pieces: usize },
    /// The tables have no en passant.
    #[error("{0}: pawns on both sides: expected pawns on one side only")]
    Pawns(Material),
}

impl Exact {
    pub fn new() -> Exact {
        Exact::default()
    }

    /// The table of an ending, solved now if necessary. Its White is the stronger side.
    pub fn ending(&self, material: &Material) -> Result<Arc<Ending>, ExactError> {
        let pieces = material.pieces().len();
        if pieces > MAX_PIECES {
            return Err(ExactError::Pieces { material: material.clone(), pieces });
        }
        if material.has_pawns(Color::White) && material.has_pawns(Color::Black) {
            return Err(ExactError::Pawns(material.clone()));
        }
        let material =
            if material.is_white_stronger() { material.clone() } else { material.swapped() };
        if let Some(ending) = self.lock().get(&material) {
            return Ok(Arc::clone(ending));
        }
        // No lock is held here, because solving needs the smaller endings.
        let solved = solver::solve(&material, |smaller| self.ending(&smaller))?;
        Ok(Arc::clone(self.lock().entry(material).or_insert_with(|| Arc::new(solved))))
    }

    /// The value of a position, ignoring the fifty-move rule; `None` if it has too many pieces, pawns
    /// on both sides or castling rights.
    pub fn verdict(&self, position: &Chess) -> Option<Verdict> {
        let board = position.board();
        if board.occupied().count() > MAX_PIECES || position.castles().any() {
            return None;
        }
        let ending = self.ending(&Material::of(board)?).ok()?;
        let pieces: Vec<(Square, Piece)> = board.iter().collect();
        let places: Vec<(usize, Piece)> =
            pieces.iter().map(|(_, piece)| *piece).enumerate().collect();
        let mut placement = Placement { squares: [Square::A1; MAX_PIECES], turn: position.turn() };
        for (place, (square, _)) in placement.squares.iter_mut().zip(&pieces) {
            *place = *square;
        }
        TableLookup::new(&places, ending).verdict(&placement)
    }

    /// The legal moves with their values for the side to move, best first. `None` where
    /// [`Exact::verdict`] is `None`.
    pub fn moves(&self, position: &Chess) -> Option<Vec<(Move, Verdict)>> {
        self.verdict(position)?;
        let mut moves = Vec::new();
        for played in position.legal_moves() {
            let mut after = position.clone();
            after.play_unchecked(played);
            moves.push((played, self.verdict(&after)?.a_move_before()));
        }
        moves.sort_by_key(|(_, verdict)| std::cmp::Reverse(verdict.rank()));
        Some(moves)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Material, Arc<Ending>>> {
        // Tables are inserted complete, so a poisoned lock does no harm.
        self.endings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
