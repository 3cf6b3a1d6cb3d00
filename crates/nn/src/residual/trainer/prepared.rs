//! The weights of a step, transformed and packed for matrix products.

use rayon::prelude::*;

use super::super::kernel::{Floats, LANES, Right};
use super::super::network::packed;
use super::super::weights::Weights;
use super::super::winograd::{ELEMENTS, Filters};

/// Transformed filters and packed matrices.
#[derive(Debug)]
pub struct Prepared {
    pub tower: Vec<Layer>,
    /// The 1×1 convolutions of both heads side by side, filters × 16.
    pub head: Floats,
    /// The same transposed, 16 × filters.
    pub head_back: Floats,
    /// The value's matrix, 64 × 256.
    pub hidden: Floats,
}

/// A convolution's filters, forwards and backwards.
#[derive(Debug)]
pub struct Layer {
    pub filters: Filters,
    pub forward: Floats,
    /// Empty for the stem, because derivatives by the planes are not needed.
    pub backward: Floats,
}

impl Prepared {
    pub fn new(weights: &Weights) -> Prepared {
        let layout = weights.layout();
        let tower = layout.tower.iter().enumerate().map(|(number, conv)| {
            let filters = Filters { inputs: conv.inputs, outputs: conv.outputs };
            let back = Right::packed_len(conv.outputs, conv.inputs);
            Layer {
                filters,
                forward: Floats::zeros(ELEMENTS * filters.matrix()),
                backward: Floats::zeros(if number == 0 { 0 } else { ELEMENTS * back }),
            }
        });
        Prepared {
            tower: tower.collect(),
            head: Floats::zeros(layout.config.filters * LANES),
            head_back: Floats::zeros(layout.config.filters * LANES),
            hidden: Floats::default(),
        }
    }

    pub fn fill(&mut self, weights: &Weights) {
        let layout = weights.layout();
        self.tower.par_iter_mut().zip(&layout.tower).for_each(|(layer, conv)| {
            let values = weights.at(&conv.weight);
            layer.filters.forward(values, |_| 1.0, &mut layer.forward);
            if !layer.backward.is_empty() {
                layer.filters.backward(values, &mut layer.backward);
            }
        });
        let filters = layout.config.filters;
        let rows = [&layout.policy, &layout.value].map(|conv| weights.at(&conv.weight));
        let rows = rows.into_iter().flat_map(|values| values.chunks_exact(filters));
        for (column, row) in rows.enumerate() {
            for (filter, value) in row.iter().enumerate() {
                self.head[filter * LANES + column] = *value;
                self.head_back[Right::index(LANES, filters, column, filter)] = *value;
            }
        }
        self.hidden =
            packed(weights.at(&layout.value_hidden.weight), 64, layout.config.value_hidden);
    }
}
