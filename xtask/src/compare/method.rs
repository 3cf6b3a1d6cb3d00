//! The methods of the comparison, with their texts for the page.

/// A way to play chess: a learner, or a search without learning.
#[derive(Debug)]
pub struct Method {
    pub name: &'static str,
    /// Its page, below `docs`.
    pub page: &'static str,
    pub summary: &'static str,
    /// What the training starts from.
    pub start: &'static str,
    pub source: Source,
    /// What must be installed besides selfmate.
    pub setup: &'static str,
    pub gpu: Gpu,
    /// Its own files and folders.
    pub files: &'static [&'static str],
}

#[derive(Debug)]
pub enum Source {
    /// A learner, with the flags of `train`.
    Trained { budget: &'static str },
    /// A player that does not learn.
    Player(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub enum Gpu {
    Useful,
    NotUsed,
}

impl Gpu {
    pub fn text(self) -> &'static str {
        match self {
            Gpu::Useful => "useful",
            Gpu::NotUsed => "not used",
        }
    }
}

impl Method {
    /// The flags of `train`, if it learns.
    pub fn budget(&self) -> Option<&'static str> {
        match self.source {
            Source::Trained { budget } => Some(budget),
            Source::Player(_) => None,
        }
    }
}

/// The learners of whole games, and a search. The names are repeated here because xtask does not use
/// selfmate's crates; `selfmate train` rejects a name that is not in its own table. No method needs
/// a GPU.
pub const METHODS: &[Method] = &[
    Method {
        name: "zero",
        page: "learners/zero.md",
        summary: "sparse network, self-play, Gumbel search",
        start: "random weights",
        source: Source::Trained { budget: "--minutes 60" },
        setup: "nothing",
        gpu: Gpu::NotUsed,
        files: &["crates/methods/src/zero.rs"],
    },
    Method {
        name: "alphazero",
        page: "learners/alphazero.md",
        summary: "residual network, self-play, Gumbel search",
        start: "random weights",
        source: Source::Trained { budget: "--minutes 30" },
        setup: "nothing",
        gpu: Gpu::Useful,
        files: &["crates/methods/src/alphazero.rs"],
    },
    Method {
        name: "value",
        page: "learners/value.md",
        summary: "value network, Monte Carlo returns, one ply",
        start: "random weights",
        source: Source::Trained { budget: "--games 3000" },
        setup: "nothing",
        gpu: Gpu::NotUsed,
        files: &["crates/methods/src/value.rs", "crates/methods/src/value"],
    },
    Method {
        name: "reinforce",
        page: "learners/reinforce.md",
        summary: "policy network, policy gradient, no search",
        start: "random weights",
        source: Source::Trained { budget: "--minutes 30" },
        setup: "nothing",
        gpu: Gpu::NotUsed,
        files: &["crates/methods/src/reinforce.rs", "crates/methods/src/reinforce"],
    },
    Method {
        name: "qlearn",
        page: "learners/qlearn.md",
        summary: "table of values, Q-learning, no search",
        start: "an empty table",
        source: Source::Trained { budget: "--minutes 10" },
        setup: "nothing",
        gpu: Gpu::NotUsed,
        files: &["crates/methods/src/qlearn.rs", "crates/methods/src/qlearn"],
    },
    Method {
        name: "clone",
        page: "learners/clone.md",
        summary: "sparse network, copies Stockfish",
        start: "Stockfish's games",
        source: Source::Trained { budget: "--minutes 45" },
        setup: "Stockfish",
        gpu: Gpu::NotUsed,
        files: &["crates/methods/src/clone.rs", "crates/methods/src/clone"],
    },
    Method {
        name: "clone-policy",
        page: "learners/clone.md",
        summary: "policy network, copies Stockfish, no search",
        start: "Stockfish's games",
        source: Source::Trained { budget: "--minutes 45" },
        setup: "Stockfish",
        gpu: Gpu::NotUsed,
        files: &[
            "crates/methods/src/clone.rs",
            "crates/methods/src/clone",
            "crates/methods/src/reinforce/input.rs",
            "crates/methods/src/reinforce/player.rs",
        ],
    },
    Method {
        name: "evolve",
        page: "learners/evolve.md",
        summary: "evaluation weights, CMA-ES, alpha-beta",
        start: "a plain evaluation by hand",
        source: Source::Trained { budget: "--minutes 30" },
        setup: "nothing",
        gpu: Gpu::NotUsed,
        files: &[
            "crates/methods/src/evolve.rs",
            "crates/methods/src/evolve",
            "crates/methods/src/tuning.rs",
            "crates/methods/src/tuning",
        ],
    },
    Method {
        name: "tune",
        page: "learners/tune.md",
        summary: "evaluation weights, SPRT, SPSA, Texel, alpha-beta",
        start: "a plain evaluation by hand",
        source: Source::Trained { budget: "--minutes 45" },
        setup: "nothing",
        gpu: Gpu::NotUsed,
        files: &[
            "crates/methods/src/tune.rs",
            "crates/methods/src/tune",
            "crates/methods/src/tuning.rs",
            "crates/methods/src/tuning",
        ],
    },
    Method {
        name: "rollout",
        page: "search.md",
        summary: "no network: UCT with random playouts",
        start: "the rules",
        source: Source::Player("rollout"),
        setup: "nothing",
        gpu: Gpu::NotUsed,
        files: &[
            "crates/search/src/mcts.rs",
            "crates/search/src/mcts",
            "crates/search/src/evaluator/rollout.rs",
        ],
    },
];
