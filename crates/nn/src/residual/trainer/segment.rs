//! A part of a batch that is processed as a unit, and the buffers of the threads.

use super::super::config::Config;
use super::super::kernel::{Floats, LANES, Tiles};
use super::super::network::POLICY_INPUTS;
use super::super::squeeze::GateState;
use super::super::weights::{Layout, Linear};
use super::super::winograd::ELEMENTS;

/// Boards that are transformed and multiplied together.
pub const CHUNK: usize = 8;
/// Segments of a large batch, which limits the number of useful threads.
const SEGMENTS: usize = 4;

/// A part of a batch with everything that is kept from the forward to the backward pass.
#[derive(Debug)]
pub struct Segment {
    /// The index of its first position in the batch.
    pub first: usize,
    pub count: usize,
    /// Inputs of each convolution, and finally the tower's output.
    pub inputs: Vec<Floats>,
    /// Results of each convolution, before batch norm.
    pub raw: Vec<Floats>,
    /// Means, units and gates of each block and position; empty without squeeze and excitation.
    pub gates: Vec<Floats>,
    /// Derivatives by the sum at the end of a block.
    pub skip: Floats,
    /// Derivatives between the convolutions of a block.
    pub inner: Floats,
    /// Derivatives by the second batch norm, when a gate comes between it and the sum.
    pub gated: Floats,
    /// The heads' 1×1 convolutions, 16 channels, and derivatives by them.
    pub head: Floats,
    pub head_back: Floats,
    /// Inputs of the heads' matrices.
    pub policy: Floats,
    pub value: Floats,
    /// Derivatives by the logits of moves.
    pub moves: Vec<MoveDerivative>,
    /// Sums for batch norm: of values, then of products.
    pub sums: Vec<f64>,
    /// Derivatives by one convolution's transformed filters: 36 × inputs × outputs.
    pub filters: Floats,
    /// Derivatives by the small tensors.
    pub small: Small,
    /// Sums of policy loss and value loss.
    pub losses: [f64; 2],
}

/// The derivative by one logit.
#[derive(Clone, Copy, Debug)]
pub struct MoveDerivative {
    pub number: u16,
    /// Within the segment.
    pub position: u32,
    pub derivative: f32,
}

impl Segment {
    /// Divides a batch of this many positions; reuses the memory of an equal division.
    pub fn cut(segments: &mut Vec<Segment>, config: Config, positions: usize) {
        let count = (positions / (2 * CHUNK)).clamp(1, SEGMENTS);
        let bound = |index: usize| index * positions / count;
        let same = segments.len() == count
            && segments.last().is_some_and(|last| last.first + last.count == positions);
        if !same {
            let segment =
                |index| Segment::new(config, bound(index), bound(index + 1) - bound(index));
            *segments = (0..count).map(segment).collect();
        }
        for segment in segments {
            segment.moves.clear();
            segment.losses = [0.0; 2];
            segment.small.clear();
        }
    }

    fn new(config: Config, first: usize, count: usize) -> Segment {
        let planes = config.planes.next_multiple_of(LANES);
        let filters = config.filters;
        let boards = |channels: usize| Floats::zeros(count * 64 * channels);
        let mut inputs = vec![boards(planes)];
        inputs.extend((0..config.convolutions()).map(|_| boards(filters)));
        let (gates, gated) = match config.squeeze {
            0 => (Vec::new(), Floats::default()),
            squeeze => {
                let len = count * GateState::len(filters, squeeze);
                (vec![Floats::zeros(len); config.blocks], boards(filters))
            }
        };
        Segment {
            first,
            count,
            inputs,
            raw: (0..config.convolutions()).map(|_| boards(filters)).collect(),
            gates,
            skip: boards(filters),
            inner: boards(filters),
            gated,
            head: boards(LANES),
            head_back: boards(LANES),
            policy: Floats::zeros(count * POLICY_INPUTS),
            value: Floats::zeros(count * 64),
            moves: Vec::new(),
            sums: vec![0.0; 2 * filters.max(LANES)],
            filters: Floats::zeros(ELEMENTS * planes.max(filters) * filters),
            small: Small::new(config),
            losses: [0.0; 2],
        }
    }

    /// Derivatives by the batch norm of a convolution.
    pub fn derivative(&self, layer: usize) -> &[f32] {
        match layer {
            layer if layer % 2 == 1 => &self.inner,
            layer if layer > 0 && !self.gated.is_empty() => &self.gated,
            _ => &self.skip,
        }
    }

    /// First board and number of boards of each chunk.
    pub fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.count;
        (0..count).step_by(CHUNK).map(move |start| (start, CHUNK.min(count - start)))
    }
}

/// Derivatives by the small tensors, summed over one segment.
#[derive(Debug)]
pub struct Small {
    /// Filters × 16.
    pub head: Floats,
    /// 256 × 64.
    pub hidden: Floats,
    pub hidden_bias: Vec<f32>,
    pub output: Vec<f32>,
    pub output_bias: Vec<f32>,
    /// For each block: reduce, its bias, expand, its bias.
    pub gates: Vec<[Vec<f32>; 4]>,
}

impl Small {
    fn new(config: Config) -> Small {
        let (filters, squeeze) = (config.filters, config.squeeze);
        let (outputs, units) = (config.value.outputs(), config.value_hidden);
        let gate = || [squeeze * filters, squeeze, squeeze * filters, filters].map(zeros);
        let blocks = if squeeze == 0 { 0 } else { config.blocks };
        Small {
            head: Floats::zeros(filters * LANES),
            hidden: Floats::zeros(units * 64),
            hidden_bias: zeros(units),
            output: zeros(outputs * units),
            output_bias: zeros(outputs),
            gates: (0..blocks).map(|_| gate()).collect(),
        }
    }

    fn clear(&mut self) {
        self.head.fill(0.0);
        self.hidden.fill(0.0);
        let vectors = [&mut self.hidden_bias, &mut self.output, &mut self.output_bias];
        for vector in vectors.into_iter().chain(self.gates.iter_mut().flatten()) {
            vector.fill(0.0);
        }
    }

    /// Adds them to the gradient; the first segment's replace its contents.
    pub fn copy_or_add(&self, first: bool, layout: &Layout, gradient: &mut [f32]) {
        let mut put = |range: std::ops::Range<usize>, values: &mut dyn Iterator<Item = f32>| {
            for (to, value) in gradient[range].iter_mut().zip(values) {
                *to = if first { value } else { *to + value };
            }
        };
        let filters = layout.config.filters;
        let mut column = 0;
        for head in [&layout.policy, &layout.value] {
            let columns = column..column + head.outputs;
            let values = columns.flat_map(|column| {
                (0..filters).map(move |filter| self.head[filter * LANES + column])
            });
            put(head.weight.clone(), &mut { values });
            column += head.outputs;
        }
        let mut linear = |layer: &Linear, weight: &[f32], bias: &[f32]| {
            put(layer.weight.clone(), &mut weight.iter().copied());
            put(layer.bias.clone(), &mut bias.iter().copied());
        };
        linear(&layout.value_hidden, &self.hidden, &self.hidden_bias);
        linear(&layout.value_output, &self.output, &self.output_bias);
        for (squeeze, [reduce, reduce_bias, expand, expand_bias]) in
            layout.squeezes.iter().zip(&self.gates)
        {
            linear(&squeeze.reduce, reduce, reduce_bias);
            linear(&squeeze.expand, expand, expand_bias);
        }
    }
}

/// The buffers of one thread.
#[derive(Debug)]
pub struct ThreadScratch {
    pub tiles: Floats,
    pub products: Floats,
    /// Boards of a chunk.
    pub boards: Floats,
    /// More boards of a chunk.
    pub others: Floats,
    /// Derivatives by means, units and gates.
    pub gate: Floats,
}

impl ThreadScratch {
    pub fn new(config: Config) -> ThreadScratch {
        let filters = config.filters;
        let planes = config.planes.next_multiple_of(LANES);
        let tiles = |channels| Floats::zeros(Tiles { boards: CHUNK, channels }.len());
        ThreadScratch {
            tiles: tiles(planes.max(filters)),
            products: tiles(filters),
            boards: Floats::zeros(CHUNK * 64 * filters),
            others: Floats::zeros(CHUNK * 64 * filters),
            gate: Floats::zeros(GateState::len(filters, config.squeeze)),
        }
    }
}

fn zeros(len: usize) -> Vec<f32> {
    vec![0.0; len]
}
