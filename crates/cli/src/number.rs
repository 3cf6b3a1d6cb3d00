//! Parsers for numbers on the command line.

/// Minutes of training.
pub fn minutes(text: &str) -> Result<f64, String> {
    read(text, "a number of minutes, 0 or more", |minutes| minutes >= 0.0)
}

pub fn share(text: &str) -> Result<f64, String> {
    read(text, "a share from 0 to 1", |share| (0.0..=1.0).contains(&share))
}

pub fn positive(text: &str) -> Result<f64, String> {
    read(text, "a number above 0", |number| number > 0.0)
}

/// Seconds to measure for.
pub fn seconds(text: &str) -> Result<f64, String> {
    read(text, "seconds, more than 0 and at most 600", |seconds| seconds > 0.0 && seconds <= 600.0)
}

/// A rating.
pub fn elo(text: &str) -> Result<f64, String> {
    read(text, "a rating such as 1500", |_| true)
}

/// Whole numbers separated by commas.
pub fn whole_numbers(text: &str) -> Result<Vec<u32>, String> {
    let number = |part: &str| {
        let expected = || format!("'{part}': expected a whole number from 0 to {}", u32::MAX);
        part.trim().parse().map_err(|_| expected())
    };
    text.split(',').map(number).collect()
}

/// Parses a finite number and checks its range. Rust would also accept `NaN` and `inf`.
fn read(text: &str, expected: &str, fits: impl Fn(f64) -> bool) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.filter(|number| fits(*number)).ok_or_else(|| format!("expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parser_rejects_text_that_is_not_a_finite_number() {
        for reader in [minutes, share, positive, seconds, elo] {
            for text in ["", "x", "NaN", "nan", "inf", "-Infinity", "1e400", "1,5"] {
                assert!(reader(text).unwrap_err().starts_with("expected "), "{text}");
            }
        }
        assert_eq!((minutes("0"), share("1"), seconds("0.5")), (Ok(0.0), Ok(1.0), Ok(0.5)));
        assert!(minutes("-1").is_err() && share("1.1").is_err() && seconds("0").is_err());
        assert!(positive("0").is_err() && elo("-300").is_ok());
    }

    #[test]
    fn the_error_for_a_number_that_is_too_large_names_the_maximum() {
        assert_eq!(whole_numbers("4, 600"), Ok(vec![4, 600]));
        let error = whole_numbers("4,99999999999999999999").unwrap_err();
        assert_eq!(error, "'99999999999999999999': expected a whole number from 0 to 4294967295");
    }
}
