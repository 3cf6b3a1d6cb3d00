"""Starts `selfmate serve` on a free port for a judge, and always stops it."""

import contextlib
import subprocess


@contextlib.contextmanager
def serving(binary, runs):
    """Yields the address of the server."""
    command = [binary, "--runs", runs, "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().split(" at ")[-1].strip()
    finally:
        server.terminate()
        server.wait()
