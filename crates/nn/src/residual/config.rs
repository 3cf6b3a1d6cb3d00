//! The shape of a residual network.

use selfmate_encode::Planes;
use serde::{Deserialize, Serialize};

/// Moves of the policy head: `az4672`.
pub const MOVES: usize = 4672;
/// Avoids division by zero in batch norm.
pub const NORM_EPSILON: f32 = 1e-5;
/// The share of a batch's statistics in the update of the running ones.
pub const NORM_MOMENTUM: f32 = 0.1;
/// Channels of the policy head's convolution.
pub(super) const POLICY_CHANNELS: usize = 2;

/// The shape of a residual network: a stem and `blocks` of two 3×3 convolutions each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Input planes, which determine the encoding: 119 `planes119`, 13 `planes13`, 9 `planes_krk`.
    pub planes: usize,
    /// Residual blocks, 1 to 64.
    pub blocks: usize,
    /// Channels of the tower: a multiple of 16 up to 512.
    pub filters: usize,
    /// Units of squeeze and excitation in each block; 0 for none.
    pub squeeze: usize,
    pub value: ValueHead,
    /// Units between the value head's convolution and its output: a multiple of 16 up to 1024.
    #[serde(default = "default_value_hidden")]
    pub value_hidden: usize,
}

/// For files of earlier versions, which do not name the number.
const fn default_value_hidden() -> usize {
    256
}

/// The output of the value head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueHead {
    /// One number in [-1, 1] for the side to move.
    Scalar,
    /// Three logits for the side to move: win, draw, loss.
    Wdl,
}

impl ValueHead {
    /// The number of outputs.
    pub const fn outputs(self) -> usize {
        match self {
            ValueHead::Scalar => 1,
            ValueHead::Wdl => 3,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {got}: expected {expected}")]
pub struct ConfigError {
    field: &'static str,
    got: usize,
    expected: &'static str,
}

impl Config {
    /// 4 blocks of 32 filters: for CPUs.
    pub const fn small() -> Config {
        Config::plain(4, 32)
    }

    /// 5 blocks of 64 filters: a million weights.
    pub const fn toy() -> Config {
        Config::plain(5, 64)
    }

    /// 15 blocks of 192 filters, and as many units in the value head.
    pub const fn standard() -> Config {
        Config { value_hidden: 192, ..Config::plain(15, 192) }
    }

    /// 19 blocks of 256 filters.
    pub const fn large() -> Config {
        Config::plain(19, 256)
    }

    const fn plain(blocks: usize, filters: usize) -> Config {
        Config {
            planes: 119,
            blocks,
            filters,
            squeeze: 0,
            value: ValueHead::Scalar,
            value_hidden: 256,
        }
    }

    /// Checks that the shape is within the supported limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |field, got, expected| Err(ConfigError { field, got, expected });
        if encoding(self.planes).is_none() {
            return refuse("planes", self.planes, "119, 13 or 9");
        }
        if !(1..=64).contains(&self.blocks) {
            return refuse("blocks", self.blocks, "1 to 64");
        }
        if !(16..=512).contains(&self.filters) || !self.filters.is_multiple_of(16) {
            return refuse("filters", self.filters, "a multiple of 16 from 16 to 512");
        }
        if self.squeeze > 512 {
            return refuse("squeeze", self.squeeze, "0 to 512");
        }
        if !(16..=1024).contains(&self.value_hidden) || !self.value_hidden.is_multiple_of(16) {
            return refuse("value_hidden", self.value_hidden, "a multiple of 16 from 16 to 1024");
        }
        Ok(())
    }

    /// The number of trained weights, without running statistics.
    pub fn parameters(&self) -> usize {
        let Config { planes, blocks, filters, squeeze, value, value_hidden } = *self;
        let convolution =
            |inputs: usize, outputs: usize, area: usize| (inputs * area + 2) * outputs;
        let linear = |inputs: usize, outputs: usize| (inputs + 1) * outputs;
        let excitation =
            if squeeze == 0 { 0 } else { linear(filters, squeeze) + linear(squeeze, filters) };
        convolution(planes, filters, 9)
            + blocks * (2 * convolution(filters, filters, 9) + excitation)
            + convolution(filters, POLICY_CHANNELS, 1)
            + linear(POLICY_CHANNELS * 64, MOVES)
            + convolution(filters, 1, 1)
            + linear(64, value_hidden)
            + linear(value_hidden, value.outputs())
    }

    /// The encoding of positions for this shape.
    ///
    /// # Panics
    ///
    /// Panics on a shape that [`Config::check`] rejects.
    pub fn encoding(&self) -> Planes {
        encoding(self.planes).expect("a checked shape has an encoding")
    }

    /// The number of 3×3 convolutions, including the stem.
    pub(super) fn convolutions(&self) -> usize {
        2 * self.blocks + 1
    }
}

/// The encoding with this many planes.
fn encoding(planes: usize) -> Option<Planes> {
    let kinds = [Planes::Planes119, Planes::Planes13, Planes::PlanesKrk];
    kinds.into_iter().find(|kind| kind.count() == planes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_shapes_have_known_sizes() {
        let sizes = [
            (Config::toy(), 1_058_375),
            (Config::standard(), 10_786_759),
            (Config { value: ValueHead::Wdl, ..Config::toy() }, 1_058_375 + 2 * 257),
        ];
        for (config, parameters) in sizes {
            assert_eq!(config.parameters(), parameters, "{config:?}");
            config.check().unwrap();
        }
        Config::small().check().unwrap();
        Config::large().check().unwrap();
    }

    #[test]
    fn errors_name_what_is_wrong_with_a_shape() {
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::toy();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert_eq!(wrong(|c| c.planes = 12), "planes is 12: expected 119, 13 or 9");
        assert_eq!(wrong(|c| c.blocks = 0), "blocks is 0: expected 1 to 64");
        assert_eq!(
            wrong(|c| c.filters = 40),
            "filters is 40: expected a multiple of 16 from 16 to 512"
        );
        assert_eq!(wrong(|c| c.squeeze = 513), "squeeze is 513: expected 0 to 512");
    }
}
