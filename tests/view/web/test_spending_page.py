"""A job's page says what its runs took: time, steps, tokens and cost, as far as recorded."""

from datetime import timedelta

import pytest
from playwright.async_api import Browser, expect
from recorded import BROWSER, START, Run, opened, served, step

from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.record.values import utc_now
from hud_mcp.values.model_turn import ModelTurn

pytestmark = [pytest.mark.anyio, BROWSER]


async def told(run: Run, trajectory: str, tokens: int, cost: float | None) -> None:
    """Record what a model used for a run."""
    reply = {
        "started_at": START,
        "ended_at": START + timedelta(seconds=2),
        "usage": {"input": tokens, "output": 10},
        "cost_usd": cost,
    }
    await run.store.add_turns(trajectory, [ModelTurn.model_validate(reply)], before_step=0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", ["viewer", "report"])
async def test_cost_and_time_are_told_in_all_and_a_run(
    run: Run, browser: Browser, where: str
) -> None:
    """The sum, the middle run, the middle half and the most, which is a link to its run."""
    for number, (tokens, cost) in enumerate([(100, 0.5), (200, 0.5), (4000, 2.0)]):
        name = await run.add(f"t{number}", [step(0)] * number, reward=float(number > 0))
        await told(run, name, tokens, cost)
    async with (
        served(viewer_app(run.store)) as base,
        opened(
            browser, await run.write() if where == "report" else f"{base}/", f"#{run.job.id}"
        ) as seen,
    ):
        assert (await seen.text("#spending-facts")).split("\n") == [
            "3 runs ended in 2 min 10 s",
            "0.2 at once on average",
            "$1.5000 for each run that passed",
        ]
        rows = seen.page.get_by_role("table", name="What the runs took").locator("tbody tr")
        said = {
            await row.locator("th").inner_text(): await row.locator("td").all_inner_texts()
            for row in await rows.all()
        }
        assert said["Tokens in"] == ["4,300", "200", "150 to 2,100", "", "4,000"]
        assert said["Cost"] == ["$3.0000", "$0.5000", "$0.5000 to $1.2500", "", "$2.0000"]
        assert said["Time"][:2] == ["30.0 s", "10.0 s"]
        await seen.page.get_by_role("link", name="Most: 4,000, Tokens in").click()
        await expect(seen.page.locator("#task-name")).to_have_text("t2")


@pytest.mark.long
async def test_the_list_of_jobs_tells_the_cost_of_each(run: Run, browser: Browser) -> None:
    """What was pruned counts on; a job without a price has none."""
    for number in range(2):
        await told(run, await run.add(f"t{number}", [step(0)], reward=1), 10, 0.75)
    name = run.job.name
    await Upkeep(run.store).prune(utc_now() + timedelta(days=1), keep_grades=True)
    run.job = Job(name="Unpriced")
    await run.store.add_job(run.job, [])
    await run.add("t0", [step(0)], reward=1)
    async with served(viewer_app(run.store)) as base, opened(browser, f"{base}/") as seen:
        rows = seen.page.locator("#job-rows tr")
        await expect(rows.filter(has_text=name).locator("td.took .over")).to_have_text("$1.5000")
        took = await rows.filter(has_text=name).locator("td.took").inner_text()
        assert took.split("\n")[1] == "$1.5000"  # on a line of its own
        await expect(rows.filter(has_text="Unpriced").locator("td.took .over")).to_have_count(0)


@pytest.mark.long
async def test_a_job_tells_what_is_recorded_alone(run: Run, browser: Browser) -> None:
    """No tokens where no model was told, no slowest task where all took as long."""
    await run.add("one", reward=1)
    await run.add("two", reward=0)
    async with opened(browser, await run.write()) as seen:
        heads = seen.page.locator("#spending tbody th")
        assert await heads.all_inner_texts() == ["Time"]


@pytest.mark.long
async def test_a_job_of_which_nothing_has_ended_tells_nothing(run: Run, browser: Browser) -> None:
    """The section is not there."""
    await run.add("one", outcome=None)
    async with opened(browser, await run.write()) as seen:
        assert await seen.page.locator("#spending").is_hidden()
