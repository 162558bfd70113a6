"""How the wiki's tasks are graded: by the texts that its pages have in the end."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any

from web_wiki_data import find_page, text_of
from web_wiki_markup import categories_of, redirect_of

from hud_mcp import Before, Grade, grade_checks

__all__ = [
    "grade_answer",
    "grade_categories",
    "grade_merge",
    "grade_move",
    "grade_redirects",
    "grade_texts",
    "grade_topic",
    "grade_watchlist",
]

WATCHED = "wiki.watchlist"
"""The editor offers to watch what one edits: that is no harm."""


def grade_answer(before: Before, **checks: bool) -> Grade:
    """Grade an answer's parts, with nothing changed."""
    return grade_checks(checks, before.changes())


def grade_texts(
    now: dict[str, Any],
    before: Before,
    start: dict[str, Any],
    wanted: Mapping[str, str],
    *,
    checks: Mapping[str, bool] | None = None,
    beside: Iterable[str] = (),
) -> Grade:
    """Grade pages that should have other lines: each change of the text is a part.

    Args:
        now: The wiki's state.
        before: What it was when the task began.
        start: The same, to be read.
        wanted: The text that each page should have.
        checks: What else is asked for.
        beside: Titles of other pages that this changes.
    """
    paths = [f"wiki.pages.{title}" for title in (*wanted, *beside)]
    effects = before.changes(beside=[WATCHED, *paths])
    parts = dict(checks or {})
    for title, text in wanted.items():
        then, here = text_of(start, title) or "", text_of(now, title) or ""
        done = _changes(then, text, here)
        parts |= {f"{title}: change {n}": right for n, right in enumerate(done, 1)}
        if _strays(then, text, here):
            effects.append(f"{title}: other lines")
    return grade_checks(parts, effects)


def grade_categories(
    now: dict[str, Any],
    before: Before,
    start: dict[str, Any],
    category: str,
    members: Iterable[str],
) -> Grade:
    """Grade who is in a category: each page that was to come or to go is a part."""
    wanted = set(members)
    then = {p["id"] for p in start["pages"] if _is_in(start, p["id"], category)}
    asked = sorted(wanted ^ then)
    paths = [f"wiki.pages.{title}" for title in asked]
    effects = before.changes(beside=[WATCHED, *paths])
    checks: dict[str, bool] = {}
    for title in asked:
        checks[title] = bool(text_of(now, title)) and (
            _is_in(now, title, category) == (title in wanted)
        )
        texts = [_without(text_of(wiki, title) or "", category) for wiki in (start, now)]
        if texts[0] != texts[1]:
            effects.append(f"{title}: other lines")
    return grade_checks(checks, effects)


def grade_redirects(now: dict[str, Any], before: Before, wanted: Mapping[str, str]) -> Grade:
    """Grade where redirects lead."""
    checks = {
        title: redirect_of(text_of(now, title) or "") == target for title, target in wanted.items()
    }
    paths = [f"wiki.pages.{title}" for title in wanted]
    return grade_checks(checks, before.changes(beside=[WATCHED, *paths]))


def grade_merge(
    now: dict[str, Any],
    before: Before,
    start: dict[str, Any],
    *,
    keep: str,
    section: str,
    redirects: Iterable[str],
) -> Grade:
    """Grade a section that one article takes over, and what leads to that article."""
    titles = list(redirects)
    checks = {title: redirect_of(text_of(now, title) or "") == keep for title in titles}
    then, here = _lines(text_of(start, keep) or ""), _lines(text_of(now, keep) or "")
    added = _lines(section)
    spots = [n for n in range(len(here)) if here[n : n + len(added)] == added]
    effects = before.changes(beside=[WATCHED, *(f"wiki.pages.{t}" for t in (keep, *titles))])
    if Counter(here) - Counter(added) != Counter(then):
        effects.append(f"{keep}: other lines")
    return grade_checks({"section": len(spots) == 1, **checks}, effects)


def grade_move(
    now: dict[str, Any],
    before: Before,
    start: dict[str, Any],
    *,
    old: str,
    new: str,
    reason: str,
    links: Iterable[str] = (),
) -> Grade:
    """Grade a move that keeps the history, its reason, and the links that follow it."""
    then, page = find_page(start, old), find_page(now, new)
    rows = page["revisions"] if page else []
    known = {row["id"] for row in then["revisions"]} if then else set()
    moved = bool(known) and known <= {row["id"] for row in rows}
    said = any(reason.lower() in row["summary"].lower() for row in rows if row["id"] not in known)
    checks = {
        "moved": moved,
        "reason": moved and said,
        "redirect": redirect_of(text_of(now, old) or "") == new,
    }
    short = re.compile(rf"\[\[{re.escape(new)}\|[^\[\]]*\]\]")
    titles = list(links)
    effects = before.changes(
        beside=[WATCHED, *(f"wiki.pages.{title}" for title in (old, new, *titles))]
    )
    for title in titles:
        text = text_of(start, title) or ""
        wanted = text.replace(f"[[{old}", f"[[{new}")
        here = short.sub(f"[[{new}]]", text_of(now, title) or "")
        checks[title] = _lines(here) == _lines(short.sub(f"[[{new}]]", wanted))
        if _strays(text, wanted, here):
            effects.append(f"{title}: other lines")
    if page and _lines(rows[-1]["text"]) != _lines(text_of(start, old) or ""):
        effects.append(f"{new}: other lines")
    return grade_checks(checks, effects)


def grade_watchlist(now: dict[str, Any], before: Before, wanted: Iterable[str]) -> Grade:
    """Grade what is watched: each title that should be, less each that should not."""
    titles, here = set(wanted), set(now["watchlist"])
    share = max(0.0, (len(titles & here) - len(here - titles)) / len(titles))
    return grade_checks({"watchlist": share}, before.changes(beside=[WATCHED]))


def grade_topic(
    now: dict[str, Any],
    before: Before,
    start: dict[str, Any],
    title: str,
    *,
    topic: str,
    words: str,
) -> Grade:
    """Grade a new topic of a talk page: that it is there once, and what it says."""
    earlier, here = _lines(text_of(start, title) or ""), _lines(text_of(now, title) or "")
    added = here[len(earlier) :] if here[: len(earlier)] == earlier else []
    effects = before.changes(beside=[WATCHED, f"wiki.pages.{title}"])
    if here != earlier + added or len(added) > 3:  # noqa: PLR2004  # heading, text, signature
        effects.append(f"{title}: other lines")
    there = f"=={topic}==" in added
    said = len(added) > 1 and added[1].strip(" .") == words
    return grade_checks({"topic": there and said}, effects)


def _changes(then: str, wanted: str, here: str) -> list[bool]:
    """Whether each change from one text to another has been made."""
    a, b = _lines(then), _lines(wanted)
    now, most = Counter(_lines(here)), Counter(b)
    done: list[bool] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(a=a, b=b, autojunk=False).get_opcodes():
        if kind != "equal":
            came = all(now[line] >= most[line] for line in b[j1:j2])
            went = all(now[line] <= most[line] for line in a[i1:i2])
            done.append(came and went)
    return done


def _strays(then: str, wanted: str, here: str) -> bool:
    """Whether lines came that were never there, or went that should have stayed."""
    a, b, now = (Counter(_lines(text)) for text in (then, wanted, here))
    return bool(now - (a | b)) or bool((a & b) - now)


def _lines(text: str) -> list[str]:
    """The lines of a text in one manner of writing them, without those that are empty."""
    found: list[str] = []
    for line in text.splitlines():
        each = re.sub(r"\s*(=+|\|+)\s*", r"\1", " ".join(line.split()))
        each = re.sub(r"(?<=\d),(?=\d{3})", "", each)
        found.append(re.sub(r"(?<=\d)\s*(km|m)\b", r" \1", each))
    return [line for line in found if line]


def _is_in(wiki: dict[str, Any], title: str, category: str) -> bool:
    return category in categories_of(text_of(wiki, title) or "")


def _without(text: str, category: str) -> list[str]:
    return _lines(re.sub(rf"\[\[\s*Category:\s*{re.escape(category)}\s*\]\]", "\n", text))
