"""What a folder has in it, as an observation lists it."""

from collections.abc import Sequence

from hud_mcp.sandbox import Entry

__all__ = ["folder_lines"]


def folder_lines(name: str, entries: Sequence[Entry], total: int) -> list[str]:
    """List a folder, a line for each entry.

    Args:
        name: What it is called.
        entries: The first of what is in it, by name.
        total: How many entries it has.
    """
    lines = [f"Folder {name}: {f'{total} entries' if total else 'empty'}"]
    lines += [_entry_line(entry) for entry in entries]
    if total > len(entries):
        lines.append(f"… {total - len(entries)} more; list them with a command.")
    return lines


def _entry_line(entry: Entry) -> str:
    name = entry.name.encode("utf-8", "replace").decode()
    name = "".join(sign if sign.isprintable() else "?" for sign in name)
    if entry.info.is_folder:
        return f"  {name}/"
    return f"  {name}@" if entry.info.is_link else f"  {name}  {entry.info.size} bytes"
