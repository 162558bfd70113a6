"""A job's page by set, difficulty and skill: viewer, report, keyboard, phone."""

import csv
import io
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect
from recorded import BROWSER, HOSTILE, START, Run, opened, receipt, served, step

from hud_mcp.analysis.groups import group_runs
from hud_mcp.analysis.intervals import interval_text
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome, SubScore
from hud_mcp.values.model_turn import ModelTurn

pytestmark = [pytest.mark.anyio, BROWSER]

ROWS: list[tuple[str, dict[str, Any], float | Outcome | None]] = [
    # the task, what its row says, how its run ended; None for one that never began
    ("find", {"difficulty": "easy", "skills": ["search"]}, 1.0),
    ("sort", {"difficulty": "easy", "skills": ["search", "sort"]}, 0.5),
    ("buy", {"difficulty": "hard", "skills": ["checkout", "search"]}, 0.0),
    ("pay", {"difficulty": "hard", "skills": ["checkout"]}, Outcome.EXPIRED),
    ("pack", {"difficulty": "medium", "skills": ["sort"]}, Outcome.LOST),
    ("send", {"difficulty": "medium"}, None),
    ("ask", {}, 1.0),
]


async def record_groups(run: Run) -> None:
    """Seven tasks of two sets, of which one says nothing of itself and one never began."""
    sets = {"shop": ["find", "sort", "buy", "pay"], "post": ["pack", "send", "ask"]}
    run.job = Job(name="A job", taskset="shop, post", agent="me", metadata={"tasksets": sets})
    run.tasks = tuple(
        Task(id=name, env="shop", template="find", metadata=said) for name, said, _ in ROWS
    )
    for name, said, end in ROWS:
        more: dict[str, Any] = {"reward": end}
        if isinstance(end, Outcome):
            more = {"outcome": end, "error": f"{name} broke\n\tbadly"}
        if end is not None:
            await run.add(name, task_fields={"metadata": said}, **more)


async def lines(page: Page) -> list[str]:
    """What the table's rows are, from top to bottom: groups with a sign, tasks by their name."""
    found: list[str] = []
    for row in await page.locator("#rows tr").all():
        button = row.locator("button")
        if await button.count():
            is_open = await button.get_attribute("aria-expanded") == "true"
            found.append(f"{'-' if is_open else '+'} {await button.inner_text()}")
        else:
            found.append(await row.locator("th a").inner_text())
    return found


def head(page: Page, title: str) -> Locator:
    """The head of a group of rows."""
    return page.locator("#rows tr.group", has=page.get_by_role("button", name=title, exact=True))


@pytest.mark.long
async def test_a_job_whose_rows_say_nothing_has_no_groups(run: Run, browser: Browser) -> None:
    """No plot, and nothing to group by."""
    await run.add("one", reward=1)
    await run.add("two", reward=0.5)
    async with opened(browser, await run.write()) as seen:
        for part in ("#groupings", "#group-label", "#fold-all", "#group-note"):
            assert await seen.page.locator(part).is_hidden()


@pytest.mark.long
async def test_the_plot_says_in_words_what_it_draws(run: Run, browser: Browser) -> None:
    """Each group's mean, interval and outcomes are those of the statistics."""
    await record_groups(run)
    _, tasks, runs = await run.store.load_job_summary(run.job.id)
    wanted = group_runs(tasks, runs, ["set", "difficulty", "skill"], set_of=run.job.set_of)
    async with opened(browser, await run.write()) as seen:
        page = seen.page
        assert await seen.text("#groupings-title") == "By set, difficulty and skill"
        for grouping in wanted:
            table = page.get_by_role("table", name=f"Mean reward by {grouping.by}")
            rows = table.locator("tbody tr")
            assert await rows.locator("th").all_inner_texts() == [
                grouping.title_of(group) for group in grouping.groups
            ]
            for index, group in enumerate(grouping.groups):
                text = " ".join((await rows.nth(index).inner_text()).split())
                if group.mean is None:
                    assert f"none 0 graded of {group.wanted}" in text
                    assert await rows.nth(index).locator(".dot").count() == 0
                    continue
                assert group.mean.low is not None
                assert group.mean.high is not None
                interval = interval_text(group.mean.low, group.mean.high, digits=2)
                assert f"{group.mean.value:.3f} {interval}" in text
        easy = page.locator(".grouping.difficulty tbody tr").first
        assert (await easy.locator(".over").last.inner_text()) == "1 passed, 1 in part"
        dot = await easy.locator(".dot").bounding_box()
        scale = await easy.locator(".dots").bounding_box()
        assert dot
        assert scale
        place = (dot["x"] + dot["width"] / 2 - scale["x"]) / scale["width"]
        assert place == pytest.approx(0.75, abs=0.01)
        skills = await seen.text(".grouping.skill .legend")
        assert skills.startswith("A run counts in each skill that its task has")


async def test_rows_are_grouped_and_each_group_folds(run: Run, browser: Browser) -> None:
    """From easy to hard, with figures at its head; a group whose runs never began is there too."""
    await record_groups(run)
    async with opened(browser, await run.write()) as seen:
        page = seen.page
        choice = page.get_by_label("Group by")
        assert await choice.locator("option").all_inner_texts() == [
            "none", "set", "difficulty", "skill",
        ]  # fmt: skip
        await choice.select_option("difficulty")
        assert await lines(page) == ["+ easy", "+ medium", "+ hard", "+ no difficulty"]
        easy = " ".join((await head(page, "easy").inner_text()).split())
        assert easy.startswith("easy 2 graded of 2 runs")
        assert "1 passed, 1 in part" in easy
        assert re.search(r"0\.75 0\.\d\d to 1\.00 20\.0$", easy)
        assert "1 lost, 1 not begun" in await head(page, "medium").inner_text()
        await page.get_by_role("button", name="hard", exact=True).click()
        assert await lines(page) == [
            "+ easy",
            "+ medium",
            "- hard",
            "buy",
            "pay",
            "+ no difficulty",
        ]
        await page.get_by_role("button", name="Open all").click()
        assert len(await lines(page)) == 10
        await page.get_by_role("button", name="Fold all").click()
        assert len(await lines(page)) == 4
        await choice.select_option("skill")
        assert (await seen.text("#group-note")).startswith("A run counts in each skill")
        await page.get_by_role("button", name="Open all").click()
        assert await lines(page) == [
            "- search", "find", "sort", "buy", "- checkout", "buy", "pay", "- sort", "sort", "pack",
            "- no skill", "ask",
        ]  # fmt: skip
        await choice.select_option("")
        assert await lines(page) == ["find", "sort", "buy", "pay", "pack", "ask"]


@pytest.mark.long
@pytest.mark.parametrize("where", ["viewer", "report"])
async def test_the_address_keeps_what_is_grouped_and_open(
    run: Run, browser: Browser, where: str
) -> None:
    """A reload, the way back from a run, and a link of the plot lead to the same rows."""
    await record_groups(run)
    async with (
        served(viewer_app(run.store)) as base,
        opened(
            browser,
            f"{base}/" if where == "viewer" else await run.write(),
            f"#job-{run.job.id}",
        ) as seen,
    ):
        page = seen.page
        await page.get_by_label("Group by").select_option("difficulty")
        await page.get_by_role("button", name="hard", exact=True).click()
        assert page.url.endswith(f"#{run.job.id}/by-difficulty/hard")
        shown = ["+ easy", "+ medium", "- hard", "buy", "pay", "+ no difficulty"]
        await page.reload()
        await page.wait_for_selector("html[data-rendered]")
        assert await lines(page) == shown
        await page.get_by_role("link", name="pay").click()
        await expect(page.locator("#detail")).to_be_visible()
        await page.go_back()
        await expect(page.locator("#rows").get_by_role("link", name="pay")).to_be_focused()
        assert await lines(page) == shown
        await page.keyboard.press("Enter")
        await expect(page.locator("#detail")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("#rows").get_by_role("link", name="pay")).to_be_focused()
        assert await lines(page) == shown
        await page.locator(".grouping.skill").get_by_role("link", name="sort").click()
        await expect(page.get_by_role("button", name="sort", exact=True)).to_be_focused()
        assert await lines(page) == [
            "+ search",
            "+ checkout",
            "- sort",
            "sort",
            "pack",
            "+ no skill",
        ]
        await page.go_back()
        await expect(page.get_by_role("button", name="hard", exact=True)).to_be_focused()
        assert await lines(page) == shown
        await seen.go(f"#job-{run.job.id}/by-nothing/hard")
        assert await lines(page) == ["find", "sort", "buy", "pay", "pack", "ask"]


@pytest.mark.long
async def test_groups_are_used_by_keyboard(run: Run, browser: Browser) -> None:
    """J and K go through heads and rows, arrows open and fold, Enter does either."""
    await record_groups(run)
    async with opened(browser, await run.write(), f"#job-{run.job.id}/by-difficulty") as seen:
        page = seen.page
        at = "(document.activeElement.closest('tr, body').querySelector('button, a')).textContent"
        for key, name, count in (
            ("j", "easy", 4), ("ArrowRight", "easy", 6), ("j", "find", 6), ("j", "sort", 6),
            ("j", "medium", 6), ("Enter", "medium", 7), ("Space", "medium", 6), ("k", "sort", 6),
            ("Home", "easy", 6), ("ArrowLeft", "easy", 4), ("ArrowLeft", "easy", 4),
            ("End", "no difficulty", 4),
        ):  # fmt: skip
            await page.keyboard.press(key)
            assert await page.evaluate(at) == name, key
            assert len(await lines(page)) == count, key
            ring = "getComputedStyle(document.activeElement).outlineStyle"
            assert await page.evaluate(ring) != "none"


@pytest.mark.long
async def test_what_is_sought_is_shown_in_open_groups(run: Run, browser: Browser) -> None:
    """A group without a match is left out, and what was open is so again afterwards."""
    await record_groups(run)
    async with opened(browser, await run.write(), f"#job-{run.job.id}/by-difficulty/easy") as seen:
        page = seen.page
        await page.get_by_label("Find").fill("pa")
        assert await lines(page) == ["- medium", "pack", "- hard", "pay"]
        assert "1 shown" in await head(page, "hard").inner_text()
        await page.get_by_role("button", name="hard", exact=True).click()
        assert await lines(page) == ["- medium", "pack", "+ hard"]
        await page.get_by_label("Find").fill("")
        assert await lines(page) == [
            "- easy",
            "find",
            "sort",
            "+ medium",
            "+ hard",
            "+ no difficulty",
        ]
        await page.locator("#column-reward button").click()
        assert (await lines(page))[:3] == ["- easy", "sort", "find"]


@pytest.mark.long
async def test_a_group_says_what_its_model_used(run: Run, browser: Browser) -> None:
    """Of its runs alone; a group of which nothing was told says nothing."""
    for number, difficulty in enumerate(("easy", "hard")):
        said = {"metadata": {"difficulty": difficulty}}
        name = await run.add(f"t{number}", [step(0)], reward=1, task_fields=said)
        used = {"usage": {"input": 1200, "output": 30}, "cost_usd": 0.25}
        reply = {"started_at": START, "ended_at": START + timedelta(seconds=2), **used}
        if difficulty == "easy":
            await run.store.add_turns(name, [ModelTurn.model_validate(reply)], before_step=0)
    async with opened(browser, await run.write(), f"#job-{run.job.id}/by-difficulty") as seen:
        easy = await head(seen.page, "easy").inner_text()
        assert "model: 1 turn; 1,200 tokens in, 30 out; $0.2500; model 2.0 s" in easy
        assert "model" not in await head(seen.page, "hard").inner_text()


@pytest.mark.long
async def test_many_groups_are_shown_when_asked_for(run: Run, browser: Browser) -> None:
    """The plot has the largest ones, and a button brings the others and takes the reader there."""
    for number in range(20):
        said = {"skills": [f"skill {number:02}", "all"]}
        await run.add(f"t{number}", reward=1, task_fields={"metadata": said})
    async with opened(browser, await run.write()) as seen:
        names = seen.page.locator(".grouping.skill tbody tr:visible th")
        assert await names.all_inner_texts() == ["all", *(f"skill {n:02}" for n in range(7))]
        await seen.page.get_by_role("button", name="Show all 21 skills").press("Enter")
        assert await names.count() == 21
        link = seen.page.get_by_role("link", name="skill 07")
        await expect(link).to_be_focused()


@pytest.mark.long
async def test_a_run_that_is_not_in_the_plan_has_a_place(run: Run, browser: Browser) -> None:
    """Its task is of no group, and it is not lost from the table."""
    said = {"difficulty": "easy"}
    run.tasks = (Task(id="find", env="shop", template="find", metadata=said),)
    run.job = Job(name="Planned", planned=True)
    await run.store.add_job(run.job, run.tasks)
    await run.store.plan_run(run.job.id, f"{1:064}")
    run.count = 1
    await run.add("find", reward=1, task_fields={"metadata": said})
    await run.add("stranger", reward=0, task_fields={"metadata": said})
    async with opened(browser, await run.write(), f"#job-{run.job.id}/by-difficulty") as seen:
        assert await lines(seen.page) == ["+ easy", "+ not in the plan"]
        await seen.page.get_by_role("button", name="Open all").click()
        assert await lines(seen.page) == ["- easy", "find", "- not in the plan", "stranger"]
        stray = await head(seen.page, "not in the plan").inner_text()
        assert "1 run, counted nowhere" in stray


@pytest.mark.long
async def test_a_row_says_why_it_has_no_reward_or_not_all(run: Run, browser: Browser) -> None:
    """An error, the grade's sentence, or the parts that were missed; a full reward needs none."""
    await run.add("broke", outcome=Outcome.LOST, error="The server\n died.")
    await run.add("nearly", reward=0.5, content="The price is wrong.")
    parts = (SubScore(name="price", value=0), SubScore(name="cart", value=1))
    await run.add("parts", reward=0.5, subscores=parts)
    await run.add("full", reward=1, content="Well done.")
    await run.add("bare", reward=0)
    async with opened(browser, await run.write()) as seen:
        notes = [
            await row.locator(".note").all_inner_texts()
            for row in await seen.page.locator("#rows tr").all()
        ]
        assert notes == [
            ["The server died."], ["The price is wrong."], ["missed: price"], [], [],
        ]  # fmt: skip
        await seen.page.get_by_label("Find").fill("died")
        assert await seen.tasks() == ["broke"]


@pytest.mark.long
async def test_runs_that_ended_alike_have_one_strip(run: Run, browser: Browser) -> None:
    """A cell each, and a sentence; columns of one height say no more. One that differs has one."""
    for number in range(9):
        await run.add(f"t{number}", reward=1)
    async with opened(browser, await run.write()) as seen:
        assert await seen.text("#plot .ends-of-all .keys") == "9 passed"
        assert await seen.page.locator("#plot a.cell.passed").count() == 9
        assert (await seen.text("#legend")).startswith("All 9 runs have reward 1.")
    await run.add("other", outcome=Outcome.LOST)
    async with opened(browser, await run.write()) as seen:
        assert await seen.page.locator("#plot .column").count() == 10
        assert await seen.text("#plot .ends-of-all .keys") == "9 passed\n1 lost"


@pytest.mark.long
async def test_many_runs_have_a_strip_cells_and_a_histogram(run: Run, browser: Browser) -> None:
    """Each cell leads to its run, and how often each reward was stands below."""
    for number in range(37):
        await run.add(f"t{number}", reward=(number % 3) / 2)
    async with opened(browser, await run.write()) as seen:
        page = seen.page
        assert (await seen.text("#plot .keys")).split("\n") == [
            "12 passed", "12 in part", "13 with reward 0",
        ]  # fmt: skip
        await page.get_by_role("button", name="reward 0.50 to 0.60: 12 runs").click()
        assert await seen.text("#shown") == "12 of 37 runs shown"
        await page.locator("#plot a.cell").nth(4).click()
        await expect(page.locator("#task-name")).to_have_text("t4")


async def saved(page: Page, name: str, folder: Path) -> str:
    """The text of a download."""
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name=name).click()
    download = await waiting.value
    path = folder / download.suggested_filename
    await download.save_as(path)
    return path.read_bytes().decode()


async def test_the_runs_are_saved_as_csv_and_json_lines(run: Run, browser: Browser) -> None:
    """Without a server's help, with the groups; no text becomes a spreadsheet's formula."""
    await record_groups(run)
    formula = '=HYPERLINK("http://elsewhere.invalid","x"),\ny'
    await run.add("find", reward=0.5, id="odd", foreign=False, content=formula)
    async with opened(browser, await run.write(), accept_downloads=True) as seen:
        text = await saved(seen.page, "JSON Lines", run.folder)
        rows = [json.loads(line) for line in text.splitlines()]
        assert [row["task"] for row in rows] == [
            "find",
            "sort",
            "buy",
            "pay",
            "pack",
            "ask",
            "find",
        ]
        assert (
            rows[1] | {"set": "shop", "difficulty": "easy", "skill": ["search", "sort"]} == rows[1]
        )
        assert (rows[0]["earlier"], rows[3]["reward"], rows[5]["difficulty"]) == (True, None, None)
        table = list(
            csv.DictReader(io.StringIO(await saved(seen.page, "CSV", run.folder), newline=""))
        )
        assert [row["task"] for row in table] == [row["task"] for row in rows]
        assert (table[1]["reward"], table[1]["skill"], table[3]["reward"]) == (
            "0.5",
            "search sort",
            "",
        )
        assert table[6]["why"] == "'" + " ".join(formula.split())
        assert rows[6]["why"] == " ".join(formula.split())


@pytest.mark.long
async def test_a_running_job_keeps_its_groups_while_it_goes_on(run: Run, browser: Browser) -> None:
    """What ends changes the figures at the head; what is open and what has the focus stay."""
    said = {"task_fields": {"metadata": {"difficulty": "easy"}}}
    name = await run.add("going", outcome=None, **said)
    await run.add("over", reward=0.5, **said)
    part = f"#job-{run.job.id}/by-difficulty/easy"
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", part) as seen,
    ):
        page = seen.page
        await page.keyboard.press("j")
        await expect(head(page, "easy")).to_contain_text("1 in part, 1 unfinished")
        trajectory = await run.store.load_trajectory(name)
        await run.store.end_session(name, receipt(trajectory, Outcome.GRADED, 1.0))
        await expect(head(page, "easy")).to_contain_text("1 passed, 1 in part")
        await expect(page.get_by_role("button", name="easy", exact=True)).to_be_focused()
        assert await lines(page) == ["- easy", "going", "over"]
        assert page.url.endswith(part)


@pytest.mark.long
async def test_rewards_of_any_size_have_a_place(run: Run, browser: Browser) -> None:
    """Without an interval, on a scale that has room for them."""
    for number, reward in enumerate((-100.0, 300.0)):
        said = {"difficulty": ["easy", "hard"][number]}
        await run.add(f"t{number}", reward=reward, task_fields={"metadata": said})
    async with opened(browser, await run.write(), f"#job-{run.job.id}/by-difficulty") as seen:
        table = seen.page.locator(".grouping.difficulty")
        assert await table.locator("thead .place span").all_inner_texts() == ["-100", "100", "300"]
        assert "-100.000 no interval" in await table.locator("tbody tr").first.inner_text()
        assert await table.locator(".line").count() == 0
        assert "no interval" in await head(seen.page, "hard").inner_text()


@pytest.mark.long
async def test_hostile_groups_stay_text(run: Run, browser: Browser) -> None:
    """What a row calls itself is somebody's text, in the plot, in the heads and in the address."""
    for number in range(2):
        said = {"difficulty": [HOSTILE, "easy"][number], "skills": [HOSTILE, f"{HOSTILE[1:]}"]}
        await run.add(f"t{number}", reward=number, task_fields={"metadata": said})
    async with opened(browser, await run.write()) as seen:
        page = seen.page
        name = " ".join(HOSTILE.split())[:80]
        await page.locator(".grouping.difficulty a").nth(1).click()
        await expect(page.locator("#rows tr.group button").nth(1)).to_be_focused()
        assert await page.locator("#rows tr.group button").all_text_contents() == ["easy", name]
        assert await page.evaluate("document.documentElement.dataset.ran") is None
        assert len(await lines(page)) == 3


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_groups_fit_a_phone(run: Run, browser: Browser, scheme: str) -> None:
    """Nothing runs out of the page, and no text lies on another."""
    await record_groups(run)
    long = {"difficulty": "a_long_word" * 7, "skills": ["another_long_word" * 4]}
    await run.add("long", reward=0.5, task_fields={"metadata": long})
    options: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": scheme}
    path = await run.write()
    async with opened(browser, path, f"#job-{run.job.id}/by-difficulty/easy", **options) as seen:
        assert await seen.page.evaluate("document.documentElement.scrollWidth") == 390
        for selector in ("#group-by", "#fold-all", "#save-csv"):
            box = await seen.page.locator(selector).bounding_box()
            assert box
            assert box["height"] >= 40
