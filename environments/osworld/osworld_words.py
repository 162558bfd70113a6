"""How texts are compared: documents of Word and OpenDocument, and what a PDF says."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from osworld_office import Element, Package, Unreadable, children, local, ratio

__all__ = ["compare_docx_files", "compare_pdfs"]

PDF_S = 60.0
BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def compare_docx_files(result: Any, expected: Any, **options: Any) -> float:
    """Whether two documents have the same paragraphs; how like they are, for `content_only`.

    Of Word's, those of the body count, and not those in tables.
    """
    try:
        kind, mine = paragraphs(result)
    except Unreadable:
        return 0.0
    wanted_kind, wanted = paragraphs(expected)
    if kind != wanted_kind:
        return 0.0
    if options.get("ignore_order"):
        mine, wanted = sorted(mine), sorted(wanted)
    if options.get("ignore_case"):
        mine, wanted = ([each.lower() for each in both] for both in (mine, wanted))
    texts = [re.sub(r"\s+", " ", "\n".join(each)).strip() for each in (mine, wanted)]
    if options.get("content_only"):
        return ratio(*texts)
    if options.get("ignore_blanks", True):
        return float(texts[0] == texts[1])
    return float(mine == wanted)


def paragraphs(data: bytes) -> tuple[str, list[str]]:
    """The kind of a document, and its paragraphs.

    Raises:
        Unreadable: It is neither Word's nor OpenDocument's.
    """
    package = Package(data)
    if "word/document.xml" in package.names:
        found = children(package.xml("word/document.xml"), "body", "p")
        return "docx", [words_of(each) for each in found]
    if "content.xml" in package.names:
        every = package.xml("content.xml").iter()
        return "odt", [open_text(each) for each in every if local(each) == "p"]
    raise Unreadable("This is neither a document of Word nor of OpenDocument.")


def words_of(paragraph: Element) -> str:
    """The text of a paragraph of Word: of its runs, those in links too."""
    runs: list[Element] = []
    for each in paragraph:
        runs += [each] if local(each) == "r" else []
        runs += children(each, "r") if local(each) == "hyperlink" else []
    return "".join(
        (each.text or "") if local(each) == "t" else BREAKS.get(local(each), "")
        for run in runs
        for each in run
    )


def open_text(paragraph: Element) -> str:
    """The text of a paragraph of OpenDocument: its own, and that of its spans."""
    parts = [paragraph.text or ""]
    for each in paragraph:
        if local(each) == "span":
            parts += [each.text or "", *(inner.tail or "" for inner in each)]
        parts.append(each.tail or "")
    return "".join(parts)


def compare_pdfs(result: Any, expected: Any) -> float:
    """How like the texts of PDFs are; of several, the mean. One that cannot be read counts 0."""
    wanted = expected if isinstance(expected, list) else [expected]
    mine = result if isinstance(result, list) else [result]
    scores: list[float] = []
    for data, other in zip(mine, wanted, strict=False):
        text = None if data is None else pdf_text(data)
        told = pdf_text(other)
        if told is None:
            raise ValueError("The expected PDF cannot be read; import the row again.")
        scores.append(0.0 if text is None else ratio(text, told))
    return sum(scores) / len(wanted)


def pdf_text(data: bytes) -> str | None:
    """The text of a PDF; None where it is none, or takes longer than anybody waits.

    Raises:
        RuntimeError: The package that reads it is not there.
    """
    command = [sys.executable, str(Path(__file__).with_name("osworld_pdf.py"))]
    try:
        done = subprocess.run(  # noqa: S603  # a script of this folder
            command, input=data, capture_output=True, timeout=PDF_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if b"No module named 'pypdf'" in done.stderr:
        raise RuntimeError("compare_pdfs needs pypdf: pip install 'hud-mcp[osworld]'.")
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None
