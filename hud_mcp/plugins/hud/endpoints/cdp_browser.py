"""The browser that a client of `cdp/1.3` sees: one context, with its targets.

Commands about targets are answered from the session's own context; others do not seem to exist.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hud_mcp.plugins.hud.endpoints.cdp_rules import CommandRefused, Rules
from hud_mcp.plugins.hud.endpoints.cdp_wire import LOST, Attachment, DevToolsError, Wire
from hud_mcp.worlds.browser.snapshot_format import MAX_TABS

logger = logging.getLogger(__name__)

_MOST_SESSIONS = 500

_TOP_LEVEL = frozenset({"page", "tab", "service_worker", "shared_worker"})
"""The targets that a browser attaches to itself; frames and dedicated workers belong to pages."""

_Filter = tuple[Mapping[str, Any], ...]

_USUAL_FILTER: _Filter = (
    {"type": "browser", "exclude": True},
    {"type": "tab", "exclude": True},
    {},
)

_Answer = dict[str, Any]
_Command = Callable[["BrowserSession", Mapping[str, Any]], Awaitable[_Answer]]


@dataclass(eq=False)
class BrowserSession:
    """A client's session on the browser; the first one has no name."""

    name: str = ""
    parent: str = ""
    discovers: _Filter | None = None
    attaches: _Filter | None = None
    attached: dict[str, "asyncio.Task[Attachment | None]"] = field(
        default_factory=dict[str, "asyncio.Task[Attachment | None]"]
    )


class PlayedBrowser:
    """The targets of one context, and the client's sessions on the browser.

    `say` sends an event to the client, with the session's name.
    """

    def __init__(
        self,
        context_id: str,
        rules: Rules,
        say: Callable[[str, str, Mapping[str, Any]], None],
    ) -> None:
        self.sessions = {"": BrowserSession()}
        self._context_id = context_id
        self._rules = rules
        self._say = say
        self._open: Wire | None = None
        self._targets: dict[str, dict[str, Any]] = {}
        self._owners: dict[str, BrowserSession] = {}
        self._numbered = 0
        self._commands: Mapping[str, _Command] = {
            "Browser.getVersion": self._get_version,
            "Storage.clearCookies": self._of_context("Storage.clearCookies"),
            "Storage.getCookies": self._of_context("Storage.getCookies"),
            "Storage.setCookies": self._of_context("Storage.setCookies"),
            "Target.activateTarget": self._of_target("Target.activateTarget"),
            "Target.attachToBrowserTarget": self._attach_to_browser,
            "Target.attachToTarget": self._attach_to_target,
            "Target.closeTarget": self._of_target("Target.closeTarget"),
            "Target.createTarget": self._create_target,
            "Target.detachFromTarget": self._detach,
            "Target.getBrowserContexts": self._get_contexts,
            "Target.getTargetInfo": self._get_target_info,
            "Target.getTargets": self._get_targets,
            "Target.setAutoAttach": self._set_auto_attach,
            "Target.setDiscoverTargets": self._set_discover,
        }

    async def begin(self, wire: Wire) -> None:
        """Fetch the targets; DevToolsError says that the browser is gone."""
        self._open = wire
        await wire.ask_browser("Target.setDiscoverTargets", {"discover": True, "filter": [{}]})

    async def close(self) -> None:
        """Stop attaching to new targets."""
        tasks = [task for session in self.sessions.values() for task in session.attached.values()]
        self.sessions = {"": BrowserSession()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def understands(self, method: str) -> bool:
        """Whether a command is for a browser instead of a page."""
        return method in self._commands or method.startswith(("Target.", "Browser."))

    async def perform(
        self, session: BrowserSession, method: str, params: Mapping[str, Any]
    ) -> _Answer:
        """Perform a client's command to its browser, or raise CommandRefused or DevToolsError."""
        command = self._commands.get(method)
        if command is None:
            raise self._rules.refusal(method)
        return await command(session, params)

    def own(self, target_id: object) -> dict[str, Any]:
        """Return one of the context's targets.

        DevToolsError does not tell whether another exists.
        """
        found = self._targets.get(str(target_id))
        if found is None:
            raise DevToolsError("No target with given id found")
        return found

    async def attach(self, target_id: object) -> Attachment:
        """Open a session on a target of the context.

        DevToolsError says that the target does not exist, or that too many sessions are open.
        """
        self._check_room()
        attachment = await self._wire.attach(self.own(target_id)["targetId"])
        if attachment.target["type"] == "page" and self._rules.metrics is not None:
            command = "Emulation.setDeviceMetricsOverride"
            await self._wire.send(attachment, command, self._rules.metrics, lambda _reply: None)
        return attachment

    def hear(self, method: str, params: dict[str, Any]) -> None:
        """Note an event of the real browser about its targets."""
        if method in ("Target.targetCreated", "Target.targetInfoChanged"):
            self._on_target(method, params["targetInfo"])
        elif method in ("Target.targetDestroyed", "Target.targetCrashed"):
            self._on_target_end(method, params)
        elif method == "Target.detachedFromTarget":
            owner = self._owners.pop(params["sessionId"], None)
            if owner is not None and owner.name in self.sessions:
                event = {"sessionId": params["sessionId"], "targetId": params.get("targetId")}
                self._say(owner.name, method, event)

    @property
    def _wire(self) -> Wire:
        if self._open is None:
            raise DevToolsError("The connection to the browser is not open yet.")
        return self._open

    async def _get_version(self, _session: BrowserSession, _params: Mapping[str, Any]) -> _Answer:
        return await self._wire.ask_browser("Browser.getVersion")

    async def _get_contexts(self, _session: BrowserSession, _params: Mapping[str, Any]) -> _Answer:
        return {"browserContextIds": []}  # beside the one that clients take for the default one

    async def _get_targets(self, _session: BrowserSession, params: Mapping[str, Any]) -> _Answer:
        wanted = _filter_of(params)
        return {"targetInfos": [i for i in self._targets.values() if _passes(wanted, i)]}

    async def _get_target_info(
        self, _session: BrowserSession, params: Mapping[str, Any]
    ) -> _Answer:
        if params.get("targetId") is None:
            about = {"targetId": "browser", "type": "browser", "title": "", "url": ""}
            return {"targetInfo": {**about, "attached": True, "canAccessOpener": False}}
        return {"targetInfo": self.own(params["targetId"])}

    def _of_context(self, method: str) -> _Command:
        async def ask(_session: BrowserSession, params: Mapping[str, Any]) -> _Answer:
            self._check_context(method, params)
            own = {**params, "browserContextId": self._context_id}
            return await self._wire.ask_browser(method, own)

        return ask

    def _of_target(self, method: str) -> _Command:
        async def ask(_session: BrowserSession, params: Mapping[str, Any]) -> _Answer:
            own = {"targetId": self.own(params.get("targetId"))["targetId"]}
            return await self._wire.ask_browser(method, own)

        return ask

    async def _create_target(self, session: BrowserSession, params: Mapping[str, Any]) -> _Answer:
        method = "Target.createTarget"
        self._check_context(method, params)
        url = params.get("url") or "about:blank"
        self._rules.check_url(method, url)
        if sum(info["type"] == "page" for info in self._targets.values()) >= MAX_TABS:
            raise CommandRefused(method, f"there are {MAX_TABS} pages already; close one")
        wanted = {"url": url, "browserContextId": self._context_id}
        result = await self._wire.ask_browser(method, wanted)
        if (attaching := session.attached.get(result["targetId"])) is not None:
            await asyncio.wait([attaching])  # clients expect to be attached before they are told
        return {"targetId": result["targetId"]}

    async def _set_discover(self, session: BrowserSession, params: Mapping[str, Any]) -> _Answer:
        session.discovers = _filter_of(params) if params.get("discover") else None
        for info in list(self._targets.values()):
            if session.discovers is not None and _passes(session.discovers, info):
                self._say(session.name, "Target.targetCreated", {"targetInfo": info})
        return {}

    async def _set_auto_attach(self, session: BrowserSession, params: Mapping[str, Any]) -> _Answer:
        if not params.get("autoAttach"):
            session.attaches = None
            await self._let_go(session)
            return {}
        check_flat("Target.setAutoAttach", params)
        session.attaches = _filter_of(params)
        for info in list(self._targets.values()):
            self._auto_attach(session, info)
        if session.attached:
            await asyncio.wait(session.attached.values())
        return {}

    async def _attach_to_browser(
        self, session: BrowserSession, _params: Mapping[str, Any]
    ) -> _Answer:
        self._check_room()
        self._numbered += 1
        name = f"browser-{self._numbered}"
        self.sessions[name] = BrowserSession(name, session.name)
        return {"sessionId": name}

    async def _attach_to_target(
        self, session: BrowserSession, params: Mapping[str, Any]
    ) -> _Answer:
        check_flat("Target.attachToTarget", params)
        attachment = await self.attach(params.get("targetId"))
        self._introduce(session, attachment)
        return {"sessionId": attachment.id}

    async def _detach(self, session: BrowserSession, params: Mapping[str, Any]) -> _Answer:
        name = str(params.get("sessionId"))
        found = self.sessions.get(name)
        if found is not None and name and found.parent == session.name:
            await self._end(found)
            return {}
        attachment = self._wire.find(name)
        if attachment is None or self._owners.get(attachment.id) is not session:
            raise DevToolsError(str(LOST["message"]))
        await self._wire.detach(attachment)
        return {}

    async def _end(self, session: BrowserSession) -> None:
        """End one of the client's sessions on the browser, with those below it."""
        del self.sessions[session.name]
        await self._let_go(session)
        for id_, owner in list(self._owners.items()):
            attachment = self._wire.find(id_)
            if owner is session and attachment is not None:
                await self._wire.detach(attachment)
        for child in [s for s in self.sessions.values() if s.name and s.parent == session.name]:
            await self._end(child)

    async def _let_go(self, session: BrowserSession) -> None:
        """Detach from the targets that were attached automatically."""
        tasks, session.attached = list(session.attached.values()), {}
        if tasks:
            await asyncio.wait(tasks)
        for attachment in [task.result() for task in tasks]:
            if attachment is not None and self._wire.find(attachment.id) is not None:
                await self._wire.detach(attachment)

    def _introduce(self, session: BrowserSession, attachment: Attachment) -> None:
        self._owners[attachment.id] = session
        info = {**self._targets.get(attachment.target_id, attachment.target), "attached": True}
        event = {"sessionId": attachment.id, "targetInfo": info, "waitingForDebugger": False}
        self._say(session.name, "Target.attachedToTarget", event)

    def _auto_attach(self, session: BrowserSession, info: Mapping[str, Any]) -> None:
        wanted, target_id = session.attaches, info["targetId"]
        if wanted is None or target_id in session.attached or not _passes(wanted, info):
            return
        if info["type"] in _TOP_LEVEL:
            session.attached[target_id] = asyncio.get_running_loop().create_task(
                self._run_auto_attach(session, target_id)
            )

    async def _run_auto_attach(self, session: BrowserSession, target_id: str) -> Attachment | None:
        try:
            attachment = await self.attach(target_id)
        except DevToolsError as exc:
            logger.info("a page was not attached to: %s", exc)  # it has gone meanwhile
            return None
        self._introduce(session, attachment)
        return attachment

    def _on_target(self, method: str, info: dict[str, Any]) -> None:
        if info.get("browserContextId") != self._context_id:
            return
        self._targets[info["targetId"]] = info
        for session in list(self.sessions.values()):
            if session.discovers is not None and _passes(session.discovers, info):
                self._say(session.name, method, {"targetInfo": info})
            self._auto_attach(session, info)

    def _on_target_end(self, method: str, params: dict[str, Any]) -> None:
        info = self._targets.get(params["targetId"])
        if info is None:
            return
        for session in list(self.sessions.values()):
            if session.discovers is not None and _passes(session.discovers, info):
                self._say(session.name, method, params)
        if method == "Target.targetDestroyed":
            del self._targets[info["targetId"]]
            for session in list(self.sessions.values()):
                session.attached.pop(info["targetId"], None)

    def _check_room(self) -> None:
        if len(self.sessions) + self._wire.size >= _MOST_SESSIONS:
            raise DevToolsError(f"{_MOST_SESSIONS} sessions are open; end one of them.")

    def _check_context(self, method: str, params: Mapping[str, Any]) -> None:
        if params.get("browserContextId") not in (None, "", self._context_id):
            raise CommandRefused(method, "only the session's own browser context is available here")


def check_flat(method: str, params: Mapping[str, Any]) -> None:
    """Raise CommandRefused for the older form of attaching, with messages inside messages."""
    if not params.get("flatten"):
        raise CommandRefused(method, "ask with flatten: true")


def _filter_of(params: Mapping[str, Any]) -> _Filter:
    given = params.get("filter")
    if not isinstance(given, list):
        return _USUAL_FILTER
    entries = cast("list[Any]", given)
    return tuple(cast("dict[str, Any]", e) for e in entries if isinstance(e, dict))


def _passes(entries: _Filter, info: Mapping[str, Any]) -> bool:
    """Whether a target passes a filter; the first entry that fits decides."""
    for entry in entries:
        if entry.get("type") in (None, info["type"]):
            return not entry.get("exclude")
    return False
