//! Numbers in few columns.

/// About three digits.
pub fn digits(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 0.01 || size == 0.0 => format!("{number:.3}"),
        _ => format!("{number:.4}"),
    }
}

/// Without decimals.
pub fn whole(number: f64) -> String {
    format!("{number:.0}")
}

pub fn percent(number: f64) -> String {
    format!("{:.0} %", 100.0 * number)
}

/// A large number with a unit: `303 k`, `12.4 M`.
pub fn short(number: f64) -> String {
    let scaled = |number: f64| match number {
        number if number >= 99.95 || number == 0.0 => format!("{number:.0}"),
        number => format!("{number:.1}"),
    };
    match number {
        number if number >= 999.5e6 => format!("{} G", scaled(number / 1e9)),
        number if number >= 999.5e3 => format!("{} M", scaled(number / 1e6)),
        number if number >= 9_999.5 => format!("{} k", scaled(number / 1e3)),
        number => scaled(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [(0.0, "0.000"), (0.0015, "0.0015"), (0.7671, "0.767"), (95.34, "95.3")];
        for (number, text) in cases {
            assert_eq!(digits(number), text);
        }
        let cases = [
            (0.0, "0"),
            (45.68, "45.7"),
            (302_982.6, "303 k"),
            (12_400.0, "12.4 k"),
            (999_900.0, "1.0 M"),
        ];
        for (number, text) in cases {
            assert_eq!(short(number), text);
        }
        assert_eq!(percent(0.0946), "9 %");
    }
}
