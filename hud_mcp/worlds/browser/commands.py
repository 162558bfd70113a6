"""The browser's own actions: going to addresses, through history, between tabs."""

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import urljoin, urlsplit

import anyio
from pydantic import BeforeValidator, Field

from hud_mcp.base.egress import AllowList
from hud_mcp.environment.tool import actions
from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import ActionEffect, CustomAction
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import is_end, send
from hud_mcp.worlds.browser.dialogs import DialogRule
from hud_mcp.worlds.browser.idle import NAVIGATION_BOUND_S, until_whole, wait_until_idle
from hud_mcp.worlds.browser.proxy import LOADED_URL, SITE_HOST, SITE_URL
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.tabs import Tabs
from hud_mcp.worlds.browser.target import find_element

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page, Response

__all__ = ["CUSTOM_ACTIONS", "Commands", "whole"]

FIRST_ERROR = 400
"""The lowest HTTP status that says that there is no such page."""

NAVIGATION_BOUND_MS = 15_000
SELECT_BOUND_MS = 2500

MAX_INTERRUPTIONS = 10
"""The most times that the page to be left may go elsewhere before the action fails."""

Address = Annotated[str, Field(description="a path such as /cart, or an address.")]
TabNumber = Annotated[int, Field(description="which tab, from 1.")]
Ref = Annotated[str, Field(min_length=1, description="the element's ref, or a selector.")]
Selector = Annotated[str, Field(min_length=1, description="its selector, or a ref.")]
Accept = Annotated[bool, Field(description="OK or Cancel.")]
Typed = Annotated[str, Field(description="the text for a prompt.")]


def _as_texts(given: Any) -> Any:
    """Return one option as a list, and numbers as the texts that a page has."""
    listed = cast("list[Any]", given if isinstance(given, list) else [given])
    plain = all(type(each) in (str, int, float) for each in listed)
    return [str(each) for each in listed] if plain else cast("Any", given)


Options = Annotated[list[str], BeforeValidator(_as_texts), Field(description="values or labels.")]

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)
"""The scheme at the start of an address. A host with a port has none."""


class Commands:
    """The custom actions of one session's browser.

    Args:
        tabs: The session's pages.
        allow: The hosts that may be named.
        has_site: Whether the session has a site of its own.

    Attributes:
        note_target: The function that takes the element of `select_option` before the choice.
    """

    note_target: Callable[[Tab, "ElementHandle"], Awaitable[None]] | None = None

    def __init__(self, tabs: Tabs, allow: AllowList, *, has_site: bool) -> None:
        self._tabs = tabs
        self._allow = allow
        self._has_site = has_site

    async def run(self, action: CustomAction) -> ActionEffect:
        """Perform a custom action.

        Raises:
            ActionFailed: It is unknown, its arguments are wrong, or it was refused.
        """
        return await CUSTOM_ACTIONS.perform(self, action)

    def address(self, url: str) -> str:
        """Return the absolute address that a path or a URL means.

        Raises:
            ActionFailed: It is not http or https, or not on the allow-list.
        """
        text = url.strip()
        try:
            absolute = self._absolute(text)
            parts = urlsplit(absolute)
        except ValueError as exc:  # such as a bracket that is not closed
            raise ActionFailed(f"{text[:200]!r} is not an address: {exc}.") from exc
        if parts.scheme not in ("http", "https"):
            raise ActionFailed(
                f"{text[:200]!r} is not an address that this browser can open. Use a path such "
                "as '/' or an http or https URL."
            )
        if self._has_site and parts.scheme == "http" and parts.netloc.lower() == SITE_HOST:
            return absolute
        if parts.scheme == "http" and parts.netloc.lower() == urlsplit(LOADED_URL).netloc:
            return absolute
        if self._allow.allows_url(absolute):
            return absolute
        site = f"the task's site {SITE_URL}" if self._has_site else ""
        hosts = f"the hosts {self._allow}" if self._allow.patterns else ""
        reachable = " and ".join(p for p in (site, hosts) if p) or "nothing"
        raise ActionFailed(f"{absolute[:200]!r} may not be opened. Reachable: {reachable}.")

    def written(self, url: str) -> str:
        """Return the absolute address of a task's text, allowed or not.

        A path belongs to the site. A text without a scheme gets `http://`. With a site, it
        belongs to the site too if no such host is allowed.

        Raises:
            ActionFailed: The text is a path, but the environment has no site.
        """
        text = url.strip()
        if _SCHEME.match(text):
            return text
        if text.startswith("/") and not text.startswith("//"):
            if not self._has_site:
                raise ActionFailed(f"{text[:200]!r} is a path, and this environment has no site.")
            return SITE_URL + text
        named = f"http://{text.lstrip('/')}"
        if self._has_site and not self._allow.allows_url(named):
            return f"{SITE_URL}/{text.lstrip('/')}"
        return named

    async def load(self, tab: Tab, address: str) -> int | None:
        """Open an address that `address` gave, and wait until its document is complete.

        Returns:
            The HTTP status of the document; None if it came without one.

        Raises:
            ActionFailed: The document did not arrive, or not completely. The text says which.
        """
        self._tabs.refused.clear()
        host = urlsplit(address).hostname or ""
        response: Response | None = None
        began_s = anyio.current_time()
        try:
            response = await self._tabs.dialogs.leave(
                lambda: _go(tab.page, address, self._bound_ms())
            )
        except libraries.PlaywrightError as exc:
            if is_end(exc):
                raise
            if "Download is starting" in exc.message:
                return None  # the refusal of the download is told as a note
            reason = exc.message.partition(": ")[2].partition("\n")[0] or exc.message
            reason = self._tabs.refused.get(host, reason)
            raise ActionFailed(f"{address} could not be opened: {reason}") from exc
        if refusal := self._tabs.refused.get(host):
            raise ActionFailed(f"{address} could not be opened: {refusal}")
        await whole(tab, self._bound_ms(), began_s=began_s)
        return response.status if response is not None else None

    async def arrive(self, tab: Tab, address: str, allow_status: Collection[int] = ()) -> None:
        """Open an address that `address` gave, and wait until the page is settled and complete.

        Args:
            tab: The page to use.
            address: The address.
            allow_status: HTTP statuses from 400 that are no error here, such as `(404,)`.

        Raises:
            ActionFailed: The page did not arrive, or has an error status that is not allowed.
        """
        mark = tab.mark()
        status = await self.load(tab, address)
        if not await wait_until_idle(tab, mark):
            await whole(tab, NAVIGATION_BOUND_S * 1000 * tab.patience())
        if status is not None and status >= FIRST_ERROR and status not in allow_status:
            raise ActionFailed(
                f"{address} answered with status {status}. To accept it, pass "
                f"allow_status=({status},)."
            )

    def _bound_ms(self) -> float:
        """Return the longest time of a navigation on a machine as busy as now."""
        return NAVIGATION_BOUND_MS * self._tabs.current.patience()

    def _absolute(self, text: str) -> str:
        if not text:
            raise ActionFailed("'goto' needs a url: a path such as '/' or an http(s) URL.")
        if urlsplit(text).scheme and not text.split(":", 1)[1].split("/", 1)[0].isdigit():
            return text
        if not text.startswith("/") and self._allow.allows_url(f"https://{text}"):
            return f"https://{text}"
        here = self._tabs.current.page.url
        on_site = urlsplit(here).netloc == SITE_HOST
        return urljoin(here if on_site or not self._has_site else SITE_URL + "/", text)

    async def goto(self, url: Address) -> None:
        """Open an address."""
        address = self.address(url)
        await self._tabs.replace_hung()  # such a page could not be left otherwise
        await self.load(self._tabs.current, address)

    async def back(self) -> None:
        """Go back."""
        await self._travel(-1, "There is no earlier page in this tab.")

    async def forward(self) -> None:
        """Go forward."""
        await self._travel(1, "There is no later page in this tab.")

    async def _travel(self, step: int, nowhere: str) -> None:
        tab = self._tabs.current
        cdp = await tab.cdp()
        history = await send(cdp, "Page.getNavigationHistory")
        index = history["currentIndex"] + step
        entries = history["entries"]
        # The blank page that every tab starts with is no page that the agent has seen.
        if not 0 <= index < len(entries) or entries[index]["url"] == "about:blank":
            raise ActionFailed(nowhere)
        move = tab.page.go_back if step < 0 else tab.page.go_forward
        await self._tabs.dialogs.leave(lambda: move(wait_until="commit", timeout=self._bound_ms()))
        await whole(tab, self._bound_ms())

    async def reload(self) -> None:
        """Load it again."""
        url, tab = self._tabs.current.page.url, self._tabs.current
        await self._tabs.replace_hung()
        if self._tabs.current is not tab:
            await self.load(self._tabs.current, url)
            return
        again = tab.page.reload
        await self._tabs.dialogs.leave(lambda: again(wait_until="commit", timeout=self._bound_ms()))
        await whole(tab, self._bound_ms())

    async def switch_tab(self, index: TabNumber) -> None:
        """Show a tab."""
        count = len(self._tabs.all)
        if not 1 <= index <= count:
            raise ActionFailed(f"There is no tab {index}. There are {count}, from 1.")
        await self._tabs.switch(index)

    async def close_tab(self) -> None:
        """Close this tab."""
        await self._tabs.close_current()

    async def select_option(
        self, values: Options, ref: Ref | None = None, selector: Selector | None = None
    ) -> None:
        """Choose options of a select."""
        if (ref is None) == (selector is None):
            raise ActionFailed("'select_option' needs a ref or a selector, and values.")
        tab = self._tabs.current
        element = await find_element(tab, ref, selector)
        await _check_options(element, ref or selector, values)
        if self.note_target is not None:
            await self.note_target(tab, element)
        try:
            await element.select_option(values, timeout=SELECT_BOUND_MS * tab.patience())
        except libraries.PlaywrightError as exc:
            called = ref or selector
            raise ActionFailed(f"{called!r} is disabled or hidden: it was not set.") from exc

    async def answer_dialogs(self, accept: Accept = True, text: Typed | None = None) -> None:  # noqa: FBT002  # an agent's arguments come by name
        """Set how later dialogs are answered, and pages that ask before they are left."""
        self._tabs.dialogs.answer_by(DialogRule(accept=accept, text=text))


CUSTOM_ACTIONS = actions(
    Commands.goto,
    Commands.back,
    Commands.forward,
    Commands.reload,
    Commands.switch_tab,
    Commands.close_tab,
    Commands.select_option,
    Commands.answer_dialogs,
)
"""The custom actions of a browser."""


async def _check_options(
    element: "ElementHandle", called: str | None, wanted: Sequence[str]
) -> None:
    """Check that a `<select>` has these options, and takes that many.

    Raises:
        ActionFailed: It does not, or the element is no `<select>`.
    """
    options: list[list[str]] | None = await element.evaluate(
        "e => e.tagName === 'SELECT' ? [...e.options].map(o => [o.label, o.value]) : null"
    )
    multiple: bool = await element.evaluate("e => !!e.multiple")
    if options is None:
        raise ActionFailed(f"{called!r} is no <select>. Click it, and then what it opens.")
    unknown = [v for v in wanted if not any(v in option for option in options)]
    if unknown:
        labels = [label for label, _value in options[:50]]
        raise ActionFailed(f"{called!r} has no option {unknown[0]!r}. It has {labels}.")
    if len(wanted) > 1 and not multiple:
        raise ActionFailed(f"{called!r} takes one option, and {wanted} are {len(wanted)}.")


async def _go(page: "Page", address: str, bound_ms: float) -> "Response | None":
    """Open an address, and try again if the page that is left goes elsewhere in that moment.

    Raises:
        Error: Playwright's.
    """
    for _attempt in range(MAX_INTERRUPTIONS):
        try:
            return await page.goto(address, wait_until="commit", timeout=bound_ms)
        except libraries.PlaywrightError as exc:
            if "interrupted by another navigation" not in exc.message:
                raise
    return await page.goto(address, wait_until="commit", timeout=bound_ms)


async def whole(tab: Tab, bound_ms: float, *, began_s: float | None = None) -> None:
    """Wait until a page's document has been read to its end. Scripts and looks expect that.

    Args:
        tab: The page.
        bound_ms: The longest wait.
        began_s: The start of the wait, by the loop's clock. The default is now.

    Raises:
        ActionFailed: The document is still on its way. The text says after which time.
    """
    taken_s = 0.0 if began_s is None else anyio.current_time() - began_s
    try:
        if await until_whole(tab, bound_ms / 1000 - taken_s):
            return
    except libraries.PlaywrightError as exc:
        if is_end(exc):
            raise
        return
    raise ActionFailed(
        f"{tab.page.url} is still loading after {bound_ms / 1000:.3g} s: a part of its "
        "document is there. Wait, and look again."
    )
