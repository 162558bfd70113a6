"""How the stdio transport ends: the input's end, signals, and what does not stop."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server.lowlevel import Server
from waiting import PATIENCE_S

from hud_mcp.server.stdio.serve import StopReason
from server.stdio_probe import Probe
from server.stdio_wire import call, child, code, serving, text

pytestmark = pytest.mark.anyio


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ending", ["eof", "sigint", "sigterm"])
async def test_every_ending_is_in_order(ending: str) -> None:
    """Handlers are cancelled and answered, the lifespan exits, no traceback."""
    async with child() as (process, wire):
        await wire.send(call(1, "wait"), call(2, "echo", text="x"))
        assert text(await wire.receive()) == "x"
        with anyio.fail_after(PATIENCE_S):
            if ending == "eof":
                wire.hang_up()
            else:
                process.send_signal(getattr(signal, ending.upper()))
            closed = await wire.receive()
            _, err = await anyio.to_thread.run_sync(process.communicate)
        assert (closed["id"], closed["error"]) == (
            1,
            {"code": -32000, "message": "Connection closed"},
        )
        assert err.decode().splitlines() == ["lifespan exited", f"ended: {ending}"]
        assert process.returncode == 0


@pytest.mark.long
async def test_a_second_signal_ends_a_blocked_process_at_once() -> None:
    """A handler that blocks the loop delays the first signal, not the second."""
    async with child() as (process, wire):
        await wire.send(call(1, "block"))
        assert process.stderr is not None
        assert await anyio.to_thread.run_sync(process.stderr.readline) == b"blocking\n"
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        with anyio.fail_after(PATIENCE_S):
            assert await anyio.to_thread.run_sync(process.wait) in (130, 143)


async def test_requests_may_finish_after_the_input_has_ended() -> None:
    """What was accepted before the end is answered, not cut off."""
    async with serving() as served:
        await served.wire.send(*(call(n, "echo", text="x") for n in range(600)))
        served.wire.hang_up()
        answers = await served.wire.answers(600)
        assert all(text(answer) == "x" for answer in answers.values())
        await served.ended.wait()
        assert served.reason is StopReason.EOF


async def test_waiting_requests_are_answered_when_the_input_ends() -> None:
    """A request that never got a slot is told so, too."""
    async with serving(max_in_flight=1, finish_s=0.01) as served:
        await served.wire.send(call(1, "wait"), call(2, "echo", text="x"))
        served.wire.hang_up()
        answers = await served.wire.answers(2)
        assert [code(answers[n]) for n in (1, 2)] == [-32000, -32000]


async def test_what_does_not_stop_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    """A handler that ignores cancellation and a lifespan that hangs take two seconds, not more."""
    caplog.set_level(logging.WARNING)
    async with serving(Probe(slow_exit=True)) as served:
        await served.wire.send(call(1, "stubborn"))
        await served.probe.until(lambda: served.probe.started == ["stubborn"])
        served.wire.hang_up()
        assert code(await served.wire.receive()) == -32000
        await served.ended.wait()
        assert served.reason is StopReason.EOF
        assert served.probe.exited
    assert "did not stop" in caplog.text
    assert "did not exit" in caplog.text


async def test_what_is_left_behind_writes_to_no_descriptor(tmp_path: Path) -> None:
    """A notification after the end goes nowhere, not into a file that has the freed number."""
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving())
        await served.wire.shake_hands()
        await served.wire.send(call(1, "announce_late", meta={}))
        await served.probe.until(lambda: served.probe.started == ["announce_late"])
        served.wire.hang_up()
        await served.ended.wait()
        files = [stack.enter_context((tmp_path / str(n)).open("wb")) for n in range(8)]
        served.probe.may_announce.set()
        await served.probe.until(lambda: "announced" in served.probe.started)
        assert [os.fstat(file.fileno()).st_size for file in files] == [0] * 8
        assert code(await served.wire.receive()) == -32000


async def test_a_client_may_leave_before_the_lifespan_has_started() -> None:
    """The start is cancelled and what waited for it is answered."""
    async with serving(Probe(slow_start=True)) as served:
        await served.wire.send(call(1, "echo", text="x"))
        await served.probe.until(lambda: served.probe.started == ["lifespan"])
        served.wire.hang_up()
        assert code(await served.wire.receive()) == -32000
        await served.ended.wait()
        assert served.reason is StopReason.EOF


async def test_a_lifespan_that_fails_to_start_is_the_callers_error() -> None:
    """Its exception comes out of the call, and nothing is left running."""

    @asynccontextmanager
    async def fail(server: Server[Any]) -> AsyncIterator[None]:
        del server
        raise LookupError("no world")
        yield

    probe = Probe()
    probe.server.lifespan = fail
    with pytest.RaisesGroup(pytest.RaisesExc(LookupError, match="no world")):
        async with serving(probe) as served:
            await served.ended.wait()


async def test_a_lifespan_that_ends_by_itself_is_named_as_the_cause() -> None:
    """A lifespan that is cancelled from within ends the server with an error that says so."""

    @asynccontextmanager
    async def leave(server: Server[Any]) -> AsyncIterator[None]:
        del server
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        yield

    probe = Probe()
    probe.server.lifespan = leave
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="lifespan ended")):
        async with serving(probe) as served:
            await served.ended.wait()


async def test_a_client_that_stops_reading_ends_it_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broken pipe is a reason to end, not an error."""
    async with serving() as served:
        await served.wire.send(call(1, "echo", text="x"))
        await served.wire.receive()
        served.wire.stop_reading()
        await served.wire.send(call(2, "echo", text="x"))
        await served.ended.wait()
        assert served.reason is StopReason.STDOUT_CLOSED
    assert caplog.text == ""


async def test_cancelling_the_server_ends_it_in_order() -> None:
    """The lifespan has exited and the requests are answered when the cancellation is through."""
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving())
        await served.wire.send(call(1, "wait"))
        await served.probe.until(lambda: served.probe.started == ["wait"])
        current = asyncio.all_tasks()
        server = next(task for task in current if "Served.run" in repr(task))
        server.cancel()
        assert code(await served.wire.receive()) == -32000
        await served.ended.wait()
        assert served.probe.exited
