"""The live browser of one session: it acts, it is looked at, and it is closed."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio

from hud_mcp.action import (
    Action,
    ActionEffect,
    ClickAction,
    CustomAction,
    DragAction,
    KeyDownAction,
    KeyUpAction,
    MoveAction,
    Point,
    PositionFetch,
    PressAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
    WaitAction,
)
from hud_mcp.egress import AllowList
from hud_mcp.errors import (
    ActionFailed,
    BrokenByAgent,
    EnvironmentFailed,
    HudMcpError,
    InvalidEnvironment,
    LimitReached,
)
from hud_mcp.observation import Look, Observation, Screenshot
from hud_mcp.worlds.browser.accessibility import read_accessible
from hud_mcp.worlds.browser.commands import Commands, whole
from hud_mcp.worlds.browser.devtools import is_elsewhere, is_end
from hud_mcp.worlds.browser.hands import Hands, gestures, own_pauses_s
from hud_mcp.worlds.browser.hits import ANSWER_BOUND_S, answers, matching, write_down
from hud_mcp.worlds.browser.kept import pack, unpack
from hud_mcp.worlds.browser.options import SlotOptions
from hud_mcp.worlds.browser.picture import take_picture
from hud_mcp.worlds.browser.proxy import SITE_URL
from hud_mcp.worlds.browser.reserve import Reserve, Slot
from hud_mcp.worlds.browser.restore import Restoration
from hud_mcp.worlds.browser.settle import LATENCIES, NAVIGATION_BOUND_S, settle
from hud_mcp.worlds.browser.snapshot import Snapshots
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.tabs import Tabs
from hud_mcp.worlds.browser.target import (
    Place,
    aimed,
    check_point,
    find_element,
    focused_element,
    middle_in_view,
)
from hud_mcp.worlds.browser.text import Reading, changes_between, new_refs, read_page, render
from hud_mcp.worlds.browser.together import together

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

__all__ = ["BrowserWorld"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

ACT_BOUND_S = 20.0
"""How long an action may take beside the pauses that it asks for."""

SNAPSHOT_BOUND_S = 15.0
"""How long pages and Playwright may take to say what they hold."""

VERIFIER_BOUND_S = 40.0
"""How long a page of a grader's own may take to open."""

RESTORE_BOUND_S = 120.0
"""How long all pages may take to come back."""

FIRST_ERROR = 400
"""HTTP statuses from here on say that there is no such page."""

_GONE_BOUND_S = 1.0
_CRASH_BOUND_S = 10.0
_MOST_ELEMENTS = 100
_READS = 3
_HISTORY_BUTTONS = {"back": "back", "forward": "forward"}


class BrowserWorld:
    """One session's browser: isolated pages, their site, and that site's state.

    Made by `Browser.open`. A template gets it by annotating a parameter with this class.

    Attributes:
        state: The backend's state, this session's own; a grader reads it, and may change it.
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
    ) -> None:
        self.state = state
        self._slot = slot
        self._furnish = furnish
        self._reserve = reserve
        self._broken: str | None = None
        self._agent_began = False
        self._refused = False
        self._ended = anyio.Event()
        self._closed = False
        self._goes_offline = goes_offline
        self._act_bound_s = ACT_BOUND_S + LATENCIES * slot.proxy.latency_s
        self._scopes: set[anyio.CancelScope] = set()
        self._tabs = Tabs(slot, self._break)
        self._hands = Hands()
        self._commands = Commands(self._tabs, allow, has_site=slot.proxy.site is not None)
        self._parts = slot.context, self._tabs, self._hands, slot.proxy, state
        self._snapshots = Snapshots(*self._parts)
        self._last: Reading | None = None
        self._reached: Point | None = None
        self._names_targets = names_targets
        self._hit: str | None = None

    @property
    def died(self) -> str | None:
        """Why its browser or its page is gone; None while they are there."""
        return self._broken

    @property
    def page(self) -> "Page":
        """Playwright's page that is shown now, for setup and grading beyond `goto` and `text`."""
        return self._tabs.current.page

    @property
    def url(self) -> str:
        """The address of the page that is shown."""
        return self.page.url

    async def urls(self) -> dict[str, str]:
        """The address of the page that is shown, for whoever asks where the world is."""
        return {"url": self.url}

    @property
    def site_url(self) -> str:
        """The origin of the task's site in this browser, the same in every session."""
        return SITE_URL

    @property
    def site_address(self) -> str:
        """`http://127.0.0.1:PORT`: the same site for programs other than this browser."""
        return self._slot.proxy.address

    @property
    def options(self) -> SlotOptions:
        """What its pages were opened with: their size, scale and colours."""
        return self._slot.options

    def address(self, path_or_url: str) -> str:
        """The absolute address that a path of the site or an allowed URL means.

        Raises:
            ActionFailed: It is not allowed.
        """
        return self._commands.address(path_or_url)

    def written_address(self, url: str) -> str:
        """The absolute address that a task means by what it wrote, whether allowed or not.

        Raises:
            ActionFailed: It is a path, and there is no site.
        """
        return self._commands.written(url)

    async def goto(self, path_or_url: str, *, allow_status: Collection[int] = ()) -> None:
        """Open a path of the site or an allowed URL, and return when it has settled.

        Its document, or the last one that it leads to, is there whole then.

        Args:
            path_or_url: Where to go.
            allow_status: HTTP statuses from 400 on that are what is wanted, such as `(404,)`.

        Raises:
            ActionFailed: It is not allowed, it did not arrive, or it is an error such as 404
                that was not asked for.
            EnvironmentFailed: The browser is gone.
        """
        async with self._working(self._act_bound_s):
            tab = await self._tabs.ensure_open()
            mark = tab.mark()
            address = self.address(path_or_url)
            status = await self._commands.visit(tab.page, address)
            await settle(tab, mark)
            await whole(tab.page, NAVIGATION_BOUND_S * 1000 * tab.patience())
        _check_status(address, status, allow_status)

    async def set_offline(self, *, offline: bool) -> None:
        """Take the network away from this session's pages, or give it back.

        Without it nothing answers, the site neither, and `navigator.onLine` is false. Under a
        context that is `offline`, that begins when the agent first looks or acts, so that setup
        can open pages; after this call it is as was said here.

        Raises:
            EnvironmentFailed: The browser is gone.
        """
        self._goes_offline = False
        async with self._working(self._act_bound_s):
            await self._tabs.set_offline(offline=offline)

    @asynccontextmanager
    async def verifier(
        self,
        path_or_url: str = "/",
        *,
        with_cookies: bool = False,
        allow_status: Collection[int] = (),
    ) -> "AsyncGenerator[Page]":
        """A page of the grader's own, on the same site, where the agent has not been.

        It is in a context of its own: no script, storage, service worker, cache or DevTools
        client of the session is there. Its size, language, hosts and latency are the session's.
        What it shows is what the site gives anybody who asks; where the site repeats what the
        agent wrote as HTML, that is the agent's. It is closed at the end.

        Args:
            path_or_url: What to open; its document is there whole when the page is given.
            with_cookies: Whether it has the session's cookies, such as a login. The agent can
                have written those.
            allow_status: As for `goto`.

        Yields:
            Playwright's page.

        Raises:
            ActionFailed: The address is not allowed, did not arrive, or is an error.
            InvalidEnvironment: A GET of this page changed the site's state, so that looking at
                it is no look.
            EnvironmentFailed: The browser is gone, or is not one of this session's own.
        """
        address = self.address(path_or_url)
        self._check_usable()
        browser = self._slot.context.browser
        if self._furnish is None or browser is None:
            raise EnvironmentFailed(
                "This browser is somebody else's: there is no clean page in it."
            )
        async with self._working(VERIFIER_BOUND_S):
            slot = await Slot.open(browser, self._slot.options)
        try:
            async with self._working(VERIFIER_BOUND_S):
                await self._furnish(slot)
                if with_cookies:
                    cookies: Any = await self._slot.context.cookies()
                    await slot.context.add_cookies(cookies)
                tab = Tab(
                    slot.page,
                    slot.options,
                    slot.proxy.latency_s,
                    slot.cdp,
                    patience=slot.proxy.patience,
                )
                commands = Commands(Tabs(slot, lambda _why: None), AllowList(), has_site=False)
                mark = tab.mark()
                status = await commands.visit(slot.page, address)
                await settle(tab, mark)
                await whole(slot.page, NAVIGATION_BOUND_S * 1000 * tab.patience())
                _check_status(address, status, allow_status)
            yield slot.page
        finally:
            await slot.close()
        # Its own requests alone: the agent's pages ask what they like meanwhile, and before.
        if changed := slot.proxy.changed_by_get:
            raise InvalidEnvironment(
                f"{changed[0]} changed the site's state while a grader looked. Change it with "
                "POST, and answer GET from what is there."
            )

    @property
    def changed_by_get(self) -> tuple[str, ...]:
        """The site's GET requests that changed its state, which only others should."""
        site = self._slot.proxy.site
        return tuple(site.changed_by_get) if site is not None else ()

    async def accessible_text(self) -> str:
        """What the page tells a screen reader: a line for each element, with its role and name.

        Chromium's own tree, of the page and its frames. No script answers in its place; a page
        can still be made to show, and to name, anything, as for `text`.

        Raises:
            BrokenByAgent: The agent's page does not answer.
            EnvironmentFailed: The browser is gone.
        """

        async def read(tab: Tab) -> str:
            return await read_accessible(await tab.cdp())

        return await self._ask_page(read)

    async def text(self) -> str:
        """The words that the page shows, as `innerText` has them.

        They are what the page says of itself. A script of the page writes any there, an agent
        may open any page that has them, and a DevTools client changes both: believe them of what
        an agent should see, and `state` or `verifier` of what it has done.

        Raises:
            BrokenByAgent: The agent's page does not answer.
            EnvironmentFailed: The browser is gone.
        """

        async def read(tab: Tab) -> str:
            return await _words_of(tab.page.main_frame)

        return await self._ask_page(read)

    async def words(self) -> str:
        """The words that the page and its frames show, a frame after the other.

        Read from outside of their scripts, as `text` is.

        Raises:
            ActionFailed: They did not say in time.
            EnvironmentFailed: The browser is gone.
        """

        async def read(tab: Tab) -> str:
            return "\n".join([await _words_of(frame) for frame in tab.page.frames])

        return await self._ask_page(read)

    async def texts_of(self, selector: str) -> list[str]:
        """The text of each element that a selector matches, of the first hundred.

        Read from outside of the page's scripts: what they override deceives nobody.

        Raises:
            ActionFailed: It is no selector, or the page did not answer in time.
            EnvironmentFailed: The browser is gone.
        """

        async def read(tab: Tab) -> list[str]:
            found = await tab.page.query_selector_all(selector)
            return [await _text_of(element) for element in found[:_MOST_ELEMENTS]]

        return await self._ask_page(read)

    async def _ask_page(self, read: Callable[[Tab], Awaitable[T]]) -> T:
        """Ask the page that is shown; again where it went to another document meanwhile.

        Raises:
            BrokenByAgent: It does not answer, or goes on for ever, and the agent has it.
            ActionFailed: The same before the agent began, or it cannot be asked so.
            EnvironmentFailed: The browser is gone.
        """
        from playwright.async_api import Error  # noqa: PLC0415  # loads on use

        async with self._working(self._act_bound_s):
            for _attempt in range(_READS):
                tab = await self._tabs.ensure_open()
                try:
                    return await read(tab)
                except Error as exc:
                    if not is_elsewhere(exc):
                        raise
                await settle(tab, tab.mark())
            raise self._fault("The page loads one document after the other, and cannot be read.")

    async def matching(self, selector: str, targets: Sequence[str]) -> list[bool]:
        """Whether a selector matches each of what actions hit, as their effects say it.

        Raises:
            ActionFailed: It is no selector.
            EnvironmentFailed: The browser is gone.
        """
        browser = self._slot.context.browser
        if not targets or browser is None:
            return [False] * len(targets)
        async with self._working(self._act_bound_s):
            return await matching(browser, selector, targets)

    async def wait_for(self, selector: str, seconds: float) -> None:
        """Wait until an element that a selector matches can be seen.

        Raises:
            ActionFailed: None was to be seen in time.
            EnvironmentFailed: The browser is gone.
        """
        from playwright.async_api import TimeoutError as TooLate  # noqa: PLC0415  # loads on use

        async with self._working(seconds + self._act_bound_s):
            tab = await self._tabs.ensure_open()
            try:
                await tab.page.wait_for_selector(selector, timeout=seconds * 1000)
            except TooLate as exc:
                raise ActionFailed(
                    f"{selector!r} was not to be seen within {seconds:g} s."
                ) from exc

    async def cookies(self) -> list[Any]:
        """Every cookie of this session's pages, as Playwright has them.

        Raises:
            EnvironmentFailed: The browser is gone.
        """
        async with self._working(self._act_bound_s):
            return list(await self._slot.context.cookies())

    async def set_cookies(self, cookies: list[dict[str, Any]] | dict[str, str]) -> None:
        """Set cookies.

        Args:
            cookies: Their values by name, for the page that is shown; or each with its fields,
                as Playwright takes them, where `url` or `domain` is the page's by default.

        Raises:
            ActionFailed: One lacks a name or a value, or there is no page that it could be of.
            EnvironmentFailed: The browser is gone.
        """
        if isinstance(cookies, dict):
            cookies = [{"name": name, "value": value} for name, value in cookies.items()]
        ready = [self._complete_cookie(cookie) for cookie in cookies]
        async with self._working(self._act_bound_s):
            await self._slot.context.add_cookies(ready)

    async def load_html(self, html: str) -> None:
        """Show a document, at an address of its own, and return when it has settled.

        Raises:
            EnvironmentFailed: The browser is gone.
        """
        await self.goto(self._slot.proxy.load(html))

    async def prepare(self, action: Action) -> None:
        """Perform an action for a setup, before the agent begins.

        Raises:
            ActionFailed: As for `act`.
            EnvironmentFailed: The browser is gone.
        """
        async with self._working(self._act_bound_s + own_pauses_s(action)):
            tab = await self._tabs.ensure_open()
            mark = tab.mark()
            await self._perform(tab, action)
            await self._settle(tab, mark, late=False)

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, and return when the page has settled.

        Raises:
            ActionFailed: It was refused, or its target cannot be reached; the text says why.
            EnvironmentFailed: The browser is gone.

        If this call is cancelled, keys and buttons that it held are let go.
        """
        self._refused = True
        async with self._working(self._act_bound_s + own_pauses_s(action)):
            tab = await self._agent_tab()
            self._tabs.forget_shown_notes()
            tab.begin_action()
            mark = tab.mark()
            if (effect := await self._perform_still(action)) is not None:
                self._refused = False
                return effect
            self._reached = self._hit = None
            await self._perform(tab, action)
            await self._settle(tab, mark, late=isinstance(action, ScrollAction))
        self._refused = False
        return ActionEffect(place=self._reached, target=self._hit)

    async def observe(self, look: Look) -> Observation:
        """Return the page in words, in a picture, or both; the reason where it shows neither.

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
        text: str | None = None
        image: Screenshot | None = None

        async def read() -> None:
            nonlocal text
            text = await self._read(tab, look)

        async def picture() -> None:
            nonlocal image
            image = await take_picture(tab, look)

        async with self._working(self._act_bound_s):
            tab = await self._agent_tab()
            parts: list[Callable[[], Awaitable[None]]] = [read] if look.text else []
            if look.image is not None:
                parts.append(picture)
            await together(parts)
        return Observation(text=text, image=image)

    async def snapshot(self) -> bytes:
        """Return what the browser holds, as `Browser` says; change nothing.

        The bytes hold cookies and what was typed, passwords too.

        Raises:
            LimitReached: It holds too much, or pages did not say in time what they hold.
            InvalidEnvironment: The site's state is not JSON.
            EnvironmentFailed: The browser is gone.
        """
        try:
            async with self._working(SNAPSHOT_BOUND_S):
                kept = await self._snapshots.take(self._last)
                copied = dict(self._slot.clipboard.items)
                return await pack(kept.model_copy(update={"clipboard": copied}))
        except ActionFailed as exc:
            raise LimitReached(f"No snapshot: {exc} The session goes on.") from exc

    async def restore(self, data: bytes) -> None:
        """Take up what `snapshot` returned. What could not be brought back is told as notes.

        Raises:
            EnvironmentFailed: The bytes are damaged or of another form, or the browser fails.
        """
        try:
            kept = unpack(data)
            async with self._working(RESTORE_BOUND_S):
                await self._tabs.set_offline(offline=False)  # pages are loaded again
                self._last = await Restoration(kept, *self._parts).run()
                self._snapshots.adopt(kept)
                self._slot.clipboard.items = dict(kept.clipboard)
                await self._tabs.set_offline(offline=kept.offline)
                self._goes_offline = False
        except BaseException as exc:
            reason = str(exc) if isinstance(exc, HudMcpError) else "It was interrupted."
            self._break(f"The browser was not restored: {reason}")
            if isinstance(exc, ActionFailed):
                raise EnvironmentFailed(str(self._broken)) from exc
            raise

    async def close(self) -> None:
        """Close this session's pages and its site; others stay. Closing twice is no error."""
        if self._closed:
            return
        self._closed = True
        self._tabs.detach()
        await self._slot.close()

    async def _agent_tab(self) -> Tab:
        """The page that the agent sees or acts on; from here on offline, where that is so."""
        self._agent_began = True
        if self._goes_offline:
            await self._tabs.set_offline(offline=True)
            self._goes_offline = False
        return await self._tabs.ensure_open()

    async def _perform_still(self, action: Action) -> ActionEffect | None:
        """Perform what leaves the page alone; None where the action is not of that kind."""
        if isinstance(action, WaitAction):
            await anyio.sleep(action.time / 1000)
            return ActionEffect()
        if isinstance(action, ScreenshotFetch):
            return ActionEffect()
        if isinstance(action, PositionFetch):
            at = self._hands.pointer
            return ActionEffect(
                text=f"The pointer is at ({at.x:g}, {at.y:g}).",
                info={"point": {"x": at.x, "y": at.y}},
            )
        return None

    async def _perform(self, tab: Tab, action: Action) -> None:
        match action:
            case ClickAction():
                await self._click(tab, action)
            case TypeAction():
                await self._type(tab, action)
            case ScrollAction():
                await self._scroll(tab, action)
            case MoveAction():
                await self._move(tab, action)
            case PressAction() | KeyDownAction() | KeyUpAction():
                await self._keys(tab, action)
            case CustomAction():
                await self._note_chosen(tab, action)
                await self._commands.run(action.action, action.args or {})
            case DragAction():
                for point in action.path:
                    check_point(tab.page, point)
                await self._note_hit(tab, Place(action.path[0].x, action.path[0].y))
                await self._hands.drag(tab, action)
            case _:
                raise ActionFailed(f"A browser does not take {action.type!r}.")

    async def _click(self, tab: Tab, action: ClickAction) -> None:
        if action.button in _HISTORY_BUTTONS:
            await self._commands.run(action.button, {})
            return
        async with self._hands.holding(tab, action.hold_keys or ()):
            for pause_ms, pauses in gestures(action.pattern or ()):
                await anyio.sleep(pause_ms / 1000)

                async def press(place: Place, pauses: tuple[int, ...] = pauses) -> None:
                    await self._note_hit(tab, place)
                    await self._hands.click(tab, place, action.button, pauses)

                await self._send_to(tab, action, press, kind="press")

    async def _type(self, tab: Tab, action: TypeAction) -> None:
        element = None
        if action.ref is not None or action.selector is not None:
            element = await find_element(tab, action.ref, action.selector)
            self._reached = await middle_in_view(tab.page, element)
        elif action.point is not None:
            place = check_point(tab.page, action.point)
            await self._hands.click(tab, place)
            element = await focused_element(tab.page.main_frame)
        await self._note_focus(tab, element)
        await self._hands.type(tab, action, element)

    async def _scroll(self, tab: Tab, action: ScrollAction) -> None:
        await self._send_to(tab, action, partial(self._hands.point_at, tab), kind="hover")
        await self._hands.scroll(tab, action.scroll or Point(x=0, y=0), action.hold_keys or ())

    async def _move(self, tab: Tab, action: MoveAction) -> None:
        if not await self._send_to(tab, action, partial(self._hands.point_at, tab), kind="hover"):
            at, by = self._hands.pointer, action.offset or Point(x=0, y=0)
            place = check_point(tab.page, Point(x=at.x + by.x, y=at.y + by.y))
            await self._hands.point_at(tab, place)

    async def _keys(self, tab: Tab, action: PressAction | KeyDownAction | KeyUpAction) -> None:
        await self._note_hit(tab, None)
        if isinstance(action, PressAction):
            await self._hands.press(tab, action.keys)
        elif isinstance(action, KeyDownAction):
            await self._hands.key_down(tab, action.keys)
        else:
            await self._hands.key_up(tab, action.keys)

    async def _send_to(
        self,
        tab: Tab,
        action: ClickAction | ScrollAction | MoveAction,
        send: Callable[[Place], Awaitable[None]],
        *,
        kind: Literal["press", "hover"],
    ) -> bool:
        """Send something to an action's target; False where the action names none."""
        if action.point is not None:  # it has no target: it is sent as it is
            await send(check_point(tab.page, action.point))
            return True
        if action.ref is None and action.selector is None:
            return False
        place = await aimed(tab, action.ref, action.selector, send, kind=kind)
        self._reached = None if place.scrolled else Point(x=place.x, y=place.y)
        return True

    async def _note_hit(self, tab: Tab, place: Place | None) -> None:
        """Remember what an action is about to hit: at a place, or what has the focus."""
        if self._names_targets:
            self._hit = await write_down(tab, None if place is None else (place.x, place.y))

    async def _note_focus(self, tab: Tab, element: "ElementHandle | None") -> None:
        """Remember what takes the keys, once an element has been given the focus."""
        from playwright.async_api import Error  # noqa: PLC0415  # loads on use

        if not self._names_targets:
            return
        if element is not None:
            try:
                await element.focus()
            except Error as exc:
                if is_end(exc):
                    raise
                return  # typing into it says what is wrong with it
        await self._note_hit(tab, None)

    async def _note_chosen(self, tab: Tab, action: CustomAction) -> None:
        given = {name: (action.args or {}).get(name) for name in ("ref", "selector")}
        if action.action != "select_option" or not self._names_targets or all(given.values()):
            return
        if any(isinstance(each, str) for each in given.values()):
            await self._note_focus(tab, await find_element(tab, given["ref"], given["selector"]))

    def _complete_cookie(self, cookie: dict[str, Any]) -> Any:
        """A cookie with what it is of.

        Raises:
            ActionFailed: It lacks a name or a value, or there is no page that it could be of.
        """
        if not all(isinstance(cookie.get(name), str) for name in ("name", "value")):
            raise ActionFailed("A cookie has a 'name' and a 'value', which are texts.")
        if cookie.get("url") or cookie.get("domain"):
            return cookie if cookie.get("url") else {"path": "/", **cookie}
        if not self.url.startswith(("http://", "https://")):
            raise ActionFailed(
                f"The cookie {cookie['name']!r} is of no page. Open one first, or give a 'url'."
            )
        return {**cookie, "url": self.url}

    async def _settle(self, tab: Tab, mark: int, *, late: bool) -> None:
        await settle(tab, mark, late=late)
        if tab.expects_popup:
            await self._tabs.popup(tab)
        current = await self._tabs.ensure_open()
        if current is not tab:
            await settle(current, 0)

    async def _read(self, tab: Tab, look: Look) -> str:
        from playwright.async_api import Error  # noqa: PLC0415  # loads on use

        limit, long = look.max_text_chars, self._last is not None and self._last.long
        read = partial(read_page, tab.page, max_chars=limit, long=long)
        try:
            try:
                reading = await read(patience=tab.patience())
            except Error as exc:
                if is_end(exc):
                    raise
                await settle(tab, tab.mark())  # it navigated meanwhile
                reading = await read(patience=tab.patience())
        except TimeoutError:
            return f"Page: {tab.page.url} does not respond. Wait, reload it, or go elsewhere."
        if tab.status is not None and tab.status >= FIRST_ERROR:
            reading = replace(reading, status=tab.status)
        if (refs := tab.refs) is not None:
            lines = tuple(refs.translate(line) for line in reading.lines)
            reading = replace(reading, lines=lines)
        self._snapshots.saw(reading)
        tab.links = reading.links
        notes = self._tabs.notes()
        if self._refused and (told := new_refs(self._last, reading)):
            notes.append(f"Note: {told}")
        if look.changes:
            text = changes_between(self._last, reading, notes, max_chars=limit)
        else:
            text = render(reading, notes, max_chars=limit)
        self._last = reading
        return text

    def _break(self, reason: str) -> None:
        self._broken = self._broken or reason
        self._ended.set()
        for scope in self._scopes:
            scope.cancel()

    @asynccontextmanager
    async def _working(self, bound_s: float) -> AsyncGenerator[None]:
        """Do one call's work: bounded, and over at once when the browser ends.

        Args:
            bound_s: How long it may take beside what the machine takes.

        Raises:
            ActionFailed: Playwright failed at it, or the page did not respond in time.
            EnvironmentFailed: The browser is gone, or the world is closed.
        """
        from playwright.async_api import Error  # noqa: PLC0415  # loads on use

        self._check_usable()
        with self._reserve.busy(), anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                with self._slot.proxy.bound(bound_s) as within:
                    yield
            except TimeoutError:
                raise await self._hung(bound_s) from None
            except Error as exc:
                await self._learn_of_end(exc)
                raise ActionFailed(_cleaned(exc)) from exc
            else:
                if within.cancelled_caught:
                    raise await self._hung(bound_s)
            finally:
                self._scopes.discard(scope)
        self._check_usable()

    def _check_usable(self) -> None:
        if self._closed:
            raise EnvironmentFailed("This browser is closed. Start a new task.")
        if self._broken:
            raise EnvironmentFailed(f"{self._broken} This session cannot go on; start a new task.")

    async def _learn_of_end(self, exc: Exception) -> None:
        """Where a call failed because the browser or its page ended, wait for the news of it.

        Raises:
            BrokenByAgent: The page ended its own process.
            EnvironmentFailed: Something else ended it, or the whole browser.
        """
        patience = self._slot.proxy.patience()
        if is_end(exc):
            news_s = _CRASH_BOUND_S * patience if "crashed" in str(exc) else 0
            if await self._tabs.until_crash(news_s):
                self._check_usable()
                raise self._fault("The page crashed, or was closed because it did not end.")
            with anyio.move_on_after(_GONE_BOUND_S * patience):
                await self._ended.wait()
            if not self._tabs.current.closed:  # the driver died, and nobody is left to tell
                self._break("The browser ended unexpectedly.")
        self._check_usable()

    async def _hung(self, bound_s: float) -> ActionFailed:
        """The error for a page that did not answer: the agent's doing where the browser does."""
        text = f"The page did not respond within {bound_s:g} s. Try 'reload' or 'goto'."
        browser = self._slot.context.browser
        answer_s = ANSWER_BOUND_S * self._slot.proxy.patience()
        if browser is None or not self._agent_began or not await answers(browser, answer_s):
            return ActionFailed(text)
        return BrokenByAgent(text)

    def _fault(self, text: str) -> ActionFailed:
        """An error for what a page does by itself: the agent's doing, once the agent has it."""
        return BrokenByAgent(text) if self._agent_began else ActionFailed(text)


def _check_status(address: str, status: int | None, allowed: Collection[int]) -> None:
    if status is not None and status >= FIRST_ERROR and status not in allowed:
        raise ActionFailed(
            f"{address} answered with status {status}. If that is wanted, say so: "
            f"allow_status=({status},)."
        )


async def _words_of(frame: "Frame") -> str:
    """What a document shows, asked from outside of its scripts; nothing of one that went away."""
    from playwright.async_api import Error  # noqa: PLC0415  # loads on use

    try:
        body = await frame.query_selector("body")
        return await body.inner_text() if body is not None else ""
    except Error as exc:
        if is_end(exc) or not frame.is_detached():
            raise
        return ""


async def _text_of(element: "ElementHandle") -> str:
    from playwright.async_api import Error  # noqa: PLC0415  # loads on use

    try:
        return await element.inner_text()
    except Error as exc:
        if is_end(exc):
            raise
        return await element.text_content() or ""  # of a drawing, or gone meanwhile


def _cleaned(exc: Exception) -> str:
    """Playwright's message without the name of its call and without its log."""
    first = str(exc).partition("\n")[0]
    return (first.partition(": ")[2] or first)[:300]
