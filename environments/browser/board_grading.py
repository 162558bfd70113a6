"""What the board's tasks expect of its state at their end."""

from datetime import date
from typing import Any

from board_data import COLUMNS
from site_grading import Before

from hud_mcp import Grade, grade_checks

__all__ = [
    "advance",
    "archived",
    "archivist",
    "find_card",
    "grade_archive",
    "grade_columns",
    "grade_move",
    "grade_new_card",
    "long_date",
]


def find_card(board: dict[str, Any], title: str, *, outside: str) -> dict[str, Any]:
    """The card of a title.

    Raises:
        ValueError: It is in the column `outside`, where a task wants to have it moved.
    """
    found = next(c for c in board["cards"] if c["title"] == title)
    if found["column"] == outside:
        raise ValueError(f"the card {title!r} is in {outside} already")
    return found


def grade_move(
    board: dict[str, Any], before: Before, key: str, *, column: str, place: str
) -> Grade:
    """Grade that a card is at the top or the bottom of a column, and all others where they were.

    Args:
        board: The board's state.
        before: The state when the task began.
        key: The card's id.
        column: Where it is to be.
        place: `top` or `bottom`.
    """
    in_column = [c["id"] for c in board["cards"] if c["column"] == column]
    end = 0 if place == "top" else -1
    checks = {
        "column": key in in_column,
        f"{place} of the column": key in in_column and in_column[end] == key,
    }
    return grade_checks(checks, before.changes(beside=[f"board.cards.{key}.column"]))


def grade_new_card(
    board: dict[str, Any], before: Before, known: set[str], wanted: dict[str, str]
) -> Grade:
    """Grade that exactly one card was added, with these fields."""
    added = [c for c in board["cards"] if c["id"] not in known]
    card = next((c for c in added if c["title"] == wanted["title"]), added[0] if added else {})
    checks = {name: card.get(name) == value for name, value in wanted.items()}
    own = [f"board.cards.{card['id']}"] if card else []
    return grade_checks(checks, before.changes(beside=[*own, "board.next"]))


def grade_archive(board: dict[str, Any], before: Before, ids: list[str]) -> Grade:
    """Grade how many of some cards are off the board, and that all others are as they were."""
    left = {c["id"] for c in board["cards"]}
    share = sum(key not in left for key in ids) / len(ids)
    effects = before.changes(beside=[f"board.cards.{key}" for key in ids])
    return grade_checks({f"{len(ids)} cards archived": share}, effects)


def grade_columns(board: dict[str, Any], before: Before, wanted: dict[str, str]) -> Grade:
    """Grade that cards are in the columns that they were to be moved to."""
    now = {c["id"]: c["column"] for c in board["cards"]}
    titles = {c["id"]: c["title"] for c in board["cards"]}
    checks = {titles.get(key, key): now.get(key) == column for key, column in wanted.items()}
    return grade_checks(
        checks, before.changes(beside=[f"board.cards.{key}.column" for key in wanted])
    )


def advance(board: dict[str, Any], label: str) -> dict[str, str]:
    """The next column of each card with a label that is not done, by the card's id.

    Raises:
        ValueError: There is no such card.
    """
    moves = {
        c["id"]: COLUMNS[COLUMNS.index(c["column"]) + 1]
        for c in board["cards"]
        if c["label"] == label and c["column"] != COLUMNS[-1]
    }
    if not moves:
        raise ValueError(f"no card with the label {label} is left to move")
    return moves


def archived(board: dict[str, Any]) -> tuple[str, ...]:
    """The cards that were archived, as the log says."""
    return tuple(e["card"] for e in board["activity"] if e["verb"] == "archived")


def archivist(board: dict[str, Any], card: str) -> str:
    """Who archived a card."""
    entries = (e for e in board["activity"] if e["verb"] == "archived")
    return next(e["who"] for e in entries if e["card"] == card)


def long_date(iso: str) -> str:
    """A date as people write it: `15 July 2026`.

    Raises:
        ValueError: There is no such day.
    """
    day = date.fromisoformat(iso)
    return f"{day.day} {day:%B %Y}"
