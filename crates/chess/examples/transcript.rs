//! Writes random games with everything the rules determine about each position, one JSON object
//! per line, for `xtask/judges` to check: `transcript --plies 20000 --seed 1`.

use std::io::{self, BufWriter, Write};

use selfmate_chess::fen::{parse_fen, to_fen};
use selfmate_chess::notation::{san, uci};
use selfmate_chess::polyglot::polyglot_key;
use selfmate_chess::{Game, Move, Position, Rng, Role, Seed};
use serde_json::json;

/// Starting positions that make rare rules frequent: castling, en passant pins, promotions, bare
/// endings, Chess960, clocks close to the fifty-move rule.
const STARTS: &[&str] = &[
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "8/PPPk4/8/8/8/8/4Kppp/8 w - - 0 1",
    // After d7d5, e5xd6 would open the fifth rank to the rook, or the diagonal to the bishop.
    "8/3p4/8/K3P2r/8/8/8/4k3 b - - 0 1",
    "4k3/3p4/5b2/4P3/8/2K5/8/8 b - - 0 1",
    // The pawn that has just moved two squares gives check, and capturing it en passant ends it.
    "8/3p4/8/2k1P3/4K3/8/8/8 b - - 0 1",
    "4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - - 0 1",
    "4k3/8/8/8/8/8/8/4KBN1 w - - 0 1",
    "4kb2/8/8/8/8/8/8/2B1K3 w - - 40 60",
    "6k1/8/8/8/8/8/8/K6R w - - 85 90",
    "7k/8/5K2/8/8/8/8/6R1 w - - 90 100",
    "8/8/8/8/8/k7/p7/K7 w - - 0 1",
    "bnrbkrqn/pppppppp/8/8/8/8/PPPPPPPP/BNRBKRQN w KQkq - 0 1",
    "1rkr4/8/8/8/8/8/8/1RKR4 w KQkq - 0 1",
    "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w KQkq - 0 1",
];

/// The most positions of one game.
const MAX_POSITIONS: u64 = 400;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |flag: &str, default: u64| {
        let value = arguments.iter().skip_while(|a| *a != flag).nth(1);
        value.map_or(Ok(default), |v| v.parse().map_err(|_| bad_number(flag, v)))
    };
    let (plies, seed) = (number("--plies", 20_000)?, number("--seed", 1)?);

    let mut out = BufWriter::new(io::stdout().lock());
    let mut written = 0;
    let mut game_number = 0;
    while written < plies {
        let mut rng = Seed::new(seed).derive("transcript").index(game_number).rng();
        let start = STARTS[(game_number as usize) % STARTS.len()];
        written += write_game(&mut out, game_number, start, &mut rng)?;
        game_number += 1;
    }
    out.flush()
}

fn bad_number(flag: &str, value: &str) -> io::Error {
    io::Error::other(format!("{flag} '{value}': expected a whole number"))
}

fn write_game(out: &mut impl Write, number: u64, start: &str, rng: &mut Rng) -> io::Result<u64> {
    let position = parse_fen(start).map_err(io::Error::other)?;
    let mut game = Game::from_position(position);
    let chess960 = game.castling_mode().is_chess960();
    writeln!(
        out,
        "{}",
        json!({"game": number, "fen": to_fen(game.position()), "chess960": chess960})
    )?;
    for written in 1.. {
        let position = game.position();
        let legal = game.legal_moves();
        let repetitions = game.repetitions();
        // Goes beyond the seventy-five-move rule and the fifth repetition to cover both. Positions
        // that cannot be won add no coverage, so such games soon end.
        let over = legal.is_empty()
            || repetitions >= 6
            || position.halfmoves() >= 152
            || position.is_insufficient_material() && rng.chance(0.1)
            || written == MAX_POSITIONS;
        let next = if over { None } else { pick(&legal, &game, rng) };
        let halfmoves = position.halfmoves();
        let line = json!({
            "fen": to_fen(position),
            "legal": legal.iter().map(|&m| [uci(position, m), san(position, m)]).collect::<Vec<_>>(),
            "check": position.is_check(),
            "checkmate": position.is_checkmate(),
            "stalemate": position.is_stalemate(),
            "insufficient": position.is_insufficient_material(),
            "repetitions": repetitions,
            "threefold": repetitions >= 3,
            "fivefold": repetitions >= 5,
            "fifty": halfmoves >= 100 && !legal.is_empty(),
            "seventyfive": halfmoves >= 150 && !legal.is_empty(),
            "polyglot": format!("{:016x}", polyglot_key(position)),
            "move": next.map(|m| uci(position, m)),
        });
        writeln!(out, "{line}")?;
        match next {
            Some(m) => game.play_unchecked(m),
            None => return Ok(written),
        }
    }
    unreachable!("a game ends at {MAX_POSITIONS} positions at the latest")
}

/// A random move that prefers rare events. Games that start with a running clock, and some moves
/// in other games, shuffle pieces to cause repetitions and long stretches without progress.
fn pick(legal: &[Move], game: &Game, rng: &mut Rng) -> Option<Move> {
    if game.start().halfmoves() > 0 || rng.chance(0.2) {
        return shuffle(legal, game, rng).or_else(|| rng.choose(legal).copied());
    }
    let position = game.position();
    let after = |m: Move| {
        let mut next = position.clone();
        next.play_unchecked(m);
        next
    };
    type Preference<'a> = (f64, &'a dyn Fn(Move) -> bool);
    let preferences: [Preference<'_>; 6] = [
        (0.5, &|m| after(m).legal_moves().is_empty()),
        (0.7, &|m| m.is_en_passant()),
        (0.7, &|m| m.is_castle()),
        (0.5, &|m| after(m).pseudo_legal_ep_square().is_some()),
        (0.3, &|m| m.is_promotion()),
        (0.2, &|m| after(m).is_check()),
    ];
    for (probability, matches) in preferences {
        if rng.chance(probability) {
            let preferred: Vec<Move> = legal.iter().copied().filter(|&m| matches(m)).collect();
            if let Some(&m) = rng.choose(&preferred) {
                return Some(m);
            }
        }
    }
    rng.choose(legal).copied()
}

/// A move without progress. Half of the time it moves the last piece back, which causes
/// repetitions.
fn shuffle(legal: &[Move], game: &Game, rng: &mut Rng) -> Option<Move> {
    let own_last = game.moves().rev().nth(1);
    let retreat = own_last.and_then(|last| {
        legal.iter().find(|m| m.from() == Some(last.to()) && last.from() == Some(m.to()))
    });
    if let Some(&m) = retreat
        && rng.chance(0.5)
    {
        return Some(m);
    }
    let quiet: Vec<Move> =
        legal.iter().copied().filter(|m| !m.is_capture() && m.role() != Role::Pawn).collect();
    rng.choose(&quiet).copied()
}
