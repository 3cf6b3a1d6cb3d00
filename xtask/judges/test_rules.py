"""Tests that rules.py finds errors: each test corrupts one field of a correct transcript.

The transcripts come from python-chess itself, in the format of our example `transcript`.
"""

import collections
import json
import random
import unittest

import chess
import chess.polyglot

import rules


def transcript(seed, fen=chess.STARTING_FEN, chess960=False, plies=60):
    """A random game as the list of its records, header first."""
    rng = random.Random(seed)
    board = chess.Board(fen, chess960=chess960)
    records = [{"game": seed, "fen": board.fen(en_passant="legal"), "chess960": chess960}]
    seen = collections.Counter()
    for ply in range(plies):
        position = board.fen(en_passant="legal").rsplit(" ", 2)[0]
        seen[position] += 1
        moves = list(board.legal_moves)
        move = rng.choice(moves) if moves and ply + 1 < plies else None
        record = rules.theirs(board, seen[position])
        record["legal"] = [[board.uci(m), board.san(m)] for m in moves]
        record["move"] = board.uci(move) if move else None
        records.append(record)
        if move is None:
            break
        board.push(move)
    return records


def judge(records):
    return rules.judge_game([json.dumps(record) for record in records])


def fields(records):
    return {field for _, _, field, _, _ in judge(records)[1]}


class RulesJudge(unittest.TestCase):
    def test_a_correct_transcript_passes(self):
        for seed in range(5):
            records = transcript(seed)
            self.assertEqual(judge(records)[:2], (len(records) - 1, []))

    def test_a_correct_chess960_transcript_passes(self):
        for seed in range(5):
            fen = chess.Board.from_chess960_pos(seed * 101).fen()
            self.assertEqual(fields(transcript(seed, fen, chess960=True)), set())

    def test_each_corrupted_field_is_found(self):
        corruptions = {
            "fen": lambda fen: fen[:-1] + "x",
            "repetitions": lambda count: count + 1,
            "polyglot": lambda key: f"{int(key, 16) ^ 1:016x}",
        }
        for field in rules.theirs(chess.Board(), 1):
            records = transcript(1)
            corrupt = corruptions.get(field, lambda flag: not flag)
            records[7][field] = corrupt(records[7][field])
            self.assertEqual(fields(records), {field}, field)
            del records[7][field]
            self.assertEqual(fields(records), {field}, f"{field} absent")

    def test_wrong_lists_of_moves_are_found(self):
        missing = transcript(1)
        missing[3]["legal"].pop()
        self.assertEqual(fields(missing), {"legal"})

        extra = transcript(1)
        extra[3]["legal"].append(["a1a8", "Rxa8"])
        self.assertEqual(fields(extra), {"legal"})

        twice = transcript(1)
        twice[3]["legal"].append(twice[3]["legal"][0])
        self.assertEqual(fields(twice), {"legal"})

    def test_wrong_san_is_found(self):
        records = transcript(1)
        uci, san = records[3]["legal"][0]
        records[3]["legal"][0] = [uci, san + "+"]
        self.assertIn("san", fields(records))

        records[3]["legal"][0] = [uci, records[3]["legal"][1][1]]
        self.assertEqual(fields(records), {"san", "san read back"})

    def test_an_illegal_move_and_a_truncated_game_are_found(self):
        records = transcript(1)
        records[5]["move"] = "a1h8"
        self.assertEqual(fields(records), {"move"})

        self.assertEqual(fields(transcript(1)[:-1]), {"move"})

    def test_broken_lines_are_found(self):
        lines = [json.dumps(record) for record in transcript(1)]
        torn = lines[:9] + [lines[9][:20]]
        self.assertEqual([field for _, _, field, _, _ in rules.judge_game(torn)[1]], ["line"])
        self.assertEqual([field for _, _, field, _, _ in rules.judge_game(lines[1:])[1]], ["header"])

    def test_a_stream_is_split_into_games(self):
        stream = [json.dumps(record) for seed in range(3) for record in transcript(seed, plies=5)]
        self.assertEqual([len(game) for game in rules.games(stream)], [6, 6, 6])


if __name__ == "__main__":
    unittest.main()
