"""README and docs as data: each page's blocks of code, and its sentences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "Page", "page"]

ROOT = Path(__file__).resolve().parents[2]

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"(?:# |<!-- )([\w.-]+(?:/[\w.-]+)*\.\w+)(?: -->)?\n")
_MARK = re.compile(r"<!-- no-run(?: `([^`\n]+)`)?: (.+?) -->\n")
_MARKS = re.compile(rf"(?:{_MARK.pattern})+\Z")
_ANNOUNCED = re.compile(r"`([\w./-]+\.\w+)`:\n*\Z")
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]*)\)")
_GENERATED = re.compile(r"^::: .*\n(?: {4}.*\n)*", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        line: Where it begins in the page.
        language: The word after the fence.
        text: What stands in it.
        file: The file that it is to be saved as: its first line is a comment that names it, or
            the text before it ends with that name and a colon.
        marks: Why it is not run, as comments right before it say: `<!-- no-run: REASON -->` of the
            whole block, or ``<!-- no-run `COMMAND`: REASON -->`` of the commands that begin so.
    """

    line: int
    language: str
    text: str
    file: str | None
    marks: dict[str, str] = field(default_factory=dict)

    def why_not_run(self, command: str = "") -> str | None:
        """Why the block, or a command of it, is not run; None where it is."""
        return next((why for begins, why in self.marks.items() if command.startswith(begins)), None)


@dataclass(frozen=True)
class Page:
    """One page of Markdown.

    Attributes:
        path: Where it is.
        text: What stands in it.
    """

    path: Path
    text: str

    @property
    def name(self) -> str:
        """Its path in the project, as a reader names it."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def blocks(self) -> list[Block]:
        """Its fenced blocks, in order."""
        return [
            Block(
                line=self.text.count("\n", 0, found.start()) + 1,
                language=found[1],
                text=found[2],
                file=_file_of(found[2], self.text[: found.start()]),
                marks=_marks_of(self.text[: found.start()]),
            )
            for found in _FENCED.finditer(self.text)
        ]

    def programs(self, language: str = "python") -> list[str]:
        """The texts of the blocks in one language."""
        return [block.text for block in self.blocks if block.language == language]

    def links(self) -> list[str]:
        """Where its links lead."""
        return [target for _, target in _LINK.findall(self._without_code())]

    def sentences(self) -> Iterator[str]:
        """Its sentences: of paragraphs, headings, items of lists and cells of tables.

        A piece of code counts as one word, `CODE`.
        """
        text = _LINK.sub(r"\1", self._without_code())
        text = re.sub(r"`[^`]+`", "CODE", text).replace("**", "").replace("*", "")
        for paragraph in re.split(r"\n\s*\n|\n(?= *(?:[-#|]|\d+\.) )", text):
            for cell in re.split(r"\|", paragraph):
                words = re.sub(r"^(?:[-#]+|\d+\.) ", "", " ".join(cell.split()))
                yield from (each for each in _SENTENCE_END.split(words) if re.search(r"\w", each))

    def _without_code(self) -> str:
        return _MARK.sub("", _FENCED.sub("", _GENERATED.sub("", self.text)))


def _file_of(text: str, before: str) -> str | None:
    found = _COMMENT.match(text) or _ANNOUNCED.search(_MARKS.sub("", before))
    return found[1] if found else None


def _marks_of(before: str) -> dict[str, str]:
    found = _MARKS.search(before)
    return {each[1] or "": each[2] for each in _MARK.finditer(found[0])} if found else {}


def page(name: str) -> Page:
    """One page, by its path in the project."""
    path = ROOT / name
    return Page(path=path, text=path.read_text(encoding="utf-8"))


PAGES = [
    page(path.relative_to(ROOT).as_posix())
    for path in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "client" / "README.md",
        ROOT / "examples" / "README.md",
        ROOT / "taskset_data" / "README.md",
    )
]
"""README, every page of docs, and the pages on the examples and the tasksets."""
