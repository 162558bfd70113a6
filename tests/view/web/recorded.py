"""Records to look at, and a browser that notices what a page must not do."""

import io
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from PIL import Image
from playwright.async_api import Browser, Page
from waiting import PATIENCE_S

from hud_mcp.base.listening import base_url, listen
from hud_mcp.plugins.view.web.report import write_report
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, ScreenshotRecord, TrajectoryStep
from hud_mcp.server.web.listener import serving
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome, SubScore
from hud_mcp.values.observation import Screenshot

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
BROWSER = pytest.mark.browser
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")

HOSTILE = (
    "<img src=x onerror=\"document.documentElement.dataset.ran='img'\">"
    "</script><script>document.documentElement.dataset.ran='script'</script>"
    "<!--<script><svg onload=\"document.documentElement.dataset.ran='svg'\">"
    '" onfocus="x" autofocus \' javascript:alert(1) https://elsewhere.invalid/a.png '
    "\u2028\u2029 &lt;b&gt; $style ${data} \\u003c %3Cb%3E /step-2"
)


def shot(color: str, *, size: tuple[int, int] = (640, 400), kind: str = "PNG") -> Screenshot:
    """A real picture of one colour."""
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, kind)
    return Screenshot.from_bytes(out.getvalue())


def step(index: int, *actions: dict[str, Any], see: Screenshot | None = None, **more: Any) -> Any:
    """A recorded step and its picture, two seconds after the one before."""
    at = START + timedelta(seconds=2 * index)
    record = ScreenshotRecord.of(see) if see else None
    fields = {"kind": "step", "performed": len(actions), "screenshot": record, **more}
    ended = at + timedelta(seconds=1)
    made = TrajectoryStep(index=index, actions=actions, started_at=at, ended_at=ended, **fields)
    return made, see


def receipt(of: Trajectory, outcome: Outcome, reward: float | None, **more: Any) -> Receipt:
    """How a trajectory ended, ten seconds after it began."""
    return Receipt(
        trajectory=of.id,
        environment=of.environment,
        task=of.task.id,
        template=of.task.template,
        outcome=outcome,
        reward=reward,
        started_at=of.started_at,
        ended_at=of.started_at + timedelta(seconds=10),
        **{
            "reward_policy": "on_submit",
            "package_version": "0.1.0",
            "task_digest": of.task.digest,
            "environment_digest": "e" * 64,
            **more,
        },
    )


@dataclass
class Run:
    """A job that is recorded in a real store."""

    store: Store
    folder: Path
    job: Job = field(default_factory=lambda: Job(name="A job", taskset="shop", agent="oracle"))
    count: int = 0
    tasks: tuple[Task, ...] = ()

    async def add(
        self,
        task: str,
        steps: Sequence[Any] = (),
        *,
        outcome: Outcome | None = Outcome.GRADED,
        reward: float | None = None,
        **more: Any,
    ) -> str:
        """Record one trajectory; return its id."""
        names = set(Receipt.model_fields) & {"subscores", "content", "info", "error", "cause"}
        end = {name: more.pop(name) for name in names & set(more)}
        policy = more.pop("reward_policy", "on_submit")
        token, job = more.pop("live_token", None), more.pop("job_id", self.job.id)
        task_fields = more.pop("task_fields", {})
        logs = more.pop("logs", ())
        fields = {"id": f"tr-{self.count}", "environment": "shop", **more}
        trajectory = Trajectory(
            job_id=job,
            task=Task(id=task, env="shop", template="find", **task_fields),
            started_at=START + timedelta(minutes=self.count),
            **fields,
        )
        if self.count == 0:
            await self.store.add_job(self.job, self.tasks)
        await self.store.add_session(
            trajectory,
            secret_digest=f"{self.count:064}",
            principal=None,
            reward_policy=policy,
            live_token=token,
        )
        self.count += 1
        await self.store.set_prompt(trajectory.id, trajectory.prompt or f"Do {task}.")
        for made, see in steps:
            await self.store.add_step(trajectory.id, made, see)
        await self.store.add_logs(trajectory.id, [(START, line) for line in logs])
        if outcome is not None:
            end = {"reward_policy": policy, **end}
            await self.store.end_session(trajectory.id, receipt(trajectory, outcome, reward, **end))
        return trajectory.id

    async def write(self, **options: Any) -> Path:
        """Write the report."""
        return await write_report(
            self.store, self.job.id, self.folder / "out" / "report.html", **options
        )

    def file_of(self, picture: Screenshot) -> Path:
        """Where the store keeps a picture."""
        return self.store.screenshot_path(ScreenshotRecord.of(picture))


@dataclass
class Seen:
    """A page, and what it did that a report must not do."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)

    async def go(self, part: str) -> None:
        """Open the report at a fragment, as from a bookmark."""
        await self.page.goto("about:blank")
        await self.page.goto(self.url + part)
        await self.page.wait_for_selector("html[data-rendered]")

    async def text(self, selector: str) -> str:
        """What one element says, as it is laid out."""
        return (await self.page.inner_text(selector)).strip().replace("\n\n", "\n")

    async def tasks(self) -> list[str]:
        """The tasks of the table, from top to bottom."""
        return await self.page.locator("#rows th.task a").all_inner_texts()


@asynccontextmanager
async def opened(
    browser: Browser, path: Path | str, part: str = "", **options: Any
) -> AsyncIterator[Seen]:
    """Open a page; fail if it asked for anything of others, or complained.

    A report's page is its path and asks for nothing; a server's is its address.
    """
    with anyio.fail_after(PATIENCE_S):
        context = await browser.new_context(**options)
        context.set_default_timeout(PATIENCE_S * 1000 / 2)
        url = path.as_uri() if isinstance(path, Path) else path
        own = url if isinstance(path, Path) else url[: url.index("/", 8)]
        seen = Seen(await context.new_page(), url)
        page, problems = seen.page, seen.problems
        page.on("console", lambda message: problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))

        def requested(request: Any) -> None:
            if not request.url.startswith((own, "about:blank", "data:image/")):
                problems.append(f"request: {request.url}")

        page.on("request", requested)
        await seen.go(part)
        yield seen
        assert seen.problems == []
        await context.close()


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """Serve an app on a loopback port; gives its address."""
    listener = listen("127.0.0.1", 0)
    async with serving(app, listener):
        yield base_url("127.0.0.1", listener.getsockname()[1])


def plain(
    name: str, outcome: Outcome | None, reward: float | None, steps: Sequence[Any] = ()
) -> Trajectory:
    """A trajectory that no store has seen."""
    task = Task(id=name, env="shop", template="find")
    made = Trajectory(id=name, environment="shop", task=task, started_at=START, steps=tuple(steps))
    if outcome is None:
        return made
    end = receipt(made, outcome, reward)
    return made.model_copy(update={"receipt": end, "ended_at": end.ended_at})


def walk() -> list[Any]:
    """Four steps that each saw another picture."""
    actions = [
        (),
        ({"type": "click", "x": 160, "y": 100}, {"type": "type", "text": "lamp"}),
        ({"type": "drag", "path": [{"x": 64, "y": 40}, {"x": 320, "y": 200}]},),
        ({"type": "click", "ref": "e1"}, {"type": "wait", "time": 10}),
    ]
    colors = ("red", "green", "blue", "white")
    failed = {"performed": 0, "error": "actions[0]: click failed: e1 is covered."}
    return [
        step(i, *acts, see=shot(color), observation_text=f"text {i}", **(failed if i == 3 else {}))
        for i, (acts, color) in enumerate(zip(actions, colors, strict=True))
    ]


async def place_in_picture(page: Page, selector: str) -> tuple[float, float]:
    """Where an element is on the shown picture, as parts of its width and height."""
    outer = await page.locator("#picture").bounding_box()
    inner = await page.locator(selector).evaluate(
        "e => { const box = e.getBoundingClientRect(); return [box.x, box.y]; }"
    )
    assert outer
    return (inner[0] - outer["x"]) / outer["width"], (inner[1] - outer["y"]) / outer["height"]


async def decoded_width(page: Page) -> int:
    """The width of the picture that is shown, once it is decoded."""
    return await page.evaluate(
        "document.images[0].decode().then(() => document.images[0].naturalWidth)"
    )


async def record_hostility(run: Run) -> str:
    """Put the hostile text wherever the record has room for text."""
    text = HOSTILE
    run.job = Job(name=text, taskset=text, agent=text, metadata={text: text})
    task = Task(
        id=text[:200],
        env=text,
        template=text,
        args={text: text},
        context={text: text},
        description=text,
        metadata={text: text},
    )
    actions: list[dict[str, Any]] = [
        {"type": "click", "x": 10, "y": 10, "reasoning": text, "logs": {text: text}},
        {"type": "type", "text": text, "selector": text},
        {"type": "type", "text": text},
        {"type": "click", "ref": text},
        {"type": "press", "keys": [text]},
        {"type": "custom", "action": text, "args": {text: text}},
        {"type": text, text: text},
        {"tool": text, "args": {text: text}},
        {"type": "response", "text": text},
    ]
    record = ScreenshotRecord(sha256=text, extension="png", width_px=9, height_px=9, scale=1)
    more: dict[str, Any] = {"observation_text": text, "error": text, "info": {text: text}}
    steps = [step(0, see=shot("red")), step(1, *actions, see=shot("blue"), **more)]
    steps += [step(2, *actions, screenshot=record, **more)]
    score = SubScore(name=text, value=1, info={text: text})
    return await run.add(
        task.id,
        steps,
        id=text,
        reward=0.5,
        environment=text,
        environment_version=text,
        prompt=text,
        context={text: text},
        subscores=(score.model_copy(update={"children": (score,)}),),
        content=text,
        info={text: text},
        error=text,
        logs=[text],
    )
