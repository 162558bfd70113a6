"""Write the tables of options in docs/ from their declarations; with --check, only compare them.

A table stands between `<!-- options of CLASS -->` and `<!-- end of options -->`.
"""

import re
import sys
from pathlib import Path

from pydantic import BaseModel

from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.rollout.options import JobOptions
from hud_mcp.values.option import Declared, declared

__all__ = ["main", "with_tables"]

DOCS = Path(__file__).resolve().parents[1] / "docs"
MODELS: dict[str, type[BaseModel]] = {"JobOptions": JobOptions, "ModelOptions": ModelOptions}
_TABLE = re.compile(r"(<!-- options of (\w+) -->\n).*?(<!-- end of options -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """Return a page with its tables written anew."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{_table(MODELS[found[2]])}\n{found[3]}", text)


def _table(model: type[BaseModel]) -> str:
    rows = ["| option | in Python | meaning |", "|---|---|---|"]
    rows += [
        f"| `{_shown(each)}` | `{each.keyword}` | {_meaning(each)} |" for each in declared(model)
    ]
    return "".join(f"{row}\n" for row in rows)


def _shown(each: Declared) -> str:
    value = (each.option.metavar or "").replace("|", "\\|")
    if each.option.is_rare:
        return f"--set {each.flag.lstrip('-').replace('-', '_')}={value or 'VALUE'}"
    return f"{each.flag} {value}".strip()


def _meaning(each: Declared) -> str:
    resumed = " A resumed job may get another value." if each.option.may_change else ""
    return f"{each.field.description}{resumed}"


def main(*arguments: str) -> int:
    """Write the pages, or return 1 if --check finds a page that is not as it should be."""
    stale = 0
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        written = with_tables(text)
        if written == text:
            continue
        stale = 1
        if "--check" in arguments:
            print(f"{page} has other options than the code; run scripts/option_tables.py")
        else:
            page.write_text(written, encoding="utf-8")
    return stale if "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
