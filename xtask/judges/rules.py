"""Compares our rules of chess with python-chess.

Reads a transcript from the example `transcript` of `selfmate-chess` (one JSON object per line;
xtask/src/judge_rules.rs describes it), replays every game with python-chess and compares each field of
each position. Only the start position and the moves are taken from the transcript. Exits with 0 when at
least one position was compared and none differed.
"""

import argparse
import collections
import json
import multiprocessing
import sys
import threading

import chess
import chess.polyglot

SHOWN_MISMATCHES = 10
# Games that are read but not finished; limits the memory for a long transcript.
GAMES_IN_FLIGHT = 64


def theirs(board, seen):
    """The fields of a position according to python-chess, with the names of the transcript."""
    return {
        "fen": board.fen(en_passant="legal"),
        "check": board.is_check(),
        "checkmate": board.is_checkmate(),
        "stalemate": board.is_stalemate(),
        "insufficient": board.is_insufficient_material(),
        "repetitions": seen,
        "threefold": board.is_repetition(3),
        "fivefold": board.is_repetition(5),
        "fifty": board.is_fifty_moves(),
        "seventyfive": board.is_seventyfive_moves(),
        "polyglot": f"{chess.polyglot.zobrist_hash(board):016x}",
    }


def compare_moves(board, ours):
    """Yields (field, ours, theirs) for each difference in the legal moves and their SAN."""
    names = {board.uci(move): move for move in board.legal_moves}
    ours_names = [uci for uci, _ in ours]
    if len(ours_names) != len(names) or set(ours_names) != names.keys():
        missing = sorted(names.keys() - set(ours_names))
        extra = sorted((collections.Counter(ours_names) - collections.Counter(names.keys())).elements())
        yield "legal", f"extra or twice: {extra}", f"missing in ours: {missing}"
    for uci, san in ours:
        move = names.get(uci)
        if move is None:
            continue
        if (expected := board.san(move)) != san:
            yield "san", f"{san} for {uci}", expected
        try:
            parsed = board.parse_san(san)
        except ValueError as error:
            yield "san read back", san, str(error)
        else:
            if parsed != move:
                yield "san read back", f"{san} for {uci}", board.uci(parsed)


def cover_position(coverage, board, verdict):
    for name in ("check", "checkmate", "stalemate", "insufficient", "threefold", "fivefold", "fifty", "seventyfive"):
        coverage[name] += verdict[name]
    coverage["en passant possible"] += board.has_legal_en_passant()


def cover_move(coverage, board, move):
    coverage["castling"] += board.is_castling(move)
    coverage["en passant"] += board.is_en_passant(move)
    coverage["capture"] += board.is_capture(move)
    if move.promotion:
        coverage["promotion to " + chess.piece_name(move.promotion)] += 1


def judge_game(lines):
    """Replays one game (its header and its positions); returns (plies, mismatches, coverage)."""
    mismatches = []
    coverage = collections.Counter()
    plies = 0
    game = None

    def differ(field, ours, expected):
        mismatches.append((game, plies, field, ours, expected))

    try:
        header = json.loads(lines[0])
        game = header["game"]
        board = chess.Board(header["fen"], chess960=header["chess960"])
    except (KeyError, ValueError) as error:
        differ("header", lines[0].strip(), repr(error))
        return plies, mismatches, coverage
    coverage["chess960 game" if board.chess960 else "standard game"] += 1

    seen = collections.Counter()
    playing = True
    for line in lines[1:]:
        try:
            record = json.loads(line)
        except ValueError as error:
            differ("line", line.strip(), str(error))
            break
        if not playing:
            differ("move", "a position after the end of the game", "nothing")
            break
        # Side to move, castling rights and legal en passant distinguish positions; move counters do not.
        position = board.fen(en_passant="legal").rsplit(" ", 2)[0]
        seen[position] += 1
        verdict = theirs(board, seen[position])
        for field, expected in verdict.items():
            ours = record.get(field)
            if type(ours) is not type(expected) or ours != expected:
                differ(field, ours, expected)
        for mismatch in compare_moves(board, record.get("legal", [])):
            differ(*mismatch)
        cover_position(coverage, board, verdict)

        if "move" not in record:
            differ("move", "absent", "a move or null")
            break
        if record["move"] is None:
            playing = False
        else:
            try:
                move = board.parse_uci(record["move"])
            except ValueError as error:
                differ("move", record["move"], str(error))
                break
            cover_move(coverage, board, move)
            board.push(move)
        plies += 1
    else:
        if playing:
            differ("move", "the game's last line has a move", "null")
    return plies, mismatches, coverage


def games(stream):
    """Splits the transcript into games: lists of lines that start with the header."""
    lines = []
    for line in stream:
        # Only headers have this key, and no move or FEN contains it.
        if '"game"' in line and lines:
            yield lines
            lines = []
        lines.append(line)
    if lines:
        yield lines


def judge(stream, processes):
    """Judges all games; returns the sums of (plies, mismatches, coverage) in the transcript's order."""
    plies = 0
    mismatches = []
    coverage = collections.Counter()
    room = threading.Semaphore(GAMES_IN_FLIGHT)

    def bounded():
        for game in games(stream):
            room.acquire()
            yield game

    with multiprocessing.Pool(processes) as pool:
        for game_plies, game_mismatches, game_coverage in pool.imap(judge_game, bounded()):
            room.release()
            plies += game_plies
            mismatches += game_mismatches
            coverage += game_coverage
    return plies, mismatches, coverage


def main():
    parser = argparse.ArgumentParser(description="judge a transcript of games on standard input")
    parser.add_argument("--processes", type=int, default=2)
    plies, mismatches, coverage = judge(sys.stdin, parser.parse_args().processes)

    for game, ply, field, ours, expected in mismatches[:SHOWN_MISMATCHES]:
        print(f"game {game}, ply {ply}, {field}: ours {ours!r}, python-chess {expected!r}")
    print("covered: " + ", ".join(f"{name} {count}" for name, count in sorted(coverage.items())))
    print(f"{plies} plies compared, {len(mismatches)} mismatches")
    return 0 if plies > 0 and not mismatches else 1


if __name__ == "__main__":
    sys.exit(main())
