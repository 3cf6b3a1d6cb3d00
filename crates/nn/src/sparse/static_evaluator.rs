//! The network's value as the judge of alpha-beta.
//!
//! Alpha-beta thinks in centipawns, and its margins of pruning are made for them. The logarithm
//! of the odds of the expected score gives a number that grows evenly with material: each pawn
//! more multiplies the odds. How many centipawns one unit of that is decides how much the
//! search dares to leave out.

use selfmate_chess::Chess;
use selfmate_search::alphabeta::StaticEvaluator;
use selfmate_search::{Wdl, math};

use super::accumulator::Accumulators;
use super::network::Network;

/// A network that judges positions for alpha-beta by its value alone.
#[derive(Clone, Debug)]
pub struct NetworkStaticEvaluator {
    network: Network,
    accumulators: Accumulators,
    scale: f32,
}

impl NetworkStaticEvaluator {
    /// A judge with the scale that played best.
    pub fn new(network: Network) -> NetworkStaticEvaluator {
        NetworkStaticEvaluator::with_scale(network, SCALE)
    }

    /// A judge with a chosen scale: centipawns for each unit of the logarithm of the odds.
    pub fn with_scale(network: Network, scale: f32) -> NetworkStaticEvaluator {
        NetworkStaticEvaluator { accumulators: network.accumulators(), network, scale }
    }

    /// The scale in use.
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

/// The logarithm of the odds of the expected score, where a draw is half a win: 0 when even.
fn log_odds(wdl: Wdl) -> f32 {
    let (ours, theirs) = (wdl.win + wdl.draw / 2.0, wdl.loss + wdl.draw / 2.0);
    math::ln(ours.max(CERTAIN) / theirs.max(CERTAIN))
}

/// Centipawns for each unit of the logarithm of the odds: about where a pawn is worth 100 to a
/// network that has learnt for half an hour. The right scale grows with what the network knows,
/// because the margins of pruning believe it: after five minutes 107 was better than 296 by some
/// 200 Elo, after 36 minutes this was better than 220 by 107 ± 64 and than 107 by 95 ± 90.
const SCALE: f32 = 370.0;
/// Chances below this are all the same.
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
    fn what_was_judged_before_changes_nothing() {
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
