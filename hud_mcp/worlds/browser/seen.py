"""Corrections of Playwright's tree of a page, towards what a person sees.

`seen.js` marks the things that the tree has no form for: kept breaks and blanks, and editors.
Links without a box of their own get refs of ours, `link1` and so on, that stand for a selector.
"""

import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from hud_mcp.worlds.browser.driver import FACTS_MARK
from hud_mcp.worlds.browser.tree import depth_of, unquoted

__all__ = ["add_facts", "name_links", "unmark"]

_FACTS = f"\U0010fa14{FACTS_MARK}\U0010fa14"
_TOLD = re.compile(f"{_FACTS}([\\w%.; =-]*){_FACTS}")
_REF = re.compile(r"""(\s*- '?[\w-]+(?: "(?:[^"\\]|\\.)*")?(?: \[[^\]]*\])*? \[ref=(\w+)\])""")
_ANY_REF = re.compile(r" \[ref=(\w+)\]")
_BREAK, _BLANK, _EDITOR, _UNNAMED = "\U0010fa10", "\U0010fa11", "\U0010fa12", "\U0010fa13"
_MARKS = re.compile(f"[{_BREAK}{_BLANK}{_EDITOR}{_UNNAMED}]")
_PLAIN = str.maketrans({_BREAK: "\n", _BLANK: " ", _EDITOR: "", _UNNAMED: ""})

_VALUE = re.compile(r"^(\s*- (?:text|.*?\[ref=\w+\](?: \[[^\]]*\])*'?|[^\s:]+)): (.*)$")
_FIELD = re.compile(r"^\s*- '?(?:textbox|searchbox|combobox|spinbutton)\b")
_AREAS = re.compile(rf"({_REF.pattern}(?: \[[\w-]+(?:=[^\]]*)?\])*?) \[areas=([^\]]*)\]")
_LINK = re.compile(r'^(\s*- link(?: ("(?:[^"\\]|\\.)*"))?)(.*?)(:?)$')


def add_facts(lines: Sequence[str]) -> list[str]:
    """Write the facts at the end of each document as states of the elements that they are of."""
    facts: dict[str, str] = {}
    out: list[str] = []
    for line in lines:
        if _FACTS not in line:
            out.append(line)
            continue
        for told in _TOLD.findall(line):
            for each in told.split(";"):
                ref, _, states = each.partition(" ")
                facts[ref] = "".join(f" [{state}]" for state in states.split())
        rest = _TOLD.sub("", line).rstrip()
        if not rest.endswith(("- text:", '- text: ""')):
            out.append(rest.removesuffix(":"))
    if not facts:
        return out
    return [_with_facts(line, facts) for line in out]


def _with_facts(line: str, facts: Mapping[str, str]) -> str:
    match = None if facts.keys().isdisjoint(_ANY_REF.findall(line)) else _REF.match(line)
    told = facts.get(match[2], "") if match else ""
    return f"{match[1]}{told}{line[match.end() :]}" if match and told else line


def unmark(lines: Sequence[str]) -> list[str]:
    """Replace the marks by their meaning: breaks go in quotes, and editors become text boxes."""
    text = "".join(lines)
    if not any(chr(mark) in text for mark in _PLAIN):  # as on most pages
        return [*lines]
    out: list[str] = []
    for line in lines:
        if not _MARKS.search(line):
            out.append(line)
            continue
        if _EDITOR in line:
            _call_textbox(out, line)
        match = _VALUE.match(line)
        if match is None:
            out.append(_MARKS.sub(" ", line))
        elif value := _value(match[2], is_field=_FIELD.match(line) is not None):
            out.append(f"{_call_editor(match[1]) if _EDITOR in line else match[1]}: {value}")
        elif not match[1].lstrip().startswith("- text"):
            out.append(_call_editor(match[1]))
    return out


def _value(told: str, *, is_field: bool) -> str:
    """Return a marked value, in quotes if it has breaks, or blanks at its ends."""
    text = unquoted(told)
    meant = text.translate(_PLAIN)
    meant = meant if is_field else meant.strip("\n")
    if not meant.strip() and not is_field:
        return ""
    if text != told or "\n" in meant or meant != meant.strip():
        return json.dumps(meant, ensure_ascii=False)
    return meant


def _call_textbox(lines: list[str], line: str) -> None:
    """Give an editor its role back if its text has a line of its own."""
    depth = depth_of(line)
    if line.lstrip().startswith("- text") and lines:
        parent = next((i for i in reversed(range(len(lines))) if depth_of(lines[i]) < depth), None)
        if parent is not None:
            lines[parent] = _call_editor(lines[parent])


def _call_editor(key: str) -> str:
    return key.replace("- searchbox", "- textbox", 1).replace("- 'searchbox", "- 'textbox", 1)


def name_links(lines: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Give refs to links without one in the page's own document, and return their selectors."""
    if not any("[areas=" in line or ("- link" in line and " [ref=" not in line) for line in lines):
        return [*lines], {}
    out: list[str] = []
    selectors: dict[str, str] = {}
    counts: dict[str, int] = {}
    inside: int | None = None
    for line in lines:
        depth = depth_of(line)
        inside = None if inside is not None and depth <= inside else inside
        if inside is None and line.lstrip().startswith("- iframe"):
            inside = depth
        if "[areas=" in line and (areas := _AREAS.match(line)):
            out.append(areas[1] + line[areas.end() :])
            out += _area_links(areas[4], " " * depth, selectors, named=inside is None)
            continue
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


def _area_links(told: str, indent: str, selectors: dict[str, str], *, named: bool) -> list[str]:
    """Return the areas of an image's map as links, `named` by refs if their selectors can be."""
    out: list[str] = []
    for name, url, nth in json.loads(unquote(told)):
        ref = ""
        if named:
            ref = f"link{len(selectors) + 1}"
            selectors[ref], ref = f"css:light=area >> nth={nth}", f" [ref={ref}]"
        out.append(f"{indent}- link {json.dumps(name, ensure_ascii=False)}{ref}:")
        out.append(f"{indent}  - /url: {json.dumps(url, ensure_ascii=False)}")
    return out
