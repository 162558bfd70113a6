"""What the machine took is no time of an agent's: measured, and added to limits."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.base.contention import MOST, Contention

pytestmark = pytest.mark.anyio

LINUX = pytest.mark.skipif(
    not os.path.exists("/proc/self/schedstat"),  # noqa: PTH110  # a condition of a mark
    reason="not on this machine: the kernel does not count how long a thread waits",
)


@pytest.fixture
def contention() -> Iterator[Contention]:
    """A measure that is stopped at the end."""
    measure = Contention()
    yield measure
    measure.stop()


async def test_a_loop_that_is_held_up_waited(contention: Contention) -> None:
    """As by a lock that another thread holds; what passes idly is no waiting."""
    contention.start()
    await anyio.sleep(0.3)
    idle_s = contention.waited_s
    began_s = time.monotonic()
    time.sleep(0.8)  # noqa: ASYNC251  # it is what is measured
    await anyio.sleep(0.3)
    assert contention.waited_s - idle_s >= 0.5
    assert contention.waited_s <= time.monotonic() - began_s + 0.4


async def test_a_limit_is_stretched_by_what_was_waited(contention: Contention) -> None:
    """The body has as much time as the limit says, beside what the machine took."""
    contention.start()
    began_s = time.monotonic()
    with anyio.fail_after(PATIENCE_S), contention.bound(0.4) as scope:
        time.sleep(0.7)  # noqa: ASYNC251  # it is what is measured
        worked = 0
        while True:
            await anyio.sleep(0.02)
            worked += 1
    assert scope.cancelled_caught
    assert worked >= 3
    assert time.monotonic() - began_s >= 0.7 + 0.1  # what is waited is known to a quarter second


async def test_a_limit_is_not_stretched_without_end(contention: Contention) -> None:
    """Whoever makes the load does not get the time of the world for it."""
    contention.start()
    late = 0
    with contention.bound(0.2) as scope:
        while True:
            time.sleep(0.1)  # noqa: ASYNC251  # a loop that is always late
            late += 1
            await asyncio.sleep(0)
    assert scope.cancelled_caught
    assert late * 0.1 < MOST * 0.2 + 1


async def test_patience_grows_with_what_is_waited_and_passes(contention: Contention) -> None:
    """One on an idle machine, never more than the most, and one again when the load is gone."""
    assert contention.patience() == 1.0
    contention.start()
    await anyio.sleep(0.6)
    before = contention.patience()  # more than one, where the machine itself is busy
    for _ in range(4):
        time.sleep(0.9)  # noqa: ASYNC251  # it is what is measured
        await anyio.sleep(0.01)
    busy = contention.patience()
    assert before <= busy <= MOST
    assert busy > 1.5
    contention.stop()
    assert contention.patience() == 1.0


async def test_a_measure_that_rests_goes_on_if_it_is_needed_again(contention: Contention) -> None:
    """It has missed nothing then, and counts nothing once it has come to rest."""
    contention.start()
    contention.rest()
    contention.start()
    time.sleep(0.8)  # noqa: ASYNC251  # it is what is measured
    await anyio.sleep(0.3)
    waited_s = contention.waited_s
    assert waited_s >= 0.5
    contention.rest()
    await anyio.sleep(0.4)
    waited_s = contention.waited_s
    time.sleep(0.8)  # noqa: ASYNC251  # as above
    await anyio.sleep(0.3)
    assert contention.waited_s == waited_s
    assert contention.patience() == 1.0


async def test_without_a_measure_a_limit_is_a_limit(contention: Contention) -> None:
    """One that was never started, or was stopped, stretches nothing."""
    with anyio.fail_after(PATIENCE_S), contention.bound(0.1) as scope:
        await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert contention.waited_s == 0


@LINUX
async def test_a_thread_that_gets_no_processor_waited(contention: Contention) -> None:
    """Beside processes that take one processor among them all, pinned to it."""
    one = {min(os.sched_getaffinity(0))}
    every = os.sched_getaffinity(0)
    burner = f"import os\nos.sched_setaffinity(0, {one})\nwhile True: pass"
    command = [sys.executable, "-c", burner]
    burners = [subprocess.Popen(command) for _ in range(4)]  # noqa: ASYNC220  # at once
    try:
        os.sched_setaffinity(0, one)
        contention.start()
        end_s = time.monotonic() + PATIENCE_S
        while contention.waited_s < 0.3 and time.monotonic() < end_s:
            sum(range(20_000))
            await asyncio.sleep(0)
        assert contention.waited_s >= 0.3
    finally:
        os.sched_setaffinity(0, every)
        for process in burners:
            process.kill()
            process.wait()
