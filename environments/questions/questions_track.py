"""A walk as GPX: a break, two segments, and times in UTC."""

import random
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from questions_case import NUMBER, TIME, Case, differing, drawing

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["pause", "climb"]


@dataclass(frozen=True)
class _Point:
    lat: float
    lon: float
    ele: int
    at: datetime


def _segments(rng: random.Random) -> tuple[list[list[_Point]], datetime, timedelta]:
    """Two segments, when the longest pause begins, and how long it is."""
    day = datetime(2026, rng.randint(5, 9), rng.randint(1, 28))  # noqa: DTZ001  # UTC, as in GPX
    at = day + timedelta(minutes=rng.randrange(360, 540))
    lat, lon, ele = 46.6 + rng.random() / 5, 8.0 + rng.random() / 2, rng.randint(600, 1300)
    segments: list[list[_Point]] = []
    pause_at = (0, rng.randint(12, 26))
    pause, began = timedelta(minutes=rng.randint(21, 44)), at
    for n, count in enumerate((34, 24)):
        points: list[_Point] = []
        slope = rng.choice((1, -1))
        for i in range(count):
            points.append(_Point(round(lat, 5), round(lon, 5), ele, at))
            at += timedelta(minutes=rng.randint(2, 4))
            if (n, i) == pause_at:
                began = points[-1].at
                at = began + pause
                points.append(_Point(round(lat, 5), round(lon, 5), ele, at))
                at += timedelta(minutes=2)
            lat += rng.uniform(0.0004, 0.0016)
            lon += rng.uniform(-0.0004, 0.0012)
            if rng.random() < 1 / 8:
                slope = -slope
            ele += slope * rng.randint(3, 22)
        segments.append(points)
        # By cable car: not recorded, and no climb of the walker's.
        at += timedelta(minutes=rng.randint(8, 14))
        ele += rng.randint(240, 460)
        lat += 0.01
    return segments, began, pause


def _climb(points: list[_Point]) -> int:
    return sum(max(0, b.ele - a.ele) for a, b in pairwise(points))


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a track."""
    segments, began, pause = _segments(drawing(f"track-{ask}", seed))
    every = [point for part in segments for point in part]
    if ask == "pause":
        question = (
            "walk.gpx was recorded on a walk in Switzerland, in summer time: two hours ahead of "
            "UTC. The walker had one break of more than 15 minutes, between two points of one "
            f"segment. At what time by the local clocks did it begin? {TIME}"
        )
        local = began + timedelta(hours=2)
        gap = segments[0][-1].at + timedelta(hours=2)
        truth = f"{local:%H:%M}"
        wrong = (f"{began:%H:%M}", f"{local + pause:%H:%M}", f"{gap:%H:%M}")
    else:
        question = (
            "walk.gpx was recorded on a walk. Between its two segments, the walker took a cable "
            "car. How many metres did the walker climb on foot in all: the sum of every rise from "
            f"one point to the next? {NUMBER}"
        )
        truth = str(sum(map(_climb, segments)))
        high = max(point.ele for point in every)
        wrong = (str(_climb(every)), str(every[-1].ele - every[0].ele), str(high - every[0].ele))
    data = _gpx(segments)
    return Case(question, truth, differing(truth, wrong), lambda: {"walk.gpx": data})


def _gpx(segments: list[list[_Point]]) -> bytes:
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<gpx version="1.1" creator="Pathfinder" xmlns="http://www.topografix.com/GPX/1/1">',
        "<trk><name>Walk</name>",
    ]
    for part in segments:
        lines.append("<trkseg>")
        for p in part:
            where = f'lat="{p.lat:.5f}" lon="{p.lon:.5f}"'
            when = f"{p.at:%Y-%m-%dT%H:%M:%SZ}"
            lines.append(f" <trkpt {where}><ele>{p.ele}</ele><time>{when}</time></trkpt>")
        lines.append("</trkseg>")
    return "\n".join([*lines, "</trk>", "</gpx>", ""]).encode()


async def solve(agent: Agent, ask: Ask) -> str:
    """Read every point of both segments."""
    await agent.tool("run_command", command="ls -l; grep -c '<trkpt' walk.gpx")
    text = await agent.tool("read_file", path="walk.gpx", lines=50)
    text += await agent.tool("read_file", path="walk.gpx", start=51)
    segments: list[list[tuple[int, datetime]]] = []
    for part in text.split("<trkseg>")[1:]:
        found = re.findall(r"<ele>(\d+)</ele><time>([^<]+)Z<", part)
        segments.append([(int(ele), datetime.fromisoformat(when)) for ele, when in found])
    steps = [pair for part in segments for pair in pairwise(part)]
    if ask == "climb":
        return str(sum(max(0, b[0] - a[0]) for a, b in steps))
    longest = max(steps, key=lambda pair: pair[1][1] - pair[0][1])
    return f"{longest[0][1] + timedelta(hours=2):%H:%M}"
