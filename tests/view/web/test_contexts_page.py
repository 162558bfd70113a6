"""Reward by context on a job's page: in the report, in the viewer, in the dark, on a phone."""

from typing import Any

import pytest
from playwright.async_api import Browser, expect
from recorded import BROWSER, HOSTILE, Run, opened, served

from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.values.grade import Outcome

pytestmark = [pytest.mark.anyio, BROWSER]

TRAIN, INSIDE, OUTSIDE = "train", "test-inside", "test-outside"
ROWS: list[tuple[str, int, str, float, dict[str, float | None]]] = [
    # split, width, locale, latency, and the reward of each task
    (TRAIN, 1024, "en-US", 0, {"buy": 1, "find": 1, "sort": 1, "drag": 0.5}),
    (TRAIN, 1280, "de-DE", 50, {"buy": 1, "find": 0.5, "sort": 1, "drag": 1}),
    (TRAIN, 1600, "en-US", 100, {"buy": 1, "find": 1, "sort": 0.5, "drag": 0}),
    (INSIDE, 1400, "de-DE", 80, {"buy": 1, "find": 0, "sort": 1, "drag": 0.5}),
    (OUTSIDE, 390, "ar-EG", 900, {"buy": 0, "find": 0.5, "sort": None, "drag": 0}),
    (OUTSIDE, 2400, "ar-EG", 400, {"buy": 0.5, "find": 0, "sort": 0, "drag": 0}),
]


async def record_contexts(run: Run) -> None:
    """Four tasks under six contexts; one run was lost."""
    for number, (split, width, locale, latency, rewards) in enumerate(ROWS):
        for task, reward in rewards.items():
            metadata = {"split": split, "context": f"c{number}", "base_task": task}
            await run.add(
                f"{task}@c{number}",
                reward=reward,
                outcome=Outcome.LOST if reward is None else Outcome.GRADED,
                context={"width": width, "locale": locale, "latency": latency, "scale": 1.0},
                task_fields={"metadata": metadata},
            )


@pytest.mark.long
async def test_a_job_without_contexts_has_no_such_section(run: Run, browser: Browser) -> None:
    """Most jobs vary nothing, and say nothing of it."""
    await run.add("one", reward=1, context={"width": 1280})
    await run.add("two", reward=0, context={"width": 1280})
    async with opened(browser, await run.write()) as seen:
        assert await seen.page.locator("#contexts").is_hidden()


async def test_the_report_tells_splits_the_gap_and_each_feature(run: Run, browser: Browser) -> None:
    """What never varies has no figure; what was held out is marked, as is what is outside."""
    await record_contexts(run)
    async with opened(browser, await run.write()) as seen:
        page = seen.page
        assert await page.locator("#contexts-splits dt").all_inner_texts() == [
            TRAIN, INSIDE, OUTSIDE, f"train less {INSIDE}", f"train less {OUTSIDE}",
        ]  # fmt: skip
        first = (await page.locator("#contexts-splits dd").all_inner_texts())[0]
        assert first.startswith("0.792 (")
        assert "12 runs of 4 tasks" in first
        lost = (await page.locator("#contexts-splits dd").all_inner_texts())[2]
        assert "7 runs of 4 tasks, 1 without a reward" in lost
        gaps = (await page.locator("#contexts-splits dd").all_inner_texts())[3:]
        assert [text.split()[0] for text in gaps] == ["+0.167", "+0.649"]
        assert all("(no interval: one side has 4 tasks; 5 are needed)" in text for text in gaps)
        names = page.locator(".feature figcaption strong")
        assert await names.all_inner_texts() == ["width", "locale", "latency"]
        width = page.locator(".feature").first
        assert "trained on 1024 to 1600" in await width.locator("figcaption").inner_text()
        values = await width.locator("tbody th").all_inner_texts()
        assert values == ["390 outside", "1024", "1280", "1400", "1600", "2400 outside"]
        heads = await width.locator("thead th").all_inner_texts()
        assert heads == ["value", TRAIN, INSIDE, OUTSIDE]
        first = await width.locator("tbody tr").first.locator("td").all_inner_texts()
        assert first[:2] == ["—", "—"]
        assert first[2].startswith("0.167")
        assert await width.locator(".mark-train").count() == 3
        assert await width.locator(".mark-held").count() == 3
        # Each split that was held out has a mark of its own.
        keys = await page.locator("#contexts-legend .mark-held").evaluate_all(
            "nodes => new Set(nodes.map(n => n.getAttribute('d'))).size"
        )
        assert keys == 2
        assert await page.locator("#contexts-unused").is_hidden()


async def test_a_plot_puts_values_where_they_are(run: Run, browser: Browser) -> None:
    """Higher rewards stand higher, larger values further right, and the band holds what it says."""
    await record_contexts(run)
    async with opened(browser, await run.write()) as seen:
        boxes: dict[str, Any] = await seen.page.locator(".feature").first.evaluate(
            """figure => Object.fromEntries(['.mark-train', '.mark-held', '.trained'].map(kind =>
              [kind, [...figure.querySelectorAll(kind)].map(node => {
                const b = node.getBoundingClientRect();
                return [b.x + b.width / 2, b.y + b.height / 2, b.x, b.x + b.width];
              })]))"""
        )
        train, held = boxes[".mark-train"], boxes[".mark-held"]
        ((_, _, start, end),) = boxes[".trained"]
        assert [x for x, *_ in train] == sorted(x for x, *_ in train)
        assert all(start < x < end for x, *_ in train)
        assert [start < x < end for x, *_ in held] == [False, True, False]
        # 0.875, 0.875 and 0.625 in training; 0.167 and 0.125 outside
        assert train[0][1] == pytest.approx(train[1][1], abs=0.5)
        assert train[1][1] < train[2][1] < held[0][1] < held[2][1]


@pytest.mark.long
async def test_the_page_says_what_was_given_up_and_what_no_run_used(
    run: Run, browser: Browser
) -> None:
    """A run given up counts as 0 and is named, and so is a context without a run."""
    run.job = run.job.model_copy(
        update={
            "metadata": {"unused_contexts": {"count": 14, "names": [f"c{i}" for i in range(14)]}}
        }
    )
    for split, outcomes in (("train", [None] * 5), ("test", [None, *[Outcome.CANCELLED] * 4])):
        for i, outcome in enumerate(outcomes):
            await run.add(
                f"{split}-{i}",
                reward=None if outcome else 1,
                outcome=outcome or Outcome.GRADED,
                context={"width": 800 + i},
                task_fields={"metadata": {"split": split}},
            )
    async with opened(browser, await run.write()) as seen:
        figures = await seen.page.locator("#contexts-splits dd").all_inner_texts()
        assert "5 runs of 5 tasks, 4 given up, as 0" in figures[1]
        assert figures[1].startswith("0.200 (0.00 to 0.72)")
        assert figures[2].startswith("+0.800 (+0.0")
        unused = await seen.page.locator("#contexts-unused").inner_text()
        names = ", ".join(f"c{i}" for i in range(12))
        assert unused == f"Contexts that no run used: {names} and 2 more."
        assert await seen.text("#mean-interval") == "0.54 to 1.00"


@pytest.mark.long
async def test_rewards_out_of_range_have_no_interval_and_the_reason_is_shown(
    run: Run, browser: Browser
) -> None:
    """Nothing is drawn that nothing supports."""
    for i in range(3):
        await run.add(f"t{i}", reward=-100.0 * i, context={"width": i})
    async with opened(browser, await run.write()) as seen:
        why = "no interval: rewards lie outside 0 to 1"
        assert await seen.text("#mean-interval") == why
        assert why in await seen.text("#contexts-splits")
        assert await seen.page.locator(".whisker").count() == 0
        assert "no interval, n 1" in await seen.page.locator(".feature tbody").inner_text()


@pytest.mark.long
async def test_the_viewer_shows_the_same(run: Run, browser: Browser) -> None:
    """From the store, and again when another job is opened."""
    await record_contexts(run)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#job-{run.job.id}") as seen,
    ):
        await expect(seen.page.locator(".feature")).to_have_count(3)
        await expect(seen.page.locator("#contexts-splits div")).to_have_count(5)


@pytest.mark.long
async def test_contexts_without_splits_are_one_series(run: Run, browser: Browser) -> None:
    """There is no train range to mark then, and the table has one column of rewards."""
    for i, width in enumerate((800, 1200, 1200)):
        await run.add(f"t{i}", reward=i / 2, context={"width": width, "dark": i == 0})
    async with opened(browser, await run.write()) as seen:
        page = seen.page
        assert await page.locator("#contexts-splits dt").all_inner_texts() == ["all runs"]
        assert await page.locator(".trained, .mark-held").count() == 0
        heads = await page.locator(".feature").first.locator("thead th").all_inner_texts()
        assert heads == ["value", "reward"]
        dark = await page.locator(".feature").nth(1).locator("tbody th").all_inner_texts()
        assert dark == ["false", "true"]


@pytest.mark.long
async def test_a_feature_that_was_trained_on_in_one_value_says_that_one(
    run: Run, browser: Browser
) -> None:
    """It is no range."""
    for split, width in (("train", 800), ("test", 390)):
        metadata = {"split": split, "base_task": "t"}
        fields = {"metadata": metadata}
        await run.add(f"t@{width}", reward=1, context={"width": width}, task_fields=fields)
    async with opened(browser, await run.write()) as seen:
        caption = await seen.page.locator(".feature figcaption").inner_text()
        assert caption.split("\n")[-1].endswith("trained on 800")


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
async def test_nothing_is_cut_off(run: Run, browser: Browser, width: int) -> None:
    """The page is not wider than the screen, and no label leaves its plot or meets another."""
    await record_contexts(run)
    viewport = {"width": width, "height": 844}
    async with opened(browser, await run.write(), viewport=viewport) as seen:
        page = seen.page
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        wrong = await page.evaluate(
            """() => [...document.querySelectorAll('.field')].flatMap(field => {
              const outer = field.getBoundingClientRect();
              const boxes = [...field.querySelectorAll('text')].map(t => t.getBoundingClientRect());
              return boxes.flatMap((a, i) => [
                a.left < outer.left - 1 || a.right > outer.right + 1 || a.bottom > outer.bottom + 1,
                ...boxes.slice(i + 1).map(b => a.left < b.right && b.left < a.right &&
                  a.top + 2 < b.bottom && b.top + 2 < a.bottom)]);
            }).filter(Boolean).length"""
        )
        assert wrong == 0


@pytest.mark.long
async def test_hostile_names_stay_text(run: Run, browser: Browser) -> None:
    """Features, values and splits are somebody's."""
    for i in range(2):
        await run.add(
            f"t{i}",
            reward=i,
            context={HOSTILE: f"{HOSTILE}{i}", "n": i},
            task_fields={"metadata": {"split": ["train", HOSTILE][i], "base_task": HOSTILE}},
        )
    async with opened(browser, await run.write()) as seen:
        assert await seen.page.evaluate("document.documentElement.dataset.ran") is None
        names = await seen.page.locator(".feature figcaption strong").all_text_contents()
        assert names == [HOSTILE, "n"]
