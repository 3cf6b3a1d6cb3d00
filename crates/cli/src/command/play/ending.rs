//! A game of a run that has learned an ending: it plays a won position against the exact defender,
//! which delays the mate as long as possible.

use std::io::Write;

use selfmate_chess::notation::san;
use selfmate_chess::tablebase::Verdict;
use selfmate_chess::{Color, Game, Seed};
use selfmate_methods::endgame::{Defender, Oracle};
use selfmate_search::Player;
use selfmate_search::player::Limit;

use crate::board::board_text;

/// Plays the game to its end. The player has White, which wins.
pub fn play(
    mut game: Game,
    player: &mut dyn Player,
    limit: &Limit,
    oracle: &Oracle,
    seed: Seed,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut rng = seed.rng();
    let moves_to_mate = |game: &Game| match oracle.verdict(game.position()) {
        Verdict::Win(plies) => Some(plies.div_ceil(2)),
        _ => None,
    };
    let best = moves_to_mate(&game);
    writeln!(out, "{} is White and the exact defender is Black.\n", player.name())?;
    write!(out, "{}", board_text(game.position(), Color::White))?;
    let mut moves = 0;
    let outcome = loop {
        let legal = game.legal_moves();
        if let Some(outcome) = game.outcome_given(&legal) {
            break outcome;
        }
        let mover = game.turn();
        let before = moves_to_mate(&game);
        let played = match mover {
            Color::White => player.choose(&game, limit)?.played,
            Color::Black => oracle.defend(Defender::Perfect, game.position(), &legal, &mut rng),
        };
        let text = san(game.position(), played);
        game.play(played)?;
        match mover {
            Color::White => {
                moves += 1;
                let after = oracle.verdict(game.position()).a_move_before();
                let comment = match (before, after) {
                    (None, _) => String::new(),
                    (Some(before), Verdict::Win(plies)) if plies.div_ceil(2) <= before => {
                        format!("  best, mate in {before}")
                    }
                    (Some(before), Verdict::Win(plies)) => {
                        let after = plies.div_ceil(2);
                        format!("  mate in {after}; the best move mates in {before}")
                    }
                    (Some(_), _) => "  throws the win away".to_owned(),
                };
                writeln!(out, "\n{moves}. {text}{comment}")?;
            }
            Color::Black => writeln!(out, "{moves}. … {text}")?,
        }
        if mover == Color::Black || game.outcome().is_some() {
            write!(out, "{}", board_text(game.position(), Color::White))?;
        }
        out.flush()?;
    };
    let best = best.map_or(String::new(), |best| format!("; best play mates in {best}"));
    writeln!(out, "\n{outcome}, after {moves} moves of White{best}")?;
    Ok(())
}
