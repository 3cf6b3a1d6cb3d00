use selfmate_chess::{Rng, Seed};

use super::super::network::Network;
use super::super::reference::convolve;
use super::super::winograd::{ELEMENTS, Filters, gradient};
use super::super::{Config, Weights};
use super::*;

fn floats(rng: &mut Rng, len: usize) -> Floats {
    let mut out = Floats::zeros(len);
    out.iter_mut().for_each(|value| *value = rng.normal() as f32);
    out
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn assert_near(got: &[f32], expected: impl IntoIterator<Item = f64>, tolerance: f64, what: &str) {
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        let distance = (f64::from(*got) - expected).abs();
        assert!(distance < tolerance, "{what} at {index}: {got}, not {expected}");
    }
}

#[test]
fn products_match_the_definition() {
    let mut rng = Seed::new(1).rng();
    for kernel in Kernel::all() {
        for rows in (1..=21).chain([32, 49]) {
            for (depth, columns) in [(1, 16), (7, 32), (64, 48), (33, 64), (20, 80), (5, 192)] {
                let shape = Shape { rows, depth, columns };
                let left = floats(&mut rng, rows * depth);
                let right = floats(&mut rng, depth * columns);
                let mut packed = Floats::zeros(Right::packed_len(depth, columns));
                for row in 0..depth {
                    for column in 0..columns {
                        packed[Right::index(depth, columns, row, column)] =
                            right[row * columns + column];
                    }
                }
                let mut transposed = Floats::zeros(rows * depth);
                for row in 0..rows {
                    for d in 0..depth {
                        transposed[d * rows + row] = left[row * depth + d];
                    }
                }
                let expected = |row: usize, column: usize| -> f64 {
                    let terms = (0..depth).map(|d| {
                        f64::from(left[row * depth + d]) * f64::from(right[d * columns + column])
                    });
                    terms.sum()
                };
                let all = || (0..rows * columns).map(|i| expected(i / columns, i % columns));
                let mut out = floats(&mut rng, rows * columns);
                let before = out.clone();
                let packed_right = Right::packed(&packed, depth, columns);
                let rows_left = Left::rows(&left, depth);
                kernel.product(shape, rows_left, packed_right, &mut out, columns);
                assert_near(&out, all(), 1e-4, &format!("{kernel:?} {shape:?}"));
                let exact = out.clone();
                let columns_left = Left::columns(&transposed, rows);
                kernel.product(
                    shape,
                    columns_left,
                    Right::rows(&right, columns),
                    &mut out,
                    columns,
                );
                assert_eq!(&out[..], &exact[..], "the layout changes no bit");
                out.copy_from_slice(&before);
                kernel.product_add(shape, rows_left, packed_right, &mut out, columns);
                let sums = all().zip(before.iter()).map(|(sum, b)| sum + f64::from(*b));
                assert_near(&out, sums, 1e-4, "added");
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_with_any_other_rows() {
    let mut rng = Seed::new(2).rng();
    let (left, right) = (floats(&mut rng, 40 * 64), floats(&mut rng, 64 * 64));
    for kernel in Kernel::all() {
        let product = |rows: usize, first: usize| {
            let mut out = Floats::zeros(rows * 64);
            let shape = Shape { rows, depth: 64, columns: 64 };
            let left = Left::rows(&left[first * 64..], 64);
            kernel.product(shape, left, Right::packed(&right, 64, 64), &mut out, 64);
            out
        };
        let all = product(40, 0);
        for row in 0..40 {
            assert_eq!(&product(1, row)[..], &all[row * 64..(row + 1) * 64]);
        }
    }
}

#[test]
fn the_stem_matches_a_direct_convolution() {
    let mut rng = Seed::new(9).rng();
    let config = Config { planes: 13, blocks: 1, filters: 32, ..Config::small() };
    let weights = Weights::random(config, Seed::new(1)).unwrap();
    for kernel in Kernel::all() {
        let network = Network::with_kernel(&weights, kernel);
        let mut planes = vec![0.0; 13 * 64];
        for plane in planes.chunks_exact_mut(64).skip(1) {
            // Full planes of one number, and a few pieces, some of them in corners.
            match rng.chance(0.3) {
                true => plane.fill(rng.unit() as f32),
                false => (0..6).for_each(|_| plane[rng.below(64)] = rng.normal() as f32),
            }
            plane[[0, 7, 56, 63][rng.below(4)]] += 0.5;
        }
        planes[64..128].fill(0.25);
        let (mut edges, mut out) = (Floats::zeros(9 * 32), floats(&mut rng, 64 * 32));
        let stem = network.folded.stem.parts();
        kernel.stem(&planes, stem, &mut edges, &mut out);
        let wide: Vec<f64> = planes.iter().map(|value| f64::from(*value)).collect();
        let filters: Vec<f64> = (0..32 * 13 * 9)
            .map(|i| f64::from(stem.taps[(i / 9 % 13 * 9 + i % 9) * 32 + i / (13 * 9)]))
            .collect();
        let truth = convolve(&wide, &filters, 32, 3);
        let expected = (0..64 * 32)
            .map(|i| (truth[i % 32 * 64 + i / 32] + f64::from(stem.bias[i % 32])).max(0.0));
        assert_near(&out, expected, 1e-5, &format!("{kernel:?}"));
    }
}

#[test]
fn winograd_matches_a_direct_convolution() {
    let mut rng = Seed::new(3).rng();
    for kernel in Kernel::all() {
        for (inputs, outputs, boards) in [(9, 16, 1), (16, 48, 3), (32, 80, 2)] {
            let channels = usize::next_multiple_of(inputs, LANES);
            let weights = floats(&mut rng, outputs * inputs * 9);
            let mut input = Floats::zeros(boards * 64 * channels);
            for square in input.chunks_exact_mut(channels) {
                square[..inputs].iter_mut().for_each(|value| *value = rng.normal() as f32);
            }
            let filters = Filters { inputs, outputs };
            let mut transformed = Floats::zeros(ELEMENTS * filters.matrix());
            filters.forward(&weights, |_| 1.0, &mut transformed);
            let from = Tiles { boards, channels };
            let to = Tiles { boards, channels: outputs };
            let (mut tiles, mut products) = (Floats::zeros(from.len()), Floats::zeros(to.len()));
            kernel.input_tiles(from, &input, &mut tiles);
            let sides = ((from, &tiles[..]), (to, &mut products[..]));
            super::super::network::multiply(kernel, filters, &transformed, sides.0, sides.1);
            let bias = floats(&mut rng, outputs);
            let before = floats(&mut rng, boards * 64 * outputs);
            let finishes =
                [Finish::Raw, Finish::Bias(&bias), Finish::Relu(&bias), Finish::AddRelu(&bias)];
            for finish in finishes {
                let mut out = before.clone();
                kernel.output_boards(to, &products, &mut out, finish);
                for board in 0..boards {
                    let index = |square: usize, c: usize| (board * 64 + square) * channels + c;
                    let planes: Vec<f64> =
                        (0..inputs * 64).map(|i| f64::from(input[index(i % 64, i / 64)])).collect();
                    let wide: Vec<f64> = weights.iter().map(|w| f64::from(*w)).collect();
                    let truth = convolve(&planes, &wide, outputs, 3);
                    let range = board * 64 * outputs..(board + 1) * 64 * outputs;
                    let expected = (0..64 * outputs).map(|i| {
                        let (square, channel) = (i / outputs, i % outputs);
                        let raw = truth[channel * 64 + square];
                        let moved = raw + f64::from(bias[channel]);
                        match finish {
                            Finish::Raw => raw,
                            Finish::Bias(_) => moved,
                            Finish::Relu(_) => moved.max(0.0),
                            Finish::AddRelu(_) => {
                                (moved + f64::from(before[range.start + i])).max(0.0)
                            }
                        }
                    });
                    assert_near(&out[range.clone()], expected, 1e-3, "convolution");
                }
            }
        }
    }
}

#[test]
fn backward_transforms_are_the_transposes() {
    // <T x, y> = <x, Tᵀ y> for every x and y.
    let mut rng = Seed::new(4).rng();
    for kernel in Kernel::all() {
        let layout = Tiles { boards: 2, channels: 32 };
        let boards = floats(&mut rng, 2 * 64 * 32);
        // Between matrices there is a cache line that belongs to neither.
        let mut tiles = floats(&mut rng, layout.len());
        for matrix in tiles.chunks_exact_mut(layout.step()) {
            matrix[layout.rows() * layout.channels..].fill(0.0);
        }
        let (mut there, mut back) = (Floats::zeros(layout.len()), Floats::zeros(2 * 64 * 32));
        kernel.input_tiles(layout, &boards, &mut there);
        kernel.input_back(layout, &tiles, &mut back);
        let (left, right) = (dot(&there, &tiles), dot(&boards, &back));
        assert!((left - right).abs() < 1e-5 * dot(&there, &there).sqrt() * 100.0, "{left} {right}");
        kernel.output_back(layout, &boards, &mut there);
        kernel.output_boards(layout, &tiles, &mut back, Finish::Raw);
        let (left, right) = (dot(&there, &tiles), dot(&boards, &back));
        assert!((left - right).abs() < 1e-5 * dot(&there, &there).sqrt() * 100.0, "{left} {right}");
    }
    let filters = Filters { inputs: 1, outputs: 16 };
    let weights = floats(&mut rng, 16 * 9);
    let elements = [[0.0; LANES]; ELEMENTS].map(|lanes| lanes.map(|_: f32| rng.normal() as f32));
    let mut transformed = Floats::zeros(ELEMENTS * 16);
    filters.forward(&weights, |_| 1.0, &mut transformed);
    let back: Vec<f32> = {
        let taps = gradient(&elements);
        (0..16 * 9).map(|i| taps[i % 9][i / 9]).collect()
    };
    let (left, right) = (dot(&transformed, elements.as_flattened()), dot(&weights, &back));
    assert!((left - right).abs() < 1e-4, "{left} {right}");
}

#[test]
fn element_wise_loops_match_their_formulas() {
    let mut rng = Seed::new(5).rng();
    let (squares, channels) = (13, 48);
    let len = squares * channels;
    for kernel in Kernel::all() {
        let (a, b) = (floats(&mut rng, len), floats(&mut rng, len));
        let (f, g, h) =
            (floats(&mut rng, channels), floats(&mut rng, channels), floats(&mut rng, channels));
        let wide = |values: &[f32], index: usize| f64::from(values[index % values.len()]);
        let mut out = Floats::zeros(len);
        let mut by = Activate { scale: &f, shift: &g, residual: None };
        kernel.activate(&a, by, &mut out);
        let line = |i| wide(&a, i) * wide(&f, i) + wide(&g, i);
        assert_near(&out, (0..len).map(|i| line(i).max(0.0)), 1e-5, "activate");
        by.residual = Some(&b);
        kernel.activate(&a, by, &mut out);
        assert_near(&out, (0..len).map(|i| (line(i) + wide(&b, i)).max(0.0)), 1e-5, "residual");
        kernel.norm_back(&a, &b, NormBack { gain: &f, slope: &g, offset: &h }, &mut out);
        let back = |i| wide(&a, i) * wide(&f, i) + wide(&b, i) * wide(&g, i) + wide(&h, i);
        assert_near(&out, (0..len).map(back), 1e-5, "norm_back");
        let masked = |i: usize, v: f64| if b[i] > 0.0 { v } else { 0.0 };
        out.copy_from_slice(&a);
        kernel.mask(&mut out, &b);
        assert_near(&out, (0..len).map(|i| masked(i, wide(&a, i))), 1e-9, "mask");
        out.copy_from_slice(&a);
        kernel.add_mask(&mut out, &a, &b);
        assert_near(&out, (0..len).map(|i| masked(i, 2.0 * wide(&a, i))), 1e-5, "add_mask");
        let mut totals = vec![1.0; 2 * channels];
        kernel.channel_sums(&a, &b, &f, &mut totals);
        for channel in 0..channels {
            let indices = || (0..squares).map(|square| square * channels + channel);
            let sum: f64 = indices().map(|i| wide(&a, i)).sum();
            let product: f64 = indices().map(|i| wide(&a, i) * (wide(&b, i) - wide(&f, i))).sum();
            assert!((totals[channel] - 1.0 - sum).abs() < 1e-4);
            assert!((totals[channels + channel] - 1.0 - product).abs() < 1e-4);
        }
    }
}
