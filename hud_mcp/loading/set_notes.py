"""What is said of sets of tasks, in the file `tasksets.toml` beside them."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from hud_mcp.base.text_files import read_text_file
from hud_mcp.errors import InvalidTask
from hud_mcp.values.action import Value

__all__ = ["NOTES", "SetNotes", "read_notes"]

NOTES = "tasksets.toml"


class SetNotes(Value):
    """What its author says of one set of tasks."""

    description: str = Field(default="", description="One line for people.")
    needs: tuple[str, ...] = Field(
        default=(),
        description="What it needs beside hud-mcp: an extra, such as `hud-mcp[miniwob]`; "
        "`network`; an account.",
    )
    repeats: str | None = Field(
        default=None, description="The set that has the same tasks, in another form."
    )

    @property
    def is_ready(self) -> bool:
        """Whether it needs nothing more, and has tasks of its own: `all` has such sets."""
        return not self.needs and self.repeats is None


_NOTES: TypeAdapter[dict[str, SetNotes]] = TypeAdapter(dict[str, SetNotes])


def read_notes(folder: Path) -> Mapping[str, SetNotes]:
    """What is said of the sets of a folder, by their names; nothing where there is no such file.

    Raises:
        InvalidTask: Naming the file, and what of it is wrong.
    """
    file = folder / NOTES
    if not file.is_file():
        return {}
    try:
        raw: dict[str, Any] = tomllib.loads(read_text_file(file))
        return _NOTES.validate_python(raw)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise InvalidTask(f"{file}: this file is not TOML: {exc}.") from None
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        at = ".".join(map(str, first["loc"]))
        known = ", ".join(SetNotes.model_fields)
        raise InvalidTask(f"{file}: {at}: {first['msg']}. A set has: {known}.") from None
