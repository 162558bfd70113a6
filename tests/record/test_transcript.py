"""A record as people read it: everything is there, in order, and no terminal obeys any of it."""

import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import records
from PIL import Image
from tables import each_of

from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.transcript import (
    transcript,
    transcript_text,
    visible,
    visible_line,
)
from hud_mcp.record.values import Receipt, ScreenshotRecord, TrajectoryStep
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome, SubScore
from hud_mcp.values.observation import Screenshot

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)></pre></details>"
    "\x1b[31m\x1b]0;title\x07\x9b2J\rover\u202egnp.exe\u2066 &lt; javascript:alert(1)"
)


def step(index: int, **fields: Any) -> TrajectoryStep:
    """A step, one second after the one before."""
    begun = AT + timedelta(seconds=index)
    return TrajectoryStep.model_validate(
        {
            "index": index,
            "kind": "step",
            "started_at": begun,
            "ended_at": begun + timedelta(seconds=0.25),
            **fields,
        }
    )


def receipt(**fields: Any) -> Receipt:
    """An end."""
    usual = {"environment": "shop", "task": "price-1", "template": "price", "started_at": AT}
    usual |= {"ended_at": AT + timedelta(seconds=9), "reward_policy": "on_submit"}
    return records.receipt(**{**usual, "package_version": "0.1.0", **fields})


def trajectory(**fields: Any) -> Trajectory:
    """A record."""
    task = Task(id="price-1", env="shop", template="price", args={"item": "Tee"})
    return Trajectory.model_validate(
        {"id": "traj-1", "environment": "shop", "task": task, "started_at": AT, **fields}
    )


def with_picture(folder: Path, index: int = 0, *, side_px: int = 4) -> TrajectoryStep:
    """A step whose picture lies in a folder."""
    out = io.BytesIO()
    Image.effect_noise((side_px, side_px), 50 + index).save(out, "PNG")
    shot = Screenshot.from_bytes(out.getvalue())
    path = folder / f"{shot.sha256}.png"
    path.write_bytes(shot.data)
    record = ScreenshotRecord.of(shot)
    return step(index, screenshot=record, observation_url=path.as_uri())


def test_a_transcript_tells_the_whole_story_in_order() -> None:
    """The task, the prompt, each step with what was done and seen, the log, the receipt."""
    clicked = step(
        1,
        actions=({"type": "click", "point": {"x": 1, "y": 2}}, {"type": "wait", "time": 5}),
        performed=1,
        error="the second failed",
        observation_text="- heading\n- button",
        reward=0.25,
        info={"left": 2},
    )
    told = transcript_text(
        trajectory(
            prompt="What does it cost?",
            context={"dark": True},
            seed=7,
            job_id="job-1",
            steps=(step(0, kind="screenshot"), clicked),
            logs="03:04:05 one\n03:04:06 two",
            receipt=receipt(
                subscores=(SubScore(name="a", value=1, children=(SubScore(name="b", value=0),)),),
                content="Half right.",
            ),
            ended_at=AT + timedelta(seconds=9),
        )
    )
    parts = [
        "traj-1  graded 0.5",
        "task         price-1",
        "environment  shop, template price",
        'arguments    {"item": "Tee"}',
        'context      {"dark": true}',
        "seed         7",
        "job          job-1",
        "started      2026-01-02 03:04:05 UTC, 9.0 s",
        "prompt\n  What does it cost?",
        "step 1  screenshot  at 0.0 s, took 0.2 s",
        "step 2  step  at 1.0 s, took 0.2 s",
        "  > click at 1, 2\n",
        "  > wait 0.01 s  (failed)",
        "  error\n    the second failed",
        "  reward       0.25",
        '  info         {"left": 2}',
        "    - heading\n    - button",
        "log\n  03:04:05 one\n  03:04:06 two",
        "receipt\n  outcome      graded\n  cause        agent\n  reward       0.5",
        "  a: 1, weight 1\n    b: 0, weight 1",
        "  content\n    Half right.",
    ]
    places = [told.index(part) for part in parts]
    assert places == sorted(places)


def test_a_record_that_has_barely_begun_is_shown() -> None:
    """No steps, no prompt, no end."""
    assert transcript_text(trajectory()).splitlines()[0] == "traj-1  unfinished"
    assert transcript_text(trajectory()).endswith("no steps")


@each_of("outcome", [o for o in Outcome if o is not Outcome.GRADED])
def test_an_end_without_a_grade_has_no_reward_in_words_either(outcome: Outcome) -> None:
    """Never a 0, and the reason stands beside it."""
    ended = trajectory(receipt=receipt(outcome=outcome, reward=None, error="the reason"))
    told = transcript_text(ended)
    assert told.startswith(f"traj-1  {outcome.value}\n")
    assert "  reward       none" in told
    assert "the reason" in told


def test_a_long_text_is_shortened_and_says_by_how_much() -> None:
    """`full` shows all of it; nothing is shortened for a line feed at its end."""
    text = "\n".join(f"line {i}" for i in range(40))
    record = trajectory(prompt=text, steps=(step(0, observation_text="x" * 3_000),))
    told = transcript_text(record)
    assert "line 11" in told
    assert "line 12" not in told
    left = len(text) - len("\n".join(f"line {i}" for i in range(12)))
    assert f"… {left} more characters" in told
    assert "… 2,000 more characters" in told
    assert "more characters" not in transcript_text(record, full=True)
    assert "line 39" in transcript_text(record, full=True)
    assert "more characters" not in transcript_text(trajectory(prompt="a\n" * 12))
    assert [line for line in transcript(record) if line.style == "cut"]


def test_a_picture_is_named_by_its_path_and_missed_where_it_is_gone(tmp_path: Path) -> None:
    """A terminal's user opens it from there."""
    here, gone = with_picture(tmp_path, 0), with_picture(tmp_path, 1)
    assert gone.screenshot is not None
    (tmp_path / f"{gone.screenshot.sha256}.png").unlink()
    told = transcript_text(trajectory(steps=(here, gone)))
    assert here.screenshot is not None
    assert f"  picture  {tmp_path}/{here.screenshot.sha256}.png (4 x 4)\n" in told
    assert told.endswith("(4 x 4), which is gone")
    assert "its place is not known (4 x 4)" in transcript_text(
        trajectory(steps=(here.model_copy(update={"observation_url": None}),))
    )


@each_of(
    ("action", "words"),
    [
        ({"type": "click", "x": 3, "y": 4.5, "button": None}, "click at 3, 4.5"),
        ({"type": "move", "point": {"x": 1, "y": 2}}, "move the pointer to 1, 2"),
        (
            {"type": "type", "text": 'say "ö"\n', "ref": "e1"},
            'type “say "ö"\\n” into the element e1',
        ),
        ({"type": "press", "keys": ["ctrl", "a"]}, "press Ctrl+a"),
        ({"type": "screenshot"}, "take a screenshot"),
        ({"tool": "find", "args": {"q": "lamp"}}, 'call find {"q": "lamp"}'),
        ({"tool": "find"}, "call find"),
        ({"type": "teleport", "to": "Mars"}, '{"type": "teleport", "to": "Mars"}'),
        ({"odd": [1]}, '{"odd": [1]}'),
        ({"type": 5}, '{"type": 5}'),
        ({}, "nothing"),
    ],
)
def test_an_action_is_one_line_whatever_it_is(action: dict[str, Any], words: str) -> None:
    """As everything that shows a record says it, also where no action of ours is like it."""
    record = trajectory(steps=(step(0, actions=(action,), performed=1),))
    actions = [line.text for line in transcript(record) if line.style == "action"]
    assert actions == [f"  > {words}"]


def test_a_ref_has_its_name_and_an_action_what_the_agent_wrote_beside_it() -> None:
    """The name is that of the text which the agent had read; each note stands below its action."""
    seen = '- main [ref=e1]:\n  - button "Buy" [ref=e5]'
    click = {"type": "click", "ref": "e5", "reasoning": "It is cheap.", "logs": {"price": 3}}
    record = trajectory(
        steps=(step(0, observation_text=seen), step(1, actions=(click,), performed=1))
    )
    said = "  > click the button “Buy”\n    note         It is cheap.\n"
    assert said in transcript_text(record)
    assert '{"price": 3}' in transcript_text(record)


def hostile() -> Trajectory:
    """A record in which every text that others chose means harm."""
    made = step(
        0,
        actions=({"type": HOSTILE, HOSTILE: HOSTILE}, {"tool": HOSTILE, "args": {"a": HOSTILE}}),
        observation_text=HOSTILE,
        error=HOSTILE,
        info={HOSTILE: HOSTILE},
    )
    return trajectory(
        id=HOSTILE,
        job_id=HOSTILE,
        environment=HOSTILE,
        environment_version=HOSTILE,
        task=Task(
            id=HOSTILE[:200],
            env="e",
            template=HOSTILE,
            args={HOSTILE: HOSTILE},
            description=HOSTILE,
        ),
        context={HOSTILE: HOSTILE},
        prompt=HOSTILE,
        steps=(made,),
        logs=HOSTILE,
        receipt=receipt(
            outcome=Outcome.GRADING_FAILED,
            reward=None,
            error=HOSTILE,
            content=HOSTILE,
            info={HOSTILE: HOSTILE},
            subscores=(SubScore(name=HOSTILE, value=1, info={HOSTILE: HOSTILE}),),
            package_version=HOSTILE,
            reward_policy=HOSTILE,
            answer_digest=HOSTILE,
        ),
    )


def test_no_text_is_obeyed_by_a_terminal() -> None:
    """Escapes, bells, returns and turns of direction are shown as what they are."""
    told = transcript_text(hostile(), full=True)
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", told
    )
    assert r"\x1b[31m\x1b]0;title\x07\x9b2J\rover\u202egnp.exe" in told
    told.encode()


def test_what_is_harmless_stays_as_it_is() -> None:
    """Other scripts, emoji, tabs and line feeds."""
    text = "Grüße\t日本 Ελλάδα \U0001f600\nend"
    assert visible(text) == text
    assert visible("a\r\nb\rc") == "a\nb\\rc"
    assert visible("\ud800") == r"\ud800"
    assert visible_line("a\nb\tc\x1b") == "a b c\\x1b"
