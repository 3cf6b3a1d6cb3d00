//! Which weights matter: by how much they move the expected score of positions, and by how engines
//! that differ in them fare.

use serde::{Deserialize, Serialize};

/// What is known of every gene.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Importance {
    /// By Texel's fit: the change of the expected score for a unit, root mean square.
    gradient: Vec<f64>,
    /// By matches: sums of products of the difference in each gene with the difference in points.
    products: Vec<f64>,
    /// Sums of squares of the differences in each gene.
    squares: Vec<f64>,
    /// The sum of squares of the differences in points.
    points: f64,
    matches: u64,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The weight.
    pub name: String,
    /// By Texel's fit; 0 before the first.
    pub gradient: f64,
    /// Points for a unit more of it, by matches.
    pub slope: f64,
    /// That slope in standard errors: beyond 2 it is hardly chance.
    pub certainty: f64,
}

impl Importance {
    /// Takes what a fit says.
    pub fn set_gradient(&mut self, gradient: Vec<f64>) {
        self.gradient = gradient;
    }

    /// Takes a match between two engines that differ by `steps`; `points` is the share of the first
    /// less one half.
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

    /// The table, the most important first.
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

/// The first rows as a picture: a bar for each.
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
    fn a_weight_that_decides_matches_stands_out() {
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
}
