"""ATIF v1.7, the Agent Trajectory Interchange Format (Harbor's RFC 0001): one JSON file each.

The first step is the user's: the prompt. Each recorded call is a step of the agent with one
tool call, as the agent made it but for its session id, and the observation that answered it.
Screenshots are files beside, as `image` parts (ATIF 1.6). A picture that was taken for the
record alone says so in its result's `extra`.

What an agent must not see does not leave: the task's arguments, metadata, description and
validation, logs, what a world adds as `info`, and a grade's sentence, `info` and error.
Rewards are in the metrics: of a step in `metrics.extra`, of the whole in `final_metrics.extra`.
"""

from pathlib import Path
from typing import Any

import anyio.to_thread

from hud_mcp import __version__
from hud_mcp.core_tools import ACT, RESPONSE, SCREENSHOT, STEP
from hud_mcp.grade import SubScore
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory, TrajectoryStep
from hud_mcp.show.export.encoding import to_json
from hud_mcp.show.export.files import MANIFEST, new_folder
from hud_mcp.show.export.pictures import MIME_TYPES, PictureFolder, Pictures
from hud_mcp.show.export.selection import read, select
from hud_mcp.show.export.summary import ExportSummary, OnProgress, Tally
from hud_mcp.store import Store

__all__ = ["VERSION", "atif_document", "export_atif"]

Json = dict[str, Any]

VERSION = "ATIF-v1.7"

_OWN_AGENTS = ("oracle", "nop", "random")
"""Agents that come with this package, and have its version."""


async def export_atif(
    store: Store,
    source_id: str,
    path: Path,
    *,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> ExportSummary:
    """Write a job, or one trajectory, as a folder of ATIF files.

    Args:
        store: Where it is recorded.
        source_id: The job's id, or the trajectory's.
        path: The folder: a file for each trajectory, named by its id, and `screenshots`.
        force: Replace a former export that is there.
        on_progress: Called after each trajectory.

    Raises:
        SourceNotFound: There is neither such a job nor such a trajectory.
        OutputExists: Something is there already. Nothing was written.
        StoreFailed: The store cannot be read.
        OSError: The folder cannot be written.

    After a failure or a cancellation nothing that was written stays.
    """
    selection = await select(store, source_id)
    tally = Tally()
    with new_folder(path, force=force) as folder:
        pictures = PictureFolder(Pictures(store, tally), folder / "screenshots")

        def write(trajectory: Trajectory) -> None:
            text = to_json(atif_document(trajectory, selection.job, pictures))
            (folder / f"{trajectory.id}.json").write_text(f"{text}\n", encoding="utf-8")

        async for trajectory in read(store, selection, tally, on_progress):
            await anyio.to_thread.run_sync(write, trajectory)
        (folder / MANIFEST).write_text(tally.manifest(VERSION, selection.id), encoding="utf-8")
    return tally.summary("atif", path)


def atif_document(trajectory: Trajectory, job: Job | None, pictures: PictureFolder) -> Json:
    """Return a trajectory as an ATIF document.

    Args:
        trajectory: Its record; it may go on still.
        job: The job that it belongs to, which says who the agent was.
        pictures: Copies the screenshots to where the document will lie.
    """
    steps = [_first(trajectory)]
    steps += [_step(step, i, pictures) for i, step in enumerate(trajectory.steps, 2)]
    return {
        "schema_version": VERSION,
        "session_id": trajectory.id,
        "trajectory_id": trajectory.id,
        "agent": _agent(trajectory, job),
        "steps": steps,
        "final_metrics": {"total_steps": len(steps), "extra": _result(trajectory)},
        "extra": {
            "job": job.id if job else None,
            "environment": trajectory.environment,
            "environment_version": trajectory.environment_version,
            "task": trajectory.task.id,
            "template": trajectory.task.template,
            "context": trajectory.context,
            "seed": trajectory.seed,
            "exported_by": f"hud-mcp {__version__}",
        },
    }


def _agent(trajectory: Trajectory, job: Job | None) -> Json:
    name = job.agent if job and job.agent else "unknown"
    given = job.metadata if job else {}
    version = given.get("agent_version")
    if version is None and name in _OWN_AGENTS:
        receipt = trajectory.receipt
        version = receipt.package_version if receipt else __version__
    agent: Json = {"name": name, "version": str(version or "unknown")}
    model = given.get("model")
    return {**agent, "model_name": model} if isinstance(model, str) else agent


def _first(trajectory: Trajectory) -> Json:
    """What began it: the prompt, or that there was none."""
    step: Json = {"step_id": 1, "timestamp": trajectory.started_at.isoformat()}
    if trajectory.prompt is None:
        return {**step, "source": "system", "message": "The task had no prompt yet."}
    return {**step, "source": "user", "message": trajectory.prompt}


def _step(step: TrajectoryStep, step_id: int, pictures: PictureFolder) -> Json:
    call_id = f"call-{step.index}"
    name, arguments = _call(step)
    made: Json = {
        "step_id": step_id,
        "timestamp": step.started_at.isoformat(),
        "source": "agent",
        "message": "",
        "tool_calls": [
            {
                "tool_call_id": call_id,
                "function_name": name,
                "arguments": arguments,
                "extra": {
                    "performed": step.performed,
                    "css_px_per_px": step.scale,
                    "interrupted": step.interrupted,
                },
            }
        ],
        "observation": {"results": [{"source_call_id": call_id, **_observed(step, pictures)}]},
    }
    reasoning = [str(a["reasoning"]) for a in step.actions if a.get("reasoning")]
    if reasoning:
        made["reasoning_content"] = "\n".join(reasoning)
    if step.reward is not None:
        made["metrics"] = {"extra": {"reward": step.reward}}
    return made


def _call(step: TrajectoryStep) -> tuple[str, Json]:
    """The tool that was called, and its arguments, in the tools' own form."""
    actions = [{k: v for k, v in a.items() if k != "reasoning"} for a in step.actions]
    first = actions[0] if actions else {}
    if step.kind in ("tool", "direct"):
        return str(first.get("tool")), first.get("args") or {}
    if step.kind == "response":
        return RESPONSE, {"answer": first.get("text", "")}
    if step.kind == "screenshot":
        return SCREENSHOT, {}
    observe = {"observe": "changes"} if step.look.get("changes") else {}
    if step.kind == "act":
        return ACT, {**first, **observe}
    return STEP, {"actions": actions, **observe}


def _observed(step: TrajectoryStep, pictures: PictureFolder) -> Json:
    texts = [text for text in (step.error, step.observation_text) if text]
    extra: Json = {
        "ended_at": step.ended_at.isoformat(),
        "terminated": step.terminated,
        "truncated": step.truncated,
        "is_error": step.error is not None,
    }
    shot = step.screenshot
    if shot is None:
        return {"content": "\n".join(texts), "extra": extra}
    extra |= {
        "image_shown_to_agent": step.delivered_image,
        "image_size_px": [shot.width_px, shot.height_px],
        "image_css_px_per_px": shot.scale,
    }
    path = pictures.add(shot)
    if path is None:
        return {"content": "\n".join(texts), "extra": {**extra, "image_missing": shot.sha256}}
    parts: list[Json] = [{"type": "text", "text": text} for text in texts]
    source = {"media_type": MIME_TYPES[shot.extension], "path": path}
    return {"content": [*parts, {"type": "image", "source": source}], "extra": extra}


def _result(trajectory: Trajectory) -> Json:
    receipt = trajectory.receipt
    ended = trajectory.ended_at
    return {
        "outcome": trajectory.outcome.value if trajectory.outcome else None,
        "cause": trajectory.cause.value if trajectory.cause else None,
        "reward": trajectory.reward,
        "subscores": [_subscore(s) for s in receipt.subscores] if receipt else [],
        "duration_s": (ended - trajectory.started_at).total_seconds() if ended else None,
    }


def _subscore(score: SubScore) -> Json:
    children = [_subscore(child) for child in score.children]
    return {"name": score.name, "value": score.value, "weight": score.weight, "children": children}
