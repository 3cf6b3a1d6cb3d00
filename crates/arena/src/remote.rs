//! Games that others play: the seam between a match and other machines.

use std::sync::atomic::AtomicBool;

use crate::game::GameSettings;
use crate::match_runner::MatchError;
use crate::openings::Opening;
use crate::record::GameRecord;
use crate::resolved_player::ResolvedPlayer;

/// Games of a match that are still to be played, with all that decides them.
pub struct OpenGames<'a> {
    /// A and B.
    pub players: [&'a ResolvedPlayer; 2],
    /// How games are played.
    pub settings: &'a GameSettings,
    /// The seed of the match.
    pub seed: u64,
    /// One for each pair of games.
    pub openings: &'a [Opening],
    /// The numbers of the games.
    pub open: &'a [usize],
    /// Ends it when set.
    pub stop: &'a AtomicBool,
}

/// Whether more games are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// They are.
    GoOn,
    /// Enough.
    Stop,
}

/// Has games played remote than on the threads of this process.
pub trait RemoteGames: Send + Sync {
    /// Hands over every game, in any order, until no more are wanted.
    fn play(
        &self,
        games: &OpenGames<'_>,
        take: &mut dyn FnMut(GameRecord) -> Result<Next, MatchError>,
    ) -> Result<(), MatchError>;
}
