"""The environments and tasksets that come with the package, by name."""

from pathlib import Path

__all__ = [
    "LISTING",
    "default_sources",
    "is_also_a_set",
    "shipped_environments",
    "shipped_folder",
    "shipped_name",
]

LISTING = "`hud-mcp tasks` lists the sets of tasks with their environments."
"""The command that lists all shipped environments, for errors."""

_ALSO_DECLARED = {"intercode-workspace": "intercode"}
"""Shipped environments that are declared in the file of another one."""


def shipped_folder(name: str) -> Path:
    """Return the folder `environments` or `taskset_data`, beside the package or inside it."""
    package = Path(__file__).resolve().parents[1]
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def shipped_environments() -> dict[str, Path]:
    """Return the file of each shipped environment by its name."""
    folder = shipped_folder("environments")
    found = {p.stem: p for p in folder.glob("*.py") if not p.name.startswith("_")}
    found |= {p.parent.name: p for p in folder.glob("*/env.py")}
    return dict(sorted(found.items()))


def is_also_a_set(name: str) -> bool:
    """Whether a shipped environment and a shipped taskset have this name."""
    rows = shipped_folder("taskset_data") / f"{name}.jsonl"
    return name in shipped_environments() and rows.is_file()


def shipped_name(env: str) -> str | None:
    """Return the name of the shipped file that declares an environment; None if no file does."""
    shipped = shipped_environments()
    name = _ALSO_DECLARED.get(env, env)
    return name if name in shipped else None


def default_sources() -> tuple[str, ...]:
    """Return the sources of a `serve` without arguments: `./env.py`, else the quickstart's."""
    if Path("env.py").is_file():
        return ("env.py",)
    return ("letter_count", "browser")
