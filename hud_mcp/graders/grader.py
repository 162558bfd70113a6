"""A grader that authors write: a class that measures something, and is awaited for a subscore."""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from pydantic_core import PydanticSerializationError, to_jsonable_python

from hud_mcp.base.text import clip_and_count
from hud_mcp.values.grade import SubScore

__all__ = ["Grader"]

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
