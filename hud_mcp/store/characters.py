"""Characters that a text can have in Python and not in every database."""

__all__ = ["printable", "storable"]


def storable(text: str) -> str:
    """A text as every database takes it: PostgreSQL's has no place for a NUL."""
    return text.replace("\0", "\ufffd")


def printable(text: str) -> str:
    """The same for text that may hold lone surrogates, as a name does that is not UTF-8."""
    if text.isascii() and "\0" not in text:
        return text
    return storable(text.encode("utf-8", "replace").decode())
