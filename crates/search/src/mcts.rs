//! Monte Carlo tree search with several selection rules.
//!
//! A simulation descends the tree from the root ([`Search::gather`]), the caller has the leaf
//! evaluated, and [`Search::apply`] backs the value up. [`RootRule`] selects moves at the root and
//! [`InteriorRule`] below it. [`run`] and [`run_parallel`] are the usual loops around the two
//! halves; [`Lockstep`] runs many trees with one evaluator.
//!
//! AlphaZero: Silver et al. 2018. Gumbel AlphaZero: Danihelka et al. 2022.

mod batch;
mod bump;
mod driver;
mod edge;
mod gumbel;
mod halving;
mod lockstep;
mod node;
mod params;
mod probe;
mod result;
mod root;
mod search;
mod select;
mod shared;
mod simulation;
mod tree;
mod view;

pub use batch::{Batch, SimulationStats};
pub use driver::{StopCondition, run, run_in, run_parallel};
pub use halving::considered_visits;
pub use lockstep::{Lockstep, SearchSlot};
pub use params::{
    Dirichlet, Expansion, FirstPlayUrgency, Gumbel, GumbelSearch, InteriorRule, PolicyTarget, Puct,
    PuctFormula, RootRule, SearchParams, Temperature, Transpositions, ValueTarget,
};
pub use result::{Decision, MoveStatistics, Proof, SearchResult};
pub use search::Search;
pub use view::{EdgeView, NodeView};
