"""A server with browsers open ends in two seconds, also while others take the processors."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import psutil
import pytest
from peers import ENVIRONMENTS, RawStdio, http_peer, http_server, load_all, raw_stdio
from waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.browser, pytest.mark.long]

PAGE = str(ENVIRONMENTS / "page.py")
WITHIN_S = 2.0
"""Hosts kill a server some 2 s after they have left it."""
NOTICE_S = 0.5
"""What this process may need, on processors that are taken, to say so and to see it."""
SESSIONS = 3


@pytest.fixture
def burning() -> Iterator[None]:
    """Two processes that use all the time that they are given."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for each in burners:
        each.kill()
        each.wait()


def browsers(server: int) -> list[psutil.Process]:
    """Every process below a server."""
    return psutil.Process(server).children(recursive=True)


def gone(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs."""
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


async def open_pages(raw: RawStdio) -> None:
    """Begin some sessions, each with a page that has been acted on."""
    await raw.hello()
    for count in range(SESSIONS):
        begun = await raw.call("start_task", template="order", arguments={"what": f"tea {count}"})
        session = begun["structuredContent"]["session"]
        await raw.call("act", session=session, type="type", selector="#what", text="tea")


async def check_records(store: Path) -> None:
    """Each session has its steps, whole, and either goes on elsewhere or has its end."""
    records = await load_all(store)
    assert len(records) == SESSIONS
    for record in records:
        assert [step.kind for step in record.steps] == ["act"]
        assert record.steps[0].observation_text
        assert record.outcome in (None, "lost")


@pytest.mark.parametrize("how", ["eof", signal.SIGTERM], ids=str)
@pytest.mark.usefixtures("burning")
async def test_a_loaded_stdio_server_with_browsers_ends_in_time(
    how: str | signal.Signals, tmp_path: Path
) -> None:
    """By one deadline, with its status; no browser is left, and the records are whole."""
    async with raw_stdio(tmp_path, (PAGE,)) as raw:
        await open_pages(raw)
        below = browsers(raw.process.pid)
        began = time.monotonic()
        if isinstance(how, signal.Signals):
            raw.process.send_signal(how)
        else:
            await raw.close_stdin()
        status = await raw.exit_status(WITHIN_S + 10)
        took = time.monotonic() - began
        assert status == (143 if isinstance(how, signal.Signals) else 0)
        assert took < WITHIN_S + NOTICE_S, raw.log.read_text()
        await until(lambda: gone(below))
    assert "Traceback" not in raw.log.read_text()
    await check_records(raw.store)


@pytest.mark.usefixtures("burning")
async def test_a_loaded_http_server_with_browsers_ends_in_time(tmp_path: Path) -> None:
    """The same at a signal, with clients that are still connected."""
    with http_server(tmp_path, (PAGE,)) as server:
        async with http_peer(server, era="2026-07-28") as peer:
            for count in range(SESSIONS):
                task = await peer.start("order", what=f"tea {count}")
                await peer.ok(
                    "act", session=task.session, type="type", selector="#what", text="tea"
                )
            below = browsers(server.process.pid)
            began = time.monotonic()
            server.process.terminate()
            with anyio.fail_after(WITHIN_S + 10):
                status = await anyio.to_thread.run_sync(server.process.wait)
            took = time.monotonic() - began
        assert status == 143
        assert took < WITHIN_S + NOTICE_S, server.logged()
        await until(lambda: gone(below))
        assert "Traceback" not in server.logged()
    await check_records(server.store)
