"""axe finds nothing on any page: light and dark, at a desk's size and at a phone's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from axe import axe_source, findings
from playwright.async_api import Browser, Page, expect
from recorded import BROWSER, START, Run, Seen, opened, receipt, served, shot, step, walk
from starlette.routing import Router
from test_desk import POLE, SHOP, desk, its_turn

from hud_mcp.plugins.view.web.live import live_routes
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import live_url
from hud_mcp.server.web.auth import Hosts
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome, SubScore
from hud_mcp.values.model_turn import ModelTurn

pytestmark = [pytest.mark.anyio, pytest.mark.peers, BROWSER]

LIVE = "0123456789abcdef" * 2
LOOKS = [(scheme, size) for scheme in ("light", "dark") for size in ((1440, 900), (390, 844))]
TABS = ("", "/steps", "/observation", "/log", "/grade", "/raw", "/changes", "/steps/failed")
UNFOLD = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
ENDS: list[tuple[str, dict[str, Any], Any]] = [
    ("find", {"difficulty": "easy", "skills": ["search"], "split": "train"}, 1.0),
    ("sort", {"difficulty": "easy", "skills": ["search"], "split": "train"}, 0.5),
    ("buy", {"difficulty": "hard", "skills": ["checkout"], "split": "test"}, 0.0),
    ("pay", {"difficulty": "hard", "skills": ["checkout"], "split": "test"}, Outcome.EXPIRED),
    ("pack", {"difficulty": "medium", "split": "test"}, Outcome.ENVIRONMENT_FAILED),
    ("ship", {"difficulty": "medium", "split": "train"}, None),
]


@pytest.fixture(scope="session")
def axe() -> str:
    """The script."""
    return axe_source()


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1][0]}")
def look(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How a browser shows pages."""
    scheme, (width, height) = request.param
    return {
        "color_scheme": scheme,
        "reduced_motion": "reduce",  # no colour is half way to another one
        "viewport": {"width": width, "height": height},
        "bypass_csp": True,  # axe is a script that the pages refuse
    }


async def record_job(run: Run) -> list[str]:
    """A job of every kind of end, with contexts, groups, a model's turns and failed steps."""
    run.tasks = tuple(
        Task(id=name, env="shop", template="find", metadata=said) for name, said, _ in ENDS
    )
    names: list[str] = []
    for number, (task, said, end) in enumerate(ENDS):
        more: dict[str, Any] = {"reward": end}
        if end is None or isinstance(end, Outcome):
            more = {"outcome": end, **({"error": "It broke."} if end else {})}
        else:
            parts = (
                SubScore(name="right", value=end, info={"seen": 3}),
                SubScore(name="b", value=1),
            )
            more |= {"subscores": parts, "content": "As asked.", "info": {"detail": "more"}}
        context = {"width": 400 * number, "locale": ("en", "de")[number % 2]}
        names.append(
            await run.add(
                task,
                walk(),
                task_fields={"metadata": said},
                context=context,
                logs=["a line"],
                **more,
            )
        )
        turn = ModelTurn.model_validate(
            {
                "started_at": START, "ended_at": START + timedelta(seconds=1),
                "model": "m", "text": "I click.", "reasoning": "It is there.",
                "calls": [{"name": "press", "arguments": {"a": 1}}],
                "settings": {"heat": 1}, "usage": {"input": 9, "output": 3}, "cost_usd": 0.25,
            }
        )  # fmt: skip
        await run.store.add_turns(names[-1], [turn], before_step=1)
    return names


async def nothing_is_found(seen: Seen, axe: str, parts: list[str]) -> None:
    """At each place of a page."""
    for part in parts:
        await seen.go(part)
        await seen.page.evaluate(UNFOLD)
        assert await findings(seen.page, axe) == [], part


async def test_axe_finds_what_is_wrong(browser: Browser, axe: str) -> None:
    """A picture without words and grey text on grey: the tests below would see them."""
    page = await browser.new_page()
    await page.set_content(
        '<html lang="en"><title>A</title><main><h1>A</h1><img src="data:,">'
        '<p style="color: #aaa; background: #fff">faint</p></main>'
    )
    assert [each.partition(" at ")[0] for each in await findings(page, axe)] == [
        "serious: color-contrast", "critical: image-alt",
    ]  # fmt: skip
    await page.close()


async def test_nothing_is_found_in_the_viewer(
    run: Run, browser: Browser, axe: str, look: dict[str, Any]
) -> None:
    """Jobs, some of them side by side, one in groups, a trajectory with each tab, and two runs."""
    names = await record_job(run)
    other = Job(name="Another job", taskset="shop", agent="nop")
    await run.store.add_job(other, run.tasks)
    await run.add("find", job_id=other.id, reward=0.0)
    await run.add("buy", job_id=other.id, reward=1.0)
    job = f"#job-{run.job.id.removeprefix('job-')}"
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", **look) as seen,
    ):
        places = ["", job, f"{job}/by-difficulty", f"{job}/by-difficulty/hard"]
        places += [f"#traj-{names[2]}/step-4{tab}" for tab in TABS]
        places += [f"#traj-{name}/grade" for name in names[:1] + names[3:]]
        places += [f"#across-{run.job.id}", f"#across-{run.job.id}/{other.id}"]
        await nothing_is_found(seen, axe, [*places, f"#compare-{names[0]}/{names[2]}"])


async def test_nothing_is_found_where_jobs_are_compared(
    run: Run, browser: Browser, axe: str, look: dict[str, Any]
) -> None:
    """One job, two with flips, those of repeated runs, and the list with a job that is chosen."""
    await record_job(run)
    other = Job(name="Another", taskset="shop", agent="other", group=2)
    await run.store.add_job(other, run.tasks)
    for number, (task, _, _) in enumerate(ENDS):
        await run.add(task, id=f"other-{number}", job_id=other.id, reward=float(number % 2))
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", **look) as seen,
    ):
        first = f"#across-{run.job.id}"
        places = [first, f"{first}/{other.id}", f"{first}/{other.id}?only=flips", f"#{other.id}"]
        await nothing_is_found(seen, axe, places)
        await seen.go("")
        await seen.page.get_by_role("checkbox").first.check()
        assert await findings(seen.page, axe) == []


async def test_nothing_is_found_in_a_report(
    run: Run, browser: Browser, axe: str, look: dict[str, Any]
) -> None:
    """Its job, and one of its trajectories."""
    names = await record_job(run)
    expected: dict[str, float | None] = {"buy": 1.0, "find": 1.0}
    async with opened(browser, await run.write(expected=expected), **look) as seen:
        await nothing_is_found(seen, axe, ["", f"#traj-{names[2]}/step-4", f"#traj-{names[0]}/raw"])


async def test_nothing_is_found_in_an_empty_viewer(
    run: Run, browser: Browser, axe: str, look: dict[str, Any]
) -> None:
    """It says that nothing is recorded yet."""
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", **look) as seen,
    ):
        await nothing_is_found(seen, axe, [""])


async def test_nothing_is_found_on_a_live_page_from_its_begin_to_its_end(
    run: Run, browser: Browser, axe: str, look: dict[str, Any]
) -> None:
    """Before its first step, while it follows, while it does not, and with the score card."""
    name = await run.add("shop", outcome=None, live_token=LIVE)
    routes = live_routes(run.store, hosts=Hosts("127.0.0.1"), log=True)
    async with (
        served(Router(routes)) as base,
        opened(browser, live_url(base, LIVE), **look) as seen,
    ):
        page = seen.page
        await expect(page.locator("#task-name")).to_have_text("shop")
        assert await findings(page, axe) == []
        for number, see in enumerate(("red", "green", "blue")):
            act = {"type": "click", "x": 9, "y": 9}
            await run.store.add_step(name, *step(number, act, see=shot(see), observation_text="a"))
        await expect(page.locator("#position")).to_have_text("3 / 3")
        assert await findings(page, axe) == []
        await page.keyboard.press("Home")
        await expect(page.locator("#follows")).to_contain_text("Not following.")
        assert await findings(page, axe) == []
        trajectory = await run.store.load_trajectory(name)
        end = receipt(trajectory, Outcome.GRADED, 0.5, content="Half of it.")
        await run.store.end_session(name, end)
        await expect(page.locator("#card")).to_be_visible()
        assert await findings(page, axe) == []


async def test_nothing_is_found_in_a_notebook(
    run: Run, browser: Browser, axe: str, look: dict[str, Any]
) -> None:
    """In the player's frame, and in the table of a job."""
    names = await record_job(run)
    record = await run.store.load_trajectory(names[2])
    html = (
        f"<main><h1>Notebook</h1>{record._repr_html_()}{run.job.kept_in(run.store)._repr_html_()}"
    )
    context = await browser.new_context(**look)
    page = await context.new_page()
    await page.set_content(f'<!doctype html><html lang="en"><title>A</title>{html}</main>')
    inside = page.frame_locator("iframe")
    await expect(inside.locator("html[data-rendered]")).to_have_count(1)
    frame = page.frames[1]
    for name in ("Step", "All steps", "Observation", "Log", "Grade", "Raw"):
        await inside.get_by_role("tab", name=name, exact=True).click()
        assert await findings(frame, axe) == [], name
    await page.locator("iframe").evaluate("frame => frame.remove()")
    assert await findings(page, axe) == []
    await context.close()


@asynccontextmanager
async def at_a_desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Browser, look: dict[str, Any]
) -> AsyncIterator[Page]:
    """The page of a person who works on two tasks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    context = await browser.new_context(**look)
    page = await context.new_page()
    async with desk(POLE, SHOP) as (address, _):
        await page.goto(address)
        yield page
        for task in ("pole", "shop"):
            if await page.locator("#task-name").inner_text() == task:
                await page.get_by_label("Your answer").fill("done")
                await page.get_by_role("button", name="Submit the answer").click()
        await expect(page.locator("#state")).to_contain_text("over")
    await context.close()


async def test_nothing_is_found_on_the_page_of_a_person_s_task(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    browser: Browser,
    axe: str,
    look: dict[str, Any],
) -> None:
    """With buttons, forms, and a picture to click in."""
    async with at_a_desk(tmp_path, monkeypatch, browser, look) as page:
        await its_turn(page, "pole")
        assert await findings(page, axe) == []
        await page.get_by_label("Your answer").fill("done")
        await page.get_by_role("button", name="Submit the answer").click()
        await its_turn(page, "shop")
        await page.evaluate(UNFOLD)
        assert await findings(page, axe) == []
