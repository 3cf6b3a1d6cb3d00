use selfmate_chess::{Rng, Seed};

use super::*;

const WIDTHS: [usize; 5] = [64, 128, 192, 256, 448];

fn shorts(rng: &mut Rng, len: usize, bound: i32) -> Vec<i16> {
    (0..len).map(|_| (rng.below(2 * bound as usize + 1) as i32 - bound) as i16).collect()
}

fn numbers(rng: &mut Rng, len: usize, rows: usize) -> Vec<u16> {
    (0..len).map(|_| rng.below(rows) as u16).collect()
}

#[test]
fn integer_kernels_give_the_same_bits() {
    for kernel in Kernel::all() {
        let mut rng = Seed::new(11).rng();
        for width in WIDTHS {
            for count in 0..40 {
                same_bits(kernel, &mut rng, width, count);
            }
        }
    }
}

fn same_bits(kernel: Kernel, rng: &mut Rng, width: usize, count: usize) {
    let rows = shorts(rng, 50 * width, 860);
    let bias = shorts(rng, width, 860);
    let chosen = numbers(rng, count, 50);
    let (mut plain, mut fast) = (vec![0; width], vec![0; width]);
    Kernel::Portable.hidden(&rows, &bias, &chosen, &mut plain);
    kernel.hidden(&rows, &bias, &chosen, &mut fast);
    assert_eq!(plain, fast);
    assert!(plain.iter().all(|h| (0..=ACTIVATION_ONE).contains(h)));

    let removed = numbers(rng, count / 3, 50);
    let (mut slow_sums, mut sums) = (bias.clone(), bias.clone());
    let (mut slow, mut quick) = (vec![0; width], vec![0; width]);
    Kernel::Portable.update(&rows, &chosen, &removed, &mut slow_sums, &mut slow);
    kernel.update(&rows, &chosen, &removed, &mut sums, &mut quick);
    assert_eq!((&slow, &slow_sums), (&quick, &sums));
    // Adding the removed rows again restores the sums.
    kernel.update(&rows, &removed, &[], &mut sums, &mut quick);
    assert_eq!(quick, plain);

    let rows = shorts(rng, 50 * width, 1946);
    let (mut slow, mut quick) = (vec![0; count], vec![0; count]);
    Kernel::Portable.products(&rows, &plain, &chosen, &mut slow);
    kernel.products(&rows, &plain, &chosen, &mut quick);
    assert_eq!(slow, quick);
    let exact = |number: u16| -> i64 {
        let row = &rows[usize::from(number) * width..][..width];
        plain.iter().zip(row).map(|(h, w)| i64::from(*h) * i64::from(*w)).sum()
    };
    assert!(chosen.iter().zip(&slow).all(|(n, out)| exact(*n) == i64::from(*out)));
}

#[test]
fn the_activation_is_the_square_of_the_clipped_sum() {
    for sum in i16::MIN..=i16::MAX {
        let exact = (f64::from(sum) / 1024.0).clamp(0.0, 1.0).powi(2) * 1024.0;
        assert!((f64::from(activate(sum)) - exact).abs() <= 0.5, "{sum}");
    }
}

#[test]
fn float_kernels_agree_with_plain_sums() {
    let mut rng = Seed::new(12).rng();
    for width in WIDTHS {
        let draw = |rng: &mut Rng, len: usize| -> Vec<f32> {
            (0..len).map(|_| rng.unit() as f32 - 0.5).collect()
        };
        let rows = draw(&mut rng, 20 * width);
        let (vector, scales) = (draw(&mut rng, width), draw(&mut rng, 33));
        let chosen = numbers(&mut rng, 33, 20);
        let value = |k: usize, lane: usize| f64::from(rows[usize::from(chosen[k]) * width + lane]);
        for kernel in Kernel::all() {
            let mut sums = vector.clone();
            kernel.add_rows(&rows, &chosen, &mut sums);
            let mut scaled = vector.clone();
            kernel.add_scaled_rows(&rows, &chosen, &scales, &mut scaled);
            for lane in 0..width {
                let start = f64::from(vector[lane]);
                let sum: f64 = start + (0..33).map(|k| value(k, lane)).sum::<f64>();
                assert!((f64::from(sums[lane]) - sum).abs() < 1e-4);
                let scaled_sum = (0..33).map(|k| value(k, lane) * f64::from(scales[k]));
                let exact = start + scaled_sum.sum::<f64>();
                assert!((f64::from(scaled[lane]) - exact).abs() < 1e-4);
            }
            let mut dots = vec![0.0; 33];
            kernel.dots(&rows, &vector, &chosen, &mut dots);
            for (k, dot) in dots.iter().enumerate() {
                let products = (0..width).map(|lane| value(k, lane) * f64::from(vector[lane]));
                assert!((f64::from(*dot) - products.sum::<f64>()).abs() < 1e-4);
            }
        }
    }
}

#[test]
fn the_float_activation_and_its_slope_are_the_same_in_all_kernels() {
    let sums: Vec<f32> = (0..64).map(|i| i as f32 / 16.0 - 1.5).collect();
    for kernel in Kernel::all() {
        let mut hidden = vec![9.0; 64];
        kernel.square(&sums, &mut hidden);
        let mut slopes = sums.clone();
        kernel.square_back(&[3.0; 64], &mut slopes);
        for i in 0..64 {
            let sum = sums[i];
            assert_eq!(hidden[i], sum.clamp(0.0, 1.0).powi(2));
            assert_eq!(slopes[i], if sum > 0.0 && sum < 1.0 { 6.0 * sum } else { 0.0 });
        }
    }
}

#[test]
#[should_panic(expected = "a row beyond the last of 2")]
fn a_missing_row_panics() {
    Kernel::detect().add_rows(&[0.0; 128], &[2u16], &mut [0.0; 64]);
}
