"""A grader that authors write, and grades of several parts: means, all or any, and checks."""

import inspect
import math
import warnings
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, ClassVar, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticSerializationError, to_jsonable_python

from hud_mcp.base.gathering import drop, gather
from hud_mcp.base.text import clip_and_count
from hud_mcp.graders.text import Compat
from hud_mcp.values.grade import Grade, SubScore

__all__ = [
    "Before",
    "EvaluationResult",
    "Grader",
    "SubScore",
    "combine",
    "combine_all",
    "combine_any",
    "grade_checks",
    "named_apart",
]


_PARAMETER_CHARS = 2_000
"""A text among the recorded parameters is no longer."""


class Grader:
    """A measurement of one thing. Subclass it, name it, and write `compute_score`.

    `await LengthGrader.grade(weight=0.5, answer=answer)` gives a `SubScore` for `combine`.
    """

    name: ClassVar[str] = "Grader"
    unrecorded: ClassVar[frozenset[str]] = frozenset()
    """Parameters whose values the record leaves out, because they may be secret."""

    @classmethod
    async def grade(cls, weight: float = 1.0, name: str | None = None, **kwargs: Any) -> SubScore:
        """Measure, and return the part of the grade.

        Args:
            weight: The part's weight among others; a negative weight makes it a penalty.
            name: The part's name; the grader's name by default.
            **kwargs: Arguments of `compute_score`. The part's `info` keeps them under
                `_parameters`, and cuts long texts.

        Raises:
            TypeError: `compute_score` did not return a score.
            Exception: `compute_score` raised it; the session is then `grading_failed`.

        If this call is cancelled, it ends the grader's processes.
        """
        measured = cls._read(await cls.compute_score(**kwargs))
        info = {**measured.info, "_parameters": _kept(kwargs, cls.unrecorded)}
        fields = {"name": name or cls.name, "weight": weight, "info": info}
        return SubScore.model_validate({**dict(measured), **fields})

    @classmethod
    async def compute_score(cls, **kwargs: Any) -> Any:
        """Measure: return a `SubScore`, a number from 0 to 1, or a number and its `info`.

        Raise an exception if you cannot measure; a score of 0 means that the agent failed.
        """
        raise NotImplementedError(f"{cls.__name__} has no compute_score; write an async one.")

    @classmethod
    def _read(cls, result: Any) -> SubScore:
        if isinstance(result, SubScore):
            return result
        info: Any = {}
        if isinstance(result, tuple):
            pair = cast("tuple[Any, ...]", result)
            result, info = pair if len(pair) == 2 else (None, None)  # noqa: PLR2004  # a pair
        if not isinstance(result, int | float) or not isinstance(info, Mapping | None):
            raise TypeError(
                f"{cls.__name__}.compute_score returned no score; return a SubScore, a number "
                "from 0 to 1, or (number, info)."
            )
        return SubScore(
            name=cls.name, value=float(result), info=dict(cast("Mapping[str, Any]", info or {}))
        )


def _kept(parameters: Mapping[str, Any], unrecorded: frozenset[str]) -> dict[str, Any]:
    """Return the arguments of a grader as JSON, with long texts cut."""
    shown = {k: "(not recorded)" if k in unrecorded else v for k, v in parameters.items()}
    try:
        plain = to_jsonable_python(shown, fallback=str)
    except (PydanticSerializationError, ValueError):  # something in it has no form in JSON
        plain = {key: repr(value) for key, value in shown.items()}
    return cast("dict[str, Any]", _cut(plain))


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return clip_and_count(value, _PARAMETER_CHARS, before="")
    if isinstance(value, dict):
        return {k: _cut(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_cut(each) for each in cast("list[Any]", value)]
    return value


_CLOSE = 0.01
"""The largest difference of weights and sums from their rule without a warning to the author."""


class EvaluationResult(BaseModel):
    """A grade under HUD's name, which may be changed until it is yielded.

    The session reads it as a `Grade`. A result with `isError` gives no reward: the session ends as
    `grading_failed`. Unknown fields become part of the grade's `info`.

    It warns if the positive weights of its subscores do not sum to 1, or if two share a name. It
    also warns if their weighted sum is not the reward.
    """

    model_config = ConfigDict(extra="allow")

    reward: float = Field(default=0.0, description="1 is full success, 0 none.")
    done: bool = Field(default=True, description="Whether the episode is over.")
    content: str | None = Field(default=None, description="One sentence that explains the reward.")
    info: dict[str, Any] = Field(default_factory=dict, description="Further facts.")
    isError: bool = Field(  # noqa: N815  # HUD's name, and the wire's
        default=False,
        validation_alias=AliasChoices("isError", "is_error"),
        description="Whether the grading itself failed.",
    )
    subscores: list[SubScore] | None = Field(default=None, description="Its parts.")

    @property
    def is_error(self) -> bool:
        """Whether the grading itself failed."""
        return self.isError

    @classmethod
    def from_float(cls, value: float) -> "EvaluationResult":
        """Return a result that has only a reward."""
        return cls(reward=value)

    @model_validator(mode="after")
    def _warn(self) -> "EvaluationResult":
        for text in _doubts(self.reward, self.subscores or ()):
            warnings.warn(text, stacklevel=2)
        return self


def _doubts(reward: float, parts: "list[SubScore] | tuple[()]") -> list[str]:
    if not parts:
        return []
    found: list[str] = []
    twice = sorted(name for name, count in Counter(p.name for p in parts).items() if count > 1)
    if twice:
        found.append(f"Several subscores are named {twice[0]!r}; give each a name of its own.")
    positive = math.fsum(p.weight for p in parts if p.weight > 0)
    if abs(positive - 1) > _CLOSE:
        found.append(f"The positive weights of the subscores sum to {positive:.4g}, not to 1.")
    total = math.fsum(p.value * p.weight for p in parts)
    if abs(total - reward) > _CLOSE:
        found.append(f"The subscores sum to {total:.4g}, and the reward is {reward:.4g}.")
    return found


_ORDER = " (order)"


class Before:
    """The state at the start of a task; reports later differences.

    Args:
        state: A JSON value, such as a site's state. `changes` reads it again.
        allowed: Paths that any task may change, such as `mail.open_folder`.
    """

    def __init__(self, state: Mapping[str, Any], *, allowed: Iterable[str] = ()) -> None:
        self._state = state
        self._allowed = tuple(allowed)
        self._then = _flatten(state)

    def changes(self, *, beside: Iterable[str] = ()) -> list[str]:
        """Return the paths that differ now, such as `admin.tickets.T-2009.status`, in order.

        Args:
            beside: Paths that the task asks to change, with everything below them. The row
                that holds one may also have another place among its like.
        """
        allowed = (*self._allowed, *beside)
        then, now = self._then, _flatten(self._state)
        differing = {p for p in then.keys() | now.keys() if then.get(p) != now.get(p)}
        found = {p for p in differing if not any(_is_below(p, a) for a in allowed)}
        for path in [p for p in found if p.endswith(_ORDER)]:
            rows = path.removesuffix(_ORDER)
            earlier, later = then.get(path, ()), now.get(path, ())
            moved = {k for k in earlier if any(_is_below(a, f"{rows}.{k}") for a in allowed)}
            kept = set(earlier) & set(later) - moved
            if [k for k in earlier if k in kept] == [k for k in later if k in kept]:
                found.remove(path)
        return sorted(found)


def grade_checks(
    checks: Mapping[str, bool | float],
    side_effects: Iterable[str] = (),
    **more: bool | float,
) -> Grade:
    """Return the mean of the checks; half of it if the agent changed something else too.

    Args:
        checks: Each part of the task, with whether it holds, or to which degree.
        side_effects: Unwanted differences, as `Before.changes` returns them.
        more: Further parts by name.

    Raises:
        ValueError: There is no check, so nothing can be graded.
    """
    checks = {**checks, **more}
    if not checks:
        raise ValueError("grade_checks needs one check or more; name each part that was asked for")
    effects = list(side_effects)
    share = fmean(float(value) for value in checks.values())
    parts = [
        SubScore(name=name, value=float(value), weight=1 / len(checks))
        for name, value in checks.items()
    ]
    if effects:
        info = {"changed": effects[:20]}
        parts.append(SubScore(name="side_effects", value=1, weight=-share / 2, info=info))
    missing = [name for name, value in checks.items() if float(value) < 1]
    text = f"Not as asked: {', '.join(missing)}" if missing else "Everything is as asked"
    if effects:
        text += f"; something else changed too: {', '.join(effects[:3])}"
    reward = share / 2 if effects else share
    return Grade(reward=reward, subscores=tuple(parts), content=f"{text}.")


def _flatten(value: Any, path: str = "") -> dict[str, Any]:
    """Return every leaf by its path. Rows with an `id` or a `number` have it in their path."""
    flat: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    if isinstance(value, Mapping):
        rows = {str(k): v for k, v in cast("Mapping[Any, Any]", value).items()}
    elif isinstance(value, list) and all(_key(row) for row in cast("list[Any]", value)):
        rows = {str(_key(row)): row for row in cast("list[Any]", value)}
        flat[f"{path}{_ORDER}"] = tuple(rows)
    else:
        return {path: repr(cast("Any", value))}
    for name, row in rows.items():
        flat |= _flatten(row, f"{path}.{name}" if path else name)
    return flat


def _key(row: Any) -> Any:
    if not isinstance(row, Mapping):
        return None
    fields = cast("Mapping[str, Any]", row)
    return fields.get("id") or fields.get("number")


def _is_below(path: str, parent: str) -> bool:
    return path == parent or path.startswith((f"{parent}.", f"{parent}{_ORDER}"))


async def combine(
    *items: SubScore | Awaitable[SubScore], compat: Compat = "strict"
) -> EvaluationResult:
    """Wait for all parts at once, and combine them into a result that a template may yield.

    It scales positive weights to sum to 1; a negative weight is a penalty, and stays as it is. It
    numbers parts of the same name. Penalties lower the reward to 0 at most; `info` then has the
    unlimited value as `reward_before_floor`.

    Args:
        *items: Subscores, or awaitables of them, such as `BashGrader.grade(…)`.
        compat: `hud` lets penalties take the reward below 0.

    Raises:
        TypeError: An item is neither, or gives something else. Nothing was awaited, or the others
            were cancelled.
        ValueError: There is no item, or none with a positive weight.
        Exception: The first exception of a part; the others were cancelled and have ended.

    If this call is cancelled, it cancels all parts and waits for their end.
    """
    parts = await _resolved(items)
    total = math.fsum(part.weight for part in parts if part.weight > 0)
    if total <= 0:
        raise ValueError("combine() needs at least one part with a positive weight")
    if abs(total - 1) > _CLOSE:
        warnings.warn(
            f"The positive weights sum to {total:.4g}, not to 1; each is divided by that. "
            "Make them sum to 1 to silence this.",
            stacklevel=2,
        )
    scaled = [
        part.model_copy(update={"weight": part.weight / total}) if part.weight > 0 else part
        for part in named_apart(parts)
    ]
    # Divided at the end, so that all of everything is 1 and not just below it.
    reward = math.fsum(part.value * part.weight for part in parts if part.weight > 0) / total
    reward = math.fsum([reward, *(part.value * part.weight for part in parts if part.weight < 0)])
    info: dict[str, Any] = {}
    if reward < 0 and compat == "strict":
        info, reward = {"reward_before_floor": reward}, 0.0
    # The weights are right now, and a floor is meant: nothing here for an author to be warned of.
    return EvaluationResult.model_construct(
        reward=reward, done=True, content=None, info=info, isError=False, subscores=scaled
    )


def combine_any(weight: float, subscores: Sequence[SubScore], *, name: str = "any") -> SubScore:
    """Return one part with the highest value of several; they are its children.

    Raises:
        ValueError: There are none.
    """
    return _folded("combine_any", weight, subscores, name, max)


def combine_all(weight: float, subscores: Sequence[SubScore], *, name: str = "all") -> SubScore:
    """Return one part with the lowest value of several; they are its children.

    Raises:
        ValueError: There are none.
    """
    return _folded("combine_all", weight, subscores, name, min)


def _folded(called: str, weight: float, given: Iterable[Any], name: str, of: Any) -> SubScore:
    parts = list(given)
    for part in parts:
        if not isinstance(part, SubScore):
            drop(parts)
            raise TypeError(
                f"{called}() takes subscores, got {type(part).__name__}; await graders first."
            )
    if not parts:
        raise ValueError(f"{called}() needs at least one subscore")
    value = of(part.value for part in parts)
    return SubScore(name=name, value=value, weight=weight, children=tuple(named_apart(parts)))


async def _resolved(items: Sequence[Any]) -> list[SubScore]:
    if not items:
        raise ValueError("combine() needs at least one part")
    for item in items:
        if not isinstance(item, SubScore) and not inspect.isawaitable(item):
            drop(items)
            raise TypeError(f"combine() takes subscores and awaitables of them, got {item!r:.80}")
    try:
        waited = iter(await gather([_part(i) for i in items if not isinstance(i, SubScore)]))
    finally:
        drop(items)
    return [item if isinstance(item, SubScore) else next(waited) for item in items]


async def _part(item: Awaitable[Any]) -> SubScore:
    given = await item
    if not isinstance(given, SubScore):
        raise TypeError(f"A part of combine() gave {given!r:.80}; a grader gives a SubScore.")
    return given


def named_apart(parts: Sequence[SubScore]) -> list[SubScore]:
    """Return the parts, with numbers for those that share a name: `a-1`, `a-2`."""
    counts = Counter(part.name for part in parts)
    used = set(counts)
    numbers: Counter[str] = Counter()
    found: list[SubScore] = []
    for part in parts:
        name = part.name
        if counts[name] > 1:
            while name in used:
                numbers[part.name] += 1
                name = f"{part.name}-{numbers[part.name]}"
            used.add(name)
        found.append(part.model_copy(update={"name": name}))
    return found
