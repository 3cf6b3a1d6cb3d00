//! The `info` message: what an engine reports during a search.
//!
//! Fields are written in Stockfish's order and as integers, because match runners reject anything
//! else. Parsing is tolerant: unknown words are skipped, and a field without its number stays unset.

use std::fmt;
use std::str::SplitWhitespace;

use shakmaty::uci::UciMove;

use crate::go::{next_move, set};

/// A search report. Every field is optional.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Info {
    /// In plies.
    pub depth: Option<u32>,
    /// The depth of the deepest line, in plies.
    pub seldepth: Option<u32>,
    /// The rank of this line, from 1.
    pub multipv: Option<u32>,
    /// From the point of view of the side to move.
    pub score: Option<Score>,
    /// Win, draw and loss in thousandths, from the point of view of the side to move.
    pub wdl: Option<[u16; 3]>,
    pub nodes: Option<u64>,
    /// Nodes per second.
    pub nps: Option<u64>,
    /// In thousandths.
    pub hashfull: Option<u32>,
    /// Tablebase hits.
    pub tbhits: Option<u64>,
    /// In milliseconds.
    pub time: Option<u64>,
    /// In thousandths.
    pub cpuload: Option<u32>,
    pub currmove: Option<UciMove>,
    /// From 1.
    pub currmovenumber: Option<u32>,
    /// A move and the line that refutes it.
    pub refutation: Vec<UciMove>,
    /// The number of a thread and the line it is searching.
    pub currline: Option<(u32, Vec<UciMove>)>,
    pub pv: Vec<UciMove>,
    /// Any text; it takes the rest of the line.
    pub string: Option<String>,
}

/// A score from the point of view of the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Score {
    pub value: ScoreValue,
    /// Set if the score is not exact.
    pub bound: Option<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreValue {
    /// Hundredths of a pawn.
    Cp(i32),
    /// Moves to mate; negative if the side to move is mated, 0 if it already is.
    Mate(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The true score is at least this.
    Lower,
    /// The true score is at most this.
    Upper,
}

impl Score {
    /// An exact score.
    pub fn cp(centipawns: i32) -> Score {
        Score { value: ScoreValue::Cp(centipawns), bound: None }
    }

    /// Mate in this many moves; negative if the side to move is mated.
    pub fn mate(moves: i32) -> Score {
        Score { value: ScoreValue::Mate(moves), bound: None }
    }
}

impl Info {
    /// `info string TEXT`.
    pub fn text(text: impl Into<String>) -> Info {
        Info { string: Some(text.into()), ..Info::default() }
    }

    /// Parses what follows the word `info`.
    pub fn parse(text: &str) -> Info {
        let mut info = Info::default();
        let (fields, string) = split_string(text);
        info.string = string.map(str::to_owned);
        let mut words = fields.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "depth" => set(&mut info.depth, &mut words),
                "seldepth" => set(&mut info.seldepth, &mut words),
                "multipv" => set(&mut info.multipv, &mut words),
                "score" => info.score = parse_score(&mut words).or(info.score),
                "wdl" => info.wdl = parse_wdl(&mut words).or(info.wdl),
                "nodes" => set(&mut info.nodes, &mut words),
                "nps" => set(&mut info.nps, &mut words),
                "hashfull" => set(&mut info.hashfull, &mut words),
                "tbhits" => set(&mut info.tbhits, &mut words),
                "time" => set(&mut info.time, &mut words),
                "cpuload" => set(&mut info.cpuload, &mut words),
                "currmove" => info.currmove = next_move(&mut words).or(info.currmove),
                "currmovenumber" => set(&mut info.currmovenumber, &mut words),
                "refutation" => info.refutation = moves(&mut words),
                "currline" => {
                    // The number may be omitted with a single thread.
                    let mut processor = Some(1);
                    set(&mut processor, &mut words);
                    let line = moves(&mut words);
                    info.currline = (!line.is_empty()).then(|| (processor.unwrap_or(1), line));
                }
                "pv" => info.pv = moves(&mut words),
                _ => {}
            }
        }
        info
    }
}

/// The fields before the word `string`, and the text after it.
fn split_string(text: &str) -> (&str, Option<&str>) {
    let mut from = 0;
    while let Some(at) = text[from..].find("string").map(|at| from + at) {
        let end = at + "string".len();
        let starts_word = text[..at].chars().next_back().is_none_or(char::is_whitespace);
        let ends_word = text[end..].chars().next().is_none_or(char::is_whitespace);
        if starts_word && ends_word {
            return (&text[..at], Some(text[end..].trim()));
        }
        from = end;
    }
    (text, None)
}

fn moves(words: &mut SplitWhitespace<'_>) -> Vec<UciMove> {
    std::iter::from_fn(|| next_move(words)).collect()
}

fn parse_score(words: &mut SplitWhitespace<'_>) -> Option<Score> {
    let mut value = None;
    let mut bound = None;
    while let Some(word) = words.clone().next() {
        match word {
            "cp" | "mate" => {
                words.next();
                let mut number = None;
                set(&mut number, words);
                let kind = if word == "cp" { ScoreValue::Cp } else { ScoreValue::Mate };
                value = number.map(kind).or(value);
            }
            "lowerbound" | "upperbound" => {
                words.next();
                bound = Some(if word == "lowerbound" { Bound::Lower } else { Bound::Upper });
            }
            _ => break,
        }
    }
    value.map(|value| Score { value, bound })
}

fn parse_wdl(words: &mut SplitWhitespace<'_>) -> Option<[u16; 3]> {
    let mut parts = [None; 3];
    for part in &mut parts {
        set(part, words);
    }
    Some([parts[0]?, parts[1]?, parts[2]?])
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("info")?;
        number(f, "depth", self.depth)?;
        number(f, "seldepth", self.seldepth)?;
        number(f, "multipv", self.multipv)?;
        if let Some(score) = self.score {
            write!(f, " {score}")?;
        }
        if let Some([win, draw, loss]) = self.wdl {
            write!(f, " wdl {win} {draw} {loss}")?;
        }
        number(f, "nodes", self.nodes)?;
        number(f, "nps", self.nps)?;
        number(f, "hashfull", self.hashfull)?;
        number(f, "tbhits", self.tbhits)?;
        number(f, "time", self.time)?;
        number(f, "cpuload", self.cpuload)?;
        number(f, "currmove", self.currmove)?;
        number(f, "currmovenumber", self.currmovenumber)?;
        line(f, "refutation", &self.refutation)?;
        if let Some((processor, moves)) = &self.currline {
            line(f, &format!("currline {processor}"), moves)?;
        }
        line(f, "pv", &self.pv)?;
        if let Some(text) = &self.string {
            // A message is one line.
            let text = text.replace(['\r', '\n'], " ");
            write!(f, " string {}", text.trim())?;
        }
        Ok(())
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            ScoreValue::Cp(centipawns) => write!(f, "score cp {centipawns}")?,
            ScoreValue::Mate(moves) => write!(f, "score mate {moves}")?,
        }
        match self.bound {
            Some(Bound::Lower) => f.write_str(" lowerbound"),
            Some(Bound::Upper) => f.write_str(" upperbound"),
            None => Ok(()),
        }
    }
}

fn number(f: &mut fmt::Formatter<'_>, name: &str, value: Option<impl fmt::Display>) -> fmt::Result {
    match value {
        Some(value) => write!(f, " {name} {value}"),
        None => Ok(()),
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, moves: &[UciMove]) -> fmt::Result {
    if !moves.is_empty() {
        write!(f, " {name}")?;
    }
    moves.iter().try_for_each(|m| write!(f, " {m}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stockfish_round_trips_exactly() {
        let line = "info depth 12 seldepth 17 multipv 1 score cp -31 upperbound wdl 5 950 45 \
                    nodes 34567 nps 900000 hashfull 12 tbhits 0 time 38 pv e2e4 e7e5 e7e8q";
        let info = Info::parse(line.strip_prefix("info").unwrap());
        assert_eq!(info.to_string(), line);
        assert_eq!(info.wdl, Some([5, 950, 45]));
    }

    #[test]
    fn a_string_takes_the_rest_of_the_line() {
        let info = Info::parse("depth 1 string pv e2e4 string depth 5");
        assert_eq!(info.depth, Some(1));
        assert_eq!(info.string.as_deref(), Some("pv e2e4 string depth 5"));
        assert!(info.pv.is_empty());
        assert_eq!(Info::text("two\nlines").to_string(), "info string two lines");
    }

    #[test]
    fn unknown_words_are_skipped() {
        let info =
            Info::parse("depth x nodes 1.5 score cp wdl 1 2 movesleft 40 time 3 pv Nf3 e2e4");
        assert_eq!(info, Info { time: Some(3), ..Info::default() });
        assert_eq!(Info::parse("score mate -3 nodes 5").score, Some(Score::mate(-3)));
        assert_eq!(Info::parse("currline e2e4").currline.map(|line| line.0), Some(1));
    }
}
