"""The wiki's server side: pages are read, edited, moved and watched here."""

import re
from typing import Any

from web_wiki_change import CHANGES
from web_wiki_data import find_page
from web_wiki_markup import (
    categories_of,
    differences,
    headings_of,
    links_of,
    plain,
    redirect_of,
    tidy_title,
    undone,
)

from hud_mcp import SiteRequest, SiteResponse

__all__ = ["PER_PAGE", "wiki_api"]

PER_PAGE = 8
"""How many results of a search a page shows."""
_RECENT = 40
_AROUND = 70
_SHORT = 3


async def wiki_api(path: str, request: SiteRequest, state: dict[str, Any]) -> Any:
    """Answer a request for what lies under `/api/wiki/`; a change is a POST, and no other is.

    Args:
        path: What follows that prefix.
        request: The request.
        state: The site's own state; it is read and changed.
    """
    if request.method == "POST":
        given = request.json
        change = CHANGES.get(path)
        if change is None:
            return None
        return change(state, given) if isinstance(given, dict) else _bad("Send a JSON object.")
    read = _READS.get(path)
    return read(state, dict(request.query)) if read else None


def _bad(text: str, status: int = 400) -> SiteResponse:
    return SiteResponse(status=status, json={"error": text})


def _site(wiki: dict[str, Any], _query: dict[str, str]) -> Any:
    articles = [page for page in wiki["pages"] if _is_article(page)]
    return {
        **{name: wiki[name] for name in ("name", "region", "today", "user")},
        "articles": len(articles),
        "watched": len(wiki["watchlist"]),
    }


def _page(wiki: dict[str, Any], query: dict[str, str]) -> Any:
    """A page to read: a redirect is followed once, unless it is asked for itself."""
    title = tidy_title(query.get("title", ""))
    page = find_page(wiki, title)
    came_from = None
    if page and "redirect" not in query and "revision" not in query:
        target = redirect_of(_newest(page)["text"])
        onward = find_page(wiki, target) if target else None
        if onward:
            came_from, page, title = title, onward, onward["id"]
    shown = _newest(page) if page else None
    if page and "revision" in query:
        shown = _revision(page, query["revision"])
        if shown is None:
            return _bad("This page has no such revision.", 404)
    text = shown["text"] if shown else ""
    talk = f"Talk:{title.removeprefix('Talk:')}"
    return {
        "title": title,
        "exists": page is not None,
        "came_from": came_from,
        "redirect": redirect_of(text),
        "revision": shown,
        "newest": _newest(page)["id"] if page else None,
        "categories": categories_of(text),
        "missing": _missing(wiki, text),
        "talk": len(headings_of(_text(wiki, talk))),
        "watched": title in wiki["watchlist"],
    }


def _missing(wiki: dict[str, Any], text: str) -> list[str]:
    there = {page["id"] for page in wiki["pages"]}
    return [title for title in links_of(text) if title not in there]


def _history(wiki: dict[str, Any], query: dict[str, str]) -> Any:
    page = find_page(wiki, tidy_title(query.get("title", "")))
    if page is None:
        return _bad("There is no such page.", 404)
    before = [{"text": ""}, *page["revisions"]]
    rows = [
        {
            **{name: row[name] for name in ("id", "user", "time", "summary", "minor")},
            "bytes": len(row["text"].encode()),
            "change": len(row["text"].encode()) - len(earlier["text"].encode()),
        }
        for earlier, row in zip(before, page["revisions"], strict=False)
    ]
    return {"title": page["id"], "revisions": rows[::-1]}


def _compare(wiki: dict[str, Any], query: dict[str, str]) -> Any:
    page = find_page(wiki, tidy_title(query.get("title", "")))
    pair = [_revision(page, query.get(name, "")) if page else None for name in ("from", "to")]
    if page is None or pair[0] is None or pair[1] is None:
        return _bad("There are no such revisions to compare.", 404)
    old, new = sorted(pair, key=lambda row: row["id"] if row else 0)
    return {
        "title": page["id"],
        "old": {name: value for name, value in old.items() if name != "text"},
        "new": {name: value for name, value in new.items() if name != "text"},
        "newest": _newest(page)["id"],
        "rows": differences(old["text"], new["text"]),
    }


def _undo(wiki: dict[str, Any], query: dict[str, str]) -> Any:
    """The text of a page without one edit; nothing is saved yet."""
    page = find_page(wiki, tidy_title(query.get("title", "")))
    edit = _revision(page, query.get("revision", "")) if page else None
    if page is None or edit is None:
        return _bad("There is no such edit.", 404)
    place = page["revisions"].index(edit)
    if place == 0:
        return {"text": None, "error": "The first edit of a page cannot be undone."}
    text = undone(page["revisions"][place - 1]["text"], edit["text"], _newest(page)["text"])
    if text is None:
        error = "This edit cannot be undone: later edits changed the same lines."
        return {"text": None, "error": error}
    return {"text": text, "summary": f"Undo edit {edit['id']} by {edit['user']}"}


def _search(wiki: dict[str, Any], query: dict[str, str]) -> Any:
    """The pages with all words, those first that have them in their titles."""
    asked = " ".join(query.get("q", "").split())
    words = asked.lower().split()
    found: list[tuple[int, str, dict[str, Any]]] = []
    for page in wiki["pages"] if words else ():
        title, body = page["id"], plain(_newest(page)["text"])
        if all(word in f"{title} {body}".lower() for word in words):
            named = [word for word in words if word in title.lower()]
            rank = 0 if title.lower() == asked.lower() else 1 + len(words) - len(named)
            row = {"title": title, "snippet": _snippet(body, words), "bytes": len(body)}
            found.append((rank, title, row))
    found.sort(key=lambda each: each[:2])
    pages = max(1, -(-len(found) // PER_PAGE))
    wanted = query.get("page", "1")
    number = min(max(int(wanted) if wanted.isascii() and wanted.isdigit() else 1, 1), pages)
    rows = [row for _, _, row in found[(number - 1) * PER_PAGE : number * PER_PAGE]]
    return {"q": asked, "rows": rows, "total": len(found), "page": number, "pages": pages}


def _snippet(body: str, words: list[str]) -> list[str]:
    """What stands around the first word; every second part is one of the words."""
    spots = [spot for spot in (body.lower().find(word) for word in words) if spot >= 0]
    start = max(0, min(spots, default=0) - _AROUND)
    text = f"{'…' if start else ''}{body[start : start + 3 * _AROUND]}"
    text += "…" if start + 3 * _AROUND < len(body) else ""
    # A short word must stand alone, or every "in" within a word would be marked.
    ends = {word: r"\b" if len(word) <= _SHORT else "" for word in words}
    longest = sorted(set(words), key=lambda word: (-len(word), word))
    marked = "|".join(f"{re.escape(word)}{ends[word]}" for word in longest)
    return re.split(rf"\b({marked})", text, flags=re.IGNORECASE)


def _category(wiki: dict[str, Any], query: dict[str, str]) -> Any:
    name = tidy_title(query.get("name", ""))
    there = [p["id"] for p in wiki["pages"] if name in categories_of(_newest(p)["text"])]
    return {"name": name, "titles": there}


def _categories(wiki: dict[str, Any], _query: dict[str, str]) -> Any:
    counts: dict[str, int] = {}
    for page in wiki["pages"]:
        for name in categories_of(_newest(page)["text"]):
            counts[name] = counts.get(name, 0) + 1
    return {"rows": [{"name": name, "count": counts[name]} for name in sorted(counts)]}


def _pages(wiki: dict[str, Any], _query: dict[str, str]) -> Any:
    rows = [
        {"title": page["id"], "redirect": redirect_of(_newest(page)["text"])}
        for page in wiki["pages"]
    ]
    return {"rows": sorted(rows, key=lambda row: row["title"])}


def _recent(wiki: dict[str, Any], query: dict[str, str]) -> Any:
    """The newest edits: of all, of one user, or of the pages that are watched."""
    rows: list[dict[str, Any]] = []
    for page in wiki["pages"]:
        if "watched" in query and page["id"].removeprefix("Talk:") not in wiki["watchlist"]:
            continue
        rows += [
            {"title": page["id"], **{name: row[name] for name in _SHOWN}}
            for row in page["revisions"]
            if query.get("user", row["user"]) == row["user"]
        ]
    rows.sort(key=lambda row: -row["id"])
    return {"rows": rows[:_RECENT], "total": len(rows)}


def _watchlist(wiki: dict[str, Any], query: dict[str, str]) -> Any:
    return {"titles": wiki["watchlist"], **_recent(wiki, {**query, "watched": "1"})}


def _leads_here(wiki: dict[str, Any], query: dict[str, str]) -> Any:
    title = tidy_title(query.get("title", ""))
    rows = [
        {"title": page["id"], "redirect": redirect_of(_newest(page)["text"]) == title}
        for page in wiki["pages"]
        if title in links_of(_newest(page)["text"])
    ]
    return {"title": title, "rows": rows}


def _newest(page: dict[str, Any]) -> dict[str, Any]:
    return page["revisions"][-1]


def _text(wiki: dict[str, Any], title: str) -> str:
    page = find_page(wiki, title)
    return _newest(page)["text"] if page else ""


def _revision(page: dict[str, Any], number: str) -> dict[str, Any] | None:
    return next((row for row in page["revisions"] if str(row["id"]) == number), None)


def _is_article(page: dict[str, Any]) -> bool:
    return not page["id"].startswith("Talk:") and redirect_of(_newest(page)["text"]) is None


_SHOWN = ("id", "user", "time", "summary", "minor")
_READS = {
    "site": _site,
    "page": _page,
    "history": _history,
    "compare": _compare,
    "undo": _undo,
    "search": _search,
    "category": _category,
    "categories": _categories,
    "pages": _pages,
    "recent": _recent,
    "watchlist": _watchlist,
    "links": _leads_here,
}
