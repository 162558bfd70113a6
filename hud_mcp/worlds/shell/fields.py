"""What the arguments of a shell's tools are: their types, and what a model reads of each."""

from typing import Annotated

from pydantic import Field

__all__ = [
    "CommandLine",
    "Everywhere",
    "FirstLine",
    "LineCount",
    "NewText",
    "OldText",
    "PathOfFile",
    "Seconds",
    "WholeFile",
]

CommandLine = Annotated[str, Field(description="A command line for bash.")]
Seconds = Annotated[float, Field(description="After how many seconds it is stopped; above 0.")]
PathOfFile = Annotated[str, Field(description="The file, from the task's folder on.")]
FirstLine = Annotated[int, Field(description="The first line, from 1.")]
LineCount = Annotated[int, Field(description="How many lines.")]
WholeFile = Annotated[str, Field(description="The whole of it.")]
OldText = Annotated[str, Field(description="What is there, exactly, with what is around it.")]
NewText = Annotated[str, Field(description="What comes in its place.")]
Everywhere = Annotated[bool, Field(description="Replace it wherever it is.")]
