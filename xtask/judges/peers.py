"""Measures the speed of other chess libraries for `cargo xtask bench-peers`.

Each subcommand runs one peer on one thread for about `--seconds` and prints one JSON object with
`name`, `count` (plies or simulations), `seconds` and `per_second`. The set-up is not timed. Each loop
is the fastest fair one that we know: it ends games by the same rules as ours (mate, stalemate,
insufficient material, threefold repetition, fifty moves) and does nothing else.
"""

import argparse
import json
import random
import time

TREE_SIMULATIONS = 50_000  # per search; speed falls with the size of the tree, and ours is even larger
PLAYOUT_SIMULATIONS = 1_000  # per search, each with a playout to the end of the game


def python_chess_games(seconds):
    """Random games on python-chess; counts plies."""
    import chess

    rng = random.Random(1)
    plies = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        board = chess.Board()
        while True:
            # A third repetition needs at least eight reversible plies. To check only then, and to use one
            # move list for mate and stalemate, makes python-chess faster.
            clock = board.halfmove_clock
            if clock >= 100 or (clock >= 8 and board.is_repetition(3)) or board.is_insufficient_material():
                break
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(rng.choice(moves))
            plies += 1
    return plies, time.perf_counter() - start


def openspiel_games(seconds):
    """Random games on OpenSpiel's C++ chess through its Python interface; counts plies."""
    import pyspiel

    game = pyspiel.load_game("chess")
    rng = random.Random(1)
    plies = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        state = game.new_initial_state()
        while not state.is_terminal():
            state.apply_action(rng.choice(state.legal_actions()))
            plies += 1
    return plies, time.perf_counter() - start


def search_speed(game, search, simulations, seconds):
    """Searches the start position repeatedly; counts simulations."""
    count = 0
    start = time.perf_counter()
    while count == 0 or time.perf_counter() - start < seconds:
        search(game.new_initial_state())
        count += simulations
    return count, time.perf_counter() - start


def openspiel_mcts_python(seconds):
    """OpenSpiel's Python MCTS (UCT) with all values zero; counts simulations."""
    import numpy
    import pyspiel
    from open_spiel.python.algorithms import mcts

    class Uniform(mcts.Evaluator):
        def evaluate(self, state):
            return [0.0, 0.0]

        def prior(self, state):
            actions = state.legal_actions()
            return [(action, 1.0 / len(actions)) for action in actions]

    game = pyspiel.load_game("chess")
    bot = mcts.MCTSBot(
        game,
        uct_c=1.4,
        max_simulations=TREE_SIMULATIONS,
        evaluator=Uniform(),
        solve=False,
        random_state=numpy.random.RandomState(1),
    )
    return search_speed(game, bot.mcts_search, TREE_SIMULATIONS, seconds)


def openspiel_mcts_cpp(seconds):
    """OpenSpiel's C++ MCTS (UCT) with one random playout to the end of the game per simulation."""
    import pyspiel

    game = pyspiel.load_game("chess")
    bot = pyspiel.MCTSBot(
        game,
        pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=1),
        uct_c=1.4,
        max_simulations=PLAYOUT_SIMULATIONS,
        max_memory_mb=1000,
        solve=False,
        seed=1,
        verbose=False,
    )
    return search_speed(game, bot.mcts_search, PLAYOUT_SIMULATIONS, seconds)


PEERS = {
    "python-chess-games": python_chess_games,
    "openspiel-games": openspiel_games,
    "openspiel-mcts-python": openspiel_mcts_python,
    "openspiel-mcts-cpp": openspiel_mcts_cpp,
}


def main():
    parser = argparse.ArgumentParser(description="measure one peer")
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    count, seconds = PEERS[arguments.peer](arguments.seconds)
    report = {"name": arguments.peer, "count": count, "seconds": seconds, "per_second": count / seconds}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
