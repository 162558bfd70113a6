"""The live browser of one session: it acts, it is looked at, and it is closed."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.base.egress import AllowList
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, EnvironmentFailed, HudMcpError, LimitReached
from hud_mcp.values.action import Action, ActionEffect, ScrollAction
from hud_mcp.values.observation import Look, Observation
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.calls import Calls
from hud_mcp.worlds.browser.commands import Commands
from hud_mcp.worlds.browser.hands import Hands, own_pauses_s
from hud_mcp.worlds.browser.idle import wait_until_idle
from hud_mcp.worlds.browser.input import Input
from hud_mcp.worlds.browser.page import PageReader, complete_cookie, open_verifier
from hud_mcp.worlds.browser.reserve import Owner, Reserve
from hud_mcp.worlds.browser.restore import Restoration
from hud_mcp.worlds.browser.slot import Slot, SlotOptions
from hud_mcp.worlds.browser.snapshot import Snapshots
from hud_mcp.worlds.browser.snapshot_format import pack, unpack
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.view import View

if TYPE_CHECKING:
    from playwright.async_api import Page

__all__ = ["BrowserWorld"]

logger = logging.getLogger(__name__)

SNAPSHOT_BOUND_S = 15.0
"""The longest time for pages and Playwright to give their content."""

LEAVE_BOUND_S = 3.0

RESTORE_BOUND_S = 120.0
"""The longest time for all pages to be restored."""


class BrowserWorld(PageReader, World):
    """One session's browser: isolated pages, their site, and that site's state.

    `Browser.open` creates it. A template gets it by annotating a parameter with this class.

    Attributes:
        state: The backend's state of this session. A grader may read and change it.
        used_directly: Whether a DevTools client was ever connected to it.
    """

    def __init__(
        self,
        slot: Slot,
        reserve: Reserve,
        state: dict[str, Any],
        allow: AllowList,
        *,
        goes_offline: bool = False,
        names_targets: bool = False,
        furnish: Callable[[Slot], Awaitable[None]] | None = None,
        owner: Owner | None = None,
    ) -> None:
        super().__init__(slot, Calls(slot, reserve))
        self.state = state
        self._furnish = furnish
        self._owner = owner
        self.used_directly = False
        self._goes_offline = goes_offline
        self._tabs = self._calls.tabs
        self._hands = Hands()
        self._commands = Commands(self._tabs, allow, has_site=slot.proxy.site is not None)
        self._input = Input(self._hands, self._commands, names_targets=names_targets)
        self._parts = slot.context, self._tabs, self._hands, slot.proxy, state
        self._snapshots = Snapshots(*self._parts)
        self._view = View(self._tabs, self._snapshots, renumbers=owner is not None)

    def use_directly(self) -> None:
        """Note that a DevTools client is connected. No other session then gets its context."""
        self.used_directly = True

    @property
    def died(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The reason why its browser or page is gone; None while both exist."""
        return self._calls.broken

    async def is_dead(self) -> bool:
        """Whether its browser or page is gone."""
        return self.died is not None

    @property
    def page(self) -> "Page":
        """Playwright's page in view, for setup and grading beyond `goto` and `text`."""
        return self._tabs.current.page

    @property
    def url(self) -> str:
        """The address of the page in view."""
        return self.page.url

    @property
    def status(self) -> int | None:
        """The HTTP status of the page in view; None if it came without one."""
        return self._tabs.current.status

    async def urls(self) -> dict[str, str]:
        """Return the addresses of the world: here that of the page in view."""
        return {"url": self.url}

    @property
    def options(self) -> SlotOptions:
        """The options of its pages: their size, scale and colours."""
        return self._slot.options

    def address(self, path_or_url: str) -> str:
        """Return the absolute address of a path of the site, or of an allowed URL.

        Raises:
            ActionFailed: It is not allowed.
        """
        return self._commands.address(path_or_url)

    def written_address(self, url: str) -> str:
        """Return the absolute address of a task's path or URL, allowed or not.

        Raises:
            ActionFailed: It is a path, but the environment has no site.
        """
        return self._commands.written(url)

    async def goto(self, path_or_url: str, *, allow_status: Collection[int] = ()) -> None:
        """Open a path of the site or an allowed URL, and return when it has settled.

        Its document, or the last one of a redirection, is then complete.

        Args:
            path_or_url: The path or URL.
            allow_status: HTTP statuses from 400 that are no error here, such as `(404,)`.

        Raises:
            ActionFailed: It is not allowed, it did not arrive, or it has an error status that
                `allow_status` does not have.
            EnvironmentFailed: The browser is gone.
        """
        async with self._calls.working():
            tab = await self._tabs.ensure_open()
            await self._commands.arrive(tab, self.address(path_or_url), allow_status)

    async def set_offline(self, *, offline: bool) -> None:
        """Switch the network of this session's pages off, or on again.

        Without it nothing answers, not even the site, and `navigator.onLine` is false. With
        `offline` in the context, setup can open pages. The network goes off when the agent first
        looks or acts. This call overrides that.

        Raises:
            EnvironmentFailed: The browser is gone.
        """
        self._goes_offline = False
        async with self._calls.working():
            await self._tabs.set_offline(offline=offline)

    @asynccontextmanager
    async def verifier(
        self,
        path_or_url: str = "/",
        *,
        with_cookies: bool = False,
        allow_status: Collection[int] = (),
    ) -> "AsyncGenerator[Page]":
        """Open a page of the grader's own on the same site, where the agent has not been.

        It has its own browser context, without scripts, storage, service workers, caches or
        DevTools clients of the session. Its size, language, hosts and latency are the session's.
        It shows what the site sends to any visitor. If the site repeats the agent's text as HTML,
        the agent controls that part. It is closed at the end.

        Args:
            path_or_url: The address to open. Its document is complete when the page is given.
            with_cookies: Whether it has the session's cookies, such as a login. The agent may have
                written those.
            allow_status: HTTP statuses from 400 that are no error here, such as `(404,)`.

        Yields:
            Playwright's page.

        Raises:
            ActionFailed: The address is not allowed, did not arrive, or is an error.
            InvalidEnvironment: A GET of this page changed the site's state, so it cannot verify
                anything.
            EnvironmentFailed: The browser is gone, or does not belong to this session.
        """
        address = self.address(path_or_url)
        opened = open_verifier(
            self._calls,
            self._slot,
            self._furnish,
            address,
            with_cookies=with_cookies,
            allow_status=allow_status,
        )
        async with opened as page:
            yield page

    @property
    def changed_by_get(self) -> tuple[str, ...]:
        """The site's GET requests that changed its state. A GET should change nothing."""
        site = self._slot.proxy.site
        return tuple(site.changed_by_get) if site is not None else ()

    async def cookies(self) -> list[Any]:
        """Return every cookie of this session's pages, as Playwright has them.

        Raises:
            EnvironmentFailed: The browser is gone.
        """
        async with self._calls.working():
            return list(await self._slot.context.cookies())

    async def set_cookies(self, cookies: list[dict[str, Any]] | dict[str, str]) -> None:
        """Set cookies.

        Args:
            cookies: Their values by name, for the page in view; or each with its fields, as
                Playwright takes them. `url` or `domain` is by default that of the page.

        Raises:
            ActionFailed: One lacks a name or a value, or no page is open to take it.
            EnvironmentFailed: The browser is gone.
        """
        if isinstance(cookies, dict):
            cookies = [{"name": name, "value": value} for name, value in cookies.items()]
        ready = [complete_cookie(cookie, self.url) for cookie in cookies]
        async with self._calls.working():
            await self._slot.context.add_cookies(ready)

    async def load_html(self, html: str) -> None:
        """Show a document at its own address, and return when it has settled.

        Raises:
            EnvironmentFailed: The browser is gone.
        """
        await self.goto(self._slot.proxy.load(html))

    async def prepare(self, action: Action) -> None:
        """Perform an action for a setup, before the agent begins.

        Raises:
            ActionFailed: The reasons of `act`.
            EnvironmentFailed: The browser is gone.
        """
        async with self._calls.working(self._calls.act_bound_s + own_pauses_s(action)):
            tab = await self._tabs.ensure_open()
            mark = tab.mark()
            await self._input.perform(tab, action)
            await self._wait_until_idle(tab, mark, late=False)

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, and return when the page has settled.

        Raises:
            ActionFailed: It was refused, or its target cannot be reached. The error says why.
            EnvironmentFailed: The browser is gone.

        If this call is cancelled, it releases the keys and buttons that it held.
        """
        self._view.tell_refs(refused=True)
        async with self._calls.working(self._calls.act_bound_s + own_pauses_s(action)):
            tab = await self._agent_tab()
            self._tabs.forget_shown_notes()
            tab.begin_action()
            mark = tab.mark()
            if (effect := await self._input.perform_still(action)) is not None:
                self._view.tell_refs(refused=False)
                return effect
            with self._tabs.dialogs.acting():
                await self._input.perform(tab, action)
                await self._wait_until_idle(tab, mark, late=isinstance(action, ScrollAction))
        self._view.tell_refs(refused=False)
        return self._input.effect

    async def observe(self, look: Look) -> Observation:
        """Return the page as text, as a picture, or both; or why it shows neither.

        Raises:
            EnvironmentFailed: The browser is gone.
        """
        try:
            try:
                return await self._look_at(look)
            except ActionFailed:
                shown = self._tabs.current
                await self._tabs.until_tidy()
                if not shown.closed:
                    raise
                return await self._look_at(look)  # it crashed meanwhile: at what is left
        except ActionFailed as exc:
            notes = "\n".join(self._tabs.notes())
            text = f"Page: {self.url[:200]} cannot be read: {exc}\n{notes}".rstrip()
            return Observation(text=text if look.text else None)

    async def _look_at(self, look: Look) -> Observation:
        async with self._calls.working():
            return await self._view.look(await self._agent_tab(), look)

    async def snapshot(self) -> bytes:
        """Return the browser's state as `Browser` describes it; change nothing.

        The bytes contain cookies and typed text, passwords too.

        Raises:
            LimitReached: The state is too large, or pages did not answer in time.
            InvalidEnvironment: The site's state is not JSON.
            EnvironmentFailed: The browser is gone.
        """
        try:
            async with self._calls.working(SNAPSHOT_BOUND_S):
                saved = await self._snapshots.take(self._view.last)
                copied = dict(self._slot.clipboard.items)
                return await pack(saved.model_copy(update={"clipboard": copied}))
        except ActionFailed as exc:
            raise LimitReached(f"No snapshot: {exc} The session goes on.") from exc

    async def restore(self, data: bytes) -> None:
        """Restore what `snapshot` returned. Notes name the parts that could not be restored.

        Raises:
            EnvironmentFailed: The bytes are damaged or of another format, or the browser fails.
        """
        try:
            saved = unpack(data)
            async with self._calls.working(RESTORE_BOUND_S):
                await self._tabs.set_offline(offline=False)  # pages are loaded again
                self._view.resume(await Restoration(saved, *self._parts).run())
                self._snapshots.resume(saved)
                self._slot.clipboard.fill(saved.clipboard)
                await self._tabs.set_offline(offline=saved.offline)
                self._goes_offline = False
        except BaseException as exc:
            reason = str(exc) if isinstance(exc, HudMcpError) else "It was interrupted."
            self._calls.end(f"The browser was not restored: {reason}")
            if isinstance(exc, ActionFailed):
                raise EnvironmentFailed(str(self._calls.broken)) from exc
            raise

    async def close(self) -> None:
        """Close this session's pages and its site; others stay. It may be called twice."""
        if self._calls.closed:
            return
        self._calls.close()
        with anyio.CancelScope(shield=True):
            if self._owner is None or not await self._pass_on(self._owner):
                self._tabs.detach()
                await self._slot.close()

    async def _pass_on(self, owner: Owner) -> bool:
        """Leave the cleared context to an owner's next session; return False if that failed."""
        with self._calls.reserve.clearing(self._slot.options, owner):
            passes = await self._leave_clear()
            self._tabs.detach()
            if passes := passes and await self._slot.clear():
                await self._calls.reserve.keep(self._slot, owner)
        return passes

    async def _leave_clear(self) -> bool:
        """Release the keys and the network, which outlive a page.

        It returns False if another session cannot have the context.
        """
        if self._calls.broken or self.used_directly:
            return False
        try:
            with anyio.fail_after(LEAVE_BOUND_S):
                await self._hands.let_go(self._tabs.current)
                await self._tabs.set_offline(offline=False)
        except (libraries.PlaywrightError, TimeoutError):
            return False
        return True

    async def _agent_tab(self) -> Tab:
        """Return the page for the agent, and take the network away if the session goes offline."""
        self._calls.begin_agent()
        if self._goes_offline:
            await self._tabs.set_offline(offline=True)
            self._goes_offline = False
        return await self._tabs.ensure_open()

    async def _wait_until_idle(self, tab: Tab, mark: int, *, late: bool) -> None:
        await wait_until_idle(tab, mark, late=late)
        if tab.expects_popup:
            await self._tabs.popup(tab)
        current = await self._tabs.ensure_open()
        if current is not tab:
            await wait_until_idle(current, 0)
