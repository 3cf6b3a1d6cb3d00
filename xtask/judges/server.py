"""`selfmate serve` for a judge: started on a free port, stopped whatever happens."""

import contextlib
import subprocess


@contextlib.contextmanager
def serving(binary, runs):
    """Yields the address of a server of these runs."""
    command = [binary, "--runs", runs, "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().split(" at ")[-1].strip()
    finally:
        server.terminate()
        server.wait()
