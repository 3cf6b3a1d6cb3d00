use std::fs;

use selfmate_chess::Seed;

use super::*;
use crate::sparse::ValueHead;

fn weights() -> Weights {
    let config = SparseConfig { hidden: 64, value_hidden: 8, value_head: ValueHead::Score };
    Weights::random(config, Seed::new(9)).unwrap()
}

#[test]
fn files_round_trip_and_are_reproducible() {
    let weights = weights();
    let bytes = encode(&weights, WeightsInfo { step: 77 }).unwrap();
    assert!(bytes == encode(&weights, WeightsInfo { step: 77 }).unwrap());
    let (back, info) = decode(&bytes).unwrap();
    assert_eq!((back, info.step), (weights.clone(), 77));

    let folder = std::env::temp_dir().join(format!("selfmate-nn-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model.safetensors");
    fs::write(&path, encode(&weights, info).unwrap()).unwrap();
    assert_eq!(load(&path).unwrap().0, weights);
    fs::write(&path, &bytes[..1000]).unwrap();
    let error = load(&path).unwrap_err().to_string();
    assert!(error.contains("model.safetensors: not a whole safetensors file"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
    let error = load(&path).unwrap_err();
    assert!(matches!(error, WeightsError::Io { .. }), "{error}");
}

#[test]
fn every_truncated_file_is_an_error() {
    let bytes = encode(&weights(), WeightsInfo::default()).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    // All of the header, then a sample of the data, where the length check is the same everywhere.
    let lengths = (0..header + 64).chain((header..bytes.len()).step_by(9973));
    for length in lengths.chain(bytes.len() - 16..bytes.len()) {
        assert!(decode(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(decode(&longer).is_err());
}

#[test]
fn damaged_headers_never_panic() {
    let bytes = encode(&weights(), WeightsInfo { step: 1234 }).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for index in 0..header {
        let mut damaged = bytes.clone();
        damaged[index] ^= 1 << (index % 8);
        // A changed step is still valid; anything else must be detected or harmless.
        if let Ok((back, _)) = decode(&damaged) {
            assert_eq!(back.config().hidden, 64);
        }
    }
}

#[test]
fn errors_name_what_is_wrong_with_a_file() {
    let bytes = encode(&weights(), WeightsInfo::default()).unwrap();
    let replaced = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let mut bytes = bytes.clone();
        let index = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        bytes[index..index + to.len()].copy_from_slice(to.as_bytes());
        decode(&bytes).unwrap_err().to_string()
    };
    assert_eq!(
        replaced("threats3084", "threats9999"),
        "the encoding of positions is threats9999 version 1: expected threats3084 version 1"
    );
    assert_eq!(
        replaced("moves_version\\\":1", "moves_version\\\":2"),
        "the encoding of moves is threat_rows version 2: expected threat_rows version 1"
    );
    assert_eq!(
        replaced("\\\"sparse\\\"", "\\\"spruce\\\""),
        "the architecture is spruce: expected sparse"
    );
    let error = replaced("hidden\\\":64", "hidden\\\":65");
    assert!(error.contains("hidden is 65: expected a multiple of 64"), "{error}");
    let error = replaced("value_hidden\\\":8", "value_hidden\\\":0");
    assert!(error.contains("value_hidden is 0"), "{error}");
    let error = replaced("policy.table", "policy.tabel");
    assert!(error.contains("policy.tabel"), "{error}");
    let error = replaced("[288]", "[277]");
    assert!(error.contains("safetensors"), "{error}");
    let error = replaced("\"selfmate\"", "\"otherone\"");
    assert!(error.contains("no key 'selfmate'"), "{error}");
}

#[test]
fn errors_name_a_tensor_of_the_wrong_shape() {
    // The header has 128, the tensors are 64 wide. JSON may end in a space after a digit is
    // removed.
    let mut bytes = encode(&weights(), WeightsInfo { step: 10 }).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(bytes[8..header].to_vec()).unwrap();
    let changed =
        text.replace("hidden\\\":64,", "hidden\\\":128,").replace("step\\\":10", "step\\\":1");
    assert_eq!(changed.len(), text.len());
    bytes[8..header].copy_from_slice(changed.as_bytes());
    assert_eq!(
        decode(&bytes).unwrap_err().to_string(),
        "tensor input.weight is F32 [3084, 64]: expected F32 [3084, 128]"
    );
}

#[test]
fn errors_name_weights_that_are_not_finite() {
    let mut weights = weights();
    weights.policy[5] = f32::NAN;
    let error = encode(&weights, WeightsInfo::default()).unwrap_err().to_string();
    assert_eq!(error, "tensor policy.weight holds NaN at 5");

    weights.policy[5] = 1234.5;
    let mut bytes = encode(&weights, WeightsInfo::default()).unwrap();
    let index = bytes.windows(4).position(|w| w == 1234.5f32.to_le_bytes()).unwrap();
    bytes[index..index + 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let error = decode(&bytes).unwrap_err().to_string();
    assert_eq!(error, "tensor policy.weight holds inf at 5");
}
