"""A raw client of the DevTools protocol, which shows every message as it comes."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

__all__ = ["CdpClient", "cdp_client"]


class CdpClient:
    """One WebSocket: commands and their answers, and the events in between."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[dict[str, Any]] = []
        self._ids = itertools.count(1)

    async def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """Send a command; return its answer, with `result` or `error`."""
        id_ = await self.send(method, session, **params)
        return await self.answer(id_)

    async def send(self, method: str, session: str = "", **params: Any) -> int:
        """Send a command, and return its id."""
        id_ = next(self._ids)
        message: dict[str, Any] = {"id": id_, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        await self.socket.send(json.dumps(message))
        return id_

    async def answer(self, id_: int) -> dict[str, Any]:
        """The answer to a command."""
        with anyio.fail_after(20):
            while True:
                for at, message in enumerate(self.events):
                    if message.get("id") == id_:
                        return self.events.pop(at)
                self.events.append(json.loads(await self.socket.recv()))

    async def result(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """The result of a command that succeeds."""
        answer = await self.call(method, session, **params)
        assert "result" in answer, answer
        return answer["result"]

    async def refusal(self, method: str, session: str = "", **params: Any) -> str:
        """The error's text of a command that does not succeed."""
        answer = await self.call(method, session, **params)
        assert "error" in answer, f"{method} {params}: {answer}"
        return answer["error"]["message"]

    async def event(self, method: str) -> dict[str, Any]:
        """Wait for an event, also one that came before."""
        with anyio.fail_after(20):
            while True:
                for at, event in enumerate(self.events):
                    if event.get("method") == method:
                        return self.events.pop(at)
                self.events.append(json.loads(await self.socket.recv()))

    async def evaluate(self, expression: str, session: str = "", **params: Any) -> Any:
        """The value of an expression in the page."""
        result = await self.result(
            "Runtime.evaluate", session,
            expression=expression, returnByValue=True, awaitPromise=True, **params,
        )  # fmt: skip
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def attach(self, target_id: str) -> str:
        """Open a session on a target."""
        result = await self.result("Target.attachToTarget", targetId=target_id, flatten=True)
        return result["sessionId"]

    async def pages(self) -> list[dict[str, Any]]:
        """The pages that there are."""
        infos = (await self.result("Target.getTargets"))["targetInfos"]
        return [info for info in infos if info["type"] == "page"]

    async def closed(self) -> tuple[int, str]:
        """Wait until the server closes; the code and the reason."""
        with anyio.fail_after(20), contextlib.suppress(ConnectionClosed):
            async for raw in self.socket:
                self.events.append(json.loads(raw))
        return self.socket.close_code or 0, self.socket.close_reason or ""


@asynccontextmanager
async def cdp_client(url: str, **options: Any) -> AsyncIterator[CdpClient]:
    """Connect."""
    socket = await connect(url, max_size=None, **options)
    try:
        yield CdpClient(socket)
    finally:
        if socket.close_code is None:
            # what a test did not read must not hold the farewell up
            drain = asyncio.ensure_future(_drain(socket))
            await socket.close()
            await drain


async def _drain(socket: ClientConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        async for _raw in socket:
            pass
