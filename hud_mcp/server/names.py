"""Names that hosts of MCP allow, for environments whose names they would not."""

import re
from collections.abc import Iterable, Mapping

__all__ = ["safe_names"]

_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_CHARS = 40


def safe_names(names: Iterable[str]) -> Mapping[str, str]:
    """What stands for each name in prompts, tools and addresses: letters, digits, _ and -.

    A name that is safe stands for itself. Others lose what is not, and where two would be the
    same, the later ones get a number.
    """
    given = list(dict.fromkeys(names))
    found = {name: name for name in given if _SAFE.fullmatch(name)}
    taken = set(found)
    for name in given:
        if name in found:
            continue
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
        plain = (plain if plain[:1].isalpha() else f"env-{plain}".rstrip("-"))[:_CHARS]
        made, count = plain, 1
        while made in taken:
            count += 1
            made = f"{plain}-{count}"
        found[name] = made
        taken.add(made)
    return found
