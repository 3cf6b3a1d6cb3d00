//! The part of the network between its planes and its outputs: a stem, blocks of two 3×3
//! convolutions, a 1×1 convolution and a hidden layer.
//!
//! Its parts are the first ones in the layout of the network: a convolution has its weight, then its
//! bias.

use std::sync::Arc;

use selfmate_chess::Rng;

use crate::mlp::{add, mask_inactive};
use crate::small::kernel::{multiply, multiply_transposed};
use crate::small::{Layout, Parameters};
use crate::valuenet::board::{SQUARES, TAPS, fold, transposed, unfold};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trunk {
    /// Input planes.
    pub planes: usize,
    /// Channels of the convolutions.
    pub channels: usize,
    /// Blocks of two convolutions each.
    pub blocks: usize,
    /// Whether the input of a block is added to its output.
    pub has_skips: bool,
    /// Channels of the 1×1 convolution.
    pub head: usize,
    /// Hidden units after it.
    pub hidden: usize,
}

/// The activations for one position; reusable buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Activations {
    /// The neighbourhoods of the latest convolution.
    columns: Vec<f32>,
    /// After the stem, then after each half of each block.
    layers: Vec<Vec<f32>>,
    head: Vec<f32>,
    pub hidden: Vec<f32>,
}

impl Trunk {
    pub const STEM: usize = 0;

    pub fn first_of(block: usize) -> usize {
        2 + 4 * block
    }

    pub fn second_of(block: usize) -> usize {
        4 + 4 * block
    }

    pub fn head_index(&self) -> usize {
        2 + 4 * self.blocks
    }

    pub fn hidden_index(&self) -> usize {
        4 + 4 * self.blocks
    }

    /// The index of the first part after the trunk.
    pub fn parts(&self) -> usize {
        6 + 4 * self.blocks
    }

    /// The layout of a trunk, followed by these outputs.
    pub fn layout(&self, outputs: &[(&str, &[usize])]) -> Arc<Layout> {
        let Trunk { planes, channels, blocks, head, hidden, .. } = *self;
        let mut shapes: Vec<(String, Vec<usize>)> = vec![
            ("stem.weight".to_owned(), vec![channels, planes, 3, 3]),
            ("stem.bias".to_owned(), vec![channels]),
        ];
        for block in 0..blocks {
            for half in ["first", "second"] {
                let name = format!("blocks.{block}.{half}");
                shapes.push((format!("{name}.weight"), vec![channels, channels, 3, 3]));
                shapes.push((format!("{name}.bias"), vec![channels]));
            }
        }
        shapes.extend([
            ("head.weight".to_owned(), vec![head, channels, 1, 1]),
            ("head.bias".to_owned(), vec![head]),
            ("hidden.weight".to_owned(), vec![hidden, head * SQUARES]),
            ("hidden.bias".to_owned(), vec![hidden]),
        ]);
        let mut shapes: Vec<(&str, &[usize])> =
            shapes.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect();
        shapes.extend(outputs);
        Layout::new(&shapes)
    }

    /// Random weights. Blocks with skips start near zero, so that the initial output comes from the
    /// stem.
    pub fn randomise(&self, weights: &mut Parameters, rng: &mut Rng) {
        weights.randomise(Trunk::STEM, self.planes * TAPS, 1.0, rng);
        let second = if self.has_skips { 0.2 } else { 1.0 };
        for block in 0..self.blocks {
            let inputs = self.channels * TAPS;
            weights.randomise(Trunk::first_of(block), inputs, 1.0, rng);
            weights.randomise(Trunk::second_of(block), inputs, second, rng);
        }
        weights.randomise(self.head_index(), self.channels, 1.0, rng);
        weights.randomise(self.hidden_index(), self.head * SQUARES, 1.0, rng);
    }

    /// Computes all activations of a position.
    ///
    /// # Panics
    ///
    /// Panics unless there are as many planes of 64 squares as the trunk has.
    pub fn forward(&self, weights: &Parameters, planes: &[f32], out: &mut Activations) {
        assert_eq!(planes.len(), self.planes * SQUARES, "the planes of the trunk");
        let Activations { columns, layers, head, hidden } = out;
        layers.resize_with(1 + 2 * self.blocks, Vec::new);
        self.convolve(weights, Trunk::STEM, planes, columns, &mut layers[0]);
        relu(&mut layers[0]);
        for block in 0..self.blocks {
            let [before, first, second] = &mut layers[2 * block..][..3] else {
                unreachable!("each block has two layers after its input")
            };
            self.convolve(weights, Trunk::first_of(block), before, columns, first);
            relu(first);
            self.convolve(weights, Trunk::second_of(block), first, columns, second);
            if self.has_skips {
                second.iter_mut().zip(&*before).for_each(|(sum, value)| *sum += value);
            }
            relu(second);
        }
        let last = &layers[2 * self.blocks];
        biased(weights.part(self.head_index() + 1), SQUARES, head);
        let size = (self.head, self.channels, SQUARES);
        multiply(weights.part(self.head_index()), last, head, size);
        relu(head);
        biased(weights.part(self.hidden_index() + 1), 1, hidden);
        let size = (self.hidden, self.head * SQUARES, 1);
        multiply_transposed(weights.part(self.hidden_index()), head, hidden, size);
        relu(hidden);
    }

    /// A 3×3 convolution with its bias.
    fn convolve(
        &self,
        weights: &Parameters,
        index: usize,
        planes: &[f32],
        columns: &mut Vec<f32>,
        out: &mut Vec<f32>,
    ) {
        unfold(planes, columns);
        biased(weights.part(index + 1), SQUARES, out);
        let inputs = planes.len() / SQUARES * TAPS;
        multiply(weights.part(index), columns, out, (self.channels, inputs, SQUARES));
    }
}

/// The backward pass: filters with inputs and outputs exchanged.
pub(super) struct Backward<'a> {
    trunk: Trunk,
    weights: &'a Parameters,
    /// First and second of each block.
    blocks: Vec<[Vec<f32>; 2]>,
    head: Vec<f32>,
}

impl Backward<'_> {
    pub fn new(trunk: Trunk, weights: &Parameters) -> Backward<'_> {
        let conv =
            |index: usize| transposed(weights.part(index), trunk.channels, trunk.channels * TAPS);
        let block = |block: usize| [conv(Trunk::first_of(block)), conv(Trunk::second_of(block))];
        Backward {
            trunk,
            weights,
            blocks: (0..trunk.blocks).map(block).collect(),
            head: transposed(weights.part(trunk.head_index()), trunk.head, trunk.channels),
        }
    }

    /// Adds the gradient of one position to the parts of the trunk, given its activations and the
    /// derivatives of the loss by the hidden units.
    pub fn add_gradient(
        &self,
        planes: &[f32],
        activations: &mut Activations,
        mut hidden_slopes: Vec<f32>,
        gradient: &mut Parameters,
    ) {
        let trunk = self.trunk;
        let Activations { columns, layers, head, hidden } = activations;
        mask_inactive(&mut hidden_slopes, hidden);
        let index = trunk.hidden_index();
        add(gradient.part_mut(index + 1), 1.0, &hidden_slopes);
        for (row, slope) in
            gradient.part_mut(index).chunks_exact_mut(head.len()).zip(&hidden_slopes)
        {
            add(row, *slope, head);
        }
        let mut below = vec![0.0; head.len()];
        for (row, slope) in self.weights.part(index).chunks_exact(head.len()).zip(&hidden_slopes) {
            add(&mut below, *slope, row);
        }
        mask_inactive(&mut below, head);

        // The head is a 1×1 convolution.
        let index = trunk.head_index();
        add_rows(gradient.part_mut(index + 1), &below);
        let last = &layers[2 * trunk.blocks];
        let size = (trunk.head, SQUARES, trunk.channels);
        multiply_transposed(&below, last, gradient.part_mut(index), size);
        let mut delta = vec![0.0; last.len()];
        multiply(&self.head, &below, &mut delta, (trunk.channels, trunk.head, SQUARES));

        // The blocks in reverse order. A skip connection passes derivatives unchanged.
        for block in (0..trunk.blocks).rev() {
            let (before, first, second) =
                (&layers[2 * block], &layers[2 * block + 1], &layers[2 * block + 2]);
            mask_inactive(&mut delta, second);
            let [first_transposed, second_transposed] = &self.blocks[block];
            let index = Trunk::second_of(block);
            self.weights_of(index, first, &delta, columns, gradient);
            let mut inner = self.inputs_of(second_transposed, &delta, columns);
            mask_inactive(&mut inner, first);
            self.weights_of(Trunk::first_of(block), before, &inner, columns, gradient);
            let around = self.inputs_of(first_transposed, &inner, columns);
            if trunk.has_skips {
                add(&mut delta, 1.0, &around);
            } else {
                delta = around;
            }
        }
        mask_inactive(&mut delta, &layers[0]);
        self.weights_of(Trunk::STEM, planes, &delta, columns, gradient);
    }

    /// Adds the gradient of a convolution's weights and biases.
    fn weights_of(
        &self,
        index: usize,
        inputs: &[f32],
        delta: &[f32],
        columns: &mut Vec<f32>,
        gradient: &mut Parameters,
    ) {
        add_rows(gradient.part_mut(index + 1), delta);
        unfold(inputs, columns);
        let size = (self.trunk.channels, SQUARES, inputs.len() / SQUARES * TAPS);
        multiply_transposed(delta, columns, gradient.part_mut(index), size);
    }

    /// The derivatives by the inputs of a convolution of a block.
    fn inputs_of(&self, transposed: &[f32], delta: &[f32], columns: &mut Vec<f32>) -> Vec<f32> {
        let channels = self.trunk.channels;
        columns.clear();
        columns.resize(channels * TAPS * SQUARES, 0.0);
        multiply(transposed, delta, columns, (channels * TAPS, channels, SQUARES));
        let mut below = vec![0.0; channels * SQUARES];
        fold(columns, &mut below);
        below
    }
}

/// Fills a layer with its biases, each repeated `times`.
fn biased(bias: &[f32], times: usize, out: &mut Vec<f32>) {
    out.clear();
    out.extend(bias.iter().flat_map(|&value| std::iter::repeat_n(value, times)));
}

fn relu(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
}

/// Adds the sum over all squares of each channel.
fn add_rows(sum: &mut [f32], values: &[f32]) {
    for (sum, row) in sum.iter_mut().zip(values.chunks_exact(SQUARES)) {
        *sum += row.iter().sum::<f32>();
    }
}
