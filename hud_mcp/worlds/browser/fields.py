"""What the tree of a page says wrongly or not at all of its fields and links, put right.

Playwright's tree shows a password as it was typed, takes blanks off the ends of a field's text,
and gives no ref to a link without a box of its own. The page is asked for the fields that this
is about, each by its ref; links get refs of ours, `link1` and so on, that stand for a selector.
"""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import is_end

if TYPE_CHECKING:
    from playwright.async_api import Page

__all__ = ["FIELDS", "MASK", "name_links", "tell_fields"]

MASK = "\u2022"
"""Stands for each character of a password, as on the screen."""

FIELDS = """(() => {
  const found = [];
  const visit = root => {
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) visit(node.shadowRoot);
      if (node.tagName !== 'INPUT' && node.tagName !== 'TEXTAREA') continue;
      const secret = node.type === 'password', value = String(node.value);
      if (value && (secret || value !== value.trim())) found.push([secret, value]);
    }
  };
  try { visit(document); } catch { return null; }
  return found;
})()"""
"""An expression for the fields of a document that its tree does not tell right."""

_FIELD = re.compile(
    r"^(\s*- (?:textbox|searchbox|combobox|spinbutton)\b.*?\[ref=(\w+)\].*?): (.*)$"
)
_OWN = re.compile(r"\[ref=((?:f\d+)?)e\d+\]")
"""The first ref of a tree is of the page's own document; those in frames have another number."""

_LINK = re.compile(r'^(\s*- link(?: ("(?:[^"\\]|\\.)*"))?)(.*?)(:?)$')
_ASK = """found => found.length === 1 && ['INPUT', 'TEXTAREA'].includes(found[0].tagName)
  ? [found[0].type === 'password', String(found[0].value)] : null"""


async def tell_fields(
    page: "Page", lines: Sequence[str], found: Sequence[tuple[bool, str]] | None
) -> list[str]:
    """Mask passwords, and put texts with blanks at their ends in quotes.

    Args:
        page: The page that the lines are of.
        lines: Its tree.
        found: What `FIELDS` gave for its own document.

    Raises:
        Error: Playwright's, where the page is gone.
    """
    told = {" ".join(value.split()) for _, value in found or ()}
    secrets = {" ".join(value.split()) for secret, value in found or () if secret}
    own = next((match[1] for line in lines if (match := _OWN.search(line))), "")
    out: list[str] = []
    for line in lines:
        match = _FIELD.match(line) if "]: " in line else None  # most lines hold no value
        is_own = match is not None and match[2].rpartition("e")[0] == own
        if match is None or (is_own and _words(match[3]) not in told):
            out.append(line)
            continue
        known = await _ask(page, match[2])
        if known is None:  # it went away: rather too little than a password
            out.append(f"{match[1]}: {MASK * 8}" if _words(match[3]) in secrets else line)
        elif known[0]:
            out.append(f"{match[1]}: {MASK * len(known[1])}")
        elif known[1] != known[1].strip():
            out.append(f"{match[1]}: {json.dumps(known[1], ensure_ascii=False)}")
        else:
            out.append(line)
    return out


def name_links(lines: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Give each link of the page's own document that has no ref one, and say what it stands for."""
    out: list[str] = []
    selectors: dict[str, str] = {}
    counts: dict[str, int] = {}
    inside: int | None = None
    for line in lines:
        depth = len(line) - len(line.lstrip(" "))
        inside = None if inside is not None and depth <= inside else inside
        if inside is None and line.lstrip().startswith("- iframe"):
            inside = depth
        match = _LINK.match(line) if inside is None and "- link" in line else None
        if match is None:
            out.append(line)
            continue
        name = str(json.loads(match[2])) if match[2] else ""
        nth = counts[name] = counts.get(name, -1) + 1
        if "[ref=" in match[3]:
            out.append(line)
            continue
        ref = f"link{len(selectors) + 1}"
        quoted = json.dumps(name, ensure_ascii=False)
        selectors[ref] = f"role=link[name={quoted}] >> nth={nth}"
        out.append(f"{match[1]} [ref={ref}]{match[3]}{match[4]}")
    return out, selectors


async def _ask(page: "Page", ref: str) -> tuple[bool, str] | None:
    try:
        element = await page.query_selector(f"aria-ref={ref}")
        if element is None:
            return None
        answer: Any = await element.evaluate(f"element => ({_ASK})([element])")
    except libraries.PlaywrightError as exc:
        if is_end(exc):
            raise
        return None
    return (bool(answer[0]), str(answer[1])) if answer else None


def _words(told: str) -> str:
    """A field's text as the tree has it, which quotes what could be read as something else."""
    if told.startswith('"') and told.endswith('"'):
        try:
            told = str(json.loads(told))
        except ValueError:
            return told
    return " ".join(told.split())
