//! Exponential, logarithm and softmax with the same result on every machine.
//!
//! The last bits of the standard library's `exp` and `ln` depend on the platform, and recorded
//! games must not. These functions use only additions, multiplications and bit patterns, which also
//! lets the compiler vectorise them.

/// Replaces the logits of the legal moves by probabilities. A `temperature` above 1 flattens them.
///
/// There is no mask, since the logits are those of legal moves only. Masking with -1e4, the limit
/// of half precision, would give the same result. Finite logits may be any distance apart; NaN and
/// infinities count as the lowest logit. Probabilities are positive unless they are below 1e-38.
pub fn softmax(logits: &mut [f32], temperature: f32) {
    let highest = highest(logits);
    if highest == f32::NEG_INFINITY {
        let even = 1.0 / logits.len().max(1) as f32;
        logits.fill(even);
        return;
    }
    let scale = 1.0 / temperature;
    for logit in logits.iter_mut() {
        let distance = (*logit - highest) * scale;
        // Comparisons with NaN are false; infinities fail them too.
        *logit = exp_negative(if distance > LOWEST && distance <= 0.0 { distance } else { LOWEST });
    }
    let sum: f32 = logits.iter().sum();
    let scale = 1.0 / sum;
    for logit in logits.iter_mut() {
        *logit *= scale;
    }
}

/// The largest finite number, computed in independent lanes.
fn highest(numbers: &[f32]) -> f32 {
    const LANES: usize = 8;
    let larger = |most: f32, x: f32| if x.is_finite() && x > most { x } else { most };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (groups, rest) = numbers.as_chunks::<LANES>();
    for group in groups {
        lanes = std::array::from_fn(|i| larger(lanes[i], group[i]));
    }
    lanes.into_iter().chain(rest.iter().copied()).fold(f32::NEG_INFINITY, larger)
}

/// e to this power is just above the smallest normal number.
const LOWEST: f32 = -87.0;

/// The exponential of a number in [-87, 0], with a relative error of 2e-7.
fn exp_negative(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series, 2^n by the exponent bits.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let n = (x * std::f32::consts::LOG2_E - 0.5) as i32;
    let r = x - n as f32 * LN_2_HIGH - n as f32 * LN_2_LOW;
    let series = 1.0
        + r * (1.0
            + r * (0.5
                + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0))))));
    series * f32::from_bits(((n + 127) as u32) << 23)
}

/// The natural logarithm of a positive normal number, with an absolute error of 2e-7 near 1 and the
/// same relative error elsewhere.
pub fn ln(x: f32) -> f32 {
    // x = m 2^e with m in [√½, √2); ln m = 2 artanh((m - 1) / (m + 1)) by its series.
    const SQRT_HALF_BITS: u32 = 0x3F35_04F3;
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let e = (shifted as i32) >> 23;
    let m = f32::from_bits((shifted & 0x007F_FFFF) + SQRT_HALF_BITS);
    let t = (m - 1.0) / (m + 1.0);
    let t2 = t * t;
    let series =
        2.0 * t * (1.0 + t2 * (1.0 / 3.0 + t2 * (1.0 / 5.0 + t2 * (1.0 / 7.0 + t2 / 9.0))));
    e as f32 * std::f32::consts::LN_2 + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_accurate() {
        for step in 1..20_000 {
            for x in [step as f32 / 5000.0, step as f32 * 7.0, 1.0 / step as f32] {
                let (ours, exact) = (f64::from(ln(x)), f64::from(x).ln());
                assert!(
                    (ours - exact).abs() < 4e-7 * exact.abs().max(1.0),
                    "ln({x}) = {ours}, not {exact}"
                );
            }
        }
    }

    #[test]
    fn the_exponential_is_accurate() {
        for step in 0..=8700 {
            let x = -(step as f32) / 100.0;
            let (ours, exact) = (f64::from(exp_negative(x)), f64::from(x).exp());
            assert!((ours / exact - 1.0).abs() < 1e-6, "exp({x}) = {ours}, not {exact}");
        }
    }

    #[test]
    fn softmax_gives_known_probabilities() {
        let mut logits = [0.0, 2f32.ln(), 3f32.ln()];
        softmax(&mut logits, 1.0);
        for (p, expected) in logits.iter().zip([1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0]) {
            assert!((p - expected).abs() < 1e-6);
        }
        let mut logits = [0.0, 4f32.ln()];
        softmax(&mut logits, 2.0);
        assert!((logits[1] - 2.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn extreme_logits_give_probabilities() {
        let cases: [&[f32]; 6] = [
            &[1e30, -1e30, 0.0],
            &[-1e4, -1e4, 0.5],
            &[-1e4, -1e4],
            &[f32::NAN, 1.0, f32::NEG_INFINITY],
            &[f32::NAN, f32::NAN],
            &[88.0],
        ];
        for case in cases {
            let mut logits = case.to_vec();
            softmax(&mut logits, 1.0);
            assert!((logits.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{case:?} -> {logits:?}");
            assert!(logits.iter().all(|p| (0.0..=1.0).contains(p)), "{case:?} -> {logits:?}");
        }
        let mut masked = [2.0, -1e4, 1.0];
        softmax(&mut masked, 1.0);
        assert!(masked[1] < 1e-30);
    }
}
