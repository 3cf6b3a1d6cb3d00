//! The network's value as the judge of alpha-beta.
//!
//! Alpha-beta thinks in centipawns, and its margins of pruning are made for them. The odds of
//! the expected score give a number that grows evenly with material: each pawn more multiplies
//! them. How many centipawns one step of that is depends on the network (how far it has learnt,
//! how often it sees draws), so it is measured on the network itself, by taking pawns away.

use selfmate_chess::{Chess, fen};
use selfmate_search::alphabeta::Judge;
use selfmate_search::{Wdl, math};

use super::accumulator::Accumulators;
use super::network::Network;

/// A network that judges positions for alpha-beta by its value alone.
#[derive(Clone, Debug)]
pub struct NetworkJudge {
    network: Network,
    accumulators: Accumulators,
    scale: f32,
}

impl NetworkJudge {
    /// A judge to whom a pawn is worth about 100 centipawns.
    pub fn new(network: Network) -> NetworkJudge {
        let mut judge = NetworkJudge::with_scale(network, 1.0);
        judge.scale = 100.0 / judge.pawn().clamp(PAWN_LEAST, PAWN_MOST);
        judge
    }

    /// A judge with a chosen scale: centipawns for each unit of the logarithm of the odds.
    pub fn with_scale(network: Network, scale: f32) -> NetworkJudge {
        NetworkJudge { accumulators: network.accumulators(), network, scale }
    }

    /// The scale in use.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// The mean loss of log odds when a pawn is taken off the board.
    fn pawn(&mut self) -> f32 {
        let mut losses = Vec::new();
        for text in POSITIONS {
            let Ok(position) = fen::parse_fen(text) else { continue };
            let whole = log_odds(self.network.wdl(&position));
            for (at, pawn) in text.match_indices(['P', 'p']) {
                let mut without = text.to_owned();
                without.replace_range(at..=at, "1");
                // A pawn that stands between a king and a check cannot go.
                let Ok(without) = fen::parse_fen(&without) else { continue };
                let change = whole - log_odds(self.network.wdl(&without));
                // White is to move in all of them.
                losses.push(if pawn == "P" { change } else { -change });
            }
        }
        losses.iter().sum::<f32>() / losses.len().max(1) as f32
    }
}

impl Judge for NetworkJudge {
    fn judge(&mut self, position: &Chess) -> i32 {
        let wdl = self.network.wdl_from(&mut self.accumulators, position);
        let score = self.scale * log_odds(wdl);
        score.clamp(-MOST, MOST).round() as i32
    }

    fn copy(&self) -> Box<dyn Judge> {
        Box::new(self.clone())
    }
}

/// The logarithm of the odds of the expected score, where a draw is half a win: 0 when even.
fn log_odds(wdl: Wdl) -> f32 {
    let (ours, theirs) = (wdl.win + wdl.draw / 2.0, wdl.loss + wdl.draw / 2.0);
    math::ln(ours.max(CERTAIN) / theirs.max(CERTAIN))
}

/// What a pawn is held to be worth in log odds at the least and at the most: a network that knows
/// nothing must not be blown up, and none should find its pawns more telling than this.
const PAWN_LEAST: f32 = 0.15;
const PAWN_MOST: f32 = 2.0;
/// Chances below this are all the same.
const CERTAIN: f32 = 1e-7;
/// The most a position is worth, in centipawns.
const MOST: f32 = 2500.0;

/// Even positions without tension, from the opening to the endgame, White to move.
const POSITIONS: [&str; 8] = [
    "r1bq1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2NP1N2/PPP2PPP/R1BQ1RK1 w - - 0 7",
    "r2q1rk1/pp1bbppp/2n1pn2/3p4/3P4/2N1PN2/PP1BBPPP/R2Q1RK1 w - - 0 10",
    "r1bq1rk1/pp2ppbp/2np1np1/8/3PP3/2N1BN2/PP2BPPP/R2Q1RK1 w - - 0 9",
    "2rq1rk1/pb2bppp/1p2pn2/3p4/3P4/1P2PN2/PB2BPPP/2RQ1RK1 w - - 0 14",
    "2r2rk1/pp3ppp/2n1p3/3p4/3P4/2N1P3/PP3PPP/2R2RK1 w - - 0 18",
    "3r2k1/pp3ppp/4p3/3n4/8/4PN2/PP3PPP/3R2K1 w - - 0 22",
    "4r1k1/pp3ppp/2p5/8/8/2P5/PP3PPP/4R1K1 w - - 0 25",
    "8/pp3kpp/4b3/8/8/4B3/PP3KPP/8 w - - 0 30",
];

#[cfg(test)]
mod tests {
    use selfmate_chess::{Game, Seed};

    use super::super::{Kernel, SparseConfig, Weights};
    use super::*;

    #[test]
    fn every_position_of_the_measurement_is_one_with_white_to_move() {
        for text in POSITIONS {
            let position = fen::parse_fen(text).unwrap();
            assert!(selfmate_chess::Position::turn(&position).is_white(), "{text}");
            assert_eq!(
                text.matches('P').count(),
                text.split(' ').next().unwrap().matches('p').count()
            );
        }
    }

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
            for kernel in [Kernel::Portable, Kernel::detect()] {
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

    #[test]
    fn a_network_that_knows_nothing_is_not_blown_up() {
        let weights = Weights::random(SparseConfig::default(), Seed::new(1)).unwrap();
        let mut judge = NetworkJudge::new(Network::new(&weights));
        assert!((50.0..=100.0 / PAWN_LEAST).contains(&judge.scale()));
        assert!(judge.judge(&Chess::default()).abs() < 300);
    }
}
