//! Moves as text: UCI (`e2e4`, `e7e8q`) and SAN (`e4`, `e8=Q+`).

use shakmaty::san::{San, SanPlus};
use shakmaty::uci::UciMove;
use shakmaty::{Chess, Move, Position};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    #[error("'{0}' is not a move: expected UCI (e2e4, e7e8q) or SAN (e4, Nf3, O-O, e8=Q)")]
    Syntax(String),
    #[error("'{text}' is not legal in {fen}")]
    Illegal { text: String, fen: String },
    #[error("'{text}' is ambiguous in {fen}: name the file or rank it starts from")]
    Ambiguous { text: String, fen: String },
}

/// Parses a legal move in UCI or SAN.
pub fn parse_move(position: &Chess, text: &str) -> Result<Move, MoveError> {
    let text = text.trim();
    if let Ok(uci) = UciMove::from_ascii(text.as_bytes())
        && !uci.is_null()
    {
        // No SAN parses as UCI ("b4" is too short), so the order of the two does not matter.
        return uci.to_move(position).map_err(|_| illegal(position, text));
    }
    parse_san(position, text)
}

/// Parses a legal move in UCI notation only, for engine output.
pub fn parse_uci(position: &Chess, text: &str) -> Result<Move, MoveError> {
    match UciMove::from_ascii(text.as_bytes()) {
        Ok(uci) => uci.to_move(position).map_err(|_| illegal(position, text)),
        Err(_) => Err(MoveError::Syntax(text.to_owned())),
    }
}

/// Parses a legal move in SAN, with or without a check mark.
pub fn parse_san(position: &Chess, text: &str) -> Result<Move, MoveError> {
    let syntax = || MoveError::Syntax(text.to_owned());
    let san = SanPlus::from_ascii(text.as_bytes()).map_err(|_| syntax())?.san;
    if san == San::Null {
        return Err(syntax());
    }
    san.to_move(position).map_err(|error| match error {
        shakmaty::san::SanError::AmbiguousSan => {
            MoveError::Ambiguous { text: text.to_owned(), fen: crate::fen::to_fen(position) }
        }
        shakmaty::san::SanError::IllegalSan => illegal(position, text),
    })
}

/// Writes a move in UCI notation. Castling depends on the position's castling mode.
pub fn uci(position: &Chess, m: Move) -> String {
    m.to_uci(position.castles().mode()).to_string()
}

/// Writes a legal move in SAN, with its check or mate mark.
pub fn san(position: &Chess, m: Move) -> String {
    SanPlus::from_move(position.clone(), m).to_string()
}

fn illegal(position: &Chess, text: &str) -> MoveError {
    MoveError::Illegal { text: text.to_owned(), fen: crate::fen::to_fen(position) }
}
