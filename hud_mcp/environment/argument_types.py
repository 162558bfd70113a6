"""Types for a template's parameters that say what an argument is for, as HUD's do.

They change a schema and nothing else: a template receives what it was given.
"""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "DataFileArg",
    "DataFileRef",
    "DataFilesArg",
    "FileRef",
    "FilesArg",
    "GradingArg",
    "PromptArg",
]

T = TypeVar("T")


class DataFileRef(BaseModel):
    """A data file by its id; who runs the task puts it where the template looks."""

    model_config = ConfigDict(extra="forbid")

    file_id: str = Field(description="The file's id.")
    path: str | None = Field(default=None, description="Where the environment wants it.")


PromptArg = Annotated[str, Field(json_schema_extra={"x-hud-hint": "prompt"})]
"""A text that a person writes, which becomes a part of the prompt."""

DataFileArg = Annotated[T, Field(json_schema_extra={"x-hud-hint": "data-file"})]
"""A data file, such as `DataFileArg[DataFileRef]`."""

DataFilesArg = Annotated[list[T], Field(json_schema_extra={"x-hud-hint": "data-files"})]
"""Several data files."""

GradingArg = Annotated[list[T], Field(json_schema_extra={"x-hud-hint": "grading"})]
"""What answers are graded by, such as `GradingArg[str]`."""

FileRef = DataFileRef
FilesArg = DataFilesArg
