//! Inference: a network with its buffers, and threads that share a batch.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use selfmate_search::{Wdl, math};

use super::config::{MOVES, ValueHead};
use super::integer::IntegerScratch;
use super::kernel::{Floats, LANES, Left, PANEL, Right, Shape, Tiles};
use super::network::{End, Network, POLICY_INPUTS, TileScratch};
use super::squeeze::{GateState, dot, gated};

/// Boards whose tiles are multiplied together, so that the tiles stay in the second-level cache.
const BLOCK: usize = 8;
/// Boards that go through the tower together, so that its weights are read once for all of them.
const GROUP: usize = 32;

/// Runs a network. It allocates no memory after its largest batch.
///
/// ```
/// use selfmate_chess::{Game, Seed};
/// use selfmate_nn::residual::{Config, Network, Outputs, Session, Weights};
///
/// let config = Config { blocks: 1, filters: 16, ..Config::small() };
/// let weights = Weights::random(config, Seed::new(1)).unwrap();
/// let mut session = Session::new(&Network::new(&weights));
///
/// let mut planes = vec![0.0; config.planes * 64];
/// config.encoding().encode(&Game::new(), &mut planes);
/// let mut outputs = Outputs::default();
/// session.run(&planes, &mut outputs);
/// assert_eq!(outputs.policy.len(), 4672);
/// assert!(outputs.wdl(0).value().abs() < 0.2);
/// ```
#[derive(Debug)]
pub struct Session {
    network: Network,
    scratches: Vec<SessionScratch>,
    pool: Option<ThreadPool>,
}

/// The threads could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {threads} threads: {message}")]
pub struct ThreadsError {
    pub(super) threads: usize,
    pub(super) message: String,
}

/// The outputs for a batch.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// A logit for each move of `az4672`, 4672 per position.
    pub policy: Vec<f32>,
    /// The value head's outputs before tanh (scalar) or softmax (win, draw, loss).
    pub value: Vec<f32>,
    head: Option<ValueHead>,
}

impl Outputs {
    /// The win, draw and loss probabilities of one position, for its side to move. A scalar head
    /// has no draws: v becomes (1 + v) / 2 wins.
    ///
    /// # Panics
    ///
    /// Panics when `index` is not in the batch.
    pub fn wdl(&self, index: usize) -> Wdl {
        let head = self.head.unwrap_or(ValueHead::Scalar);
        let outputs = head.outputs();
        wdl_of_outputs(head, &self.value[index * outputs..(index + 1) * outputs])
    }
}

/// Win, draw and loss probabilities from the outputs of a value head.
pub(crate) fn wdl_of_outputs(head: ValueHead, outputs: &[f32]) -> Wdl {
    match head {
        ValueHead::Scalar => Wdl::new(libm::tanhf(outputs[0]), 0.0),
        ValueHead::Wdl => {
            let mut logits = [outputs[0], outputs[1], outputs[2]];
            math::softmax(&mut logits, 1.0);
            Wdl { win: logits[0], draw: logits[1], loss: logits[2] }
        }
    }
}

impl Session {
    /// Runs on the caller's thread.
    pub fn new(network: &Network) -> Session {
        Session { network: network.clone(), scratches: vec![SessionScratch::default()], pool: None }
    }

    /// Divides each batch into one part per thread, and the products of a single position likewise.
    /// The results are the same.
    pub fn with_threads(network: &Network, threads: usize) -> Result<Session, ThreadsError> {
        if threads <= 1 {
            return Ok(Session::new(network));
        }
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| ThreadsError { threads, message: error.to_string() })?;
        let scratches = (0..threads).map(|_| SessionScratch::default()).collect();
        Ok(Session { network: network.clone(), scratches, pool: Some(pool) })
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Evaluates a batch: planes × 64 numbers per position, as encoded by `encode`.
    ///
    /// # Panics
    ///
    /// Panics unless `planes` holds whole positions.
    pub fn run(&mut self, planes: &[f32], outputs: &mut Outputs) {
        let config = self.network.config();
        let count = self.count(planes);
        let value_outputs = config.value.outputs();
        outputs.head = Some(config.value);
        outputs.policy.resize(count * MOVES, 0.0);
        outputs.value.resize(count * value_outputs, 0.0);
        let share = self.share(count);
        let slices = outputs.policy.chunks_mut(share * MOVES);
        let slices = slices.zip(outputs.value.chunks_mut(share * value_outputs));
        self.each_part(planes, share, slices, |network, scratch, planes, (policy, value)| {
            scratch.features(network, planes);
            scratch.policy(network, policy);
            scratch.value(network, value);
        });
    }

    /// Evaluates a batch, but computes only the logits of the moves in `requested`. `logits` must have
    /// one list for each position.
    pub(super) fn run_moves(
        &mut self,
        planes: &[f32],
        requested: &[Vec<u16>],
        logits: &mut [Vec<f32>],
        value: &mut Vec<f32>,
    ) {
        let count = self.count(planes);
        assert!(requested.len() == count && logits.len() == count, "{count} positions");
        let value_outputs = self.network.config().value.outputs();
        value.resize(count * value_outputs, 0.0);
        let share = self.share(count);
        let slices = requested.chunks(share).zip(logits.chunks_mut(share));
        let slices = slices.zip(value.chunks_mut(share * value_outputs));
        self.each_part(
            planes,
            share,
            slices,
            |network, scratch, planes, ((requested, logits), value)| {
                scratch.features(network, planes);
                for ((moves, logits), row) in
                    requested.iter().zip(logits).zip(scratch.policy.chunks_exact(POLICY_INPUTS))
                {
                    let layout = network.folded.weights.layout();
                    let weights = network.folded.weights.at(&layout.policy_linear.weight);
                    let bias = network.folded.weights.at(&layout.policy_linear.bias);
                    logits.clear();
                    logits.extend(moves.iter().map(|&number| {
                        let number = usize::from(number);
                        let start = number * POLICY_INPUTS;
                        dot(&weights[start..start + POLICY_INPUTS], row) + bias[number]
                    }));
                }
                scratch.value(network, value);
            },
        );
    }

    fn count(&self, planes: &[f32]) -> usize {
        let size = self.network.config().planes * 64;
        assert!(planes.len().is_multiple_of(size), "{} numbers: positions of {size}", planes.len());
        planes.len() / size
    }

    /// Positions per part.
    fn share(&self, count: usize) -> usize {
        count.div_ceil(self.scratches.len()).max(1)
    }

    /// Runs every part with its own buffers.
    fn each_part<T: Send>(
        &mut self,
        planes: &[f32],
        share: usize,
        slices: impl Iterator<Item = T> + Send,
        run: impl Fn(&Network, &mut SessionScratch, &[f32], T) + Sync,
    ) {
        let (network, run) = (&self.network, &run);
        let parts = planes.chunks(share * network.config().planes * 64);
        let parts = parts.zip(slices).zip(&mut self.scratches);
        let alone = planes.len() <= network.config().planes * 64;
        match &self.pool {
            None => {
                parts.for_each(|((planes, slice), scratch)| run(network, scratch, planes, slice));
            }
            Some(pool) => pool.in_place_scope(|scope| {
                for ((planes, slice), scratch) in parts {
                    scratch.tiles.threads = if alone { pool.current_num_threads() } else { 1 };
                    scope.spawn(move |_| run(network, scratch, planes, slice));
                }
            }),
        }
    }
}

/// The buffers of one thread.
#[derive(Debug, Default)]
struct SessionScratch {
    /// For the stem.
    edges: Floats,
    /// The state of the tower.
    tower: Floats,
    /// Between the convolutions of a block.
    between: Floats,
    tiles: TileScratch,
    /// Means, units and gates.
    gate: Floats,
    head: Floats,
    /// Inputs of the policy's matrix, 128 per position.
    policy: Floats,
    /// Inputs of the value's matrix, 64 per position.
    value: Floats,
    hidden: Floats,
    integers: IntegerScratch,
}

impl SessionScratch {
    fn grow(&mut self, network: &Network, count: usize) {
        let config = network.config();
        let filters = config.filters;
        let (group, block) = (count.min(GROUP), count.min(BLOCK));
        self.edges.grow(9 * filters);
        self.tower.grow(group * 64 * filters);
        self.between.grow(group * 64 * filters);
        self.tiles.tiles.grow(Tiles { boards: block, channels: filters }.len());
        self.tiles.products.grow(Tiles { boards: block, channels: filters }.len());
        self.gate.grow(GateState::len(filters, config.squeeze));
        self.head.grow(block * 64 * LANES);
        self.policy.grow(count * POLICY_INPUTS);
        self.value.grow(count * 64);
        self.hidden.grow(count * config.value_hidden);
    }

    /// Computes the inputs of both heads' matrices.
    fn features(&mut self, network: &Network, planes: &[f32]) {
        let size = network.config().planes * 64;
        self.grow(network, planes.len() / size);
        for (number, planes) in planes.chunks(GROUP * size).enumerate() {
            match &network.integers {
                None => self.tower(network, planes, |_, _| ()),
                Some(integers) => {
                    self.stem(network, planes);
                    let board = 64 * network.config().filters;
                    let boards = self.tower.chunks_exact_mut(board);
                    for (_, tower) in planes.chunks_exact(size).zip(boards) {
                        integers.run(&network.folded, tower, &mut self.integers);
                    }
                }
            }
            self.heads(network, planes.len() / size, number * GROUP);
        }
    }

    /// Runs a group of positions through the stem.
    fn stem(&mut self, network: &Network, planes: &[f32]) {
        let (folded, kernel) = (&*network.folded, network.kernel);
        let boards = self.tower.chunks_exact_mut(64 * folded.config.filters);
        for (planes, out) in planes.chunks_exact(folded.config.planes * 64).zip(boards) {
            kernel.stem(planes, folded.stem.parts(), &mut self.edges, out);
        }
    }

    /// Runs a group of positions through the tower. `observe` gets the input of each convolution
    /// after the stem.
    fn tower(&mut self, network: &Network, planes: &[f32], mut observe: impl FnMut(usize, &[f32])) {
        self.stem(network, planes);
        let (folded, kernel) = (&*network.folded, network.kernel);
        let filters = folded.config.filters;
        let count = planes.len() / (folded.config.planes * 64);
        let (block, board) = (BLOCK * 64 * filters, 64 * filters);
        let tower = &mut self.tower[..count * board];
        let between = &mut self.between[..count * board];
        for (number, layers) in folded.tower.chunks_exact(2).enumerate() {
            observe(2 * number, tower);
            for (from, to) in tower.chunks(block).zip(between.chunks_mut(block)) {
                let count = from.len() / board;
                layers[0].run(kernel, count, from, &mut self.tiles, to, End::Relu);
            }
            observe(2 * number + 1, between);
            let gate = folded.gate(number);
            for (from, to) in between.chunks_mut(block).zip(tower.chunks_mut(block)) {
                let count = from.len() / board;
                let Some(gate) = gate else {
                    layers[1].run(kernel, count, from, &mut self.tiles, to, End::AddRelu);
                    continue;
                };
                // The input was already transformed to tiles when the output overwrites it.
                layers[1].run_in_place(kernel, count, from, &mut self.tiles);
                let mut state = GateState::new(&mut self.gate, filters, folded.config.squeeze);
                for (from, to) in from.chunks_exact(board).zip(to.chunks_exact_mut(board)) {
                    gate.open(from, &mut state);
                    gated(from, state.gates, to);
                }
            }
        }
    }

    /// The 1×1 convolutions, for a group of positions.
    fn heads(&mut self, network: &Network, count: usize, first: usize) {
        let (folded, kernel) = (&*network.folded, network.kernel);
        let filters = folded.config.filters;
        for start in (0..count).step_by(BLOCK) {
            let boards = BLOCK.min(count - start);
            let shape = Shape { rows: boards * 64, depth: filters, columns: LANES };
            let left = Left::rows(&self.tower[start * 64 * filters..], filters);
            let right = Right::packed(&folded.head, filters, LANES);
            kernel.product(shape, left, right, &mut self.head, LANES);
            for board in 0..boards {
                let squares = &self.head[board * 64 * LANES..(board + 1) * 64 * LANES];
                let index = first + start + board;
                let policy = &mut self.policy[index * POLICY_INPUTS..(index + 1) * POLICY_INPUTS];
                let value = &mut self.value[index * 64..(index + 1) * 64];
                let activated = |row: &[f32], c: usize| (row[c] + folded.head_bias[c]).max(0.0);
                for (square, row) in squares.chunks_exact(LANES).enumerate() {
                    policy[square] = activated(row, 0);
                    policy[64 + square] = activated(row, 1);
                    value[square] = activated(row, 2);
                }
            }
        }
    }

    /// All logits of the policy.
    fn policy(&mut self, network: &Network, out: &mut [f32]) {
        let folded = &*network.folded;
        let bias = folded.weights.at(&folded.weights.layout().policy_linear.bias);
        for row in out.chunks_exact_mut(MOVES) {
            row.copy_from_slice(bias);
        }
        let rows = out.len() / MOVES;
        let left = Left::rows(&self.policy, POLICY_INPUTS);
        let add = |columns: &mut [f32], offset: usize, width: usize| {
            let shape = Shape { rows, depth: POLICY_INPUTS, columns: width };
            let right = Right::packed(&folded.policy[offset..], POLICY_INPUTS, width);
            network.kernel.product_add(shape, left, right, columns, MOVES.min(columns.len()));
        };
        // The columns of a single row can be divided at the panels of the matrix.
        if self.tiles.threads > 1 && rows == 1 {
            let width = (MOVES / PANEL).div_ceil(self.tiles.threads) * PANEL;
            out.par_chunks_mut(width).enumerate().for_each(|(part, columns)| {
                let offset = Right::index(POLICY_INPUTS, MOVES, 0, part * width);
                add(columns, offset, columns.len());
            });
        } else {
            add(out, 0, MOVES);
        }
    }

    /// The outputs of the value head.
    fn value(&mut self, network: &Network, out: &mut [f32]) {
        let (folded, layout) = (&*network.folded, network.folded.weights.layout());
        let (outputs, units) = (folded.config.value.outputs(), folded.config.value_hidden);
        let rows = out.len() / outputs;
        let bias = folded.weights.at(&layout.value_hidden.bias);
        let hidden = &mut self.hidden[..rows * units];
        for row in hidden.chunks_exact_mut(units) {
            row.copy_from_slice(bias);
        }
        let shape = Shape { rows, depth: 64, columns: units };
        let right = Right::packed(&folded.hidden, 64, units);
        network.kernel.product_add(shape, Left::rows(&self.value, 64), right, hidden, units);
        let matrix = folded.weights.at(&layout.value_output.weight);
        let bias = folded.weights.at(&layout.value_output.bias);
        for (hidden, out) in hidden.chunks_exact_mut(units).zip(out.chunks_exact_mut(outputs)) {
            hidden.iter_mut().for_each(|unit| *unit = unit.max(0.0));
            for ((out, row), bias) in out.iter_mut().zip(matrix.chunks_exact(units)).zip(bias) {
                *out = dot(row, hidden) + bias;
            }
        }
    }
}

/// The largest input of each convolution after the stem, over all positions.
pub(super) fn largest_inputs(network: &Network, planes: &[f32]) -> Vec<f32> {
    let config = network.config();
    let size = config.planes * 64;
    assert!(planes.len().is_multiple_of(size), "{} numbers: positions of {size}", planes.len());
    let mut largest = vec![0.0f32; 2 * config.blocks];
    let mut scratch = SessionScratch::default();
    scratch.grow(network, GROUP);
    for planes in planes.chunks(GROUP * size) {
        scratch.tower(network, planes, |layer, inputs| {
            largest[layer] = inputs.iter().copied().fold(largest[layer], f32::max);
        });
    }
    largest
}

/// Converts planes of squares to squares of planes, padded with zeros to a multiple of 16 planes.
pub(crate) fn boards_of(planes: &[f32], count: usize, boards: &mut [f32]) {
    let channels = count.next_multiple_of(LANES);
    let positions = planes.len() / (count * 64);
    boards[..positions * 64 * channels].fill(0.0);
    let boards = boards.chunks_exact_mut(64 * channels);
    for (planes, board) in planes.chunks_exact(count * 64).zip(boards) {
        for (channel, plane) in planes.as_chunks::<64>().0.iter().enumerate() {
            // Most planes are empty.
            if plane.iter().fold(0, |bits, value| bits | value.to_bits()) != 0 {
                for (square, value) in plane.iter().enumerate() {
                    board[square * channels + channel] = *value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
