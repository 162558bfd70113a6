"""Every fault that a template can have, one template each."""

# ruff: noqa: ANN201, ASYNC110, ASYNC221, ASYNC240  # as authors write

import asyncio
import os
import subprocess
import sys
import warnings
from pathlib import Path

import anyio
from board_world import Board, BoardSpec, wait_for_file

from hud_mcp import Environment

env = Environment("faulty", version="0.0.1", world=BoardSpec())

SECRET = "THE-EXPECTED-ANSWER-IS-PLUM"
"""What an exception of a grader may hold; no agent may read it."""


@env.template()
async def raises_in_setup():
    """Raise before the prompt."""
    if True:
        raise ValueError(SECRET)
    yield "never"
    yield 1.0


@env.template()
async def raises_in_grading():
    """Raise after the answer."""
    answer = yield "Answer."
    raise ValueError(f"{SECRET}, not {answer}")
    yield 1.0


@env.template()
async def yields_nan():
    """Yield a reward that is not a number."""
    yield "Answer."
    yield float("nan")


@env.template()
async def yields_infinity_in_a_dict():
    """Yield an infinite score."""
    yield "Answer."
    yield {"score": float("inf"), "expected": SECRET}


@env.template()
async def yields_text():
    """Yield a grade of the wrong type."""
    yield "Answer."
    yield f"very good: {SECRET}"


@env.template()
async def yields_bad_prompt():
    """Yield a prompt of the wrong type."""
    yield 7
    yield 1.0


@env.template()
async def never_yields():
    """End before the prompt."""
    if sys.argv:
        return
    yield "never"
    yield 1.0


@env.template()
async def yields_once():
    """End without a grade."""
    yield "Answer."
    if not sys.argv:
        yield 1.0


@env.template()
async def yields_thrice():
    """Yield a second grade."""
    yield "Answer."
    yield 1.0
    yield 0.0


@env.template()
async def raises_at_teardown():
    """Grade, then raise while cleaning up."""
    try:
        yield "Answer."
        yield 0.75
    finally:
        raise RuntimeError("teardown failed on its own")


@env.template()
async def hangs_at_teardown():
    """Grade, then never end."""
    yield "Answer."
    yield 0.75
    await anyio.sleep_forever()


@env.template()
async def ignores_cancellation_at_teardown():
    """Grade, then neither end nor listen."""
    yield "Answer."
    yield 0.75
    await _never_listen()


@env.template()
async def holds_scopes():
    """Hold task groups and timeouts across both yields; all of them must work."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await anyio.sleep(0.01)

    async with asyncio.timeout(60), anyio.create_task_group() as group:
        group.start_soon(tick)
        with anyio.fail_after(60), anyio.move_on_after(50):
            before = ticks
            answer = yield "Answer."
            while ticks <= before:
                await anyio.sleep(0.01)
            yield 1.0 if answer == "yes" else 0.0
        group.cancel_scope.cancel()


@env.template()
async def grades_at_its_own_deadline(seconds: float = 0.2):
    """Grade with what there is when a held timeout fires while it waits."""
    answer = None
    with anyio.move_on_after(seconds):
        answer = yield "Answer quickly."
    yield 0.25 if answer is None else 1.0


@env.template()
async def grades_at_an_asyncio_deadline(seconds: float = 0.2):
    """The same with asyncio's own timeout."""
    try:
        async with asyncio.timeout(seconds):
            yield "Answer quickly."
    except TimeoutError:
        yield 0.25
    else:
        yield 1.0


@env.template()
async def fails_at_its_own_deadline(seconds: float = 0.2):
    """Let a held timeout's error escape."""
    with anyio.fail_after(seconds):
        yield "Answer quickly."
    yield 1.0


@env.template()
async def child_crashes(gate: str):
    """Lose a child task while it waits for the answer."""

    async def child() -> None:
        await wait_for_file(gate)
        raise ValueError(SECRET)

    async with anyio.create_task_group() as group:
        group.start_soon(child)
        yield "Answer."
        yield 1.0


@env.template()
async def hangs_in_setup():
    """Never come to the prompt."""
    await anyio.sleep_forever()
    yield "never"
    yield 1.0


@env.template()
async def hangs_in_grading():
    """Never come to the grade."""
    yield "Answer."
    await anyio.sleep_forever()
    yield 1.0


async def _never_listen() -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("cancelled, and not listening")


@env.template()
async def ignores_cancellation_in_setup():
    """Never come to the prompt, whatever cancels it."""
    await _never_listen()
    yield "never"
    yield 1.0


@env.template()
async def ignores_cancellation_in_grading():
    """Never come to the grade, whatever cancels it."""
    yield "Answer."
    await _never_listen()
    yield 1.0


@env.template()
async def answers_its_dismissal():
    """Swallow the exception that says it is over, and yield again."""
    try:
        yield "Answer."
    except Exception:  # noqa: BLE001  # the fault
        yield "I am not over."
    yield 1.0


@env.template()
async def prints_everywhere(board: Board):
    """Write to standard output in every way there is."""
    print("printed in setup")
    print("printed in two ", end="")
    print("parts")
    os.write(1, b"written to descriptor 1\n")
    sys.stdout.write("written to sys.stdout\n")
    # What a library does at import: it keeps the stream that is there now.
    print("flushed", file=sys.__stdout__, flush=True)
    script = "import os; print('child printed'); os.write(1, b'child wrote')"
    subprocess.run([sys.executable, "-c", script], check=True)
    os.system("echo shell echoed")
    warnings.warn("a warning of the template's", stacklevel=1)
    answer = yield "Answer."
    print(f"printed in grading: {answer}")
    yield 1.0
    print("printed in teardown")
    print("without a line's end", end="")


@env.template()
async def world_will_not_close(board: Board):
    """Leave a world that raises when it is closed."""
    board.close_text = "the board is screwed to the wall"
    yield "Answer."
    yield 1.0


@env.template()
async def exits():
    """Call sys.exit while grading."""
    yield "Answer."
    sys.exit(3)
    yield 1.0


@env.template()
async def yields_surrogate():
    """Yield a prompt that no encoding can hold."""
    yield "half a character: \ud83d"
    yield 1.0


@env.template()
async def notes_its_end(path: str):
    """Write down how it ended, so that a test can see that its cleanup ran."""
    try:
        yield "Answer."
        yield 1.0
    except Exception as exc:
        Path(path).write_text(f"{type(exc).__name__}: {exc}")
        raise


@env.template()
async def forgets(mark: str):
    """Ask something else each time."""
    attempts = len(list(Path(mark).parent.glob("mark*")))
    Path(f"{mark}{attempts}").touch()
    yield f"Attempt {attempts}."
    yield 1.0


@env.template()
async def cannot_open_twice(mark: str):
    """Fail in its setup, but for the first time."""
    Path(mark).touch(exist_ok=False)
    yield "Answer."
    yield 1.0


@env.template()
async def kills_its_server(mark: str):
    """End the whole process while grading."""
    yield "Answer."
    attempts = len(list(Path(mark).parent.glob("mark*")))
    Path(f"{mark}{attempts}").touch()
    os._exit(9)
    yield 1.0
