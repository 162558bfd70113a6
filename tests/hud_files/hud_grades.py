"""Runs an author's file under HUD's own SDK, and prints the grades. For HUD's interpreter."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

import asyncio
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from hud import LocalRuntime, Task
from hud.agents.base import Agent

warnings.simplefilter("ignore")


class Scripted(Agent):
    """Answers as it is told."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self.answer = answer

    async def __call__(self, run: Any) -> None:
        """Answer."""
        run.trace.content = self.answer


async def main(source: str, calls: list[Any]) -> list[Any]:
    """The grade of each call."""
    found: list[Any] = []
    for template, args, answer in calls:
        task = Task(env="question-set", id=template, args=args)
        job = await task.run(Scripted(answer), runtime=LocalRuntime(Path(source)))
        grade = job.runs[0].grade
        found.append(
            {
                "reward": grade.reward,
                "error": grade.is_error,
                "content": grade.content,
                "subscores": grade.evaluation.get("subscores"),
            }
        )
    return found


print(json.dumps(asyncio.run(main(sys.argv[1], json.load(sys.stdin)))))
