"""Plays games between selfmate's engines through python-chess and reports errors.

python-chess checks every move, and this program keeps the clocks. A crash, an illegal move or a loss
on time is an error; the last line counts them.
"""

import argparse
import sys
import time

import chess
import chess.engine

PLAYERS = ["material", "alphabeta:threads=2", "rollout", "alphabeta"]
OPPONENT = "alphabeta"


def play(white, black, base, increment):
    """Plays one game; returns its result and the errors that ended it."""
    board = chess.Board()
    engines = {chess.WHITE: white, chess.BLACK: black}
    clocks = {chess.WHITE: base, chess.BLACK: base}
    game = object()  # tells the engines that this is a new game
    while not board.is_game_over(claim_draw=True) and board.ply() < 400:
        side = board.turn
        limit = chess.engine.Limit(
            white_clock=clocks[chess.WHITE],
            black_clock=clocks[chess.BLACK],
            white_inc=increment,
            black_inc=increment,
        )
        start = time.perf_counter()
        try:
            move = engines[side].play(board, limit, game=game).move
        except chess.engine.EngineError as error:  # an illegal move, or a line that is not UCI
            return "*", [f"{chess.COLOR_NAMES[side]}: {error}"]
        except chess.engine.EngineTerminatedError as error:
            return "*", [f"{chess.COLOR_NAMES[side]} ended: {error}"]
        clocks[side] -= time.perf_counter() - start
        if clocks[side] < 0:
            return "*", [f"{chess.COLOR_NAMES[side]} lost on time at ply {board.ply()}"]
        clocks[side] += increment
        if move is None or move not in board.legal_moves:
            return "*", [f"{chess.COLOR_NAMES[side]} played {move} in {board.fen()}"]
        board.push(move)
    return board.result(claim_draw=True), []


def main():
    parser = argparse.ArgumentParser(description="play games against the clock")
    parser.add_argument("selfmate", help="the binary")
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--base", type=float, default=1.0, help="seconds")
    parser.add_argument("--increment", type=float, default=0.1, help="seconds")
    arguments = parser.parse_args()
    errors = []
    for number in range(arguments.games):
        names = [PLAYERS[(number // 2) % len(PLAYERS)], OPPONENT]
        if number % 2:
            names.reverse()
        white, black = (
            chess.engine.SimpleEngine.popen_uci([arguments.selfmate, "uci", name]) for name in names
        )
        try:
            result, found = play(white, black, arguments.base, arguments.increment)
        finally:
            white.close()
            black.close()
        print(f"game {number + 1}: {names[0]} - {names[1]} {result} {'; '.join(found)}", flush=True)
        errors += found
    print(f"{arguments.games} games, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
