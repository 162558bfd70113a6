"""Episodes of MiniWoB++ a minute, beside plain Playwright and BrowserGym.

    python benchmarks/miniwob.py [--sessions 1 8] [--episodes 24] [--rounds 3]
                                 [--browsergym-python PATH]

The solutions of the shipped environment play once, through our server; what they did is then
repeated each way: our server over stdio with its record on disk, one action a call and all that
one look gave in one call; and Playwright as its documentation shows it, which keeps its page.
Each look is a text and a JPEG. The ways take turns, so that what drifts on the machine drifts for
all. An episode whose reward is not 1 ends the run. BrowserGym 0.14.3 repeats them in an
environment of its own (`miniwob_peer.py` says how it is made), one after the other.

The second table has the mean milliseconds of each call, and of what our server does in it.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from statistics import mean, median
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from hud_mcp import Agent, load_environments

ROOT = Path(__file__).parents[1]
PEER = Path(__file__).with_name("miniwob_peer.py")
PAGES = (
    "click-test-2",
    "click-button",
    "click-link",
    "click-dialog-2",
    "click-checkboxes",
    "click-option",
    "enter-text",
    "enter-password",
    "login-user",
    "choose-list",
    "click-collapsible",
    "focus-text-2",
)
FIRST_SEED = 100
BOUND_S = 60
MAX_FRAME_BYTES = 64 * 1024 * 1024

TIMED = (
    ("open a page", "hud_mcp.worlds.browser.reserve", "Reserve.take"),
    ("a new page for it", "hud_mcp.worlds.browser.slot", "Slot.open"),
    ("goto", "hud_mcp.worlds.browser.world", "BrowserWorld.goto"),
    ("its navigation", "hud_mcp.worlds.browser.commands", "Commands.load"),
    ("an action", "hud_mcp.worlds.browser.world", "BrowserWorld.act"),
    ("settling", "hud_mcp.worlds.browser.world", "wait_until_idle"),
    ("text", "hud_mcp.worlds.browser.view", "read_page"),
    ("picture", "hud_mcp.worlds.browser.view", "take_picture"),
    ("clear a page", "hud_mcp.worlds.browser.slot", "Slot.clear"),
    ("close a page", "hud_mcp.worlds.browser.world", "BrowserWorld.close"),
)
"""What the server spends its time in, and where that is; what moved is left out of the table."""

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}

Steps = list[list[dict[str, Any]]]
"""What is done after each look."""

Times = dict[str, list[float]]


@dataclass(frozen=True)
class Episode:
    """A page, a seed, and what solves it."""

    page: str
    seed: int
    steps: Steps = field(default_factory=list, compare=False)


@dataclass
class Reply:
    """What a tool gave, as solutions read it."""

    text: str
    is_error: bool
    image: bytes | None = None
    meta: dict[str, Any] = field(default_factory=dict)


# Our server.


class Server:
    """A client of `hud-mcp serve miniwob`, which knows nothing but JSON.

    Attributes:
        times: How long each call took, in ms, by its tool.
    """

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self._last = 0
        self._waiting: dict[int, anyio.Event] = {}
        self._replies: dict[int, dict[str, Any]] = {}
        self.times: Times = defaultdict(list)

    async def read(self) -> None:
        """Give each reply to whoever waits for it."""
        assert self._process.stdout
        stream = BufferedByteReceiveStream(self._process.stdout)
        while True:
            try:
                line = await stream.receive_until(b"\n", MAX_FRAME_BYTES)
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
                return
            message = json.loads(line)
            if (waiting := self._waiting.pop(message.get("id"), None)) is not None:
                self._replies[message["id"]] = message
                waiting.set()

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request, and wait for its result."""
        self._last += 1
        number, event = self._last, anyio.Event()
        self._waiting[number] = event
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        with anyio.fail_after(BOUND_S):
            await event.wait()
        message = self._replies.pop(number)
        if "error" in message:
            raise RuntimeError(message["error"])
        return message["result"]

    async def send(self, message: dict[str, Any]) -> None:
        """Send a frame."""
        assert self._process.stdin
        await self._process.stdin.send(json.dumps(message).encode() + b"\n")

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool, and note how long it took."""
        began = time.perf_counter()
        result = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        self.times[tool].append((time.perf_counter() - began) * 1000)
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return result

    async def start(self, episode: Episode) -> Any:
        """Start an episode's task."""
        chosen = {"template": episode.page, "arguments": {"seed": episode.seed}}
        return (await self.call("start_task", chosen))["structuredContent"]

    async def finish(self, session: str, episode: Episode) -> None:
        """Answer, and see to it that the episode was solved."""
        result = await self.call("response", {"answer": "done", "session": session})
        check(episode, result["structuredContent"]["reward"])

    async def times_of_parts(self, folder: Path) -> Times:
        """How long the server's own parts took, as it tells when it is asked."""
        self._process.send_signal(signal.SIGUSR1)
        path = folder / "times.json"
        with anyio.fail_after(BOUND_S):
            while not path.exists():  # noqa: ASYNC110  # another process makes it
                await anyio.sleep(0.05)
        return json.loads(path.read_text())

    async def record(self, episode: Episode, solve: Callable[[Agent], Awaitable[str]]) -> Episode:
        """Play an episode by its solution, and keep what that did."""
        begun, steps = await self.start(episode), Steps()

        async def call_tool(name: str, arguments: dict[str, Any]) -> Reply:
            if arguments.get("actions"):
                steps.append(arguments["actions"])
            result = await self.call(name, arguments)
            return Reply("".join(b.get("text", "") for b in result["content"]), is_error=False)

        await solve(Agent(call_tool, session=begun["session"], prompt=begun["prompt"]))
        await self.finish(begun["session"], episode)
        return Episode(episode.page, episode.seed, steps)

    async def play(self, episode: Episode, *, batched: bool) -> None:
        """Repeat an episode."""
        session = (await self.start(episode))["session"]
        every = [sum(episode.steps, [])] if batched else episode.steps  # noqa: RUF017  # a handful
        for actions in ([], *every):
            await self.call("step", {"actions": actions, "session": session})
        await self.finish(session, episode)


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[Server]:
    """Serve the environment from a process of its own."""
    command = [sys.executable, __file__, "--serve", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    async with await anyio.open_process(command, env=environment, stderr=None) as process:
        server = Server(process)
        async with anyio.create_task_group() as group:
            group.start_soon(server.read)
            await server.ask("initialize", HELLO)
            await server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield server
            assert process.stdin
            await process.stdin.aclose()
            with anyio.move_on_after(BOUND_S):
                await process.wait()
            group.cancel_scope.cancel()


def serve(folder: Path) -> None:
    """Be that process."""
    from hud_mcp.cli import main  # noqa: PLC0415  # the measuring process needs none of it

    times: Times = defaultdict(list)
    for name, module, path in TIMED:
        watch(times[name], module, path)
    # A server that is slow to end is ended at once, and does nothing more then: so it is asked.
    signal.signal(signal.SIGUSR1, lambda *_: tell(times, folder / "times.json"))
    store = str(folder / "store.sqlite3")
    sys.argv = ["hud-mcp", "serve", "miniwob", "--store", store, "--log-level", "error"]
    main()


def tell(times: Times, path: Path) -> None:
    """Write times to a file, which is whole when it is there."""
    path.with_suffix(".new").write_text(json.dumps(times))
    path.with_suffix(".new").replace(path)


def watch(times: list[float], module: str, path: str) -> None:
    """Note how long each call of an async function takes."""
    owner: Any = import_module(module)
    *owners, name = path.split(".")
    for each in owners:
        owner = getattr(owner, each, None)
    function = getattr(owner, name, None)
    if function is None:
        return

    @wraps(function)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return await function(*args, **kwargs)
        finally:
            times.append((time.perf_counter() - began) * 1000)

    setattr(owner, name, timed)


# Plain Playwright.


class Plain:
    """Playwright's pages, each kept from episode to episode."""

    def __init__(self, browser: Any, address: str, begin: str, ended: str) -> None:
        self._browser = browser
        self._address = address
        self._begin = begin
        self._ended = ended
        self._free: list[Any] = []

    async def play(self, episode: Episode) -> None:
        """Repeat an episode on a page that is free."""
        page = self._free.pop() if self._free else await self._open()
        await page.goto(f"{self._address}/miniwob/{episode.page}.html")
        await page.evaluate(self._begin, [episode.seed, "first"])
        await self._look(page)
        for actions in episode.steps:
            for action in actions:
                await perform(page, action)
            await self._look(page)
        check(episode, (await page.evaluate(self._ended, "first"))["reward"])
        self._free.append(page)

    async def close(self) -> None:
        """Close all pages."""
        while self._free:
            await self._free.pop().context.close()

    async def _open(self) -> Any:
        context = await self._browser.new_context(viewport={"width": 500, "height": 320})
        return await context.new_page()

    async def _look(self, page: Any) -> None:
        await page.aria_snapshot(mode="ai")
        await page.screenshot(type="jpeg", quality=80)


async def perform(page: Any, action: dict[str, Any]) -> None:
    """Do with Playwright what an action says."""
    match action:
        case {"type": "click", "selector": selector}:
            await page.click(selector)
        case {"type": "type", "selector": selector, "text": text}:
            await page.fill(selector, text)
        case {"type": "custom", "action": "select_option", "args": given}:
            await page.select_option(given["selector"], given["values"])
        case _:
            raise ValueError(f"No way is known for {action}.")


@asynccontextmanager
async def plainly(folder: Path) -> AsyncGenerator[Plain]:
    """A browser of Playwright's own, and a server of files for it."""
    from playwright.async_api import async_playwright  # noqa: PLC0415  # ours loads it lazily too

    from hud_mcp.worlds.browser.chromium import find_chromium  # noqa: PLC0415  # the same

    script = import_module("miniwob_script")
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    async with await anyio.open_process(command, cwd=folder, stderr=subprocess.DEVNULL) as site:
        assert site.stdout
        try:
            said = (await site.stdout.receive()).decode()
            address = said.split("(")[1].split("/)")[0]
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=find_chromium())
                yield Plain(browser, address, script.BEGIN, script.ENDED)
                await browser.close()
        finally:
            site.kill()


# The runs.


def check(episode: Episode, reward: float) -> None:
    """See to it that an episode was solved."""
    if not math.isclose(reward, 1):
        raise RuntimeError(f"{episode.page} with the seed {episode.seed} gave {reward}.")


async def rate(
    episodes: list[Episode], sessions: int, play: Callable[[Episode], Awaitable[None]]
) -> float:
    """Play episodes, so many at once, and return how many that is a minute."""
    waiting = list(reversed(episodes))

    async def work() -> None:
        while waiting:
            await play(waiting.pop())

    began = time.perf_counter()
    with anyio.fail_after(BOUND_S * len(episodes)):  # a browser that was killed answers nothing
        async with anyio.create_task_group() as group:
            for _ in range(sessions):
                group.start_soon(work)
    return 60 * len(episodes) / (time.perf_counter() - began)


async def measure(
    plain: Plain, folder: Path, episodes: list[Episode], sessions: int, rounds: int
) -> tuple[dict[str, float], Times]:
    """The medians of each way with so many sessions, and how long what took."""
    rates: dict[str, list[float]] = defaultdict(list)
    async with serving(folder) as server:
        ways = {
            "plain Playwright": plain.play,
            "ours, a call for each action": partial(server.play, batched=False),
            "ours, a call for all actions": partial(server.play, batched=True),
        }
        for round_ in range(-1, rounds):
            for name, play in ways.items():
                if round_ < 0:  # what loads with the first ones is not measured
                    await rate(episodes[: 2 * sessions], sessions, play)
                else:
                    rates[name].append(await rate(episodes, sessions, play))
            if round_ < 0:
                server.times.clear()
        parts = await server.times_of_parts(folder)
    times = {f"`{tool}`": each for tool, each in server.times.items()} | parts
    return {name: median(each) for name, each in rates.items()}, times


def made(folder: Path) -> Path:
    """A folder that is new."""
    folder.mkdir()
    return folder


async def main(options: argparse.Namespace) -> None:
    """Measure, and print."""
    [environment] = load_environments(["miniwob"])
    templates = environment.templates
    planned = [
        Episode(PAGES[i % len(PAGES)], FIRST_SEED + i // len(PAGES))
        for i in range(options.episodes)
    ]
    pages = import_module("miniwob_pages").find_pages()
    rates: dict[int, dict[str, float]] = {}
    times: dict[int, Times] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with serving(made(folder / "record")) as server:
            episodes = [
                await server.record(each, templates[each.page].oracle_function) for each in planned
            ]
        async with plainly(pages) as plain:
            for sessions in options.sessions:
                place = made(folder / str(sessions))
                measured = await measure(plain, place, episodes, sessions, options.rounds)
                rates[sessions], times[sessions] = measured
                told = ", ".join(f"{way} {each:.0f}" for way, each in measured[0].items())
                print(f"{sessions} at once: {told}", file=sys.stderr, flush=True)
                await plain.close()
        if options.browsergym_python:
            rates.setdefault(1, {})["BrowserGym"] = peer(options, pages, episodes)
    show(rates, times)


def peer(options: argparse.Namespace, pages: Path, episodes: list[Episode]) -> float:
    """How many episodes BrowserGym plays a minute."""
    from hud_mcp.worlds.browser.chromium import find_chromium  # noqa: PLC0415  # only here

    given = {
        "pages": str(pages),
        "chromium": find_chromium(),
        "episodes": [[each.page, each.seed, each.steps] for each in episodes],
    }
    command = [options.browsergym_python, str(PEER)]
    done = subprocess.run(
        command, input=json.dumps(given), check=True, stdout=subprocess.PIPE, text=True
    )
    return float(done.stdout.splitlines()[-1])


def show(rates: dict[int, dict[str, float]], times: dict[int, Times]) -> None:
    """Print both tables."""
    counts = list(rates)
    heads = "".join(f" {n} session{'s' * (n > 1)} | of plain |" for n in counts)
    print(f"Episodes a minute, medians\n\n| way |{heads}\n|---|{'--:|--:|' * len(counts)}")
    for way in dict.fromkeys(way for n in counts for way in rates[n]):
        cells = [rates[n].get(way) for n in counts]
        floors = [rates[n]["plain Playwright"] for n in counts]
        told = [
            f" {cell:.0f} | {cell / floor:.2f} |" if cell else " | |"
            for cell, floor in zip(cells, floors, strict=True)
        ]
        print(f"| {way} |{''.join(told)}")
    heads = "".join(f" {n} session{'s' * (n > 1)} |" for n in times)
    print(f"\nMean ms of what our server does\n\n| part |{heads}\n|---|{'--:|' * len(times)}")
    for part in dict.fromkeys(part for each in times.values() for part in each):
        found = [each.get(part) for each in times.values()]
        print(f"| {part} |{''.join(f' {mean(each):.0f} |' if each else ' |' for each in found)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--episodes", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--browsergym-python", help="it has browsergym-miniwob")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
    else:
        anyio.run(main, given)
