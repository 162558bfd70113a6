"""What a report is made of: one file, its pictures, and the words for what was done."""

import json
import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from playwright.async_api import Browser
from recorded import (
    BROWSER,
    HOSTILE,
    Run,
    decoded_width,
    opened,
    plain,
    shot,
    step,
)
from tables import each_of

from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.view.web.report import render_report, report_data, write_report
from hud_mcp.record.job import Job
from hud_mcp.record.transcript import describe_action
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio


async def test_an_unknown_job_is_an_error_and_leaves_the_file_as_it_was(run: Run) -> None:
    """Where the store has no such job, nothing is written."""
    path = run.folder / "report.html"
    path.write_text("before")
    with pytest.raises(SourceNotFound):
        await write_report(run.store, "job-none", path)
    assert path.read_text() == "before"


@BROWSER
async def test_a_damaged_row_of_a_task_is_named_and_hides_no_run(
    run: Run, browser: Browser
) -> None:
    """The job's page says which, and shows all that was run."""
    run.tasks = (Task(id="whole", env="shop", template="t"),)
    await run.add("whole", [step(0, see=shot("red"))], reward=1)
    with closing(sqlite3.connect(run.folder / "store.sqlite3")) as connection, connection:
        connection.execute("UPDATE job_tasks SET row = '{\"env\": 7}'")
    async with opened(browser, await run.write()) as seen:
        said = await seen.text("#job-damage")
        assert said.startswith(f"The record is damaged: task 0 of {run.job.id}: ")
        assert await seen.page.locator("#rows tr").count() == 1


@pytest.mark.long
@BROWSER
async def test_a_damaged_record_is_named_and_hides_no_other(run: Run, browser: Browser) -> None:
    """What a hand has broken is shown as far as it can be read, with its reward if it has one."""
    whole = await run.add("whole", [step(0, see=shot("red"))], reward=1)
    cut = await run.add("cut", [step(0, see=shot("blue"))], reward=0.5)
    broken = await run.add("broken", reward=1)
    with closing(sqlite3.connect(run.folder / "store.sqlite3")) as connection, connection:
        connection.execute("UPDATE steps SET row = '{\"index\":' WHERE session_id = ?", (cut,))
        connection.execute("UPDATE sessions SET receipt = '{}' WHERE id = ?", (broken,))
    async with opened(browser, await run.write()) as seen:
        assert await seen.page.locator("#rows tr").count() == 3
        assert await seen.text("#mean-over") == "mean reward over 2 graded of 3"
        rows = await seen.text("#rows")
        assert rows.count("damaged: The record") == 2
        assert f"step 0 of {cut}" in rows
        await seen.go(f"#traj-{cut}")
        assert f"step 0 of {cut}" in await seen.text("#log")
        await seen.go(f"#traj-{whole}")
        assert await decoded_width(seen.page) == 640


async def test_a_report_is_one_file(run: Run) -> None:
    """Its folder is made, nothing lies beside it, it names no address, and its policy is strict."""
    await run.add("one", [step(0, see=shot("red"))], reward=1)
    path = await run.write()
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    html = path.read_text()
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", html)
    assert "@import" not in html
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy[1]


async def test_pictures_are_embedded_once(run: Run) -> None:
    """A picture that several steps and trajectories saw is in the file one time."""
    red, blue = shot("red"), shot("blue", kind="JPEG")
    for name in ("one", "two"):
        await run.add(name, [step(0, see=red), step(1, see=blue), step(2, see=red)], reward=1)
    html = (await run.write()).read_text()
    assert html.count(red.as_base64()) == 1
    assert html.count(blue.as_base64()) == 1
    assert html.count('id="picture-') == 2


def test_a_failure_is_never_counted_as_a_reward_of_zero() -> None:
    """The mean is over what was graded, and every outcome has its count."""
    rows = [("a", Outcome.GRADED, 1.0), ("b", Outcome.GRADED, 0.5)]
    rows += [(o.value, o, None) for o in Outcome if o is not Outcome.GRADED]
    trajectories = [plain(f"tr-{name}", outcome, reward) for name, outcome, reward in rows]
    data = report_data(Job(name="A job"), [*trajectories, plain("tr-open", None, None)])
    assert (data["mean"], data["rewarded"]) == (0.75, 2)
    assert data["outcomes"] == {
        "graded": 2,
        "cancelled": 1,
        "expired": 1,
        "environment_failed": 1,
        "grading_failed": 1,
        "lost": 1,
        "unfinished": 1,
    }
    assert [row["reward"] for row in data["trajectories"]] == [1.0, 0.5] + [None] * 6


def own(name: str, **args: Any) -> dict[str, Any]:
    """An environment's own action."""
    return {"type": "custom", "action": name, "args": args}


def choose(name: str, **args: Any) -> dict[str, Any]:
    """The choice of two options of a select, given by this name."""
    return own("select_option", **{name: ["One", "Two"]}, **args)


@each_of(
    ("action", "words"),
    [
        ({"type": "click", "ref": "e12"}, "click the button “Buy”"),
        ({"type": "click", "ref": "e99"}, "click the element e99"),
        ({"type": "click", "x": 3, "y": 4.5}, "click at 3, 4.5"),
        ({"type": "click", "selector": "#buy", "button": "right"}, "right-click #buy"),
        ({"type": "click", "x": 3, "y": 4, "pattern": [100]}, "double-click at 3, 4"),
        (
            {"type": "click", "point": {"x": 3, "y": 4}, "hold_keys": ["ctrl"]},
            "click at 3, 4 while holding Ctrl",
        ),
        (
            {"type": "type", "text": "lamp", "selector": "#q", "enter_after": True},
            "type “lamp” into #q, then press Enter",
        ),
        ({"type": "type", "text": "lamp"}, "type “lamp”"),
        ({"type": "press", "keys": ["ctrl", "a"]}, "press Ctrl+a"),
        ({"type": "keydown", "keys": ["shift"]}, "hold Shift down"),
        ({"type": "keyup", "keys": ["shift"]}, "let Shift go"),
        ({"type": "scroll", "scroll_y": -300}, "scroll up 300 px"),
        (
            {"type": "scroll", "scroll": {"x": 20, "y": 5}, "ref": "e12"},
            "scroll down 5 px and right 20 px in the button “Buy”",
        ),
        ({"type": "move", "x": 1, "y": 2}, "move the pointer to 1, 2"),
        ({"type": "move", "offset_x": -5}, "move the pointer by -5, 0"),
        ({"type": "wait", "time": 1500}, "wait 1.5 s"),
        (
            {"type": "drag", "path": [{"x": 0, "y": 0}, {"x": 1, "y": 1}, {"x": 9, "y": 9}]},
            "drag from 0, 0 to 9, 9 through 1 more",
        ),
        ({"type": "screenshot"}, "take a screenshot"),
        ({"type": "position"}, "ask where the pointer is"),
        ({"type": "response", "text": "42"}, "answer “42”"),
        ({"type": "response", "text": ""}, "give an empty answer"),
        ({"type": "type", "text": "", "ref": "e12"}, "empty the button “Buy”"),
        (choose("values", ref="e12"), "choose “One”, “Two” in “Buy”"),
        (choose("values", selector='internal:label="Guests"s'), "choose “One”, “Two” in “Guests”"),
        (choose("option", ref="e12"), 'select_option {"option": ["One", "Two"], "ref": "e12"}'),
        (own("goto", url="/cart"), "go to /cart"),
        (own("goto", url="{index}"), "go to {index}"),
        (own("goto", floor=3), 'goto {"floor": 3}'),
        (own("back"), "go back"),
        (own("switch_tab", index=2), "go to tab 2"),
        ({"type": "custom", "action": "deal", "args": {"n": 3}}, 'deal {"n": 3}'),
        ({"tool": "read_cart", "args": {}}, "call read_cart"),
        ({"tool": "read_cart", "args": {"all": True}}, 'call read_cart {"all": true}'),
        ({"type": "dance"}, '{"type": "dance"}'),
        ({}, "nothing"),
    ],
)
def test_an_action_is_said_in_words(action: dict[str, Any], words: str) -> None:
    """Every action has a sentence, and what is not an action is shown as it is."""
    assert describe_action(action, {"e12": "the button “Buy”"}) == words


def test_a_ref_is_named_by_the_text_that_the_agent_read_last() -> None:
    """A page's text replaces the names, a text of changes adds to them."""
    click = {"type": "click", "ref": "e5"}
    page = '- main [ref=e1]:\n  - button "Buy [now]" [disabled] [ref=e5] [cursor=pointer]'
    diff = 'Changed since the last text:\n@ main\n+ textbox "Search" [ref=e6]: lamp'
    steps = [
        step(0, click, observation_text=page)[0],
        step(1, click, observation_text=diff)[0],
        step(2, click, {"type": "click", "ref": "e6"}, observation_text="- main [ref=e1]")[0],
        step(3, click)[0],
    ]
    (row,) = report_data(Job(name="A"), [plain("a", None, None, steps)])["trajectories"]
    assert [[action["words"] for action in one["actions"]] for one in row["steps"]] == [
        ["click the element e5"],
        ["click the button “Buy [now]”"],
        ["click the button “Buy [now]”", "click the field “Search”"],
        ["click the element e5"],
    ]


def test_the_data_element_holds_no_character_that_html_reads() -> None:
    """Hostile names come back from the JSON as they were, and none of it is markup."""
    html = render_report(Job(name=HOSTILE), [plain(HOSTILE[:200], None, None)], lambda _: None)
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', html)
    assert found
    assert not set(found[1]) & set("<>&\u2028\u2029")
    assert json.loads(found[1])["job"]["name"] == HOSTILE


def test_numbers_that_json_lacks_are_no_rewards() -> None:
    """A record with NaN in it still renders."""
    steps = [step(0, reward=float("nan"), info={"speed": float("inf")})[0]]
    made = plain("a", Outcome.GRADED, float("nan"), steps)
    data = report_data(Job(name="A"), [made])
    assert (data["mean"], data["trajectories"][0]["steps"][0]["reward"]) == (None, None)
    assert render_report(Job(name="A"), [made], lambda _: None)


def test_pictures_over_the_limit_are_left_out_the_last_ones_first() -> None:
    """Every trajectory keeps its first pictures, and the page says what is missing."""
    shots = {c: shot(c) for c in ("red", "green", "blue", "white")}
    by_hash = {s.sha256: s.data for s in shots.values()}
    first = [step(i, see=shots[c])[0] for i, c in enumerate(("red", "green"))]
    second = [step(i, see=shots[c])[0] for i, c in enumerate(("blue", "white"))]
    html = render_report(
        Job(name="A"),
        [plain("a", None, None, first), plain("b", None, None, second)],
        lambda record: by_hash[record.sha256],
        picture_limit_bytes=len(shots["red"].data) + len(shots["blue"].data),
    )
    kept = {color for color, s in shots.items() if s.as_base64() in html}
    assert kept == {"red", "blue"}
    assert html.count("was left out") == 2


def test_a_hash_that_is_none_is_not_looked_up() -> None:
    """A record cannot make the report read another file."""
    record = ScreenshotRecord(
        sha256="../../etc/x", extension="png", width_px=1, height_px=1, scale=1
    )
    asked: list[ScreenshotRecord] = []
    made = plain("a", None, None, [step(0, screenshot=record)[0]])
    assert "is missing" in render_report(Job(name="A"), [made], asked.append)
    assert asked == []
