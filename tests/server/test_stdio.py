"""The stdio transport: the eras, bad frames, and requests that wait or are cancelled."""

import json
import random
from typing import Any

import anyio
import pytest

from server.stdio_probe import Json
from server.stdio_wire import HELLO, MODERN, call, code, request, serving, text

pytestmark = pytest.mark.anyio


def cancel(request_id: int | str) -> Json:
    """Make a cancellation."""
    params = {"requestId": request_id}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


async def test_a_handshake_connection_refuses_enveloped_requests() -> None:
    """The first request chose the era, and the other era's frames are named as such."""
    async with serving() as served:
        await served.wire.shake_hands()
        await served.wire.send(call(1, "echo", text="x"), call(2, "echo", meta={}, text="x"))
        answers = await served.wire.answers(2)
        assert code(answers[1]) == -32600
        assert text(answers[2]) == "x"


async def test_an_enveloped_connection_refuses_the_handshake() -> None:
    """`initialize` gets the versions that are served; a request without envelope what it lacks."""
    async with serving() as served:
        await served.wire.send(call(1, "echo", text="x"))
        assert text(await served.wire.receive()) == "x"
        await served.wire.send(request(2, "initialize", HELLO), call(3, "echo", meta={}, text="x"))
        answers = await served.wire.answers(2)
        assert code(answers[2]) == -32022
        assert answers[2]["error"]["data"]["requested"] == "2025-11-25"
        assert code(answers[3]) == -32602


async def test_initialize_is_handled_before_what_follows_it() -> None:
    """A client that pipelines the whole handshake is served as if it had waited."""
    async with serving() as served:
        await served.wire.send(
            request(1, "initialize", HELLO),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            call(2, "echo", meta={}, text="x"),
        )
        first, second = await served.wire.receive(), await served.wire.receive()
        assert (first["id"], second["id"]) == (1, 2)
        assert text(second) == "x"


async def test_a_request_before_initialize_is_refused_as_the_sdk_does() -> None:
    """Without a handshake a legacy connection serves nothing but ping and unknown methods."""
    async with serving() as served:
        await served.wire.send(
            call(1, "echo", meta={}, text="x"), request(2, "ping"), request(3, "no/such")
        )
        answers = await served.wire.answers(3)
        assert code(answers[1]) == -32602
        assert answers[2]["result"] == {}
        assert code(answers[3]) == -32601


async def test_notifications_before_the_first_request_are_not_lost() -> None:
    """A bare `initialized` opens a connection, as with the SDK."""
    async with serving() as served:
        await served.wire.send(
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            call(1, "echo", meta={}, text="x"),
        )
        assert text(await served.wire.receive()) == "x"


async def test_what_is_no_message_is_answered_and_the_connection_lives_on() -> None:
    """Junk, batches, half requests, bad UTF-8 and depth each get their error."""
    junk = [b"hello", b"\xff\xfe", b"[" * 50_000, b"[]", b"7", b'{"jsonrpc":"2.0","id":5}']
    async with serving() as served:
        await served.wire.send(*(line + b"\n" for line in junk), b"\r\n\n")
        found = [await served.wire.receive() for _ in junk]
        assert [(m["id"], code(m)) for m in found] == [
            (None, -32700),
            (None, -32700),
            (None, -32700),
            (None, -32600),
            (None, -32600),
            (5, -32600),
        ]
        await served.wire.send(call(1, "echo", text="x"))
        assert text(await served.wire.receive()) == "x"


async def test_a_frame_over_the_limit_is_refused_with_its_id() -> None:
    """Its error says how large a message may be; the next request is served."""
    async with serving(max_frame_bytes=100_000) as served:
        await served.wire.send(call(1, "echo", text="x" * 300_000), call(2, "echo", text="y"))
        refused, answered = await served.wire.receive(), await served.wire.receive()
        assert (refused["id"], code(refused)) == (1, -32600)
        assert "100000" in refused["error"]["message"]
        assert text(answered) == "y"


async def test_a_second_request_with_an_id_in_flight_is_refused() -> None:
    """Either kind of id is compared as it is: 1 and "1" are two ids."""
    async with serving() as served:
        await served.wire.send(call(1, "wait"), call(1, "echo", text="a"))
        refused = await served.wire.receive()
        assert (refused["id"], code(refused)) == (1, -32600)
        await served.wire.send(call("1", "echo", text="b"))
        assert text(await served.wire.receive()) == "b"


async def test_a_failing_handler_shows_nothing_of_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The wire says "Internal server error" in both eras, and the log says what it was."""
    for shake, meta in ((False, MODERN), (True, {})):
        async with serving() as served:
            if shake:
                await served.wire.shake_hands()
            await served.wire.send(call(1, "crash", meta=meta))
            answer = await served.wire.receive()
            assert answer["error"] == {"code": -32603, "message": "Internal server error"}
    failures = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [str(failure) for failure in failures] == ["a secret"] * 2


async def test_a_handler_runs_in_the_lifespans_context_and_the_callers_trace() -> None:
    """Context variables do not leak between requests; a traceparent reaches the handler."""
    async with serving() as served:
        trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
        traceparent = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
        traced = {"_meta": {**MODERN["_meta"], **traceparent}}
        for meta, expected in ((MODERN, "0"), (traced, trace_id), (MODERN, "0")):
            await served.wire.send(call(1, "context", meta=meta))
            assert text(await served.wire.receive()) == f"lifespan {expected}"


async def test_noise_leaves_every_request_answered_once() -> None:
    """Mutated frames, junk and wrong cancellations cost no request its answer."""
    noise = random.Random(20)
    async with serving() as served:
        await served.wire.send(call("first", "echo", text="x"))
        await served.wire.receive()
        for n in range(400):
            frame = bytearray(json.dumps(call(f"noise-{n}", "echo", text="x")).encode())
            for _ in range(noise.randrange(1, 4)):
                frame[noise.randrange(len(frame))] = noise.randrange(256)
            junk = noise.randbytes(noise.randrange(60)).replace(b"\n", b"")
            await served.wire.send(bytes(frame) + b"\n", junk + b"\n", cancel(f"no-{n}"))
            await served.wire.send(call(n, "echo", text=str(n)))
        await served.wire.send(call("last", "echo", text="x"))
        found: dict[Any, list[Json]] = {}
        while len([key for key in found if isinstance(key, int)]) < 400 or "last" not in found:
            message = await served.wire.receive()
            found.setdefault(message["id"], []).append(message)
        assert all([text(answer) for answer in found[n]] == [str(n)] for n in range(400))


async def test_a_cancelled_request_is_never_answered() -> None:
    """The right handler is cancelled; the others, and wrong ids, are left alone."""
    async with serving() as served:
        await served.wire.send(call(1, "wait", key="a"), call(2, "swallow"), call(3, "wait"))
        await served.probe.until(lambda: len(served.probe.started) == 3)
        await served.wire.send(cancel("1"), cancel(2), cancel(77), cancel("no"))
        await served.probe.until(lambda: "a" in served.probe.cancelled)
        await served.wire.send(call(4, "echo", text="x"), call(1, "echo", text="y"))
        answers = await served.wire.answers(2)
        assert {key: text(answer) for key, answer in answers.items()} == {4: "x", 1: "y"}
        assert served.probe.cancelled == ["a"]


async def test_requests_over_the_limit_wait_and_cancellations_do_not() -> None:
    """A full server starts nothing, still cancels, and then goes on in order."""
    async with serving(max_in_flight=2) as served:
        keys = "abcde"
        await served.wire.send(*(call(key, "wait", key=key) for key in keys), cancel("c"))
        await served.probe.until(lambda: len(served.probe.started) == 2)
        await served.wire.send(cancel("b"))
        await served.probe.until(lambda: len(served.probe.started) == 3)
        assert served.probe.started == ["a", "b", "d"]
        await served.wire.send(cancel("a"))
        await served.probe.until(lambda: len(served.probe.started) == 4)
        assert served.probe.started == ["a", "b", "d", "e"]


async def test_open_subscriptions_leave_room_for_requests() -> None:
    """Streams that never end do not use up the slots; one too many is refused."""
    async with serving(max_in_flight=2) as served:
        listen = {"notifications": {"toolsListChanged": True}, **MODERN}
        for key in "abc":
            await served.wire.send(request(key, "subscriptions/listen", listen))
        found = [await served.wire.receive() for _ in range(3)]
        assert [m.get("method") for m in found[:2]] == [
            "notifications/subscriptions/acknowledged"
        ] * 2
        assert (found[2]["id"], code(found[2])) == ("c", -32603)
        await served.wire.send(call(1, "echo", text="x"))
        assert text(await served.wire.receive()) == "x"


async def test_many_requests_at_once_are_each_answered_once() -> None:
    """Ten times the limit goes through."""
    async with serving() as served:
        async with anyio.create_task_group() as tasks:
            frames = [call(n, "echo", text=str(n)) for n in range(2560)]
            tasks.start_soon(served.wire.send, *frames)
            answers = await served.wire.answers(2560)
        assert all(text(answers[n]) == str(n) for n in range(2560))


async def test_a_slow_reader_stops_new_requests_and_loses_nothing() -> None:
    """While the output waits, only so many handlers have started, and the loop runs on."""
    async with serving(max_outgoing_bytes=1 << 20, max_in_flight=4) as served:
        frames = [call(n, "big", key=str(n), size=1 << 18) for n in range(64)]
        await served.wire.send(*frames)
        await served.probe.until(lambda: len(served.probe.started) >= 5)
        for _ in range(100):  # as many turns of the loop as would start them all
            await anyio.lowlevel.checkpoint()
        assert len(served.probe.started) < 16
        answers = await served.wire.answers(64)
        assert all(len(text(answer)) == 1 << 18 for answer in answers.values())


async def test_a_client_that_writes_much_before_it_reads_is_served() -> None:
    """Five thousand requests in one breath do not lock the two sides up."""
    async with serving() as served:
        await served.wire.send(*(call(n, "echo", text="x" * 100) for n in range(5000)))
        assert len(await served.wire.answers(5000)) == 5000
