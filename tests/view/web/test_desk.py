"""`--agent human`: a person works on tasks on a page of their own, and is recorded as any agent."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from hud_mcp import Job, JobProgress, Task, Taskset, evaluate

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

LETTERS = Task(id="letters", env="letter_count", template="count")
POLE = Task(id="pole", env="CartPole-v1", template="balance")
SHOP = Task(id="shop", env="browser", template="shop_price")


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@asynccontextmanager
async def desk(*tasks: Task) -> AsyncGenerator[tuple[str, list[Job]]]:
    """The address of the page of an evaluation, and its job once that is over."""
    send, receive = anyio.create_memory_object_stream[str](1)
    jobs: list[Job] = []

    def tell(progress: JobProgress) -> None:
        if progress.event == "note":
            send.send_nowait(progress.text.rpartition(" ")[2])

    async def run() -> None:
        jobs.append(await evaluate(Taskset(tasks), "human", on_progress=tell))

    with anyio.fail_after(240):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            yield await receive.receive(), jobs
    send.close()
    receive.close()


async def its_turn(page: Page, task: str) -> None:
    """Wait until a task is the person's to work on."""
    await expect(page.locator("#task-name")).to_have_text(task)
    await expect(page.locator("#state")).to_have_text("It is your turn.")


@asynccontextmanager
async def new_picture(page: Page) -> AsyncGenerator[None]:
    """Wait, after the block, for what the environment shows next."""
    picture = page.locator("#picture")
    before = str(await picture.get_attribute("src"))
    yield
    await expect(picture).not_to_have_attribute("src", before)
    await expect(page.locator("#state")).to_have_text("It is your turn.")


async def photograph(page: Page, name: str) -> None:
    """Keep a picture of the page where somebody wants to look at it."""
    if folder := os.environ.get("HUD_MCP_TEST_PICTURES"):
        for width, height in ((1440, 900), (390, 844)):
            await page.set_viewport_size({"width": width, "height": height})
            await page.screenshot(path=f"{folder}/{name}-{width}.png")
            over = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, width


@pytest.mark.long
async def test_a_person_acts_by_buttons_and_answers_task_after_task(browser: Browser) -> None:
    """Each press is a step of the record; the answer ends the task, and the next one comes."""
    async with desk(POLE, LETTERS) as (address, jobs):
        page = await browser.new_page()
        problems: list[str] = []
        page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        await page.goto(address)
        await its_turn(page, "pole")
        assert "token" not in page.url
        assert await page.evaluate("document.activeElement.id") == "task-name"
        await photograph(page, "desk-pole")
        async with new_picture(page):
            await page.get_by_role("button", name="Push right").press("Enter")
        async with new_picture(page):
            await page.get_by_role("button", name="Look again").click()
        await page.get_by_label("Your answer").fill("done")
        await page.get_by_role("button", name="Submit the answer").click()
        await its_turn(page, "letters")
        assert await page.get_by_label("Your answer").input_value() == ""
        await page.get_by_label("Your answer").fill("3")
        await page.get_by_role("button", name="Submit the answer").click()
        await expect(page.locator("#state")).to_contain_text("over")
        for control in await page.locator("input, select, textarea").all():
            label = await control.evaluate("node => node.labels[0]?.textContent")
            assert label
        assert problems == []
        await page.close()

    (job,) = jobs
    assert job.agent == "human"
    pole, letters = await job.load_trajectories()
    assert next(dict(action) for step in pole.steps for action in step.actions) == {
        "type": "custom", "action": "step", "args": {"action": 1},
    }  # fmt: skip
    assert letters.reward == 1.0


@pytest.mark.sample
async def test_a_person_clicks_on_the_picture_and_on_what_the_text_names(browser: Browser) -> None:
    """A click on the picture is a click there; a mouse that is held and moved has dragged."""
    async with desk(SHOP) as (address, jobs):
        page = await browser.new_page(viewport={"width": 1440, "height": 900})
        await page.goto(address)
        await its_turn(page, "shop")
        await expect(page.locator("#picture")).to_be_visible()
        await photograph(page, "desk-shop")
        await page.set_viewport_size({"width": 1440, "height": 900})
        async with new_picture(page):
            await page.locator("#picture").click(position={"x": 20, "y": 20})
        async with new_picture(page):
            await page.get_by_role("button", name='link "Offers"').click()
        async with new_picture(page):
            await page.locator("#picture").hover(position={"x": 30, "y": 40})
            await page.mouse.down()
            await page.locator("#picture").hover(position={"x": 90, "y": 40})
            await page.mouse.up()
        await page.get_by_label("Move", exact=True).check()
        async with new_picture(page):
            await page.locator("#picture").click(position={"x": 50, "y": 60})
        await page.get_by_label("Drag", exact=True).check()
        await page.locator("#picture").click(position={"x": 30, "y": 40})
        await expect(page.locator("#caption")).to_contain_text("Now press where to end.")
        async with new_picture(page):
            await page.locator("#picture").click(position={"x": 90, "y": 40})
        await page.get_by_label("Your answer").fill("unknown")
        await page.get_by_role("button", name="Submit the answer").click()
        await expect(page.locator("#state")).to_contain_text("over")
        await page.close()

    (run,) = await jobs[0].load_trajectories()
    done = [a for step in run.steps for a in step.actions]
    clicks = [a for a in done if a["type"] == "click"]
    kinds = ["click", "click", "drag", "move", "drag", "response"]
    assert [a["type"] for a in done] == kinds
    assert done[2]["path"] == done[4]["path"], "by mouse, or by two presses"
    assert clicks[0]["point"]
    assert clicks[1]["ref"]


@pytest.mark.long
async def test_nobody_else_acts_on_the_page() -> None:
    """Without its token there is nothing, and without its own page's origin nobody acts."""
    async with desk(LETTERS) as (address, jobs):
        base, _, token = address.partition("/?token=")
        async with httpx.AsyncClient() as web:
            assert (await web.get(f"{base}/state")).status_code == 401
            assert (await web.get(f"{base}/?token=wrong")).status_code == 401
            known = {"authorization": f"Bearer {token}"}
            turn = None
            while turn is None or turn["busy"]:
                seen = "" if turn is None else "0"
                turn = (await web.get(f"{base}/state?seen={seen}", headers=known)).json()["turn"]
            act = {"number": turn["number"], "answer": "0"}
            own = {**known, "origin": base}
            for headers, status in (
                (known, 405),
                ({**known, "origin": "http://evil.example"}, 403),
                ({"origin": base}, 401),
            ):
                answered = await web.post(f"{base}/do", json=act, headers=headers)
                assert answered.status_code == status
            past = await web.post(f"{base}/do", json={**act, "number": 99}, headers=own)
            assert past.status_code == 409
            assert (await web.post(f"{base}/do", content=b"[", headers=own)).status_code == 400
            done = await web.post(f"{base}/do", json={**act, "answer": "3"}, headers=own)
            assert done.status_code == 200
    assert jobs[0].reward == 1.0
