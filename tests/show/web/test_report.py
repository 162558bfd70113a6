"""The report of a job, read as a person reads it: from disk, in a browser, with no network."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from playwright.async_api import Browser, expect
from recorded import (
    BROWSER,
    HOSTILE,
    Run,
    decoded_width,
    opened,
    place_in_picture,
    plain,
    record_hostility,
    shot,
    step,
    walk,
)

from hud_mcp.errors import SourceNotFound
from hud_mcp.grade import Outcome, SubScore
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import ScreenshotRecord
from hud_mcp.show.phrases import describe_action
from hud_mcp.show.web.report import render_report, report_data, write_report
from hud_mcp.task import Task

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


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"type": "click", "ref": "e12"}, 'click ref e12 (button "Buy")'),
        ({"type": "click", "ref": "e99"}, "click ref e99"),
        ({"type": "click", "x": 3, "y": 4.5}, "click at 3, 4.5"),
        ({"type": "click", "selector": "#buy", "button": "right"}, "right click #buy"),
        ({"type": "click", "x": 3, "y": 4, "pattern": [100]}, "double-click at 3, 4"),
        (
            {"type": "click", "point": {"x": 3, "y": 4}, "hold_keys": ["ctrl"]},
            "click at 3, 4 while holding ctrl",
        ),
        (
            {"type": "type", "text": "lamp", "selector": "#q", "enter_after": True},
            'type "lamp" into #q, then Enter',
        ),
        ({"type": "type", "text": "lamp"}, 'type "lamp"'),
        ({"type": "press", "keys": ["ctrl", "a"]}, "press ctrl+a"),
        ({"type": "keydown", "keys": ["shift"]}, "hold shift down"),
        ({"type": "keyup", "keys": ["shift"]}, "let shift go"),
        ({"type": "scroll", "scroll_y": -300}, "scroll 300 px up"),
        (
            {"type": "scroll", "scroll": {"x": 20, "y": 5}, "ref": "e12"},
            'scroll 5 px down and 20 px right in ref e12 (button "Buy")',
        ),
        ({"type": "move", "x": 1, "y": 2}, "move to 1, 2"),
        ({"type": "move", "offset_x": -5}, "move by -5, 0"),
        ({"type": "wait", "time": 1500}, "wait 1.5 s"),
        (
            {"type": "drag", "path": [{"x": 0, "y": 0}, {"x": 1, "y": 1}, {"x": 9, "y": 9}]},
            "drag from 0, 0 to 9, 9 through 1 more",
        ),
        ({"type": "screenshot"}, "take a screenshot"),
        ({"type": "position"}, "ask where the pointer is"),
        ({"type": "response", "text": "42"}, 'answer "42"'),
        ({"type": "custom", "action": "deal", "args": {"n": 3}}, 'deal {"n": 3}'),
        ({"tool": "read_cart", "args": {}}, "call read_cart"),
        ({"tool": "read_cart", "args": {"all": True}}, 'call read_cart {"all": true}'),
        ({"type": "dance"}, '{"type": "dance"}'),
        ({}, "nothing"),
    ],
)
def test_an_action_is_said_in_words(action: dict[str, Any], words: str) -> None:
    """Every action has a sentence, and what is not an action is shown as it is."""
    assert describe_action(action, {"e12": 'button "Buy"'}) == words


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
        ["click ref e5"],
        ['click ref e5 (button "Buy [now]")'],
        ['click ref e5 (button "Buy [now]")', 'click ref e6 (textbox "Search")'],
        ["click ref e5"],
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


@BROWSER
async def test_the_head_says_what_the_mean_is_over(run: Run, browser: Browser) -> None:
    """The denominator is printed, and a failure has a word where a reward would be."""
    await run.add("full", reward=1.0)
    await run.add("almost", reward=0.992)
    await run.add("broken", outcome=Outcome.ENVIRONMENT_FAILED, error="The browser crashed.")
    await run.add("open", outcome=None)
    async with opened(browser, await run.write()) as seen:
        assert await seen.text(".mean") == "0.996\nmean reward over 2 graded of 4"
        counts = await seen.page.locator("#outcomes div").all_inner_texts()
        assert {" ".join(text.split()) for text in counts} >= {
            "graded 2",
            "cancelled 0",
            "environment failed 1",
            "unfinished 1",
        }
        assert await seen.page.locator("#rows td.reward .figure").all_inner_texts() == [
            "1",
            "0.99",
        ]
        assert await seen.page.locator("#rows td.reward .quiet").all_inner_texts() == ["none"] * 2
        failures = seen.page.locator("#plot .failure text")
        assert await failures.all_text_contents() == ["environment failed", "unfinished"]
        assert await seen.page.title() == "A job · report"


@BROWSER
async def test_what_was_not_expected_is_marked(run: Run, browser: Browser) -> None:
    """A reward, or the lack of one, is held against what was expected of the task."""
    await run.add("as-told", reward=0.3)
    await run.add("worse", reward=0.5)
    await run.add("failed", outcome=Outcome.LOST)
    await run.add("any", reward=0.1)
    expected = {"as-told": 0.1 + 0.2, "worse": 1.0, "failed": 1.0, "any": None}
    async with opened(browser, await run.write(expected=expected)) as seen:
        texts = await seen.page.locator("#rows td.expected").all_inner_texts()
        assert texts == ["0.30", "≠ 1", "≠ 1", "any"]
        await seen.page.get_by_label("not as expected").check()
        assert await seen.tasks() == ["worse", "failed"]


@BROWSER
async def test_the_table_sorts_and_filters(run: Run, browser: Browser) -> None:
    """A column's head sorts by it, again in reverse; what has no reward stays last."""
    for name, reward in (("beta", 0.5), ("Alpha", 0.25), ("delta", None), ("gamma", 1.0)):
        await run.add(name, outcome=Outcome.GRADED if reward else Outcome.EXPIRED, reward=reward)
    async with opened(browser, await run.write()) as seen:
        head = seen.page.locator("#columns")
        await head.get_by_role("button", name="Task").click()
        assert await seen.tasks() == ["Alpha", "beta", "delta", "gamma"]
        await head.get_by_role("button", name="Reward").focus()
        await seen.page.keyboard.press("Enter")
        assert await seen.tasks() == ["Alpha", "beta", "gamma", "delta"]
        await seen.page.keyboard.press("Enter")
        assert await seen.tasks() == ["gamma", "beta", "Alpha", "delta"]
        assert await seen.page.get_attribute("#column-reward", "aria-sort") == "descending"
        await seen.page.get_by_label("Find").fill("EXPIRED")
        assert await seen.tasks() == ["delta"]
        assert await seen.text("#shown") == "1 of 4 runs shown"
        await seen.page.get_by_label("Find").fill("")
        await seen.page.locator("#outcome").select_option("graded")
        assert await seen.tasks() == ["gamma", "beta", "Alpha"]


@BROWSER
async def test_the_scrubber_moves_by_key_and_by_mouse(run: Run, browser: Browser) -> None:
    """Arrow keys, the slider's own keys, its track and the buttons all go through the steps."""
    name = await run.add("walk", walk(), reward=1)
    async with opened(browser, await run.write(), f"#traj-{name}") as seen:
        page = seen.page
        assert (await seen.text("#position"), await seen.text("#seen")) == ("1 / 4", "text 0")
        await page.keyboard.press("ArrowRight")
        assert (await seen.text("#position"), await seen.text("#seen")) == ("2 / 4", "text 1")
        await page.focus("#scrub")
        await page.keyboard.press("ArrowRight")
        assert await seen.text("#position") == "3 / 4"
        await page.keyboard.press("End")
        assert await seen.text("#position") == "4 / 4"
        await page.focus("#next-step")
        await page.keyboard.press("Enter")
        assert await seen.text("#position") == "4 / 4"
        await page.get_by_role("button", name="Previous step").click()
        assert await seen.text("#position") == "3 / 4"
        await page.keyboard.press("ArrowLeft")
        assert await seen.text("#position") == "2 / 4"
        box = await page.locator("#scrub").bounding_box()
        assert box
        await page.mouse.click(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
        assert await seen.text("#position") == "4 / 4"
        assert "covered" in await seen.text("#step-error")
        states = await page.locator("#actions .state").all_inner_texts()
        assert [state.strip() for state in states] == ["failed", "not performed"]


@BROWSER
async def test_an_action_is_drawn_on_the_picture_that_it_acted_on(
    run: Run, browser: Browser
) -> None:
    """The ring is where the click went, on the picture from before; after it, nothing is drawn."""
    steps = walk()
    pictures = [see for _, see in steps]
    name = await run.add("walk", steps, reward=1)
    async with opened(browser, await run.write(), f"#traj-{name}/step-2") as seen:
        page, picture = seen.page, seen.page.locator("#picture")
        assert await picture.get_attribute("data-sha256") == pictures[0].sha256
        assert await place_in_picture(page, ".spot") == pytest.approx((0.25, 0.25), abs=0.01)
        assert await seen.text(".typed") == "lamp"
        await page.keyboard.press("b")
        assert await picture.get_attribute("data-sha256") == pictures[1].sha256
        assert await page.locator(".spot").count() == 0
        await page.get_by_role("button", name="Before", exact=True).click()
        await page.keyboard.press("ArrowRight")
        assert await place_in_picture(page, ".arrow") == pytest.approx((0.5, 0.5), abs=0.01)
        assert await page.get_attribute(".marks .stroke", "points") == "64,40 320,200"
        await page.keyboard.press("ArrowRight")
        assert "click ref e1" in await seen.text("#caption")


@BROWSER
async def test_places_are_mapped_between_pictures_of_different_scale(
    run: Run, browser: Browser
) -> None:
    """A click on a large picture is at the same place of a smaller one from the record."""
    large = shot("red", size=(1280, 800))
    small = shot("green").model_copy(update={"scale": 2.0})
    steps = [
        step(0, see=large, kind="screenshot"),
        step(1, {"type": "press", "keys": ["a"]}, see=small, kind="act"),
        step(2, {"type": "click", "x": 960, "y": 200}, see=small, kind="act"),
        step(3, {"type": "click", "ref": "e1"}, see=small, places=({"x": 320, "y": 400},)),
    ]
    name = await run.add("scales", steps, reward=1)
    async with opened(browser, await run.write(), f"#traj-{name}/step-3") as seen:
        assert await place_in_picture(seen.page, ".spot") == pytest.approx((0.75, 0.25), abs=0.01)
        await seen.page.keyboard.press("ArrowRight")
        assert await place_in_picture(seen.page, ".spot") == pytest.approx((0.25, 0.5), abs=0.01)


@BROWSER
async def test_only_the_shown_picture_is_decoded(run: Run, browser: Browser) -> None:
    """The page has one image element, without a source until a step is shown."""
    name = await run.add("walk", walk(), reward=1)
    async with opened(browser, await run.write()) as seen:
        assert await seen.page.locator("img").count() == 1
        assert await seen.page.locator("img[src]").count() == 0
        await seen.page.get_by_role("link", name="walk").click()
        await expect(seen.page.locator("img[src]")).to_be_visible()
        assert await decoded_width(seen.page) == 640
        assert await seen.page.locator("img").count() == 1
        assert name in seen.page.url


@BROWSER
async def test_a_deep_link_opens_a_step_and_the_way_back_keeps_the_place(
    run: Run, browser: Browser
) -> None:
    """Links name trajectory and step; Escape goes back to the row; an unknown one says so."""
    await run.add("first", walk(), reward=1)
    odd = await run.add("second", walk(), reward=1, id="a/b c?#%zz")
    async with opened(browser, await run.write()) as seen:
        page = seen.page
        await page.get_by_role("link", name="second").press("Enter")
        await expect(page.locator("#task-name")).to_have_text("second")
        await expect(page.locator("#task-name")).to_be_focused()
        await page.keyboard.press("ArrowRight")
        link = await page.get_attribute("#step-link", "href")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("link", name="second")).to_be_focused()
        assert link
        assert odd not in link
        await seen.go(link)
        assert (await seen.text("#task-name"), await seen.text("#position")) == ("second", "2 / 4")
        await page.get_by_role("link", name="Previous").click()
        await expect(page.locator("#task-name")).to_have_text("first")
        for bad in ("#traj-none", "#traj-%zz", "#traj-/step-99999999999", "#other"):
            await seen.go(bad)
            assert await page.locator("#overview").is_visible()
        await seen.go("#traj-none")
        assert "no trajectory none" in await seen.text("#notice")


@BROWSER
async def test_the_grade_shows_its_parts_and_the_error_its_text(run: Run, browser: Browser) -> None:
    """Subscores are a tree with weights; a failed grading has its reason and no reward."""
    part = SubScore(name="one item", value=0.5, weight=1, info={"found": 2})
    tree = (SubScore(name="cart", value=0.75, weight=2, children=(part,)),)
    good = await run.add(
        "good", reward=0.75, subscores=tree, content="Nearly.", logs=["opened", "closed"]
    )
    bad = await run.add("bad", outcome=Outcome.GRADING_FAILED, error="shop.py:12: yielded None")
    async with opened(browser, await run.write(), f"#traj-{good}") as seen:
        grade = await seen.text("#grade")
        for words in ("Reward 0.75. Nearly.", "cart", "weight 2", "one item", '{"found": 2}'):
            assert words in grade
        assert await seen.page.locator("#grade .tree > li > ul > li").count() == 1
        assert await seen.text("#log") == "09:00:00 opened\n09:00:00 closed"
        await seen.go(f"#traj-{bad}")
        assert "No reward: grading failed." in await seen.text("#grade")
        assert await seen.text("#grade .error") == "shop.py:12: yielded None"
        assert await seen.text("#verdict") == "no reward\ngrading failed"


@BROWSER
async def test_a_picture_that_cannot_be_shown_says_why(run: Run, browser: Browser) -> None:
    """A file that is missing, cut short, or never was a picture has words in its place."""
    gone, cut, fine = shot("red"), shot("green"), shot("blue", kind="JPEG")
    broken = fine.model_copy(update={"data": b"\x89PNG but not really"})
    name = await run.add("a", [step(i, see=s) for i, s in enumerate((gone, cut, broken, fine))])
    run.file_of(gone).unlink()
    run.file_of(cut).write_bytes(cut.data[:100])
    async with opened(browser, await run.write(), f"#traj-{name}") as seen:
        page = seen.page
        assert await seen.text("#placeholder") == "The picture is missing."
        await page.keyboard.press("ArrowRight")
        assert "is damaged" in await seen.text("#placeholder")
        assert await page.locator("#picture").is_hidden()
        await page.keyboard.press("ArrowRight")
        await page.wait_for_selector("#placeholder:has-text('cannot be shown')")
        await page.keyboard.press("ArrowRight")
        assert await decoded_width(page) == 640
        assert await page.locator("#placeholder").is_hidden()


@BROWSER
@pytest.mark.parametrize("bypass", [False, True])
async def test_what_was_recorded_never_becomes_markup(
    run: Run,
    browser: Browser,
    bypass: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """Hostile text in every field is shown as text, with the page's policy and without it."""
    await record_hostility(run)
    path = await run.write(expected={HOSTILE[:200]: 1.0})
    async with opened(browser, path, bypass_csp=bypass) as seen:
        page = seen.page
        elements = "document.querySelectorAll('script, img, iframe, link, b, style').length"
        before = await page.evaluate(elements)
        assert await page.text_content("#job-name") == HOSTILE
        await page.locator("#rows th.task a").click()
        await expect(page.locator("#position")).to_have_text("1 / 3")
        for _ in range(3):
            await page.keyboard.press("ArrowRight")
            await page.keyboard.press("b")
        for summary in await page.locator("summary:visible").all():
            await summary.click()
        for selector in ("#prompt", "#seen", "#step-error"):
            assert await page.text_content(selector) == HOSTILE
        assert HOSTILE in (await page.text_content("#log") or "")
        assert HOSTILE in (await page.text_content("#actions") or "")
        assert await page.evaluate(elements) == before
        assert await page.evaluate("document.documentElement.dataset.ran") is None
        assert await page.locator("main a:not([href^='#'])[href]").count() == 0


@BROWSER
async def test_the_policy_stops_what_would_slip_through(run: Run, browser: Browser) -> None:
    """Were there a hole, the page still could neither run a script nor reach a server."""
    await run.add("one", reward=1)
    reached: list[Any] = []

    async def count(stream: SocketStream) -> None:
        async with stream:
            reached.append(stream)

    async with (
        opened(browser, await run.write()) as seen,
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, count)
        port = listener.extra(SocketAttribute.local_port)
        refused = await seen.page.evaluate(SLIP, f"http://127.0.0.1:{port}/a.png")
        assert refused == ["markup", "script", "fetch", "image"]
        assert await seen.page.evaluate("document.documentElement.dataset.ran") is None
        assert reached == []
        seen.problems.clear()
        tasks.cancel_scope.cancel()


SLIP = """async address => {
  const refused = [];
  try { document.body.innerHTML += `<img src="${address}">`; } catch { refused.push('markup'); }
  const script = document.createElement('script');
  try { script.text = 'document.documentElement.dataset.ran = 1'; }
  catch { refused.push('script'); }
  document.body.append(script);
  try { await fetch(address); } catch { refused.push('fetch'); }
  const image = new Image();
  const failed = new Promise(done => image.addEventListener('error', done));
  image.src = address;
  await failed;
  return [...refused, 'image'];
}"""


@BROWSER
async def test_it_fits_a_phone_and_every_scheme(run: Run, browser: Browser) -> None:
    """At 390 px nothing runs out of the page; dark is dark; nothing moves where that is asked."""
    name = await run.add("a_task_" + "with_a_very_long_name" * 6, walk(), reward=0.5)
    path = await run.write(expected={})
    phone: dict[str, Any] = {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "dark",
        "reduced_motion": "reduce",
    }
    async with opened(browser, path, **phone) as seen:
        for part in ("", f"#traj-{name}/step-2"):
            await seen.go(part)
            assert await seen.page.evaluate("document.documentElement.scrollWidth") == 390
        dark = await seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(int(n) for n in re.findall(r"\d+", dark)) < 60
        still = "getComputedStyle(document.getElementById('next-step')).transitionDuration"
        assert await seen.page.evaluate(still) == "0s"


@BROWSER
async def test_the_keyboard_reaches_everything_and_shows_where_it_is(
    run: Run, browser: Browser
) -> None:
    """Tab passes every control of a trajectory, each with a visible ring."""
    name = await run.add("walk", walk(), reward=1, logs=["opened"])
    async with opened(browser, await run.write(), f"#traj-{name}/step-2") as seen:
        reached: set[str] = set()
        for _ in range(18):
            await seen.page.keyboard.press("Tab")
            at = await seen.page.evaluate(
                "[document.activeElement.id || document.activeElement.tagName,"
                " getComputedStyle(document.activeElement).outlineStyle]"
            )
            if at[0] == "BODY":
                break
            assert at[1] != "none", at
            reached.add(at[0])
        assert reached >= {
            "back",
            "prompt",
            "previous-step",
            "scrub",
            "next-step",
            "side-before",
            "side-after",
            "step-link",
            "seen",
            "SUMMARY",
            "log",
        }


@BROWSER
async def test_an_empty_job_has_a_report(run: Run, browser: Browser) -> None:
    """A job without trajectories says so instead of dividing by zero."""
    await run.store.add_job(run.job)
    async with opened(browser, await run.write()) as seen:
        assert await seen.text(".mean") == "—\nno graded task of 0"
        assert await seen.text("#shown") == "0 runs"


@BROWSER
@pytest.mark.parametrize(("trajectories", "steps"), [(1, 1000), (200, 5)])
async def test_a_large_job_opens(
    tmp_path: Path, browser: Browser, trajectories: int, steps: int
) -> None:
    """A thousand steps, in one trajectory or in two hundred, can be gone through."""
    picture = shot("red", size=(1280, 800))
    click = {"type": "click", "x": 9, "y": 9}
    made = [step(i, click, see=picture, observation_text="line\n" * 200)[0] for i in range(steps)]
    rows = [plain(f"tr-{i}", Outcome.GRADED, (i % 5) / 4, made) for i in range(trajectories)]
    path = tmp_path / "report.html"
    path.write_text(render_report(Job(name="Large"), rows, lambda _: picture.data))
    async with opened(browser, path) as seen:
        assert len(await seen.tasks()) == trajectories
        assert await seen.page.locator("#plot a").count() == trajectories
        await seen.go(f"#traj-tr-{trajectories - 1}/step-{steps}")
        assert await seen.text("#position") == f"{steps} / {steps}"
        await seen.page.get_by_text("All steps in words").click()
        await seen.page.locator("#outline button").nth(1).click()
        assert await seen.text("#position") == f"2 / {steps}"
