"""The questions of servers to their clients, in both eras of each, and the ends of such calls."""

import shutil
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from peers import WAYS, Held, Peer, Way, http_peer, http_server, stdio_peer
from waiting import PATIENCE_S

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

HERE = Path(__file__).parent
SECRET = "a token of theirs 4711"
MODERN = "2026-07-28"

ENVIRONMENT = """
from hud_mcp import Environment, ToolServer, ToolServerWorld, grade_checks

world = ToolServer(["/usr/bin/python3", "asking_server.py", {era!r}], secrets=["ASKING_TOKEN"])
env = Environment("asking", world=world)


@env.template(description="Book a seat")
async def seat(server: ToolServerWorld):
    await server.shell.write("notes.txt", "begun")
    yield "Book a seat."
    done = await server.run("cat done.txt")
    yield grade_checks(
        {{"booked": done.stdout.count("book {{") == 1, "called": server.calls.at_most(1, "book")}},
        server.calls.never("twice"),
    )
"""


def write(folder: Path, monkeypatch: pytest.MonkeyPatch, era: str) -> str:
    """Write an environment over the asking server."""
    shutil.copy(HERE / "asking_server.py", folder)
    monkeypatch.setenv("ASKING_TOKEN", SECRET)
    (folder / "asking_env.py").write_text(ENVIRONMENT.format(era=era))
    return str(folder / "asking_env.py")


class Person:
    """A person who answers, and remembers the questions."""

    def __init__(self, *answers: types.ElicitResult | types.ErrorData) -> None:
        self.answers = list(answers) or [types.ElicitResult(action="accept", content={"seats": 2})]
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        """Give the next answer, or the last one again."""
        del context
        self.asked.append(params)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def asked_in(peer: Peer, task: Held) -> list[tuple[str, list[tuple[str, str]]]]:
    """The recorded calls of a session, with the requests of the server in each."""
    steps = [step for step in (await peer.record(task)).steps if step.kind == "tool"]
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for step in steps:
        kept: Any = step.info["hud-mcp/reply"]
        asked = [(each["method"], each["action"]) for each in kept.get("asked", ())]
        found.append((str(step.actions[0]["tool"]), asked))
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_a_question_reaches_the_client_in_every_way_and_has_one_effect(
    way: Way, era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client and a server of each era: the answer comes back, and it is one step."""
    source, person = write(tmp_path, monkeypatch, era), Person()
    if way.transport == "stdio":
        async with stdio_peer(
            tmp_path, (source,), era=way.era, elicitation_callback=person
        ) as peer:
            await converse(peer, person)
    else:
        with http_server(tmp_path, (source,)) as server:
            async with http_peer(server, era=way.era, elicitation_callback=person) as peer:
                await converse(peer, person)


async def converse(peer: Peer, person: Person) -> None:
    """Be asked a form, a page, and for a model; then be graded on the one booking."""
    task = await peer.start("seat")
    booked = await peer.ok("book", session=task.session, day="Monday")
    assert '"seats": 2' in booked.text
    assert '"accept"' in booked.text
    assert (person.asked[0].mode, person.asked[0].message) == ("form", "Book it?")
    assert (await peer.ok("visit", session=task.session)).text.count('"accept"') == 1
    assert (person.asked[1].mode, person.asked[1].url) == ("url", "https://example.com/")
    refused = await peer.call("sample", session=task.session)
    assert "sampling/createMessage" in refused.text
    assert "file:///workspace" in (await peer.ok("roots", session=task.session)).text
    await peer.ok("leak", session=task.session)
    assert person.asked[2].message == "Is it [masked]?"
    graded = await peer.ok("response", session=task.session, answer="done")
    assert graded.structured["reward"] == 1.0, graded.text
    accepted = ("elicitation/create", "accept")
    assert await asked_in(peer, task) == [
        ("book", [accepted]),
        ("visit", [accepted]),
        ("sample", [("sampling/createMessage", "refused")]),
        ("roots", []),
        ("leak", [accepted]),
    ]


@pytest.mark.long
@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("client", ["legacy", MODERN])
async def test_a_client_that_declares_nothing_is_not_asked(
    client: str, era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gets the protocol's error, and the record says so."""
    source = write(tmp_path, monkeypatch, era)
    async with stdio_peer(tmp_path, (source,), era=client) as peer:
        task = await peer.start("seat")
        said = (await peer.call("book", session=task.session)).text
        assert "no elicitation in the mode 'form'" in said
        assert await asked_in(peer, task) == [("book", [("elicitation/create", "refused")])]


@pytest.mark.long
async def test_a_dismissed_question_and_a_failing_client_are_a_cancel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session goes on; a second question of a call comes after the first."""
    source = write(tmp_path, monkeypatch, "handshake")
    broken = types.ErrorData(code=-32000, message="no window")
    person = Person(
        broken, types.ElicitResult(action="decline"), types.ElicitResult(action="cancel")
    )
    async with stdio_peer(tmp_path, (source,), elicitation_callback=person) as peer:
        task = await peer.start("seat")
        assert '"cancel"' in (await peer.ok("book", session=task.session)).text
        assert '"cancel"' in (await peer.ok("twice", session=task.session)).text
        assert [each.message for each in person.asked] == ["Book it?", "First?", "Second?"]


async def hold(peer: Peer, session: str, tool: str = "book", **more: Any) -> Any:
    """Call a tool by hand, and return whatever comes: questions, or a result."""
    arguments = {"session": session, "day": "Monday"}
    with anyio.fail_after(PATIENCE_S):
        return await peer.client.session.call_tool(
            tool, arguments, allow_input_required=True, **more
        )


@pytest.mark.long
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_waiting_call_goes_on_by_its_own_token_alone(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other token, tool, arguments or session; other calls wait; an answer gives it up."""
    source = write(tmp_path, monkeypatch, era)
    async with stdio_peer(tmp_path, (source,), era=MODERN, elicitation_callback=Person()) as peer:
        task, other = await peer.start("seat"), await peer.start("seat")
        needed = await hold(peer, task.session)
        token, (key,) = needed.request_state, needed.input_requests
        assert "0815" not in needed.model_dump_json(), "the server's own state stays here"
        theirs = await hold(peer, other.session)
        assert theirs.request_state != token
        yes: Any = {key: types.ElicitResult(action="accept", content={"seats": 1})}

        def said(result: Any) -> str:
            assert result.is_error
            return result.content[0].text

        assert "waits for an answer" in said(await hold(peer, task.session))
        for state in ("", "guessed", "é", theirs.request_state):
            wrong = await hold(peer, task.session, input_responses=yes, request_state=state)
            assert "No call of book waits" in said(wrong)
        wrong = await hold(peer, task.session, "twice", input_responses=yes, request_state=token)
        assert "book with other arguments" in said(wrong)
        lacking = await hold(peer, task.session, request_state=token)
        assert f"inputResponses['{key}']" in said(lacking)
        done = await hold(peer, task.session, input_responses=yes, request_state=token)
        assert '"seats": 1' in done.content[0].text
        again = await hold(peer, task.session, input_responses=yes, request_state=token)
        assert "No call of book waits" in said(again)
        graded = await peer.ok("response", session=task.session, answer="done")
        assert graded.structured["subscores"][0]["value"] == 1.0, graded.text
        await peer.ok("response", session=other.session, answer="done")
        ended = await hold(
            peer, other.session, input_responses=yes, request_state=theirs.request_state
        )
        assert ended.is_error


@pytest.mark.long
async def test_a_call_that_is_never_answered_counts_as_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that leaves a question open hides no effect from `server.calls`."""
    source = write(tmp_path, monkeypatch, "handshake")
    async with stdio_peer(tmp_path, (source,), era=MODERN, elicitation_callback=Person()) as peer:
        task = await peer.start("seat")
        await peer.ok("book", session=task.session)
        await hold(peer, task.session, "twice")
        graded = await peer.ok("response", session=task.session, answer="done")
        assert graded.structured["reward"] == 0.5, "twice was called"


@pytest.mark.long
async def test_a_token_is_unknown_after_a_restart_of_our_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are as before the call, and the call can be made again."""
    source = write(tmp_path, monkeypatch, "handshake")
    async with stdio_peer(tmp_path, (source,), era=MODERN, elicitation_callback=Person()) as peer:
        task = await peer.start("seat")
        needed = await hold(peer, task.session)
    (key,) = needed.input_requests
    yes: Any = {key: types.ElicitResult(action="accept")}
    async with stdio_peer(tmp_path, (source,), era=MODERN, elicitation_callback=Person()) as peer:
        state = needed.request_state
        gone = await hold(peer, task.session, input_responses=yes, request_state=state)
        assert "Call the tool again without requestState" in gone.content[0].text
        await peer.ok("book", session=task.session)
        graded = await peer.ok("response", session=task.session, answer="done")
        assert graded.structured["reward"] == 1.0, graded.text


@pytest.mark.long
async def test_a_client_that_leaves_its_call_dismisses_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server hears it, the step is recorded once, and the session goes on."""
    source = write(tmp_path, monkeypatch, "handshake")
    asked = anyio.Event()

    async def wait(context: Any, params: Any) -> types.ElicitResult:
        del context, params
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with stdio_peer(tmp_path, (source,), elicitation_callback=wait) as peer:
        task = await peer.start("seat")
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:

                async def call() -> None:
                    with pytest.raises(MCPError):
                        await peer.client.session.call_tool(
                            "book", {"session": task.session}, read_timeout_seconds=2
                        )

                group.start_soon(call)
                await asked.wait()
        assert (await peer.ok("silent", session=task.session)).text == "[]"
        asked_for = await asked_in(peer, task)
        assert asked_for == [("book", [("elicitation/create", "cancel")]), ("silent", [])]
