//! The network's value as the static evaluation of alpha-beta.
//!
//! Alpha-beta uses centipawns, and its pruning margins depend on them. The log odds of the expected
//! score grow evenly with material, because each extra pawn multiplies the odds. The scale from log
//! odds to centipawns determines how much the search prunes.

use selfmate_chess::Chess;
use selfmate_search::alphabeta::{Settings, StaticEvaluator};
use selfmate_search::{Wdl, math};

use super::accumulator::Accumulators;
use super::network::Network;

/// Evaluates positions for alpha-beta by the network's value alone.
#[derive(Clone, Debug)]
pub struct NetworkStaticEvaluator {
    network: Network,
    accumulators: Accumulators,
    scale: f32,
}

impl NetworkStaticEvaluator {
    /// Uses the default scale of the search's settings.
    pub fn new(network: Network) -> NetworkStaticEvaluator {
        let scale = Settings::default().network_scale;
        NetworkStaticEvaluator::with_scale(network, scale as f32)
    }

    /// Uses a chosen scale, in centipawns per unit of log odds.
    pub fn with_scale(network: Network, scale: f32) -> NetworkStaticEvaluator {
        NetworkStaticEvaluator { accumulators: network.accumulators(), network, scale }
    }

    pub fn scale(&self) -> f32 {
        self.scale
    }
}

impl StaticEvaluator for NetworkStaticEvaluator {
    fn evaluate(&mut self, position: &Chess) -> i32 {
        let wdl = self.network.wdl_from(&mut self.accumulators, position);
        let score = self.scale * log_odds(wdl);
        score.round() as i32
    }

    fn copy(&self) -> Box<dyn StaticEvaluator> {
        Box::new(self.clone())
    }
}

/// The log odds of the expected score, where a draw is half a win: 0 when even.
fn log_odds(wdl: Wdl) -> f32 {
    let (ours, theirs) = (wdl.win + wdl.draw / 2.0, wdl.loss + wdl.draw / 2.0);
    math::ln(ours.max(CERTAIN) / theirs.max(CERTAIN))
}

/// Smaller probabilities are raised to this one.
const CERTAIN: f32 = 1e-7;

#[cfg(test)]
mod tests {
    use selfmate_chess::{Game, Seed};

    use super::super::{Kernel, SparseConfig, Weights};
    use super::*;

    #[test]
    fn centipawns_grow_with_the_expected_score_and_stay_finite() {
        assert_eq!(log_odds(Wdl::EVEN), 0.0);
        assert_eq!(log_odds(Wdl::DRAW), 0.0);
        assert!((log_odds(Wdl::new(0.5, 0.2)) - 3.0f32.ln()).abs() < 1e-5);
        let (win, loss) = (log_odds(Wdl::WIN), log_odds(Wdl::LOSS));
        assert!(win > 15.0 && win < 17.0 && loss == -win, "{win} {loss}");
    }

    #[test]
    fn results_do_not_depend_on_earlier_positions() {
        for hidden in [64, 256] {
            let config = SparseConfig { hidden, ..SparseConfig::default() };
            let weights = Weights::random(config, Seed::new(3)).unwrap();
            for kernel in Kernel::all() {
                let mut network = Network::with_kernel(&weights, kernel);
                let mut accumulators = network.accumulators();
                for number in 0..20 {
                    let mut rng = Seed::new(4).index(number).rng();
                    let mut game = Game::new();
                    while game.outcome().is_none() && game.ply() < 150 {
                        let position = game.position();
                        let carried = network.wdl_from(&mut accumulators, position);
                        assert_eq!(carried, network.wdl(position));
                        let legal = game.legal_moves();
                        game.play_unchecked(legal[rng.below(legal.len())]);
                    }
                }
            }
        }
    }
}
