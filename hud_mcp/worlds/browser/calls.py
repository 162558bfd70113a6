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
"""The longest time of an action, beside the pauses that it asks for."""

_GONE_BOUND_S = 1.0
_CRASH_BOUND_S = 10.0
_READS = 3


class Calls:
    """The frame of every call on a session's browser, and the reason why none can be made.

    Args:
        slot: The session's context.
        reserve: The reserve of contexts. A call delays its preparing.

    Attributes:
        reserve: The same reserve.
        tabs: The session's pages.
        act_bound_s: The longest time of an action, with this session's latency.
        agent_began: Whether the agent has acted or looked. From then on it answers for its pages.
        broken: The reason why the browser or its page is gone; None while both exist.
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
        """Note that the agent acts or looks: from now on it answers for what its pages do."""
        self.agent_began = True

    def close(self) -> None:
        """Refuse every call from now on: the session's browser is closed."""
        self.closed = True

    def end(self, reason: str) -> None:
        """Fail every call from now on, and those that are being made. The first reason stays.

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
            bound_s: The longest time, beside the time that the machine takes. The default is
                the bound of an action.

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
        # `end` cancels the scope, which swallows the cancellation: the reason is raised here.
        self.check_usable()

    async def ask(self, read: Callable[[Tab], Awaitable[T]]) -> T:
        """Ask the page that is shown, and again if it went to another document meanwhile.

        Raises:
            BrokenByAgent: The page does not answer or loads without end, and the agent began.
            ActionFailed: The same before the agent began, or the page refuses the question.
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
        """Wait for the news of an end, if a call failed because the browser or its page ended.

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
        """Return the error for a page that did not answer.

        It blames the agent if the browser itself still answers.
        """
        text = f"The page did not respond within {bound_s:g} s. Try 'reload' or 'goto'."
        browser = self._slot.context.browser
        answer_s = ANSWER_BOUND_S * self._slot.proxy.patience()
        if browser is None or not self.agent_began or not await answers(browser, answer_s):
            return ActionFailed(text)
        return BrokenByAgent(text)

    def _fault(self, text: str) -> ActionFailed:
        """Return the error for a page's own doing. It blames the agent once the agent began."""
        return BrokenByAgent(text) if self.agent_began else ActionFailed(text)


def _cleaned(exc: Exception) -> str:
    """Return Playwright's message without the name of its call and without its log."""
    first = str(exc).partition("\n")[0]
    return (first.partition(": ")[2] or first)[:300]
