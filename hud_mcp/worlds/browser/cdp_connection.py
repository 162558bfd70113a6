"""One client of `cdp/1.3`: what it sees of the browser is the pages of one session.

The browser itself is played: its targets, and the commands about them, are answered from what
belongs to the session's own context. What targets are asked and what they say is passed on, as
far as `cdp_rules.py` allows.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.worlds.browser.cdp_rules import Refused, Rules
from hud_mcp.worlds.browser.cdp_wire import LOST, Attachment, DevToolsError, Reply, Wire
from hud_mcp.worlds.browser.devtools import send
from hud_mcp.worlds.browser.kept import MAX_TABS
from hud_mcp.worlds.browser.world import BrowserWorld

if TYPE_CHECKING:
    from playwright.async_api import Page

__all__ = ["CdpConnection", "list_pages"]

logger = logging.getLogger(__name__)

_MOST_SESSIONS = 500
_MOST_PENDING = 2000
_OPEN_BOUND_S = 20.0
_CLOSE_BOUND_S = 5.0

_TOP_LEVEL = frozenset({"page", "tab", "service_worker", "shared_worker"})
"""What a browser attaches to by itself; frames and dedicated workers are for their pages."""

_Filter = tuple[Mapping[str, Any], ...]

_USUAL_FILTER: _Filter = (
    {"type": "browser", "exclude": True},
    {"type": "tab", "exclude": True},
    {},
)

_EVENTS = frozenset(
    {
        "Accessibility", "CSS", "DOM", "DOMStorage", "Fetch", "IndexedDB", "Input", "Inspector",
        "Log", "Network", "Page", "Performance", "Runtime", "Storage",
    }
)  # fmt: skip
"""Domains whose events are passed on."""

_Answer = dict[str, Any]


@dataclass(eq=False)
class _BrowserSession:
    """What a client takes for a session on the browser; the first one has no name."""

    name: str = ""
    parent: str = ""
    discovers: _Filter | None = None
    attaches: _Filter | None = None
    attached: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])


class CdpConnection:
    """What one client is told and may do. Made by `open`.

    Args:
        world: The session's browser.
        emit: Takes each message to the client; never waits.
        target_id: The page that commands without a session are for; without it, the one that
            is shown when the first such command comes.
    """

    def __init__(
        self,
        world: BrowserWorld,
        emit: Callable[[dict[str, Any]], None],
        target_id: str | None = None,
    ) -> None:
        self._world = world
        self._emit = emit
        self._rules = Rules(world.address, world.options)
        self._pinned = target_id
        self._context_id = ""
        self._wire: Wire | None = None
        self._targets: dict[str, dict[str, Any]] = {}
        self._sessions = {"": _BrowserSession()}
        self._owners: dict[str, _BrowserSession] = {}
        self._main: Attachment | None = None
        self._numbered = 0
        self._commands: Mapping[
            str, Callable[[_BrowserSession, Mapping[str, Any]], Awaitable[_Answer]]
        ] = {
            "Browser.getVersion": self._get_version,
            "Storage.clearCookies": self._ask_for_context("Storage.clearCookies"),
            "Storage.getCookies": self._ask_for_context("Storage.getCookies"),
            "Storage.setCookies": self._ask_for_context("Storage.setCookies"),
            "Target.activateTarget": self._ask_about_target("Target.activateTarget"),
            "Target.attachToBrowserTarget": self._attach_to_browser,
            "Target.attachToTarget": self._attach_to_target,
            "Target.closeTarget": self._ask_about_target("Target.closeTarget"),
            "Target.createTarget": self._create_target,
            "Target.detachFromTarget": self._detach,
            "Target.getBrowserContexts": self._get_contexts,
            "Target.getTargetInfo": self._get_target_info,
            "Target.getTargets": self._get_targets,
            "Target.setAutoAttach": self._set_auto_attach,
            "Target.setDiscoverTargets": self._set_discover,
        }

    @classmethod
    async def open(
        cls,
        world: BrowserWorld,
        emit: Callable[[dict[str, Any]], None],
        target_id: str | None = None,
    ) -> "CdpConnection":
        """Begin to speak to a session's browser.

        Raises:
            DevToolsError: It has no such page, or does not answer.

        If this call fails or is cancelled, nothing stays open.
        """
        connection = cls(world, emit, target_id)
        try:
            async with asyncio.timeout(_OPEN_BOUND_S):
                await connection._begin()
        except TimeoutError:
            await connection.close()
            raise DevToolsError("The browser did not answer in time.") from None
        except BaseException:
            await connection.close()
            raise
        return connection

    async def close(self) -> None:
        """Leave the browser; its pages stay as they are. Closing twice is no error."""
        tasks = [task for session in self._sessions.values() for task in session.attached.values()]
        self._sessions = {"": _BrowserSession()}
        for task in tasks:
            task.cancel()
        wire, self._wire = self._wire, None
        if wire is not None:
            closing = asyncio.ensure_future(wire.close())  # goes on where this is cancelled
            await asyncio.wait([closing, *tasks], timeout=_CLOSE_BOUND_S)

    async def take(self, message: Mapping[str, Any]) -> None:
        """Take one message of the client's; its answer is emitted, now or later."""
        method, params = message.get("method"), message.get("params")
        name = message.get("sessionId") or ""
        reply = self._replier(message.get("id"), name)
        if not isinstance(method, str) or not isinstance(params, Mapping | None):
            reply({"error": {"code": -32600, "message": "Expected id, method and params."}})
            return
        given = cast("Mapping[str, Any]", params or {})
        try:
            await self._perform(str(name), method, given, reply)
        except Refused as exc:
            reply({"error": {"code": -32000, "message": str(exc)}})
        except DevToolsError as exc:
            reply({"error": {"code": -32000, "message": str(exc)}})

    async def _begin(self) -> None:
        page = self._world.page
        if page.is_closed():
            page = await page.context.new_page()
        browser = page.context.browser
        if browser is None:
            raise DevToolsError("This browser cannot be spoken to.")
        info = await _target_info(page)
        self._context_id = str(info["browserContextId"])
        self._wire = await Wire.open(browser, self._on_event)
        await self._wire.ask_browser(
            "Target.setDiscoverTargets", {"discover": True, "filter": [{}]}
        )
        if self._pinned is not None:
            self._main = await self._attach(self._own(self._pinned)["targetId"])

    async def _perform(
        self, name: str, method: str, params: Mapping[str, Any], reply: Reply
    ) -> None:
        """Decide who a command is for, and have it performed."""
        session = self._sessions.get(name)
        attachment = None if session is not None else self._open_wire.find(name)
        if session is None and attachment is None:
            reply({"error": LOST})
            return
        if (answer := self._rules.answer(method, params)) is not None:
            reply({"result": answer})
            return
        if session is not None and not (name == "" and self._is_for_page(method)):
            command = self._commands.get(method)
            if command is None:
                raise Refused(method, "only the session's own pages are spoken to here")
            reply({"result": await command(session, params)})
            return
        if attachment is None:
            attachment = self._main = self._main or await self._attach_shown()
        if method == "Browser.getVersion":
            reply({"result": await self._get_version(self._sessions[""], params)})
            return
        await self._pass_on(attachment, method, params, reply)

    def _is_for_page(self, method: str) -> bool:
        """Whether a command without a session is for the page and not for the browser."""
        if self._pinned is not None:
            return True
        return method not in self._commands and not method.startswith(("Target.", "Browser."))

    async def _pass_on(
        self,
        attachment: Attachment,
        method: str,
        params: Mapping[str, Any],
        reply: Reply,
    ) -> None:
        """Have a target perform a command, as far as it is allowed."""
        if method.startswith("Target."):
            params = self._target_params(attachment, method, params)
            if method == "Target.getTargetInfo":
                reply({"result": {"targetInfo": self._own(params["targetId"])}})
                return
        elif method == "Runtime.runIfWaitingForDebugger" and attachment.parent is None:
            reply({"result": {}})  # whoever holds a new page prepares it for the session
            return
        else:
            params = self._rules.check(method, params)
        if self._open_wire.pending >= _MOST_PENDING:
            raise DevToolsError(f"{_MOST_PENDING} commands are not answered yet; wait for one.")
        await self._open_wire.send(attachment, method, params, reply)

    def _target_params(
        self, attachment: Attachment, method: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What a page is told of the few commands about targets that are a page's."""
        match method:
            case "Target.setAutoAttach":
                _check_flat(method, params)
                return {**params, "flatten": False}
            case "Target.detachFromTarget":
                child = self._open_wire.find(str(params.get("sessionId")))
                if child is None or child.parent is not attachment:
                    raise DevToolsError(str(LOST["message"]))
                return {"sessionId": child.id}
            case "Target.getTargetInfo":
                return {"targetId": params.get("targetId") or attachment.target_id}
            case _:
                raise Refused(method, "ask it without a sessionId, of the browser")

    # What the browser is asked.

    async def _get_version(self, _session: _BrowserSession, _params: Mapping[str, Any]) -> _Answer:
        return await self._open_wire.ask_browser("Browser.getVersion")

    async def _get_contexts(self, _session: _BrowserSession, _params: Mapping[str, Any]) -> _Answer:
        return {"browserContextIds": []}  # beside the one that clients take for the default one

    async def _get_targets(self, _session: _BrowserSession, params: Mapping[str, Any]) -> _Answer:
        wanted = _filter_of(params)
        return {"targetInfos": [i for i in self._targets.values() if _passes(wanted, i)]}

    async def _get_target_info(
        self, _session: _BrowserSession, params: Mapping[str, Any]
    ) -> _Answer:
        if params.get("targetId") is None:
            about = {"targetId": "browser", "type": "browser", "title": "", "url": ""}
            return {"targetInfo": {**about, "attached": True, "canAccessOpener": False}}
        return {"targetInfo": self._own(params["targetId"])}

    def _ask_for_context(
        self, method: str
    ) -> Callable[[_BrowserSession, Mapping[str, Any]], Awaitable[_Answer]]:
        async def ask(_session: _BrowserSession, params: Mapping[str, Any]) -> _Answer:
            self._check_context(method, params)
            own = {**params, "browserContextId": self._context_id}
            return await self._open_wire.ask_browser(method, own)

        return ask

    def _ask_about_target(
        self, method: str
    ) -> Callable[[_BrowserSession, Mapping[str, Any]], Awaitable[_Answer]]:
        async def ask(_session: _BrowserSession, params: Mapping[str, Any]) -> _Answer:
            target_id = self._own(params.get("targetId"))["targetId"]
            return await self._open_wire.ask_browser(method, {"targetId": target_id})

        return ask

    async def _create_target(self, session: _BrowserSession, params: Mapping[str, Any]) -> _Answer:
        method = "Target.createTarget"
        self._check_context(method, params)
        url = params.get("url") or "about:blank"
        self._rules.check_url(method, url)
        if sum(info["type"] == "page" for info in self._targets.values()) >= MAX_TABS:
            raise Refused(method, f"there are {MAX_TABS} pages already; close one")
        wanted = {"url": url, "browserContextId": self._context_id}
        result = await self._open_wire.ask_browser(method, wanted)
        if (attaching := session.attached.get(result["targetId"])) is not None:
            await asyncio.wait([attaching])  # clients expect to be attached before they are told
        return {"targetId": result["targetId"]}

    async def _set_discover(self, session: _BrowserSession, params: Mapping[str, Any]) -> _Answer:
        session.discovers = _filter_of(params) if params.get("discover") else None
        if session.discovers is not None:
            for info in list(self._targets.values()):
                if _passes(session.discovers, info):
                    self._say(session.name, "Target.targetCreated", {"targetInfo": info})
        return {}

    async def _set_auto_attach(
        self, session: _BrowserSession, params: Mapping[str, Any]
    ) -> _Answer:
        if not params.get("autoAttach"):
            session.attaches = None
            attached, session.attached = session.attached, {}
            for task in attached.values():
                task.cancel()
            return {}
        _check_flat("Target.setAutoAttach", params)
        session.attaches = _filter_of(params)
        for info in list(self._targets.values()):
            self._auto_attach(session, info)
        if session.attached:
            await asyncio.wait(session.attached.values())
        return {}

    async def _attach_to_browser(
        self, session: _BrowserSession, _params: Mapping[str, Any]
    ) -> _Answer:
        if len(self._sessions) + self._open_wire.size >= _MOST_SESSIONS:
            raise DevToolsError(f"{_MOST_SESSIONS} sessions are open; end one of them.")
        self._numbered += 1
        name = f"browser-{self._numbered}"
        self._sessions[name] = _BrowserSession(name, session.name)
        return {"sessionId": name}

    async def _attach_to_target(
        self, session: _BrowserSession, params: Mapping[str, Any]
    ) -> _Answer:
        _check_flat("Target.attachToTarget", params)
        attachment = await self._attach(self._own(params.get("targetId"))["targetId"])
        self._introduce(session, attachment)
        return {"sessionId": attachment.name}

    async def _detach(self, session: _BrowserSession, params: Mapping[str, Any]) -> _Answer:
        name = str(params.get("sessionId"))
        found = self._sessions.get(name)
        if found is not None and name and found.parent == session.name:
            await self._end_browser_session(found)
            return {}
        attachment = self._open_wire.find(name)
        if attachment is None or self._owners.get(attachment.id) is not session:
            raise DevToolsError(str(LOST["message"]))
        await self._open_wire.detach(attachment)
        return {}

    async def _end_browser_session(self, session: _BrowserSession) -> None:
        del self._sessions[session.name]
        for task in session.attached.values():
            task.cancel()
        for id_, owner in list(self._owners.items()):
            attachment = self._open_wire.find(id_)
            if owner is session and attachment is not None:
                await self._open_wire.detach(attachment)
        for child in [s for s in self._sessions.values() if s.parent == session.name and s.name]:
            await self._end_browser_session(child)

    # Attaching.

    async def _attach(self, target_id: str) -> Attachment:
        """Open a session on a target of ours."""
        if len(self._sessions) + self._open_wire.size >= _MOST_SESSIONS:
            raise DevToolsError(f"{_MOST_SESSIONS} sessions are open; end one of them.")
        attachment = await self._open_wire.attach(target_id)
        options = self._world.options
        if attachment.target["type"] == "page" and options.scale != 1:
            # Pictures follow the emulation of the session that takes them.
            metrics: dict[str, Any] = {
                "width": options.width,
                "height": options.height,
                "mobile": False,
            }
            metrics |= {"screenWidth": options.width, "screenHeight": options.height}
            metrics["deviceScaleFactor"] = options.scale
            await self._open_wire.send(
                attachment, "Emulation.setDeviceMetricsOverride", metrics, _ignore
            )
        return attachment

    async def _attach_shown(self) -> Attachment:
        """Open the session for commands that name none."""
        info = await _target_info(self._world.page)
        attachment = await self._attach(self._own(info["targetId"])["targetId"])
        attachment.name = ""
        return attachment

    def _introduce(self, session: _BrowserSession, attachment: Attachment) -> None:
        self._owners[attachment.id] = session
        info = {**self._targets.get(attachment.target_id, attachment.target), "attached": True}
        told = {"sessionId": attachment.name, "targetInfo": info, "waitingForDebugger": False}
        self._say(session.name, "Target.attachedToTarget", told)

    def _auto_attach(self, session: _BrowserSession, info: Mapping[str, Any]) -> None:
        wanted, target_id = session.attaches, info["targetId"]
        if wanted is None or target_id in session.attached or not _passes(wanted, info):
            return
        if info["type"] in _TOP_LEVEL:
            session.attached[target_id] = asyncio.get_running_loop().create_task(
                self._run_auto_attach(session, target_id)
            )

    async def _run_auto_attach(self, session: _BrowserSession, target_id: str) -> None:
        try:
            self._introduce(session, await self._attach(target_id))
        except DevToolsError as exc:
            logger.info("a page was not attached to: %s", exc)  # it has gone meanwhile

    # What the browser says.

    def _on_event(self, via: Attachment | None, method: str, params: dict[str, Any]) -> None:
        if via is not None:
            self._on_target_event(via, method, params)
        elif method in ("Target.targetCreated", "Target.targetInfoChanged"):
            self._on_target(method, params["targetInfo"])
        elif method in ("Target.targetDestroyed", "Target.targetCrashed"):
            self._on_target_end(method, params)
        elif method == "Target.detachedFromTarget":
            self._on_detached(params)

    def _on_target(self, method: str, info: dict[str, Any]) -> None:
        if info.get("browserContextId") != self._context_id:
            return
        self._targets[info["targetId"]] = info
        for session in list(self._sessions.values()):
            if session.discovers is not None and _passes(session.discovers, info):
                self._say(session.name, method, {"targetInfo": info})
            self._auto_attach(session, info)

    def _on_target_end(self, method: str, params: dict[str, Any]) -> None:
        info = self._targets.get(params["targetId"])
        if info is None:
            return
        for session in list(self._sessions.values()):
            if session.discovers is not None and _passes(session.discovers, info):
                self._say(session.name, method, params)
            if method == "Target.targetDestroyed":
                session.attached.pop(info["targetId"], None)
        if method == "Target.targetDestroyed":
            del self._targets[info["targetId"]]

    def _on_detached(self, params: Mapping[str, Any]) -> None:
        if self._main is not None and self._main.id == params["sessionId"]:
            self._main = None
            self._say("", "Inspector.detached", {"reason": "target_closed"})
        owner = self._owners.pop(params["sessionId"], None)
        if owner is not None and owner.name in self._sessions:
            told = {"sessionId": params["sessionId"], "targetId": params.get("targetId")}
            self._say(owner.name, "Target.detachedFromTarget", told)

    def _on_target_event(self, via: Attachment, method: str, params: dict[str, Any]) -> None:
        if (
            method in ("Target.attachedToTarget", "Target.detachedFromTarget")
            or method.partition(".")[0] in _EVENTS
        ):
            self._say(via.name, method, params)

    # Small things.

    @property
    def _open_wire(self) -> Wire:
        if self._wire is None:
            raise DevToolsError("This connection is closed.")
        return self._wire

    def _own(self, target_id: object) -> dict[str, Any]:
        """One of the session's own targets.

        Raises:
            DevToolsError: It is none of them; the text does not say whether it exists.
        """
        found = self._targets.get(str(target_id))
        if found is None:
            raise DevToolsError("No target with given id found")
        return found

    def _check_context(self, method: str, params: Mapping[str, Any]) -> None:
        if params.get("browserContextId") not in (None, "", self._context_id):
            raise Refused(method, "only the session's own browser context is spoken to here")

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


async def list_pages(world: BrowserWorld) -> list[dict[str, Any]]:
    """The targets of a session's pages, the shown one first.

    Raises:
        Error: Playwright's, where a page goes meanwhile.
    """
    shown = world.page
    others = [page for page in shown.context.pages if page != shown]
    return [await _target_info(page) for page in [shown, *others] if not page.is_closed()]


async def _target_info(page: "Page") -> dict[str, Any]:
    cdp = await page.context.new_cdp_session(page)
    info = await send(cdp, "Target.getTargetInfo")
    await cdp.detach()
    return info["targetInfo"]


def _ignore(_reply: object) -> None:
    pass


def _check_flat(method: str, params: Mapping[str, Any]) -> None:
    if not params.get("flatten"):
        raise Refused(method, "ask with flatten: true")


def _filter_of(params: Mapping[str, Any]) -> _Filter:
    given = params.get("filter")
    if not isinstance(given, list):
        return _USUAL_FILTER
    entries = cast("list[Any]", given)
    return tuple(cast("dict[str, Any]", e) for e in entries if isinstance(e, dict))


def _passes(entries: _Filter, info: Mapping[str, Any]) -> bool:
    """Whether a target passes a filter: the first entry that fits decides."""
    for entry in entries:
        if entry.get("type") in (None, info["type"]):
            return not entry.get("exclude")
    return False
