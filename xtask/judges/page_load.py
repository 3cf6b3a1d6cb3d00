"""Sends requests to a running `selfmate serve`, as open pages do, and prints the response times.

    page_load.py URL RUN [--clients 50] [--seconds 30] [--rate 1]

Each client keeps a connection and requests the parts of a run's page in turn, `--rate` times per second
(0: as soon as the last response has arrived).
"""

import argparse
import asyncio
import json
import time
from urllib.parse import urlparse


async def client(number, options, host, port, paths, until, times):
    reader, writer = await asyncio.open_connection(host, port)
    # Spread over a second, so that clients do not start at the same moment.
    await asyncio.sleep(number / options.clients)
    index = number
    while time.monotonic() < until:
        path = paths[index % len(paths)]
        index += 1
        began = time.monotonic()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        if not head.startswith("http/1.1 200 "):
            raise SystemExit(f"{path}: {head.splitlines()[0]}")
        length = next(line for line in head.splitlines() if line.startswith("content-length:"))
        await reader.readexactly(int(length.split(":")[1]))
        took = time.monotonic() - began
        times.append(took)
        if options.rate > 0:
            await asyncio.sleep(max(0.0, 1 / options.rate - took))
    writer.close()


async def measure(options):
    address = urlparse(options.url)
    run = f"/api/runs/{options.run}"
    paths = ["/api/runs", run, f"{run}/curves", f"{run}/live", f"{run}/games/latest", "/"]
    times = []
    until = time.monotonic() + options.seconds
    clients = [
        client(number, options, address.hostname, address.port, paths, until, times)
        for number in range(options.clients)
    ]
    await asyncio.gather(*clients)
    times.sort()
    at = lambda share: round(1000 * times[min(len(times) - 1, int(share * len(times)))], 1)
    report = {"answers": len(times), "per_second": round(len(times) / options.seconds)}
    report |= {"p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "max_ms": at(1)}
    print(json.dumps(report))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("run")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=float, default=1)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
