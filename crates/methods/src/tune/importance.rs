//! How much each weight matters: by its effect on the expected scores of positions, and by the
//! results of matches between engines that differ in it.

use serde::{Deserialize, Serialize};

/// Statistics of every gene.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Importance {
    /// From Texel tuning: the change of the expected score per unit, root mean square.
    gradient: Vec<f64>,
    /// From matches: sums of the gene's difference times the difference in points.
    products: Vec<f64>,
    /// From matches: sums of squares of the gene's difference.
    squares: Vec<f64>,
    /// The sum of squares of the differences in points.
    points: f64,
    matches: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    /// From Texel tuning; 0 before the first fit.
    pub gradient: f64,
    /// Points per unit, from matches.
    pub slope: f64,
    /// The slope in standard errors; beyond ±2 it is probably not chance.
    pub certainty: f64,
}

impl Importance {
    pub fn set_gradient(&mut self, gradient: Vec<f64>) {
        self.gradient = gradient;
    }

    /// Adds a match between two engines that differ by `steps`; `points` is the score of the first
    /// minus one half.
    pub fn add_match(&mut self, steps: &[f64], points: f64, games: f64) {
        self.products.resize(steps.len(), 0.0);
        self.squares.resize(steps.len(), 0.0);
        for (index, step) in steps.iter().enumerate() {
            self.products[index] += games * step * points;
            self.squares[index] += games * step * step;
        }
        self.points += games * points * points;
        self.matches += 1;
    }

    /// For each of so many weights, how much it is varied relative to the others: 1 on average before
    /// the cap. `share` is the part of the variation that is in proportion to the measured impact.
    pub fn factors(&self, weights: usize, share: f64) -> Vec<f64> {
        /// Piece values have by far the most impact, and all variation would be theirs.
        const MOST: f64 = 4.0;
        let mut impact = vec![0.0; weights];
        if self.gradient.len() == weights {
            impact.copy_from_slice(&self.gradient);
        } else if self.squares.len() == weights {
            // The size of the slope in standard errors, up to a factor that is the same for all.
            for (index, impact) in impact.iter_mut().enumerate() {
                let square = self.squares[index];
                *impact =
                    if square > 0.0 { self.products[index].abs() / square.sqrt() } else { 0.0 };
            }
        }
        let mean = impact.iter().sum::<f64>() / weights.max(1) as f64;
        if mean <= 0.0 {
            return vec![1.0; weights];
        }
        impact.iter().map(|impact| (1.0 - share + share * impact / mean).min(MOST)).collect()
    }

    /// The table, most important weights first.
    pub fn table<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<Row> {
        let spread = (self.points / (self.matches as f64).max(1.0)).sqrt();
        let mut rows: Vec<Row> = names
            .enumerate()
            .map(|(index, name)| {
                let get = |values: &[f64]| values.get(index).copied().unwrap_or(0.0);
                let (product, square) = (get(&self.products), get(&self.squares));
                let slope = if square > 0.0 { product / square } else { 0.0 };
                let error = if square > 0.0 { spread / square.sqrt() } else { 0.0 };
                let certainty = if error > 0.0 { slope / error } else { 0.0 };
                Row { name: name.to_owned(), gradient: get(&self.gradient), slope, certainty }
            })
            .collect();
        rows.sort_by(|a, b| {
            b.gradient.total_cmp(&a.gradient).then(b.certainty.abs().total_cmp(&a.certainty.abs()))
        });
        rows
    }
}

/// A bar chart of the first rows, as SVG.
pub fn picture(rows: &[Row]) -> String {
    let bars: Vec<(String, f64)> =
        rows.iter().take(40).map(|row| (row.name.clone(), row.gradient)).collect();
    selfmate_arena::svg::bars_svg("Which weights matter: change of the expected score", &bars)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn a_weight_that_decides_matches_has_the_highest_certainty() {
        let mut importance = Importance::default();
        let mut rng = Seed::new(1).rng();
        for _ in 0..300 {
            let steps: Vec<f64> =
                (0..3).map(|_| if rng.chance(0.5) { 1.0 } else { -1.0 }).collect();
            importance.add_match(&steps, 0.1 * steps[1] + 0.1 * rng.normal(), 1.0);
        }
        let rows = importance.table(["a", "b", "c"].into_iter());
        assert_eq!(rows[0].name, "b");
        assert!((rows[0].slope - 0.1).abs() < 0.03 && rows[0].certainty > 5.0, "{rows:?}");
        assert!(rows[1].certainty.abs() < 4.0);
        importance.set_gradient(vec![3.0, 2.0, 1.0]);
        let rows = importance.table(["a", "b", "c"].into_iter());
        assert_eq!(rows.iter().map(|row| row.gradient).collect::<Vec<_>>(), [3.0, 2.0, 1.0]);
        assert!(picture(&rows).contains("<svg"));
    }

    #[test]
    fn weights_with_more_impact_get_larger_factors() {
        let mut importance = Importance::default();
        assert_eq!(importance.factors(3, 0.5), [1.0; 3]);
        importance.add_match(&[1.0, 1.0, -1.0], 0.1, 10.0);
        importance.add_match(&[1.0, -1.0, 1.0], 0.2, 10.0);
        let factors = importance.factors(3, 0.5);
        assert!(factors[0] > factors[1] && factors[1] >= 0.5, "{factors:?}");
        assert!((factors.iter().sum::<f64>() - 3.0).abs() < 1e-9, "{factors:?}");
        assert_eq!(importance.factors(3, 0.0), [1.0; 3]);
        importance.set_gradient(vec![0.0, 1.0, 2.0]);
        assert_eq!(importance.factors(3, 1.0), [0.0, 1.0, 2.0]);
        importance.set_gradient(vec![1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(importance.factors(7, 1.0)[0], 4.0);
    }
}
