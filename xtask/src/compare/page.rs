//! The page of the comparison.

use std::fmt::Write as _;

use super::ANCHORS;
use super::method::Method;

/// A method with its results.
pub struct Row<'a> {
    pub method: &'a Method,
    /// `None` for a search that does not learn.
    pub training: Option<Training>,
    pub code_lines: usize,
    pub elo: f64,
    /// `None` where all games had the same result.
    pub error: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    pub seconds: f64,
    pub games: u64,
    /// The size of the files that play.
    pub bytes: u64,
}

/// The page, with the strongest method first.
pub fn page(rows: &[Row<'_>], own_command: &str, commands: &[String], movetime: u64) -> String {
    let mut order: Vec<&Row<'_>> = rows.iter().collect();
    order.sort_by(|a, b| b.elo.total_cmp(&a.elo));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut text = format!(
        "# All learners on one ladder\n\nMade by `{own_command}` on {cores} cores; do not edit. Each learner is trained \
         once, with the seed and budget of its command below, and then plays against all others, a search that does not \
         learn and the anchors. ",
    );
    let anchors: Vec<String> =
        ANCHORS.iter().map(|(player, elo)| format!("`{player}` is {elo}")).collect();
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        text,
        "Elo is given with 95 % error bars, at {movetime} ms per move. The anchors fix the scale: {}.\n",
        anchors.join(", ")
    );
    text.push_str(
        "| method | how | starts from | training | games | size | to install | GPU | lines | Elo |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for Row { method, training, code_lines, elo, error } in order {
        let training = training.map_or_else(
            || "none | – | –".to_owned(),
            |Training { seconds, games, bytes }| {
                format!("{:.0} min | {} | {}", seconds / 60.0, grouped(games), size(bytes))
            },
        );
        let _ = writeln!(
            text,
            "| [{}]({}) | {} | {} | {training} | {} | {} | {} | {elo:.0}{} |",
            method.name,
            method.page,
            method.summary,
            method.start,
            method.setup,
            method.gpu.text(),
            grouped(*code_lines as u64),
            error.map_or_else(String::new, |error| format!(" ± {error:.0}"))
        );
    }
    text.push_str(
        "\n![all players with their error bars](comparison.svg)\n\n\"To install\" is what a method needs besides selfmate; \
         \"useful\" means that a GPU makes it faster, with a build that supports one. \"Lines\" are those of the method's own \
         files, without comments, blank lines and tests; the rules, the networks, the loop of self-play and, for learners, \
         the searches are shared and not counted.\n\nThe games of the ladder start from openings of several moves, and the \
         table of [qlearn](learners/qlearn.md) has no entries there: its page shows what it learned.\n\n```\n",
    );
    for command in commands {
        text.push_str(command);
        text.push('\n');
    }
    text.push_str("```\n");
    text
}

/// With commas: 1,000,000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::method::METHODS;

    #[test]
    fn the_page_lists_the_strongest_first() {
        let training = Some(Training { seconds: 1800.0, games: 12, bytes: 3_400_000 });
        let row = |name: &str, training, elo| Row {
            method: METHODS.iter().find(|method| method.name == name).unwrap(),
            training,
            code_lines: 1234,
            elo,
            error: Some(20.0),
        };
        let rows = [
            row("qlearn", training, 40.0),
            row("alphazero", training, 1500.0),
            row("rollout", None, 200.0),
        ];
        let page = page(&rows, "cargo xtask compare --seed 1", &["selfmate x".into()], 20);
        let places = ["| [alphazero]", "| [rollout](search.md)", "| [qlearn]"];
        let places = places.map(|name| page.find(name).unwrap());
        assert!(places.is_sorted(), "{page}");
        assert!(page.contains("Made by `cargo xtask compare --seed 1` on "), "{page}");
        let trained = "| 30 min | 12 | 3400 kB | nothing | useful | 1,234 | 1500 ± 20 |";
        assert!(page.contains(trained), "{page}");
        assert!(
            page.contains("| none | – | – | nothing | not used | 1,234 | 200 ± 20 |"),
            "{page}"
        );
        let columns = |line: &str| line.matches('|').count();
        let table: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert!(table.iter().all(|line| columns(line) == columns(table[0])), "{page}");
        assert!(page.ends_with("```\nselfmate x\n```\n"));
    }

    #[test]
    fn numbers_and_sizes_are_formatted() {
        assert_eq!([7, 1000, 16_891_904].map(grouped), ["7", "1,000", "16,891,904"]);
        assert_eq!([999, 10_000, 12_345_678].map(size), ["999 B", "10 kB", "12 MB"]);
    }
}
