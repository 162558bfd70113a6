"""The tasks in a HUD author's file beside its templates: `tasks = [count(word="x")]`.

HUD's server tells only templates. Therefore the interpreter that has `hud` reads the file again.
"""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hud_mcp.environment.task import Task
from hud_mcp.environment.template import Template
from hud_mcp.errors import InvalidTask

__all__ = ["listed_tasks", "read_rows"]

logger = logging.getLogger(__name__)

_READ_S = 90.0
_MOST_BYTES = 16 * 1024 * 1024
_MARK = "HUD_MCP_ROWS="
_READER = f"""
import json, os, sys
told = os.dup(1)
os.dup2(2, 1)
from hud.eval import Taskset
rows = [
    {{"slug": slug, "env": row.env, "id": row.id, "args": row.args, "columns": row.columns,
     "verified": row.verifier is not None}}
    for slug, row in Taskset.from_file(sys.argv[1]).items()
]
with os.fdopen(told, "w") as out:
    out.write("{_MARK}" + json.dumps(rows, default=str))
sys.stderr.flush()
os._exit(0)  # whatever the file has begun
"""


async def read_rows(python: str, path: Path, folder: Path) -> list[dict[str, Any]] | str:
    """Return the rows of a file or folder as HUD reads them, or the reason why this fails."""
    process = await asyncio.create_subprocess_exec(
        python,
        "-c",
        _READER,
        str(path),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={k: v for k, v in os.environ.items() if not k.startswith("HUD_MCP_")},
    )
    try:
        async with asyncio.timeout(_READ_S):
            told, said = await process.communicate()
    except TimeoutError:
        return f"reading them took longer than {_READ_S:g} s"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    text = told[:_MOST_BYTES].decode("utf-8", "replace")
    if process.returncode or not text.startswith(_MARK):
        lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
        logger.debug("the rows of %s: %s", path, said)
        return lines[-1][:300] if lines else "its interpreter said nothing"
    try:
        return cast("list[dict[str, Any]]", json.loads(text.removeprefix(_MARK)))
    except ValueError as exc:
        return f"they are no JSON: {exc}"


def listed_tasks(
    rows: list[dict[str, Any]],
    *,
    hud_name: str,
    env: str,
    templates: Mapping[str, Template],
    notes: list[str],
) -> list[Task]:
    """Return rows as tasks of ours. `notes` gets the reason for each row that cannot be offered.

    Rows of other environments than `hud_name`, its own name for itself, are left out.
    """
    found: list[Task] = []
    for row in rows:
        if row["env"] != hud_name:
            continue
        slug, template = str(row["slug"]), templates.get(str(row["id"]))
        try:
            if template is None:
                raise InvalidTask("its template cannot be bridged")  # noqa: TRY301  # one of several
            if row["verified"]:  # with HUD, the verifier's grade counts
                raise InvalidTask("it is graded by a verifier of HUD's")  # noqa: TRY301  # the same
            template.arguments.parse(row["args"])
            found.append(
                Task(
                    id=slug[:200],
                    env=env,
                    template=template.id,
                    args=row["args"],
                    description=template.description,
                    metadata=row["columns"] or {},
                )
            )
        except (InvalidTask, ValueError) as exc:
            notes.append(f"The row {slug!r:.80} cannot be offered: {exc}")
    return found
