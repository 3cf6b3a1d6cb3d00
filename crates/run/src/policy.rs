//! Policies in one byte per move, on a logarithmic scale.
//!
//! Byte 0 is zero; byte b is exp(-(b - 1) / 16). Rounding changes a probability by at most 3.2 %,
//! and probabilities below 1.2e-7 become zero. Tables and integers replace `exp` and `ln`, so that
//! the bits are the same on every machine and for every order of moves.

/// exp(-1/16): the ratio between one byte and the one before it.
const STEP: f64 = 0.939_413_062_813_475_8;
/// exp(1/32): half a step upwards.
const HALF_STEP: f64 = 1.031_743_407_499_102_8;
/// The weight of byte 1, the largest.
const ONE: f64 = (1u64 << 48) as f64;
/// How far the sum of a policy may be from one.
const TOLERANCE: f64 = 1e-3;

/// The weight of each byte. The sum over all moves of a position fits into a u64.
const WEIGHTS: [u64; 256] = {
    let mut weights = [0; 256];
    let mut byte = 1;
    let mut weight = ONE;
    while byte < 256 {
        weights[byte] = weight as u64;
        weight *= STEP;
        byte += 1;
    }
    weights
};

/// The smallest probability of bytes 1 to 255.
const FLOORS: [f64; 255] = {
    let mut floors = [0.0; 255];
    let mut index = 0;
    let mut probability = 1.0;
    while index < 255 {
        floors[index] = probability / HALF_STEP;
        probability *= STEP;
        index += 1;
    }
    floors
};

/// Checks that a policy can be packed; the error states why not.
pub fn check(policy: &[f32]) -> Result<(), String> {
    let mut sum = 0.0;
    for &probability in policy {
        if !(0.0..=1.0 + TOLERANCE as f32).contains(&probability) {
            return Err(format!("the policy contains {probability}: expected numbers from 0 to 1"));
        }
        sum += f64::from(probability);
    }
    // NaN fails this comparison too.
    if (sum - 1.0).abs() <= TOLERANCE {
        Ok(())
    } else {
        Err(format!("the policy over {} moves sums to {sum:.4}: expected 1", policy.len()))
    }
}

/// One byte for each probability. Unpacking and packing again gives the same bytes.
pub fn pack(policy: &[f32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = policy.iter().map(|&probability| byte(probability)).collect();
    // Unpacking divides by a sum at most half a step away from one. So the first round ends the
    // loop, unless the sum is exactly half a step away.
    for _ in 0..8 {
        let again: Vec<u8> = unpack(&bytes).into_iter().map(byte).collect();
        if again == bytes {
            break;
        }
        bytes = again;
    }
    bytes
}

/// The probabilities, normalised to sum to one. All zero only if all bytes are zero.
pub fn unpack(bytes: &[u8]) -> Vec<f32> {
    let weight = |byte: u8| WEIGHTS[usize::from(byte)];
    let sum: u64 = bytes.iter().map(|&byte| weight(byte)).sum();
    let scale = 1.0 / sum.max(1) as f64;
    bytes.iter().map(|&byte| (weight(byte) as f64 * scale) as f32).collect()
}

fn byte(probability: f32) -> u8 {
    let larger = FLOORS.partition_point(|&floor| floor > f64::from(probability));
    // Below the smallest floor this wraps around to 0, which means zero.
    (larger as u8).wrapping_add(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normalised(mut policy: Vec<f32>) -> Vec<f32> {
        let sum: f32 = policy.iter().sum();
        policy.iter_mut().for_each(|probability| *probability /= sum);
        policy
    }

    #[test]
    fn the_scale_is_exponential() {
        for byte in 1..=255u8 {
            let expected = (-(f64::from(byte) - 1.0) / 16.0).exp();
            let weight = WEIGHTS[usize::from(byte)] as f64 / ONE;
            assert!((weight / expected - 1.0).abs() < 1e-6, "{byte}");
        }
        assert_eq!(
            [byte(0.0), byte(1.1e-7), byte(1.3e-7), byte(1.0), byte(1.0005)],
            [0, 0, 255, 1, 1]
        );
    }

    #[test]
    fn uniform_policies_stay_uniform() {
        for moves in 1..=270 {
            let policy = vec![1.0 / moves as f32; moves];
            let bytes = pack(&policy);
            for (stored, given) in unpack(&bytes).into_iter().zip(&policy) {
                assert!((stored / given - 1.0).abs() < 1e-6, "{moves} moves");
            }
        }
    }

    #[test]
    fn invalid_policies_are_rejected() {
        for policy in
            [&[][..], &[0.5], &[f32::NAN, 1.0], &[-0.1, 1.1], &[0.6, 0.6], &[f32::INFINITY]]
        {
            assert!(check(policy).is_err(), "{policy:?}");
        }
        assert!(check(&[1.0]).is_ok() && check(&[0.25, 0.7502, 0.0]).is_ok());
    }

    proptest! {
        #[test]
        fn packing_is_accurate_and_idempotent(
            logits in prop::collection::vec(-18.0f32..0.0, 1..219)
        ) {
            let policy = normalised(logits.iter().map(|logit| logit.exp()).collect());
            prop_assert!(check(&policy).is_ok());
            let bytes = pack(&policy);
            let stored = unpack(&bytes);
            prop_assert!((stored.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            for (stored, given) in stored.iter().zip(&policy) {
                // Half a step from rounding, and as much again from normalising the sum.
                prop_assert!((stored - given).abs() <= 0.065 * given + 1.3e-7);
            }
            prop_assert_eq!(pack(&stored), bytes);
        }

        #[test]
        fn packing_does_not_depend_on_the_order_of_moves(
            logits in prop::collection::vec(-9.0f32..0.0, 1..60)
        ) {
            let mut policy = normalised(logits.iter().map(|logit| logit.exp()).collect());
            let forward = unpack(&pack(&policy));
            policy.reverse();
            let mut backward = unpack(&pack(&policy));
            backward.reverse();
            prop_assert_eq!(forward, backward);
        }
    }
}
