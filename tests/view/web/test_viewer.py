"""`hud-mcp view`, used as a person uses it: in a browser, by mouse and by keyboard."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from playwright.async_api import Browser, expect
from recorded import (
    BROWSER,
    HOSTILE,
    PATIENCE_S,
    START,
    Run,
    Seen,
    decoded_width,
    opened,
    place_in_picture,
    receipt,
    record_hostility,
    served,
    shot,
    step,
    walk,
)

from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Cause, Outcome

pytestmark = [pytest.mark.anyio, BROWSER]

ROOT = Path(__file__).resolve().parents[3]


@asynccontextmanager
async def viewing(
    browser: Browser, store: Store, part: str = "", **options: Any
) -> AsyncIterator[Seen]:
    """Open the viewer's page on a store."""
    async with served(viewer_app(store)) as base, opened(browser, f"{base}/", part, **options) as s:
        yield s


@pytest.mark.long
async def test_a_record_without_anything_says_how_to_fill_it(run: Run, browser: Browser) -> None:
    """The first page of an empty store is no empty table."""
    async with viewing(browser, run.store) as seen:
        assert "Nothing is recorded yet." in await seen.text("#jobs")
        assert await seen.page.locator("#jobs-table").is_hidden()


async def test_from_the_jobs_to_a_step_and_back(run: Run, browser: Browser) -> None:
    """Each page leads to the next by a link, and Escape leads back to where one was."""
    run.job = Job(name="First", taskset="shop", agent="me")
    await run.add("broken", outcome=Outcome.LOST)
    await run.add("walk", walk(), reward=0.5, logs=["opened"])
    async with viewing(browser, run.store) as seen:
        page = seen.page
        assert await page.locator("#job-rows td.average .figure").all_inner_texts() == ["0.50"]
        await page.get_by_role("link", name="First").click()
        await expect(page.locator("#job-name")).to_have_text("First")
        assert await seen.text(".mean") == "0.50\nmean reward over 1 graded of 2\n0.01 to 0.99"
        await page.get_by_role("link", name="walk").click()
        await expect(page.locator("#position")).to_have_text("1 / 4")
        await expect(page.locator("#log")).to_have_text("09:00:00 opened")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("link", name="walk")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("link", name="First")).to_be_focused()


@pytest.mark.long
async def test_the_scrubber_shows_what_was_done_on_each_picture(run: Run, browser: Browser) -> None:
    """Pictures come from the server, one at a time, with the actions drawn where they were."""
    name = await run.add("walk", walk(), reward=1)
    async with viewing(browser, run.store, f"#traj-{name}/step-2") as seen:
        page = seen.page
        assert await decoded_width(page) == 640
        assert await place_in_picture(page, ".spot") == pytest.approx((0.25, 0.25), abs=0.01)
        assert await seen.text(".typed") == "lamp"
        await page.keyboard.press("End")
        assert (await seen.text("#position"), await seen.text("#seen")) == ("4 / 4", "text 3")
        await page.keyboard.press("Home")
        assert await seen.text("#position") == "1 / 4"
        box = await page.locator("#scrub").bounding_box()
        assert box
        await page.mouse.click(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
        assert await seen.text("#position") == "4 / 4"
        assert "covered" in await seen.text("#step-error")


@pytest.mark.long
async def test_a_picture_that_is_gone_or_damaged_says_so(run: Run, browser: Browser) -> None:
    """What the server knows of a picture's file stands in its place."""
    gone, cut = shot("red"), shot("green")
    name = await run.add("a", [step(i, see=s) for i, s in enumerate((gone, cut))], reward=1)
    run.file_of(gone).unlink()
    run.file_of(cut).write_bytes(cut.data[:100])
    async with viewing(browser, run.store, f"#traj-{name}") as seen:
        await expect(seen.page.locator("#placeholder")).to_have_text("The picture is missing.")
        await seen.page.keyboard.press("ArrowRight")
        await expect(seen.page.locator("#placeholder")).to_contain_text(
            re.compile("damaged|missing")
        )
        refused = [p for p in seen.problems if "status of 4" in p]
        assert refused == seen.problems  # the browser itself notes answers that are no pictures
        seen.problems.clear()


@pytest.mark.long
async def test_the_table_is_used_by_keyboard(run: Run, browser: Browser) -> None:
    """J, K, arrows, Home and End go through rows, / finds, Escape leaves the field."""
    for name in ("alpha", "beta", "gamma"):
        await run.add(name, reward=1)
    async with viewing(browser, run.store, f"#job-{run.job.id}") as seen:
        page = seen.page
        for key, name in (
            ("j", "alpha"), ("j", "beta"), ("k", "alpha"), ("ArrowDown", "beta"),
            ("End", "gamma"), ("j", "gamma"), ("Home", "alpha"),
        ):  # fmt: skip
            await page.keyboard.press(key)
            await expect(page.get_by_role("link", name=name)).to_be_focused()
        await page.keyboard.press("/")
        await expect(page.locator("#find")).to_be_focused()
        await page.keyboard.type("jamm")
        assert await seen.text("#shown") == "0 of 3 runs shown"
        await page.locator("#find").fill("gam")
        assert await seen.tasks() == ["gamma"]
        await page.keyboard.press("Escape")
        assert await page.evaluate("document.activeElement.tagName") == "BODY"
        assert page.url.endswith(run.job.id)
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await expect(page.locator("#task-name")).to_have_text("gamma")
        await page.keyboard.press("k")
        await expect(page.locator("#task-name")).to_have_text("beta")


@pytest.mark.long
async def test_two_runs_of_one_task_stand_side_by_side(run: Run, browser: Browser) -> None:
    """Also of different jobs; one slider moves both, and the shorter one says where it ended."""
    other = Job(name="Another agent")
    first = await run.add("walk", walk(), reward=1)
    await run.store.add_job(other)
    second = await run.add("walk", walk()[:2], reward=0.25, job_id=other.id)
    await run.add("unrelated", walk(), reward=0.25, job_id=other.id)
    async with viewing(browser, run.store, f"#traj-{first}") as seen:
        page = seen.page
        choice = page.locator("#compare-with")
        await expect(choice.locator("option")).to_have_count(2)
        assert "reward 0.25, 2 steps, Another agent" in await choice.inner_text()
        await choice.select_option(index=1)
        await expect(page.locator("#compare-title")).to_have_text("walk")
        assert page.url.endswith(f"#compare-{first}/{second}")
        assert await page.locator(".side .big").all_inner_texts() == ["1", "0.25"]
        await page.keyboard.press("ArrowRight")
        await expect(page.locator(".side pre:visible")).to_have_text(["text 1", "text 1"])
        assert await page.locator(".side .spot").count() == 2
        await page.keyboard.press("End")
        await expect(page.locator(".side.first pre:visible")).to_have_text("text 3")
        assert await page.locator(".side .ended:visible").all_inner_texts() == [
            "This run ended after 2 steps."
        ]
        await page.keyboard.press("Escape")
        await expect(page.locator("#task-name")).to_have_text("walk")


@pytest.mark.long
async def test_a_running_job_brings_itself_up_to_date(run: Run, browser: Browser) -> None:
    """What ends while one looks appears without a reload, and the focus stays."""
    name = await run.add("going", outcome=None)
    async with viewing(browser, run.store, f"#job-{run.job.id}") as seen:
        await seen.page.keyboard.press("j")
        assert await seen.page.locator("#rows td.outcome").all_inner_texts() == ["unfinished"]
        trajectory = await run.store.load_trajectory(name)
        await run.store.end_session(name, receipt(trajectory, Outcome.GRADED, 0.75))
        await expect(seen.page.locator("#rows td.reward .figure")).to_have_text("0.75")
        await expect(seen.page.get_by_role("link", name="going")).to_be_focused()


@pytest.mark.long
async def test_sessions_without_a_job_are_listed(run: Run, browser: Browser) -> None:
    """What people did through a server is there beside the jobs, with a link to watch it."""
    await run.store.add_job(run.job)
    run.count = 1
    await run.add("by hand", outcome=None, job_id=None, live_token="ab" * 16)
    async with viewing(browser, run.store) as seen:
        await seen.page.get_by_role("link", name="Sessions without a job").click()
        await seen.page.get_by_role("link", name="by hand").click()
        link = seen.page.get_by_role("link", name="Watch it live")
        await expect(link).to_have_attribute("href", f"/live/{'ab' * 16}")


async def record_interruptions(run: Run) -> None:
    """One run that was interrupted and tried again, one that was and was not, one that passed."""
    run.tasks = tuple(Task(id=name, env="shop", template="find") for name in ("a", "b", "c"))
    stopped: dict[str, Any] = {"outcome": Outcome.EXPIRED, "cause": Cause.OPERATOR}
    await run.add("a", **stopped)
    await run.add("a", reward=1.0)
    await run.add("b", outcome=Outcome.CANCELLED, cause=Cause.OPERATOR)
    await run.add("c", outcome=Outcome.CANCELLED, cause=Cause.AGENT)


async def look_at_interruptions(seen: Seen) -> None:
    """What a job's page has of them: a count, a badge, the plot with its legend, the filter."""
    page = seen.page
    assert await seen.text("#mean-over") == "mean reward over 1 graded of 3"
    assert await seen.text("#outcomes .interrupted") == "interrupted\n1"
    assert await seen.text("#outcomes .cancelled") == "cancelled\n1"
    assert await page.locator("#plot .failure text").all_text_contents() == [
        "interrupted",
        "cancelled",
    ]
    assert "no reward (interrupted, cancelled)" in await seen.text("#legend")
    assert await page.locator("#rows .badge.interrupted").all_inner_texts() == ["interrupted"] * 2
    assert await page.locator("#outcome option").all_inner_texts() == [
        "any",
        "graded",
        "cancelled",
        "interrupted",
    ]
    await page.locator("#outcome").select_option("interrupted")
    assert await seen.tasks() == ["a", "b"]
    assert await seen.text("#shown") == "2 of 4 runs shown"


@pytest.mark.long
async def test_what_was_interrupted_is_counted_shown_and_found(run: Run, browser: Browser) -> None:
    """Neither the agent's cancelled nor nothing: a class of its own, on the job's page."""
    await record_interruptions(run)
    async with viewing(browser, run.store, f"#job-{run.job.id}") as seen:
        await look_at_interruptions(seen)
        await seen.page.get_by_role("link", name="b", exact=True).click()
        await expect(seen.page.locator("#detail .badge")).to_have_text("interrupted")
        await expect(seen.page.locator("#detail")).to_contain_text("operator")


@pytest.mark.long
async def test_a_report_has_what_was_interrupted_too(run: Run, browser: Browser) -> None:
    """The same page in one file, where a try that was repeated can be found as well."""
    await record_interruptions(run)
    async with opened(browser, await run.write()) as seen:
        await look_at_interruptions(seen)


@pytest.mark.long
async def test_a_retried_interruption_alone_can_still_be_found(run: Run, browser: Browser) -> None:
    """No counted run ended so, and the filter has the word all the same."""
    run.tasks = (Task(id="a", env="shop", template="find"),)
    await run.add("a", outcome=Outcome.EXPIRED, cause=Cause.MACHINE)
    await run.add("a", reward=1.0)
    async with viewing(browser, run.store, f"#job-{run.job.id}") as seen:
        assert await seen.page.locator("#outcomes .interrupted").count() == 0
        await seen.page.locator("#outcome").select_option("interrupted")
        assert await seen.text("#shown") == "1 of 2 runs shown"


@pytest.mark.long
async def test_sessions_without_a_job_may_have_been_interrupted(run: Run, browser: Browser) -> None:
    """A server that was stopped under them does not keep their page from opening."""
    await run.store.add_job(run.job)
    run.count = 1
    await run.add("by hand", outcome=Outcome.EXPIRED, cause=Cause.OPERATOR, job_id=None)
    async with viewing(browser, run.store, "#job-") as seen:
        assert await seen.text("#outcomes .interrupted") == "interrupted\n1"
        assert await seen.tasks() == ["by hand"]


@pytest.mark.long
async def test_many_runs_have_a_bar_for_those_that_were_interrupted(
    run: Run, browser: Browser
) -> None:
    """It has a letter, the legend says its word, and choosing it lists them."""
    for number in range(250):
        end: dict[str, Any] = {"reward": 1.0}
        if number % 50 == 0:
            end = {"outcome": Outcome.CANCELLED, "cause": Cause.OPERATOR}
        await run.add(f"task {number}", **end)
    async with viewing(browser, run.store, f"#job-{run.job.id}") as seen:
        await expect(seen.page.locator("#legend")).to_contain_text("I interrupted")
        await seen.page.get_by_role("button", name="interrupted, no reward: 5 runs").click()
        assert await seen.text("#shown") == "5 of 250 runs shown"
        assert await seen.text("#picked") == "only interrupted, no reward"


@pytest.mark.long
async def test_a_group_has_pass_rates_and_earlier_tries_do_not_count(
    run: Run, browser: Browser
) -> None:
    """The figures have intervals and denominators; a failure that was tried again is marked."""
    run.job = Job(name="Twice", group=2)
    run.tasks = tuple(Task(id=name, env="shop", template="find") for name in ("a", "b", "c"))
    await run.add("a", outcome=Outcome.LOST)
    for name, reward in (("a", 1.0), ("a", 0.0), ("b", 1.0), ("b", 1.0), ("c", 0.5)):
        await run.add(name, reward=reward)
    async with viewing(browser, run.store, f"#job-{run.job.id}/by-none") as seen:
        assert await seen.text("#mean-over") == "mean reward over 5 graded of 6"
        figures = await seen.text("#statistics")
        for words in ("pass@1\n0.500", "pass@2\n1.000", "pass^2\n0.500", "earlier tries, not"):
            assert words in figures
        assert "an earlier try, not counted" in await seen.text("#rows tr:first-child")
        assert await seen.page.locator("#plot a").count() == 5
        assert await seen.text("#outcomes .not_begun") == "not begun\n1"


@pytest.mark.long
async def test_a_damaged_row_is_named_and_the_others_are_shown(run: Run, browser: Browser) -> None:
    """What a hand has broken in the record breaks no list, and says what it is."""
    await run.add("whole", reward=1)
    broken = await run.add("broken", reward=1)
    with closing(sqlite3.connect(run.folder / "store.sqlite3")) as connection, connection:
        update = 'UPDATE sessions SET receipt = \'{"reward": "much"}\' WHERE id = ?'
        connection.execute(update, (broken,))
    async with viewing(browser, run.store, f"#job-{run.job.id}") as seen:
        assert await seen.page.locator("#rows tr").count() == 2
        assert "damaged: " in await seen.text("#rows tr:last-child")
        assert await seen.text(".mean") == "1\nmean reward over 1 graded of 2\n0.02 to 1.00"
        await seen.page.locator("#rows tr:last-child a").click()
        await expect(seen.page.locator("#notice")).to_contain_text("The record is damaged")
        seen.problems[:] = [p for p in seen.problems if "status of 503" not in p]


@pytest.mark.long
async def test_it_fits_a_phone_and_the_dark(run: Run, browser: Browser) -> None:
    """At 390 px no page runs out of the screen, and dark is dark."""
    long = "with_a_very_long_name" * 6
    run.job = Job(name=long, taskset=long, agent=long)
    first = await run.add(f"a_{long}", walk(), reward=0.5)
    second = await run.add(f"a_{long}", walk(), reward=0.25)
    phone: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    async with viewing(browser, run.store, **phone) as seen:
        parts = ("", f"#job-{run.job.id}", f"#traj-{first}/step-2", f"#compare-{first}/{second}")
        for part in parts:
            await seen.go(part)
            assert await seen.page.evaluate("document.documentElement.scrollWidth") == 390, part
        dark = await seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(int(n) for n in re.findall(r"\d+", dark)) < 60


@pytest.mark.sampled(1)
@pytest.mark.parametrize("bypass", [False, True])
async def test_what_was_recorded_never_becomes_markup(
    run: Run,
    browser: Browser,
    bypass: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """Hostile text in every field is shown as text, with the server's policy and without it."""
    name = await record_hostility(run)
    async with viewing(browser, run.store, bypass_csp=bypass) as seen:
        page = seen.page
        elements = "document.querySelectorAll('script, img:not(.film img), iframe, link, b').length"
        before = await page.evaluate(elements)
        await page.locator("#job-rows a").click()
        await expect(page.locator("#job-name")).to_have_text(HOSTILE, use_inner_text=False)
        await page.locator("#rows th.task a").click()
        await expect(page.locator("#position")).to_have_text("1 / 3")
        for _ in range(3):
            await page.keyboard.press("ArrowRight")
            await page.keyboard.press("b")
        for summary in await page.locator("summary:visible").all():
            await summary.click()
        for selector in ("#prompt", "#seen", "#step-error"):
            assert await page.text_content(selector) == HOSTILE
        assert HOSTILE[:80] in (await page.text_content("#outline") or "")
        assert await page.evaluate(elements) == before
        quoted = await page.evaluate("name => encodeURIComponent(name)", name)
        await seen.go(f"#compare-{quoted}/{quoted}")
        assert HOSTILE in (await page.text_content("#sides") or "")
        assert await page.evaluate("document.documentElement.dataset.ran") is None
        assert await page.locator("main a:not([href^='#'])[href]").count() == 0


ODD = "\u202egnp.exe \u2066x\u2069 \x1b[31mred\x1b[0m \ud800 \U0001f600 a\u0000b\r\nc\u2028d"


@pytest.mark.long
async def test_odd_characters_reach_the_page(run: Run, browser: Browser) -> None:
    """Bidi marks, escape sequences, NULs and halves of surrogates neither fail nor spread."""
    made, _ = step(0, {"type": "type", "text": ODD}, observation_text=ODD.replace("\ud800", ""))
    name = await run.add("odd \u202e name", [(made, None)], reward=1, content="\u202edesrever")
    async with viewing(browser, run.store, f"#traj-{name}") as seen:
        await expect(seen.page.locator("#position")).to_have_text("1 / 1")
        await expect(seen.page.locator("#actions")).to_contain_text("[31mred")
        isolated = "getComputedStyle(document.querySelector('#actions .words')).unicodeBidi"
        assert await seen.page.evaluate(isolated) in ("isolate", "plaintext")


async def add_many(run: Run, count: int) -> None:
    """Record many trajectories of few steps."""
    run.job = Job(name="Many", taskset="web", agent="me", group=4)
    await run.store.add_job(run.job)
    run.count = count
    outcomes = [Outcome.GRADED] * 9 + [Outcome.EXPIRED]

    async def add(i: int) -> None:
        made = Trajectory(
            id=f"tr-{i}",
            job_id=run.job.id,
            environment="shop",
            task=Task(id=f"task-{i // 4:03}", env="shop", template="find"),
            started_at=START + timedelta(seconds=i),
        )
        outcome = outcomes[i % 10]
        reward = (i % 3) / 2 if outcome is Outcome.GRADED else None
        await run.store.add_session(made, secret_digest=f"{i:064}", principal=None)
        await run.store.end_session(made.id, receipt(made, outcome, reward))

    for start in range(0, count, 100):
        async with anyio.create_task_group() as group:
            for i in range(start, start + 100):
                group.start_soon(add, i)


STALLS = """
window.stalls = [];
new PerformanceObserver(list => stalls.push(...list.getEntries().map(entry => entry.duration)))
  .observe({ type: 'longtask', buffered: true });
"""


@pytest.mark.long
async def test_a_job_of_two_thousand_trajectories_opens(run: Run, browser: Browser) -> None:
    """It is listed, plotted, sorted, filtered and left, and the page never stalls for long."""
    await add_many(run, 2000)
    async with viewing(browser, run.store) as seen:
        page = seen.page
        await page.add_init_script(STALLS)
        await seen.go(f"#job-{run.job.id}/by-none")
        await expect(page.locator("#shown")).to_have_text("2,000 runs")
        await expect(page.locator("#rows tr")).to_have_count(100)
        assert await page.locator("#plot .bar-of").count() == 13
        await page.locator("#column-reward button").click()
        await expect(page.locator("#rows td.reward").first).to_have_text("0")
        await expect(page.locator("#rows tr")).to_have_count(100)
        await page.locator("#find").fill("task-49")
        await expect(page.locator("#shown")).to_have_text("40 of 2,000 runs shown")
        await page.locator("#find").fill("")
        await page.get_by_role("button", name="reward 0.50 to 0.60").press("Enter")
        await expect(page.locator("#shown")).to_have_text("600 of 2,000 runs shown")
        await page.get_by_role("button", name="Show all").click()
        await expect(page.locator("#shown")).to_have_text("2,000 runs")
        await page.locator("#last-page").click()
        await expect(page.locator("#page-place")).to_have_text("1,901 to 2,000 of 2,000 rows")
        await page.evaluate("scrollTo(0, document.body.scrollHeight)")
        await expect(page.locator("#rows tr").last).to_be_in_viewport()
        assert max(await page.evaluate("stalls"), default=0) < 1500  # far above what is measured


@pytest.mark.long
async def test_a_trajectory_of_a_thousand_steps_is_gone_through(run: Run, browser: Browser) -> None:
    """Steps are fetched as they are looked at; the list of all of them scrolls."""
    click = {"type": "click", "x": 9, "y": 9}
    picture = shot("red", size=(1280, 800))
    steps = [
        step(i, click, see=picture, observation_text=f"text {i}\n" + "line\n" * 200)
        for i in range(1000)
    ]
    name = await run.add("long", steps, reward=1)
    async with viewing(browser, run.store) as seen:
        page = seen.page
        await page.add_init_script(STALLS)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await seen.go(f"#traj-{name}/step-500")
        await expect(page.locator("#seen")).to_contain_text("text 499")
        assert len([url for url in asked if "/api/steps" in url]) <= 2
        await page.locator("#scrub").focus()
        await page.keyboard.press("End")
        await expect(page.locator("#seen")).to_contain_text("text 999")
        for _ in range(30):
            await page.keyboard.press("ArrowLeft")
        await expect(page.locator("#position")).to_have_text("970 / 1000")
        await expect(page.locator("#seen")).to_contain_text("text 969")
        await page.get_by_role("tab", name="All steps").click()
        outline = page.locator("#outline button")
        await expect(outline).to_have_count(1000)
        await outline.nth(700).click()
        await expect(page.locator("#seen")).to_contain_text("text 700")
        assert max(await page.evaluate("stalls"), default=0) < 1500


async def test_the_data_is_paged(run: Run) -> None:
    """No reply holds more rows or steps than a page has, whatever is asked for."""
    await add_many(run, 700)
    name = await run.add("long", [step(i) for i in range(150)], reward=1, id="long")
    transport = httpx.ASGITransport(app=viewer_app(run.store))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:
        head = (await asking.get("/api/job", params={"id": run.job.id})).json()
        assert (head["total"], len(head["trajectories"])) == (701, 500)
        more = {"id": run.job.id, "revision": head["revision"], "start": 500}
        assert len((await asking.get("/api/rows", params=more)).json()["rows"]) == 201
        known = {"id": run.job.id, "known": head["revision"]}
        assert (await asking.get("/api/job", params=known)).json() == {"revision": head["revision"]}
        steps = await asking.get("/api/steps", params={"id": name, "start": 20, "stop": 1000})
        assert [row["index"] for row in steps.json()["steps"]] == list(range(20, 120))
        detail = (await asking.get("/api/trajectory", params={"id": name})).json()
        assert "steps" not in detail
        assert len(detail["outline"]) == 150


def view(*options: str, cwd: Path) -> "subprocess.Popen[str]":
    """Start the command."""
    return subprocess.Popen(
        [sys.executable, "-m", "hud_mcp", "view", "--port", "0", *options],
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.long
async def test_the_command_says_where_it_is_and_ends_on_a_signal(run: Run, tmp_path: Path) -> None:
    """It prints its address once it answers, and a signal ends it without a trace."""
    await run.add("one", reward=1)
    with view("--store", str(tmp_path / "store.sqlite3"), cwd=tmp_path) as process:
        assert process.stdout
        assert process.stderr
        line = await anyio.to_thread.run_sync(process.stdout.readline)
        async with httpx.AsyncClient() as asking:
            jobs = (await asking.get(f"{line.split()[0]}api/jobs")).json()["jobs"]
        assert [job["name"] for job in jobs] == ["A job"]
        process.terminate()
        assert await anyio.to_thread.run_sync(process.wait) == 0
        assert process.stderr.read() == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "is open to other machines"),
        (("--host", "0.0.0.0", "--token", "short"), "at least 8 characters"),
        (("--store", "nowhere.sqlite3"), "There is no store at "),
    ],
)
def test_the_command_refuses_what_would_be_a_mistake(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    """Everybody's network without a token, a token that is guessed, a record that is not there."""
    process = view(*options, cwd=tmp_path)  # which `communicate` closes
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert said in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
async def test_the_command_refuses_a_record_that_it_cannot_read(tmp_path: Path) -> None:
    """One of a newer version is named as that before the page opens."""
    path = tmp_path / "store.sqlite3"
    store = Store(path)
    await store.add_job(Job(name="a"))
    await store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE versions SET version = 99")
    process = view("--store", str(path), cwd=tmp_path)
    _, errors = await anyio.to_thread.run_sync(lambda: process.communicate(timeout=PATIENCE_S))
    assert process.returncode == 1
    assert "has version 99" in errors
    assert "update hud-mcp" in errors
