"""What a server hears of SIGINT and SIGTERM, and what happens where it does not end by them."""

import os
import signal
import subprocess
import sys
import threading

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.base.process import stop_signals

pytestmark = pytest.mark.anyio

BLOCKED = """
import anyio, signal, time
from hud_mcp.base.process import stop_signals

async def main():
    with stop_signals(lambda number: None, patience={patience}):
        take = signal.getsignal(signal.SIGTERM)

        def hear(number, frame):
            take(number, frame)
            print("heard", flush=True)

        signal.signal(signal.SIGTERM, hear)
        print("up", flush=True)
        while True:
            time.sleep(0.05)

anyio.run(main)
"""


async def test_signals_are_told_on_the_loop_and_given_back() -> None:
    """Each one, in order; afterwards whoever had them has them again."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    heard: list[signal.Signals] = []
    again = anyio.Event()

    def hear(number: signal.Signals) -> None:
        heard.append(number)
        again.set()

    with anyio.fail_after(PATIENCE_S), stop_signals(hear):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            again = anyio.Event()
            os.kill(os.getpid(), number)
            await again.wait()
    assert heard == [signal.SIGTERM, signal.SIGINT, signal.SIGINT]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_on_another_thread_nothing_is_taken() -> None:
    """Who owns the main thread keeps its signals, and the body runs all the same."""
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    async def body() -> None:
        with stop_signals(seen.append):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=anyio.run, args=(body,))
    thread.start()
    thread.join(10)
    assert seen == [before]


@pytest.mark.parametrize("patience", [1, 2])
def test_the_signal_after_the_last_that_is_told_ends_a_blocked_process(patience: int) -> None:
    """Its status says which signal it was, though the loop never came to hear of it."""
    program = BLOCKED.format(patience=patience)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "up\n"
            for _ in range(patience):
                child.send_signal(signal.SIGTERM)
                assert child.stdout.readline() == "heard\n"
            child.send_signal(signal.SIGINT)
            assert child.wait(10) == 128 + signal.SIGINT
        finally:
            child.kill()
