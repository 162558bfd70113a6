"""The project board's server side: cards, their order, and the log of activity."""

from datetime import date
from typing import Any

from board_data import COLUMNS, LABELS, PEOPLE
from site_day import TODAY

from hud_mcp import SiteRequest, SiteResponse

__all__ = ["LOG_SIZE", "board_api"]

LOG_SIZE = 20
"""How many entries of the log one request returns."""


async def board_api(path: str, request: SiteRequest, state: dict[str, Any]) -> Any:
    """Answer a request for what lies under `/api/board/`.

    Args:
        path: What follows that prefix.
        request: The request.
        state: The session's state; `state["board"]` is read and changed.
    """
    board = state["board"]
    if request.method == "GET":
        return _read(path, request.query, board)
    given = request.json if isinstance(request.json, dict) else {}
    if path == "cards":
        return _create(board, given)
    key, _, verb = path.removeprefix("cards/").partition("/")
    card = next((c for c in board["cards"] if c["id"] == key), None)
    change = {"": _save, "move": _move, "copy": _copy, "archive": _archive}.get(verb)
    return change(board, card, given) if card and change else None


def _read(path: str, query: dict[str, str], board: dict[str, Any]) -> Any:
    if path == "cards":
        return {
            "cards": board["cards"],
            "columns": COLUMNS,
            "labels": LABELS,
            "people": PEOPLE,
            "today": TODAY,
        }
    if path == "activity":
        asked = query.get("from", "0")
        first = int(asked) if asked.isdigit() else 0
        entries = board["activity"][first : first + LOG_SIZE]
        return {"entries": entries, "more": first + LOG_SIZE < len(board["activity"])}
    return None


def _create(board: dict[str, Any], given: dict[str, Any]) -> Any:
    if errors := _errors(given):
        return SiteResponse(status=422, json={"error": "Please check the card.", "fields": errors})
    column = given.get("column") if given.get("column") in COLUMNS else COLUMNS[0]
    card = {"id": f"K{board['next']}", "column": column, **_fields(given)}
    board["next"] += 1
    board["cards"].append(card)
    return card


def _save(_board: dict[str, Any], card: dict[str, Any], given: dict[str, Any]) -> Any:
    if errors := _errors(given):
        return SiteResponse(status=422, json={"error": "Please check the card.", "fields": errors})
    card.update(_fields(given))
    return card


def _move(board: dict[str, Any], card: dict[str, Any], given: dict[str, Any]) -> Any:
    column, place = given.get("column"), given.get("place")
    if column not in COLUMNS:
        return SiteResponse(status=422, json={"error": "There is no such column."})
    board["cards"].remove(card)
    card["column"] = column
    others = [i for i, c in enumerate(board["cards"]) if c["column"] == column]
    inside = isinstance(place, int) and not isinstance(place, bool) and 0 <= place < len(others)
    board["cards"].insert(others[place] if inside else len(board["cards"]), card)
    return card


def _copy(board: dict[str, Any], card: dict[str, Any], _given: dict[str, Any]) -> Any:
    copy = {**card, "id": f"K{board['next']}", "title": f"{card['title']} (copy)"}
    board["next"] += 1
    board["cards"].insert(board["cards"].index(card) + 1, copy)
    return copy


def _archive(board: dict[str, Any], card: dict[str, Any], _given: dict[str, Any]) -> Any:
    board["cards"].remove(card)
    return {"archived": card["id"]}


def _fields(given: dict[str, Any]) -> dict[str, str]:
    return {k: str(given.get(k) or "").strip() for k in ("title", "label", "owner", "due")}


def _errors(given: dict[str, Any]) -> dict[str, str]:
    fields = _fields(given)
    errors: dict[str, str] = {}
    if not fields["title"]:
        errors["title"] = "Enter a title."
    if fields["label"] not in LABELS:
        errors["label"] = "Choose a label."
    if fields["owner"] and fields["owner"] not in PEOPLE:
        errors["owner"] = "Choose one of the people."
    if fields["due"] and not _is_date(fields["due"]):
        errors["due"] = "Pick a day from the calendar."
    return errors


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
