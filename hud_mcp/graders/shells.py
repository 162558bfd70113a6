"""The shells of a session in which a grader's command runs, as it needs them."""

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

__all__ = ["Clean", "CleanEnd", "CommandEnd", "OpensVerifiers", "RunsCommands"]


class CommandEnd(Protocol):
    """How a command ended in a world."""

    @property
    def exit_code(self) -> int:
        """0 for success; 128 and the signal's number where one ended it."""
        ...

    @property
    def output(self) -> str:
        """What it wrote, on both streams."""
        ...

    @property
    def stopped(self) -> str | None:
        """Why it was stopped from outside, or None."""
        ...


@runtime_checkable
class RunsCommands(Protocol):
    """A world with a shell, as this grader needs it."""

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandEnd:
        """Run a line of bash to its end.

        Raises:
            ActionFailed: It cannot run; the text says why.
        """
        ...


class CleanEnd(Protocol):
    """How a command ended in a verifier."""

    @property
    def exit_code(self) -> int:
        """0 for success; 128 and a signal's number where one ended it."""
        ...

    @property
    def stdout(self) -> str:
        """What it wrote."""
        ...

    @property
    def stderr(self) -> str:
        """What it wrote as errors."""
        ...

    @property
    def stopped(self) -> str | None:
        """Why it was stopped from outside, or None."""
        ...


class Clean(Protocol):
    """A verifier, as this grader needs it."""

    @property
    def missing(self) -> Mapping[str, str]:
        """Outputs that are not there."""
        ...

    @property
    def left_out(self) -> Mapping[str, str]:
        """What was not copied."""
        ...

    async def run(
        self,
        command: str,
        *,
        timeout_s: float | None = None,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
    ) -> CleanEnd:
        """Run a line of bash to its end."""
        ...


@runtime_checkable
class OpensVerifiers(Protocol):
    """A world that offers a clean place for grading; `ShellWorld.verifier` says what it is."""

    def verifier(
        self,
        files: str | os.PathLike[str] | None = None,
        copy: str | Iterable[str] | Mapping[str, str] = (),
        *,
        originals: Iterable[str] = (),
    ) -> AbstractAsyncContextManager[Clean]:
        """Open one."""
        ...
