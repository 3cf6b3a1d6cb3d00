//! Counts material, and prefers captures of valuable pieces by cheap ones.

use selfmate_chess::{Board, Chess, Color, Move, Position, Role, material};

use super::{Evaluation, Evaluator, Leaf};
use crate::value::Wdl;

/// Value: material balance. Priors: captures and promotions first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Material;

impl Evaluator for Material {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            let position = leaf.game.position();
            evaluation.wdl = wdl(position);
            evaluation.logits.clear();
            evaluation.logits.extend(leaf.legal.iter().map(|&m| logit(m)));
        }
    }
}

/// In pawns. A bishop is worth a little more than a knight.
pub(crate) const fn piece_value(role: Role) -> f32 {
    match role {
        Role::Bishop => 3.2,
        _ => material::piece_value(role) as f32 / 100.0,
    }
}

/// The material of one side in pawns.
pub(crate) fn material(board: &Board, color: Color) -> f32 {
    let pieces = board.by_color(color);
    Role::ALL
        .into_iter()
        .map(|role| piece_value(role) * (pieces & board.by_role(role)).count() as f32)
        .sum()
}

/// A pawn up is worth about 60 % of the points, a rook up almost all of them.
fn wdl(position: &Chess) -> Wdl {
    let (board, mover) = (position.board(), position.turn());
    let balance = material(board, mover) - material(board, !mover);
    let value = balance / (balance.abs() + 4.0);
    Wdl::new(value, 0.5 * (1.0 - value.abs()))
}

fn logit(m: Move) -> f32 {
    let gain = m
        .capture()
        .map_or(0.0, |captured| 1.0 + piece_value(captured) - 0.1 * piece_value(m.role()));
    0.3 * (gain + m.promotion().map_or(0.0, piece_value))
}
