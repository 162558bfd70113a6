"""ATIF v1.7, the Agent Trajectory Interchange Format (Harbor's RFC 0001): one JSON file each.

The first step is the prompt. Each recorded call is a step of the agent with one tool call, without
its session id. A message is the agent's words, and the reply a step of its user. Screenshots are
files beside, as `image` parts (ATIF 1.6). The `extra` of a result marks a picture that was taken
for the record alone.

The export leaves out everything that an agent must not see: the task's arguments, metadata,
description and validation; logs; the `info` of a world; the sentence, `info` and error of a grade.

If the model's side is recorded, the first step of a turn has its message, reasoning and metrics,
and `extra.turn` has the rest of the turn. A turn that led to no step is a step of its own.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hud_mcp.base import __version__
from hud_mcp.plugins.view.export.exporting import Export, Output
from hud_mcp.plugins.view.export.files import PictureFolder, to_json
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.transcript import placed, said_steps
from hud_mcp.record.values import USER_TURN, TrajectoryStep
from hud_mcp.values.call import ACT, MESSAGE_USER, RESPONSE, SCREENSHOT, STEP
from hud_mcp.values.grade import SubScore
from hud_mcp.values.model_turn import ModelUse, RecordedTurn

Json = dict[str, Any]

VERSION = "ATIF-v1.7"

_OWN_AGENTS = ("oracle", "nop", "random")
"""Agents that come with this package, and have its version."""


@asynccontextmanager
async def _write(output: Output) -> AsyncGenerator[Callable[[Trajectory], None]]:
    pictures = output.picture_folder(output.path / "screenshots")

    def write(trajectory: Trajectory) -> None:
        text = to_json(atif_document(trajectory, output.selection.job, pictures))
        (output.path / f"{trajectory.id}.json").write_text(f"{text}\n", encoding="utf-8")

    yield write


export_atif = Export(
    "atif", "ATIF v1.7, one file for each trajectory.", "folder", _write, label=VERSION
)


def atif_document(trajectory: Trajectory, job: Job | None, pictures: PictureFolder) -> Json:
    """Return a trajectory as an ATIF document."""
    steps = [_first(trajectory), *_steps(trajectory, pictures)]
    steps = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return {
        "schema_version": VERSION,
        "session_id": trajectory.id,
        "trajectory_id": trajectory.id,
        "agent": _agent(trajectory, job),
        "steps": steps,
        "final_metrics": {
            "total_steps": len(steps),
            **_totals(trajectory.use),
            "extra": _result(trajectory),
        },
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
    said = next((turn.model for turn in trajectory.turns if turn.model), None)
    model = given.get("model") or said
    return {**agent, "model_name": model} if isinstance(model, str) else agent


def _first(trajectory: Trajectory) -> Json:
    step: Json = {"timestamp": trajectory.started_at.isoformat()}
    if trajectory.prompt is None:
        return {**step, "source": "system", "message": "The task had no prompt yet."}
    return {**step, "source": "user", "message": trajectory.prompt}


def _steps(trajectory: Trajectory, pictures: PictureFolder) -> list[Json]:
    """Return the agent's steps, each turn of its model in the first step that it led to."""
    turns, made, users = placed(trajectory), list[Json](), list[TrajectoryStep]()
    for step, words in said_steps(trajectory.steps):
        own = turns.pop(step.index, [])
        if step.kind == "user":  # its words come back with the message after it
            users.append(step)
            made += [_turn_alone(turn) for turn in own]
            continue
        made += [_turn_alone(turn) for turn in own[:-1]]
        row = _message(step) if step.kind == "message" else _step(step, words, pictures)
        if own:
            row = _led_by(own[-1], row)
        elif trajectory.turns:
            row["llm_call_count"] = 0
        made.append(row)
        if step.kind == "message":
            made += _came_back(step, users)
        users.clear()
    return made + [_turn_alone(turn) for rest in turns.values() for turn in rest]


def _turn_alone(turn: RecordedTurn) -> Json:
    alone: Json = {"timestamp": turn.started_at.isoformat(), "source": "agent", "message": ""}
    return _led_by(turn, alone)


def _led_by(turn: RecordedTurn, step: Json) -> Json:
    usage = turn.usage
    metrics: Json = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cached,
        "cost_usd": turn.cost_usd,
    }
    extra = {**step.get("metrics", {}).get("extra", {}), "latency_s": turn.latency_s}
    extra |= {"cache_write_tokens": usage.cache_write, "reasoning_tokens": usage.reasoning}
    led = {
        **step,
        "message": step["message"] or turn.text or "",
        "llm_call_count": 1,
        "metrics": {**_known(metrics), "extra": _known(extra)},
        "extra": {**step.get("extra", {}), "turn": _rest(turn)},
    }
    named = {"model_name": turn.model, "reasoning_content": turn.reasoning}
    return {**led, **_known(named)}


_SEEN = {"after", "asked_model", "dialect", "first_token_s", "is_broken", "is_side", "messages",
         "provider_id", "repeats", "source", "tools", "tries"}  # fmt: skip
"""The fields of a turn that a gateway has seen."""


def _rest(turn: RecordedTurn) -> Json:
    rest: Json = {
        "number": turn.number,
        "calls": turn.told_calls(),
        "settings": turn.settings or None,
        "stop_reason": turn.stop_reason,
        "error": turn.error,
        "redactions": [each.model_dump(mode="json") for each in turn.redactions] or None,
    }
    seen = turn.model_dump(mode="json", include=_SEEN, exclude_defaults=True)
    return seen | _known(rest)


def _known(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _message(step: TrajectoryStep) -> Json:
    text = "\n\n".join(str(action.get("text", "")) for action in step.actions)
    extra = {"performed": step.performed, "is_error": step.error is not None}
    return {
        "timestamp": step.started_at.isoformat(), "source": "agent", "message": text,
        "extra": {"message": extra},
    }  # fmt: skip


def _came_back(step: TrajectoryStep, users: Sequence[TrajectoryStep]) -> Iterator[Json]:
    at = {"timestamp": step.ended_at.isoformat()}
    told = "\n\n".join(text for text in (step.error, *step.notes) if text)
    if told:
        yield {**at, "source": "system", "message": told}
    if step.observation_text:
        yield {**at, "source": "user", "message": step.observation_text, **spent_by(users)}


def spent_by(users: Iterable[TrajectoryStep]) -> Json:
    """Return the tokens and the cost of a user's turns as `extra`, and nothing private of it."""
    turns = [step.info.get(USER_TURN, {}).get("turn", {}) for step in users]
    tokens = sum(turn.get("tokens", 0) for turn in turns)
    cost = sum(turn.get("cost", 0.0) for turn in turns)
    return {"extra": {"user_tokens": tokens, "user_cost_usd": cost}} if tokens or cost else {}


_SUMS = {"prompt": "input", "completion": "output", "cached": "cached"}


def _totals(use: ModelUse | None) -> Json:
    if use is None:
        return {}
    totals = {f"total_{name}_tokens": getattr(use, of) for name, of in _SUMS.items()}
    return _known({**totals, "total_cost_usd": use.cost_usd})


def _step(step: TrajectoryStep, words: str, pictures: PictureFolder) -> Json:
    call_id = f"call-{step.index}"
    name, arguments = tool_call(step)
    made: Json = {
        "timestamp": step.started_at.isoformat(),
        "source": "agent",
        "message": "",
        "tool_calls": [
            {
                "tool_call_id": call_id,
                "function_name": name,
                "arguments": arguments,
                "extra": {
                    "words": words,
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


def tool_call(step: TrajectoryStep) -> tuple[str, Json]:
    """Return the called tool and its arguments, in the tools' own form."""
    actions = [{k: v for k, v in a.items() if k != "reasoning"} for a in step.actions]
    first = actions[0] if actions else {}
    if step.kind in ("tool", "direct"):
        return str(first.get("tool")), first.get("args") or {}
    if step.kind == "response" or first.get("type") == "answer":
        return RESPONSE, {"answer": first.get("text", "")}
    if step.kind == "message":
        return MESSAGE_USER, {"text": first.get("text", "")}
    if step.kind == "screenshot":
        return SCREENSHOT, {}
    observe = {"observe": "changes"} if step.look.get("changes") else {}
    if step.kind == "act":
        return ACT, {**first, **observe}
    return STEP, {"actions": actions, **observe}


def _observed(step: TrajectoryStep, pictures: PictureFolder) -> Json:
    texts = step.texts
    extra: Json = {
        "ended_at": step.ended_at.isoformat(),
        "terminated": step.terminated,
        "truncated": step.truncated,
        "is_error": step.error is not None,
    }
    if step.events:
        extra["events"] = [event.model_dump(mode="json") for event in step.events]
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
    source = {"media_type": shot.mime_type, "path": path}
    return {"content": [*parts, {"type": "image", "source": source}], "extra": extra}


def _result(trajectory: Trajectory) -> Json:
    receipt = trajectory.receipt
    ended = trajectory.ended_at
    return {
        "outcome": trajectory.outcome.value if trajectory.outcome else None,
        "cause": trajectory.cause.value if trajectory.cause else None,
        "reward": trajectory.reward,
        "subscores": [_subscore(s) for s in receipt.subscores] if receipt else [],
        **spent_by(trajectory.steps).get("extra", {}),
        "duration_s": (ended - trajectory.started_at).total_seconds() if ended else None,
    }


def _subscore(score: SubScore) -> Json:
    children = [_subscore(child) for child in score.children]
    return {"name": score.name, "value": score.value, "weight": score.weight, "children": children}
