//! Evaluators for self-play, made from a network file and from the settings.

use selfmate_nn::device::Evaluators;
use selfmate_nn::{Model, conv, mlp, residual, sparse};
use selfmate_search::{Cached, Evaluation, Evaluator, Leaf};

use crate::config::{Priors, SelfPlayConfig};

/// Evaluators of a network that was read from a file. They give the same results as those of the
/// model in training that wrote the file.
pub fn evaluators(model: &Model) -> Evaluators {
    match model {
        Model::Sparse(weights) => {
            let network = sparse::Network::new(weights);
            Box::new(move || Box::new(network.clone()))
        }
        Model::Residual(weights) => {
            let network = residual::Network::new(weights);
            Box::new(move || Box::new(residual::NetworkEvaluator::new(&network)))
        }
        Model::Mlp(network) => {
            let network = network.clone();
            Box::new(move || Box::new(mlp::NetworkEvaluator::new(network.clone())))
        }
        Model::Conv(network) => {
            let network = network.clone();
            Box::new(move || Box::new(conv::NetworkEvaluator::new(network.clone())))
        }
    }
}

/// An evaluator with the priors and the cache that the settings ask for. Panics when there is no
/// memory for the cache.
pub(crate) fn configured(
    config: &SelfPlayConfig,
    evaluator: Box<dyn Evaluator>,
) -> Box<dyn Evaluator> {
    let evaluator: Box<dyn Evaluator> = match config.priors {
        Priors::Network => evaluator,
        Priors::Uniform => Box::new(UniformPriors(evaluator)),
    };
    if config.transpositions == 0 {
        return evaluator;
    }
    let cached = Cached::new(Boxed(evaluator), config.transpositions);
    Box::new(cached.unwrap_or_else(|error| panic!("{error}")))
}

/// Replaces the priors of an evaluator by uniform ones.
struct UniformPriors(Box<dyn Evaluator>);

impl Evaluator for UniformPriors {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        self.0.evaluate(leaves, evaluations);
        for evaluation in evaluations {
            evaluation.logits.fill(0.0);
        }
    }

    fn history(&self) -> usize {
        self.0.history()
    }
}

struct Boxed(Box<dyn Evaluator>);

impl Evaluator for Boxed {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        self.0.evaluate(leaves, evaluations);
    }

    fn history(&self) -> usize {
        self.0.history()
    }
}
