"""Operators' pages show a model's turns; a live page that an agent may open does not."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from playwright.async_api import Browser, expect
from recorded import BROWSER, HOSTILE, PATIENCE_S, START, Run, opened, served, step
from starlette.routing import Router

from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.plugins.view.web.live import live_routes
from hud_mcp.plugins.view.web.report import write_report
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.server.web.auth import Hosts
from hud_mcp.values.model_turn import ModelTurn

pytestmark = pytest.mark.anyio

LIVE = "0123456789abcdef" * 2
TOKEN = "correct horse battery"
THOUGHT = "THE-MODEL-THOUGHT-THIS"


def turn(second: float, **fields: Any) -> ModelTurn:
    """A reply that took a second and a half."""
    begun = START + timedelta(seconds=second)
    return ModelTurn.model_validate(
        {"started_at": begun, "ended_at": begun + timedelta(seconds=1.5), **fields}
    )


async def record(run: Run, said: str = "I click.", **more: Any) -> str:
    """A trajectory of two steps, with a turn before the first and one after the last."""
    name = await run.add("shop", [step(0, {"type": "press", "keys": ["a"]}), step(1)], **more)
    first = turn(
        0,
        model="anthropic:model-a",
        text=said,
        reasoning=f"{THOUGHT} {said}",
        calls=[{"name": "press", "arguments": {"said": said}}],
        usage={"input": 1200, "output": 30},
        cost_usd=0.25,
    )
    await run.store.add_turns(name, [first], before_step=0)
    await run.store.add_turns(name, [turn(9, text="I am done.")], before_step=2)
    return name


async def watched(base: str, until: str = '"index":1', **headers: str) -> str:
    """All that a watcher is sent up to a text, which is the second step's by default."""
    said = ""
    with anyio.fail_after(PATIENCE_S):
        async with (
            httpx.AsyncClient(timeout=PATIENCE_S, headers=headers) as asking,
            asking.stream("GET", f"{base}/live/{LIVE}/events") as answer,
        ):
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                said += f"{line}\n"
                if line.startswith("data:") and until in line:
                    return said
    raise AssertionError(said)


async def test_a_live_page_of_a_server_shows_nothing_of_the_model(run: Run) -> None:
    """Its address comes with the task: an agent may read it, or whoever the agent tells."""
    name = await record(run, outcome=None, live_token=LIVE)
    await run.store.add_logs(name, [(START, "the last line")])
    async with served(Router(live_routes(run.store, hosts=Hosts("127.0.0.1"), log=True))) as base:
        said = await watched(base, "the last line")
    assert '"words"' in said
    for hidden in (THOUGHT, "I click.", "model-a", "1,200", "0.25", "I am done."):
        assert hidden not in said


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({}, False),
        ({"authorization": "Bearer something else"}, False),
        ({"authorization": f"Bearer {TOKEN}"}, True),
    ],
)
async def test_the_viewer_s_live_page_shows_it_to_who_has_the_viewer_s_token(
    run: Run,
    headers: dict[str, str],
    shown: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """The page itself opens without one, as its address is a secret that an agent knows."""
    await record(run, outcome=None, live_token=LIVE)
    async with served(viewer_app(run.store, token=TOKEN)) as base:
        said = await watched(base, **headers)
    assert (THOUGHT in said) is ("I click." in said) is ("model-a" in said) is shown


@BROWSER
async def test_the_operator_s_live_page_shows_turns_that_led_to_no_step_yet(
    run: Run, browser: Browser
) -> None:
    """As soon as they are recorded; each goes to its step once there is one."""
    name = await record(run, outcome=None, live_token=LIVE)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/live/{LIVE}") as seen,
    ):
        page = seen.page
        left, beside = page.locator("#turns-left .turn"), page.locator("#panel .turn")
        await expect(left).to_have_count(1)
        await expect(left).to_contain_text("I am done.")
        await run.store.add_turns(name, [turn(10, text="Not quite.")], before_step=2)
        await expect(left).to_have_count(2)
        await run.store.add_step(name, *step(2))
        await expect(beside).to_have_count(2)
        await expect(left).to_have_count(0)


@BROWSER
async def test_the_page_of_a_trajectory_shows_turns_beside_their_steps(
    run: Run, browser: Browser
) -> None:
    """Reasoning, text, calls and figures, as text whatever they hold; also what led to no step."""
    name = await record(run, HOSTILE, reward=1.0)
    async with served(viewer_app(run.store)) as base:
        async with opened(browser, f"{base}/", f"#traj-{name}") as seen:
            page = seen.page
            turns = page.locator("#panel .turn")
            await expect(turns).to_have_count(1)
            await expect(turns).to_contain_text(THOUGHT)
            await expect(turns).to_contain_text("anthropic:model-a")
            await expect(turns).to_contain_text("1,200 in, 30 out")
            await expect(turns).to_contain_text("$0.250000")
            await expect(page.locator("#turns-left")).to_contain_text("I am done.")
            await expect(page.locator("#task-facts")).to_contain_text("2 turns; 1,200 tokens in")
            await page.locator("#next-step").click()
            await expect(turns).to_have_count(0)
            assert await page.evaluate("document.documentElement.dataset.ran") is None
        await Upkeep(run.store).redact([name], ["reasoning"])
        async with opened(browser, f"{base}/", f"#traj-{name}") as seen:
            shown = seen.page.locator("#panel .turn")
            await expect(shown).to_contain_text("removed: reasoning, on 20")
            await expect(shown).not_to_contain_text(THOUGHT)


@pytest.mark.long
@BROWSER
async def test_a_report_has_the_turns_too(run: Run, browser: Browser, tmp_path: Path) -> None:
    """And what the model used stands among the job's figures."""
    name = await record(run, reward=1.0)
    path = await write_report(run.store, run.job.id, tmp_path / "report.html")
    async with opened(browser, path) as seen:
        figures = seen.page.locator("#statistics")
        await expect(figures).to_contain_text("2 turns; 1,200 tokens in, 30 out; $0.2500")
    async with opened(browser, path, f"#traj-{name}") as seen:
        await expect(seen.page.locator("#panel .turn")).to_contain_text(THOUGHT)
