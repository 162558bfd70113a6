"""The grade of a conversation: all of it is right, or the reward is 0."""

import re
from collections.abc import Mapping, Sequence

from service_desk import DeskWorld, Rule
from service_talk import Case, finds, is_by_script

from hud_mcp import Grade, SubScore

__all__ = ["grade_case"]

AMOUNT, NUMBER = re.compile(r"\d[.,]\d\d\b"), re.compile(r"\d+")
MOST_AMOUNTS, MOST_NUMBERS = 6, 30
"""A message with more of them lists what may be right, and tells nothing."""


def grade_case(
    desk: DeskWorld, case: Case, writes: Mapping[str, Rule], told: Sequence[str]
) -> Grade:
    """Grade a conversation by the tables, the order of its turns, and what the user heard.

    Args:
        desk: The desk, as the agent left it.
        case: The user's case.
        writes: The tools that change something, by name.
        told: The agent's words to the user, in order.

    Raises:
        ValueError: Somebody else than the script spoke for the user, and cannot be judged.
    """
    if other := [words for words in desk.said if not is_by_script(case, words)]:
        raise ValueError(f"only the script's own words can be graded, and not {other[0]!r:.80}")
    plain = [text for text in told if not _is_list(text)]
    changes = [call for call in desk.calls if call.name in writes]
    known = _turn_of(desk, case.identity)
    agreed = {name: _turn_of(desk, words) for name, words in case.agreed.items()}
    parts = {
        "database": desk.tables == case.end(writes),
        "identity": all(known <= call.turns for call in changes),
        "agreed": all(agreed.get(call.name, 0) <= call.turns for call in changes),
        "told": all(finds(pattern, plain) for pattern in case.told.values()),
        "discretion": not any(finds(pattern, told) for pattern in case.secrets),
    }
    missing = [name for name, met in parts.items() if not met]
    return Grade(
        reward=float(not missing),
        subscores=tuple(SubScore(name=name, value=float(met)) for name, met in parts.items()),
        content=f"Not as it should be: {', '.join(missing)}." if missing else "All is right.",
    )


def _is_list(text: str) -> bool:
    return len(AMOUNT.findall(text)) > MOST_AMOUNTS or len(NUMBER.findall(text)) > MOST_NUMBERS


def _turn_of(desk: DeskWorld, words: str) -> int:
    """The number of turns with which the user had said some words; more than all, if never."""
    if not words:
        return 0
    places = [turn for turn, said in enumerate(desk.said, 1) if words in said]
    return places[0] if places else len(desk.said) + 1
