"""One client of `cdp/1.3`: the receiver of each of its commands, and its events.

`cdp_browser` answers commands to the browser. Commands to a target are passed on, and its events
are passed back, as far as `cdp_rules` allows.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.plugins.hud.endpoints.cdp_browser import PlayedBrowser, check_flat
from hud_mcp.plugins.hud.endpoints.cdp_rules import EVENT_DOMAINS, CommandRefused, Rules
from hud_mcp.plugins.hud.endpoints.cdp_wire import (
    LOST,
    Attachment,
    DevToolsError,
    Reply,
    Wire,
    open_pipe,
)
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import send
from hud_mcp.worlds.browser.world import BrowserWorld

if TYPE_CHECKING:
    from playwright.async_api import Page


_CHILD_EVENTS = ("Target.attachedToTarget", "Target.detachedFromTarget")
_MOST_PENDING = 2000
_MOST_DEEP = 100
"""The deepest nesting of a command.

Chromium reads 300 levels, and leaves deeper ones unanswered.
"""

_OPEN_BOUND_S = 20.0
_CLOSE_BOUND_S = 5.0


class CdpConnection:
    """The view and the rights of one client. Made by `open`.

    `emit` sends a message to the client and never waits. `target_id` is the page for all commands
    without a session; by default, it is the page that is shown when the first such command comes.
    """

    def __init__(
        self,
        world: BrowserWorld,
        context_id: str,
        emit: Callable[[dict[str, Any]], None],
        target_id: str | None = None,
    ) -> None:
        self._world = world
        self._emit = emit
        self._rules = Rules(world.address, world.options)
        self._browser = PlayedBrowser(context_id, self._rules, self._say)
        self._pinned = target_id
        self._main: Attachment | None = None
        self._wire: Wire | None = None

    @classmethod
    async def open(
        cls,
        world: BrowserWorld,
        emit: Callable[[dict[str, Any]], None],
        target_id: str | None = None,
    ) -> "CdpConnection":
        """Connect to a session's browser. If this fails or is cancelled, it leaves nothing open.

        DevToolsError says that the browser does not have the page, or does not answer.
        """
        connection: CdpConnection | None = None
        try:
            async with asyncio.timeout(_OPEN_BOUND_S):
                info = await _shown(world)
                connection = cls(world, info["browserContextId"], emit, target_id)
                await connection._begin()
        except BaseException as exc:
            if connection is not None:
                await connection.close()
            if isinstance(exc, TimeoutError):
                raise DevToolsError("The browser did not answer in time.") from None
            raise
        return connection

    async def close(self) -> None:
        """Leave the browser; its pages stay unchanged. It may be called twice."""
        wire, self._wire = self._wire, None
        if wire is not None:
            closing = [self._browser.close(), wire.close()]
            tasks = [asyncio.ensure_future(each) for each in closing]
            await asyncio.wait(tasks, timeout=_CLOSE_BOUND_S)  # they go on where it is cancelled

    async def take(self, message: Mapping[str, Any]) -> None:
        """Receive a message of the client; its answer is emitted now or later."""
        id_, method, params = (message.get(key) for key in ("id", "method", "params"))
        name = message.get("sessionId", "")
        reply = self._replier(id_, name)
        well_formed = isinstance(method, str) and isinstance(params, Mapping | None)
        if type(id_) is not int or not isinstance(name, str) or not well_formed:
            text = "Expected a whole number as id, text as method, and params as an object."
            reply({"error": {"code": -32600, "message": text}})
            return
        given = cast("Mapping[str, Any]", params or {})
        if _nests_deeper(given, _MOST_DEEP):
            text = f"The parameters nest more than {_MOST_DEEP} deep."
            reply({"error": {"code": -32600, "message": text}})
            return
        try:
            await self._perform(name, cast("str", method), given, reply)
        except (CommandRefused, DevToolsError) as exc:
            reply(_error(exc))

    async def _begin(self) -> None:
        browser = self._world.page.context.browser
        if browser is None:
            raise DevToolsError("The connection to this browser failed.")
        self._wire = await Wire.open(browser, self._on_event)
        await self._browser.begin(self._wire)
        if self._pinned is not None:
            self._main = await self._attach_main(self._pinned)

    async def _perform(
        self, name: str, method: str, params: Mapping[str, Any], reply: Reply
    ) -> None:
        wire = self._wire
        session = self._browser.sessions.get(name)
        attachment = wire.find(name) if wire is not None and session is None else None
        if wire is None or (session is None and attachment is None):
            reply({"error": LOST})
        elif (answer := self._rules.answer(method, params)) is not None:
            reply({"result": answer})
        elif session is not None and (name or self._is_for_browser(method)):
            reply({"result": await self._browser.perform(session, method, params)})
        elif method == "Browser.getVersion":
            reply({"result": await wire.ask_browser(method)})
        elif wire.pending >= _MOST_PENDING:
            raise DevToolsError(f"{_MOST_PENDING} commands are not answered yet; wait for one.")
        else:
            await self._pass_on(wire, attachment or await self._find_main(), method, params, reply)

    def _is_for_browser(self, method: str) -> bool:
        return self._pinned is None and self._browser.understands(method)

    async def _pass_on(
        self, wire: Wire, to: Attachment, method: str, params: Mapping[str, Any], reply: Reply
    ) -> None:
        """Let a target perform a command, as far as it is allowed."""
        if method == "Target.setAutoAttach":
            check_flat(method, params)
            # Nothing is ever held for a client: one that vanishes would hold the page up, and
            # the session prepares what is new by itself.
            params = {**params, "flatten": False, "waitForDebuggerOnStart": False}
        elif method == "Target.detachFromTarget":
            child = wire.find(str(params.get("sessionId")))
            if child is None or child.parent is not to:
                raise DevToolsError(str(LOST["message"]))
            params = {"sessionId": child.id}
        elif method == "Target.getTargetInfo":
            info = self._browser.own(params.get("targetId") or to.target_id)
            reply({"result": {"targetInfo": info}})
            return
        else:
            params = self._rules.check(method, params)
        if method == "Page.setLifecycleEventsEnabled":
            reply = self._tell_lifecycle_after(to, reply)
        try:
            await wire.send(to, method, params, reply)
        except DevToolsError as exc:
            reply(_error(exc))

    def _tell_lifecycle_after(self, to: Attachment, reply: Reply) -> Reply:
        """Hold lifecycle events of documents back until the client has the reply that enables them.

        Chromium repeats past events before it answers. A client that prepares a new page listens
        only from the answer on, because a new page waits for its client. Here it does not wait, and
        may have loaded meanwhile; Playwright would never learn of that.
        """
        waiting = to.collect_lifecycle()

        def reply_first(answer: dict[str, Any]) -> None:
            to.end_lifecycle(waiting)
            reply(answer)
            for params in waiting:
                self._say(to.name, "Page.lifecycleEvent", params)

        return reply_first

    async def _find_main(self) -> Attachment:
        if self._main is None:
            if self._pinned is not None:
                raise DevToolsError("The page is closed. Connect to another one.")
            info = await _shown(self._world)
            self._main = await self._attach_main(info["targetId"])
        return self._main

    async def _attach_main(self, target_id: str) -> Attachment:
        attachment = await self._browser.attach(target_id)
        attachment.name = ""
        return attachment

    def _on_event(self, via: Attachment | None, method: str, params: dict[str, Any]) -> None:
        if via is None:
            self._on_browser_event(method, params)
            return
        passes = method in _CHILD_EVENTS or method.partition(".")[0] in EVENT_DOMAINS
        if passes and not via.keep(method, params):
            self._say(via.name, method, params)

    def _on_browser_event(self, method: str, params: dict[str, Any]) -> None:
        ends = method == "Target.detachedFromTarget"
        if ends and self._main is not None and self._main.id == params["sessionId"]:
            self._main = None
            self._say("", "Inspector.detached", {"reason": "target_closed"})
        self._browser.hear(method, params)

    def _say(self, name: str, method: str, params: Mapping[str, Any]) -> None:
        message: dict[str, Any] = {"method": method, "params": params}
        if name:
            message["sessionId"] = name
        self._emit(message)

    def _replier(self, id_: object, name: object) -> Reply:
        def reply(answer: dict[str, Any]) -> None:
            message: dict[str, Any] = {"id": id_, **answer}
            if name:
                message["sessionId"] = name
            self._emit(message)

        return reply


def _error(exc: Exception) -> dict[str, Any]:
    return {"error": {"code": -32000, "message": str(exc)}}


def _nests_deeper(value: object, levels: int) -> bool:
    level = [value]
    for _each in range(levels):
        level = [child for outer in level for child in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


async def list_pages(world: BrowserWorld) -> list[dict[str, Any]]:
    """Return the targets of a session's pages, the shown one first.

    DevToolsError says that a page has closed meanwhile.
    """
    shown = world.page
    others = [page for page in shown.context.pages if page != shown]
    return [await _target_info(page) for page in [shown, *others] if not page.is_closed()]


async def _shown(world: BrowserWorld) -> dict[str, Any]:
    """Return the target of the shown page; open one if the last was closed."""
    page = world.page
    try:
        if page.is_closed():
            page = await page.context.new_page()
    except libraries.PlaywrightError as exc:
        raise DevToolsError("The session's browser is closed.") from exc
    return await _target_info(page)


async def _target_info(page: "Page") -> dict[str, Any]:
    cdp = await open_pipe(page.context.new_cdp_session(page))
    try:
        info = await send(cdp, "Target.getTargetInfo")
        await cdp.detach()
    except libraries.PlaywrightError as exc:
        raise DevToolsError("The session's page is closed.") from exc
    return info["targetInfo"]
