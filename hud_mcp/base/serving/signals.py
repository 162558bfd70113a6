"""SIGINT and SIGTERM while something is served: told on the event loop, and given back after."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

__all__ = ["STOP_SIGNALS", "interruptible", "stop_signals"]

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What asks a process to end in order."""


@contextmanager
def stop_signals(
    on_signal: Callable[[signal.Signals], None], *, patience: int | None = None
) -> Generator[None]:
    """Take SIGINT and SIGTERM while the body runs.

    Enter it where an event loop runs. On another thread than the main one nothing is taken: who
    owns the main thread hears of signals, and ends what runs here.

    Args:
        on_signal: Called on the event loop for each signal.
        patience: How many signals are told. The one after them ends the process at once with
            status 128 plus its number, also where something blocks the loop. None for no end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    count = 0

    # Not loop.add_signal_handler: its callbacks wait for a loop that something may be blocking.
    def receive(number: int, frame: FrameType | None) -> None:
        del frame
        nonlocal count
        count += 1
        if patience is not None and count > patience:
            os._exit(128 + number)
        loop.call_soon_threadsafe(on_signal, signal.Signals(number))

    before = {number: signal.signal(number, receive) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def interruptible() -> Generator[None]:
    """Let SIGINT raise `KeyboardInterrupt` in the body, which gives the event loop no turn.

    On another thread than the main one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
