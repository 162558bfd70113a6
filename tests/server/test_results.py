"""What goes back to a client, and what of a reward never does."""

import base64
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
import records
from PIL import Image
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp.environment import REWARD_POLICIES, Environment
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, TrajectoryStep
from hud_mcp.server.results import (
    error_result,
    image_result,
    receipt_text,
    receipt_view,
    step_result,
    structured_result,
    trajectory_view,
)
from hud_mcp.session.caller import Caller
from hud_mcp.session.draft import Stepped
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.task import Task, Validation
from hud_mcp.values.grade import Outcome, SubScore
from hud_mcp.values.observation import Observation, Screenshot, TaskResult

pytestmark = pytest.mark.anyio

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
SECRETS = ("8128.5", "expected-answer", "only-for-people", "subscore-name", "reason-of-the-grade")
"""What stands for a reward and for what its author knows, in everything below."""


def receipt(**fields: Any) -> Receipt:
    """A receipt full of secrets."""
    secret = {
        "reward": 8128.5,
        "subscores": [{"name": "subscore-name", "value": 0.5, "info": {"x": SECRETS[1]}}],
        "content": "reason-of-the-grade",
        "info": {"reference": "expected-answer"},
        "answer_digest": "0" * 64,
        "reward_policy": "on_submit",
    }
    return records.receipt(**{**secret, **fields})


def record(**fields: Any) -> Trajectory:
    """A record full of secrets."""
    step = TrajectoryStep(
        index=0,
        kind="step",
        actions=({"type": "wait", "time": 1},),
        observation_text="seen",
        observation_url="file:///secret/path.png",
        reward=8128.5,
        info={"reference": "expected-answer"},
        started_at=AT,
        ended_at=AT,
    )
    task = Task(
        id="a",
        env="e",
        template="t",
        args={"word": "expected-answer"},
        metadata={"note": "only-for-people"},
        validation=Validation(wrong_answer="expected-answer"),
    )
    return Trajectory.model_validate(
        {
            "id": "traj-1",
            "environment": "e",
            "task": task,
            "prompt": "Do it.",
            "steps": (step,),
            "logs": "only-for-people",
            "receipt": receipt(),
            "started_at": AT,
            **fields,
        }
    )


def picture() -> Screenshot:
    """A small PNG."""
    out = io.BytesIO()
    Image.new("RGB", (40, 30)).save(out, "PNG")
    return Screenshot.from_bytes(out.getvalue(), scale=2)


ENV = Environment("e")


@ENV.template()
async def ask() -> AsyncGenerator[Any, Any]:
    """Ask."""
    yield "?"
    yield 1


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    """A real session that has begun."""
    async with begun(tmp_path) as session:
        yield session


@asynccontextmanager
async def begun(folder: Path, reward_policy: str | None = None) -> AsyncIterator[Session]:
    """A session whose rewards are seen as the policy has it."""
    store = Store(folder / "store.sqlite3")
    sessions = Sessions([ENV], store=store, reward_policy=reward_policy)
    with anyio.fail_after(PATIENCE_S):
        session = await sessions.start(ask(), caller=Caller(connection="test"))
    try:
        yield session
    finally:
        with anyio.fail_after(PATIENCE_S, shield=True):
            await sessions.close()


def stepped(observation: Observation | None = None, **fields: Any) -> Stepped:
    """What a call gave."""
    beside = {k: fields.pop(k) for k in ("performed", "error", "notes", "reward") if k in fields}
    result = TaskResult(observation=observation or Observation(), **fields)
    return Stepped(**{"result": result, "performed": 1, **beside})


def check(result: dict[str, Any]) -> types.CallToolResult:
    """The result as the SDK validates and sends it."""
    sent = types.CallToolResult.model_validate(result)
    json.dumps(result)
    return sent


def text_of(result: dict[str, Any]) -> str:
    """A result's first text."""
    first = result["content"][0]
    assert first["type"] == "text"
    return first["text"]


def test_an_error_is_a_result_that_a_model_reads() -> None:
    """Not a protocol error, which many hosts hide."""
    sent = check(error_result("Do this instead."))
    assert sent.is_error
    assert text_of(error_result("Do this instead.")) == "Do this instead."


def test_data_comes_with_a_readable_form() -> None:
    """Hosts show a model the one or the other, so both are whole."""
    sent = check(structured_result({"a": [1]}, "a is 1", {"k": 1}))
    assert sent.structured_content == {"a": [1]}
    assert sent.meta == {"k": 1}
    assert "_meta" not in structured_result({}, "nothing")


async def test_a_picture_comes_after_text_and_without_structured_content(session: Session) -> None:
    """Hosts hide pictures beside structured content; its size is in both forms."""
    shot = picture()
    result = image_result(shot, session, asked="png")
    sent = check(result)
    assert sent.structured_content is None
    assert [c["type"] for c in result["content"]] == ["text", "image"]
    assert text_of(result) == "Screenshot, 40 x 30 px."
    assert result["content"][1]["mimeType"] == "image/png"
    assert base64.b64decode(result["content"][1]["data"]) == shot.data
    assert result["_meta"]["hud-mcp/screenshot"] == {
        "session": session.id,
        "steps": 0,
        "width": 40,
        "height": 30,
        "scale": 2.0,
    }


@pytest.mark.parametrize(
    ("given", "tail", "text"),
    [
        (stepped(Observation(text="seen")), "", "seen"),
        (stepped(Observation(text="seen"), notes=("moved",)), "", "moved\nseen"),
        (stepped(Observation(text="seen"), error="click failed: x"), "", "click failed: x\nseen"),
        (stepped(), "", "Done. This environment has nothing to look at; answer with response."),
        (stepped(notes=("moved",)), "", "moved"),
        (stepped(), "Graded.", "Graded."),
        (stepped(Observation(image=picture())), "", "Done."),
        (stepped(terminated=True, notes=("x",)), "", "x\nterminated=true"),
        (
            stepped(Observation(text="seen"), reward=0.25, truncated=True),
            "tail",
            "seen\nreward=0.25 truncated=true\ntail",
        ),
    ],
)
async def test_a_step_says_what_went_wrong_then_what_is_seen_then_how_it_stands(
    session: Session, given: Stepped, tail: str, text: str
) -> None:
    """The order is that of what a model must know first, and no text is empty."""
    result = step_result(given, session, tail=tail)
    sent = check(result)
    assert text_of(result) == text
    assert bool(sent.is_error) is (given.error is not None)
    assert sent.structured_content is None


async def test_a_step_s_meta_has_what_a_harness_counts(session: Session) -> None:
    """A reward is in it only where there is one to show."""
    meta = step_result(stepped(performed=2), session)["_meta"]["hud-mcp/step"]
    assert meta == {
        "session": session.id,
        "steps": 0,
        "performed": 2,
        "terminated": False,
        "truncated": False,
    }
    meta = step_result(stepped(reward=0.0), session)["_meta"]["hud-mcp/step"]
    assert meta["reward"] == 0.0


async def test_what_a_world_adds_is_sent_as_json_whatever_it_is(
    session: Session, tmp_path: Path
) -> None:
    """Only with the rewards of single steps, which it may tell; keys and values of any kind."""
    assert "info" not in step_result(stepped(info={"score": 9}), session)["_meta"]["hud-mcp/step"]
    info = {"inventory": {1: 2}, "kind": Path("x"), "many": {3}, "other": object}
    (tmp_path / "telling").mkdir()
    async with begun(tmp_path / "telling", "per_step") as telling:
        result = step_result(stepped(info=info), telling)
    check(result)
    shown = result["_meta"]["hud-mcp/step"]["info"]
    assert shown["inventory"] == {"1": 2}
    assert shown["kind"] == "x"


# Who sees the reward.


@each_of("policy", REWARD_POLICIES)
@each_of("outcome", list(Outcome))
def test_a_receipt_shows_a_reward_only_where_it_was_graded_and_is_not_hidden(
    policy: str, outcome: Outcome
) -> None:
    """And never the author's info, the answer's hash, or why a grading failed."""
    graded = outcome is Outcome.GRADED
    given = receipt(
        outcome=outcome,
        reward=8128.5 if graded else None,
        error=None if graded else "expected-answer was not found",
    )
    shown = receipt_view(given, policy)
    assert shown["outcome"] == outcome.value
    assert shown["ended_at"] == "2026-01-02T03:04:14+00:00"
    text = json.dumps(shown)
    assert "expected-answer" not in text
    assert "0" * 64 not in text
    if graded and policy != "hidden":
        assert shown["reward"] == 8128.5
        assert shown["content"] == "reason-of-the-grade"
        assert shown["subscores"] == [{"name": "subscore-name", "value": 0.5, "weight": 1.0}]
    else:
        assert not [secret for secret in SECRETS if secret in text]


def test_nested_subscores_are_shown_without_their_info() -> None:
    """Parts of parts are shown as they were graded."""
    inner = SubScore(name="b", value=1, info={"x": "expected-answer"})
    given = receipt(subscores=(SubScore(name="a", value=0, weight=-1, children=(inner,)),))
    assert receipt_view(given, "on_submit")["subscores"] == [
        {
            "name": "a",
            "value": 0.0,
            "weight": -1.0,
            "children": [{"name": "b", "value": 1.0, "weight": 1.0}],
        }
    ]


def test_the_text_of_a_receipt_follows_the_policy_too() -> None:
    """What is hidden in the data is not told in words."""
    told = receipt_text(receipt(), "on_submit", "What is next.")
    assert told.splitlines() == [
        "Graded: reward 8128.5.",
        "reason-of-the-grade",
        "- subscore-name: 0.5",
        "The task is over. What is next.",
    ]
    hidden = receipt_text(receipt(), "hidden", "What is next.")
    assert hidden.startswith("Your answer was received and graded; the task is over.")
    assert not [secret for secret in SECRETS if secret in hidden]


@pytest.mark.parametrize("policy", REWARD_POLICIES)
def test_an_agent_reads_its_own_record_and_nothing_of_the_author_s(policy: str) -> None:
    """Steps and prompt, but no arguments, metadata, validation, log, info or file's place."""
    text = json.dumps(trajectory_view(record(), policy))
    for secret in ("expected-answer", "only-for-people", "/secret/path"):
        assert secret not in text
    assert "seen" in text
    assert "Do it." in text
    if policy == "hidden":
        assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize(
    ("policy", "shown"), [("hidden", False), ("on_submit", False), ("per_step", True)]
)
def test_rewards_of_steps_are_shown_only_under_per_step(policy: str, shown: object) -> None:
    """A record that still goes on shows no reward by another way."""
    view = trajectory_view(record(receipt=None), policy)
    assert view["receipt"] is None
    assert ("8128.5" in json.dumps(view)) is shown
