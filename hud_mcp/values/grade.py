"""The grade of a finished task: a reward, its parts, a sentence; never a default."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Annotated, Any, cast

from pydantic import AliasChoices, BeforeValidator, Field, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from hud_mcp.base.text import clip_repr
from hud_mcp.errors import GradingFailed
from hud_mcp.values.action import Value
from hud_mcp.values.outcome import Cause, Outcome, cause_of

__all__ = ["Cause", "Grade", "Outcome", "SubScore", "cause_of", "read_grade"]


def _without_none(default: Any) -> BeforeValidator:
    """Read None, which HUD's wire and classes have for nothing, as the empty value."""
    return BeforeValidator(lambda given: default if given is None else given)


Info = Annotated[dict[str, Any], _without_none({})]
"""Further facts; None means none."""


class SubScore(Value):
    """One part of a grade: a measurement, or a combination of its children.

    `metadata`, HUD's older name, is read as `info`; None is read as empty.
    """

    name: str = Field(min_length=1)
    value: float = Field(ge=0, le=1, allow_inf_nan=False)
    weight: float = Field(default=1.0, allow_inf_nan=False)
    children: Annotated[tuple["SubScore", ...], _without_none(())] = ()
    info: Info = Field(default_factory=dict, validation_alias=AliasChoices("info", "metadata"))

    @property
    def metadata(self) -> dict[str, Any]:
        """HUD's older name of `info`."""
        return self.info

    @property
    def score(self) -> float:
        """HUD's older name of `value`."""
        return self.value

    @property
    def shown_children(self) -> tuple["SubScore", ...]:
        """The children that an agent may see; none if `info` says that they are private."""
        return () if self.info.get("children_private") is True else self.children

    def to_summary(self) -> dict[str, Any]:
        """The part and its children as JSON, without `info`."""
        children = [child.to_summary() for child in self.children]
        return {"name": self.name, "weight": self.weight, "value": self.value, "children": children}


class Grade(Value):
    """The result that a template yields at its end.

    A grade with `is_error` (HUD's `isError`) gives no reward: the session is `grading_failed`.
    """

    reward: float = Field(allow_inf_nan=False, description="Finite; 1 is full success, 0 none.")
    subscores: Annotated[tuple[SubScore, ...], _without_none(())] = ()
    content: str | None = Field(default=None, description="One sentence that explains the reward.")
    info: Info = Field(default_factory=dict)
    done: bool = Field(default=True, description="HUD's field; a task here is always over.")
    is_error: bool = Field(
        default=False,
        validation_alias=AliasChoices("is_error", "isError"),
        description="Whether the grading itself failed.",
    )


def read_grade(value: Any, *, where: str) -> Grade:
    """Read the grade that a template yielded, at a file and line.

    It is a number (True is 1.0), a `Grade`, or a mapping with a numeric `score` or `reward`. It may
    be any object with a numeric `reward`, such as an `EvaluationResult`.

    Raises:
        GradingFailed: The value is none of these, is not finite, or reports that grading failed.
    """
    if isinstance(value, Grade):
        return _checked(value, where)
    fields = _fields(value)
    if fields is None:
        raise GradingFailed(
            f"{where}: the template yielded {_shown(value)} as its grade; yield a number, a Grade, "
            "or a dict with a numeric 'score'."
        )
    reward = fields["reward"]
    if not isinstance(reward, Real) or not _is_finite(reward):
        raise GradingFailed(
            f"{where}: the template yielded {_shown(reward)} as its reward; a reward is a finite "
            "number."
        )
    try:
        grade = Grade.model_validate({**fields, "reward": float(reward)})
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        path = ".".join(str(p) for p in first["loc"])
        raise GradingFailed(
            f"{where}: the grade's {path}: {first['msg'].lower()}, got {_shown(first['input'])}."
        ) from None
    return _checked(grade, where)


def _checked(grade: Grade, where: str) -> Grade:
    """Return a grade that is not an error, with its subscores' `info` as JSON."""
    if grade.is_error:
        said = f" It says: {grade.content}" if grade.content else ""
        raise GradingFailed(f"{where}: the grade reports that the grading failed.{said}")
    if not grade.subscores:
        return grade
    try:
        parts = tuple(_as_json(part) for part in grade.subscores)
        return grade.model_copy(update={"subscores": parts})
    except (PydanticSerializationError, ValueError) as exc:
        raise GradingFailed(
            f"{where}: a subscore's info cannot be kept as JSON: {exc}. Use plain data in it."
        ) from None


def _as_json(part: SubScore) -> SubScore:
    info = to_jsonable_python(part.info, fallback=str) if part.info else part.info
    children = tuple(_as_json(child) for child in part.children)
    return part.model_copy(update={"info": info, "children": children})


_PARTS: dict[str, Any] = {
    "subscores": (list, tuple),
    "content": str,
    "info": Mapping,
    "done": bool,
    "is_error": bool,
    "isError": bool,
}
"""The fields of a grade, and an object's attributes with the same meaning."""


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, Real):
        return {"reward": value}
    if isinstance(value, Mapping):
        given = dict(cast("Mapping[str, Any]", value))
        if "reward" not in given and "score" not in given:
            return None
        reward = given.pop("score", None)
        reward = given.pop("reward", reward)
        known = {k: given.pop(k) for k in _PARTS if k in given}
    elif isinstance(getattr(value, "reward", None), Real):
        reward = value.reward
        known = {k: v for k, of in _PARTS.items() if isinstance(v := getattr(value, k, None), of)}
        extra = getattr(value, "model_extra", None)  # pydantic keeps other fields there
        given = dict(cast("Mapping[str, Any]", extra)) if isinstance(extra, Mapping) else {}
    else:
        return None
    failed = [known.pop(k) for k in ("is_error", "isError") if k in known]
    known["is_error"] = next((flag for flag in failed if flag), False)
    if known.get("done", True) is not True:  # beside the field, for readers of the receipt
        given["done"] = known.pop("done")
        known["done"] = given["done"] is not False
    known["info"] = {} if known.get("info") is None else known["info"]
    if isinstance(known["info"], Mapping):  # the check reports any other value
        known["info"] = {**cast("Mapping[str, Any]", known["info"]), **given}
    known["subscores"] = _plain(known.get("subscores"))
    return {**known, "reward": reward}


def _plain(parts: Any) -> Any:
    """Return subscores for the check: another library's objects become mappings."""
    if not isinstance(parts, list | tuple):
        return parts if parts is not None else ()
    found: list[Any] = []
    for part in cast("list[Any]", parts):
        if isinstance(part, SubScore | Mapping) or not hasattr(part, "value"):
            found.append(part)
            continue
        fields = {k: getattr(part, k) for k in SubScore.model_fields if hasattr(part, k)}
        found.append({**fields, "children": _plain(fields.get("children"))})
    return found


def _is_finite(number: Real) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer beyond floats
        return False


def _shown(value: Any) -> str:
    return clip_repr(value, 80)
