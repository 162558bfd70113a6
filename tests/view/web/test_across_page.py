"""Several jobs side by side: flips, intervals, each task in each job, keyboard, phone."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

import anyio
import httpx
import pytest
from playwright.async_api import Browser, Page, expect
from recorded import BROWSER, HOSTILE, PATIENCE_S, Run, Seen, opened, served

from hud_mcp.plugins.view.web.across import MOST_JOBS, PAGE_TASKS
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

pytestmark = [pytest.mark.anyio]

End = float | Outcome | None
"""A reward, an outcome without one, or no end."""


async def record(run: Run, agent: str, ends: dict[str, Sequence[End]], **fields: Any) -> Job:
    """A job of an agent, in the same store, with the ends of each task's runs."""
    named = {"name": f"{agent}'s job", "agent": agent, "taskset": "shop"}
    job = Job.model_validate({**named, **fields})
    tasks = [Task(id=name, env="shop", template="find") for name in ends]
    await run.store.add_job(job, tasks)
    run.count = max(run.count, 1)  # the job that the fixture has is not recorded
    for name, of_task in ends.items():
        for i, end in enumerate(of_task):
            more: dict[str, Any] = {"reward": end}
            if isinstance(end, Outcome):
                more = {"outcome": end, "error": "it broke"}
            await run.add(name, id=f"{agent}-{name}-{i}", job_id=job.id, **more)
    return job


async def record_two(run: Run) -> tuple[Job, Job]:
    """Six tasks, of which two flip up, one flips down, and one is not scored in the second."""
    small: dict[str, End] = {"a": 0.0, "b": 0.5, "c": 1.0, "d": 1.0, "e": 0.0, "f": 1.0}
    large = {**small, "a": 1.0, "b": 1.0, "c": 0.0, "f": Outcome.LOST}
    one = await record(run, "small", {name: [end] for name, end in small.items()})
    other = await record(run, "large", {name: [end] for name, end in large.items()})
    return one, other


def address(*jobs: Job, **wanted: str) -> str:
    """Where these are shown side by side."""
    query = f"?{urlencode(wanted)}" if wanted else ""
    return f"#across-{'/'.join(quote(job.id, safe='') for job in jobs)}{query}"


async def lines(page: Page) -> list[str]:
    """What each row of tasks says, in a line."""
    rows = await page.locator("#matrix-rows tr").all_inner_texts()
    return [" ".join(text.split()) for text in rows]


async def side(seen: Seen, agent: str) -> str:
    """What the row of a job says."""
    name = seen.page.get_by_role("link", name=agent, exact=True)
    row = seen.page.locator("#side-rows tr", has=name)
    return " ".join((await row.inner_text()).split())


async def asked(base: str, *jobs: str, **more: Any) -> httpx.Response:
    """What the server answers of several jobs."""
    async with httpx.AsyncClient(base_url=base, timeout=PATIENCE_S) as client:
        return await client.get("/api/across", params=[*(("job", j) for j in jobs), *more.items()])


@BROWSER
async def test_two_jobs_show_flips_and_the_interval_of_their_difference(
    run: Run, browser: Browser
) -> None:
    """Over the five tasks that both have scored; each row has both results and a sign."""
    one, other = await record_two(run)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", address(one, other)) as seen,
    ):
        assert await seen.text("#across-title") == "2 jobs, task by task"
        large = await side(seen, "large")
        assert "0.400 → 0.600 over 5 tasks of both" in large
        assert re.search(r"\+0\.200 \(.0\.\d{3} to \+0\.\d{3}\)", large)
        assert "▲ 2 up ▼ 1 down p = 1.000" in large
        assert await lines(seen.page) == [
            "a 0 failed 1 ▲ passed Side by side",
            "b 0.50 in part 1 ▲ passed Side by side",
            "c 1 passed 0 ▼ failed Side by side",
            "d 1 passed 1 passed Side by side",
            "e 0 failed 0 failed Side by side",
            "f 1 passed lost Side by side",
        ]
        await seen.page.get_by_role("link", name="▼ 1 down").click()
        await expect(seen.page.locator("#matrix-rows tr")).to_have_count(1)
        assert await lines(seen.page) == ["c 1 passed 0 ▼ failed Side by side"]
        assert await seen.text("#matrix-shown") == "1 of 6 tasks shown"
        await seen.page.get_by_role("link", name="Side by side: c").click()
        await expect(seen.page.locator("#compare")).to_be_visible()


@pytest.mark.long
@BROWSER
async def test_a_result_opens_its_run_and_the_way_back_leads_to_it(
    run: Run, browser: Browser
) -> None:
    """The newest run that did not pass; the focus is on it again afterwards."""
    one = await record(run, "small", {"a": [0.0, 1.0], "b": [1.0, 1.0]}, group=2)
    other = await record(run, "large", {"a": [1.0], "b": [1.0, Outcome.LOST]}, group=2)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", address(one, other)) as seen,
    ):
        page = seen.page
        assert await lines(page) == [
            "a 0.50 1 of 2 passed 1 ▲ 1 of 2 passed, n = 1 Side by side",
            "b 1 2 of 2 passed 1 1 of 2 passed, n = 1 Side by side",
        ]
        await page.locator("#matrix-rows a").first.click()
        await expect(page.locator("#detail")).to_be_visible()
        assert page.url.endswith("#traj-small-a-0")
        await page.go_back()
        await expect(page.locator("#matrix-rows a").first).to_be_focused()


@pytest.mark.long
@BROWSER
async def test_the_matrix_is_used_by_keyboard(run: Run, browser: Browser) -> None:
    """Arrows go over rows and columns, past what has no run; Escape leads to the jobs."""
    one, other = await record_two(run)
    third = await record(run, "late", {"a": [1.0], "c": [1.0]})
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", address(one, other, third)) as seen,
    ):
        page = seen.page
        at = "document.activeElement.getAttribute('href')"
        for key, name in (
            ("j", "small-a-0"), ("ArrowRight", "large-a-0"), ("ArrowRight", "late-a-0"),
            ("ArrowDown", "late-c-0"), ("ArrowDown", "late-c-0"), ("ArrowLeft", "large-c-0"),
            ("k", "large-b-0"), ("ArrowRight", "large-b-0"), ("ArrowUp", "large-a-0"),
        ):  # fmt: skip
            await page.keyboard.press(key)
            assert await page.evaluate(at) == f"#traj-{name}", key
        await page.keyboard.press("/")
        await expect(page.locator("#find-task")).to_be_focused()
        await page.keyboard.type("C")
        await expect(page.locator("#matrix-rows tr")).to_have_count(1)
        assert page.url.endswith("?find=C")
        await page.keyboard.press("Escape")
        await page.keyboard.press("Escape")
        await expect(page.locator("#jobs")).to_be_visible()


@pytest.mark.long
@BROWSER
async def test_jobs_are_added_put_first_and_removed(run: Run, browser: Browser) -> None:
    """Those of the same taskset are offered; a proof of tasks and another set's are not."""
    one, other = await record_two(run)
    await record(run, "check", {"a": [1.0]}, metadata={"check": {}})
    await record(run, "stranger", {"z": [1.0]}, taskset="elsewhere")
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#{one.id}") as seen,
    ):
        page = seen.page
        await page.get_by_role("link", name="Compare with other jobs").click()
        await expect(page.locator("#across-title")).to_be_focused()
        options = await page.locator("#other-jobs option").all_inner_texts()
        assert [text.split(" · ")[0] for text in options] == ["choose…", "large"]
        await page.locator("#other-jobs").select_option(other.id)
        await expect(page.locator("#side-rows tr")).to_have_count(2)
        await page.get_by_role("link", name="Put first large").click()
        await expect(page.locator("#side-rows tr a").first).to_have_text("large")
        assert "0.600 → 0.400" in await side(seen, "small")
        await page.get_by_role("link", name="Remove large").click()
        await expect(page.locator("#side-rows tr")).to_have_count(1)
        assert page.url.endswith(f"#across-{one.id}")


@BROWSER
async def test_jobs_are_chosen_from_their_list(run: Run, browser: Browser) -> None:
    """By a box or by X; the first one that was chosen is what the other is compared with."""
    await record_two(run)
    async with served(viewer_app(run.store)) as base, opened(browser, f"{base}/") as seen:
        page = seen.page
        button = page.locator("#compare-jobs")
        assert await button.is_hidden()
        await page.get_by_role("checkbox", name="Choose small's job to compare").check()
        assert await button.inner_text() == "Compare with others"
        await page.get_by_role("link", name="large's job").focus()
        await page.keyboard.press("x")
        assert await button.inner_text() == "Compare 2 jobs"
        await button.click()
        await expect(page.locator("#side-rows tr a").first).to_have_text("small")
        await expect(page.locator("#matrix-rows tr")).to_have_count(6)


@pytest.mark.long
@BROWSER
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_phone_shows_each_task_with_its_results_below(
    run: Run, browser: Browser, scheme: Any
) -> None:
    """Nothing is wider than the screen, and each result is as large as a finger needs."""
    jobs = [await record(run, name, {"a": [0.0], "b": [1.0]}) for name in ("one", "two", "three")]
    phone: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": scheme}
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", address(*jobs), **phone) as seen,
    ):
        assert await seen.page.evaluate("document.documentElement.scrollWidth") == 390
        for link in await seen.page.locator("#matrix-rows a").all():
            box = await link.bounding_box()
            assert box
            assert box["height"] >= 24


@pytest.mark.long
@BROWSER
async def test_text_of_others_stays_text(run: Run, browser: Browser) -> None:
    """Names of jobs, agents and tasks are shown as they are, and run nothing."""
    jobs = [
        await record(run, agent, {HOSTILE[:200]: []}, id=agent, name=HOSTILE, taskset=HOSTILE)
        for agent in (HOSTILE, "b")
    ]
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", address(*jobs)) as seen,
    ):
        assert HOSTILE[:40] in await seen.text("#matrix-rows")
        assert await seen.page.evaluate("document.documentElement.dataset.ran") is None
        await seen.go(address(*jobs, find="<img"))
        assert len(await lines(seen.page)) == 1


async def test_the_server_says_what_cannot_be_compared(run: Run) -> None:
    """None, too many, one that is not there, a proof of tasks, and words that it does not know."""
    one, _ = await record_two(run)
    proof = await record(run, "check", {"a": [1.0]}, metadata={"check": {}})
    async with served(viewer_app(run.store)) as base:
        for jobs, more, status, text in (
            ([], {}, 400, "0 jobs were named"),
            ([f"job-{i}" for i in range(MOST_JOBS + 1)], {}, 400, f"1 to {MOST_JOBS}"),
            (["job-none"], {}, 404, "no job 'job-none'"),
            ([proof.id], {}, 400, "prove tasks"),
            ([one.id], {"only": "best"}, 400, "flips"),
            ([one.id], {"start": "-1"}, 400, "number"),
        ):
            answer = await asked(base, *jobs, **more)
            assert (answer.status_code, text in answer.json()["error"]) == (status, True), text
        twice = (await asked(base, one.id, one.id)).json()
        assert len(twice["jobs"]) == 1


async def test_what_a_job_has_done_since_is_compared(run: Run) -> None:
    """The same question has another answer once a run has ended."""
    one, other = await record_two(run)
    async with served(viewer_app(run.store)) as base:
        assert (await asked(base, one.id, other.id)).json()["tasks"] == 6
        await run.add("g", id="late", job_id=other.id, reward=1.0)
        found = (await asked(base, one.id, other.id)).json()
        assert found["tasks"] == 7
        assert found["counts"]["missing"] == 1


@pytest.mark.long
@BROWSER
async def test_many_tasks_come_in_parts(run: Run, browser: Browser) -> None:
    """A button brings the next ones and takes the reader to them."""
    count = PAGE_TASKS + 30
    tasks = [Task(id=f"task-{i:03}", env="shop", template="find") for i in range(count)]
    job = Job(name="long", taskset="shop", agent="a")
    await run.store.add_job(job, tasks)
    run.count = 1
    await run.add(f"task-{PAGE_TASKS:03}", id="there", job_id=job.id, reward=1.0)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", address(job)) as seen,
    ):
        rows = seen.page.locator("#matrix-rows tr")
        assert await rows.count() == PAGE_TASKS
        assert await seen.text("#matrix-shown") == f"The first {PAGE_TASKS} of {count} tasks"
        await seen.page.get_by_role("button", name="Show more").click()
        await expect(rows).to_have_count(count)
        focused = "document.activeElement.getAttribute('href')"
        with anyio.fail_after(PATIENCE_S):
            assert await seen.page.evaluate(focused) == "#traj-there"
        assert await seen.page.locator("#matrix-more").is_hidden()


@pytest.mark.long
@BROWSER
async def test_the_matrix_follows_jobs_that_run(run: Run, browser: Browser) -> None:
    """New results come by themselves; the focus stays where it is, though its link changes."""
    one = await record(run, "small", {"a": [0.0], "b": []})
    other = await record(run, "large", {"a": [1.0], "b": [1.0]})
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", address(one, other)) as seen,
    ):
        page, patience = seen.page, PATIENCE_S * 1000 / 2
        rows = page.locator("#matrix-rows tr")
        await rows.first.locator("a").first.focus()
        await run.add("a", id="small-a-1", job_id=one.id, reward=0.5)
        again = page.locator("a[href='#traj-small-a-1']")
        await expect(again).to_be_focused(timeout=patience)
        await expect(rows.nth(1)).to_contain_text("not begun")
        await run.add("b", id="small-b-0", job_id=one.id, reward=1.0)
        await expect(rows.nth(1)).to_contain_text("Side by side", timeout=patience)
        await expect(again).to_be_focused()
        assert await lines(page) == [
            "a 0.50 in part 1 ▲ passed Side by side",
            "b 1 passed 1 passed Side by side",
        ]
        assert "over 2 tasks of both" in await side(seen, "large")


@pytest.mark.long
@BROWSER
async def test_rows_that_were_asked_for_stay_where_they_are(run: Run, browser: Browser) -> None:
    """A job that runs leaves all parts that are shown, and the place that is looked at."""
    count = PAGE_TASKS + 30
    tasks = [Task(id=f"task-{i:03}", env="shop", template="find") for i in range(count)]
    job = Job(name="long", taskset="shop", agent="a")
    await run.store.add_job(job, tasks)
    run.count = 1
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", address(job)) as seen,
    ):
        page, rows = seen.page, seen.page.locator("#matrix-rows tr")
        await page.get_by_role("button", name="Show more").click()
        await expect(rows).to_have_count(count)
        await rows.nth(count - 3).scroll_into_view_if_needed()
        before = await page.evaluate("scrollY")
        assert before > 0
        await run.add(tasks[-1].id, id="there", job_id=job.id, reward=1.0)
        await expect(rows.last).to_contain_text("passed", timeout=PATIENCE_S * 1000 / 2)
        assert await rows.count() == count
        assert await page.evaluate("scrollY") == before


async def test_who_knows_the_stamp_is_told_only_that_it_is_so_still(run: Run) -> None:
    """Until a job has changed; then all of it is told, and whether it goes on."""
    one = await record(run, "small", {"a": [0.0], "b": []})
    async with served(viewer_app(run.store)) as base:
        first = (await asked(base, one.id)).json()
        assert first["running"] is True
        known = {"known": first["stamp"]}
        assert (await asked(base, one.id, **known)).json() == {"stamp": first["stamp"]}
        await run.add("b", id="small-b-0", job_id=one.id, reward=1.0)
        with anyio.fail_after(PATIENCE_S):
            while "rows" not in (found := (await asked(base, one.id, **known)).json()):
                await anyio.lowlevel.checkpoint()
        assert found["running"] is False
        assert found["stamp"] != first["stamp"]
        assert found["rows"][1]["results"][0]["run"] == "small-b-0"
