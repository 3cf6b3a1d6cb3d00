//! A policy in one byte a move, on a logarithmic scale.
//!
//! Byte 0 is zero; byte b is exp(-(b - 1) / 16), within 3.2 % of what it stands for, and
//! whatever is below 1.2e-7 becomes zero. Tables and whole numbers instead of `exp` and `ln`: the
//! same bits on every machine, in whatever order the moves come.

/// exp(-1/16), from one byte to the next.
const STEP: f64 = 0.939_413_062_813_475_8;
/// exp(1/32), from a byte half way to the one before.
const HALF_STEP: f64 = 1.031_743_407_499_102_8;
/// What byte 1, the largest, weighs.
const ONE: f64 = (1u64 << 48) as f64;
/// How far a policy may be from summing to one.
const TOLERANCE: f64 = 1e-3;

/// What each byte weighs. The weights of all moves of a position fit a u64 with ease.
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

/// The least probability of bytes 1 to 255.
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

/// What is wrong with a policy; `Ok` when it can be packed.
pub fn check(policy: &[f32]) -> Result<(), String> {
    let mut sum = 0.0;
    for &probability in policy {
        if !(0.0..=1.0 + TOLERANCE as f32).contains(&probability) {
            return Err(format!("the policy holds {probability}: expected numbers from 0 to 1"));
        }
        sum += f64::from(probability);
    }
    // Not a number fails both comparisons.
    if (sum - 1.0).abs() <= TOLERANCE {
        Ok(())
    } else {
        Err(format!("the policy over {} moves sums to {sum:.4}: expected 1", policy.len()))
    }
}

/// One byte for each probability. What is unpacked and packed again gives the same bytes.
pub fn pack(policy: &[f32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = policy.iter().map(|&probability| byte(probability)).collect();
    // Unpacking divides by a sum that is at most half a step away from one, so the first round
    // ends this, but for sums that are exactly half a step away.
    for _ in 0..8 {
        let again: Vec<u8> = unpack(&bytes).into_iter().map(byte).collect();
        if again == bytes {
            break;
        }
        bytes = again;
    }
    bytes
}

/// The probabilities, summing to one; all zero only when all bytes are.
pub fn unpack(bytes: &[u8]) -> Vec<f32> {
    let weight = |byte: u8| WEIGHTS[usize::from(byte)];
    let sum: u64 = bytes.iter().map(|&byte| weight(byte)).sum();
    let scale = 1.0 / sum.max(1) as f64;
    bytes.iter().map(|&byte| (weight(byte) as f64 * scale) as f32).collect()
}

fn byte(probability: f32) -> u8 {
    let larger = FLOORS.partition_point(|&floor| floor > f64::from(probability));
    // Past the last floor this wraps to 0, which is zero.
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
    fn even_policies_stay_even() {
        for moves in 1..=270 {
            let policy = vec![1.0 / moves as f32; moves];
            let bytes = pack(&policy);
            for (stored, given) in unpack(&bytes).into_iter().zip(&policy) {
                assert!((stored / given - 1.0).abs() < 1e-6, "{moves} moves");
            }
        }
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for policy in
            [&[][..], &[0.5], &[f32::NAN, 1.0], &[-0.1, 1.1], &[0.6, 0.6], &[f32::INFINITY]]
        {
            assert!(check(policy).is_err(), "{policy:?}");
        }
        assert!(check(&[1.0]).is_ok() && check(&[0.25, 0.7502, 0.0]).is_ok());
    }

    proptest! {
        #[test]
        fn packing_is_close_and_packing_again_changes_nothing(
            logits in prop::collection::vec(-18.0f32..0.0, 1..219)
        ) {
            let policy = normalised(logits.iter().map(|logit| logit.exp()).collect());
            prop_assert!(check(&policy).is_ok());
            let bytes = pack(&policy);
            let stored = unpack(&bytes);
            prop_assert!((stored.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            for (stored, given) in stored.iter().zip(&policy) {
                // Half a step, and as much again by making the sum one.
                prop_assert!((stored - given).abs() <= 0.065 * given + 1.3e-7);
            }
            prop_assert_eq!(pack(&stored), bytes);
        }

        #[test]
        fn the_order_of_the_moves_changes_nothing(
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
