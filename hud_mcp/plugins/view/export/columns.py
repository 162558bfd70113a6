"""The columns of the Parquet tables, and the rows that fill them.

A column's type is one of: `text`, `json` (text that holds JSON), `int` (32 bits), `long` (64),
`number` (64-bit float), `flag`, `time` (microseconds, UTC), `actions` (a list of structs),
`image` (a struct of `bytes` and `path`), and `longs`, `numbers` and `texts`, which are lists.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from hud_mcp.plugins.view.export.atif import spent_by
from hud_mcp.plugins.view.export.files import clean_text, to_json
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import TrajectoryStep
from hud_mcp.values.model_turn import RecordedTurn


class Column(NamedTuple):
    """One column: its name, one of the types above, and its contents for people."""

    name: str
    type: str
    says: str


COLUMNS: dict[str, tuple[Column, ...]] = {
    "trajectories": (
        Column("trajectory_id", "text", "The trajectory's id."),
        Column("job_id", "text", "Its job's id; null without one."),
        Column("job_name", "text", "The job's name."),
        Column("taskset", "text", "The taskset that the job ran."),
        Column("agent", "text", "Who worked on it."),
        Column("environment", "text", "The environment's name."),
        Column("environment_version", "text", "The environment's version."),
        Column("task_id", "text", "The task's id in its taskset."),
        Column("template", "text", "The template's id."),
        Column("prompt", "text", "What the agent was asked; null if it never was."),
        Column("context_json", "json", "The features of its world."),
        Column("seed", "long", "What the world drew at random from; null if it did not."),
        Column("step_count", "int", "How many rows it has among the steps."),
        Column("answer", "text", "The answer that was submitted; null if none was."),
        Column("outcome", "text", "How it ended; null while it goes on."),
        Column("cause", "text", "Whose doing that was: agent, machine or operator."),
        Column("reward", "number", "Null unless the outcome is `graded`: a failure is not 0."),
        Column("subscores_json", "json", "The parts of the reward, as a tree."),
        Column("grade_content", "text", "The grader's sentence on the reward."),
        Column("error", "text", "Why there is no grade, or why it is 0 by the agent's doing."),
        Column("model", "text", "The model that was reported first; null if none was."),
        Column("turn_count", "int", "How many rows it has among the turns."),
        Column("input_tokens", "long", "Tokens in, cached ones included; null if not told."),
        Column("output_tokens", "long", "Tokens out, reasoning included; null if not told."),
        Column("cached_tokens", "long", "Of those in, from a cache; null if not told."),
        Column("cost_usd", "number", "Of the turns whose cost is known; null if of none."),
        Column("model_s", "number", "Seconds that the model took; null without turns."),
        Column("environment_s", "number", "Seconds that the steps took; null without turns."),
        Column("message_count", "int", "Of the agent to its user; null without a conversation."),
        Column("question_count", "int", "Messages with a question mark; null as the one before."),
        Column("user_turn_count", "int", "Turns of its user; null as the one before."),
        Column("person_turn_count", "int", "User's turns by a person; null as the one before."),
        Column("user_tokens", "long", "In and out, of the user's model, apart from the agent's."),
        Column("user_cost_usd", "number", "Of the user's model, apart from the agent's."),
        Column("log", "text", "What was logged, a line each, with its time."),
        Column("pruned", "text", "What was removed of it since it ended; null if nothing was."),
        Column("task_json", "json", "The task's whole row; it may hold reference answers."),
        Column("receipt_json", "json", "The whole receipt; it may hold reference answers."),
        Column("started_at", "time", "When it began."),
        Column("ended_at", "time", "When it ended; null while it goes on."),
    ),
    "steps": (
        Column("trajectory_id", "text", "The trajectory that it belongs to."),
        Column("task_id", "text", "The task's id in its taskset."),
        Column("step", "int", "Its number, from 0, without gaps."),
        Column("kind", "text", "The call (step, act, tool, message …), or a turn of the `user`."),
        Column(
            "actions",
            "actions",
            "In order: its `type` (a tool's name for a tool), whether it was `performed`, and all "
            "of it as `json`. Places are pixels of the picture that the agent last saw.",
        ),
        Column("scale", "number", "CSS pixels per pixel of the places in these actions."),
        Column("interrupted", "flag", "Whether an action may have been cut off half-way."),
        Column("observation_text", "text", "What there was to read afterwards."),
        Column("screenshot", "image", "What there was to see afterwards; null if it is missing."),
        Column("screenshot_sha256", "text", "Its hash, also where it is missing."),
        Column("screenshot_width_px", "int", "Its width."),
        Column("screenshot_height_px", "int", "Its height."),
        Column("screenshot_scale", "number", "CSS pixels per pixel of this picture."),
        Column("delivered_image", "flag", "Whether the agent was shown the picture."),
        Column("events_json", "json", "The moves of the task's world that happened at it."),
        Column("error", "text", "What the agent was told had failed."),
        Column("reward", "number", "A reward of this step alone, where the world gives any."),
        Column("terminated", "flag", "Whether the episode reached its end."),
        Column("truncated", "flag", "Whether the episode was cut off by a limit."),
        Column("user_tokens", "long", "Of a user's turn: in and out, of its model; null if none."),
        Column("user_cost_usd", "number", "Of a user's turn, in US dollars; null if none."),
        Column("info_json", "json", "Whatever the world added; of a user's turn, its goal too."),
        Column("started_at", "time", "When the call began."),
        Column("ended_at", "time", "When its observation was taken."),
    ),
    "turns": (
        Column("trajectory_id", "text", "The trajectory that it belongs to."),
        Column("task_id", "text", "The task's id in its taskset."),
        Column("turn", "int", "Its number, from 0: one reply of the model."),
        Column("before_step", "int", "It led to the steps from this one …"),
        Column("until_step", "int", "… up to but not including this one."),
        Column("model", "text", "The model, with its provider."),
        Column("settings_json", "json", "How it was asked."),
        Column("text", "text", "What it said; keys in it are masked."),
        Column("reasoning", "text", "What it thought, where that is told; keys are masked."),
        Column(
            "calls_json", "json", "Its tool calls as it made them, each with its `step` if known."
        ),
        Column("input_tokens", "long", "Tokens in, cached ones included; null if not told."),
        Column("output_tokens", "long", "Tokens out, reasoning included; null if not told."),
        Column("cached_tokens", "long", "Of those in, read from a cache; null if not told."),
        Column("cache_write_tokens", "long", "Of those in, written to one; null if not told."),
        Column("reasoning_tokens", "long", "Of those out; null if not told."),
        Column("cost_usd", "number", "Its cost in US dollars; null if not known."),
        Column("stop_reason", "text", "Why it stopped, in the provider's word."),
        Column("error", "text", "Why there was no reply; null where there was one."),
        Column("redactions_json", "json", "What was removed of it since, and when."),
        Column("source", "text", "gateway: seen on its way. reported: told by the agent."),
        Column("dialect", "text", "The wire form of its request; null if it was reported."),
        Column("asked_model", "text", "The model that the agent asked for."),
        Column("messages_json", "json", "Of its request, those that are new since `after_turn`."),
        Column("after_turn", "int", "The turn that its request continues; null at a beginning."),
        Column("is_side", "flag", "Whether it is beside the dialogue, such as a title."),
        Column("is_broken", "flag", "Whether its reply broke off."),
        Column("first_token_s", "number", "Seconds to its first byte."),
        Column("tries_json", "json", "Its tries that failed before."),
        Column("prompt_token_ids", "longs", "The tokens of its prompt; null if not told."),
        Column("token_ids", "longs", "The tokens of its reply; null if not told."),
        Column("logprobs", "numbers", "Their log-probabilities; null if not told."),
        Column("token_texts", "texts", "Their texts; null if not told."),
        Column("started_at", "time", "When it was asked."),
        Column("ended_at", "time", "When its reply was whole."),
    ),
}
"""The columns of each table, by the table's name."""


_OF_USER = {"message_count": "messages", "question_count": "questions", "user_turn_count": "turns",
            "person_turn_count": "by_person", "user_tokens": "tokens",
            "user_cost_usd": "cost_usd"}  # fmt: skip
_RUN_VALUES = ("job_id", "environment", "environment_version", "seed", "reward", "started_at",
               "ended_at")  # fmt: skip


def trajectory_row(trajectory: Trajectory, job: Job | None) -> dict[str, Any]:
    """Return a row of `trajectories`."""
    receipt, task, use = trajectory.receipt, trajectory.task, trajectory.use
    models = (turn.model for turn in trajectory.turns if turn.model)
    subscores = [s.model_dump(mode="json") for s in receipt.subscores] if receipt else []
    return {
        "trajectory_id": trajectory.id,
        "job_name": clean_text(job.name) if job else None,
        "taskset": clean_text(job.set_of(task.id)) if job else None,
        "agent": clean_text(job.agent) if job else None,
        "task_id": clean_text(task.id),
        "template": task.template,
        "prompt": clean_text(trajectory.prompt),
        "context_json": to_json(trajectory.context),
        "step_count": len(trajectory.steps),
        "answer": clean_text(trajectory.answer),
        "outcome": trajectory.outcome.value if trajectory.outcome else None,
        "cause": trajectory.cause.value if trajectory.cause else None,
        "subscores_json": to_json(subscores),
        "grade_content": clean_text(receipt.content) if receipt else None,
        "error": clean_text(trajectory.error),
        "model": clean_text(next(models, None)),
        "turn_count": len(trajectory.turns),
        **{f"{name}_tokens": getattr(use, name, None) for name in _TOKENS[:3]},
        **{name: getattr(use, name, None) for name in ("cost_usd", "model_s", "environment_s")},
        **{column: getattr(trajectory.user, name, None) for column, name in _OF_USER.items()},
        "log": clean_text(trajectory.logs),
        "pruned": str(trajectory.pruned) if trajectory.pruned else None,
        "task_json": to_json(task.model_dump(mode="json")),
        "receipt_json": to_json(receipt.model_dump(mode="json")) if receipt else None,
        **{name: getattr(trajectory, name) for name in _RUN_VALUES},
    }


_STEP_VALUES = ("scale", "interrupted", "delivered_image", "reward", "terminated", "truncated",
                "started_at", "ended_at")  # fmt: skip


def step_row(trajectory: Trajectory, step: TrajectoryStep, picture: bytes | None) -> dict[str, Any]:
    """Return a row of `steps`. `picture` is None if it has none, or its file is missing."""
    shot, spent = step.screenshot, spent_by([step]).get("extra", {})
    actions = [
        {
            "type": clean_text(str(action.get("tool") or action.get("type"))),
            "performed": number < step.performed,
            "json": to_json(action),
        }
        for number, action in enumerate(step.actions)
    ]
    image = None
    if shot is not None and picture is not None:
        image = {"bytes": picture, "path": f"{shot.sha256}.{shot.extension}"}
    return {
        "trajectory_id": trajectory.id,
        "task_id": clean_text(trajectory.task.id),
        "step": step.index,
        "kind": step.kind,
        "actions": actions,
        "observation_text": clean_text(step.observation_text),
        "screenshot": image,
        "screenshot_sha256": shot.sha256 if shot else None,
        "screenshot_width_px": shot.width_px if shot else None,
        "screenshot_height_px": shot.height_px if shot else None,
        "screenshot_scale": shot.scale if shot else None,
        "events_json": to_json([event.model_dump(mode="json") for event in step.events]),
        "error": clean_text(step.error),
        **{name: spent.get(name) for name in ("user_tokens", "user_cost_usd")},
        "info_json": to_json(step.info),
        **{name: getattr(step, name) for name in _STEP_VALUES},
    }


def turn_rows(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """Yield the rows of `turns`."""
    whole: dict[int | None, list[int]] = {}  # the prompt and the reply, as token ids
    for turn in trajectory.turns:
        yield {**_turn_row(trajectory, turn), **_token_columns(turn, whole)}


def _token_columns(turn: RecordedTurn, whole: dict[int | None, list[int]]) -> dict[str, Any]:
    if (tokens := turn.tokens) is None:
        return {}
    before = whole.pop(turn.after, [])
    is_known = len(before) >= tokens.shared  # the turn before may have lost its own
    prompt = [*before[: tokens.shared], *tokens.prompt_ids] if is_known else []
    whole[turn.number] = [*prompt, *tokens.ids] if is_known else []
    texts = [clean_text(text) for text in tokens.texts]
    lists = {"prompt_token_ids": prompt, "logprobs": list(tokens.logprobs), "token_texts": texts}
    return {name: value or None for name, value in {**lists, "token_ids": [*tokens.ids]}.items()}


_TURN_TEXTS = ("model", "text", "reasoning", "stop_reason", "error", "asked_model")
_TURN_VALUES = ("before_step", "until_step", "cost_usd", "dialect", "is_side", "is_broken",
                "first_token_s", "started_at", "ended_at")  # fmt: skip
_TOKENS = ("input", "output", "cached", "cache_write", "reasoning")


def _turn_row(trajectory: Trajectory, turn: RecordedTurn) -> dict[str, Any]:
    return {
        "trajectory_id": trajectory.id,
        "task_id": clean_text(trajectory.task.id),
        "turn": turn.number,
        "settings_json": to_json(turn.settings),
        "calls_json": to_json(turn.told_calls()),
        "redactions_json": to_json([each.model_dump(mode="json") for each in turn.redactions]),
        "source": turn.source or "reported",
        "messages_json": to_json(turn.messages),
        "after_turn": turn.after,
        "tries_json": to_json(turn.tries),
        **{name: clean_text(getattr(turn, name)) for name in _TURN_TEXTS},
        **{name: getattr(turn, name) for name in _TURN_VALUES},
        **{f"{name}_tokens": getattr(turn.usage, name) for name in _TOKENS},
    }
