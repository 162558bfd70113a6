"""What a user of the wiki may change: texts, titles, the watchlist."""

import re
from collections.abc import Callable
from typing import Any

from web_wiki_data import TODAY, find_page
from web_wiki_markup import differences, links_of, redirect_of, tidy_title

from hud_mcp import SiteResponse

__all__ = ["CHANGES", "add_revision"]

_MOST_TEXT, _MOST_TITLE, _MOST_SUMMARY = 40_000, 80, 200
_FORBIDDEN = re.compile(r"[\[\]{}|#<>\n]")


class _Refused(Exception):
    """What a form says cannot be done; nothing has changed."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.reply = SiteResponse(status=status, json={"error": text})


def _words(given: dict[str, Any], name: str, most: int = _MOST_SUMMARY) -> str:
    value = given.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise _Refused(f"The field {name!r} must be a text of {most} characters at most.")
    return value


def _title(given: dict[str, Any], name: str = "title") -> str:
    title = tidy_title(_words(given, name, 10 * _MOST_TITLE))
    if not title or title == "Talk:":
        raise _Refused("Enter a title.")
    if len(title) > _MOST_TITLE or _FORBIDDEN.search(title) or title.startswith("Category:"):
        raise _Refused("A title has 80 characters at most, and none of [ ] { } | # < >.")
    return title


def _existing(wiki: dict[str, Any], title: str) -> dict[str, Any]:
    page = find_page(wiki, title)
    if page is None:
        raise _Refused(f"There is no page “{title}”.", 404)
    return page


def add_revision(
    wiki: dict[str, Any], title: str, text: str, summary: str, *, minor: bool, user: str = ""
) -> int:
    """Store a new revision, of a new page where there is none; its number comes after all.

    Args:
        wiki: The wiki's state.
        title: The page's title.
        text: Its new text.
        summary: What the user says of the edit.
        minor: Whether the edit is marked as a small one.
        user: The user's name; empty for the one that is signed in.
    """
    page = find_page(wiki, title)
    if page is None:
        page = {"id": title, "revisions": []}
        wiki["pages"].append(page)
        wiki["pages"].sort(key=lambda each: each["id"])
    rows = [row for each in wiki["pages"] for row in each["revisions"]]
    number = max((row["id"] for row in rows), default=0) + 1
    today = sum(row["time"].startswith(TODAY) for row in rows)
    clock = f"{9 + today // 60:02d}:{today % 60:02d}" if today < 14 * 60 else "23:00"
    page["revisions"].append(
        {
            "id": number,
            "user": user or wiki["user"],
            "time": f"{TODAY} {clock}",
            "summary": summary.strip(),
            "minor": minor,
            "text": text,
        }
    )
    return number


def _clean(text: str) -> str:
    """A text as it is stored: lines end alike, and no blanks stand at their ends."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _save(wiki: dict[str, Any], given: dict[str, Any]) -> Any:
    title, summary = _title(given), _words(given, "summary")
    text = _clean(_words(given, "text", _MOST_TEXT))
    if not text.strip():
        raise _Refused("The page would be empty. Write something.")
    page = find_page(wiki, title)
    newest = page["revisions"][-1] if page else None
    if given.get("base") != (newest["id"] if newest else None):
        raise _Refused("Somebody has changed the page meanwhile. Open the editor anew.", 409)
    if newest and text == _clean(newest["text"]):
        raise _Refused("You have not changed anything.")
    number = add_revision(wiki, title, text, summary, minor=given.get("minor") is True)
    if given.get("watch") is True and title not in wiki["watchlist"]:
        wiki["watchlist"].append(title)
    return {"title": title, "revision": number}


def _restore(wiki: dict[str, Any], given: dict[str, Any]) -> Any:
    """Make an earlier revision the newest: whatever came after it is gone from the text."""
    page = _existing(wiki, _title(given))
    wanted = given.get("revision")
    row = next((row for row in page["revisions"] if row["id"] == wanted), None)
    if row is None:
        raise _Refused("This page has no such revision.", 404)
    if row["text"] == page["revisions"][-1]["text"]:
        raise _Refused("This revision is the same as the newest one.")
    summary = f"Restore revision {row['id']} of {row['user']}"
    number = add_revision(wiki, page["id"], row["text"], summary, minor=False)
    return {"title": page["id"], "revision": number}


def _move(wiki: dict[str, Any], given: dict[str, Any]) -> Any:
    """Give a page another title; its history and its talk page go with it, a redirect stays."""
    old, new, reason = _title(given), _title(given, "to"), _words(given, "reason")
    page = _existing(wiki, old)
    if new == old:
        raise _Refused("The new title is the old one.")
    if old.startswith("Talk:") != new.startswith("Talk:"):
        raise _Refused("A talk page stays a talk page, and an article an article.")
    _make_room(wiki, old, new)
    summary = f"Move “{old}” to “{new}”" + (f": {reason.strip()}" if reason.strip() else "")
    talk = find_page(wiki, f"Talk:{old}")
    page["id"] = new
    add_revision(wiki, new, page["revisions"][-1]["text"], summary, minor=True)
    add_revision(wiki, old, f"#REDIRECT [[{new}]]", summary, minor=False)
    if talk and find_page(wiki, f"Talk:{new}") is None:
        talk["id"] = f"Talk:{new}"
    wiki["watchlist"] = [new if each == old else each for each in wiki["watchlist"]]
    wiki["pages"].sort(key=lambda each: each["id"])
    return {"title": new, "links": sum(_links_to(each, old) for each in wiki["pages"])}


def _make_room(wiki: dict[str, Any], old: str, new: str) -> None:
    there = find_page(wiki, new)
    if there is None:
        return
    only = there["revisions"][0] if len(there["revisions"]) == 1 else None
    if only is None or redirect_of(only["text"]) != old:
        raise _Refused(f"There is a page “{new}” already. Choose another title.", 409)
    wiki["pages"].remove(there)


def _links_to(page: dict[str, Any], title: str) -> bool:
    return title in links_of(page["revisions"][-1]["text"])


def _watch(wiki: dict[str, Any], given: dict[str, Any]) -> Any:
    title = _title(given)
    _existing(wiki, title)
    if not isinstance(given.get("watched"), bool):
        raise _Refused("Say whether the page is to be watched: true or false.")
    wiki["watchlist"] = [each for each in wiki["watchlist"] if each != title]
    if given["watched"]:
        wiki["watchlist"].append(title)
    return {"title": title, "watched": given["watched"]}


def _discuss(wiki: dict[str, Any], given: dict[str, Any]) -> Any:
    """Add a topic to a talk page, signed and dated."""
    title = _title(given)
    heading, words = _words(given, "heading").strip(), _clean(_words(given, "text", _MOST_TEXT))
    if not title.startswith("Talk:"):
        raise _Refused("Topics are for talk pages.")
    if not heading or not words.strip():
        raise _Refused("Write a heading and a text.")
    page = find_page(wiki, title)
    earlier = f"{page['revisions'][-1]['text']}\n\n" if page else ""
    topic = f"== {' '.join(heading.split())} ==\n{words}\n\n— {wiki['user']}, {TODAY}"
    number = add_revision(wiki, title, f"{earlier}{topic}", heading, minor=False)
    return {"title": title, "revision": number}


def _preview(wiki: dict[str, Any], given: dict[str, Any]) -> Any:
    """Say what an unsaved text changes, and links to in vain; nothing is stored."""
    there = {page["id"] for page in wiki["pages"]}
    text, page = _clean(_words(given, "text", _MOST_TEXT)), find_page(wiki, _title(given))
    newest = page["revisions"][-1]["text"] if page else ""
    missing = [title for title in links_of(text) if title not in there]
    return {"missing": missing, "rows": differences(newest, text)}


def _refusing(
    change: Callable[[dict[str, Any], dict[str, Any]], Any],
) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    """A change whose refusal is a reply."""

    def changed(wiki: dict[str, Any], given: dict[str, Any]) -> Any:
        try:
            return change(wiki, given)
        except _Refused as refused:
            return refused.reply

    return changed


CHANGES = {
    "save": _refusing(_save),
    "restore": _refusing(_restore),
    "move": _refusing(_move),
    "watch": _refusing(_watch),
    "discuss": _refusing(_discuss),
    "preview": _refusing(_preview),
}
"""What may be posted, by its path: each takes the site's state and what was sent."""
