"""reasoning-gym: questions that its generators draw by a seed, scored by its own verifiers."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask, NotInstalled, name_known
from hud_mcp.loading.choice import Choice, row, row_id
from hud_mcp.plugins.sets.files import Files
from hud_mcp.plugins.sets.reasoning_known import REFUSED

__all__ = ["process_command", "process_environment", "read"]

GYM = "reasoning-gym"
_DRAW_S = 300.0
_ASKED = "Answer with nothing but the answer."
_SHOWN_CHARS = 400


def read(files: Files, choice: Choice) -> list[Task]:  # noqa: ARG001  # every importer has both
    """The questions of one generator.

    Raises:
        InvalidTask: None is named, there is none of that name, it cannot draw, or what it draws is
            not the same in another process.
        NotInstalled: The package is not there.
    """
    if find_spec("reasoning_gym") is None:
        raise NotInstalled("ReasoningGym needs reasoning-gym: pip install 'hud-mcp[reasoning]'.")
    names = cast("list[str]", _ask({"want": "names"}))
    name = choice.part or ""
    if name not in names:
        raise InvalidTask(
            f"reasoning-gym has no generator {name!r}.{name_known(name, names, what='It has')} "
            f"Name one, as in ReasoningGym-{names[0]}."
        )
    if name in REFUSED:
        raise InvalidTask(f"The generator {name!r} draws nothing by itself: {REFUSED[name]}.")
    wanted = {"want": "questions", "dataset": name, "seed": choice.seed, "size": choice.size}
    drawn = cast("list[dict[str, Any]]", _ask(wanted))
    if _ask(wanted) != drawn:
        raise InvalidTask(
            f"The generator {name!r} draws different questions in each process, so its verifier "
            "would grade another question. Choose another generator."
        )
    return [_task(name, choice, index, raw) for index, raw in enumerate(drawn)]


def process_command() -> list[str]:
    """The command that draws and scores."""
    return [sys.executable, str(Path(__file__).with_name("reasoning_process.py"))]


def process_environment() -> dict[str, str]:
    """Its environment, in which what follows the order of sets is the same each time."""
    return {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def _ask(request: Mapping[str, Any]) -> Any:
    """Ask a process of its own.

    Raises:
        InvalidTask: It failed; the text has its last words.
    """
    try:
        done = subprocess.run(  # noqa: S603  # a script of this package
            process_command(),
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=_DRAW_S,
            check=False,
            env=process_environment(),
        )
    except subprocess.TimeoutExpired:
        raise InvalidTask(
            f"reasoning-gym took longer than {_DRAW_S:g} s; ask for fewer questions."
        ) from None
    if done.returncode != 0:
        raise InvalidTask(f"reasoning-gym failed: {done.stderr.strip()[-_SHOWN_CHARS:]}")
    return json.loads(done.stdout)


def _task(name: str, choice: Choice, index: int, raw: Mapping[str, Any]) -> Task:
    return row(
        row_id("reasoning", name, choice.seed, index),
        GYM,
        f"{raw['question']}\n\n{_ASKED}",
        parts=[name],
        split="test",
        source=f"reasoning-gym (Apache-2.0), {name}, seed {choice.seed}, question {index}",
        evaluate=[
            [
                "reasoning_score",
                raw["question"],
                {"dataset": name, "seed": choice.seed, "size": choice.size, "index": index},
            ]
        ],
        metadata={"gold": {"answer": raw["answer"]}} if raw["answer"] is not None else {},
    )
