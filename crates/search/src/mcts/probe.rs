//! Tablebase probes in tree search: proofs inside the tree, and which root moves to search.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use selfmate_chess::tablebase::{Ranking, TableResult, Tables};
use selfmate_chess::{Game, Move};

use super::result::Proof;
use crate::value::Wdl;

/// The tablebases of a search, and their result for its root.
#[derive(Debug, Default)]
pub(super) struct Probes {
    tables: Option<Tables>,
    /// Whether positions inside the tree are probed.
    inside: bool,
    /// The result of the root, for its side to move.
    known: Option<Wdl>,
    hits: AtomicU64,
}

impl Probes {
    pub fn new(tables: Option<Tables>) -> Probes {
        Probes { tables, ..Probes::default() }
    }

    /// Ranks the moves of a new root (those in `only`, or all when it is empty) and decides whether
    /// positions inside the tree are probed.
    pub fn rank_root(&mut self, game: &Game, only: &[Move]) -> Option<Ranking> {
        (self.inside, self.known) = (self.tables.is_some(), None);
        self.hits.store(0, Relaxed);
        let tables = self.tables.as_ref()?;
        let legal = game.legal_moves();
        let ranking = tables.rank_moves(game, if only.is_empty() { &legal } else { only })?;
        self.hits.store(ranking.moves.len() as u64, Relaxed);
        let best = ranking.best().result;
        // As in alpha-beta: not where the ranking alone makes progress, or nothing can be won.
        self.inside = !ranking.is_by_distance && best > TableResult::Draw;
        self.known = Some(match best.points(tables.rule()) {
            1 => Wdl::WIN,
            -1 => Wdl::LOSS,
            _ => Wdl::DRAW,
        });
        Some(ranking)
    }

    /// The tablebase result of the root, for its side to move.
    pub fn known(&self) -> Option<Wdl> {
        self.known
    }

    /// The tablebase proof of a position inside the tree, for the player who moved into it.
    pub fn proof(&self, game: &Game) -> Option<Proof> {
        let tables = self.tables.as_ref().filter(|_| self.inside)?;
        let result = tables.in_search(game.position())?;
        self.hits.fetch_add(1, Relaxed);
        Some(match result {
            TableResult::Loss => Proof::Win(Proof::DISTANT),
            TableResult::Win => Proof::Loss(Proof::DISTANT),
            _ => Proof::Draw,
        })
    }

    /// Positions found since the root was set.
    pub fn hits(&self) -> u64 {
        self.hits.load(Relaxed)
    }
}
