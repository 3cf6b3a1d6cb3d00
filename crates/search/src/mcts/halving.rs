//! Sequential halving as a table: the visits that each simulation's candidate already has.

use std::iter;

/// For each of `simulations`, the number of visits that the next candidate must have. Among the
/// candidates with that many visits, the one with the best score is simulated.
///
/// All `candidates` are visited equally often, then the better half, and so on until two are left.
/// Each round gets about the same share of the simulations (Danihelka et al. 2022, figure 1).
///
/// ```
/// use selfmate_search::mcts::considered_visits;
/// assert_eq!(considered_visits(4, 8), [0, 0, 0, 0, 1, 1, 2, 2]);
/// ```
pub fn considered_visits(candidates: usize, simulations: usize) -> Vec<u32> {
    if candidates <= 1 {
        return (0..simulations as u32).collect();
    }
    let rounds = candidates.next_power_of_two().ilog2() as usize;
    let mut table = Vec::with_capacity(simulations + candidates);
    let mut considered = candidates;
    let mut visits = 0;
    while table.len() < simulations {
        let sweeps = (simulations / (rounds * considered)).max(1);
        for _ in 0..sweeps {
            table.extend(iter::repeat_n(visits, considered));
            visits += 1;
        }
        considered = (considered / 2).max(2);
    }
    table.truncate(simulations);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_match_hand_computed_examples() {
        assert_eq!(considered_visits(1, 4), [0, 1, 2, 3]);
        assert_eq!(considered_visits(2, 4), [0, 0, 1, 1]);
        // Fewer simulations than candidates: the first ones are visited once each.
        assert_eq!(considered_visits(16, 5), [0, 0, 0, 0, 0]);
        // Two rounds of 8: four candidates twice each, then two four times each.
        assert_eq!(considered_visits(4, 16), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        // Three candidates need two rounds; the second keeps two of them.
        assert_eq!(considered_visits(3, 6), [0, 0, 0, 1, 1, 2]);
        assert_eq!(considered_visits(5, 0), Vec::<u32>::new());
        // 16 candidates, 32 simulations: 16 once, 8 once, 4 twice (32 / (4 * 4)).
        let expected: Vec<u32> =
            [vec![0; 16], vec![1; 8], vec![2; 4], vec![3; 4]].into_iter().flatten().collect();
        assert_eq!(considered_visits(16, 32), expected);
    }

    #[test]
    fn some_candidate_always_has_the_wanted_visits() {
        for candidates in 1..40 {
            for simulations in [1, 2, 7, 16, 50, 128, 800] {
                let mut visits = vec![0u32; candidates];
                for wanted in considered_visits(candidates, simulations) {
                    let candidate = visits.iter().position(|&v| v == wanted);
                    visits[candidate.expect("some candidate has the wanted visits")] += 1;
                }
                assert_eq!(visits.iter().sum::<u32>() as usize, simulations);
            }
        }
    }
}
