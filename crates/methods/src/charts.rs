//! The curves of a run as charts. Every learner lists its own in its row of the table; the plot and
//! the page draw them in that order.

pub use selfmate_arena::svg::Unit;
use serde::{Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chart {
    pub title: &'static str,
    /// What to read from it, in one line.
    pub hint: &'static str,
    #[serde(serialize_with = "unit_name")]
    pub unit: Unit,
    pub curves: &'static [Curve],
    /// True for settings that change by schedule: they are drawn small, at the end.
    pub is_schedule: bool,
}

/// A metric of `metrics.jsonl` and its label, which is empty where the title says it all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Curve {
    pub metric: &'static str,
    pub label: &'static str,
}

pub(crate) const fn curve(metric: &'static str, label: &'static str) -> Curve {
    Curve { metric, label }
}

pub(crate) const fn chart(
    title: &'static str,
    hint: &'static str,
    unit: Unit,
    curves: &'static [Curve],
) -> Chart {
    Chart { title, hint, unit, curves, is_schedule: false }
}

pub(crate) const fn schedule(title: &'static str, curves: &'static [Curve]) -> Chart {
    Chart { title, hint: "by schedule", unit: Unit::Amount, curves, is_schedule: true }
}

// Takes a reference because serde calls it with one.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn unit_name<S: Serializer>(unit: &Unit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match unit {
        Unit::Number => "number",
        Unit::Amount => "amount",
        Unit::Share => "share",
    })
}

pub(crate) const VALUE_LOSS: Chart = chart(
    "Value loss",
    "how far the network's values are from their targets",
    Unit::Number,
    &[curve("loss.value", "")],
);

const POLICY: Chart = chart(
    "Policy (nats)",
    "loss: cross entropy with the moves of the search; entropy: of those moves; divergence: loss minus entropy",
    Unit::Number,
    &[
        curve("loss.policy", "loss"),
        curve("target_entropy", "entropy"),
        curve("policy_divergence", "divergence"),
    ],
);

pub(crate) const PLIES: Chart =
    chart("Plies per game", "the mean length", Unit::Amount, &[curve("plies", "")]);

const VALUE_SPREAD: Chart = chart(
    "Value spread",
    "near 0 the network expects the same result in every position",
    Unit::Amount,
    &[curve("value_spread", "")],
);

const SIMULATIONS_PER_SECOND: Chart = chart(
    "Simulations per second",
    "all threads together",
    Unit::Amount,
    &[curve("simulations_per_second", "")],
);

pub(crate) const GAMES_PER_SECOND: Chart = chart(
    "Games per second",
    "including training time",
    Unit::Amount,
    &[curve("games_per_second", "")],
);

const SIMULATIONS_PER_MOVE: Chart =
    schedule("Simulations per move", &[curve("simulations_per_move", "")]);

pub(crate) const LEARNING_RATE: Chart = schedule("Learning rate", &[curve("learning_rate", "")]);

pub(crate) const EPSILON: Chart = schedule("Share of random moves (ε)", &[curve("epsilon", "")]);

pub(crate) const EVALUATION: Chart = chart(
    "Evaluation",
    "share of points against the opponent of the evaluation, without random moves",
    Unit::Share,
    &[curve("evaluation.score", "")],
);

/// Learners from self-play with whole games.
pub(crate) const SELF_PLAY: &[Chart] = &[
    VALUE_LOSS,
    POLICY,
    chart(
        "Games",
        "drawn: share of finished games; truncated: share that reached the ply cap; wrong: share of resignations in games that were not lost",
        Unit::Share,
        &[
            curve("draw_share", "drawn"),
            curve("truncated_share", "truncated"),
            curve("resigned_share", "resigned"),
            curve("wrong_resignations", "wrong"),
        ],
    ),
    chart(
        "Endgame mistakes",
        "share of 500 endings of up to four pieces in which the network's move throws away a win or a draw, by exact tables",
        Unit::Share,
        &[curve("evaluation.endgame_mistakes", "")],
    ),
    PLIES,
    VALUE_SPREAD,
    SIMULATIONS_PER_SECOND,
    GAMES_PER_SECOND,
    SIMULATIONS_PER_MOVE,
    LEARNING_RATE,
];

/// Learners from self-play in an ending.
pub(crate) const ENDGAME: &[Chart] = &[
    chart(
        "Mates",
        "share of won positions that end in mate within the move limit, against the longest resistance, random moves and a heuristic defender",
        Unit::Share,
        &[
            curve("mate_share.perfect", "perfect"),
            curve("mate_share.random", "random"),
            curve("mate_share.heuristic", "heuristic"),
        ],
    ),
    chart(
        "Regret in plies",
        "how many plies longer a move makes the mate, on average, against the longest resistance",
        Unit::Amount,
        &[curve("regret_plies", "")],
    ),
    chart(
        "Optimal and thrown",
        "moves that lose no ply; games in which a win was thrown away",
        Unit::Share,
        &[curve("optimal_share", "optimal"), curve("thrown_share", "thrown away")],
    ),
    chart(
        "Value error",
        "mean distance from the tablebase's value, over the whole ending",
        Unit::Amount,
        &[curve("value_error", "")],
    ),
    VALUE_LOSS,
    POLICY,
    chart(
        "Games",
        "how games of self-play ended; drawn: share of finished games",
        Unit::Share,
        &[
            curve("checkmate_share", "mate"),
            curve("draw_share", "drawn"),
            curve("truncated_share", "truncated"),
        ],
    ),
    PLIES,
    SIMULATIONS_PER_SECOND,
    GAMES_PER_SECOND,
    SIMULATIONS_PER_MOVE,
    LEARNING_RATE,
];
