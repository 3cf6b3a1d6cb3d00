"""Validates our OpenEnv endpoints and plays seeded games with openenv's client.

    openenv_env.py PATH_OF_SELFMATE
"""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from openenv.core.generic_client import GenericEnvClient

from server import serving


PIECES = "PNBRQKpnbrqk"


def tensor(fen):
    """The board of a FEN as [rank][file][piece], rank 1 and file a first."""
    ranks = []
    for text in reversed(fen.split()[0].split("/")):
        squares = []
        for char in text:
            squares += [" "] * int(char) if char.isdigit() else [char]
        ranks.append([[int(piece == square) for piece in PIECES] for square in squares])
    return ranks


def fault_of(seen, fen, side):
    """What is wrong with the fields that observations and states share; None if nothing is."""
    if seen["board"] != tensor(fen):
        return f"{fen}: board {seen['board']}"
    if side != {"w": "white", "b": "black"}[fen.split()[1]]:
        return f"{fen}: side to move {side}"
    ends = (seen["done"], seen["terminated"], seen["truncated"], seen["result"])
    if seen["terminated"]:
        is_right = ends in [(True, True, False, result) for result in ("1-0", "0-1", "1/2-1/2")]
    else:
        is_right = ends in [(False, False, False, None), (True, False, True, "*")]
    return None if is_right else f"{fen}: done, terminated, truncated, result: {ends}"


def check_board(base):
    """Plays a short game that is truncated; the board can be left out."""
    with GenericEnvClient(base_url=base).sync() as client:
        seen = client.reset(max_plies=2).observation
        for _ in range(2):
            error = fault_of(seen, seen["fen"], seen["side_to_move"])
            if error:
                return error
            seen = client.step({"move": seen["legal_moves"][0]}).observation
        if not seen["truncated"]:
            return f"not truncated after two plies: {seen}"
        if "board" in client.reset(include_board=False).observation or "board" in client.state():
            return "include_board=False: there is a board"
    return None


def play(base, seed, opponent):
    """Plays the first legal move until the game ends; returns positions, rewards and the last state."""
    positions, rewards = [], []
    with GenericEnvClient(base_url=base).sync() as client:
        result = client.reset(seed=seed, episode_id=f"ep-{seed}", opponent=opponent, max_plies=300)
        while not result.done:
            result = client.step({"move": result.observation["legal_moves"][0]})
            seen = result.observation
            error = fault_of(seen, seen["fen"], seen["side_to_move"])
            if error:
                raise SystemExit(f"observation: {error}")
            positions.append(result.observation["fen"])
            rewards.append(result.reward)
        state = client.state()
    return positions, rewards, state


def judge(base):
    command = [sys.executable, "-m", "openenv.cli", "validate", "--url", base, "--json"]
    validated = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if validated.returncode != 0:
        print(validated.stdout)
        return f"openenv validate --url {base}: ended with {validated.returncode}"
    summary = json.loads(validated.stdout)["summary"]
    print(f"openenv validate: {summary['passed_count']} criteria passed")
    error = check_board(base)
    if error:
        return error
    with ThreadPoolExecutor(8) as pool:
        games = list(pool.map(lambda seed: play(base, seed, "random"), [7] * 4 + [8] * 4))
    for seed, group in ((7, games[:4]), (8, games[4:])):
        for positions, rewards, state in group:
            if positions != group[0][0]:
                return f"seed {seed}: the same seed gave another game"
            if state["episode_id"] != f"ep-{seed}" or state["step_count"] != len(positions):
                return f"seed {seed}: state {state['episode_id']}, {state['step_count']} steps: expected {len(positions)}"
            error = fault_of(state, state["fen"], state["current_player"])
            if error or not state["done"]:
                return f"seed {seed}: state: {error or 'not done'}"
            if any(reward != 0 for reward in rewards[:-1]) or rewards[-1] not in (-1, 0, 1):
                return f"seed {seed}: rewards {rewards}"
    if games[0][0] == games[4][0]:
        return "seeds 7 and 8 gave the same game"
    print(f"{len(games)} games in parallel, {sum(len(game[0]) for game in games)} steps")
    return None


def main():
    with tempfile.TemporaryDirectory() as runs:
        with serving(sys.argv[1], runs) as base:
            error = judge(f"{base}/openenv")
    if error:
        sys.exit(error)


if __name__ == "__main__":
    main()
