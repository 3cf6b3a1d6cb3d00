//! Shows searches: how the result changes with the number of simulations, and the tree, node by
//! node.

use std::sync::Mutex;

use selfmate_arena::PlayerSpec;
use selfmate_chess::notation::parse_uci;
use selfmate_chess::{Game, Position};
use selfmate_search::Player;
use selfmate_search::mcts::{NodeView, Proof};
use selfmate_search::player::Limit;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::blocking::ResultSender;
use crate::error::ApiError;
use crate::learner::SearchKind;
use crate::player::Players;
use crate::run::lock;
use crate::view::MoveView;

/// The number of open trees; opening another closes the oldest.
const OPEN: usize = 6;
/// Megabytes per tree.
const MEMORY: &str = "32";
/// The maximum number of simulations; larger trees are not useful to look at.
const MAX_SIMS: u64 = 200_000;
/// The maximum depth of a shown node.
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

/// The root rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// Upper confidence bounds weighted by priors.
    #[default]
    Puct,
    /// Gumbel candidates with sequential halving.
    Gumbel,
}

/// The result of a search.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Snapshot {
    /// `snapshot`.
    pub kind: &'static str,
    /// Simulations allowed.
    pub sims: u64,
    /// Simulations used: fewer once the result is proven.
    pub simulations: u64,
    /// The move that would be played.
    pub best: MoveView,
    /// Expected result for the side to move, from -1 to 1: the mean over all simulations, including
    /// those of bad moves, or the proven result.
    pub value: f32,
    /// The proven result for the side to move: `win`, `draw` or `loss`.
    pub proof: Option<&'static str>,
    /// All legal moves: the one that would be played, then the others by visits.
    pub moves: Vec<Branch>,
}

/// A move from a position. Values are for the side that plays it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Branch {
    /// The move.
    #[serde(flatten)]
    pub played: MoveView,
    /// Simulations through this move.
    pub visits: u32,
    /// Prior probability.
    pub prior: f32,
    /// Expected result for the side that plays the move, from -1 to 1; `null` without visits.
    pub q: Option<f32>,
    /// The proven result: `win`, `draw` or `loss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<&'static str>,
}

/// The last line of the stream, with the name of the tree.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Ready {
    /// `ready`.
    pub kind: &'static str,
    /// Name of the tree.
    pub tree: String,
}

/// A node of a tree.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NodeInfo {
    /// Position of the node.
    pub fen: String,
    /// Simulations through this node.
    pub visits: u32,
    /// Expected result for the side to move, from -1 to 1.
    pub value: f32,
    /// The proven result for the side to move.
    pub proof: Option<&'static str>,
    /// Moves, most visited first; empty for a node without children.
    pub moves: Vec<Branch>,
}

/// Checks that there is a position to search and that `sims` is valid.
pub fn check(game: &Game, sims: u64) -> Result<(), ApiError> {
    if !(1..=MAX_SIMS).contains(&sims) {
        return Err(ApiError::Malformed(format!("sims is {sims}: expected 1 to {MAX_SIMS}")));
    }
    if game.outcome().is_some() {
        return Err(ApiError::Bad("the game is over: there is nothing to search".into()));
    }
    Ok(())
}

/// The spec of a tree search with this root rule.
pub fn tree_spec(players: &Players, text: &str, root: Root) -> Result<PlayerSpec, ApiError> {
    let mut spec = players.parse(text)?;
    let search_kind = players.search_kind(&spec);
    if search_kind == SearchKind::NoTree {
        return Err(ApiError::Bad(format!(
            "'{text}' does not use tree search: expected a network, material or rollout"
        )));
    }
    let replaced =
        ["sims", "nodes", "depth", "movetime", "search", "root", "scale", "threads", "memory"];
    spec.options.retain(|(name, _)| !replaced.contains(&name.as_str()));
    let mut set = |name: &str, value: &str| spec.options.push((name.to_owned(), value.to_owned()));
    set("memory", MEMORY);
    set("root", if root == Root::Gumbel { "gumbel" } else { "puct" });
    if search_kind == SearchKind::Either {
        set("search", "mcts");
    }
    Ok(spec)
}

impl Trees {
    /// Searches with 1, 2, 4… simulations, sends each result and keeps the last tree open.
    ///
    /// Each search starts from scratch, because a Gumbel root distributes its simulations by their
    /// total number. Only then does each result show what that many simulations would play.
    pub fn grow(
        &self,
        mut player: Box<dyn Player>,
        game: &Game,
        sims: u64,
        sender: &ResultSender,
    ) -> Result<(), ApiError> {
        for sims in budgets(sims) {
            player.new_game();
            let stop = Some(std::sync::Arc::clone(sender.stop()));
            let limit = Limit { nodes: Some(sims), stop, ..Limit::default() };
            let choice = player
                .choose(game, &limit)
                .map_err(|error| ApiError::Internal(error.to_string()))?;
            if sender.is_stopped() {
                let text = "the search took too long: try with fewer simulations";
                return Err(ApiError::Busy(text.into()));
            }
            let root = player
                .look(&[])
                .ok_or_else(|| ApiError::Internal("this player has no tree".into()))?;
            let mut root = info(game, &root);
            let best = MoveView::new(game.position(), choice.played);
            // A stable sort keeps the order by visits.
            root.moves.sort_by_key(|branch| branch.played != best);
            sender.send(&Snapshot {
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
        sender.send(&Ready { kind: "ready", tree: id });
        Ok(())
    }

    /// A node of a tree. `line` holds the moves from the root, in UCI notation.
    pub fn look(&self, id: &str, line: &[&str]) -> Result<NodeInfo, ApiError> {
        if line.len() > MAX_LINE {
            return Err(ApiError::Bad(format!("line: expected at most {MAX_LINE} moves")));
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
            .ok_or_else(|| ApiError::NotFound("the search has not visited this node".into()))?;
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

/// 1, 2, 4… and finally `sims`.
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
    fn budgets_double_and_end_with_the_given_number() {
        assert_eq!(budgets(1), [1]);
        assert_eq!(budgets(8), [1, 2, 4, 8]);
        assert_eq!(budgets(100), [1, 2, 4, 8, 16, 32, 64, 100]);
    }

    #[test]
    fn only_tree_searches_are_accepted() {
        let players = Players::new(Path::new("nowhere"), 2);
        let spec = |text, root| tree_spec(&players, text, root).map(|spec| spec.to_string());
        assert_eq!(
            spec("material:sims=9,c_puct=2", Root::Puct).unwrap(),
            "material:c_puct=2,memory=32,root=puct"
        );
        assert_eq!(
            spec("default:depth=3", Root::Gumbel).unwrap(),
            "default:memory=32,root=gumbel,search=mcts"
        );
        for text in ["random", "greedy", "alphabeta"] {
            assert!(
                spec(text, Root::Puct)
                    .unwrap_err()
                    .to_string()
                    .contains("does not use tree search")
            );
        }
    }
}
