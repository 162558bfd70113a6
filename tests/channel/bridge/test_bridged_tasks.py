"""Tasks of HUD's own server as ours: listed, started, graded, cancelled, and what goes wrong."""

# what is read is made by another process

import asyncio
from pathlib import Path

import anyio
import pytest
from bridging import Bridged, HudServer, bridged, ending, graded, written
from waiting import PATIENCE_S, until

from hud_mcp.errors import EnvironmentFailed, InvalidTask, SessionEnded
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio


async def test_its_tasks_are_templates_with_their_schemas(asked: Bridged) -> None:
    """What tasks.list says is declared: ids, descriptions, schemas, return types."""
    environment = asked.environment
    assert (environment.name, environment.version) == ("questions", "4.5.6")
    assert list(environment.templates) == [
        "add",
        "anything",
        "slow",
        "broken",
        "typed",
        "numbers",
    ]
    add = environment.templates["add"]
    assert add.description == "Add two numbers"
    assert add.arguments.required == {"a"}
    assert add.arguments.schema["properties"]["style"]["enum"] == ["plain", "formal"]
    assert add.arguments.schema["additionalProperties"] is False
    assert environment.templates["anything"].arguments.schema["additionalProperties"] is True
    assert environment.templates["numbers"].returns_schema == {
        "items": {"type": "integer"},
        "type": "array",
    }
    assert environment.notes == ()


async def test_a_task_is_started_and_graded_there_and_recorded_here(asked: Bridged) -> None:
    """The prompt and the score are HUD's, the record and the receipt ours."""
    session = await asked.start("add", a=3, style="formal")
    assert session.prompt is not None
    assert session.prompt.text == "What is 3 + 2? Be formal."
    await session.step((), Look())
    receipt = await graded(session, "5")
    assert (receipt.outcome, receipt.reward) == (Outcome.GRADED, 1.0)
    assert await graded(session, "5") == receipt
    record = await asked.record(session)
    assert record.receipt == receipt
    assert record.prompt == "What is 3 + 2? Be formal."
    assert [step.kind for step in record.steps] == ["step", "response"]
    assert (await graded(await asked.start("add", a=1), "4")).reward == 0.25


async def test_parts_of_a_grade_are_kept(asked: Bridged) -> None:
    """Subscores, content, and whatever else the frame has; further arguments pass through."""
    session = await asked.start("anything", thing={"deep": [1]}, more=1, other=2)
    assert session.prompt is not None
    assert [(m.role, m.text) for m in session.prompt.messages] == [
        ("user", "{'deep': [1]} ['more', 'other']"),
        ("assistant", "And?"),
    ]
    receipt = await graded(session, "so")
    assert receipt.reward == 0.5
    assert receipt.content == "It was 'so'."
    assert [(s.name, s.value, s.weight, s.info) for s in receipt.subscores] == [
        ("form", 0.5, 2.0, {"lines": 3})
    ]
    assert receipt.info == {"key": "the key", "beside": [1]}


async def test_a_typed_answer_is_read_there(asked: Bridged) -> None:
    """The answer goes over as its text, and HUD makes of it what the template asks for."""
    assert (await graded(await asked.start("numbers"), "[1, 2]")).reward == 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": "seven"}, "a: expected a whole number such as 10, got 'seven'"),
        ({}, "argument 'a' is required"),
        ({"a": 1, "stile": "plain"}, "there is no argument 'stile'. Did you mean 'style'?"),
        ({"a": 1, "style": "rude"}, "expected one of 'plain', 'formal', got 'rude'"),
        ({"a": float("inf")}, "finite"),
        ({"a": True}, "a: expected a whole number such as 10, got True"),
    ],
)
async def test_wrong_arguments_are_refused_before_anything_starts(
    asked: Bridged, questions: HudServer, given: dict[str, object], said: str
) -> None:
    """HUD itself takes most of them; here each is named, and nothing reaches the server."""
    with pytest.raises(InvalidTask) as raised:
        await asked.start("add", tag="-never", **given)
    assert said in str(raised.value)
    assert not (questions.notes / "started-never").exists()


async def test_an_unknown_task_is_refused_with_a_suggestion(asked: Bridged) -> None:
    """A template that HUD does not list is none."""
    with pytest.raises(InvalidTask, match="Did you mean 'add'"):
        await asked.start("ad", a=1)


async def test_sessions_at_once_are_each_their_own(asked: Bridged) -> None:
    """Each has a HUD session, and is graded by its own task whatever the order."""
    sessions = [await asked.start("add", a=n) for n in range(5)]
    for n, session in reversed(list(enumerate(sessions))):
        assert (await graded(session, str(n + 2))).reward == 1.0


async def test_a_cancelled_session_ends_there_too(asked: Bridged, questions: HudServer) -> None:
    """HUD keeps what is only left behind for ever; ours tells it to let go."""
    session = await asked.start("add", a=1, tag="-cancelled")
    await session.cancel()
    assert (await ending(session)).outcome is Outcome.CANCELLED
    await written(questions.notes / "ended-cancelled")
    assert not (questions.notes / "graded-cancelled").exists()


async def test_a_cancelled_start_is_cancelled_there_too(
    asked: Bridged, questions: HudServer
) -> None:
    """A caller that goes away while HUD sets its task up leaves nothing running."""
    starting = asyncio.ensure_future(asked.start("slow", setup="never", tag="-left"))
    await written(questions.notes / "setup-left")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await written(questions.notes / "over-left")


async def test_a_task_that_does_not_start_is_an_environment_that_failed(asked: Bridged) -> None:
    """What HUD says of it may be the answer: it is in the record, and not in what is told."""
    with pytest.raises(EnvironmentFailed) as raised:
        await asked.start("broken", where="start")
    assert "did not start" in str(raised.value)
    assert "42" not in str(raised.value)
    (summary,) = await asked.sessions.store.list_trajectories()
    record = await asked.sessions.store.load_trajectory(summary.id)
    assert record.receipt is not None
    assert record.receipt.outcome is Outcome.ENVIRONMENT_FAILED
    assert record.receipt.reward is None

    async def is_logged() -> bool:  # the log is written when the world is closed
        record = await asked.sessions.store.load_trajectory(summary.id)
        return "the key is 42" in (record.logs or "")

    await until(is_logged)


@pytest.mark.parametrize("where", ["grade", "judge"])
async def test_a_grading_that_fails_is_no_reward(asked: Bridged, where: str) -> None:
    """A template that raises, or a grade that says itself that it is an error, is never 0."""
    session = await asked.start("broken", where=where)
    with pytest.raises(SessionEnded) as raised:
        await graded(session, "x")
    assert "the key" not in str(raised.value)  # "42" may be in its time
    receipt = await ending(session)
    assert (receipt.outcome, receipt.reward) == (Outcome.GRADING_FAILED, None)
    assert receipt.error is not None
    assert ("the key is 42" if where == "grade" else "no judge") in receipt.error


async def test_a_grading_without_end_is_bounded(tmp_path: Path, questions: HudServer) -> None:
    """A HUD task that grades for ever ends at the session's limit, without a reward."""
    async with bridged(questions.url, tmp_path / "bounded.sqlite3", grade_s=0.5) as asked:
        session = await asked.start("slow", grading="never", tag="-long")
        with pytest.raises(SessionEnded, match=r"longer than 0\.5 s"):
            await graded(session, "x")
        assert (await ending(session)).outcome is Outcome.GRADING_FAILED
    await written(questions.notes / "over-long")


async def test_a_setup_without_end_is_bounded(tmp_path: Path, questions: HudServer) -> None:
    """The same for a start, which is cancelled there."""
    async with bridged(questions.url, tmp_path / "bounded.sqlite3", setup_s=0.5) as asked:
        with pytest.raises(EnvironmentFailed, match=r"longer than 0\.5 s"):
            await asked.start("slow", setup="never", tag="-endless")
    await written(questions.notes / "over-endless")


async def test_a_source_without_a_server_is_an_error(anyio_backend: str) -> None:
    """Nothing listens on the discard port."""
    from hud_mcp.plugins.hud.bridge import bridge  # noqa: PLC0415

    assert anyio_backend == "asyncio"
    with anyio.fail_after(PATIENCE_S), pytest.raises(EnvironmentFailed, match="cannot be reached"):
        await bridge("tcp://127.0.0.1:9")
