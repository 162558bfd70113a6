"""README and docs are short, in the project's words, and their links lead somewhere."""

import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import click
import pytest
from page_blocks import PAGES, ROOT, Page, page
from tables import each_of

import hud_mcp
import hud_mcp.carl
import hud_mcp_client
from hud_mcp.cli import main

LONGEST = 20
"""Words of a sentence (docs say so of themselves; a longer one has two things to say)."""

REPLACED = (
    r"keepers?", r"workers?", r"performers?", r"held worlds?", r"recorders?", r"endings?",
    r"held", r"visit(?:s|ed)?", r"reach(?:es|ed)?", r"enter(?:s|ed)?", r"direct", r"doors?",
    r"ways?", r"admissions?", r"gates?", r"recover(?:y|s|ed)?", r"replay(?:s|ed)?",
    r"(?:brings?|brought) (?:\w+ )?back", r"adopt(?:s|ed)?", r"(?:go|goes|went) on with",
    r"hooks?", r"cells?", r"kept", r"together", r"imported", r"exchanges?", r"quiet",
    r"private", r"settles?d?", r"asks?|asked", r"notes?", r"HostList", r"AllowList",
    r"Refusal", r"_Run",
)  # fmt: skip
"""Words that another one stands for now, of the design's table of words."""

ALLOWED = {
    "asks for": "what a template does, in the first paragraph of the design",
    "service worker": "the browser's own word for a script of that kind",
    "held-out": "statistics' own word for data that is not trained on",
    "held out": "the same",
    "private network": "the networks of RFC 1918 have no other name",
    "private networks": "the same",
    "private keys": "the field's word for the secret half of a pair of keys",
    "git hooks": "Git's own word for them",
}
"""Phrases in which one of those words is someone's own term, and why it stays."""

OLD_WORDS = re.compile(r"\b(?:anew|for who|how manieth|of one's own)\b")
"""Words that have a plainer one: again, for those who, which, your own."""

TWISTED = re.compile(
    rf"^(?:What|Who|Whoever|Whatever) (?!a grader may believe)[^?]*[.:]$|{OLD_WORDS.pattern}"
    r"|\b(?:[Ww]hoever|so many|nothing but|of its own(?! \w)|of their own(?! \w))\b"
    r"|(?<!here )\b(?:is|are|was|were) no (?!longer|more)\w"
)
"""Kinds of sentences that have to be read twice.

A clause is their subject ("What follows cleans up."), a thing is said to be no other thing
("A measurement is no grade."), or a word is an old one ("loaded anew", "in a process of its own").
"""


RIDDLE = re.compile(r"^(?:Of|Who|Whoever|That|Those that|What) (?![^.]*\?)")
"""Beginnings of sentences whose subject the reader has to look for."""


SECTIONS = re.compile(r"^(?:Args|Attributes|Raises|Returns|Yields):$", re.MULTILINE)
"""Where the parts of a docstring begin that are tables in the reference."""


@each_of("each", PAGES, ids=lambda each: each.name)
def test_no_sentence_of_a_page_is_longer_than_twenty_words(each: Page) -> None:
    """Subject, verb, object; code counts as one word."""
    assert [said for said in each.sentences() if is_long(said)] == []


@each_of("each", PAGES, ids=lambda each: each.name)
def test_a_page_uses_the_words_of_the_design(each: Page) -> None:
    """One word for one thing: what was renamed has its old name nowhere."""
    allowed = re.compile("|".join(rf"\b{re.escape(phrase)}\b" for phrase in ALLOWED))
    replaced = re.compile(rf"\b(?:{'|'.join(REPLACED)})\b", re.IGNORECASE)
    found = [
        (word[0], said)
        for said in each.sentences()
        for word in replaced.finditer(allowed.sub("…", said))
    ]
    assert found == []


@each_of("each", PAGES, ids=lambda each: each.name)
def test_a_page_has_no_sentence_that_is_read_twice(each: Page) -> None:
    """Subject, verb, object, in words that a reader of school English knows."""
    assert [said for said in each.sentences() if TWISTED.search(said)] == []


def test_the_help_of_no_command_has_such_a_sentence() -> None:
    """Of commands, options and groups, as `--help` prints them."""
    told = [(name, said) for name, text in helps(main, "hud-mcp") for said in sentences_of(text)]
    assert len(told) > 200
    assert [(name, said) for name, said in told if TWISTED.search(said)] == []


def test_no_sentence_of_the_help_is_longer_than_twenty_words() -> None:
    """Or begins with a word that makes it a riddle."""
    told = [(name, said) for name, text in helps(main, "hud-mcp") for said in sentences_of(text)]
    assert [(name, said) for name, said in told if is_long(said) or RIDDLE.search(said)] == []


@pytest.mark.parametrize(
    "module", [hud_mcp, hud_mcp.carl, hud_mcp_client], ids=lambda m: m.__name__
)
def test_the_docstring_of_no_public_name_has_such_a_word(module: ModuleType) -> None:
    """Of every name that a module exports, and of its public methods."""
    told = [(name, said) for name, text in docstrings(module) for said in sentences_of(text)]
    assert len(told) > 20
    assert [(name, said) for name, said in told if OLD_WORDS.search(said)] == []


def is_long(said: str) -> bool:
    """Whether a sentence has too many words; numbers are none."""
    return len(re.findall(r"\S*[^\W\d]\S*", said)) > LONGEST


@pytest.mark.parametrize(
    "module", [hud_mcp, hud_mcp.carl, hud_mcp_client], ids=lambda m: m.__name__
)
def test_no_sentence_of_a_public_docstring_is_longer_than_twenty_words(module: ModuleType) -> None:
    """Before its sections, and none begins as a riddle; classes of others have their own words."""
    told = [
        (name, said)
        for name, text in docstrings(module)
        if not name.endswith("env_class")
        for said in sentences_of(SECTIONS.split(text)[0])
    ]
    assert [(name, said) for name, said in told if is_long(said) or RIDDLE.search(said)] == []


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a text; a piece of code counts as one word."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"`[^`]+`", "CODE", text)):
        yield from re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split()))


def helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """What `--help` says of a command, its options and its own commands."""
    yield name, command.help or ""
    yield f"{name}, last", command.epilog or ""
    for option in command.params:
        yield f"{name} --{option.name}", getattr(option, "help", None) or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None, each
            yield from helps(found, f"{name} {each}")


def docstrings(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The docstrings of what a module exports, and of the public methods of its classes."""
    for name in module.__all__:
        found = getattr(module, name)
        if not str(getattr(found, "__module__", "")).startswith("hud_mcp"):
            continue
        yield name, inspect.getdoc(found) or ""
        for member, value in vars(found).items() if isinstance(found, type) else ():
            if not member.startswith("_") and callable(value):
                yield f"{name}.{member}", inspect.getdoc(value) or ""


@each_of("phrase", ALLOWED)
def test_every_allowed_phrase_is_used(phrase: str) -> None:
    """An exception that nothing needs is taken off the list."""
    assert any(phrase in said for each in PAGES for said in each.sentences())


def test_readme_is_at_most_150_lines() -> None:
    """It says what to do first, and where to read on."""
    assert len(page("README.md").text.splitlines()) <= 150


@each_of("each", PAGES, ids=lambda each: each.name)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(each: Page) -> None:
    """Links to other sites are addresses; those to this project's files are there."""
    for link in each.links():
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        path = (each.path.parent / target).resolve() if target else each.path
        assert path.exists(), link
        assert path.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), link


def anchors(text: str) -> set[str]:
    """The names of headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_index_lists_every_page_once() -> None:
    """A page that nothing leads to is not found."""
    linked = [link for link in page("docs/README.md").links() if "/" not in link]
    pages = {each.path.name for each in PAGES if each.path.parent.name == "docs"}
    assert sorted(linked) == sorted(pages - {"README.md", "index.md"})


def test_the_picture_of_readme_is_small() -> None:
    """README opens fast everywhere: under 200 kB of picture."""
    pictures = [link for link in page("README.md").links() if link.endswith((".png", ".jpg"))]
    assert pictures
    assert all((ROOT / picture).stat().st_size < 200_000 for picture in pictures)
