"""The page of a job of more runs than a page holds: lines are asked for as they are looked at."""

import json
import re
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx
import pytest
from axe import axe_source, findings
from many_runs import LARGE, SMALL, make_many
from playwright.async_api import Browser, Page, Response, expect
from recorded import BROWSER, Run, opened, served
from waiting import PATIENCE_S

from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.plugins.view.web import job_pages
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.store import Store
from hud_mcp.task import Task

pytestmark = [pytest.mark.anyio, BROWSER]

RUNS = 1300
ONE_BY_ONE = f"#job-{LARGE}/by-none"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of 1,300 runs of 325 tasks, four each."""
    path = tmp_path_factory.mktemp("many") / "store.sqlite3"
    make_many(str(path), trajectories=RUNS, steps=2)
    return path


@pytest.fixture
async def store(place: Path) -> Any:
    """The same, open."""
    made = Store(place)
    yield made
    await made.close()


async def rows(page: Page) -> list[str]:
    """The tasks that are listed."""
    return await page.locator("#rows th.task a").all_inner_texts()


@pytest.mark.long
async def test_few_rows_are_there_and_others_are_paged_to(store: Store, browser: Browser) -> None:
    """By buttons, by J and K beyond an end, and by Home and End; the focus goes with them."""
    async with served(viewer_app(store)) as base, opened(browser, f"{base}/{ONE_BY_ONE}") as seen:
        page = seen.page
        table, where = page.locator("#rows tr"), page.locator("#page-place")
        await expect(where).to_have_text("1 to 100 of 1,300 rows")
        await expect(table).to_have_count(100)
        await expect(page.locator("#shown")).to_have_text("1,300 runs")
        assert (await rows(page))[:2] == ["task-00000", "task-00001"]
        await page.get_by_role("button", name="Next", exact=True).click()
        await expect(where).to_have_text("101 to 200 of 1,300 rows")
        await expect(table.first.locator("td.number")).to_have_text("101")
        await page.get_by_role("button", name="Last", exact=True).click()
        await expect(where).to_have_text("1,201 to 1,300 of 1,300 rows")
        await page.get_by_role("button", name="First", exact=True).click()
        await expect(where).to_have_text("1 to 100 of 1,300 rows")
        await table.first.locator("a").focus()
        await page.keyboard.press("End")
        await expect(table.last.locator("td.number")).to_have_text("1300")
        await expect(table.last.locator("a")).to_be_focused()
        await page.keyboard.press("Home")
        await expect(table.first.locator("a")).to_be_focused()
        await expect(where).to_have_text("1 to 100 of 1,300 rows")
        await table.last.locator("a").focus()
        await page.keyboard.press("j")
        await expect(where).to_have_text("101 to 200 of 1,300 rows")
        await expect(table.first.locator("a")).to_be_focused()
        await page.keyboard.press("k")
        await expect(where).to_have_text("1 to 100 of 1,300 rows")
        await expect(table.last.locator("a")).to_be_focused()


@pytest.mark.long
async def test_rows_are_filtered_sorted_and_picked_on_the_server(
    store: Store, browser: Browser
) -> None:
    """Each leads to what the database has, from the first row on."""
    _, _, runs = await Outlines(store.database).load_outline(LARGE)
    found = await Outlines(store.database).find_runs(LARGE, "lamp 12")
    half = [run for run in runs if run.reward == 0.5]
    async with served(viewer_app(store)) as base, opened(browser, f"{base}/{ONE_BY_ONE}") as seen:
        page = seen.page
        shown = page.locator("#shown")
        await expect(shown).to_have_text("1,300 runs")
        await page.locator("#next-page").click()
        await expect(page.locator("#page-place")).to_have_text("101 to 200 of 1,300 rows")
        await page.locator("#find").fill("lamp 12")
        await expect(shown).to_have_text(f"{len(found)} of 1,300 runs shown")
        await expect(page.locator("#pages")).to_be_hidden()
        assert len(await rows(page)) == len(found)
        await page.locator("#find").fill("")
        await expect(shown).to_have_text("1,300 runs")
        await page.locator("#outcome").select_option("environment_failed")
        await expect(shown).to_have_text(re.compile("of 1,300 runs shown"))
        said = await page.locator("#rows td.outcome").all_inner_texts()
        assert set(said) == {"environment failed"}
        await page.locator("#outcome").select_option("")
        await page.get_by_role("button", name="reward 0.50 to 0.60").press("Enter")
        await expect(shown).to_have_text(f"{len(half)} of 1,300 runs shown")
        await page.get_by_role("button", name="Show all").click()
        await expect(shown).to_have_text("1,300 runs")
        await page.locator("#column-seconds button").click()
        least = min(run.seconds for run in runs if run.seconds is not None)
        await expect(page.locator("#rows td.seconds").first).to_have_text(f"{least:.1f}")
        await page.locator("#column-seconds button").click()
        most = max(run.seconds for run in runs if run.seconds is not None)
        await expect(page.locator("#rows td.seconds").first).to_have_text(f"{most:.1f}")


@pytest.mark.long
async def test_the_tasks_of_a_long_job_are_folded_at_first(store: Store, browser: Browser) -> None:
    """Each row tells how its runs ended and why one failed; a filter opens what it finds."""
    _, _, runs = await Outlines(store.database).load_outline(LARGE)
    rewards = [run.reward for run in runs if run.task.id == "task-00000"]
    sizes: list[int] = []
    async with served(viewer_app(store)) as base, opened(browser, f"{base}/#job-{LARGE}") as seen:
        page, where = seen.page, seen.page.locator("#page-place")
        page.on("request", lambda request: sizes.append(len(request.url)))
        table, first = page.locator("#rows tr"), page.locator("#rows tr").first
        await expect(where).to_have_text("1 to 100 of 325 rows")
        await expect(page.locator("#shown")).to_have_text("1,300 runs")
        graded = sum(reward is not None for reward in rewards)
        await expect(first).to_contain_text(f"{graded} graded of 4 runs")
        assert await page.locator("#rows .note").count() > 20
        await page.locator("#last-page").click()
        await expect(where).to_have_text("301 to 325 of 325 rows")
        await page.locator("#column-task button").click()
        await page.locator("#column-task button").click()
        await expect(first).to_contain_text("task-00324")
        await first.get_by_role("button").click()
        await expect(where).to_have_text("1 to 100 of 329 rows")
        await page.locator("#find").fill("lamp 12")
        await expect(page.locator("#shown")).to_have_text(re.compile("of 1,300 runs shown"))
        await expect(table.nth(1).locator("th.task a")).to_have_count(1)
        await page.locator("#find").fill("")
        await page.get_by_role("button", name="Open all").click()
        await expect(where).to_have_text("1 to 100 of 1,625 rows")
    assert max(sizes) < 300  # the open groups are not listed where they are all


async def test_groups_are_opened_and_a_run_is_come_back_from(
    store: Store, browser: Browser
) -> None:
    """The heads have all figures; a run's neighbours are its job's, and Escape leads to its row."""
    async with served(viewer_app(store)) as base, opened(browser, f"{base}/#job-{LARGE}") as seen:
        page = seen.page
        await page.get_by_label("Group by").select_option("difficulty")
        await expect(page.locator("#rows tr")).to_have_count(3)
        await page.get_by_role("button", name="medium").click()
        await expect(page.locator("#rows tr")).to_have_count(100)
        await expect(page.get_by_role("button", name="medium")).to_be_focused()
        assert (await rows(page))[:2] == ["task-00001", "task-00004"]
        assert page.url.endswith("/by-difficulty/medium")
        await page.get_by_role("link", name="task-00004").first.click()
        await expect(page.locator("#task-name")).to_have_text("task-00004")
        await expect(page.locator("#next-trajectory")).to_have_attribute(
            "href", re.compile("00005$")
        )
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("link", name="task-00004").first).to_be_focused()


@pytest.mark.long
async def test_all_runs_are_downloaded(store: Store, browser: Browser, tmp_path: Path) -> None:
    """A file has every run once, with one head, though the page has few of them."""
    async with served(viewer_app(store)) as base, opened(browser, f"{base}/#job-{LARGE}") as seen:
        async with seen.page.expect_download() as coming:
            await seen.page.locator("#save-jsonl").click()
        await (await coming.value).save_as(tmp_path / "runs.jsonl")
        async with seen.page.expect_download() as coming:
            await seen.page.locator("#save-csv").click()
        await (await coming.value).save_as(tmp_path / "runs.csv")
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert len({line["id"] for line in lines}) == len(lines) == RUNS
    assert lines[0]["difficulty"] == "easy"
    cells = (tmp_path / "runs.csv").read_bytes().decode().split("\r\n")
    assert len(cells) == RUNS + 2
    assert [cell for cell in cells if cell.startswith("job,id")] == cells[:1]


async def test_what_is_sent_is_bounded_whatever_is_asked_for(place: Path) -> None:
    """No reply has more lines than a page; what is wrong with a question is told."""
    store = Store(place)
    transport = httpx.ASGITransport(app=viewer_app(store))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:

        async def ask(path: str, **parameters: Any) -> Any:
            return await asking.get(path, params=parameters)

        head = (await ask("/api/job", id=LARGE)).json()
        assert (head["paged"], head["total"], head["trajectories"]) == (True, RUNS, [])
        assert (await ask("/api/job", id=LARGE, known=head["revision"])).json() == {
            "revision": head["revision"]
        }
        assert (await ask("/api/job", id=SMALL)).json()["paged"] is False
        many = (await ask("/api/rows", id=LARGE, count=100_000)).json()
        assert (len(many["rows"]), many["lines"], many["total"]) == (500, RUNS, RUNS)
        late = (await ask("/api/rows", id=LARGE, start=99_999, count=100)).json()
        assert [row["number"] for row in late["rows"]] == list(range(1201, 1301))
        assert (await ask("/api/rows", id=LARGE, sort="x")).status_code == 400
        assert "number" in (await ask("/api/rows", id=LARGE, sort="x")).json()["error"]
        assert (await ask("/api/rows", id="job-none")).status_code == 404
        assert (await ask("/api/place", id="none")).status_code == 404
        odd = await ask("/api/rows", id=LARGE, find="x" * 9999, open="1,x,-3", by="nothing")
        assert odd.json()["rows"] == []
    with anyio.fail_after(60):
        await store.close()


@pytest.mark.peers
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
async def test_axe_finds_nothing_where_rows_are_paged(
    store: Store, browser: Browser, scheme: str, size: tuple[int, int]
) -> None:
    """The buttons, the place and open groups are as accessible as a short job's table."""
    source = axe_source()
    look: dict[str, Any] = {
        "color_scheme": scheme,
        "viewport": {"width": size[0], "height": size[1]},
        "bypass_csp": True,  # axe is a script that the pages refuse
    }
    async with served(viewer_app(store)) as base:
        address = f"{base}/#job-{LARGE}/by-difficulty/medium"
        async with opened(browser, address, **look) as seen:
            await expect(seen.page.locator("#page-place")).to_have_text("1 to 100 of 435 rows")
            assert await findings(seen.page, source) == []


@pytest.mark.long
async def test_a_page_follows_a_long_job_that_runs_with_bounded_replies(
    run: Run, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New runs are counted and named; each reply has a page of rows at most, and no other run."""
    monkeypatch.setattr(job_pages, "WHOLE_RUNS", 20)
    names = [f"task-{i:03}" for i in range(105)]
    run.job = Job(name="A job", taskset="shop", agent="me")
    run.tasks = tuple(Task(id=name, env="shop", template="find") for name in names)
    for name in names[:101]:
        await run.add(name, reward=1.0)
    replies: list[Response] = []

    def keep(reply: Response) -> None:
        replies.append(reply)

    patience = PATIENCE_S * 1000 / 2
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#{run.job.id}") as seen,
    ):
        page = seen.page
        page.on("response", keep)
        where, graded = page.locator("#page-place"), page.locator("#outcomes .graded dd")
        await expect(where).to_have_text("1 to 100 of 101 rows")
        await page.locator("#last-page").click()
        await expect(where).to_have_text("101 to 101 of 101 rows")
        await page.locator("#rows a").first.focus()
        await run.add(names[101], reward=1.0)
        await expect(where).to_have_text("101 to 102 of 102 rows", timeout=patience)
        await expect(graded).to_have_text("102")
        await expect(page.locator("#rows a").first).to_be_focused()
        await run.add(names[102], outcome=None)
        await run.add(names[103], reward=0.0, content="no lamp")
        await expect(where).to_have_text("101 to 104 of 104 rows", timeout=patience)
        await expect(page.locator("#shown")).to_have_text("104 runs")
        await expect(page.locator("#latest-rows li")).to_have_text(re.compile("no lamp"))
        told = [await reply.json() for reply in replies if "/api/" in reply.url]
    assert any(found.get("latest") for found in told)
    assert max(len(found.get("rows", [])) for found in told) <= 100
    assert not any(found.get("trajectories") for found in told)
