//! `cargo xtask judge-rules`: compares our rules of chess with python-chess.
//!
//! The example `transcript` of `selfmate-chess` plays games and prints its view of each position;
//! `judges/rules.py` replays them and compares. Both run at the same time, connected by a pipe.
//!
//! A transcript has one JSON object per line. A game is a header followed by its positions, of which
//! the last has `move` null:
//!
//! ```json
//! {"game":0,"fen":"…","chess960":false}
//! {"fen":"…","legal":[["e2e4","e4"]],"check":false,"checkmate":false,"stalemate":false,
//!  "insufficient":false,"repetitions":1,"threefold":false,"fivefold":false,"fifty":false,
//!  "seventyfive":false,"polyglot":"16 lower-case hex digits","move":"e2e4"}
//! ```
//!
//! `fen` has an en passant square only where such a capture is legal. `repetitions` includes the
//! current occurrence. `fifty` and `seventyfive` require a legal move, because mate takes precedence.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    process::{root, show, test_binary},
    setup,
};

#[derive(clap::Args)]
pub struct Options {
    /// Minimum number of positions to compare
    #[arg(long, default_value_t = 200_000)]
    pub plies: u64,
    /// Seed of the games
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Fails unless at least `plies` positions were compared and all agree.
pub fn run(options: &Options) -> Result<()> {
    let Options { plies, seed } = options;
    let python = setup::judge_python()?;
    let mut transcript = Command::new(test_binary()?.with_file_name("examples").join("transcript"));
    transcript.args(["--plies", &plies.to_string(), "--seed", &seed.to_string()]);
    let mut judge = Command::new(python);
    judge.args(["-B", "xtask/judges/rules.py"]).current_dir(root());
    eprintln!("$ {} | {}", show(&transcript), show(&judge));

    let mut playing =
        transcript.stdout(Stdio::piped()).spawn().context("cannot start the transcript")?;
    let pipe = playing.stdout.take().context("the transcript has no standard output")?;
    let judged =
        judge.stdin(pipe).stderr(Stdio::inherit()).output().context("cannot start judges/rules.py");
    // Waited for even if the judge failed, so that no process is left behind.
    let played = playing.wait().context("cannot wait for the transcript")?;
    let judged = judged?;

    let report = String::from_utf8_lossy(&judged.stdout);
    print!("{report}");
    // A judge that stops early breaks the transcript's pipe, so both results are reported.
    match (played.success(), judged.status.success()) {
        (true, true) => check(&report, *plies),
        (true, false) => bail!("python-chess disagrees with our rules, as shown above"),
        (false, true) => {
            bail!("the example transcript failed ({played}); the positions until then agree")
        }
        (false, false) => {
            bail!("the example transcript failed ({played}), and so did its judge, as shown above")
        }
    }
}

/// An error unless enough was compared and nothing differed.
fn check(report: &str, wanted: u64) -> Result<()> {
    let Some((compared, mismatches)) = report.lines().rev().find_map(summary) else {
        bail!("judges/rules.py ended without its summary line");
    };
    ensure!(mismatches == 0, "{mismatches} mismatches with python-chess");
    ensure!(compared >= wanted, "only {compared} plies compared: expected at least {wanted}");
    Ok(())
}

/// Parses `N plies compared, M mismatches`.
fn summary(line: &str) -> Option<(u64, u64)> {
    let (compared, rest) = line.split_once(" plies compared, ")?;
    let mismatches = rest.strip_suffix(" mismatches")?;
    Some((compared.parse().ok()?, mismatches.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_plies_without_mismatches_pass() {
        assert!(check("covered: check 3\n20000 plies compared, 0 mismatches\n", 20_000).is_ok());
    }

    #[test]
    fn too_few_plies_a_mismatch_or_a_missing_summary_fail() {
        assert!(check("19999 plies compared, 0 mismatches\n", 20_000).is_err());
        assert!(check("20000 plies compared, 1 mismatches\n", 20_000).is_err());
        assert!(check("covered: check 3\n", 0).is_err());
        assert!(check("", 0).is_err());
    }
}
