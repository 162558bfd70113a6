"""Opening, sharing, crashing and closing: what is left behind, and who notices."""

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest
from waiting import PATIENCE_S, until

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.values.action import ClickAction, WaitAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld
from hud_mcp.worlds.browser.chromium import find_chromium, sandbox_problem

Browse = Callable[..., Awaitable[BrowserWorld]]

live = pytest.mark.browser


def browsers(pid: int | None = None) -> list[psutil.Process]:
    """The Chromium processes under a process."""
    found = psutil.Process(pid).children(recursive=True)
    return [p for p in found if "chrom" in p.name() and p.status() != psutil.STATUS_ZOMBIE]


async def until_none(pids: set[int]) -> None:
    """Wait until none of these processes is alive."""
    await until(lambda: not any(psutil.pid_exists(p) and _runs(p) for p in pids), within_s=10)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.long
@live
def test_closing_leaves_no_process_task_or_socket(tmp_path: Path) -> None:
    """After two sessions and `Shared.close`, everything that opening began has ended."""
    (tmp_path / "index.html").write_text("<h1>x</h1>")
    script = f"""
import asyncio, gc, psutil
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser
async def main():
    shared, files = Shared(), psutil.Process().num_fds()
    for _ in range(2):
        world = await Browser({str(tmp_path)!r}).open(Opening(shared=shared))
        await world.observe(Look(image="png"))
        await world.close()
    await shared.close()
    gc.collect()
    print(len(asyncio.all_tasks()) - 1, psutil.Process().num_fds() - files <= 1)
    print([p.name() for p in psutil.Process().children(recursive=True)])
asyncio.run(main())
"""
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.stdout == "0 True\n[]\n", done.stderr
    assert "Warning" not in done.stderr


@live
@pytest.mark.anyio
async def test_the_next_session_finds_a_page_ready(shared: Shared) -> None:
    """A context is prepared while nobody waits, and opening takes it."""
    spec = Browser(viewport=(901, 701))
    world = await spec.open(Opening(shared=shared))
    with anyio.fail_after(PATIENCE_S):
        await world._calls.reserve.until_filled()
    ready = world._calls.reserve.ready[-1]
    second = await spec.open(Opening(shared=shared))
    assert second.page is ready.page
    await world.close()
    await second.close()


@pytest.mark.long
@live
@pytest.mark.anyio
async def test_a_cancelled_opening_leaves_nothing_open(shared: Shared, tmp_path: Path) -> None:
    """Whenever an opening is cancelled, its context is gone afterwards."""
    (tmp_path / "index.html").write_text("<h1>x</h1>")
    first = await Browser(tmp_path).open(Opening(shared=shared))
    browser = first.page.context.browser
    assert browser is not None
    for delay_s in (0.001, 0.02, 0.06, 0.1):
        with anyio.move_on_after(delay_s):
            world = await Browser(tmp_path).open(Opening(shared=shared))
            await world.close()
    await first.close()
    with anyio.fail_after(PATIENCE_S):
        await first._calls.reserve.until_filled()
    assert set(browser.contexts) <= {slot.context for slot in first._calls.reserve.ready}


@live
@pytest.mark.anyio
async def test_a_cancelled_action_leaves_the_world_usable(browse: Browse) -> None:
    """Cut off at any moment, the next action and look work."""
    world = await browse("<button onclick='o.textContent++'>b</button><p id=o>0</p>")
    for delay_s in (0.001, 0.005, 0.01, 0.02, 0.04):
        with anyio.move_on_after(delay_s):
            await world.act(ClickAction(selector="button"))
            await world.observe(Look(image="png"))
    await world.act(ClickAction(selector="button"))
    assert (await world.observe(Look(image="png"))).image is not None


@pytest.mark.long
@live
@pytest.mark.anyio
async def test_a_killed_browser_ends_its_sessions_and_not_the_next_one(tmp_path: Path) -> None:
    """A call in flight ends at once with the reason, later ones too; a new session works."""
    (tmp_path / "index.html").write_text("<h1>Alive</h1>")
    shared, spec = Shared(), Browser(tmp_path)
    try:
        old = {p.pid for p in psutil.Process().children()}
        world, other = [await spec.open(Opening(shared=shared)) for _ in range(2)]
        (driver,) = (p for p in psutil.Process().children() if p.pid not in old)
        mine = browsers(driver.pid)

        async def kill() -> None:
            for process in mine:
                with suppress(psutil.NoSuchProcess):  # ended with the one before it
                    process.kill()

        failures: list[str] = []
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(kill)
                try:
                    await world.act(WaitAction(time=20_000))
                except EnvironmentFailed as exc:
                    failures.append(str(exc))
        assert "browser ended" in failures[0]
        with (
            anyio.fail_after(PATIENCE_S),
            pytest.raises(EnvironmentFailed, match="start a new task"),
        ):
            await other.observe(Look())
        with anyio.fail_after(PATIENCE_S):
            await world.close()
            await world.close()
        with anyio.fail_after(PATIENCE_S):
            fresh = await spec.open(Opening(shared=shared))
            assert "Alive" in await fresh.text()
            await fresh.close()
            await other.close()
    finally:
        with anyio.fail_after(PATIENCE_S):
            await shared.close()


@pytest.mark.long
@live
def test_a_killed_driver_ends_its_sessions_and_not_the_next_one(tmp_path: Path) -> None:
    """Playwright's own process may die as well, and the server goes on."""
    (tmp_path / "index.html").write_text("<h1>Alive</h1>")
    script = f"""
import anyio, psutil
from hud_mcp.values.action import ClickAction
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser
async def main():
    shared, spec = Shared(), Browser({str(tmp_path)!r})
    world = await spec.open(Opening(shared=shared))
    for process in psutil.Process().children():
        process.kill()
    with anyio.fail_after(10):
        try:
            await world.act(ClickAction(selector="h1"))
        except EnvironmentFailed as exc:
            print(exc)
    with anyio.fail_after(15):
        await world.close()
        fresh = await spec.open(Opening(shared=shared))
        print(await fresh.text())
        await fresh.close()
        await shared.close()
anyio.run(main)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert "start a new task" in done.stdout, done.stderr
    assert done.stdout.endswith("Alive\n"), done.stderr


@live
def test_the_browser_dies_with_its_process(tmp_path: Path) -> None:
    """A server that is killed outright leaves no Chromium behind."""
    (tmp_path / "index.html").write_text("<h1>x</h1>")
    script = f"""
import anyio
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser
async def main():
    await Browser({str(tmp_path)!r}).open(Opening(shared=Shared()))
    print("open", flush=True)
    await anyio.sleep(60)
anyio.run(main)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        pids = {p.pid for p in browsers(process.pid)}
        assert pids
        process.send_signal(signal.SIGKILL)
    anyio.run(until_none, pids)


@pytest.mark.long
def test_importing_the_world_does_not_import_playwright() -> None:
    """A server that never opens a browser does not pay for one, and prints nothing."""
    script = "import sys, hud_mcp.worlds.browser; sys.exit('playwright' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (0, b"")


def test_a_named_chromium_wins_over_installed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The argument comes first, then the variable, then the search path."""
    for name in ("mine", "theirs"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("HUD_MCP_CHROMIUM", str(tmp_path / "theirs"))
    assert find_chromium(tmp_path / "mine") == str(tmp_path / "mine")
    assert find_chromium() == str(tmp_path / "theirs")
    monkeypatch.delenv("HUD_MCP_CHROMIUM")
    assert find_chromium() != str(tmp_path / "theirs")


def test_a_named_chromium_that_is_not_there_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names what was asked for and the commands that install one."""
    monkeypatch.setenv("HUD_MCP_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(EnvironmentFailed, match=r"/nowhere/chromium.*browser install"):
        find_chromium()


@pytest.mark.long
@pytest.mark.anyio
async def test_a_program_that_is_no_browser_fails_to_open_with_advice(tmp_path: Path) -> None:
    """What starts and exits is an environment's failure, and nothing keeps running."""
    fake = tmp_path / "chromium"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    shared = Shared()
    with (
        anyio.fail_after(PATIENCE_S),
        pytest.raises(EnvironmentFailed, match="could not be started"),
    ):
        await Browser(executable=fake).open(Opening(shared=shared))
    await shared.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="not on this machine: the rule is about root")
def test_the_sandbox_is_off_for_root_with_a_reason() -> None:
    """Chromium does not start as root with its sandbox; the rule says why."""
    assert "root" in (sandbox_problem() or "")


@pytest.mark.long
@live
@pytest.mark.anyio
async def test_an_authors_features_are_disabled_beside_playwrights_and_ours(tmp_path: Path) -> None:
    """The one list that Chromium heeds, the last, has all that those before it have."""
    shared = Shared()
    old = {each.pid for each in browsers()}
    with anyio.fail_after(PATIENCE_S):
        spec = Browser(
            tmp_path, start=None, arguments=["--disable-features=DialMediaRouteProvider"]
        )
        world = await spec.open(Opening(shared=shared))
        lists = [
            set(argument.partition("=")[2].split(","))
            for process in browsers()
            if process.pid not in old and not any("--type=" in a for a in process.cmdline())
            for argument in process.cmdline()
            if argument.startswith("--disable-features=")
        ]
        await world.close()
        await shared.close()
    assert len(lists) == 2
    assert lists[-1] >= lists[0] | {"DialMediaRouteProvider", "RenderDocument"}
