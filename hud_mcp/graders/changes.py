"""What a task has changed in a state, and the grade that follows from it."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, cast

from hud_mcp.values.grade import Grade, SubScore

__all__ = ["Before", "grade_checks"]

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
        """The paths that differ now, such as `admin.tickets.T-2009.status`, in order.

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


def grade_checks(checks: Mapping[str, bool | float], side_effects: Iterable[str] = ()) -> Grade:
    """The mean of the checks; half of it if the agent changed something else too.

    Args:
        checks: Each part of the task, with whether it holds, or to which degree.
        side_effects: Unwanted differences, as `Before.changes` returns them.

    Raises:
        ValueError: There is no check, so nothing can be graded.
    """
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
    """Every leaf by its path; rows with an `id` or a `number` go by it, their order beside them."""
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
