"""The texts that a field takes, known before anything is typed into it.

A browser drops what a date, a colour or a slider does not take, and tells the page. So a
copy of the field, in a document that nobody sees, is given the text first.
"""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.text import clip_repr
from hud_mcp.errors import ActionFailed

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page

__all__ = ["check_place_takes", "check_takes", "takes_keys"]

_CLICK = "Click it instead."
_HINTS = {
    "color": "Write it as '#ff8800'.",
    "date": "Write it as '2026-01-31'.",
    "datetime-local": "Write it as '2026-01-31T14:05'.",
    "file": "No file can be given here: go on without one.",
    "month": "Write it as '2026-01'.",
    "number": "Write a number such as '7' or '2.5'.",
    "range": "Write a number within its bounds, on one of its steps.",
    "select": "Use the custom action select_option.",
    "time": "Write it as '14:05'.",
    "week": "Write it as '2026-W05'.",
}

_BY_KEYS = frozenset({"text", "search", "url", "tel", "email", "password", "number", "words"})
"""Kinds of fields that take any text by keys, or a number."""

_ASK = """(given, text) => {
  const fields = 'input, textarea, select';
  const own = given.isContentEditable || (given.matches && given.matches(fields));
  const label = !own && given.closest && given.closest('label');
  const field = label && label.control || given;
  const tag = field.tagName, kind = field.isContentEditable ? 'words' : tag === 'TEXTAREA' ? 'text'
    : tag === 'SELECT' ? 'select' : tag === 'INPUT' ? field.type : '';
  const barred = !!field.disabled || !!(field.closest && field.closest('[aria-disabled="true"]'));
  const answer = { kind, barred, fixed: !!field.readOnly, refuses: kind === 'select' };
  if (tag !== 'INPUT') return answer;
  const probe = document.implementation.createHTMLDocument('').createElement('input');
  for (const name of ['type', 'min', 'max', 'step']) {
    if (field.hasAttribute(name)) probe.setAttribute(name, field.getAttribute(name));
  }
  try { probe.value = text.trim(); } catch { /* a file's */ }
  const formatted = ['color', 'date', 'datetime-local', 'month', 'number', 'range', 'time', 'week'];
  const pressed = ['button', 'checkbox', 'file', 'hidden', 'image', 'radio', 'reset', 'submit'];
  const changed = probe.value.toLowerCase() !== text.trim().toLowerCase();
  answer.refuses = pressed.includes(kind) || (formatted.includes(kind) && changed);
  return answer;
}"""

_AT_PLACE = """([x, y]) => {
  let root = document, left = x, top = y, hit = null;
  for (;;) {
    const found = root.elementFromPoint(left, top);
    if (!found || found === hit) return hit;
    hit = found;
    let inner = null;
    try { inner = hit.contentDocument; } catch { /* of another origin */ }
    if (inner) {
      const box = hit.getBoundingClientRect();
      left -= box.left + hit.clientLeft;
      top -= box.top + hit.clientTop;
    }
    root = inner || hit.shadowRoot;
    if (!root) return hit;
  }
}"""


async def check_takes(element: "ElementHandle", text: str) -> None:
    """Check that a field takes a text, and leave it as it is.

    Raises:
        ActionFailed: It drops or changes this text, or takes none. The text says what it takes.
    """
    found = await _ask(element, text)
    if found["refuses"]:
        kind = found["kind"]
        raise ActionFailed(
            f"A field of type {kind!r} does not take {clip_repr(text, 80)}, and is as it was. "
            f"{_HINTS.get(kind, _CLICK)}"
        )
    if found["fixed"]:
        raise ActionFailed("The field is not editable: it takes no text now.")


async def check_place_takes(page: "Page", x: float, y: float, text: str) -> None:
    """Check that the field at a place takes a text; what is no field there takes any.

    Raises:
        ActionFailed: As for `check_takes`.
    """
    handle = await page.evaluate_handle(_AT_PLACE, [x, y])
    if (element := handle.as_element()) is not None:
        await check_takes(element, text)


async def takes_keys(element: "ElementHandle", text: str) -> bool:
    """Whether keys write this text into an element, as a person would."""
    found = await _ask(element, text)
    return found["kind"] in _BY_KEYS and not (found["refuses"] or found["fixed"] or found["barred"])


async def _ask(element: "ElementHandle", text: str) -> Any:
    return await element.evaluate(_ASK, text)
