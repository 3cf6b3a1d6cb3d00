"""Tests the API of `selfmate serve` against its OpenAPI description with schemathesis.

    api.py PATH_OF_SELFMATE [SECONDS]
"""

import subprocess
import sys
import tempfile

from server import serving


def main():
    binary = sys.argv[1]
    seconds = sys.argv[2] if len(sys.argv) > 2 else "60"
    with tempfile.TemporaryDirectory() as runs:
        # schemathesis.toml uses the name of the first run.
        for learner, games in (("krk", "8"), ("zero", "32")):
            train = [binary, "--runs", runs, "train", learner, "--preset", "tiny", "--games", games]
            subprocess.run(train, check=True, stderr=subprocess.DEVNULL)
        with serving(binary, runs) as base:
            command = [sys.executable, "-m", "schemathesis.cli", "run", f"{base}/openapi.json"]
            # One worker: CPython 3.11 raises "AST constructor recursion depth mismatch" when two
            # threads parse at once, and schemathesis then reports it as an error of the API.
            command += ["--seed", "1", "--workers", "1", "--max-time", seconds]
            judged = subprocess.run(command)
    sys.exit(judged.returncode)


if __name__ == "__main__":
    main()
