//! The weights of an engine that are tuned, as a point in a vector space.
//!
//! Each gene has its own unit: a tenth of its valid range, but at most a quarter of a pawn. So a
//! step of one means about the same for a piece value and for a bonus.

use selfmate_arena::{Parameter, Tuning};

/// The largest unit, in centipawns. A piece value ranges up to 2000, and mutations of 200 would
/// dominate all others.
const MAX_UNIT: f64 = 25.0;

#[derive(Clone, Debug)]
pub struct Genome {
    /// The values of all other weights.
    base: Tuning,
    genes: Vec<Gene>,
}

#[derive(Clone, Debug)]
struct Gene {
    /// The index among all parameters.
    index: usize,
    parameter: Parameter,
    unit: f64,
}

impl Genome {
    /// The weights whose names start with one of these prefixes; the error is a prefix of no name.
    pub fn new(base: &Tuning, prefixes: &[String]) -> Result<Genome, String> {
        let parameters = Tuning::parameters();
        let begins = |prefix: &String, name: &str| {
            let rest = name.strip_prefix(prefix.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some(unknown) =
            prefixes.iter().find(|prefix| !parameters.iter().any(|p| begins(prefix, &p.name)))
        {
            return Err(unknown.clone());
        }
        let genes = parameters.into_iter().enumerate();
        let genes = genes.filter(|(_, p)| prefixes.iter().any(|prefix| begins(prefix, &p.name)));
        let gene = |(index, parameter): (usize, Parameter)| {
            let unit = (f64::from(parameter.max - parameter.min) / 10.0).min(MAX_UNIT);
            Gene { index, parameter, unit }
        };
        Ok(Genome { base: base.clone(), genes: genes.map(gene).collect() })
    }

    pub fn len(&self) -> usize {
        self.genes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.genes.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.genes.iter().map(|gene| gene.parameter.name.as_str())
    }

    /// The engine at a point with one gene increased a little, or decreased at its upper bound;
    /// also the change in the gene's unit.
    pub fn nudged(&self, point: &[f64], gene: usize) -> (Tuning, f64) {
        let Gene { index, parameter, unit } = &self.genes[gene];
        let mut tuning = self.tuning(point);
        let mut flat = tuning.flat_mut();
        let value = &mut *flat[*index];
        let step = (unit.round() as i32).clamp(1, 16);
        let step = if *value + step <= parameter.max { step } else { -step };
        *value += step;
        drop(flat);
        (tuning, f64::from(step) / unit)
    }

    /// The point of an engine.
    pub fn point(&self, tuning: &Tuning) -> Vec<f64> {
        let flat = tuning.flat();
        self.genes.iter().map(|gene| f64::from(flat[gene.index]) / gene.unit).collect()
    }

    /// The nearest point whose weights are within their bounds.
    pub fn bounded(&self, point: &[f64]) -> Vec<f64> {
        let genes = self.genes.iter().zip(point);
        genes
            .map(|(Gene { parameter, unit, .. }, value)| {
                value.clamp(f64::from(parameter.min) / unit, f64::from(parameter.max) / unit)
            })
            .collect()
    }

    /// The engine at a point; weights are rounded and kept within their bounds.
    pub fn tuning(&self, point: &[f64]) -> Tuning {
        let mut tuning = self.base.clone();
        let mut flat = tuning.flat_mut();
        for (gene, value) in self.genes.iter().zip(point) {
            let (min, max) = (gene.parameter.min, gene.parameter.max);
            let whole = (value * gene.unit).round().clamp(f64::from(min), f64::from(max));
            *flat[gene.index] = whole as i32;
        }
        drop(flat);
        tuning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn genome(prefixes: &[&str]) -> Result<Genome, String> {
        let prefixes: Vec<String> = prefixes.iter().map(|&p| p.to_owned()).collect();
        Genome::new(&Tuning::plain(), &prefixes)
    }

    #[test]
    fn only_selected_weights_change() {
        let genome = genome(&["piece_value", "bishop_pair.mg"]).unwrap();
        assert_eq!(genome.len(), 11);
        assert_eq!(genome.names().last(), Some("bishop_pair.mg"));
        let start = Tuning::plain();
        let point = genome.point(&start);
        assert_eq!(genome.tuning(&point), start);
        let far: Vec<f64> = point.iter().map(|_| 1e9).collect();
        let far = genome.tuning(&far);
        assert_eq!(
            (far.evaluation.piece_value.mg[0], far.evaluation.bishop_pair.mg[0]),
            (2000, 150)
        );
        assert_eq!(far.evaluation.king_square, start.evaluation.king_square);
        assert_eq!(far.evaluation.bishop_pair.eg, [0]);
        let bounded = genome.bounded(&point.iter().map(|_| 1e9).collect::<Vec<f64>>());
        assert_eq!(genome.tuning(&bounded), far);
        assert!(bounded.iter().all(|value| *value <= 80.0));
    }

    #[test]
    fn a_nudge_changes_one_gene_and_stays_in_bounds() {
        let genome = genome(&["bishop_pair"]).unwrap();
        for start in [0.0, 10.0] {
            let (nudged, by) = genome.nudged(&[start, 0.0], 0);
            let before = genome.tuning(&[start, 0.0]);
            let changed = nudged.evaluation.bishop_pair.mg[0] - before.evaluation.bishop_pair.mg[0];
            assert!((f64::from(changed) - 15.0 * by).abs() < 1e-9 && changed != 0);
            assert_eq!(nudged.evaluation.bishop_pair.eg, [0]);
            assert!((0..=150).contains(&nudged.evaluation.bishop_pair.mg[0]));
        }
    }

    #[test]
    fn an_unknown_prefix_is_an_error() {
        assert_eq!(genome(&["piece_value", "piece"]).unwrap_err(), "piece");
    }
}
