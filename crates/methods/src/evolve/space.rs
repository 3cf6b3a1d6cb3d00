//! The weights that evolve, as a vector space.

use selfmate_arena::players::OnePlyWeights;

use crate::tuning::{Genome, PlayerWeights};

/// A step of one in a weight of the one-ply player.
const UNIT: f64 = 0.1;

pub(super) enum Space {
    Engine(Box<Genome>),
    OnePly {
        /// The values of the other weights.
        base: OnePlyWeights,
        /// Indices of the weights that evolve.
        genes: Vec<usize>,
    },
}

impl Space {
    /// The space of the weights whose names start with one of these prefixes, and the point of the
    /// first weights. The error is a prefix of no name.
    pub fn new(start: &PlayerWeights, prefixes: &[String]) -> Result<(Space, Vec<f64>), String> {
        match start {
            PlayerWeights::Engine(tuning) => {
                let genome = Genome::new(tuning, prefixes)?;
                let point = genome.point(tuning);
                Ok((Space::Engine(Box::new(genome)), point))
            }
            PlayerWeights::OnePly(weights) => {
                let names = OnePlyWeights::NAMES;
                let index = |prefix: &String| names.iter().position(|name| name == prefix);
                let genes: Result<Vec<usize>, String> =
                    prefixes.iter().map(|prefix| index(prefix).ok_or(prefix.clone())).collect();
                let mut genes = genes?;
                genes.sort_unstable();
                genes.dedup();
                let flat = weights.flat();
                let point = genes.iter().map(|gene| flat[*gene] / UNIT).collect();
                Ok((Space::OnePly { base: *weights, genes }, point))
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Space::Engine(genome) => genome.len(),
            Space::OnePly { genes, .. } => genes.len(),
        }
    }

    /// The nearest point whose weights are within their bounds.
    pub fn bounded(&self, point: &[f64]) -> Vec<f64> {
        match self {
            Space::Engine(genome) => genome.bounded(point),
            Space::OnePly { .. } => {
                point.iter().map(|value| value.clamp(0.0, OnePlyWeights::MAX / UNIT)).collect()
            }
        }
    }

    /// The weights at a point.
    pub fn weights(&self, point: &[f64]) -> PlayerWeights {
        match self {
            Space::Engine(genome) => PlayerWeights::Engine(Box::new(genome.tuning(point))),
            Space::OnePly { base, genes } => {
                let mut flat = base.flat();
                for (gene, value) in genes.iter().zip(self.bounded(point)) {
                    flat[*gene] = value * UNIT;
                }
                PlayerWeights::OnePly(OnePlyWeights::from_flat(flat))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_selected_weights_of_the_one_ply_player_change() {
        let start = PlayerWeights::named("four_weights").unwrap();
        let genes = ["development", "centre"].map(str::to_owned);
        let (space, point) = Space::new(&start, &genes).unwrap();
        assert_eq!((space.len(), point.len()), (2, 2));
        assert!((point[0] - 3.0).abs() < 1e-9 && (point[1] - 4.0).abs() < 1e-9, "{point:?}");
        let PlayerWeights::OnePly(moved) = space.weights(&[20.0, -5.0]) else { panic!() };
        assert_eq!(moved.flat(), [1.0, 2.0, 0.5, 0.0]);
        let unknown = Space::new(&start, &["piece_value".to_owned()]).map(drop);
        assert_eq!(unknown.unwrap_err(), "piece_value");
    }
}
