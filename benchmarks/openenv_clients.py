"""OpenEnv's client and a bare WebSocket, for the benchmark; run with OpenEnv's interpreter.

Each line on standard input is an object with `url`, `game`, `kind`, `clients` and `seconds`.
Each line on standard output is how many episodes or steps were done, and in how many seconds.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Protocol

from openenv import GenericEnvClient
from openenv_game import WORDS
from websockets.asyncio.client import ClientConnection, connect

Row = dict[str, Any]


class Client(Protocol):
    """What either client does."""

    async def reset(self, **given: Any) -> object:
        """Begin an episode."""

    async def step(self, action: Row) -> tuple[Row, float | None, bool]:
        """Take a step: the observation, the reward, whether it is done."""

    async def close(self) -> None:
        """Leave."""


class Theirs:
    """OpenEnv's client."""

    def __init__(self, url: str) -> None:
        self._client = GenericEnvClient(base_url=url)

    async def connect(self) -> "Theirs":
        """Connect."""
        await self._client.connect()
        return self

    async def reset(self, **given: Any) -> object:
        """Begin an episode."""
        return await self._client.reset(**given)

    async def step(self, action: Row) -> tuple[Row, float | None, bool]:
        """Take a step."""
        seen = await self._client.step(action)
        return seen.observation, seen.reward, seen.done

    async def close(self) -> None:
        """Leave."""
        await self._client.close()


class Bare:
    """A WebSocket that JSON goes over."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def _ask(self, kind: str, data: Mapping[str, Any]) -> Row:
        await self._socket.send(json.dumps({"type": kind, "data": data}))
        reply: Row = json.loads(await self._socket.recv())
        if reply["type"] != "observation":
            raise RuntimeError(reply)
        return reply["data"]

    async def reset(self, **given: Any) -> object:
        """Begin an episode."""
        return await self._ask("reset", given)

    async def step(self, action: Row) -> tuple[Row, float | None, bool]:
        """Take a step."""
        seen = await self._ask("step", action)
        return seen["observation"], seen["reward"], seen["done"]

    async def close(self) -> None:
        """Leave."""
        await self._socket.send(json.dumps({"type": "close"}))
        await self._socket.close()


async def opened(kind: str, url: str) -> Client:
    """One client, connected."""
    if kind == "bare":
        return Bare(await connect(url.replace("http", "ws", 1) + "/ws", ping_interval=None))
    return await Theirs(url).connect()


async def episodes(client: Client, until: float) -> int:
    """Ask and answer, over and over."""
    done = 0
    while time.perf_counter() < until:
        word = WORDS[done % len(WORDS)]
        await client.reset(arguments={"word": word})
        _, reward, ended = await client.step({"answer": str(word.count("r"))})
        if reward != 1.0 or not ended:
            raise RuntimeError(f"{word}: reward {reward}, done {ended}")
        done += 1
    return done


async def steps(client: Client, until: float) -> int:
    """Push, over and over, in one episode that has begun."""
    done = 0
    while time.perf_counter() < until:
        seen, reward, _ = await client.step({"action": done % 2})
        if reward is None or len(seen["text"].split()) != 4:
            raise RuntimeError(f"reward {reward}, {seen}")
        done += 1
    return done


async def measured(asked: Mapping[str, Any]) -> dict[str, float]:
    """Do one of the games with some clients at once for a while."""
    clients = [await opened(asked["kind"], asked["url"]) for _ in range(asked["clients"])]
    try:
        play = episodes
        if asked["game"] == "pole":
            play = steps
            await asyncio.gather(*(client.reset() for client in clients))
        began = time.perf_counter()
        counts = await asyncio.gather(*(play(c, began + asked["seconds"]) for c in clients))
        return {"done": sum(counts), "took_s": time.perf_counter() - began}
    finally:
        await asyncio.gather(*(client.close() for client in clients))


def main() -> None:
    """Measure what each line asks for."""
    print(json.dumps({"openenv": version("openenv")}), flush=True)
    for line in sys.stdin:
        print(json.dumps(asyncio.run(measured(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
