"""An author's own action, world and outcome are met wherever the package's are.

They are declared in a few lines: the action and its world in `warming.py`, the outcome below.
Nothing else is told of them.
"""

import json
import runpy
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest
from peers import ENVIRONMENTS, stdio_peer
from PIL import Image
from playwright.async_api import Browser, expect
from recorded import BROWSER, Run, Seen, opened, receipt, served, shot, step
from starlette.routing import Router

from hud_mcp.analysis.statistics import job_statistics
from hud_mcp.analysis.tries import plan
from hud_mcp.plugins.view.export import export_atif, export_gif, export_jsonl, export_parquet
from hud_mcp.plugins.view.export.scenes import scenes_of
from hud_mcp.plugins.view.web.live import live_routes
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.trajectory import live_url
from hud_mcp.record.transcript import transcript_text
from hud_mcp.server.web.auth import Hosts
from hud_mcp.session.receipts import ended_how
from hud_mcp.store import Store
from hud_mcp.values.action import ACTION_CLASSES, ACTION_TYPES, Point, Targeted, parse_action
from hud_mcp.values.outcome import OUTCOMES, Cause, Counts, Outcome, cause_of

pytestmark = pytest.mark.anyio

WARMING = ENVIRONMENTS / "warming.py"
TOKEN = "0123456789abcdef" * 2
HOVER = {"type": "hover", "point": {"x": 160, "y": 100}}


@pytest.fixture(autouse=True)
def paused() -> Iterator[Outcome]:
    """Everything that is declared from outside; it is gone after the test."""
    registries = (ACTION_CLASSES, OUTCOMES)
    before = [dict(registry) for registry in registries]
    try:
        runpy.run_path(str(WARMING), run_name="warming")
        yield Outcome.add(
            "paused",
            words="put aside",
            cause=Cause.OPERATOR,
            counts=Counts.NOWHERE,
            tried_again=False,
            ended="was put aside {at}",
            note="put aside: in no mean and in no pass rate",
        )
    finally:
        for registry, was in zip(registries, before, strict=True):
            registry.clear()
            registry.update(was)  # pyright: ignore[reportArgumentType, reportCallIssue]  # its own


async def record(run: Run, paused: Outcome) -> str:
    """One session with the toy action and the toy outcome, and another one beside it."""
    await run.add("plain", reward=1)
    steps = [
        step(0, see=shot("red"), observation_text='- button "Lamp" [ref=e1]'),
        step(1, HOVER, {"type": "hover", "ref": "e1"}, see=shot("blue")),
    ]
    return await run.add("warm", steps, outcome=paused, live_token=TOKEN)


async def test_an_agent_finds_the_action_and_its_world_performs_it(tmp_path: Path) -> None:
    """Over MCP, from the schema to the grade; its record says it in words."""
    async with stdio_peer(tmp_path, [str(WARMING)]) as peer:
        tools = {tool.name: tool for tool in (await peer.client.list_tools()).tools}
        action = tools["step"].input_schema["properties"]["actions"]["items"]["properties"]
        assert action["type"]["enum"] == ["response", "hover"]
        assert set(action) == {"type", "x", "y", "ref", "selector", "text", "pause"}
        told = {"type": "integer", "description": "hover: How long, ms.", "minimum": 0}
        assert action["pause"] == told
        await peer.ok("start_task", template="warm")
        refused = await peer.call("act", type="hoover", x=1, y=2)
        assert "Did you mean 'hover'?" in refused.text
        assert "action: 'hover' needs y" in (await peer.call("act", type="hover", x=1)).text
        await peer.ok("act", type="hover", x=50, y=20, pause=10)
        graded = await peer.ok("response", answer="done")
        assert graded.structured["reward"] == 1.0
    store = Store(tmp_path / "store.sqlite3")
    (found,) = await store.list_trajectories()
    told = transcript_text(await store.load_trajectory(found.id))
    await store.close()
    assert "  > hover at 50, 20\n" in told


def test_the_action_is_read_aimed_and_followed_as_its_kind() -> None:
    """Nothing but its base class says so; another one of its type is refused."""
    assert [*ACTION_TYPES][-1] == "hover"
    hover = parse_action({"type": "hover", "x": 3, "y": 4})
    assert isinstance(hover, Targeted)
    assert hover.scaled(2).point == Point(x=6, y=8)
    assert hover.moves_pointer
    assert hover.pointer_after(None, None) == Point(x=3, y=4)
    with pytest.raises(
        TypeError, match="Hover has the action type 'hover' already; declare another one"
    ):
        type("Other", (Targeted,), {"__annotations__": {"type": str}, "type": "hover"})


async def test_the_figures_count_the_outcome_as_it_says(run: Run, paused: Outcome) -> None:
    """In the table by its name, in no mean and in no rate, and it is not run again."""
    await record(run, paused)
    runs = (await run.store.load_job_summary(run.job.id))[2]
    figures = job_statistics(["plain", "warm"], runs)
    assert figures.outcomes["paused"] == 1
    text = str(figures)
    assert "paused              1  put aside: in no mean and in no pass rate" in text
    assert "over 1 graded of 2 runs" in text
    assert figures.passes[0].pass_at_k is not None
    assert (figures.passes[0].pass_at_k.runs, figures.infrastructure) == (1, 1)
    assert (figures.to_resume, plan(["plain", "warm"], runs, 1)) == (0, {})


async def test_an_end_is_told_in_the_outcome_s_words(run: Run, paused: Outcome) -> None:
    """To an agent that calls again, in a transcript, and whose doing it was."""
    name = await record(run, paused)
    found = await run.store.load_trajectory(name)
    assert found.receipt is not None
    assert ended_how(found.receipt) == "was put aside at 09:01:10 UTC."
    assert cause_of(paused) is Cause.OPERATOR
    told = transcript_text(found)
    assert told.startswith(f"{name}  paused\n")
    assert "  > hover at 160, 100\n" in told
    assert "  > hover the button “Lamp”\n" in told


async def look_at_job(seen: Seen) -> None:
    """What a job's page has of the outcome, and its trajectory's of the action."""
    page = seen.page
    assert await seen.text("#outcomes .paused") == "put aside\n1"
    assert await page.locator("#rows .badge.paused").all_inner_texts() == ["put aside"]
    assert await page.locator("#plot .failure text").all_text_contents() == ["put aside"]
    assert "no reward (put aside)" in await seen.text("#legend")
    await page.locator("#outcome").select_option("paused")
    assert await seen.tasks() == ["warm"]
    await page.get_by_role("link", name="warm", exact=True).click()
    await expect(page.locator("#detail .badge")).to_have_text("put aside")
    await page.keyboard.press("End")
    await expect(page.locator("#actions .words")).to_have_text(
        ["hover at 160, 100", "hover the button “Lamp”"]
    )
    await page.get_by_role("button", name="Before").click()
    await expect(page.locator(".spot")).to_have_count(1)


@pytest.mark.long
@BROWSER
async def test_the_viewer_shows_both(run: Run, paused: Outcome, browser: Browser) -> None:
    """The count, the badge, the plot, the filter; the words, and the spot on the picture."""
    await record(run, paused)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#job-{run.job.id}") as seen,
    ):
        await look_at_job(seen)


@pytest.mark.long
@BROWSER
async def test_a_report_shows_both(run: Run, paused: Outcome, browser: Browser) -> None:
    """The same in one file."""
    await record(run, paused)
    async with opened(browser, await run.write()) as seen:
        await look_at_job(seen)


@pytest.mark.long
@BROWSER
async def test_a_live_page_shows_both(run: Run, paused: Outcome, browser: Browser) -> None:
    """The action as it comes, and how the session ended."""
    name = await run.add("warm", [step(0, see=shot("red"))], outcome=None, live_token=TOKEN)
    app = Router(live_routes(run.store, hosts=Hosts("127.0.0.1")))
    async with served(app) as base, opened(browser, live_url(base, TOKEN)) as seen:
        page = seen.page
        await run.store.add_step(name, *step(1, HOVER, see=shot("blue")))
        await expect(page.locator("#actions .words")).to_have_text("hover at 160, 100")
        made = await run.store.load_trajectory(name)
        await run.store.end_session(name, receipt(made, paused, None))
        await expect(page.locator("#state .badge")).to_have_text("put aside")


async def test_a_film_shows_both(run: Run, paused: Outcome, tmp_path: Path) -> None:
    """The words under the picture, the spot on it, and the last frame."""
    name = await record(run, paused)
    scenes = scenes_of(await run.store.load_trajectory(name))
    assert scenes[-2].words == "hover at 160, 100; hover the button “Lamp”"
    assert [(spot.kind, spot.points) for spot in scenes[-2].marks] == [("hover", ((160, 100),))]
    assert scenes[-1].badge == "put aside"
    await export_gif(run.store, name, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        assert getattr(film, "n_frames", 1) == len(scenes)


async def test_exports_have_both(run: Run, paused: Outcome, tmp_path: Path) -> None:
    """JSON Lines, Parquet and ATIF: the action as it was sent, the outcome by its name."""
    name = await record(run, paused)
    await export_jsonl(run.store, name, tmp_path / "rows.jsonl")
    (row,) = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert row["outcome"] == "paused"
    assert row["steps"][1]["actions"][0] == HOVER
    await export_parquet(run.store, name, tmp_path / "parquet")
    tables = [pyarrow.parquet.read_table(p) for p in (tmp_path / "parquet").rglob("*.parquet")]
    assert {"paused"} in [
        set(t["outcome"].to_pylist()) for t in tables if "outcome" in t.column_names
    ]
    await export_atif(run.store, name, tmp_path / "atif")
    document = json.loads((tmp_path / "atif" / f"{name}.json").read_text())
    assert document["final_metrics"]["extra"]["outcome"] == "paused"
    assert document["steps"][2]["tool_calls"][0]["arguments"]["actions"][0] == HOVER
