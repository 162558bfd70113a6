"""Contexts for the tasks of a set: read from a file or drawn, and given to tasks."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import Field, ValidationError

from hud_mcp.base.lines import read_json_lines
from hud_mcp.base.text import read_text_bytes
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import InvalidContext, InvalidTask, SourceNotFound, did_you_mean
from hud_mcp.loading.provenance import base_task, split_of
from hud_mcp.values.action import Value
from hud_mcp.values.context import (
    ContextFeature,
    ContextSelector,
    ContextSpace,
    RandomSelector,
    RoundRobinSelector,
    Scalar,
    StaticSelector,
)
from hud_mcp.values.sampler import ContextSampler

__all__ = [
    "SELECTORS",
    "NamedContext",
    "base_task",
    "bind",
    "contexts_for",
    "parse_sample",
    "read_contexts",
    "sample_contexts",
    "split_of",
    "spread",
]

SELECTORS = ("round-robin", "random", "static", "every")
"""The ways to spread contexts: in turn, drawn, the first for all, or every one for each task."""

_SAMPLE = re.compile(r"sample:(?P<count>\d{1,6})(?::(?P<ranges>.+))?")


class NamedContext(Value):
    """A context with a name, and the part of an experiment that it belongs to."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        max_length=60,
        description="The name; ids of tasks contain it.",
    )
    split: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9-]*$",
        max_length=40,
        description="`train`, or a held-out part: `test`, `test-outside` …",
    )
    context: dict[str, Scalar] = Field(
        default_factory=dict, description="Features that differ from their defaults."
    )


def read_contexts(path: str | Path) -> tuple[NamedContext, ...]:
    """Read contexts from JSON or JSON Lines.

    The file has objects, in a list or one on each line. Each has a `name`, a `context` and possibly
    a `split`. The file may also be one object from names to contexts.

    Raises:
        SourceNotFound: There is no such file.
        InvalidContext: A row is wrong; the text names the file and the first such row.
    """
    path = Path(path)
    if not path.is_file():
        raise SourceNotFound(
            f"There are no contexts at {path}; name a .json or .jsonl file, or sample:N."
        )
    rows = [
        _read_row(row, where, number)
        for number, (where, row) in enumerate(_rows(read_text_bytes(path), str(path)))
    ]
    if not rows:
        raise InvalidContext(f"{path} holds no contexts.")
    _check_names(rows, str(path))
    return tuple(rows)


def sample_contexts(
    space: ContextSpace,
    count: int,
    *,
    ranges: Mapping[str, str] | None = None,
    seed: int = 0,
    split: str | None = None,
) -> tuple[NamedContext, ...]:
    """Draw contexts of a space; all values of a feature are equally likely.

    Args:
        space: The environment's.
        count: The number of tasks.
        ranges: The features to draw, and their ranges: `800..1600`, `light|dark`, or None for every
            value. By default all features with finite bounds or choices are drawn. The others keep
            their defaults.
        seed: The same seed, space and ranges give the same contexts, in any process.
        split: The split that they belong to.

    Raises:
        InvalidContext: A feature is unknown, a range exceeds its bounds, or ConfigSpace is not
            installed.
    """
    features = _drawn_features(space, ranges)
    if not features:
        raise InvalidContext(
            "No context can be drawn: the environment declares no feature with finite bounds or "
            "choices."
        )
    try:
        drawn = ContextSampler(features, space, seed=seed).sample_contexts(count)
    except ModuleNotFoundError as exc:
        raise InvalidContext(
            "Drawing contexts needs ConfigSpace, which is not installed; pip install "
            "'hud-mcp[gymnasium]', or write the contexts into a file."
        ) from exc
    digits = len(str(max(count - 1, 0)))
    names = {feature.name for feature in features}
    return tuple(
        NamedContext(
            name=f"sample-{number:0{digits}}",
            split=split,
            context={k: v for k, v in context.items() if k in names},
        )
        for number, context in drawn.items()
    )


def parse_sample(text: str) -> tuple[int, dict[str, str]] | None:
    """Read `sample:N` or `sample:N:feature=low..high,feature=a|b,feature`; None for other text.

    Raises:
        InvalidContext: The text begins with `sample:` and goes on otherwise.
    """
    if not text.startswith("sample:"):
        return None
    found = _SAMPLE.fullmatch(text)
    if found is None or int(found["count"]) < 1:
        raise InvalidContext(
            f"{text!r} draws nothing. Write sample:N, or sample:N:feature=low..high,feature=a|b, "
            "with an N from 1 to 999999."
        )
    parts = [part.partition("=") for part in (found["ranges"] or "").split(",") if part.strip()]
    return int(found["count"]), {name.strip(): values.strip() for name, _, values in parts}


def contexts_for(
    option: str, spaces: Mapping[str, ContextSpace], *, seed: int = 0
) -> dict[str, tuple[NamedContext, ...]]:
    """Return the contexts that `--contexts` means, by environment: a file's, or drawn ones.

    Raises:
        SourceNotFound: There is no such file.
        InvalidContext: A context does not fit an environment; the text names both.
    """
    sample = parse_sample(option)
    if sample is not None:
        count, ranges = sample
        return {
            name: _drawn_for(name, space, count, ranges, seed) for name, space in spaces.items()
        }
    found = read_contexts(option)
    for name, space in spaces.items():
        for named in found:
            if wrong := space.problems(named.context):
                raise InvalidContext(
                    f"{option}: the context {named.name!r} does not fit the environment {name!r}: "
                    f"{'; '.join(wrong)}."
                )
    return dict.fromkeys(spaces, found)


def _drawn_for(
    name: str, space: ContextSpace, count: int, ranges: Mapping[str, str], seed: int
) -> tuple[NamedContext, ...]:
    try:
        return sample_contexts(space, count, ranges=ranges, seed=seed)
    except InvalidContext as exc:
        raise InvalidContext(f"For the environment {name!r}: {exc}") from None


def spread(
    tasks: Taskset,
    contexts: Mapping[str, Sequence[NamedContext]] | Sequence[NamedContext],
    *,
    selector: str | Callable[[Mapping[Any, Any]], ContextSelector] = "round-robin",
    seed: int = 0,
) -> Taskset:
    """Give each task a context, and return new rows in the same order.

    A row's id becomes `task@context`. The row keeps its own features that the context does not set.
    The metadata gets the context's name as `context`, its `split`, and the former id as
    `base_task`. If the new context differs and has no split, the row loses its former `split`.

    Args:
        tasks: The set.
        contexts: The contexts, for all tasks or by the name of their environment.
        selector: One of `SELECTORS`, or a selector's class. Each environment gets its own selector.
        seed: The seed of a random selector.

    Raises:
        InvalidContext: There is no such selector, or an environment has no contexts.
        InvalidTask: An id would be too long, or occur twice.
    """
    by_env = contexts if isinstance(contexts, Mapping) else None
    rows: list[Task] = []
    pickers: dict[str, Callable[[], Iterable[NamedContext]]] = {}
    for task in tasks:
        if task.env not in pickers:
            given = contexts if by_env is None else by_env.get(task.env, ())
            pickers[task.env] = _picker(
                task.env, cast("Sequence[NamedContext]", given), selector, seed
            )
        rows += [bind(task, named) for named in pickers[task.env]()]
    return Taskset(rows, name=tasks.name)


def bind(task: Task, named: NamedContext) -> Task:
    """Return a task under a context, in the form that `spread` makes.

    Raises:
        InvalidTask: Its id would be too long.
    """
    context = {**task.context, **named.context}
    metadata = {**task.metadata, "context": named.name, "base_task": base_task(task)}
    if named.split is not None:
        metadata["split"] = named.split
    elif context != task.context:
        metadata.pop("split", None)
    row = task.model_dump() | {
        "id": f"{task.id}@{named.name}",
        "context": context,
        "metadata": metadata,
    }
    try:
        return Task.model_validate(row)
    except ValidationError as exc:
        reason = exc.errors(include_url=False)[0]["msg"].lower()
        raise InvalidTask(f"{row['id']!r} cannot be a task: {reason}.") from None


def _picker(
    env: str,
    contexts: Sequence[NamedContext],
    selector: str | Callable[[Mapping[Any, Any]], ContextSelector],
    seed: int,
) -> Callable[[], Iterable[NamedContext]]:
    if not contexts:
        raise InvalidContext(f"There are no contexts for the tasks of environment {env!r}.")
    if selector == "every":
        return lambda: contexts
    by_name: dict[str, Any] = {named.name: named for named in contexts}
    if callable(selector):
        picker = selector(by_name)
    elif selector == "random":
        picker = RandomSelector(by_name, seed=seed)
    elif selector in ("round-robin", "static"):
        picker = (RoundRobinSelector if selector == "round-robin" else StaticSelector)(by_name)
    else:
        raise InvalidContext(
            f"There is no selector {selector!r}.{did_you_mean(selector, SELECTORS)} There are: "
            f"{', '.join(SELECTORS)}."
        )
    return lambda: (cast("Any", picker.select()),)


def _drawn_features(space: ContextSpace, ranges: Mapping[str, str] | None) -> list[ContextFeature]:
    by_name = {feature.name: feature for feature in space.features}
    if not ranges:
        return [f for f in by_name.values() if _is_finite(f)]
    drawn: list[ContextFeature] = []
    for name, text in ranges.items():
        if name not in by_name:
            raise InvalidContext("; ".join(space.problems({name: None})) + ".")
        drawn.append(_narrowed(by_name[name], text))
    return drawn


def _narrowed(feature: ContextFeature, text: str) -> ContextFeature:
    if not text:
        return feature
    low, dots, high = text.partition("..")
    try:
        if not dots:
            choices = tuple(_scalar(feature, part) for part in text.split("|"))
            return _checked(feature, choices, {"choices": choices, "default": choices[0]})
        bounds = [_scalar(feature, low), _scalar(feature, high)]
        if isinstance(feature.default, bool | str) or feature.choices is not None:
            raise ValueError("it has no order; write its values as a|b")  # noqa: TRY301  # told below
        return _checked(
            feature, bounds, {"lower": bounds[0], "upper": bounds[1], "default": bounds[0]}
        )
    except (ValueError, ValidationError) as exc:
        reason = (
            exc.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            if isinstance(exc, ValidationError)
            else str(exc)
        )
        raise InvalidContext(f"{feature.name}={text}: {reason}.") from None


def _checked(
    feature: ContextFeature, values: Iterable[Scalar], changes: dict[str, Any]
) -> ContextFeature:
    for value in values:
        if wrong := feature.problem(value):
            raise ValueError(wrong)
    if changes.get("lower") is not None and changes["lower"] >= changes["upper"]:
        raise ValueError(f"the lower end is not below {changes['upper']!r}")
    return ContextFeature.model_validate({**feature.model_dump(), **changes})


def _scalar(feature: ContextFeature, text: str) -> Scalar:
    """Return a text's value in the feature's type, or raise `ValueError`."""
    text = text.strip()
    if isinstance(feature.default, str):
        return text
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ValueError(f"{text!r} is not a value of {feature.name}") from None
    return float(value) if isinstance(feature.default, float) and type(value) is int else value


def _is_finite(feature: ContextFeature) -> bool:
    bounded = feature.lower is not None and feature.upper is not None
    return bounded or feature.choices is not None or isinstance(feature.default, bool)


def _rows(data: bytes, where: str) -> list[tuple[str, Any]]:
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError:
        lines = read_json_lines(data, where, InvalidContext)
        return [(f"{where}:{number}", row) for number, row in lines]
    if isinstance(whole, list):
        rows = cast("list[Any]", whole)
        return [(f"{where}, item {i}", row) for i, row in enumerate(rows)]
    if not isinstance(whole, dict):
        raise InvalidContext(f"{where}: contexts are objects, not {type(whole).__name__}.")
    named = cast("dict[str, Any]", whole)
    if isinstance(named.get("context"), dict):  # a file of one line
        return [(where, named)]
    return [(f"{where}, {k!r}", {"name": k, "context": v}) for k, v in named.items()]


def _read_row(row: Any, where: str, number: int) -> NamedContext:
    if not isinstance(row, dict):
        raise InvalidContext(f"{where}: a context is an object, not {type(row).__name__}.")
    fields = cast("dict[str, Any]", row)
    try:
        return NamedContext.model_validate({"name": f"context-{number}", **fields})
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"][:2])
        known = list(NamedContext.model_fields)
        if first["type"] == "extra_forbidden":
            raise InvalidContext(
                f"{where}: there is no field {path!r}.{did_you_mean(path, known)} A context has: "
                f"{', '.join(known)}."
            ) from None
        raise InvalidContext(f"{where}: {path}: {first['msg'].lower()}.") from None


def _check_names(rows: Sequence[NamedContext], where: str) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.name in seen:
            raise InvalidContext(f"{where}: two contexts are called {row.name!r}.")
        seen.add(row.name)
