"""The human agent: a page on loopback shows the task, and takes a person's actions and answer."""

import re
import secrets
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route, Router

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.kind import AgentKind, AgentOptions, Workplace
from hud_mcp.base.listening import LOOPBACK, base_url, listen, port_of
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import ActionFailed
from hud_mcp.plugins.view.web.pages import (
    Json,
    asset_route,
    desk_page,
    html_answer,
    json_answer,
    not_found,
)
from hud_mcp.server.web.auth import Auth, Hosts, Reader
from hud_mcp.server.web.listener import serving
from hud_mcp.values.action import ACTION_CLASSES
from hud_mcp.values.refs import named_refs

_MOST_BUTTONS = 18
_MOST_REFS = 200
_NAMED = re.compile(r"(-?\d+) ([^;]+?)(?=;|\.?$)")
_OWN_FIELDS = frozenset({"type", "reasoning", "logs", "point", "selector", "hold_keys", "pattern"})
_ON_PICTURE = frozenset({"click", "move", "drag"})
_LEFT_OUT = frozenset({"response", "custom", "keydown", "keyup", "position", "screenshot"})
_SCROLL_PX = 400


def action_forms(environment: Environment | None) -> list[Json]:
    """Return the forms of an environment's actions; a form without fields is a button."""
    if environment is None:
        return []
    world = environment.world
    found: list[Json] = []
    for kind in sorted(world.actions - _LEFT_OUT - _ON_PICTURE):
        if kind in ACTION_CLASSES:
            found += _typed(kind)
    for name, schema in sorted(world.custom_actions.items()):
        if name == "step" and world.spaces is not None:
            found += _steps(schema["properties"]["action"])
        else:
            found.append(_form(_title(name), {"type": "custom", "action": name}, schema, "args"))
    for name, tool in sorted(environment.tools.items()):
        found.append(_form(_title(name), {"tool": name}, tool.arguments.schema, "args"))
    return found


def _typed(kind: str) -> list[Json]:
    if kind == "scroll":
        return [
            _button(f"Scroll {word}", {"type": "scroll", "scroll": {"x": 0, "y": distance}})
            for word, distance in (("down", _SCROLL_PX), ("up", -_SCROLL_PX))
        ]
    if kind == "wait":
        return [_button("Wait a second", {"type": "wait", "time": 1000})]
    schema = ACTION_CLASSES[kind].model_json_schema()
    parts = {name: part for name, part in schema["properties"].items() if name not in _OWN_FIELDS}
    return [_form(_title(kind), {"type": kind}, {**schema, "properties": parts}, None)]


def _steps(schema: Mapping[str, Any]) -> list[Json]:
    """Return a button for each action of a small space; else a field for its value."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(low, int) and isinstance(high, int) and high - low < _MOST_BUTTONS:
        names = dict(_NAMED.findall(str(schema.get("description", "")).partition(":")[2]))
        return [
            _button(
                _title(names.get(str(number), f"action {number}")),
                {"type": "custom", "action": "step", "args": {"action": number}},
            )
            for number in range(low, high + 1)
        ]
    whole = {"properties": {"action": schema}, "required": ["action"]}
    return [_form("Step", {"type": "custom", "action": "step"}, whole, "args")]


def _button(title: str, action: Json) -> Json:
    return {"title": title, "action": action, "into": None, "fields": []}


def _form(title: str, action: Json, schema: Mapping[str, Any], into: str | None) -> Json:
    required = set(schema.get("required", ()))
    fields = [
        _field(name, part, required=name in required)
        for name, part in dict(schema.get("properties", {})).items()
    ]
    return {"title": title, "action": action, "into": into, "fields": fields}


def _field(name: str, schema: Mapping[str, Any], *, required: bool) -> Json:
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    inner: Mapping[str, Any] = options[0] if len(options) == 1 else schema
    kind = {"string": "text", "integer": "number", "number": "number", "boolean": "flag"}.get(
        str(inner.get("type")), "json"
    )
    if "enum" in inner:
        kind = "choice"
    if inner.get("type") == "array" and dict(inner.get("items", {})).get("type") == "string":
        kind = "words"
    return {
        "name": name,
        "label": _title(name),
        "kind": kind,
        "required": required,
        "options": list(inner.get("enum", ())),
        "help": str(schema.get("description", "")),
    }


def _title(name: str) -> str:
    return name.replace("_", " ").strip().capitalize()


_POLL_S = 20.0
_GOODBYE_S = 1.0
_BODY_BYTES = 1_048_576


class Turn:
    """One task on the desk, with the state that the page shows."""

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
        refs = [(each.ref, each.name) for each in named_refs(text)][:_MOST_REFS]
        self._tell(text=text, refs=refs, error=None, busy=False)

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
        """Take a request of the person; False while another is done, and after the end."""
        if self.state["busy"] or self.state["over"]:
            return False
        self._send.send_nowait(asked)
        self._tell(busy=True)
        return True

    def close(self) -> None:
        """End all waiting."""
        self._send.close()
        self._receive.close()
        self._tell(over=True, busy=False)

    def _tell(self, **news: Any) -> None:
        self.state |= news
        self._desk.change()


class Desk:
    """Tasks of one job, one at a time. `url` has the token that opens the page."""

    def __init__(self) -> None:
        self.url = ""
        self.version = 0
        self._count = 0
        self._turn: Turn | None = None
        self._alone = anyio.Lock()
        self._changed = anyio.Event()
        self._is_over = False
        self._news = anyio.Event()

    @asynccontextmanager
    async def turn(
        self, task: str, prompt: str, forms: Sequence[Json], *, pointer: Sequence[str] = ()
    ) -> AsyncGenerator[Turn]:
        """Wait for the end of the task before, and take the desk.

        `pointer` lists the actions that the picture accepts: `click`, `drag`, `move`.
        """
        async with self._alone:
            self._count += 1
            state: Json = {
                "number": self._count, "task": task, "prompt": prompt, "forms": list(forms),
                "pointer": list(pointer), "text": "", "refs": [], "picture": None, "error": None,
                "busy": True, "over": False, "said": "",
            }  # fmt: skip
            turn = self._turn = Turn(self, state)
            self.change()
            try:
                yield turn
            finally:
                turn.close()

    def change(self) -> None:
        """Wake those that wait for news."""
        self.version += 1
        self._changed.set()
        self._changed = anyio.Event()

    async def close(self) -> None:
        """Tell the page that no other task comes; it has a moment to ask."""
        self._is_over = True
        self.change()
        with anyio.move_on_after(_GOODBYE_S, shield=True):
            await self._news.wait()

    def routes(self) -> list[Any]:
        """Return the routes of the page."""
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
            self._news.set()
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


_BY_PICTURE = ("click", "drag", "move")


class HumanAgent:
    """An agent whose work a person does, one task after the other."""

    name = "human"
    is_remote = False

    def __init__(self, environments: Iterable[Environment], desk: Desk) -> None:
        self._environments = {e.name: e for e in environments}
        self._desk = desk

    async def solve(self, agent: Agent, task: Task) -> None:
        """Show the task, do what the person asks for, and submit the answer."""
        environment = self._environments.get(task.env)
        takes = frozenset[str]() if environment is None else environment.world.actions
        pointer = [action for action in _BY_PICTURE if action in takes]
        forms = action_forms(environment)
        async with self._desk.turn(task.id, agent.prompt, forms, pointer=pointer) as turn:
            view = await agent.step()
            turn.show(view.text, view.image)
            while True:
                asked = await turn.next()
                if "answer" in asked:
                    turn.end(await agent.respond(str(asked["answer"])))
                    return
                try:
                    await self._do(agent, turn, asked["action"])
                except ActionFailed as exc:
                    turn.refuse(str(exc))

    async def _do(self, agent: Agent, turn: Any, action: dict[str, Any] | None) -> None:
        if action is not None and "tool" in action:
            said = await agent.tool(str(action["tool"]), **action.get("args", {}))
            turn.show(said, None)
            return
        view = await agent.step(*([] if action is None else [action]))
        turn.show(view.text, view.image)


@asynccontextmanager
async def _open(_options: AgentOptions, place: Workplace) -> AsyncGenerator[HumanAgent]:
    async with open_desk() as desk:
        place.note(f"Work on the tasks at {desk.url}")  # the address holds the token that opens it
        yield HumanAgent(place.environments(), desk)


HUMAN = AgentKind(_open, is_person=True)
