"""A start and a step that are made again, because a reply was lost, happen once."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp.client import Client
from slate import Moments, registry, slates
from waiting import PATIENCE_S

from hud_mcp.errors import (
    EnvironmentFailed,
    HudMcpError,
    InvalidTask,
    OutOfStep,
    SessionEnded,
)
from hud_mcp.plugins.hud.operations import Operations
from hud_mcp.record.job import Job
from hud_mcp.server.app import build_server
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session

pytestmark = pytest.mark.anyio

ME, ANN, BOB = Caller(), Caller(principal="ann"), Caller(principal="bob")
WRITE = [{"type": "type", "text": "tea"}, {"type": "type", "text": "milk"}]


def an_id() -> str:
    """As a caller draws one."""
    return f"sess-{secrets.token_hex(16)}"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """What the servers of a test share."""
    return tmp_path / "s.sqlite3"


class Peer:
    """An MCP client of a registry."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.session = ""

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return what came, but for what only this reply says of itself."""
        given = {"session": self.session, **arguments} if self.session else arguments
        reply = await self.client.call_tool(name, given)
        return reply.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def start(self, template: str = "fill", **more: Any) -> None:
        """Start a task."""
        reply = await self.call("start_task", template=template, **more)
        assert not reply.get("isError"), reply
        assert reply["structuredContent"]["steps"] == 0
        self.session = reply["structuredContent"]["session"]


@asynccontextmanager
async def peer(store: Path, session: str = "", **more: Any) -> AsyncIterator[Peer]:
    """A client of a new server on a store."""
    async with (
        registry(store, slates(Moments()), **more) as sessions,
        Client(build_server(sessions)) as client,
    ):
        found = Peer(client)
        found.session = session
        yield found


def told(reply: dict[str, Any]) -> dict[str, Any]:
    """A step's reply, without the mark that a repeat has."""
    meta = {k: v for k, v in reply["_meta"]["hud-mcp/step"].items() if k != "repeat"}
    return {**reply, "_meta": meta}


def text_of(reply: dict[str, Any]) -> str:
    """The words of a reply."""
    return "\n".join(c["text"] for c in reply["content"] if c["type"] == "text")


STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "step": ("step", {"actions": WRITE}),
    "act": ("act", {"type": "type", "text": "tea"}),
    "look": ("step", {}),
    "changes": ("step", {"actions": WRITE, "observe": "changes"}),
    "refused": ("step", {"actions": [*WRITE, {"type": "type", "text": "refused"}, *WRITE]}),
    "answer": ("step", {"actions": [*WRITE, {"type": "response", "text": "done"}]}),
    "answer-act": ("act", {"type": "response", "text": "done"}),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("life", ["same", "next"])
@pytest.mark.parametrize("template", ["fill", "earn"])
@pytest.mark.parametrize("name", list(STEPS))
async def test_a_step_that_is_repeated_is_told_again_and_not_done_again(
    store: Path, name: str, template: str, life: str
) -> None:
    """Its text, picture, notes, reward, error and receipt, in this server and in the next one."""
    tool, arguments = STEPS[name]
    with anyio.fail_after(PATIENCE_S):
        async with peer(store) as one:
            await one.start(template)
            await one.call("act", type="type", text="salt", after_step=0)
            first = await one.call(tool, **arguments, after_step=1)
            session = one.session
            if life == "same":
                again = await one.call(tool, **arguments, after_step=1)
        async with peer(store, session) as two:
            if life == "next":
                again = await two.call(tool, **arguments, after_step=1)
            status = await two.call("task_status")
        assert again["_meta"]["hud-mcp/step"]["repeat"] is True
        assert told(again) == told(first)
        assert first["_meta"]["hud-mcp/step"]["steps"] == 2
        if not name.startswith("answer"):
            assert status["structuredContent"]["steps"] == 2
            assert "Pass after_step=2 with your next call." in text_of(first)


@pytest.mark.parametrize(
    ("given", "after_step"),
    [
        (WRITE, 0),  # it is the step before the last
        (WRITE, 1),  # the last one, of another call
        (WRITE[:1], 1),
        ([], 1),
        (WRITE, 3),
        (WRITE, -1),
    ],
)
async def test_a_caller_that_has_seen_another_number_of_steps_is_told_how_many_there_are(
    store: Path, given: list[Any], after_step: int
) -> None:
    """Nothing is done, and the session goes on with the number that it is told."""
    with anyio.fail_after(PATIENCE_S):
        async with peer(store) as one:
            await one.start()
            for count, word in enumerate(("tea", "salt")):
                await one.call("act", type="type", text=word, after_step=count)
            refused = await one.call("step", actions=given, after_step=after_step)
            assert refused["isError"]
            assert f"after_step is {after_step}, and the session has 2 steps" in text_of(refused)
            assert "Nothing was done" in text_of(refused)
            looked = await one.call("step", after_step=2)
            assert "tea salt" in text_of(looked)
            assert "Pass after_step=3" in text_of(looked)


async def test_the_same_step_several_times_at_once_is_done_once(store: Path) -> None:
    """Each of five callers gets the same reply."""
    replies: list[dict[str, Any]] = []
    with anyio.fail_after(PATIENCE_S):
        async with peer(store) as one:
            await one.start()

            async def step() -> None:
                replies.append(await one.call("step", actions=WRITE, after_step=0))

            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(step)
            assert all(told(r) == told(replies[0]) for r in replies)
            assert sum("repeat" in r["_meta"]["hud-mcp/step"] for r in replies) == 4
            assert "tea milk" in text_of(replies[0])


async def test_a_step_that_was_cut_off_says_so_when_it_is_repeated(store: Path) -> None:
    """What had happened by then is in the record, and no more happens."""
    moments = Moments()
    with anyio.fail_after(PATIENCE_S):
        async with registry(store, slates(moments)) as sessions:
            operations = Operations(sessions)
            begun = await operations.perform(
                "hud-mcp/start", {"task": {"env": "slates", "template": "fill"}}
            )
            moments.hold("act 1")
            call = {"session": begun["session"], "actions": WRITE, "after_step": 0}
            async with anyio.create_task_group() as group:
                group.start_soon(operations.perform, "hud-mcp/step", call)
                await moments.arrived.wait()
                group.cancel_scope.cancel()
            moments.hold("nowhere")
            again = await operations.perform("hud-mcp/step", call)
            assert again["info"]["error"] == "stopped after 1 of 2 actions"
            assert (again["info"]["performed"], again["steps"]) == (1, 1)
            call["after_step"] = 1
            seen = await operations.perform("hud-mcp/step", {**call, "actions": []})
            assert seen["observation"]["text"] == "tea"
            with pytest.raises(OutOfStep, match="has 2 steps"):
                await operations.perform("hud-mcp/step", call)
            with pytest.raises(InvalidTask, match="expected a whole number"):
                await operations.perform("hud-mcp/step", {**call, "after_step": "1"})


async def start(
    sessions: Sessions, session_id: str, caller: Caller = ME, template: str = "fill"
) -> Session | str:
    """Start under an id of the caller's; what it is refused with."""
    try:
        task = sessions.catalogue.mint(template, {})
        return await sessions.start(task, caller=caller, session_id=session_id)
    except HudMcpError as exc:
        return f"{type(exc).__name__}: {exc}"


async def test_several_starts_at_once_with_one_id_begin_one_session(store: Path) -> None:
    """All of them get it, whatever moment of its setup they come in."""
    moments, found = Moments(), list[Any]()
    with anyio.fail_after(PATIENCE_S):
        async with registry(store, slates(moments)) as sessions:
            chosen = an_id()

            async def begin() -> None:
                found.append(await start(sessions, chosen))

            moments.hold("setup")
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(begin)
                await moments.arrived.wait()
                for _ in range(3):
                    group.start_soon(begin)
                moments.go_on.set()
            assert len(found) == 6
            assert all(each is found[0] and each.id == chosen for each in found)
            assert (await sessions.store.find_begun(found[0].secret_digest)) == (
                None,
                found[0].task,
            )


async def test_a_start_goes_on_where_its_caller_leaves(store: Path) -> None:
    """As where a client gives up waiting: the same call again has the session."""
    moments = Moments()
    with anyio.fail_after(PATIENCE_S):
        async with registry(store, slates(moments)) as sessions:
            chosen = an_id()
            moments.hold("setup")
            async with anyio.create_task_group() as group:
                group.start_soon(start, sessions, chosen)
                await moments.arrived.wait()
                group.cancel_scope.cancel()
            moments.go_on.set()
            found = await start(sessions, chosen)
            assert isinstance(found, Session)
            assert found.state.shown == "open"


async def test_an_id_that_cannot_be_had_is_refused_in_one_text(store: Path) -> None:
    """A malformed one, one of another task and one of another caller, at once, later, restarted."""
    moments, refused = Moments(), list[Any]()
    with anyio.fail_after(PATIENCE_S):
        async with registry(store, slates(moments)) as sessions:
            chosen = an_id()
            refused.append(await start(sessions, "sess-1"))

            async def begin(caller: Caller, template: str) -> None:
                refused.append(await start(sessions, chosen, caller, template))

            moments.hold("setup")
            async with anyio.create_task_group() as group:
                group.start_soon(start, sessions, chosen, ANN)
                await moments.arrived.wait()
                group.start_soon(begin, BOB, "fill")
                group.start_soon(begin, ANN, "earn")
                await until_done(refused, 3)
                moments.go_on.set()
            await begin(BOB, "fill")
            await begin(ME, "fill")
            await begin(ANN, "earn")
            assert isinstance(await sessions.find(chosen, ANN), Session)
            unchosen = await sessions.start(sessions.catalogue.mint("fill", {}), caller=ANN)
            refused.append(await start(sessions, unchosen.id, BOB))
        async with registry(store, slates(moments)) as sessions:
            await begin_in(sessions, refused, chosen)
            found = await sessions.find(chosen, ANN)
            assert isinstance(found, Session)
            await found.cancel()
        async with registry(store, slates(moments)) as sessions:  # which has ended
            await begin_in(sessions, refused, chosen)
            ended = await start(sessions, chosen, ANN)
            assert isinstance(ended, str)
            assert "SessionEnded: This session was cancelled at" in ended
    assert len(refused) == 11
    assert len(set(refused)) == 1, set(refused)
    assert "InvalidTask: This session id cannot be used for this start. Choose" in refused[0]


async def begin_in(sessions: Sessions, refused: list[Any], chosen: str) -> None:
    """Start under another's id, and under one's own with another task."""
    refused.append(await start(sessions, chosen, BOB))
    refused.append(await start(sessions, chosen, ANN, "earn"))


async def until_done(found: list[Any], count: int) -> None:
    """Wait until so many have been refused."""
    while len(found) < count:
        await anyio.lowlevel.checkpoint()


@pytest.mark.long
async def test_two_servers_of_one_store_give_one_id_to_one_start(store: Path) -> None:
    """The other one says that it runs elsewhere, or that another id is to be chosen."""
    moments = Moments()
    with anyio.fail_after(PATIENCE_S):
        for caller in (ANN, BOB):
            async with (
                registry(store, slates(moments)) as one,
                registry(store, slates(moments)) as two,
            ):
                chosen, given = an_id(), list[Any]()

                async def begin(sessions: Sessions, by: Caller) -> None:
                    given.append(await start(sessions, chosen, by))  # noqa: B023  # awaited here

                async with anyio.create_task_group() as group:
                    group.start_soon(begin, one, ANN)
                    group.start_soon(begin, two, caller)
                refused = [g for g in given if isinstance(g, str)]
                assert len(refused) == 1, given
                said = "SessionBusy: Another server" if caller is ANN else "Choose another one"
                assert said in refused[0]


async def test_a_start_that_failed_is_not_begun_again_under_its_id(store: Path) -> None:
    """It is told that it has ended, as it is recorded; another id begins anew."""
    with anyio.fail_after(PATIENCE_S):
        async with registry(store, slates(Moments())) as sessions:
            chosen = an_id()
            task = sessions.catalogue.mint("cannot_begin", {})
            begin = partial(sessions.start, task, caller=ME, session_id=chosen)
            with pytest.raises(EnvironmentFailed):
                await begin()
            with pytest.raises(SessionEnded, match="because its environment failed"):
                await begin()


async def test_an_agent_chooses_its_id_and_is_told_of_the_end(store: Path) -> None:
    """Over MCP: the prompt again while it goes on, then how it ended, with its receipt."""
    chosen = an_id()
    with anyio.fail_after(PATIENCE_S):
        async with peer(store) as one:
            await one.start(session=chosen)
            assert one.session == chosen
            await one.call("step", actions=WRITE, after_step=0)
            again = await one.call("start_task", template="fill")
            assert again["structuredContent"]["session"] == chosen
            assert again["structuredContent"]["prompt"] == "Write tea and milk."
            assert again["structuredContent"]["steps"] == 1
            graded = await one.call("response", answer="done")
        async with peer(store, chosen) as two:
            ended = await two.call("start_task", template="fill")
            assert ended["isError"]
            assert ended["structuredContent"]["receipt"]["reward"] == 1.0
            assert "was graded at" in text_of(ended)
            assert text_of(graded) in text_of(ended)


async def test_an_operator_chooses_its_id_too(store: Path) -> None:
    """The same start again gives the same session, also in the next server."""
    chosen = an_id()
    params = {"task": {"env": "slates", "template": "fill"}, "session": chosen}
    with anyio.fail_after(PATIENCE_S):
        async with registry(store, slates(Moments())) as one:
            first = await Operations(one).perform("hud-mcp/start", params)
            assert first["session"] == chosen
            assert await Operations(one).perform("hud-mcp/start", params) == first
        async with registry(store, slates(Moments())) as two:
            assert await Operations(two).perform("hud-mcp/start", params) == first
            found = await two.find(chosen, Caller(principal=OPERATOR))
            assert isinstance(found, Session)
            with pytest.raises(InvalidTask, match="Choose another one"):
                await Operations(two).perform(
                    "hud-mcp/start", {**params, "task": {"env": "slates", "template": "earn"}}
                )


@pytest.mark.parametrize("planned", [True, False])
async def test_only_a_runner_says_whose_doing_a_cancellation_was(
    tmp_path: Path,
    planned: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """A client of its own cannot take a run that it has failed out of the figures."""
    session = f"sess-{'1' * 32}"
    env = slates(Moments())
    async with (
        registry(tmp_path / "s.sqlite3", env) as sessions,
        Client(build_server(sessions)) as client,
    ):
        job = Job(name="any")
        await sessions.store.add_job(job)
        if planned:
            await sessions.store.plan_run(job.id, digest(session))
        await client.call_tool("start_task", {"template": "fill", "session": session})
        said = {"hud-mcp/reason": "It broke.", "hud-mcp/cause": "operator"}
        await client.call_tool("cancel_task", {"session": session}, meta=said)
        found = await sessions.store.find_session(digest(session), principal=None)
        assert found is not None
        assert found[1] is not None
        assert found[1].cause == ("operator" if planned else "agent")
        assert (found[1].error == "It broke.") is planned
