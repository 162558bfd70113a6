"""A HUD environment of questions, which leaves word of what happens to it in a folder."""

# ruff: noqa: ANN001, ANN003, ANN201, ASYNC110, D103, RUF100  # as authors of HUD environments write them

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Literal

from hud import Environment

env = Environment("questions", version="4.5.6")
NOTES = Path(os.environ.get("NOTES") or tempfile.mkdtemp())


def note(name: str) -> None:
    """Leave word."""
    with (NOTES / name).open("a") as file:
        file.write("x")


async def passed(gate: str) -> None:
    """Wait for a file."""
    while gate and not (NOTES / gate).exists():
        await asyncio.sleep(0.02)


@env.template(description="Add two numbers")
async def add(a: int, b: int = 2, style: Literal["plain", "formal"] = "plain", tag: str = ""):
    note(f"started{tag}")
    try:
        answer = yield f"What is {a} + {b}? Be {style}."
        note(f"graded{tag}")
        yield 1.0 if answer.strip() == str(a + b) else 0.25
    finally:
        note(f"ended{tag}")


@env.template()
async def anything(thing, **more):
    answer = yield [
        {"role": "user", "content": {"type": "text", "text": f"{thing} {sorted(more)}"}},
        {"role": "assistant", "content": "And?"},
    ]
    yield {
        "score": 0.5,
        "subscores": [{"name": "form", "value": 0.5, "weight": 2.0, "info": {"lines": 3}}],
        "content": f"It was {answer!r}.",
        "info": {"key": "the key"},
        "beside": [1],
    }


@env.template()
async def slow(setup: str = "", grading: str = "", tag: str = ""):
    """Waits for files."""
    note(f"setup{tag}")
    try:
        await passed(setup)
        yield "Well?"
        note(f"grading{tag}")
        await passed(grading)
        yield 1.0
    finally:
        note(f"over{tag}")


@env.template()
async def broken(where: str):
    if where == "start":
        raise ValueError("the key is 42")
    yield {"prompt": "Well?", "difficulty": 3}
    if where == "grade":
        raise ValueError("the key is 42")
    yield {"score": 0.0, "isError": True, "content": "no judge"} if where == "judge" else 1.0


@env.template()
async def typed(answer: Literal["yes"] = "yes"):
    yield "A number, please."
    yield 0.75


@env.template(returns=list[int])
async def numbers():
    answer = yield "One and two."
    yield 1.0 if answer.content == [1, 2] else 0.0
