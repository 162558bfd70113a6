"""A model's server on a loopback port, in both formats: it replies as a test tells it to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from waiting import until

__all__ = ["Asked", "JudgeServer", "judge_server", "says", "status"]

Script = Callable[["Asked"], Any]


@dataclass(frozen=True)
class Asked:
    """One request.

    Attributes:
        path: Of the address.
        headers: As they came.
        body: Of the request.
        number: How many came before it.
        at: When, by the loop's clock.
    """

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    number: int
    at: float

    @property
    def text(self) -> str:
        """What the judge is asked."""
        return str(self.body["messages"][-1]["content"])


@dataclass
class JudgeServer:
    """A running server.

    Attributes:
        script: What it replies with to a request: a text, or a whole response.
        asked: Every request.
        at_once: How many there were at once, at most.
    """

    url: str
    script: Script
    asked: list[Asked] = field(default_factory=list)
    at_once: int = 0
    busy: int = 0

    async def reply(self, request: Request) -> Response:
        """Answer one request, in the format of its path."""
        body = await request.json()
        now = asyncio.get_running_loop().time()
        asked = Asked(request.url.path, dict(request.headers), body, len(self.asked), now)
        self.asked.append(asked)
        self.busy += 1
        self.at_once = max(self.at_once, self.busy)
        try:
            given = self.script(asked)
            if asyncio.iscoroutine(given):
                given = await given
        finally:
            self.busy -= 1
        if isinstance(given, Response):
            return given
        if asked.path.endswith("/messages"):
            return JSONResponse(anthropic_reply(given, structured="tools" in body))
        message = {"role": "assistant", "content": given}
        return JSONResponse({"choices": [{"index": 0, "message": message}]})


def anthropic_reply(given: str, *, structured: bool) -> dict[str, Any]:
    """A message as Anthropic's interface has it: a call of the tool that was forced, or text."""
    block: dict[str, Any] = {"type": "text", "text": given}
    if structured:
        block = {"type": "tool_use", "id": "t1", "name": "verdict", "input": json.loads(given)}
    return {"type": "message", "role": "assistant", "content": [block], "stop_reason": "end_turn"}


def says(verdict: str, why: str = "because") -> str:
    """A structured reply."""
    return json.dumps({"criterion_status": verdict, "explanation": why})


def status(code: int, text: str = "", **headers: str) -> Response:
    """A refusal."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse({"error": {"message": text}}, code, headers=named)


@asynccontextmanager
async def judge_server(script: Script) -> AsyncIterator[JudgeServer]:
    """Serve until the end of the block."""
    running = JudgeServer("", script)
    paths = ("/v1/chat/completions", "/v1/messages")
    app = Starlette(routes=[Route(path, running.reply, methods=["POST"]) for path in paths])
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    running.url = f"http://127.0.0.1:{port}/v1"
    try:
        yield running
    finally:
        server.should_exit = True
        await serving
