"""A record of very many trajectories, for the tests and times of the pages.

    python benchmarks/many_trajectories.py STORE [--trajectories 20000] [--steps 50]

Its tasks have a difficulty, skills, and four runs each by one agent. A second job of a quarter of
the tasks is another agent's, and a third one has 100 runs at most. Pictures are shared by their
content, as the store shares them. Rows are what the store itself writes, many to a statement:
STORE is a path of a new SQLite file, or the URL of an empty PostgreSQL database. All is drawn from
one seed, so that each record is the same.
"""

import argparse
import hashlib
import io
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from sqlalchemy import Connection

from hud_mcp.record.job import Job
from hud_mcp.record.place import read_place
from hud_mcp.record.values import Receipt, ScreenshotRecord, TrajectoryStep
from hud_mcp.store import sql
from hud_mcp.store.sql.jobs import insert_job
from hud_mcp.store.sql.schema import job_runs, sessions, steps
from hud_mcp.task import Task
from hud_mcp.values.grade import Cause, Outcome
from hud_mcp.values.observation import Screenshot

LARGE, FEWER, SMALL = "job-many", "job-fewer", "job-small"
SMALL_RUNS = 100
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
GROUP = 4
SKILLS = ("search", "sort", "checkout", "forms", "memory", "reading")
LEVELS = ("easy", "medium", "hard")
MISSED = (
    "The cart has 2 lamps, and 1 was asked for.",
    "The order was sent to the old address.",
    "Nothing was bought: the cart is empty.",
    "The cheapest lamp costs 12.50; another one was chosen.",
)
BROKEN = "WorldLost: the browser has died.\nTraceback (most recent call last):\n  File …"
BATCH = 20_000
"""Steps in one statement."""


@dataclass(frozen=True)
class Size:
    """How much there is."""

    trajectories: int = 20_000
    steps: int = 50
    pictures: int = 200


def main() -> int:
    """Make the record that is asked for, and say how large it is."""
    size = Size()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    for name in ("trajectories", "steps", "pictures"):
        parser.add_argument(f"--{name}", type=int, default=getattr(size, name))
    given = parser.parse_args()
    began_s = time.monotonic()
    make_record(given.store, Size(given.trajectories, given.steps, given.pictures))
    path = read_place(given.store)[1]
    folder = path.parent if path else None
    files = [each for each in folder.rglob("*") if each.is_file()] if folder else []
    size_mb = sum(each.stat().st_size for each in files) / 1e6
    print(f"{given.trajectories} trajectories of {given.steps} steps: {size_mb:.0f} MB "
          f"in {time.monotonic() - began_s:.0f} s")  # fmt: skip
    return 0


def make_record(store: str, size: Size) -> list[Job]:
    """Write the record; return its jobs, the large one first."""
    url, path = read_place(store)
    with tempfile.TemporaryDirectory() as drawn:  # a database has no folder for pictures
        folder = path.parent if path else Path(drawn)
        shots = make_pictures(folder / "screenshots", size.pictures)
    tasks = make_tasks(max(1, size.trajectories // GROUP))
    first = Job(id=LARGE, name="Many runs", taskset="shop", agent="agent-one", group=GROUP,
                created_at=START, planned=True)  # fmt: skip
    second = Job(id=FEWER, name="Fewer runs", taskset="shop", agent="agent-two", group=1,
                 created_at=START + timedelta(hours=1), planned=True)  # fmt: skip
    third = Job(id=SMALL, name="Few runs", taskset="shop", agent="agent-two", group=1,
                created_at=START + timedelta(hours=2), planned=True)  # fmt: skip
    quarter = tasks[: max(1, len(tasks) // 4)]
    engine = sql.engine.open_engine(url, path)
    try:
        with engine.begin() as connection:
            for job, rows in ((first, tasks), (second, quarter), (third, tasks[:SMALL_RUNS])):
                insert_job(connection, job, rows)
                write_runs(connection, job, rows, shots, size)
    finally:
        engine.dispose()
    return [first, second, third]


def make_pictures(folder: Path, count: int) -> list[ScreenshotRecord]:
    """Write pages of a shop as pictures, where the store keeps them."""
    made: list[ScreenshotRecord] = []
    for number in range(count):
        picture = Image.new("RGB", (1280, 800), (250, 250, 248))
        draw = ImageDraw.Draw(picture)
        draw.rectangle((0, 0, 1280, 60), fill=(30, 60, 90))
        draw.text((24, 20), f"Shop, page {number}", fill="white")
        for place in range(12):
            left, top = 40 + 300 * (place % 4), 100 + 220 * (place // 4)
            shade = (number * 7 + place * 29) % 160
            draw.rectangle((left, top, left + 260, top + 180), fill=(shade, 120, 255 - shade))
            draw.text((left + 10, top + 190), f"Lamp {number}-{place}", fill="black")
        out = io.BytesIO()
        picture.save(out, "PNG")
        shot = Screenshot.from_bytes(out.getvalue())
        record = ScreenshotRecord.of(shot)
        path = folder / record.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(shot.data)  # without the store's fsync, which is most of the time
        made.append(record)
    return made


def make_tasks(count: int) -> list[Task]:
    """Rows that say how hard they are and what they take."""
    return [
        Task(
            id=f"task-{number:05}",
            env="shop",
            template=("find", "buy", "compare")[number % 3],
            args={"item": f"lamp {number}"},
            description=f"Buy lamp {number} for at most {number % 90 + 10} euros.",
            metadata={
                "difficulty": LEVELS[number % 3],
                "skills": [SKILLS[number % 6], SKILLS[(number // 6 + 1) % 6]],
            },
        )
        for number in range(count)
    ]


def write_runs(
    connection: Connection, job: Job, tasks: list[Task], shots: list[ScreenshotRecord], size: Size
) -> None:
    """Write each task's runs, with their steps."""
    draw = random.Random(job.id)
    seen = [shot.model_dump(mode="json") for shot in shots]
    begun = [
        session_row(job, task, number * len(tasks) + place, size.steps, draw)
        for number in range(job.group)
        for place, task in enumerate(tasks)
    ]
    plan = [{"job_id": job.id, "run": row["secret_digest"]} for row in begun]
    connection.execute(job_runs.insert(), plan)
    connection.execute(sessions.insert(), begun)
    batch: list[dict[str, Any]] = []
    for row in begun:
        batch += step_rows(row["id"], row["started_at"], size.steps, seen, draw)
        if len(batch) >= BATCH:
            connection.execute(steps.insert(), batch)
            batch.clear()
    if batch:
        connection.execute(steps.insert(), batch)


def session_row(
    job: Job, task: Task, number: int, step_count: int, draw: random.Random
) -> dict[str, Any]:
    """One ended run, as the store has it."""
    started_at = job.created_at + timedelta(seconds=2 * number)
    ended_at = started_at + timedelta(seconds=step_count * 2, milliseconds=draw.randrange(5000))
    outcome, reward, told = drawn_end(task, draw)
    receipt = Receipt(
        trajectory=f"tr-{job.id}-{number:05}",
        environment="shop",
        task=task.id,
        template=task.template,
        outcome=outcome,
        cause=Cause.MACHINE if outcome.counts == "nowhere" else Cause.AGENT,
        reward=reward,
        started_at=started_at,
        ended_at=ended_at,
        reward_policy="on_submit",
        package_version="0.1.0",
        task_digest=task.digest,
        environment_digest="e" * 64,
        **told,
    )
    return {
        "id": receipt.trajectory,
        "secret_digest": hashlib.sha256(receipt.trajectory.encode()).hexdigest(),
        "job_id": job.id,
        "environment": "shop",
        "environment_version": "1.0.0",
        "task": task.model_dump(mode="json"),
        "context": {},
        "prompt": task.description,
        "reward_policy": "on_submit",
        "record": "durable",
        "unflushed": False,
        "receipt": receipt.model_dump(mode="json"),
        "started_at": started_at,
        "ended_at": ended_at,
    }


def drawn_end(task: Task, draw: random.Random) -> tuple[Outcome, float | None, dict[str, Any]]:
    """How a run ends: harder tasks more often badly."""
    chance = (0.9, 0.6, 0.3)[LEVELS.index(task.metadata["difficulty"])]
    at = draw.random()
    if at < 0.02:
        return Outcome.ENVIRONMENT_FAILED, None, {"error": BROKEN}
    if at < 0.05:
        return Outcome.EXPIRED, None, {"error": "The task took longer than 600 s."}
    if draw.random() < chance:
        return Outcome.GRADED, 1.0, {"content": "The lamp was bought."}
    return (
        Outcome.GRADED,
        draw.choice((0.0, 0.0, 0.25, 0.5, 0.75)),
        {"content": draw.choice(MISSED)},
    )


def step_rows(
    session_id: str, began: datetime, count: int, shots: list[Any], draw: random.Random
) -> Iterator[dict[str, Any]]:
    """The steps of one run: clicks and texts, each with what was seen then."""
    for index in range(count):
        shot = shots[draw.randrange(len(shots))]
        at = began + timedelta(seconds=2 * index)
        click = {"type": "click", "x": draw.randrange(1280), "y": draw.randrange(800)}
        known = plain_step(index)
        row = {
            **known,
            "actions": [click, *known["actions"][1:]],
            "screenshot": shot,
            "started_at": at.isoformat().replace("+00:00", "Z"),
            "ended_at": (at + timedelta(seconds=1)).isoformat().replace("+00:00", "Z"),
        }
        yield {"session_id": session_id, "step": index, "row": row, "took_s": 1.0}


@cache
def plain_step(index: int) -> dict[str, Any]:
    """A step as the store writes it; what differs from run to run is put into a copy."""
    click, typed = {"type": "click", "x": 0, "y": 0}, {"type": "type", "text": f"lamp {index}"}
    step = TrajectoryStep(
        index=index,
        kind="step",
        actions=(click, typed) if index % 5 == 1 else (click,),
        performed=2 if index % 5 == 1 else 1,
        delivered_image=True,
        observation_text=f"Page {index} of the shop: 12 lamps, {index % 7} in the cart.",
        started_at=START,
        ended_at=START,
    )
    return step.model_dump(mode="json", exclude_defaults=True, exclude={"observation_url"})


if __name__ == "__main__":
    raise SystemExit(main())
