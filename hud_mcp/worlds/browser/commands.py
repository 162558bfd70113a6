"""The browser's own actions: going to addresses, through history, between tabs."""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import anyio

from hud_mcp.base.egress import AllowList
from hud_mcp.errors import ActionFailed, did_you_mean
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import is_end, send
from hud_mcp.worlds.browser.dialogs import DialogRule
from hud_mcp.worlds.browser.idle import NAVIGATION_BOUND_S, until_whole, wait_until_idle
from hud_mcp.worlds.browser.proxy import LOADED_URL, SITE_HOST, SITE_URL
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.tabs import Tabs
from hud_mcp.worlds.browser.target import find_element

if TYPE_CHECKING:
    from playwright.async_api import Page, Response

__all__ = ["COMMANDS", "SCHEMAS", "Commands", "whole"]

FIRST_ERROR = 400
"""HTTP statuses from here on say that there is no such page."""

NAVIGATION_BOUND_MS = 15_000
SELECT_BOUND_MS = 2500

MAX_INTERRUPTIONS = 10
"""How often the page that is left may go elsewhere before that is the answer."""

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "goto": ("url",),
    "back": (),
    "forward": (),
    "reload": (),
    "switch_tab": ("index",),
    "close_tab": (),
    "select_option": ("ref", "selector", "values"),
    "answer_dialogs": ("accept", "text"),
}
"""Every custom action with its arguments."""

_SAID = {
    "goto": "open an address.",
    "back": "go back in the tab's history.",
    "forward": "go forward in it.",
    "reload": "load the page again.",
    "switch_tab": "show another tab.",
    "close_tab": "close the tab that is shown.",
    "select_option": "choose options of a select element.",
    "answer_dialogs": "say how dialogs are answered from now on, and a page that asks whether to "
    "leave it.",
}
_ARGUMENTS: Mapping[str, dict[str, Any]] = {
    "url": {"type": "string", "description": "a path such as /cart, or a whole address."},
    "index": {"type": "integer", "description": "which tab, from 1."},
    "ref": {
        "type": "string",
        "minLength": 1,
        "description": "the element's ref of the last text, or a selector.",
    },
    "selector": {
        "type": "string",
        "minLength": 1,
        "description": "a CSS or Playwright selector, or a ref.",
    },
    "values": {
        "type": "array",
        "items": {"type": "string"},
        "description": "the values or the labels.",
    },
    "accept": {"type": "boolean", "description": "OK or Cancel."},
    "text": {"type": "string", "description": "what is typed into a prompt."},
}

SCHEMAS: Mapping[str, dict[str, Any]] = {
    name: {
        "type": "object",
        "description": _SAID[name],
        "properties": {each: _ARGUMENTS[each] for each in arguments},
        "additionalProperties": False,
    }
    for name, arguments in COMMANDS.items()
}
"""Every custom action: the JSON schema of its arguments."""


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)
"""What an address begins with; a host with a port has none."""


class Commands:
    """What custom actions do.

    Args:
        tabs: The session's pages.
        allow: Which hosts may be named.
        has_site: Whether the session has a site of its own.
    """

    def __init__(self, tabs: Tabs, allow: AllowList, *, has_site: bool) -> None:
        self._tabs = tabs
        self._allow = allow
        self._has_site = has_site

    async def run(self, name: str, args: Mapping[str, Any]) -> None:
        """Run one by its name.

        Raises:
            ActionFailed: There is none of that name, or its arguments are wrong.
        """
        if name not in COMMANDS:
            known = ", ".join(_signature(n) for n in COMMANDS)
            hint = did_you_mean(name, COMMANDS)
            raise ActionFailed(f"There is no custom action {name!r}.{hint} There are: {known}.")
        unknown = sorted(set(args) - set(COMMANDS[name]))
        if unknown:
            raise ActionFailed(
                f"{name!r} takes no {unknown[0]!r}. It is used as {_signature(name)}."
            )
        command: Callable[..., Awaitable[None]] = getattr(self, f"_{name}")
        try:
            await command(**args)
        except TypeError as exc:
            if "required positional argument" not in str(exc):
                raise
            raise ActionFailed(f"Arguments are missing: use {_signature(name)}.") from exc

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
        """The absolute address that a task means by what it wrote, allowed or not.

        A path is the site's; `http://` is added where there is no scheme, unless there is a site
        and no such host is allowed: then it is the site's too.

        Raises:
            ActionFailed: It is a path, but the environment has no site.
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
        """Open an address that `address` gave, until its document is there whole.

        Returns:
            The HTTP status that it came with; None where it came without.

        Raises:
            ActionFailed: It did not arrive, or not whole; the text says which.
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
        """Open an address that `address` gave, until the page has settled and is there whole.

        Args:
            tab: Where.
            address: What.
            allow_status: HTTP statuses from 400 that are no error here, such as `(404,)`.

        Raises:
            ActionFailed: It did not arrive, or it is an error that was not asked for.
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
        """How long a navigation may take now, as the machine is busy."""
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

    async def _goto(self, url: str) -> None:
        address = self.address(str(url))
        await self._tabs.replace_hung()  # such a page could not be left otherwise
        await self.load(self._tabs.current, address)

    async def _back(self) -> None:
        await self._travel(-1, "There is no earlier page in this tab.")

    async def _forward(self) -> None:
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

    async def _reload(self) -> None:
        url, tab = self._tabs.current.page.url, self._tabs.current
        await self._tabs.replace_hung()
        if self._tabs.current is not tab:
            await self.load(self._tabs.current, url)
            return
        again = tab.page.reload
        await self._tabs.dialogs.leave(lambda: again(wait_until="commit", timeout=self._bound_ms()))
        await whole(tab, self._bound_ms())

    async def _switch_tab(self, index: int) -> None:
        count = len(self._tabs.all)
        if not isinstance(index, int) or not 1 <= index <= count:  # pyright: ignore[reportUnnecessaryIsInstance]  # an agent's value
            raise ActionFailed(f"There is no tab {index!r}. There are {count}, from 1.")
        await self._tabs.switch(index)

    async def _close_tab(self) -> None:
        await self._tabs.close_current()

    async def _answer_dialogs(self, accept: bool = True, text: str | None = None) -> None:  # noqa: FBT001, FBT002  # an agent's arguments come by name
        if not isinstance(accept, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # an agent's value
            raise ActionFailed(f"'accept' is true or false, and not {accept!r}.")
        self._tabs.dialogs.answer_by(DialogRule(accept=accept, text=text))

    async def _select_option(
        self, values: Any, ref: str | None = None, selector: str | None = None
    ) -> None:
        if (ref is None) == (selector is None):
            raise ActionFailed("'select_option' needs a ref or a selector, and values.")
        wanted = [str(v) for v in (values if isinstance(values, list) else [values])]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # JSON
        tab = self._tabs.current
        element = await find_element(tab, ref, selector)
        options: list[list[str]] | None = await element.evaluate(
            "e => e.tagName === 'SELECT' ? [...e.options].map(o => [o.label, o.value]) : null"
        )
        multiple: bool = await element.evaluate("e => !!e.multiple")
        called = ref or selector
        if options is None:
            raise ActionFailed(f"{called!r} is no <select>. Click it, and then what it opens.")
        unknown = [v for v in wanted if not any(v in option for option in options)]
        if unknown:
            labels = [label for label, _value in options[:50]]
            raise ActionFailed(f"{called!r} has no option {unknown[0]!r}. It has {labels}.")
        if len(wanted) > 1 and not multiple:
            raise ActionFailed(f"{called!r} takes one option, and {wanted} are {len(wanted)}.")
        try:
            await element.select_option(wanted, timeout=SELECT_BOUND_MS * tab.patience())
        except libraries.PlaywrightError as exc:
            raise ActionFailed(f"{called!r} is disabled or hidden: it was not set.") from exc


async def _go(page: "Page", address: str, bound_ms: float) -> "Response | None":
    """Open an address, again where the page that is left goes elsewhere in that moment.

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
    """Wait until a page's document has been read to its end, as scripts and looks expect it.

    Args:
        tab: Where.
        bound_ms: How long it may take at most.
        began_s: Since when, by the loop's clock; from now on by default.

    Raises:
        ActionFailed: It is still on its way; the text says after which time.
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


def _signature(name: str) -> str:
    return f"{name} {{{', '.join(COMMANDS[name])}}}" if COMMANDS[name] else name
