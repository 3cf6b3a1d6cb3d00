//! `selfmate play`: a game against a player in the terminal.

mod ending;

use std::io::{self, BufRead, Write};

use selfmate_arena::PlayerSpec;
use selfmate_chess::notation::{parse_move, san};
use selfmate_chess::{Chess, Color, Game, Position, Seed};
use selfmate_methods::endgame::Oracle;
use selfmate_search::Player;
use selfmate_search::player::Limit;
use selfmate_selfplay::Ending;

use super::fen_argument;
use crate::board::board_text;
use crate::limit::LimitArgs;
use crate::output::{score_text, wdl_text};
use crate::player::{self, DeviceArgs, with_flags};
use crate::runs;
use crate::tables::TablesArgs;

#[derive(clap::Args)]
#[command(after_long_help = player::help())]
pub struct Args {
    /// The opponent [default: the network that ships with selfmate]
    #[arg(default_value = "default", hide_default_value = true)]
    player: String,
    /// Your colour [default: white; without it, a run of an endgame plays White against the exact
    /// defender]
    #[arg(long, value_enum)]
    color: Option<Side>,
    /// The start position [default: the standard one; for a run of an endgame, a won position of that
    /// endgame, drawn by the seed]
    #[arg(long, value_parser = fen_argument)]
    fen: Option<Chess>,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    tables: TablesArgs,
    /// Seed of the opponent's randomness, of a random colour and of an endgame's position
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Side {
    White,
    Black,
    Random,
}

const HELP: &str = "Enter a move (e4, Nf3, e2e4), or: moves, undo, hint, board, fen, resign, quit.";

pub fn run(args: &Args) -> anyhow::Result<()> {
    let text = with_flags(&player::registry(), &args.player, &args.limit, args.device)?;
    let (spec, mut player) = player::build(&text, args.seed, &args.tables)?;
    let human = match args.color {
        None | Some(Side::White) => Color::White,
        Some(Side::Black) => Color::Black,
        Some(Side::Random) if Seed::new(args.seed).rng().chance(0.5) => Color::White,
        Some(Side::Random) => Color::Black,
    };
    let mut out = io::stdout().lock();
    let game = match &args.fen {
        Some(position) => Game::from_position(position.clone()),
        None => match ending_of(&spec)? {
            Some(ending) => {
                let (oracle, seed) = (Oracle::solve(ending)?, Seed::new(args.seed).derive("play"));
                let game = oracle.draw_won(&mut seed.rng());
                writeln!(
                    out,
                    "This run was trained only on {}, so the game starts from: {}\n\
                     Use --seed for another position, --color black or --color white to play against it, \
                     --fen for any position.",
                    ending.name(),
                    selfmate_chess::fen::to_fen(game.position()),
                )?;
                if args.color.is_none() {
                    let (limit, seed) = (args.limit.to_limit(), seed.derive("defence"));
                    return ending::play(game, &mut *player, &limit, &oracle, seed, &mut out);
                }
                game
            }
            None => Game::new(),
        },
    };
    let mut game = TerminalGame { game, human, player, limit: args.limit.to_limit() };
    game.play(&mut io::stdin().lock(), &mut out)
}

/// The endgame of a player that was trained only on it.
fn ending_of(spec: &PlayerSpec) -> anyhow::Result<Option<Ending>> {
    if spec.kind != "run" {
        return Ok(None);
    }
    let name = spec.argument.as_deref().unwrap_or_default();
    let run = runs::find(name.split('@').next().unwrap_or(name))?;
    let config = runs::config(&run)?;
    Ok(config.get("learner").and_then(toml::Value::as_str).and_then(Ending::by_name))
}

/// A game in progress between the user and a player.
struct TerminalGame {
    game: Game,
    human: Color,
    player: Box<dyn Player>,
    limit: Limit,
}

/// What the user's input led to.
enum Turn {
    Played,
    Again,
    Leave,
}

impl TerminalGame {
    fn play(&mut self, input: &mut dyn BufRead, out: &mut dyn Write) -> anyhow::Result<()> {
        writeln!(out, "You play {} against {}. {HELP}", name(self.human), self.player.name())?;
        write!(out, "\n{}", board_text(self.game.position(), self.human))?;
        loop {
            if let Some(outcome) = self.game.outcome() {
                writeln!(out, "{outcome}")?;
                return Ok(());
            }
            if self.game.turn() != self.human {
                self.player_move(out)?;
                continue;
            }
            write!(out, "{} to move> ", name(self.human))?;
            out.flush()?;
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                writeln!(out)?;
                return Ok(());
            }
            match self.handle(line.trim(), out)? {
                Turn::Played | Turn::Again => {}
                Turn::Leave => return Ok(()),
            }
        }
    }

    /// Lets the player move.
    fn player_move(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        let choice = self.player.choose(&self.game, &self.limit)?;
        let played = san(self.game.position(), choice.played);
        let score = choice.score.map(|score| format!(" ({})", score_text(score)));
        let chances = choice.wdl.map(|wdl| format!(" ({})", wdl_text(wdl)));
        self.game.play(choice.played)?;
        let evaluation = score.or(chances).unwrap_or_default();
        writeln!(out, "{} plays {played}{evaluation}", self.player.name())?;
        write!(out, "{}", board_text(self.game.position(), self.human))?;
        Ok(())
    }

    fn handle(&mut self, line: &str, out: &mut dyn Write) -> anyhow::Result<Turn> {
        let position = self.game.position();
        match line {
            "" | "help" => writeln!(out, "{HELP}")?,
            "quit" | "exit" => return Ok(Turn::Leave),
            "resign" => {
                writeln!(out, "{} wins by resignation", name(!self.human))?;
                return Ok(Turn::Leave);
            }
            "board" => write!(out, "{}", board_text(position, self.human))?,
            "fen" => writeln!(out, "{}", selfmate_chess::fen::to_fen(position))?,
            "moves" => {
                let moves: Vec<String> =
                    position.legal_moves().iter().map(|&m| san(position, m)).collect();
                writeln!(out, "{}", moves.join(" "))?;
            }
            "undo" => self.undo(out)?,
            "hint" => {
                let choice = self.player.choose(&self.game, &self.limit)?;
                writeln!(
                    out,
                    "{} would play {}",
                    self.player.name(),
                    san(position, choice.played)
                )?;
            }
            text => match parse_move(position, text) {
                Ok(m) => {
                    self.game.play(m)?;
                    return Ok(Turn::Played);
                }
                Err(error) => writeln!(out, "{error}")?,
            },
        }
        Ok(Turn::Again)
    }

    /// Takes back the player's last move and the user's move before it.
    fn undo(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let plies = if self.game.turn() == self.human { 2 } else { 1 };
        if self.game.ply() < plies {
            return writeln!(out, "you have no move to take back");
        }
        self.game.rewind(self.game.ply() - plies);
        write!(out, "{}", board_text(self.game.position(), self.human))
    }
}

fn name(color: Color) -> &'static str {
    if color == Color::White { "White" } else { "Black" }
}
