"""The pages of a site as a program reads them: their source, and the addresses in it."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin, urlsplit

import anyio
import orjson

from hud_mcp.base import libraries
from hud_mcp.environment import Environment
from hud_mcp.environment.spec import Opening, Shared
from hud_mcp.environment.task import Task
from hud_mcp.environment.world import current_world
from hud_mcp.errors import HudMcpError
from hud_mcp.rollout.checking.leaks import occurs
from hud_mcp.rollout.checking.surface import Seen, SeenKind, walk_json
from hud_mcp.rollout.run import derived_seed
from hud_mcp.session.session_end import SessionOver, is_only
from hud_mcp.worlds.browser.spec import Browser
from hud_mcp.worlds.browser.world import BrowserWorld

if TYPE_CHECKING:
    from httpx import AsyncClient


_VOID = frozenset(
    {
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param",
        "source", "track", "wbr",
    }
)  # fmt: skip
_UNSHOWN = frozenset({"script", "style", "template", "noscript", "head"})
_SHOWN_VALUES = frozenset({"alt", "title", "placeholder", "label", "aria-label"})
_LAYOUT = frozenset({"class", "style", "type", "rel", "lang", "charset"})
_UNSHOWN_TYPES = frozenset({"radio", "checkbox"})
_LINKS = frozenset({"href", "src", "action", "formaction"})
_INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_QUOTED = re.compile(
    r"""["'`]((?:\.{0,2}/)?(?:[\w.-]+/)*[\w.-]+(?:\?[\w=&%+.-]*)?)["'`]""", re.ASCII
)
"""A text in a script that may be an address."""

_FILE = re.compile(r"\.(json|js|mjs|txt|csv|xml|html?)(\?|$)", re.IGNORECASE)
_LINE_CHARS = 400


class HtmlSource(HTMLParser):
    """The parts of a document's source: hidden texts, visible texts, and addresses.

    A visible text is one that a person sees, or may see. Addresses are as elements write them.
    """

    def __init__(self, text: str, place: str) -> None:
        super().__init__()
        self.parts: list[Seen] = []
        self.visible: list[str] = []
        self.addresses: list[str] = []
        self._place = place
        self._open: list[tuple[str, bool]] = []
        self._form: tuple[str, dict[str, str]] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read an element's attributes, and note whether it is shown."""
        known = {name: value or "" for name, value in attrs}
        for name, value in known.items():
            self._take_attribute(tag, name, value, known)
        self._note_form(tag, known)
        if tag not in _VOID:
            hides = (
                tag in _UNSHOWN or "hidden" in known or _INVISIBLE.search(known.get("style", ""))
            )
            self._open.append((tag, bool(hides) or self._is_hidden))

    def _take_attribute(self, tag: str, name: str, value: str, known: Mapping[str, str]) -> None:
        if name in _LINKS:
            self.addresses.append(value)
            self._add("open", f"{name} of a <{tag}>", value, name)
        elif name.startswith("on"):
            self.addresses += named_addresses(value)
            self._add("open", f"{name} of a <{tag}>", value)
        elif name == "value":
            kind = known.get("type", "").lower() if tag == "input" else tag
            field = known.get("name", "")
            if kind == "hidden":
                self._add("hidden", f"the hidden input {field!r}", value, field)
            elif kind in _UNSHOWN_TYPES or tag == "option":
                self._add("open", f"the value of a <{tag}>", value, field)
            else:
                self.visible.append(value)
        elif name in _SHOWN_VALUES:
            self.visible.append(value)
        elif name not in _LAYOUT:
            field = known.get("name", "") if tag == "meta" else name
            self._add("hidden", f"{name} of a <{tag}>", value, field)

    def handle_endtag(self, tag: str) -> None:
        """Leave an element, and the open ones in it."""
        if tag == "form" and self._form is not None:
            action, fields = self._form
            self.addresses.append(f"{action}?{urlencode(fields)}" if fields else action)
            self._form = None
        for place in range(len(self._open) - 1, -1, -1):  # authors leave end tags out
            if self._open[place][0] == tag:
                del self._open[place:]
                return

    def handle_comment(self, data: str) -> None:
        """Read a comment."""
        self._add("hidden", "a comment", data)

    def handle_data(self, data: str) -> None:
        """Read a text: a script's, a hidden or a shown one."""
        tag = self._open[-1][0] if self._open else ""
        if tag == "style" or not data.strip():
            return
        if tag == "script":
            self.addresses += named_addresses(data)
            self._add("open", "a <script>", data)
        elif self._is_hidden and tag != "title":
            self._add("open", f"the hidden text of a <{tag}>", data)
        else:
            self.visible.append(data)

    @property
    def _is_hidden(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    def _add(self, kind: SeenKind, what: str, text: str, named: str = "") -> None:
        first = self.getpos()[0]
        for number, line in enumerate(text.splitlines(), first):
            place = f"{self._place}, line {number}: {what}"
            self.parts.append(Seen(place=place, kind=kind, text=line, own=True, named=named))

    def _note_form(self, tag: str, known: dict[str, str]) -> None:
        if tag == "form" and known.get("method", "get").lower() == "get":
            self._form = (known.get("action", ""), {})
        elif self._form is not None and tag in ("input", "button") and known.get("name"):
            self._form[1][known["name"]] = known.get("value", "")


def named_addresses(text: str) -> list[str]:
    """Return the addresses in a script or in data, as written: paths and files."""
    return [
        each
        for each in _QUOTED.findall(text)
        # Other quoted texts are words.
        if each.startswith(("/", "./", "../", "api/")) or _FILE.search(each)
    ]


def parts_of_text(text: str, place: str, named: str) -> Iterator[Seen]:
    """Return the parts of a response that is no page: each value of JSON, or each line."""
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        for number, line in enumerate(text.splitlines(), 1):
            yield Seen(
                place=f"{place}, line {number}", kind="open", text=line, own=True, named=named
            )
        return
    for each in walk_json(place, value, "open", own=True):
        yield each.model_copy(
            update={
                "kind": "open",
                "own": True,
                "named": f"{named} {each.place.removeprefix(place)}",
            }
        )


_MOST_ADDRESSES = 60
_MOST_PAGES = 15
"""The most addresses that are requested, and the most documents among them."""

_MOST_CHARS = 1_000_000
_READ = ("text", "json", "javascript", "xml")
"""The types of contents that are read."""
_STORAGE = """() => {
  try { return JSON.stringify({...localStorage, ...sessionStorage}) } catch { return '{}' }
}"""
"""Reads the storage of a page; an opaque origin raises an error."""

_AROUND_CHARS = 100
_ASK_S = 10
_OPEN_S = 60.0
_BOUND_S = 120.0


@dataclass
class PageReading:
    """The result of reading a task's pages: texts with a wanted value, and addresses.

    A GET of a `changing` address changed the state of the site. `failed` is the reason why the
    reading stopped, or None.
    """

    seen: list[Seen] = field(default_factory=list[Seen])
    changing: list[str] = field(default_factory=list[str])
    failed: str | None = None


class PageReader:
    """A reader of pages, in worlds of its own in which no agent acts.

    The seeds of its tasks follow from that of the check.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._shared = Shared()
        self._turn = anyio.Lock()  # one world at a time: all share a browser
        self._known: dict[tuple[str, tuple[str, ...]], PageReading] = {}

    async def read(
        self, task: Task, environment: Environment, values: Sequence[str] = ()
    ) -> PageReading:
        """Search a task's own site for values at its beginning, once."""
        key = task.id, tuple(values)
        async with self._turn:
            if key not in self._known:
                self._known[key] = await self._read(task, environment, values)
        return self._known[key]

    async def close(self) -> None:
        """Close its browser."""
        await self._shared.close()

    async def _read(
        self, task: Task, environment: Environment, values: Sequence[str]
    ) -> PageReading:
        found = PageReading()
        spec = environment.world
        if not isinstance(spec, Browser) or not spec.has_site or task.prompt is not None:
            return found
        try:
            with anyio.fail_after(_BOUND_S):
                async with self._opened(task, environment) as world:
                    files = spec.site_paths(environment.folder)
                    await _Crawl(world, values, files, found).run()
        except TimeoutError:
            found.failed = f"it took more than {_BOUND_S:g} s"
        except (HudMcpError, libraries.httpx.HTTPError) as exc:
            found.failed = str(exc)
        except Exception as exc:  # noqa: BLE001  # a template's own; the server's probes name it
            found.failed = f"{type(exc).__name__}: {exc}"
        return found

    @asynccontextmanager
    async def _opened(self, task: Task, environment: Environment) -> AsyncGenerator[BrowserWorld]:
        """Open a task's world, and let its template set it up.

        One task of its own runs the template to its end: scopes that a template holds over its
        yields belong to the task that resumes it.
        """
        begun: asyncio.Future[BrowserWorld] = asyncio.get_running_loop().create_future()
        over = asyncio.Event()
        play = asyncio.create_task(self._play(task, environment, begun, over))
        try:
            with anyio.fail_after(_OPEN_S):
                # A template may fail before it yields.
                await asyncio.wait([begun, play], return_when=asyncio.FIRST_COMPLETED)
            if not begun.done():
                play.result()  # it raises the reason
            yield begun.result()
        finally:
            over.set()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([play], timeout=_ASK_S)
                play.cancel()  # nothing to one that has ended
                await asyncio.wait([play], timeout=_ASK_S)
        if not play.cancelled():
            play.result()  # a template that fails as it ends is a finding too

    async def _play(
        self,
        task: Task,
        environment: Environment,
        begun: "asyncio.Future[BrowserWorld]",
        over: asyncio.Event,
    ) -> None:
        derived = derived_seed(self._seed, task.id, 0)
        opening = Opening(
            context=environment.split_context(task.context),
            seed=derived if task.seed is None else task.seed,
            folder=environment.folder,
            shared=self._shared,
        )
        world = await environment.world.open(opening)
        current_world.set(world)  # for this task alone
        try:
            if not isinstance(world, BrowserWorld):
                raise HudMcpError("its world is no browser")
            context = environment.context_space.fill(task.context)
            running = environment.find_template(task.template).run(task.args, world, context)
            await anext(running)
            begun.set_result(world)  # the template has yielded its prompt: the page is set up
            await over.wait()
            try:
                # An ordinary exception: closing the generator would raise GeneratorExit, which
                # leaves a task group as a BaseExceptionGroup.
                await running.athrow(SessionOver("cancelled"))
            except (StopAsyncIteration, SessionOver, BaseExceptionGroup) as exc:
                if not isinstance(exc, StopAsyncIteration) and not is_only(exc, SessionOver):
                    raise
        except SystemExit as exc:  # it would end the loop, with all that is checked
            raise HudMcpError("its template calls exit") from exc
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_ASK_S):
                await world.close()


@asynccontextmanager
async def open_page_reader(seed: int) -> AsyncGenerator[PageReader]:
    """Have a reader of pages while the block runs."""
    reader = PageReader(seed)
    try:
        yield reader
    finally:
        with anyio.CancelScope(shield=True):
            await reader.close()


class _Crawl:
    def __init__(
        self, world: BrowserWorld, values: Sequence[str], files: Sequence[str], found: PageReading
    ) -> None:
        self._world = world
        self._values = values
        self._files = files
        self._found = found
        self._waiting: list[str] = []
        self._asked: set[str] = set()
        self._pages = 0

    async def run(self) -> None:
        world = self._world
        for frame in world.page.frames:
            self._take_page(await frame.content(), frame.url, f"the page {_path(frame.url)}")
        self._note("the page in view", await world.words())
        kept = {each["name"]: each["value"] for each in await world.cookies()}
        for place, text in {
            "a cookie": orjson.dumps(kept).decode(),
            "the page's storage": await world.page.evaluate(_STORAGE),
        }.items():
            self._take(list(parts_of_text(text, place, "")))
        self._add([world.url, "/"], world.site_url)
        first = before = _state(world)
        async with libraries.httpx.AsyncClient(
            base_url=world.site_address, cookies=kept, timeout=_ASK_S, trust_env=False
        ) as client:
            for more in ((), self._files):  # which pages name, then those that nothing names
                self._add(more, world.site_url)
                while self._waiting and len(self._asked) < _MOST_ADDRESSES:
                    path = self._next()
                    self._asked.add(path)
                    await self._ask(client, path)
                    after = _state(world)
                    if after not in (before, first):  # what undoes the others is left out
                        self._found.changing.append(path)
                    before = after

    def _next(self) -> str:
        """Return the next address. Data and scripts come before documents, which may be many."""
        self._waiting.sort(key=_is_document)  # stable: among equals, the first named stays first
        return self._waiting.pop(0)

    async def _ask(self, client: "AsyncClient", path: str) -> None:
        if _is_document(path):
            self._pages += 1
            if self._pages > _MOST_PAGES:
                return
        reply = await client.get(path)
        kind = reply.headers.get("content-type", "")
        text = reply.text[:_MOST_CHARS] if any(word in kind for word in _READ) else ""
        place, url = f"GET {path}", urljoin(self._world.site_url, path)
        if location := reply.headers.get("location"):
            self._add([location], url)
        headers = orjson.dumps(dict(reply.headers)).decode()
        self._take(list(parts_of_text(headers, f"{place}, its headers", "")))
        if "html" in kind:
            self._take_page(text, url, place)
            return
        self._add(named_addresses(text), url if "json" in kind else self._world.site_url)
        if any(occurs(value, text) for value in self._values):
            self._take(list(parts_of_text(text, place, path)))

    def _take_page(self, text: str, url: str, place: str) -> None:
        source = HtmlSource(text, place)
        self._add(source.addresses, url)
        self._take(source.parts)
        self._note(place, "\n".join(source.visible))

    def _take(self, parts: list[Seen]) -> None:
        """Keep the texts that hold a value, and of each what stands around it."""
        for each in parts:
            for value in self._values:
                if occurs(value, each.text):
                    around = _around(each.text, value)
                    self._found.seen.append(each.model_copy(update={"text": around}))

    def _note(self, place: str, text: str) -> None:
        for value in self._values:
            if occurs(value, text):
                self._found.seen.append(
                    Seen(place=f"{place}, shown", kind="observation", text=value, own=True)
                )

    def _add(self, addresses: Sequence[str], url: str) -> None:
        hosts = {urlsplit(self._world.site_url).netloc, urlsplit(self._world.site_address).netloc}
        for address in addresses:
            try:
                parts = urlsplit(urljoin(url, address.strip()))
            except ValueError:
                continue
            path = _path(parts.geturl())
            # Other sites are not the task's.
            if parts.netloc not in hosts or not path or path in self._asked:
                continue
            if path not in self._waiting:  # its state is looked at once
                self._waiting.append(path)


def _state(world: BrowserWorld) -> bytes:
    form = orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS
    return orjson.dumps(world.state, default=repr, option=form)


def _path(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _is_document(path: str) -> bool:
    bare = path.partition("?")[0]
    last = bare.rpartition("/")[2]
    return not bare.startswith("/api/") and ("." not in last or last.endswith((".html", ".htm")))


def _around(text: str, value: str) -> str:
    at = max(0, text.lower().find(value.lower()))
    return text[max(0, at - _AROUND_CHARS) : at + len(value) + _AROUND_CHARS]
