"""Reports of what is hostile, empty or large, for every reader."""

import re
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
    opened,
    plain,
    record_hostility,
    shot,
    step,
    walk,
)

from hud_mcp.plugins.view.web.report import render_report
from hud_mcp.record.job import Job
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio


@pytest.mark.sampled(1)
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
        elements = "document.querySelectorAll('script, img:not(.film img), iframe, link, b').length"
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


@pytest.mark.long
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


@pytest.mark.long
@BROWSER
async def test_the_keyboard_reaches_everything_and_shows_where_it_is(
    run: Run, browser: Browser
) -> None:
    """Tab passes every control of a trajectory, each with a visible ring."""
    name = await run.add("walk", walk(), reward=1, logs=["opened"])
    async with opened(browser, await run.write(), f"#traj-{name}/step-2") as seen:
        reached: set[str] = set()
        for _ in range(30):
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
            "side-changes",
            "zoom-fit",
            "play",
            "tab-step",
            "step-link",
            "SUMMARY",
        }


@pytest.mark.long
@BROWSER
async def test_an_empty_job_has_a_report(run: Run, browser: Browser) -> None:
    """A job without trajectories says so instead of dividing by zero."""
    await run.store.add_job(run.job)
    async with opened(browser, await run.write()) as seen:
        assert await seen.text(".mean") == "—\nno graded task of 0"
        assert await seen.text("#shown") == "0 runs"


@pytest.mark.long
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
        await seen.page.get_by_role("tab", name="All steps").click()
        await seen.page.locator("#outline button").nth(1).click()
        assert await seen.text("#position") == f"2 / {steps}"
