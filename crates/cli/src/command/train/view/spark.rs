//! Curves as rows of block characters.

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a curve from its lowest to its highest number, as rows from top to bottom. With more
/// numbers than columns, a column is the mean of neighbouring numbers.
pub fn spark(numbers: &[f64], width: usize, height: usize) -> Vec<String> {
    let means = means(numbers, width);
    let (low, high) = range(&means).unwrap_or((0.0, 1.0));
    let most = 8 * height.max(1);
    let level = |number: &f64| {
        let place = match high - low {
            span if span > 0.0 => (number - low) / span,
            // A constant curve is drawn in the middle, or at the bottom if it is zero.
            _ if low == 0.0 => 0.0,
            _ => 0.5,
        };
        1 + (place * (most - 1) as f64).round() as usize
    };
    let levels: Vec<usize> = means.iter().map(level).collect();
    let row = |row: usize| {
        let below = 8 * (height - 1 - row);
        levels.iter().map(|level| BLOCKS[level.saturating_sub(below).min(8)]).collect()
    };
    (0..height).map(row).collect()
}

/// The lowest and the highest finite number.
pub fn range(numbers: &[f64]) -> Option<(f64, f64)> {
    let low = numbers.iter().copied().filter(|number| number.is_finite()).reduce(f64::min)?;
    let high = numbers.iter().copied().filter(|number| number.is_finite()).reduce(f64::max)?;
    Some((low, high))
}

/// Reduces numbers to at most `most` means of neighbours.
fn means(numbers: &[f64], most: usize) -> Vec<f64> {
    let numbers: Vec<f64> = numbers.iter().copied().filter(|number| number.is_finite()).collect();
    let columns = most.min(numbers.len());
    let column = |column: usize| {
        let (from, to) = (column * numbers.len() / columns, (column + 1) * numbers.len() / columns);
        numbers[from..to].iter().sum::<f64>() / (to - from) as f64
    };
    (0..columns).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_uses_its_whole_height() {
        assert_eq!(spark(&[1.0, 2.0, 3.0], 9, 1), ["▁▅█"]);
        assert_eq!(spark(&[1.0, 3.0], 9, 2), [" █", "▁█"]);
        assert_eq!(spark(&[5.0, 5.0], 9, 1), ["▅▅"]);
        assert_eq!(spark(&[0.0, 0.0], 9, 1), ["▁▁"]);
        assert_eq!(spark(&[0.0, 2.0, 4.0, 6.0], 2, 1), ["▁█"]);
        assert_eq!(spark(&[f64::NAN, 1.0, 2.0], 9, 1), ["▁█"]);
        assert_eq!(spark(&[], 9, 2), ["", ""]);
        assert_eq!(spark(&[1.0], 0, 1), [""]);
        assert!(spark(&[1.0], 4, 0).is_empty());
    }
}
