"""A trajectory as a workbench: its address, what changed, zoom, and two runs aligned."""

import io
import re

import pytest
from PIL import Image
from playwright.async_api import Browser, Page, expect
from recorded import BROWSER, Run, Seen, opened, served, shot, step, walk
from starlette.routing import Router

from hud_mcp.plugins.view.web.live import live_routes
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.trajectory import live_url
from hud_mcp.server.web.auth import Hosts
from hud_mcp.values.observation import Screenshot

pytestmark = [pytest.mark.anyio, BROWSER]

LIVE = "0123456789abcdef" * 2


def painted(box: tuple[int, int, int, int] | None = None) -> Screenshot:
    """A white picture, with one black box where it is given."""
    image, out = Image.new("RGB", (640, 400), "white"), io.BytesIO()
    if box:
        image.paste("black", box)
    image.save(out, "PNG")
    return Screenshot.from_bytes(out.getvalue())


async def hash_is(page: Page, part: str) -> None:
    """Wait until the address ends so."""
    await expect(page).to_have_url(re.compile(f"{re.escape(part)}$"))


async def tab_is(seen: Seen, name: str) -> None:
    """Wait until a tab is the shown one."""
    await expect(seen.page.get_by_role("tab", name=name, exact=True)).to_have_attribute(
        "aria-selected", "true"
    )


async def test_an_address_gives_back_step_tab_and_filter(run: Run, browser: Browser) -> None:
    """What is chosen is in the address, and the address shows it again."""
    name = await run.add("walk", walk(), reward=1)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}") as seen,
    ):
        page = seen.page
        await page.keyboard.press("ArrowRight")
        await hash_is(page, "/step-2")
        await page.get_by_role("tab", name="All steps").click()
        await hash_is(page, "/step-2/steps")
        await page.locator("#find-step").fill("wait 10/é")
        await hash_is(page, "/step-2/steps/find-wait%2010%2F%C3%A9")
        await page.locator("#find-step").fill("click")
        await page.locator("#only-failed").check()
        await hash_is(page, "/step-2/steps/failed/find-click")
        kept = await page.evaluate("location.hash")
        await seen.go(kept)
        await tab_is(seen, "All steps")
        await expect(page.locator("#position")).to_have_text("2 / 4")
        await expect(page.locator("#find-step")).to_have_value("click")
        await expect(page.locator("#only-failed")).to_be_checked()
        await expect(page.locator("#outline-shown")).to_have_text("1 of 4 steps")
        await page.locator("#outline button:visible").click()
        await expect(page.locator("#position")).to_have_text("4 / 4")
        await hash_is(page, "/step-4/steps/failed/find-click")
        await page.go_back()
        await expect(page.locator("#position")).to_have_text("2 / 4")


@pytest.mark.long
async def test_an_observation_says_which_lines_are_new(run: Run, browser: Browser) -> None:
    """New and gone lines are marked, and long stretches of equal ones are folded."""
    same = "\n".join(f"line {i}" for i in range(40))
    steps = [
        step(0, observation_text=f"{same}\nold"),
        step(1, {"type": "press", "keys": ["a"]}, observation_text=f"{same}\nnew <b>"),
    ]
    name = await run.add("walk", steps, reward=1)
    async with opened(browser, await run.write(), f"#traj-{name}/step-2") as seen:
        page = seen.page
        await expect(page.locator(".text-bar .quiet")).to_have_text("1 line new, 1 gone")
        await page.get_by_role("button", name="Changes", exact=True).locator("visible=true").click()
        await expect(page.locator("#seen-changes .new")).to_have_text("+ new <b>\n")
        await expect(page.locator("#seen-changes .gone")).to_have_text("- old\n")
        await expect(page.locator("#seen-changes .same")).to_contain_text("lines as before")
        await page.keyboard.press("ArrowLeft")
        await expect(page.locator(".text-bar .quiet")).to_have_text("No text was read before it.")


@pytest.mark.long
async def test_regions_that_changed_are_outlined(run: Run, browser: Browser) -> None:
    """Their place is that of the changed pixels, and equal pictures have none."""
    act = {"type": "press", "keys": ["a"]}
    pictures = [painted(), painted((320, 200, 480, 240)), painted((320, 200, 480, 240))]
    steps = [step(i, *([act] if i else []), see=see) for i, see in enumerate(pictures)]
    name = await run.add("walk", steps, reward=1)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}/step-2") as seen,
    ):
        page = seen.page
        await page.keyboard.press("c")
        await expect(page.locator("#caption")).to_have_text("1 region changed, 3 % of the picture")
        place = await page.locator("#marks .region").evaluate(
            "e => ['left', 'top', 'width', 'height'].map(name => parseFloat(e.style[name]))"
        )
        assert place == [50, 50, 25, 10]
        await hash_is(page, "/step-2/changes")
        await page.keyboard.press("ArrowRight")
        await expect(page.locator("#caption")).to_have_text("Nothing changed in the picture.")
        await expect(page.locator("#marks .region")).to_have_count(0)


@pytest.mark.long
async def test_keys_zoom_the_picture(run: Run, browser: Browser) -> None:
    """Plus and minus change its size, 1 is pixel for pixel, and 0 fits it again."""
    name = await run.add("walk", walk(), reward=1)
    async with opened(browser, await run.write(), f"#traj-{name}") as seen:
        page, now = seen.page, seen.page.locator("#zoom-now")
        frame = page.locator("#frame")
        await page.keyboard.press("1")
        await expect(now).to_have_text("100 %")
        await expect(frame).to_have_css("width", "640px")
        await page.keyboard.press("+")
        await expect(now).to_have_text("125 %")
        await page.keyboard.press("-")
        await expect(now).to_have_text("100 %")
        await page.keyboard.press("0")
        await expect(now).to_have_text("")
        await expect(page.locator("#zoom-fit")).to_have_attribute("aria-pressed", "true")


@pytest.mark.long
async def test_two_runs_are_aligned_by_what_was_done(run: Run, browser: Browser) -> None:
    """A step that one run has more stands alone, and equal targets find each other."""
    look, press = step(0, see=shot("red")), {"type": "press", "keys": ["a"]}
    lamp, cart, desk = ({"type": "click", "selector": f"#{n}"} for n in ("lamp", "cart", "desk"))
    one = await run.add("shop", [look, step(1, lamp), step(2, cart)], reward=1)
    other = await run.add("shop", [look, step(1, press), step(2, desk), step(3, cart)], reward=0)
    async with opened(browser, await run.write(), f"#compare-{one}/{other}") as seen:
        rows = seen.page.locator("#pairs button")
        await expect(rows).to_have_count(4)
        texts = [" ".join(text.split()) for text in await rows.all_inner_texts()]
        assert ["cart" in text for text in texts] == [False, False, False, True]
        assert texts[3].count("cart") >= 1
        await rows.nth(3).click()
        await expect(seen.page.locator("#position-both")).to_have_text("4 / 4")


@pytest.mark.long
async def test_a_live_page_has_no_raw_records(run: Run, browser: Browser) -> None:
    """Whoever has its address may be the agent: no raw step, and no grade before the end."""
    await run.add("walk", walk(), outcome=None, live_token=LIVE)
    routes = live_routes(run.store, hosts=Hosts("127.0.0.1"))
    async with served(Router(routes)) as base, opened(browser, live_url(base, LIVE)) as seen:
        await expect(seen.page.locator("#position")).to_have_text("4 / 4")
        for name in ("Raw", "Grade"):
            await expect(seen.page.get_by_role("tab", name=name, exact=True)).to_have_count(0)
        await expect(seen.page.get_by_role("tab", name="Step", exact=True)).to_be_visible()
        assert "observation_text" not in await seen.page.inner_text("#raw")
