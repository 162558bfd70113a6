"""What a person changes in the address book: entries are saved, deleted and merged."""

import re
from typing import Any

from web_mail_changes import new_id

__all__ = ["EMAIL", "change_contacts"]

EMAIL = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+\.[A-Za-z]{2,}")
_MOST = 2_000

Row = dict[str, Any]


def change_contacts(box: Row, rest: str, given: Row) -> Any:
    """Save, delete or merge entries; a sentence says why it was refused."""
    if rest == "merge":
        return _merge(box, given)
    key, _, verb = rest.partition("/")
    old = next((c for c in box["contacts"] if c["id"] == key), None)
    if key and old is None:
        return "This entry is gone."
    if verb == "delete":
        box["contacts"].remove(old)
        return {"deleted": key}
    entry = _read_entry(given)
    if isinstance(entry, str):
        return entry
    if old is None:
        old = {"id": new_id(box, "C")}
        box["contacts"].append(old)
    old.update(entry)
    return old


def _read_entry(given: Row) -> Row | str:
    texts = {name: given.get(name, "") for name in ("name", "company", "notes")}
    lists = {name: given.get(name, []) for name in ("emails", "phones")}
    if not all(isinstance(value, str) and len(value) < _MOST for value in texts.values()):
        return "A name is a text."
    if not all(isinstance(v, list) and all(isinstance(e, str) for e in v) for v in lists.values()):
        return "Addresses and numbers are lists of texts."
    texts = {name: value.strip() for name, value in texts.items()}
    kept = {
        name: list(dict.fromkeys(each.strip() for each in value if each.strip()))
        for name, value in lists.items()
    }
    if not texts["name"]:
        return "Enter a name."
    wrong = [each for each in kept["emails"] if not EMAIL.fullmatch(each)]
    if wrong:
        return f"{wrong[0]!r} is no e-mail address."
    return {**texts, **kept}


def _merge(box: Row, given: Row) -> Any:
    ids, keep = given.get("ids"), given.get("keep")
    rows = [c for c in box["contacts"] if isinstance(ids, list) and c["id"] in ids]
    kept = next((c for c in rows if c["id"] == keep), None)
    if len(rows) < 2 or kept is None:  # noqa: PLR2004  # merging takes two
        return "Choose two entries or more, and which name stays."
    others = [c for c in rows if c is not kept]
    for name in ("emails", "phones"):
        kept[name] = list(dict.fromkeys(each for c in (kept, *others) for each in c[name]))
    for name in ("company", "notes"):
        kept[name] = next((c[name] for c in (kept, *others) if c[name]), "")
    box["contacts"] = [c for c in box["contacts"] if c is kept or c not in others]
    return kept
