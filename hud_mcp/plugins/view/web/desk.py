"""The page on which a person works on tasks: it shows one after the other, and takes actions.

It listens on loopback, and its address has a token. What the person asks for is given to the
agent that waits for it; the session and its record are the server's, as for any agent.
"""

import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route, Router

from hud_mcp.base.listening import LOOPBACK, base_url, listen, port_of
from hud_mcp.plugins.view.web.pages import desk_page
from hud_mcp.plugins.view.web.responses import asset_route, html_answer, json_answer, not_found
from hud_mcp.plugins.view.web.values import Json
from hud_mcp.server.web.auth import Auth, Hosts, Reader
from hud_mcp.server.web.listener import serving

__all__ = ["Desk", "Turn", "open_desk"]

_POLL_S = 20.0
"""How long a page's question for news may wait."""
_GOODBYE_S = 1.0
_BODY_BYTES = 1_048_576


class Turn:
    """One task on the desk.

    Args:
        desk: Whose it is.
        state: What the page shows of it.
    """

    def __init__(self, desk: "Desk", state: Json) -> None:
        self.state = state
        self.image: bytes | None = None
        self._desk = desk
        self._send, self._receive = anyio.create_memory_object_stream[Json](1)

    def show(self, text: str, image: bytes | None) -> None:
        """Show what there is to see now."""
        if image is not None:
            self.image = image
            self.state["picture"] = self._desk.version + 1
        self._tell(text=text, error=None, busy=False)

    def refuse(self, error: str) -> None:
        """Show why an action was not done."""
        self._tell(error=error, busy=False)

    def end(self, said: str) -> None:
        """Show that it is over."""
        self._tell(over=True, said=said, busy=False)

    async def next(self) -> Json:
        """Wait for what the person asks for: `action`, or `answer`."""
        return await self._receive.receive()

    def take(self, asked: Json) -> bool:
        """Take what the person asks for; not while something is done, nor after the end."""
        if self.state["busy"] or self.state["over"]:
            return False
        self._send.send_nowait(asked)
        self._tell(busy=True)
        return True

    def close(self) -> None:
        """Let nobody wait any more."""
        self._send.close()
        self._receive.close()
        self._tell(over=True, busy=False)

    def _tell(self, **news: Any) -> None:
        self.state |= news
        self._desk.change()


class Desk:
    """Tasks of one job, one at a time.

    Attributes:
        url: The page's address, with the token that opens it.
        version: Grows with each change of what is shown.
    """

    def __init__(self) -> None:
        self.url = ""
        self.version = 0
        self._count = 0
        self._turn: Turn | None = None
        self._alone = anyio.Lock()
        self._changed = anyio.Event()
        self._is_over = False
        self._told = anyio.Event()

    @asynccontextmanager
    async def turn(
        self, task: str, prompt: str, forms: Sequence[Json], *, pointer: Sequence[str] = ()
    ) -> AsyncGenerator[Turn]:
        """Have the desk to oneself, once the task before is over.

        Args:
            task: The task's id.
            prompt: What it asks.
            forms: The buttons and forms of its actions.
            pointer: What its picture takes: `click`, `drag`, `move`.
        """
        async with self._alone:
            self._count += 1
            state: Json = {
                "number": self._count, "task": task, "prompt": prompt, "forms": list(forms),
                "pointer": list(pointer), "text": "", "picture": None, "error": None, "busy": True,
                "over": False, "said": "",
            }  # fmt: skip
            turn = self._turn = Turn(self, state)
            self.change()
            try:
                yield turn
            finally:
                turn.close()

    def change(self) -> None:
        """Tell whoever waits for news."""
        self.version += 1
        self._changed.set()
        self._changed = anyio.Event()

    async def close(self) -> None:
        """Tell the page that no other task comes; it has a moment to ask."""
        self._is_over = True
        self.change()
        with anyio.move_on_after(_GOODBYE_S, shield=True):
            await self._told.wait()

    def routes(self) -> list[Any]:
        """The routes of the page."""
        return [
            Route("/", self._page),
            Route("/state", self._state),
            Route("/picture/{number:int}", self._picture),
            Route("/do", self._do, methods=["POST"]),
            Mount("/assets", app=Router([asset_route])),
        ]

    async def _page(self, _request: Request) -> Response:
        return html_answer(desk_page())

    async def _state(self, request: Request) -> Response:
        seen = request.query_params.get("seen", "")
        if seen == str(self.version) and not self._is_over:
            with anyio.move_on_after(_POLL_S):
                await self._changed.wait()
        shown = self._turn.state if self._turn is not None else None
        if self._is_over:
            self._told.set()
        return json_answer({"version": self.version, "turn": shown, "over": self._is_over})

    async def _picture(self, _request: Request) -> Response:
        image = self._turn.image if self._turn is not None else None
        if image is None:
            return not_found()
        kind = "image/png" if image.startswith(b"\x89PNG") else "image/jpeg"
        if image.startswith(b"RIFF"):
            kind = "image/webp"
        return Response(image, media_type=kind)

    async def _do(self, request: Request) -> Response:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > _BODY_BYTES:
                return PlainTextResponse("That is too large.", 413)
        try:
            asked: Any = orjson.loads(bytes(body))
        except orjson.JSONDecodeError:
            asked = None
        if not isinstance(asked, dict) or not ({"action", "answer"} & asked.keys()):  # pyright: ignore[reportUnknownMemberType]  # JSON
            return PlainTextResponse("Send an action or an answer.", 400)
        given = cast("Json", asked)
        turn = self._turn
        if turn is None or given.get("number") != turn.state["number"] or not turn.take(given):
            return PlainTextResponse("The page shows what is past; look again.", 409)
        return json_answer({"version": self.version})


@asynccontextmanager
async def open_desk() -> AsyncGenerator[Desk]:
    """Serve a desk on a loopback port while the block runs."""
    desk = Desk()
    token = secrets.token_urlsafe(24)
    listener = listen(LOOPBACK, 0)
    address = base_url(LOOPBACK, port_of(listener))
    desk.url = f"{address}/?token={token}"
    app = Auth(
        Router(desk.routes()), hosts=Hosts(LOOPBACK), reader=Reader(token), writes=True,
        opened_by="hud-mcp eval",
    )  # fmt: skip
    async with serving(app, listener):
        try:
            yield desk
        finally:
            await desk.close()
