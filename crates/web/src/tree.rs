//! Searches to look into: how a search changes with its simulations, and its tree, one node at a
//! time.

use std::sync::Mutex;

use selfmate_arena::PlayerSpec;
use selfmate_chess::notation::parse_uci;
use selfmate_chess::{Game, Position};
use selfmate_search::Player;
use selfmate_search::mcts::{NodeView, Proof};
use selfmate_search::player::Limit;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::blocking::Teller;
use crate::error::ApiError;
use crate::learner::Thinking;
use crate::player::Players;
use crate::run::lock;
use crate::view::MoveView;

/// Trees that stay open; the oldest closes when another is opened.
const OPEN: usize = 6;
/// Megabytes for each.
const MEMORY: &str = "32";
/// The most simulations: a tree of this size is larger than anyone looks at.
const MAX_SIMS: u64 = 200_000;
/// The longest line that is followed into a tree.
const MAX_LINE: usize = 64;

#[derive(Default)]
pub struct Trees {
    open: Mutex<Vec<OpenTree>>,
}

struct OpenTree {
    id: String,
    game: Game,
    player: Box<dyn Player>,
}

/// How the root is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// Upper confidence bounds weighted by priors.
    #[default]
    Puct,
    /// Candidates by prior, sequential halving.
    Gumbel,
}

/// A search after so many simulations.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Snapshot {
    /// `snapshot`.
    pub kind: &'static str,
    /// Simulations that it was allowed.
    pub sims: u64,
    /// Simulations that it took: fewer once the result is proven.
    pub simulations: u64,
    /// The move that would be played.
    pub best: MoveView,
    /// Expected result for the side to move, from -1 to 1: the mean over all simulations, those of
    /// bad moves included, or the result if it is proven.
    pub value: f32,
    /// What is proven for the side to move: `win`, `draw` or `loss`.
    pub proof: Option<&'static str>,
    /// Every legal move: the one that would be played, then the others by their visits.
    pub moves: Vec<Branch>,
}

/// A move out of a position, for the side that makes it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Branch {
    /// The move.
    #[serde(flatten)]
    pub played: MoveView,
    /// Simulations through it.
    pub visits: u32,
    /// Its prior.
    pub prior: f32,
    /// Expected result from -1 to 1 for the side that makes the move; `null` when it was never
    /// tried.
    pub q: Option<f32>,
    /// What is proven: `win`, `draw` or `loss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<&'static str>,
}

/// The end of the stream: the tree can be opened under this name.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Ready {
    /// `ready`.
    pub kind: &'static str,
    /// The name of the tree.
    pub tree: String,
}

/// A node of a tree.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NodeInfo {
    /// Its position.
    pub fen: String,
    /// Simulations that have passed here.
    pub visits: u32,
    /// Expected result for the side to move, from -1 to 1.
    pub value: f32,
    /// What is proven, for the side to move.
    pub proof: Option<&'static str>,
    /// The moves, most visited first; empty while the node has no children.
    pub moves: Vec<Branch>,
}

/// Whether there is something to search, with so many simulations.
pub fn check(game: &Game, sims: u64) -> Result<(), ApiError> {
    if !(1..=MAX_SIMS).contains(&sims) {
        return Err(ApiError::Malformed(format!("sims is {sims}: expected 1 to {MAX_SIMS}")));
    }
    if game.outcome().is_some() {
        return Err(ApiError::Bad("the game is over here: there is nothing to search".into()));
    }
    Ok(())
}

/// The player whose tree is to be seen: a tree search with this rule at the root.
pub fn tree_spec(players: &Players, text: &str, root: Root) -> Result<PlayerSpec, ApiError> {
    let mut spec = players.parse(text)?;
    let thinking = players.thinking(&spec);
    if thinking == Thinking::NoTree {
        return Err(ApiError::Bad(format!(
            "'{text}' searches no tree: expected a network, material or rollout"
        )));
    }
    let ours =
        ["sims", "nodes", "depth", "movetime", "search", "root", "scale", "threads", "memory"];
    spec.options.retain(|(name, _)| !ours.contains(&name.as_str()));
    let mut set = |name: &str, value: &str| spec.options.push((name.to_owned(), value.to_owned()));
    set("memory", MEMORY);
    set("root", if root == Root::Gumbel { "gumbel" } else { "puct" });
    if thinking == Thinking::Either {
        set("search", "mcts");
    }
    Ok(spec)
}

impl Trees {
    /// Searches with 1, 2, 4… simulations, tells what each finds, and leaves the last tree open.
    ///
    /// Each search starts afresh, because a Gumbel root shares out its simulations by their number:
    /// only so does a row show what that many simulations would play.
    pub fn grow(
        &self,
        mut player: Box<dyn Player>,
        game: &Game,
        sims: u64,
        teller: &Teller,
    ) -> Result<(), ApiError> {
        for sims in budgets(sims) {
            player.new_game();
            let stop = Some(std::sync::Arc::clone(teller.stop()));
            let limit = Limit { nodes: Some(sims), stop, ..Limit::default() };
            let choice = player
                .choose(game, &limit)
                .map_err(|error| ApiError::Internal(error.to_string()))?;
            if teller.is_stopped() {
                let text = "the search took too long: try with fewer simulations";
                return Err(ApiError::Busy(text.into()));
            }
            let root = player
                .look(&[])
                .ok_or_else(|| ApiError::Internal("this player shows no tree".into()))?;
            let mut root = info(game, &root);
            let best = MoveView::new(game.position(), choice.played);
            // Stable: the others stay in the order of their visits.
            root.moves.sort_by_key(|branch| branch.played != best);
            teller.tell(&Snapshot {
                kind: "snapshot",
                sims,
                simulations: choice.nodes.unwrap_or_default(),
                best,
                value: root.value,
                proof: root.proof,
                moves: root.moves,
            });
        }
        let id = crate::secret_name()?;
        let mut open = lock(&self.open);
        if open.len() >= OPEN {
            open.remove(0);
        }
        open.push(OpenTree { id: id.clone(), game: game.clone(), player });
        drop(open);
        teller.tell(&Ready { kind: "ready", tree: id });
        Ok(())
    }

    /// Opens a node: `line` are the moves from the root, in UCI.
    pub fn look(&self, id: &str, line: &[&str]) -> Result<NodeInfo, ApiError> {
        if line.len() > MAX_LINE {
            return Err(ApiError::Bad(format!("a line: expected at most {MAX_LINE} moves")));
        }
        let open = lock(&self.open);
        let tree = open.iter().find(|tree| tree.id == id).ok_or_else(|| {
            ApiError::NotFound("this tree is closed: search again to open it".into())
        })?;
        let mut game = tree.game.clone();
        let mut moves = Vec::new();
        for text in line {
            let m = parse_uci(game.position(), text)
                .map_err(|error| ApiError::Bad(error.to_string()))?;
            game.play(m).map_err(|error| ApiError::Bad(error.to_string()))?;
            moves.push(m);
        }
        let node = tree
            .player
            .look(&moves)
            .ok_or_else(|| ApiError::NotFound("the search has not been there".into()))?;
        Ok(info(&game, &node))
    }
}

fn info(game: &Game, node: &NodeView) -> NodeInfo {
    let position = game.position();
    let branch = |edge: &selfmate_search::mcts::EdgeView| Branch {
        played: MoveView::new(position, edge.played),
        visits: edge.visits,
        prior: edge.prior,
        q: (edge.visits > 0).then(|| edge.wdl.value()),
        proof: proof(edge.proof),
    };
    NodeInfo {
        fen: selfmate_chess::fen::to_fen(position),
        visits: node.visits,
        value: node.wdl.value(),
        proof: proof(node.proof),
        moves: if position.legal_moves().is_empty() {
            Vec::new()
        } else {
            node.moves.iter().map(branch).collect()
        },
    }
}

fn proof(proof: Proof) -> Option<&'static str> {
    match proof {
        Proof::Unknown => None,
        Proof::Win(_) => Some("win"),
        Proof::Loss(_) => Some("loss"),
        Proof::Draw => Some("draw"),
    }
}

/// 1, 2, 4… up to a number, which comes last.
fn budgets(sims: u64) -> Vec<u64> {
    let mut budgets: Vec<u64> = std::iter::successors(Some(1_u64), |n| n.checked_mul(2))
        .take_while(|&n| n < sims)
        .collect();
    budgets.push(sims);
    budgets
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn budgets_double_and_end_with_what_was_asked_for() {
        assert_eq!(budgets(1), [1]);
        assert_eq!(budgets(8), [1, 2, 4, 8]);
        assert_eq!(budgets(100), [1, 2, 4, 8, 16, 32, 64, 100]);
    }

    #[test]
    fn only_tree_searches_have_a_tree() {
        let players = Players::new(Path::new("nowhere"), 2);
        let spec = |text, root| tree_spec(&players, text, root).map(|spec| spec.to_string());
        assert_eq!(
            spec("material:sims=9,cpuct=2", Root::Puct).unwrap(),
            "material:cpuct=2,memory=32,root=puct"
        );
        assert_eq!(
            spec("default:depth=3", Root::Gumbel).unwrap(),
            "default:memory=32,root=gumbel,search=mcts"
        );
        for text in ["random", "greedy", "alphabeta"] {
            assert!(spec(text, Root::Puct).unwrap_err().to_string().contains("searches no tree"));
        }
    }
}
