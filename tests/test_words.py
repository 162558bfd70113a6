"""One word for one thing: a name that the design has let go of is not defined anew.

The checker reads the names of modules, classes, functions and attributes; the tests below run it
on this package, and on small sources that bring an old word back.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from sources import children
from tables import each_of

import hud_mcp

ROOT = Path(hud_mcp.__file__).parent

GONE = {
    "keeper": "driver",
    "performer": "steps",
    "held world": "steps",
    "recorder": "journal",
    "ending": "receipts, or an end",
    "held": "live world, stored session or HUD session",
    "hold": "load_session, or what is done",
    "visit": "direct access",
    "reach": "direct access",
    "enter": "direct access, or add",
    "door": "endpoint",
    "admission": "endpoint, or capacity",
    "gate": "egress or auth",
    "recovery": "resume",
    "bring back": "resume",
    "come back": "resume",
    "adopt": "resume",
    "adoption": "resume",
    "go on with": "resume",
    "hooks": "lifecycle",
    "cell": "bin",
    "cells": "bins",
    "together": "gather, or a batch",
    "exchange": "in flight",
    "quiet": "gym setup, or idle",
    "settle": "flush_end, or wait_until_idle",
    "ask": "save_prompt, or what is asked for",
    "note": "flush, or a line of the log",
}
"""What a word was called, and what it is called now."""

ANY_GONE = re.compile(rf" (?:{'|'.join(GONE)}) ")

IN_ROOMS = {
    **dict.fromkeys(("ask", "note", "hold", "enter"), ("session", "store", "record")),
    "reach": ("session", "channel", "server", "env", "world"),
}
"""Plain English elsewhere: these were names of parts in these rooms alone."""

ALLOWED = {
    "action.language._while_holding": "keys are held down",
    "agents.agent.Agent.ask": "an agent is asked",
    "cli.output.cell": "a cell of a table",
    "environment.environment.Environment.has_hooks": "HUD's documents call `initialize` a hook",
    "graders.": "a judge's model is asked",
    "sandbox.": "the words of Linux: a namespace is entered, a process holds a descriptor",
    "serving.lines.": "bytes that are held back until their line is whole",
    "session.live_world.LiveWorld.note_": "a verb: it takes note of what was done",
    "session.measuring.Measuring.note": "the same",
    "session.receipts.Strain.note_refusal": "the same",
    "session.pointer.Pointer.note": "the same",
    "session.driver.Driver.note_closed": "the same",
    "session.held_task": "a held task is what a session is, and the word for nothing else",
    "plugins.hud.template_process.namespaces.": "the words of Linux again",
    "worlds.browser.clipboard.": "a clipboard's content is exchanged for another one's",
    "worlds.browser.hands.": "keys and buttons are held down",
    "worlds.browser.keys.": "the same",
    "worlds.desktop.world.DesktopWorld._hold": "the same",
    "worlds.browser.idle._until_quiet": "a page that is quiet is idle, by what it says",
    "worlds.browser.reserve.": "a machine is quiet, a context is kept ready",
    "worlds.gymnasium.words.": "the cells of a grid",
    "cli.output.": "rich calls a console quiet",
    "show.web.pages.": "a tree is visited",
    "worlds.browser.restore.": "an address is visited by a browser",
    "worlds.browser.proxy.": "visits to documents are a snapshot's stored form",
    "worlds.browser.snapshot_format.": "a stored form",
    "call.FunctionConfig.settled": "a call's form is settled",
}
"""Names that keep such a word, by how they begin, each with its reason."""

ONE_OF_EACH = ("Run", "HostList", "AllowList", "Refusal", "Refused")
"""Classes that there is at most one of, with or without an underscore."""


def words_of(name: str) -> str:
    """A name as words: `_bring_back` and `BringBack` are `bring back`."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return " ".join(part for part in apart.lower().split("_") if part)


def defined_in(module: str, tree: ast.Module) -> Iterator[str]:
    """Every name that a source defines, whole: module, classes, functions and attributes."""
    yield module

    def walk(node: ast.AST, owner: str) -> Iterator[str]:
        for child in children(node):
            within = owner
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                within = f"{owner}.{child.name}"
                yield within
            elif (
                isinstance(child, ast.Attribute)
                and isinstance(child.ctx, ast.Store)
                and isinstance(child.value, ast.Name)
                and child.value.id == "self"
            ):
                yield f"{owner.rpartition('.')[0]}.{child.attr}"
            yield from walk(child, within)

    yield from walk(tree, module)


def gone_words(names: Iterable[str]) -> Iterator[str]:
    """Every name that brings an old word back, with the word for it now."""
    for whole in sorted(set(names)):
        said = f" {words_of(whole.rpartition('.')[2])} "
        if not ANY_GONE.search(said):
            continue
        for word, now in GONE.items():
            rooms = IN_ROOMS.get(word, ("",))
            if f" {word} " not in said or not whole.startswith(rooms):
                continue
            if not whole.startswith(tuple(ALLOWED)):
                yield f"{whole}: {word!r} is {now} now"


@cache
def names() -> set[str]:
    """Every name that the package defines; its modules stand without the package's name."""
    found: set[str] = set()
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found |= set(defined_in(module, ast.parse(path.read_text())))
    return found


def test_no_word_that_the_design_let_go_of_comes_back() -> None:
    """Neither as a module nor as a class, a function or an attribute."""
    assert list(gone_words(names())) == []


def test_every_word_that_is_allowed_is_still_used() -> None:
    """An exception with a reason does not outlive it."""
    unused = [start for start in ALLOWED if not any(name.startswith(start) for name in names())]
    assert unused == []


def test_there_is_one_class_of_each_name() -> None:
    """Two classes of one name mean two things."""
    found = Counter(
        name
        for path in ROOT.rglob("*.py")
        for name in re.findall(r"(?m)^ *class _*(\w+)", path.read_text())
    )
    assert found["Session"] == 1, "classes are found"
    assert [name for name in ONE_OF_EACH if found[name] > 1] == []


@each_of(
    ("module", "source", "said"),
    [
        ("session.keeper", "", "'keeper' is driver now"),
        ("session.parts", "class Admission: ...", "'admission' is endpoint, or capacity now"),
        ("session.parts", "async def bring_back(): ...", "'bring back' is resume now"),
        (
            "store.parts",
            "class A:\n    def f(self):\n        self.held = 1",
            "'held' is live world",
        ),
        ("store.parts", "def hold(): ...", "'hold' is load_session"),
        ("show.parts", "def hold(): ...", None),
        ("session.parts", "def beholder(): ...", None),
    ],
)
def test_a_definition_that_brings_a_word_back_is_seen(
    module: str, source: str, said: str | None
) -> None:
    """Whatever it defines; a word within another one is none."""
    found = list(gone_words(defined_in(module, ast.parse(source))))
    assert said in found[0].partition(": ")[2] if said else found == []
