//! Late-move reductions: the later a move comes in the order, the less deeply it is searched. It is
//! searched again only if it turns out better than expected.

use super::prune::{LateMove, NodeContext};
use super::settings::Settings;
use super::worker::Worker;

/// One ply in the unit of reductions.
pub(super) const PLY: i32 = 1024;

/// After more cutoffs than this among the replies to earlier moves, the next ones will have one too.
const MANY_CUTOFFS: u32 = 3;

/// The reduction by depth and move number alone, in parts of [`PLY`].
pub(super) struct Reductions(Vec<[i32; 64]>);

impl Reductions {
    pub(super) fn new(settings: &Settings) -> Reductions {
        let base = f64::from(settings.reduction_base) / 100.0;
        let divisor = f64::from(settings.reduction_divisor) / 100.0;
        let reduction = |depth: usize, number: usize| {
            let product = libm::log(depth.max(1) as f64) * libm::log(number.max(1) as f64);
            ((base + product / divisor) * f64::from(PLY)) as i32
        };
        Reductions(
            (0..64).map(|depth| std::array::from_fn(|number| reduction(depth, number))).collect(),
        )
    }

    pub(super) fn of(&self, depth: i32, number: usize) -> i32 {
        self.0[depth.clamp(0, 63) as usize][number.min(63)]
    }
}

impl Worker<'_> {
    /// The depth at which a late move is searched first: at least 1, at most `full`.
    ///
    /// The move must have been played already.
    pub(super) fn reduced_depth(&self, view: &NodeContext, late: &LateMove, full: i32) -> i32 {
        let gives_check = self.stack[view.ply + 1].node.in_check();
        let is_killer = self.stack[view.ply].killers.contains(&late.packed());
        let mut reduction = late.reduction;
        for (condition, plies) in [
            (view.pv, -1),
            (gives_check, -1),
            (is_killer, -1),
            (view.expect_cut, 1),
            (!view.improving, 1),
            (view.table_move_is_tactical, 1),
            (self.stack[view.ply + 1].cutoffs > MANY_CUTOFFS, 1),
        ] {
            reduction += i32::from(condition) * plies * PLY;
        }
        reduction -= late.history * PLY / self.settings.reduction_history;
        (full - reduction / PLY).clamp(1, full.max(1))
    }
}
