"""A process that reads a PDF from standard input, writes its text, and ends.

A PDF of an agent's may take any time and any memory, so that both are bounded here.
"""

import io
import resource
import sys

__all__ = ["main"]

MOST_BYTES = 1024**3


def main() -> None:
    """Write the text of each page."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    pages = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read())).pages
    text = "".join(page.extract_text() for page in pages)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    import pypdf

    main()
