"""A grader's command that runs in a sandbox: a verifier's, or the agent's own."""

from collections.abc import Mapping
from typing import Any

import anyio

from hud_mcp.errors import ActionFailed, BrokenByAgent, GraderFailed
from hud_mcp.graders.server_command import KEPT_BYTES
from hud_mcp.graders.shells import Clean, RunsCommands
from hud_mcp.sandbox.process import Excerpt

__all__ = ["run_in_session", "run_in_verifier"]

_SHOWN = 20
"""Of what was not copied, the record has no more."""
_WEAK = (
    "It ran in the agent's own sandbox, by whatever the agent left there: files, programs, "
    "and what still runs."
)


async def run_in_verifier(
    clean: Clean,
    command: str,
    cwd: str,
    timeout_s: float,
    env: Mapping[str, str] | None,
) -> dict[str, Any]:
    """Run a line of bash where the agent has not been, and tell how it ended."""
    started = anyio.current_time()
    end = await clean.run(command, cwd=cwd, timeout_s=timeout_s, env=env)
    took_s = anyio.current_time() - started
    beside = {"missing": _some(clean.missing), "left_out": _some(clean.left_out)}
    return {
        **_ended(end.exit_code, end.stopped, timeout_s, took_s),
        "stdout": _ends_of(end.stdout),
        "stderr": _ends_of(end.stderr),
        "ran_in": "verifier",
        **{name: each for name, each in beside.items() if each},
    }


async def run_in_session(
    world: RunsCommands, command: str, cwd: str, timeout_s: float, env: Mapping[str, str] | None
) -> dict[str, Any]:
    """Run a line of bash in the world, and tell how it ended.

    Raises:
        GraderFailed: It cannot run there.
        BrokenByAgent: The agent made that impossible.
    """
    started = anyio.current_time()
    try:
        end = await world.run(command, cwd=cwd, timeout_s=timeout_s, env=env)
    except BrokenByAgent:
        raise
    except ActionFailed as exc:
        raise GraderFailed(f"BashGrader cannot run its command: {exc}") from exc
    took_s = anyio.current_time() - started
    return {
        **_ended(end.exit_code, end.stopped, timeout_s, took_s),
        "stdout": _ends_of(end.output),
        "stderr": "",
        "ran_in": "session",
        "weak": _WEAK,
    }


def _ended(exit_code: int, stopped: str | None, timeout_s: float, took_s: float) -> dict[str, Any]:
    """What is told of an end in a sandbox."""
    timed_out = stopped is not None and (took_s >= timeout_s or "took longer" in stopped)
    return {
        "exit_code": None if stopped is not None else exit_code,
        "timed_out": timed_out,
        **({"stopped": stopped} if stopped is not None else {}),
        **({"timeout": min(timeout_s, round(took_s, 3))} if timed_out else {}),
    }


def _ends_of(text: str) -> str:
    """The first half and the last of what the record keeps of a text."""
    kept = Excerpt(KEPT_BYTES)
    kept.add(text.encode("utf-8", "replace"))
    return kept.taken().decode("utf-8", "replace")


def _some(reasons: Mapping[str, str]) -> dict[str, str]:
    return dict(list(reasons.items())[:_SHOWN])
