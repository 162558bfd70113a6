"""DevTools sessions on a browser's targets, over one session of Playwright.

Playwright drops messages of sessions that it has not opened. Therefore targets are attached to in
the protocol's older form, in which messages travel as text inside those of the session above, to
any depth. So all come in Chromium's order and with its error codes. Source: the `Target` domain,
`flatten: false`.
"""

import asyncio
import itertools
import json
import math
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import send

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession


LOST = {"code": -32001, "message": "Session with given id not found."}
"""Chromium's error for a session that has ended."""

REQUEST_BOUND_S = 20.0

_TOO_DEEP = {"code": -32000, "message": "Object reference chain is too long"}
_ID = re.compile(r'\{"id":(\d+)')

_TOLD = (
    "Target.attachedToTarget",
    "Target.detachedFromTarget",
    "Target.receivedMessageFromTarget",
    "Target.targetCrashed",
    "Target.targetCreated",
    "Target.targetDestroyed",
    "Target.targetInfoChanged",
)
"""The events of the session on the browser."""

Reply = Callable[[dict[str, Any]], None]


class DevToolsError(Exception):
    """Chromium refused a command of ours."""


@dataclass(eq=False)
class Attachment:
    """A session on one target.

    Attributes:
        id: Chromium's name for the session.
        target: Chromium's description of the target.
        parent: The session in which its messages travel; None for the browser's.
        name: The client's name for it; empty if it needs none.
        documents: The document of each frame that the client knows, by loader.
        lifecycle: Waiting events of these, while the client asks for them.
    """

    id: str
    target: dict[str, Any]
    parent: "Attachment | None" = None
    name: str = ""
    pending: set[int] = field(default_factory=set[int])
    documents: dict[str, str] = field(default_factory=dict[str, str])
    lifecycle: list[dict[str, Any]] | None = None

    @property
    def target_id(self) -> str:
        """The target's id."""
        return self.target["targetId"]

    def collect_lifecycle(self) -> list[dict[str, Any]]:
        """Collect the lifecycle events of its documents in the returned list."""
        self.lifecycle = waiting = list[dict[str, Any]]()
        return waiting

    def end_lifecycle(self, waiting: list[dict[str, Any]]) -> None:
        """Stop collecting in a list, unless another list has replaced it."""
        if self.lifecycle is waiting:
            self.lifecycle = None

    def keep(self, method: str, params: dict[str, Any]) -> bool:
        """Note an event of the target, and return whether it went into `lifecycle`."""
        if method == "Page.frameNavigated":
            self.documents[params["frame"]["id"]] = params["frame"]["loaderId"]
        elif method == "Page.frameDetached":
            self.documents.pop(params["frameId"], None)
        elif method == "Page.lifecycleEvent" and self.lifecycle is not None:
            if self.documents.get(params["frameId"]) != params["loaderId"]:
                return False
            self.lifecycle.append(params)
            return True
        return False


class Wire:
    """The sessions, and their events with each session; None for the browser's. Made by `open`."""

    def __init__(
        self,
        pipe: "CDPSession",
        on_event: Callable[[Attachment | None, str, dict[str, Any]], None],
    ) -> None:
        self._pipe = pipe
        self._on_event = on_event
        self._attachments: dict[str, Attachment] = {}
        self._ids = itertools.count(1)
        self._replies: dict[int, Reply] = {}
        self._listeners = {name: partial(self._take, None, name) for name in _TOLD}
        for name, listener in self._listeners.items():
            pipe.on(name, listener)

    @classmethod
    async def open(
        cls,
        browser: "Browser",
        on_event: Callable[[Attachment | None, str, dict[str, Any]], None],
    ) -> "Wire":
        """Open a session on a browser, or raise DevToolsError if it is gone.

        If this call fails or is cancelled, no session stays open.
        """
        return cls(await open_pipe(browser.new_browser_cdp_session()), on_event)

    @property
    def pending(self) -> int:
        """The number of commands without an answer."""
        return len(self._replies)

    @property
    def size(self) -> int:
        """The number of sessions."""
        return len(self._attachments)

    async def ask_browser(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a command to the browser, and return its result.

        DevToolsError says that it refuses, or does not answer in time.
        """
        try:
            async with asyncio.timeout(REQUEST_BOUND_S):
                return await send(self._pipe, method, dict(params or {}))
        except TimeoutError:
            raise DevToolsError("The browser did not answer in time.") from None
        except libraries.PlaywrightError as exc:
            text = exc.message.partition("\n")[0]
            raise DevToolsError(text.partition("): ")[2] or text) from exc

    async def attach(self, target_id: str) -> Attachment:
        """Open a session on a target; DevToolsError says that the target is gone."""
        result = await self.ask_browser(
            "Target.attachToTarget", {"targetId": target_id, "flatten": False}
        )
        try:
            return self._attachments[result["sessionId"]]  # its event came first
        except KeyError:
            raise DevToolsError(str(LOST["message"])) from None

    async def detach(self, attachment: Attachment) -> None:
        """End a session of `attach`; DevToolsError says that it has ended already."""
        await self.ask_browser("Target.detachFromTarget", {"sessionId": attachment.id})

    async def send(
        self,
        attachment: Attachment,
        method: str,
        params: Mapping[str, Any],
        reply: Reply,
    ) -> None:
        """Send a command to a target; DevToolsError says that the browser does not take it.

        `reply` is called once with `result` or `error`, at the latest when the session ends.
        """
        if attachment.id not in self._attachments:
            reply({"error": LOST})
            return
        id_ = next(self._ids)
        message: dict[str, Any] = {"id": id_, "method": method, "params": params}
        at: Attachment | None = attachment
        while at is not None:
            inner = {"sessionId": at.id, "message": json.dumps(message)}
            message = {"method": "Target.sendMessageToTarget", "params": inner}
            at = at.parent
            if at is not None:
                message["id"] = next(self._ids)  # its own answer interests nobody
        self._replies[id_] = reply
        attachment.pending.add(id_)
        try:
            await self.ask_browser(message["method"], message["params"])
        except DevToolsError:
            if self._replies.pop(id_, None) is not None:
                attachment.pending.discard(id_)
                raise

    async def close(self) -> None:
        """End all sessions."""
        for name, listener in self._listeners.items():
            self._pipe.remove_listener(name, listener)
        for attachment in list(self._attachments.values()):
            self._forget(attachment)
        await close_pipe(self._pipe)

    def _take(self, via: Attachment | None, method: str, params: dict[str, Any]) -> None:
        if method == "Target.receivedMessageFromTarget":
            attachment = self._attachments.get(params["sessionId"])
            if attachment is not None:
                self._hear(attachment, _read(params["message"]))
            return
        if method == "Target.attachedToTarget":
            attachment = Attachment(params["sessionId"], params["targetInfo"], via)
            attachment.name = attachment.id
            self._attachments[attachment.id] = attachment
        self._on_event(via, method, params)
        if method == "Target.detachedFromTarget":
            attachment = self._attachments.get(params["sessionId"])
            if attachment is not None:
                self._forget(attachment)

    def _hear(self, attachment: Attachment, message: dict[str, Any]) -> None:
        if "id" not in message:
            if "method" in message:
                self._take(attachment, message["method"], message.get("params") or {})
            return
        attachment.pending.discard(message["id"])
        reply = self._replies.pop(message["id"], None)
        if reply is not None:
            reply({key: message[key] for key in ("result", "error") if key in message})

    def _forget(self, attachment: Attachment) -> None:
        """Forget an ended session, and those below it."""
        self._attachments.pop(attachment.id, None)
        for id_ in attachment.pending:
            if (reply := self._replies.pop(id_, None)) is not None:
                reply({"error": LOST})
        for child in [a for a in self._attachments.values() if a.parent is attachment]:
            self._forget(child)

    def find(self, name: str) -> Attachment | None:
        """Return the session that the client knows by a name."""
        found = self._attachments.get(name)
        return found if found is not None and found.name == name else None


def _read(text: str) -> dict[str, Any]:
    """Return a message of a target; an error if it nests too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        found = _ID.match(text)
        return {"id": int(found[1]), "error": _TOO_DEEP} if found else {}


async def open_pipe(opening: Coroutine[Any, Any, "CDPSession"]) -> "CDPSession":
    """Open a session of Playwright, or raise DevToolsError if its target is gone.

    If this is cancelled, the session ends once it is open.
    """
    task = asyncio.ensure_future(opening)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_abandon)
        raise
    except libraries.PlaywrightError as exc:
        raise DevToolsError("The session's browser is closed.") from exc


_abandoned: set["asyncio.Task[None]"] = set()


def _abandon(opened: "asyncio.Task[CDPSession]") -> None:
    if not opened.cancelled() and opened.exception() is None:
        task = asyncio.get_running_loop().create_task(close_pipe(opened.result()))
        _abandoned.add(task)
        task.add_done_callback(_abandoned.discard)


async def close_pipe(pipe: "CDPSession") -> None:
    """End a session of Playwright if its target is still there."""
    try:
        await pipe.detach()
    except libraries.PlaywrightError:
        return  # its target is gone, and it too


def parse(raw: str | bytes) -> Mapping[str, Any] | None:
    """Return a client's message; None if it is not a JSON object, or has NaN or an infinity."""
    try:
        message = json.loads(raw, parse_constant=_refuse_number, parse_float=_read_number)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", message) if isinstance(message, dict) else None


def write(message: Mapping[str, Any]) -> str:
    """Return a message as JSON; an error instead if it nests too deeply."""
    try:
        return json.dumps(message, separators=(",", ":"))
    except RecursionError:
        error = {"code": -32000, "message": "Object reference chain is too long"}
        about = {key: message[key] for key in ("id", "sessionId") if key in message}
        return json.dumps({**about, "error": error})


def _read_number(text: str) -> float:
    number = float(text)
    return _refuse_number(text) if math.isinf(number) else number


def _refuse_number(text: str) -> float:
    """Refuse numbers outside of JSON, which Python accepts and which end the browser's driver."""
    raise ValueError(text)
