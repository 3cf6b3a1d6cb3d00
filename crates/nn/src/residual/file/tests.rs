use std::fs;

use selfmate_chess::Seed;

use super::*;
use crate::residual::ValueHead;

fn weights() -> Weights {
    let config = Config {
        planes: 13,
        blocks: 1,
        filters: 16,
        squeeze: 4,
        value: ValueHead::Wdl,
        value_hidden: 256,
    };
    Weights::random(config, Seed::new(9)).unwrap()
}

#[test]
fn files_round_trip_and_are_reproducible() {
    let weights = weights();
    let bytes = encode(&weights, WeightsInfo { step: 77 }).unwrap();
    assert!(bytes == encode(&weights, WeightsInfo { step: 77 }).unwrap());
    let (back, info) = decode(&bytes).unwrap();
    assert_eq!((back, info.step), (weights.clone(), 77));

    let folder = std::env::temp_dir().join(format!("selfmate-residual-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model.safetensors");
    fs::write(&path, encode(&weights, info).unwrap()).unwrap();
    assert_eq!(load(&path).unwrap().0, weights);
    fs::write(&path, &bytes[..1000]).unwrap();
    let error = load(&path).unwrap_err().to_string();
    assert!(error.contains("model.safetensors: not a whole safetensors file"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(load(&path).unwrap_err(), WeightsError::Io { .. }));
}

#[test]
fn every_truncated_file_is_an_error() {
    let bytes = encode(&weights(), WeightsInfo::default()).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let lengths = (0..header + 64).chain((header..bytes.len()).step_by(99_733));
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
    let mut damaged = bytes.clone();
    for index in 0..header {
        damaged[index] ^= 1 << (index % 8);
        // A changed step is still valid; anything else must be detected or harmless.
        if let Ok((back, _)) = decode(&damaged) {
            assert_eq!(back.config(), weights().config());
        }
        damaged[index] = bytes[index];
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
        replaced("planes13", "planes99"),
        "the encoding of positions is planes99 version 1: expected planes13 version 1"
    );
    assert_eq!(
        replaced("az4672", "az4673"),
        "the encoding of moves is az4673 version 1: expected az4672 version 1"
    );
    assert_eq!(
        replaced("\\\"residual\\\"", "\\\"regional\\\""),
        "the architecture is regional: expected residual"
    );
    let error = replaced("filters\\\":16", "filters\\\":17");
    assert!(error.contains("filters is 17: expected a multiple of 16"), "{error}");
    let error = replaced("blocks\\\":1,", "blocks\\\":9,");
    assert!(error.contains("tensors are"), "{error}");
    let error = replaced("stem.conv.weight", "stem.conv.weihgt");
    assert!(error.contains("stem.conv.weihgt"), "{error}");
    let error = replaced("[4672]", "[4673]");
    assert!(error.contains("safetensors"), "{error}");
    let error = replaced("\"selfmate\"", "\"otherone\"");
    assert!(error.contains("no key 'selfmate'"), "{error}");
    let error = crate::sparse::decode(&bytes).unwrap_err().to_string();
    assert_eq!(error, "the architecture is residual: expected sparse");
}

#[test]
fn a_header_with_more_weights_than_the_file_is_an_error() {
    let mut bytes = encode(&weights(), WeightsInfo { step: 10 }).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(bytes[8..header].to_vec()).unwrap();
    let changed =
        text.replace("filters\\\":16,", "filters\\\":512,").replace("step\\\":10", "step\\\":1");
    assert_eq!(changed.len(), text.len());
    bytes[8..header].copy_from_slice(changed.as_bytes());
    let error = decode(&bytes).unwrap_err().to_string();
    assert!(error.contains("expected at least"), "{error}");
}

#[test]
fn errors_name_weights_that_are_not_finite() {
    let mut weights = weights();
    weights.tensor_mut("value.conv.weight").unwrap()[5] = f32::NAN;
    let error = encode(&weights, WeightsInfo::default()).unwrap_err().to_string();
    assert_eq!(error, "tensor value.conv.weight holds NaN at 5");

    weights.tensor_mut("value.conv.weight").unwrap()[5] = 1234.5;
    let mut bytes = encode(&weights, WeightsInfo::default()).unwrap();
    let index = bytes.windows(4).position(|w| w == 1234.5f32.to_le_bytes()).unwrap();
    bytes[index..index + 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let error = decode(&bytes).unwrap_err().to_string();
    assert_eq!(error, "tensor value.conv.weight holds inf at 5");

    weights.tensor_mut("stem.norm.running_var").unwrap()[3] = -1.0;
    let bytes = encode(&weights, WeightsInfo::default()).unwrap();
    let error = decode(&bytes).unwrap_err().to_string();
    assert_eq!(error, "tensor stem.norm.running_var is -1 at 3: expected variances of 0 or more");
}
