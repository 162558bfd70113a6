"""A real store with a job in it, in whatever state a test needs."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, ScreenshotRecord, TrajectoryStep
from hud_mcp.store import Store
from hud_mcp.task import Task, Validation
from hud_mcp.values.grade import Outcome, SubScore
from hud_mcp.values.observation import Screenshot

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
KEY = "the-answer-key-5c1f"
"""Stands wherever a reference answer may stand in a record."""

PRINCIPAL = "principal-5c1f"


def shot(
    color: str = "white", *, size: tuple[int, int] = (640, 400), kind: str = "PNG", scale: float = 1
) -> Screenshot:
    """A real picture of one colour, with a line across so that it is not trivial."""
    image = Image.new("RGB", size, color)
    ImageDraw.Draw(image).line((0, size[1] - 1, size[0], size[1] - 1), fill="black")
    out = io.BytesIO()
    image.save(out, kind)
    return Screenshot.from_bytes(out.getvalue(), scale=scale)


@dataclass
class Recorded:
    """A job in a real store."""

    store: Store
    folder: Path
    job: Job = field(
        default_factory=lambda: Job(id="job-1", name="A job", taskset="shop", agent="oracle")
    )
    count: int = 0

    async def add(
        self,
        task: str = "find-lamp",
        steps: Sequence[dict[str, Any]] = (),
        *,
        outcome: Outcome | None = Outcome.GRADED,
        reward: float | None = 1.0,
        job: bool = True,
        prompt: str | None = "What does the lamp cost?",
        logs: Sequence[str] = (),
        **more: Any,
    ) -> str:
        """Record one trajectory; return its id.

        A step is its fields, and `see` for its picture.
        """
        if self.count == 0:
            await self.store.add_job(self.job)
        trajectory = Trajectory(
            id=f"traj-{self.count}",
            job_id=self.job.id if job else None,
            environment="shop",
            environment_version="0.1.0",
            task=Task(
                id=task,
                env="shop",
                template="find",
                args={"expected": KEY},
                description=f"About {KEY}",
                metadata={"answer": KEY},
                validation=Validation(wrong_answer=KEY),
            ),
            seed=2**40,
            started_at=START + timedelta(minutes=self.count),
        )
        await self.store.add_session(
            trajectory, secret_digest=f"{self.count:064}", principal=PRINCIPAL, live_token=None
        )
        self.count += 1
        if prompt is not None:
            await self.store.set_prompt(trajectory.id, prompt)
        for index, fields in enumerate(steps):
            step, see = self._step(trajectory, index, **fields)
            await self.store.add_step(trajectory.id, step, see)
        lines = [(trajectory.started_at, line) for line in logs]
        await self.store.add_logs(trajectory.id, lines, first=0)
        if outcome is not None:
            receipt = self._receipt(trajectory, outcome, reward, **more)
            await self.store.end_session(trajectory.id, receipt)
        return trajectory.id

    def file_of(self, picture: Screenshot) -> Path:
        """Where the store keeps a picture."""
        return self.store.screenshot_path(ScreenshotRecord.of(picture))

    def edit(self, statement: str, *values: Any) -> None:
        """Change the database by hand."""
        import sqlite3  # noqa: PLC0415  # only where somebody's hand is played

        with sqlite3.connect(self.folder / "store.sqlite3") as connection:
            connection.execute(statement, values)

    @staticmethod
    def _step(trajectory: Trajectory, index: int, **fields: Any) -> Any:
        see: Screenshot | None = fields.pop("see", None)
        actions = tuple(fields.pop("actions", ()))
        at = trajectory.started_at + timedelta(seconds=2 * index)
        given = {"kind": "step", "performed": len(actions), "delivered_image": see is not None}
        step = TrajectoryStep(
            index=index,
            actions=actions,
            screenshot=ScreenshotRecord.of(see) if see else None,
            started_at=at,
            ended_at=at + timedelta(seconds=1),
            **{**given, **fields},
        )
        return step, see

    @staticmethod
    def _receipt(of: Trajectory, outcome: Outcome, reward: float | None, **more: Any) -> Receipt:
        return Receipt(
            trajectory=of.id,
            environment=of.environment,
            task=of.task.id,
            template=of.task.template,
            outcome=outcome,
            reward=reward if outcome is Outcome.GRADED else None,
            started_at=of.started_at,
            ended_at=of.started_at + timedelta(seconds=10),
            **{
                "subscores": (SubScore(name="price", value=1.0, info={"wanted": KEY}),),
                "content": f"Expected {KEY}.",
                "info": {"expected": KEY},
                "reward_policy": "hidden",
                "package_version": "0.1.0",
                "task_digest": of.task.digest,
                "environment_digest": "e" * 64,
                **more,
            },
        )
