"""The uses of a HUD environment's capabilities, and its screens: browser, desktop or robot."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable
from urllib.parse import urlsplit, urlunsplit

import anyio

from hud_mcp.base.egress import AllowList
from hud_mcp.environment.spec import Shared
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.hud.bridge.desktop import DesktopWorld
from hud_mcp.plugins.hud.bridge.vnc import Vnc
from hud_mcp.values.action import Action, ActionEffect
from hud_mcp.values.observation import Look, Observation
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import attach, send
from hud_mcp.worlds.browser.driver import TRACKER_SCRIPT, bring_engines, start_driver
from hud_mcp.worlds.browser.proxy import SessionProxy
from hud_mcp.worlds.browser.refs import Refs
from hud_mcp.worlds.browser.reserve import Reserve
from hud_mcp.worlds.browser.slot import Slot, SlotOptions
from hud_mcp.worlds.browser.world import BrowserWorld

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright


logger = logging.getLogger(__name__)

CONNECT_BOUND_S = 20.0
LEAVE_BOUND_S = 1.0


class RemoteBrowserWorld(BrowserWorld):
    """An attached browser. Made by `attach_browser`."""

    def __init__(self, slot: "_Attached", options: SlotOptions) -> None:
        super().__init__(slot, Reserve(_prepare_nothing), {}, _Everywhere())
        self._options = options
        self._attached = slot

    @property
    def is_open(self) -> bool:
        """Whether the browser and its pages are there."""
        return self._calls.broken is None and self._attached.is_connected

    def remembered(self) -> dict[str, Any]:
        """Return the highest refs, which another process needs because the agent knows them."""
        return {"refs": self._snapshots.refs}

    def remember(self, facts: Mapping[str, Any]) -> None:
        """Refuse the refs that the agent has from another process.

        Playwright numbers elements again for each attachment, so that an old ref would mean another
        element. New refs have higher numbers.
        """
        refs: dict[str, int] = dict(facts.get("refs") or {})
        self._snapshots.resume_refs(refs)
        for tab in self._tabs.all:
            tab.call_refs(Refs(refs, (), ()))


async def attach_browser(
    endpoint: str, shared: Shared, *, target_id: str | None = None
) -> RemoteBrowserWorld:
    """Attach to a running Chromium. If this call fails or is cancelled, no connection stays open.

    Args:
        endpoint: Its DevTools: `http://host:port`, or its `ws://…/devtools/browser/…`.
        shared: The process's shared services.
        target_id: The page to show; the first one by default.

    Raises:
        EnvironmentFailed: Nothing answers, or no browser does, or it lacks the page.
    """
    driver = await shared.get("driver for browsers of others", _Driver.start)
    browser: Browser | None = None
    try:
        with anyio.fail_after(CONNECT_BOUND_S):
            browser = await driver.playwright.chromium.connect_over_cdp(
                endpoint, timeout=CONNECT_BOUND_S * 1000
            )
            if browser.contexts:
                context = browser.contexts[0]
                await bring_engines(context)
            else:
                context = await browser.new_context()
            await context.add_init_script(TRACKER_SCRIPT)
            for page in context.pages:
                await page.evaluate(TRACKER_SCRIPT)
            page = await _find_page(context, target_id)
            cdp = await attach(page, 1.0)
    except BaseException as exc:
        if browser is not None:
            await _detach(browser)
        if isinstance(exc, libraries.PlaywrightError | TimeoutError):
            reason = (str(exc).partition("\n")[0] or "it took too long")[:200]
            raise EnvironmentFailed(f"The browser cannot be attached to: {reason}") from exc
        raise
    options = _options(page)
    slot = _Attached(browser, context, page, cdp, options)
    slot.proxy.keep_time_by(shared.contention)
    return RemoteBrowserWorld(slot, options)


class _Attached(Slot):
    """A context of a foreign browser, which stays open when it is left."""

    def __init__(
        self,
        browser: "Browser",
        context: "BrowserContext",
        page: "Page",
        cdp: "CDPSession",
        options: SlotOptions,
    ) -> None:
        super().__init__(SessionProxy(), context, page, cdp, options)
        self._browser = browser

    @property
    def is_connected(self) -> bool:
        return self._browser.is_connected()

    async def close(self) -> None:
        await _detach(self._browser)
        await self.proxy.close()


class _Driver:
    def __init__(self, playwright: "Playwright") -> None:
        self.playwright = playwright

    @classmethod
    async def start(cls) -> "_Driver":
        return cls(await start_driver())

    async def close(self) -> None:
        with anyio.move_on_after(LEAVE_BOUND_S, shield=True):
            await self.playwright.stop()


class _Everywhere(AllowList):
    """Allows every address: the browser's owner decides where it may go."""

    def allows_url(self, url: str) -> bool:
        return urlsplit(url).scheme in ("http", "https", "ws", "wss")


async def _find_page(context: "BrowserContext", target_id: str | None) -> "Page":
    if target_id is None:
        return context.pages[0] if context.pages else await context.new_page()
    for page in context.pages:
        cdp = await context.new_cdp_session(page)
        info = await send(cdp, "Target.getTargetInfo")
        await cdp.detach()
        if info["targetInfo"]["targetId"] == target_id:
            return page
    raise EnvironmentFailed(f"The browser has no page {target_id!r} any more.")


def _options(page: "Page") -> SlotOptions:
    size = page.viewport_size or {"width": 1280, "height": 800}
    return SlotOptions(
        width=size["width"],
        height=size["height"],
        scale=1.0,
        locale="en-US",
        timezone="UTC",
        color_scheme="light",
        reduced_motion="no-preference",
    )


async def _detach(browser: "Browser") -> None:
    """Close the connection; the browser goes on."""
    try:
        with anyio.move_on_after(LEAVE_BOUND_S, shield=True):
            await browser.close()
    except libraries.PlaywrightError as exc:
        logger.debug("the browser had gone before it was left: %s", exc)


async def _prepare_nothing(_options: SlotOptions) -> Slot:
    raise RuntimeError("a remote browser has no contexts in reserve")


Binding = Mapping[str, Any]
"""A capability as the wire has it: name, protocol, url, params."""
Address = tuple[str, int]
"""The host and the port by which a stream to a capability is reached."""


class Service(Protocol):
    """A connection to a capability."""

    @property
    def is_open(self) -> bool:
        """Whether it can still be used."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...


class Screen(Service, Protocol):
    """The target of `step`, `act` and `screenshot`."""

    async def act(self, action: Action) -> ActionEffect: ...  # noqa: D102

    async def observe(self, look: Look) -> Observation: ...  # noqa: D102

    def screen_size(self) -> tuple[int, int] | None: ...  # noqa: D102


@runtime_checkable
class Remembering(Protocol):
    """A screen with facts that another process needs, because the agent knows them."""

    def remembered(self) -> dict[str, Any]: ...  # noqa: D102

    def remember(self, facts: Mapping[str, Any]) -> None: ...  # noqa: D102


ServiceT = TypeVar("ServiceT", bound=Service)
OpenScreen = Callable[[Address, Binding, Shared], Awaitable[Screen]]


@dataclass(frozen=True)
class Uses:
    """The uses of a HUD environment's capabilities.

    Attributes:
        screen: The name of the capability on which actions work, or None.
        open_screen: Connects to it.
        actions: The action types that it takes.
        custom: The names of custom actions, each with the JSON schema of its arguments.
        shows: Whether it has a picture.
        shells: The names of the shells.
    """

    screen: str | None = None
    open_screen: OpenScreen | None = None
    actions: frozenset[str] = frozenset({"wait"})
    custom: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shows: bool = False
    shells: tuple[str, ...] = ()


def browser_problem(binding: Mapping[str, Any]) -> str | None:
    """Return the reason why a `cdp/1.3` capability cannot be bridged, or None."""
    scheme = urlsplit(str(binding.get("url"))).scheme
    if scheme in ("ws", "http"):
        return None
    return f"{scheme} cannot be carried through the control channel; ws and http can"


async def open_browser(
    address: Address, binding: Mapping[str, Any], shared: Shared
) -> RemoteBrowserWorld:
    """Attach to the browser that a stream leads to, or raise EnvironmentFailed."""
    host, port = address
    target = binding["params"].get("target_id")
    place, _, page = urlsplit(str(binding["url"])).path.partition("/devtools/page/")
    endpoint = f"http://{host}:{port}"
    if "/devtools/browser/" in place:
        endpoint = urlunsplit(("ws", f"{host}:{port}", place, "", ""))
    return await attach_browser(endpoint, shared, target_id=str(target) if target else page or None)


def desktop_problem() -> str | None:
    """Return the reason why an `rfb/3.8` capability cannot be bridged, or None."""
    return None if find_spec("vncdotool") else "it needs `pip install hud-mcp[vnc]`"


async def open_desktop(
    address: Address, binding: Mapping[str, Any], _shared: Shared
) -> DesktopWorld:
    """Connect to a desktop. EnvironmentFailed also tells a refused password."""
    password = binding["params"].get("password")
    return DesktopWorld(await Vnc.connect(*address, password=str(password) if password else None))
