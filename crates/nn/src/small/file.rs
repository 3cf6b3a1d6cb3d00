//! Files of small networks: architecture and shape in the header, one tensor for each part.

use safetensors::tensor::{Dtype, SafeTensors};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::parameters::Parameters;
use crate::file::{self, Stored, WeightsError, check_same};

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<C> {
    architecture: String,
    version: u32,
    shape: C,
    step: u64,
}

/// Encodes sets of weights in one file, each with a prefix to its tensor names.
pub(crate) fn encode<C: Serialize>(
    architecture: &str,
    shape: C,
    step: u64,
    sets: &[(&str, &Parameters)],
) -> Result<Vec<u8>, WeightsError> {
    let header = Header { architecture: architecture.to_owned(), version: VERSION, shape, step };
    let mut stored = Vec::new();
    for (prefix, parameters) in sets {
        for (name, shape, values) in parameters.tensors() {
            stored.push(Stored::floats(format!("{prefix}{name}"), shape.to_vec(), values)?);
        }
    }
    file::encode(&header, &stored)
}

/// The shape, the step and the tensors of a file of this architecture.
pub(crate) fn decode<'a, C: DeserializeOwned>(
    bytes: &'a [u8],
    architecture: &str,
) -> Result<(C, u64, SafeTensors<'a>), WeightsError> {
    let (header, tensors) = file::decode::<Header<C>>(bytes, architecture)?;
    let (got, expected) = (header.version.to_string(), VERSION.to_string());
    check_same("the version of the architecture", got, expected)?;
    Ok((header.shape, header.step, tensors))
}

/// Reads weights from the tensors with this prefix.
pub(crate) fn read_part(
    tensors: &SafeTensors<'_>,
    prefix: &str,
    parameters: &mut Parameters,
) -> Result<(), WeightsError> {
    let layout: Vec<(String, Vec<usize>)> = parameters
        .tensors()
        .map(|(name, shape, _)| (format!("{prefix}{name}"), shape.to_vec()))
        .collect();
    for (index, (name, shape)) in layout.into_iter().enumerate() {
        let view = tensors.tensor(&name).map_err(|_| WeightsError::Tensors {
            got: tensors.names().join(" "),
            expected: name.clone(),
        })?;
        if view.dtype() != Dtype::F32 || view.shape() != shape {
            return Err(WeightsError::Shape {
                got: format!("{:?} {:?}", view.dtype(), view.shape()),
                expected: format!("F32 {shape:?}"),
                name,
            });
        }
        file::read_floats(&name, view.data(), parameters.part_mut(index))?;
    }
    Ok(())
}
