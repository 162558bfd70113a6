"""The declaration of a browser: its site, its hosts, its options."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from hud_mcp.base.egress import AllowList
from hud_mcp.environment.spec import Opening, WorldSpec
from hud_mcp.errors import ActionFailed, EnvironmentFailed, InvalidEnvironment, did_you_mean
from hud_mcp.values.context import ContextFeature, ContextSpace
from hud_mcp.values.needs import Needs
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.chromium import Chromium, find_chromium
from hud_mcp.worlds.browser.commands import CUSTOM_ACTIONS, FIRST_ERROR
from hud_mcp.worlds.browser.devtools import is_end
from hud_mcp.worlds.browser.functions import BROWSER_FUNCTIONS
from hud_mcp.worlds.browser.input import Input
from hud_mcp.worlds.browser.proxy import VISIT
from hud_mcp.worlds.browser.reserve import Owner
from hud_mcp.worlds.browser.site import Backend, Site
from hud_mcp.worlds.browser.slot import Slot, SlotOptions, slow_down
from hud_mcp.worlds.browser.world import BrowserWorld

__all__ = ["Browser", "InitialState"]

InitialState = Mapping[str, Any] | Callable[[Opening], dict[str, Any]]
"""A site's state at the start: a dict, copied for each session, or a function of the opening."""

_ERRORS = range(FIRST_ERROR, 600)
"""The HTTP statuses that say that there is no such page."""

_SEEDED = Path(__file__).with_name("seeded.js").read_text().replace("__VISIT__", VISIT)


class Browser(WorldSpec):
    """Declares that an environment's world is a browser, with its own site or on the web.

    Sessions are isolated in cookies, storage, caches, network, clipboard and state. Chromium has
    one clipboard for all of them. So each session has its own instead, of text and HTML. Keys,
    `execCommand` and `navigator.clipboard` use it, and the middle button pastes nothing. A page in
    view may write to it; to read it, a script asks in a dialog. Its paste events are not
    `isTrusted`. Two agents that both evade it over DevTools could still exchange
    text; one agent alone gains nothing.

    A session that outlives its server comes back in one of two ways.

    *Replay*, if `replayable`: the server repeats its actions and looks from the start. This
    restores everything, including the memory of scripts and the agent's refs. Pages then draw the
    same random numbers (`Math.random`, `crypto.getRandomValues`, `crypto.randomUUID`), from the
    session's seed or from 0. Each visit to a page draws others. The clock is the real one. If a
    page shows the time, or a backend calls other servers, the author must declare
    `replayable=False`.

    *A snapshot*, otherwise: the server loads pages again, and restores the browser's state of them.

    A snapshot has cookies, and localStorage, sessionStorage and IndexedDB by origin. It has the
    open pages, their order, the shown page, and up to 20 addresses of each history. It has unsent
    fields of pages and frames: text, passwords, choices, checks and editable text. It has the
    focus, the caret and scroll positions. It has the pointer, held keys, the clipboard, the rule
    for dialogs and unread notes. It has the site's state, which must be JSON. Refs of the last text
    stay valid if the page still reads the same; otherwise the agent must look again. A snapshot has
    at most five million characters and 40 pages. The store has it unencrypted, passwords too, and
    keeps it after the answer for grading again.

    The context says how a session's browser differs from others. `font_scale` is Chromium's own
    setting. It scales text in rem, em, percent or without a size, in pages and frames of the same
    host. `latency_ms` delays each request of the site and of allowed hosts, and actions wait
    accordingly. It does not slow open sockets. With `offline`, the network goes off when the agent
    first looks or acts. `BrowserWorld.set_offline` switches it. Restoring a snapshot loads its
    pages with the network, and then switches it off again.

    A snapshot lacks the memory of scripts, their changes to the page, `history.state`, `opener` and
    window names. It lacks running requests, timers and sockets. It lacks chosen files, and the
    undetermined state of fields. It lacks service workers, caches and the origin's private file
    system. It lacks pages without an address (`blob:`, or written by scripts). It loads a page that
    followed a posted form with GET. If a tab has left an origin, its sessionStorage is that of the
    snapshot before. A page that no longer loads shows its error, and a note says so.

    Args:
        site: A folder to serve at `http://site.localhost/`, from the environment's folder.
        backend: Answers requests for paths under `/api/` with the session's state.
        state: The state at the start.
        allow: Hosts that pages may reach beside the site: `example.com`, `*.example.com`,
            `example.com:443`, or `*` for the public web. Everything else is refused, and so is
            a name that leads to an address that `AllowList` does not open.
        viewport: Width and height of a page in CSS pixels, unless the context sets them.
        executable: The path of a Chromium; else `HUD_MCP_CHROMIUM`, else the installed one.
        start: The session's first page: a path, a URL, or None for a blank page.
        replayable: Whether the same actions and looks give the same state again. By default, they
            do for an own site without other hosts.
        arguments: More command line arguments for Chromium.
        tasks_open_hosts: Whether a task's row may open more hosts: by `goto` in its `setup`, and
            by `allow` in its `config`. Sessions of such rows come back from a snapshot.
        reuses_contexts: Whether a session may reuse the page of an ended session of the same
            principal. Everything that the ended session left is cleared. This costs a third of a
            new page. Use it for a site without other hosts, and only if templates add nothing to
            the page, such as routes. Callers without a name are one principal. Pages cache the
            site's scripts, styles, pictures and fonts for a minute.

    Raises:
        InvalidEnvironment: An option cannot work.
    """

    name = "browser"
    needs = Needs(cpus=0.25, memory_mb=200, browser=True)
    world_type = BrowserWorld
    actions = Input.types
    has_screen = True
    text_form = 3
    custom_actions = CUSTOM_ACTIONS
    functions = BROWSER_FUNCTIONS
    endpoints = ("cdp/1.3",)

    def __init__(
        self,
        site: str | Path | None = None,
        *,
        backend: Backend | None = None,
        state: InitialState | None = None,
        allow: Iterable[str] = (),
        viewport: tuple[int, int] = (1280, 800),
        executable: str | Path | None = None,
        start: str | None = "/",
        replayable: bool | None = None,
        arguments: Iterable[str] = (),
        tasks_open_hosts: bool = False,
        reuses_contexts: bool = False,
    ) -> None:
        if state is not None and backend is None:
            raise InvalidEnvironment("Browser: `state` belongs to a `backend`, and there is none.")
        self._site = Path(site) if site is not None else None
        self._backend = backend
        self._state: InitialState = state if state is not None else dict[str, Any]()
        self._allow = AllowList(allow)
        self._executable = executable
        self._arguments = tuple(arguments)
        self._has_site = site is not None or backend is not None
        own_start = start is not None and start.startswith("/")
        self._start = None if own_start and not self._has_site else start
        self.replayable = not self._allow.patterns if replayable is None else replayable
        self._replays_always = replayable is not None
        self._tasks_open_hosts = tasks_open_hosts
        self._reuses_contexts = reuses_contexts
        self.open_world = bool(self._allow.patterns) or tasks_open_hosts or not self._has_site
        if reuses_contexts and (self._allow.patterns or tasks_open_hosts):
            raise InvalidEnvironment(
                "Browser: `reuses_contexts` is for a site alone: leave out `allow` and "
                "`tasks_open_hosts`, or it."
            )
        # Size, scale, language, clock and colours of a page, and how far away the network is.
        self.context_space = _context_space(viewport)

    @property
    def has_site(self) -> bool:
        """Whether its pages have a site of their own."""
        return self._has_site

    def replays_with(self, hosts: Sequence[str]) -> bool:
        """Whether a session is replayable if its task's own row names these hosts."""
        opens_more = bool(hosts) and self._tasks_open_hosts
        return self.replayable and (self._replays_always or not opens_more)

    async def open(self, opening: Opening) -> BrowserWorld:
        """Open a session's browser, on its start page.

        Raises:
            EnvironmentFailed: There is no Chromium, it does not start, the site's folder
                is not there, or the start page does not load.

        If this call fails or is cancelled, nothing of this session stays open.
        """
        root = self._root(opening)
        context = self.context_space.fill(opening.context)
        allow = self._reachable(opening)
        replayable = self.replays_with(opening.allow)
        chromium, slot = await self._take(opening, _slot_options(context))
        latency_s = float(context["latency_ms"]) / 1000
        try:
            state = self._initial_state(opening)
            caches = self._reuses_contexts
            log = opening.log
            site = Site(root, self._backend, state, log, caches=caches) if self._has_site else None
            seed = (
                (opening.seed or 0) & 0xFFFFFFFF if opening.seed is not None or replayable else None
            )

            async def furnish(slot: Slot) -> None:
                """Give a context the session's site, hosts, latency and scripts, not its past."""
                slot.proxy.serve(site, latency_s=latency_s)
                slot.proxy.keep_time_by(opening.shared.contention)
                slot.proxy.open_hosts(allow)
                if latency_s and allow.patterns:
                    await slow_down(slot.context, latency_s)
                crypto = "true" if replayable else "false"
                scripts = [] if seed is None else [f"({_SEEDED})({seed}, {crypto})"]
                await slot.run_scripts(scripts)

            await furnish(slot)
            world = BrowserWorld(
                slot,
                chromium.reserve,
                state,
                allow,
                goes_offline=bool(context["offline"]),
                names_targets=opening.names_targets,
                furnish=furnish,
                owner=self._owner(opening),
            )
            if self._start is not None:
                await self._open_start(world, self._start, root)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await slot.close()
            raise
        return world

    def files(self, folder: Path) -> list[Path]:
        """Return the site's files, which the environment's digest covers beside its source.

        Args:
            folder: The folder of the environment's file.
        """
        if self._site is None:
            return []
        return [p for p in (folder / self._site).rglob("*") if p.is_file()]

    def site_paths(self, folder: Path) -> list[str]:
        """Return the paths at which its site serves those files.

        Args:
            folder: The folder of the environment's file.
        """
        found = self.files(folder)
        return [f"/{p.relative_to(folder / (self._site or '')).as_posix()}" for p in found]

    def check(self, folder: Path) -> None:
        """Refuse a site whose folder is missing, before anything is opened.

        Args:
            folder: The folder of the environment's file.

        Raises:
            InvalidEnvironment: The folder is missing. The error names it, and a close one.
        """
        if self._site is None or (folder / self._site).is_dir():
            return
        beside = [p.name for p in folder.iterdir() if p.is_dir()] if folder.is_dir() else []
        hint = did_you_mean(Path(self._site).name, beside)
        raise InvalidEnvironment(
            f"Browser(site={str(self._site)!r}): there is no such folder beside the environment's "
            f"file.{hint}"
        )

    def _reachable(self, opening: Opening) -> AllowList:
        """Return the hosts that a session may reach beside its site.

        Raises:
            EnvironmentFailed: The row names something that is no host, or a forbidden host.
        """
        if not self._tasks_open_hosts or not opening.allow:
            return self._allow
        return self._allow.with_row(
            opening.allow, is_trusted=opening.is_trusted, local=opening.local_hosts
        )

    async def _open_start(self, world: BrowserWorld, address: str, root: Path | None) -> None:
        try:
            await world.goto(address, allow_status=_ERRORS)
        except ActionFailed as exc:
            raise EnvironmentFailed(f"The start page did not open: {exc}") from exc
        if (status := world.status) in _ERRORS:
            page = _first_page(root)
            given = f"start='/{page}', or " if page else ""
            raise EnvironmentFailed(
                f"Browser: the start page {address!r} answered with status {status}. Give "
                f"{given}start=None, which shows an empty page."
            )

    def _owner(self, opening: Opening) -> Owner | None:
        """Return the owner who may get this session's context later; None for nobody."""
        return (self, opening.principal) if self._reuses_contexts else None

    def _root(self, opening: Opening) -> Path | None:
        if self._site is None:
            return None
        root = opening.folder / self._site
        if not root.is_dir():  # not its path: this text reaches the agent
            raise EnvironmentFailed(f"The site's folder {str(self._site)!r} is not there.")
        return root

    def _initial_state(self, opening: Opening) -> dict[str, Any]:
        if callable(self._state):
            return self._state(opening)
        return copy.deepcopy(dict(self._state))

    async def _take(self, opening: Opening, options: SlotOptions) -> tuple[Chromium, Slot]:
        """Take a context of the process's browser, or of a new one if the last one died."""
        executable = find_chromium(self._executable)
        key = f"browser {executable} {self._arguments}"
        failure: Exception | None = None
        for _attempt in range(3):
            chromium = await opening.shared.get(
                key, lambda: Chromium.launch(executable, self._arguments)
            )
            if chromium.alive:
                try:
                    return chromium, await chromium.reserve.take(options, self._owner(opening))
                except (libraries.PlaywrightError, OSError, TimeoutError) as exc:
                    failure = exc
                    if chromium.alive and not is_end(exc):
                        break
            opening.shared.forget(key, chromium)
            await chromium.close()
        raise EnvironmentFailed(f"The browser could not open a page: {failure}") from failure


def _first_page(root: Path | None) -> str | None:
    return min((p.name for p in root.glob("*.htm*")), default=None) if root is not None else None


def _slot_options(context: Mapping[str, Any]) -> SlotOptions:
    return SlotOptions(
        width=int(context["viewport_width"]),
        height=int(context["viewport_height"]),
        scale=float(context["device_scale_factor"]),
        locale=str(context["locale"]),
        timezone=str(context["timezone"]),
        color_scheme=str(context["color_scheme"]),
        reduced_motion=str(context["reduced_motion"]),
        font_scale=float(context["font_scale"]),
    )


def _context_space(viewport: tuple[int, int]) -> ContextSpace:
    feature = ContextFeature
    return ContextSpace(
        [
            feature(
                name="viewport_width",
                default=viewport[0],
                lower=200,
                upper=3840,
                description="Width of a page in CSS pixels.",
            ),
            feature(
                name="viewport_height",
                default=viewport[1],
                lower=200,
                upper=2160,
                description="Height of a page in CSS pixels.",
            ),
            feature(
                name="device_scale_factor",
                default=1.0,
                lower=0.5,
                upper=4,
                description="Pixels of the screen for each CSS pixel.",
            ),
            feature(name="locale", default="en-US", description="Language tag, such as de-DE."),
            feature(name="timezone", default="UTC", description="Such as Europe/Berlin."),
            feature(name="color_scheme", default="light", choices=("light", "dark")),
            feature(
                name="reduced_motion",
                default="reduce",
                choices=("reduce", "no-preference"),
                description="Whether pages are asked to do without animations.",
            ),
            feature(
                name="font_scale",
                default=1.0,
                lower=0.5,
                upper=3,
                description="What the browser's own size of text, 16 px, is multiplied by; text "
                "that a page sizes in px keeps its size.",
            ),
            feature(
                name="latency_ms",
                default=0.0,
                lower=0,
                upper=2000,
                description="How much longer each request takes.",
            ),
            feature(
                name="offline",
                default=False,
                description="Whether the network is gone when the agent begins.",
            ),
        ]
    )
