"""README and docs are short, in the project's words, and their links lead somewhere."""

import re

import pytest
from page_blocks import PAGES, ROOT, Page, page

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


@pytest.mark.parametrize("each", PAGES, ids=lambda each: each.name)
def test_no_sentence_of_a_page_is_longer_than_twenty_words(each: Page) -> None:
    """Subject, verb, object; code counts as one word."""
    long = [said for said in each.sentences() if len(re.findall(r"\S*[^\W\d]\S*", said)) > LONGEST]
    assert long == []


@pytest.mark.parametrize("each", PAGES, ids=lambda each: each.name)
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


@pytest.mark.parametrize("phrase", ALLOWED)
def test_every_allowed_phrase_is_used(phrase: str) -> None:
    """An exception that nothing needs is taken off the list."""
    assert any(phrase in said for each in PAGES for said in each.sentences())


def test_readme_is_at_most_150_lines() -> None:
    """It says what to do first, and where to read on."""
    assert len(page("README.md").text.splitlines()) <= 150


@pytest.mark.parametrize("each", PAGES, ids=lambda each: each.name)
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
    assert sorted(linked) == sorted(pages - {"README.md"})


def test_the_picture_of_readme_is_small() -> None:
    """README opens fast everywhere: under 200 kB of picture."""
    pictures = [link for link in page("README.md").links() if link.endswith((".png", ".jpg"))]
    assert pictures
    assert all((ROOT / picture).stat().st_size < 200_000 for picture in pictures)
