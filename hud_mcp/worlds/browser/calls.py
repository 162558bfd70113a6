"""The calls on one session's browser: each bounded, and over at once when the browser ends."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

from hud_mcp.errors import ActionFailed, BrokenByAgent, EnvironmentFailed
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import is_elsewhere, is_end
from hud_mcp.worlds.browser.hits import ANSWER_BOUND_S, answers
from hud_mcp.worlds.browser.idle import LATENCIES, wait_until_idle
from hud_mcp.worlds.browser.reserve import Reserve
from hud_mcp.worlds.browser.slot import Slot
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.tabs import Tabs

__all__ = ["ACT_BOUND_S", "Calls"]

T = TypeVar("T")

ACT_BOUND_S = 20.0
"""How long an action may take beside the pauses that it asks for."""

_GONE_BOUND_S = 1.0
_CRASH_BOUND_S = 10.0
_READS = 3


class Calls:
    """What every call on a session's browser is made in, and why none can be made any more.

    Args:
        slot: The session's context.
        reserve: Where contexts are prepared; it waits while a call is made.

    Attributes:
        reserve: The same.
        tabs: The session's pages.
        act_bound_s: How long an action may take, with this session's latency.
        agent_began: Whether the agent has acted or looked; what pages do is its doing from then.
        broken: Why the browser or its page is gone; None while they are there.
        closed: Whether the session's browser was closed.
    """

    def __init__(self, slot: Slot, reserve: Reserve) -> None:
        self.broken: str | None = None
        self.closed = False
        self.agent_began = False
        self.act_bound_s = ACT_BOUND_S + LATENCIES * slot.proxy.latency_s
        self._slot = slot
        self.reserve = reserve
        self._ended = anyio.Event()
        self._scopes: set[anyio.CancelScope] = set()
        self.tabs = Tabs(slot, self.end)

    def begin_agent(self) -> None:
        """Note that the agent acts or looks: what pages do is its doing from now on."""
        self.agent_began = True

    def close(self) -> None:
        """Refuse every call from now on: the session's browser is closed."""
        self.closed = True

    def end(self, reason: str) -> None:
        """Have every call fail from now on, and those that are being made; the first reason stays.

        Args:
            reason: A sentence.
        """
        self.broken = self.broken or reason
        self._ended.set()
        for scope in self._scopes:
            scope.cancel()

    def check_usable(self) -> None:
        """Check that calls can be made.

        Raises:
            EnvironmentFailed: The browser is gone, or closed.
        """
        if self.closed:
            raise EnvironmentFailed("This browser is closed. Start a new task.")
        if self.broken:
            raise EnvironmentFailed(
                f"{self.broken} This session cannot continue; start a new task."
            )

    @asynccontextmanager
    async def working(self, bound_s: float | None = None) -> AsyncGenerator[None]:
        """Do one call's work: bounded, and over at once when the browser ends.

        Args:
            bound_s: How long it may take beside what the machine takes; that of an action if
                left out.

        Raises:
            ActionFailed: Playwright failed at it, or the page did not respond in time.
            EnvironmentFailed: The browser is gone, or the world is closed.
        """
        self.check_usable()
        bound_s = self.act_bound_s if bound_s is None else bound_s
        with self.reserve.busy(), anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                with self._slot.proxy.bound(bound_s) as within:
                    yield
            except TimeoutError:
                raise await self._hung(bound_s) from None
            except libraries.PlaywrightError as exc:
                await self._learn_of_end(exc)
                raise ActionFailed(_cleaned(exc)) from exc
            else:
                if within.cancelled_caught:
                    raise await self._hung(bound_s)
            finally:
                self._scopes.discard(scope)
        self.check_usable()

    async def ask(self, read: Callable[[Tab], Awaitable[T]]) -> T:
        """Ask the page that is shown; again where it went to another document meanwhile.

        Raises:
            BrokenByAgent: It does not answer, or goes on for ever, and the agent has it.
            ActionFailed: The same before the agent began, or it cannot be asked so.
            EnvironmentFailed: The browser is gone.
        """
        async with self.working():
            for _attempt in range(_READS):
                tab = await self.tabs.ensure_open()
                try:
                    return await read(tab)
                except libraries.PlaywrightError as exc:
                    if not is_elsewhere(exc):
                        raise
                await wait_until_idle(tab, tab.mark())
            raise self._fault("The page keeps loading new documents, so it cannot be read.")

    async def _learn_of_end(self, exc: Exception) -> None:
        """Where a call failed because the browser or its page ended, wait for the news of it.

        Raises:
            BrokenByAgent: The page ended its own process.
            EnvironmentFailed: Something else ended it, or the whole browser.
        """
        patience = self._slot.proxy.patience()
        if is_end(exc):
            news_s = _CRASH_BOUND_S * patience if "crashed" in str(exc) else 0
            if await self.tabs.until_crash(news_s):
                self.check_usable()
                raise self._fault(
                    "The page crashed, or the server closed it because a script did not end."
                )
            with anyio.move_on_after(_GONE_BOUND_S * patience):
                await self._ended.wait()
            if not self.tabs.current.closed:  # the driver died, and nobody is left to tell
                self.end("The browser ended unexpectedly.")
        self.check_usable()

    async def _hung(self, bound_s: float) -> ActionFailed:
        """The error for a page that did not answer: the agent's doing where the browser does."""
        text = f"The page did not respond within {bound_s:g} s. Try 'reload' or 'goto'."
        browser = self._slot.context.browser
        answer_s = ANSWER_BOUND_S * self._slot.proxy.patience()
        if browser is None or not self.agent_began or not await answers(browser, answer_s):
            return ActionFailed(text)
        return BrokenByAgent(text)

    def _fault(self, text: str) -> ActionFailed:
        """An error for what a page does by itself: the agent's doing, once the agent has it."""
        return BrokenByAgent(text) if self.agent_began else ActionFailed(text)


def _cleaned(exc: Exception) -> str:
    """Playwright's message without the name of its call and without its log."""
    first = str(exc).partition("\n")[0]
    return (first.partition(": ")[2] or first)[:300]
