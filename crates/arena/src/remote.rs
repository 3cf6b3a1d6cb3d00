//! The interface between a match and games played on other machines.

use std::sync::atomic::AtomicBool;

use crate::game::GameSettings;
use crate::match_runner::MatchError;
use crate::openings::Opening;
use crate::record::MatchGame;
use crate::resolved_player::ResolvedPlayer;

/// The remaining games of a match, with everything that determines them.
pub struct OpenGames<'a> {
    pub players: [&'a ResolvedPlayer; 2],
    pub settings: &'a GameSettings,
    pub seed: u64,
    /// One opening per pair of games.
    pub openings: &'a [Opening],
    /// Numbers of the games to play.
    pub open: &'a [usize],
    /// Ends the games when set.
    pub stop: &'a AtomicBool,
}

/// Whether the match needs more games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    GoOn,
    Stop,
}

/// Plays the games of a match on other machines.
pub trait RemoteGames: Send + Sync {
    /// Passes every finished game to `take`, in any order, until `take` returns [`Next::Stop`].
    fn play(
        &self,
        games: &OpenGames<'_>,
        take: &mut dyn FnMut(MatchGame) -> Result<Next, MatchError>,
    ) -> Result<(), MatchError>;
}
