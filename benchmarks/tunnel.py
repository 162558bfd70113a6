"""Measure streams through the channel's port beside direct connections to the same service.

The service, the channel and this client are three processes on loopback. Each round measures
both ways one after the other, so that what drifts on the machine drifts for both; a figure is
the median of its rounds, and the ratios hold where the figures do not.

    python benchmarks/tunnel.py [--rounds 5] [--mb 256] [--json]
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
PORT = b"HUD_SERVE_PORT="
CHUNK = 1 << 20
PINGS = 2000
STREAMS = 4
HEAD = 9

SERVICE = f"""import socket, threading

def exactly(peer, count):
    data = b""
    while len(data) < count:
        data += peer.recv(count - len(data))
    return data

def serve(peer):
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = exactly(peer, {HEAD})
    count, block = int.from_bytes(head[1:]), bytes({CHUNK})
    if head[:1] == b"d":
        for _ in range(count // len(block)):
            peer.sendall(block)
    elif head[:1] == b"u":
        into = bytearray(len(block))
        while count > 0:
            count -= peer.recv_into(into)
        peer.sendall(b"!")
    else:
        while data := peer.recv(4096):
            peer.sendall(data)
    peer.close()

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

ENVIRONMENT = """from hud_mcp import Capability, Environment

env = Environment("tunnels")
env.add_capability(Capability(name="service", protocol="mcp", url="tcp://127.0.0.1:{port}"))
"""

Connect = Callable[[], socket.socket]


@contextmanager
def process(*command: str, after: bytes = b"") -> Iterator[int]:
    """A process, and the port that it prints."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HUD_")}
    running = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**kept, "PYTHONPATH": str(ROOT)},
    )
    try:
        if running.stdout is None:
            raise RuntimeError("the process has no standard output")
        line = running.stdout.readline()
        if not line.startswith(after):
            raise RuntimeError(f"the process said {line!r}: {' '.join(command)}")
        yield int(line.removeprefix(after))
    finally:
        running.kill()
        running.wait()


def direct(port: int) -> socket.socket:
    """A connection to the service itself."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def tunnelled(port: int) -> socket.socket:
    """A stream to the service through the channel's port."""
    connection = direct(port)
    params = {"capability": "service"}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tunnel.open", "params": params}
    connection.sendall(json.dumps(frame).encode() + b"\n")
    reply = b""
    while not reply.endswith(b"\n"):
        reply += connection.recv(1)
    if "result" not in json.loads(reply):
        raise RuntimeError(f"tunnel.open: {reply.decode()}")
    return connection


def opened_ms(connect: Connect) -> float:
    """How long it takes until a byte has gone there and back on a new stream."""
    began = time.perf_counter()
    with connect() as stream:
        stream.sendall(b"e" + bytes(HEAD - 1) + b"?")
        stream.recv(1)
    return 1000 * (time.perf_counter() - began)


def round_trip_us(connect: Connect) -> float:
    """The median of many round trips of one byte."""
    took: list[float] = []
    with connect() as stream:
        stream.sendall(b"e" + bytes(HEAD - 1))
        for _ in range(PINGS):
            began = time.perf_counter()
            stream.sendall(b"?")
            stream.recv(1)
            took.append(time.perf_counter() - began)
    return 1e6 * median(took)


def down_mb_s(connect: Connect, size: int) -> float:
    """Megabytes per second from the service."""
    began, into = time.perf_counter(), bytearray(CHUNK)
    with connect() as stream:
        stream.sendall(b"d" + size.to_bytes(HEAD - 1))
        left = size
        while left > 0:
            left -= stream.recv_into(into)
    return size / 1e6 / (time.perf_counter() - began)


def up_mb_s(connect: Connect, size: int) -> float:
    """Megabytes per second to the service."""
    began, block = time.perf_counter(), bytes(CHUNK)
    with connect() as stream:
        stream.sendall(b"u" + size.to_bytes(HEAD - 1))
        for _ in range(size // CHUNK):
            stream.sendall(block)
        stream.recv(1)
    return size / 1e6 / (time.perf_counter() - began)


def together_mb_s(connect: Connect, size: int) -> float:
    """Megabytes per second from the service over several streams at once."""
    share = size // STREAMS // CHUNK * CHUNK
    threads = [threading.Thread(target=down_mb_s, args=(connect, share)) for _ in range(STREAMS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return STREAMS * share / 1e6 / (time.perf_counter() - began)


def measure(connect: Connect, size: int) -> dict[str, float]:
    """One round of one of the ways."""
    return {
        "ms to open, with a round trip": median(opened_ms(connect) for _ in range(20)),
        "µs a round trip": round_trip_us(connect),
        "MB/s from the service": down_mb_s(connect, size),
        "MB/s to the service": up_mb_s(connect, size),
        f"MB/s over {STREAMS} streams": together_mb_s(connect, size),
    }


def main() -> None:
    """Measure both, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mb", type=int, default=256, help="how much each stream carries")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    size = options.mb * CHUNK
    rounds: dict[str, list[dict[str, float]]] = {"direct": [], "tunnel": []}
    with tempfile.TemporaryDirectory() as folder, process("-c", SERVICE) as service:
        source = Path(folder) / "env.py"
        source.write_text(ENVIRONMENT.format(port=service))
        command = ("-m", "hud_mcp.channel", str(source), "--store", f"{folder}/store.sqlite3")
        with process(*command, after=PORT) as channel:
            ways: dict[str, Connect] = {
                "direct": lambda: direct(service),
                "tunnel": lambda: tunnelled(channel),
            }
            for _ in range(options.rounds):
                for name, connect in ways.items():
                    rounds[name].append(measure(connect, size))
    figures = {
        name: {key: median(r[key] for r in found) for key in found[0]}
        for name, found in rounds.items()
    }
    if options.json:
        print(json.dumps({"rounds": rounds, **figures}))
        return
    heads = f"{'median of ' + str(options.rounds) + ' rounds':34}"
    print(f"{heads}{'direct':>10}{'tunnel':>10}{'ratio':>9}")
    for key, found in figures["direct"].items():
        theirs = figures["tunnel"][key]
        print(f"{key:34}{found:10.2f}{theirs:10.2f}{theirs / found:9.2f}")


if __name__ == "__main__":
    main()
