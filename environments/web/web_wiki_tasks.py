"""The wiki's templates, each with its solution."""

from typing import Any

import web_wiki_edit_oracles as editing
import web_wiki_edits as edits
import web_wiki_oracles as reading
import web_wiki_questions as questions

from hud_mcp import Environment

__all__ = ["declare"]

_TEMPLATES: dict[str, tuple[str, Any, Any]] = {
    "trail": ("Follow links from page to page", questions.trail, reading.trail),
    "compare": ("Compare several pages", questions.compare, reading.compare),
    "namesakes": ("Tell two namesakes apart", questions.namesakes, reading.namesakes),
    "heights": ("Find an edit in a history", questions.heights, reading.heights),
    "watch": ("Set the watchlist up", edits.watch, editing.watch),
    "answer_talk": ("Answer on a talk page", edits.answer_talk, editing.answer_talk),
    "survey": ("Bring an infobox up to date", edits.survey, editing.survey),
    "move": ("Move a page", edits.move, editing.move),
    "redirect": ("Mend redirects", edits.redirect, editing.redirect),
    "undo": ("Undo vandalism, and keep good edits", edits.undo, editing.undo),
    "merge": ("Merge two articles", edits.merge, editing.merge),
    "complete": ("Complete a table", edits.complete, editing.complete),
    "categorise": ("Put a category right", edits.categorise, editing.categorise),
}


def declare(env: Environment) -> None:
    """Declare the wiki's templates in an environment with its site."""
    for name, (description, template, oracle) in _TEMPLATES.items():
        env.template(id=f"wiki_{name}", description=description)(template).oracle(oracle)
