"""Interpreters with packages that cannot be installed beside this project's."""

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

__all__ = ["ROOT", "OtherPython"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class OtherPython:
    """A virtual environment, made once and kept.

    Attributes:
        name: Its folder's, in the project's own.
        requirements: What pip installs.
        check: A program that imports what is needed, and prints a version.
        version: What that begins with.
        what: Whom it is for, for the message where it cannot be installed.
        install_s: How long that may take.
        alone: What pip installs besides, without what it asks for.
    """

    name: str
    requirements: Sequence[str]
    check: str
    version: str
    what: str
    install_s: float
    alone: Sequence[str] = ()

    def find(self, spare: pytest.TempPathFactory) -> Path:
        """Its interpreter; installed first where it is not there.

        Args:
            spare: Where the project's folder cannot be written to.

        Skips the test, aloud, where it cannot be installed.
        """
        folder = ROOT / self.name if os.access(ROOT, os.W_OK) else spare.mktemp(self.name)
        python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        with FileLock(f"{folder}.lock"):  # the suite may run in several processes
            if not self._is_in_order(python):
                reason = self._install(folder, python)
                if reason is not None:
                    pytest.skip(f"NOT TESTED with {self.what}, which cannot be installed: {reason}")
        return python

    def _is_in_order(self, python: Path) -> bool:
        if not python.exists():
            return False
        check = [str(python), "-c", self.check]
        found = subprocess.run(check, capture_output=True, text=True, check=False)
        return found.returncode == 0 and found.stdout.startswith(self.version)

    def _install(self, folder: Path, python: Path) -> str | None:
        """Why it cannot be installed; None where it was."""
        venv.create(folder, with_pip=True, clear=True)
        return self._pip(python, *self.requirements) or (
            self._pip(python, "--no-deps", *self.alone) if self.alone else None
        )

    def _pip(self, python: Path, *wanted: str) -> str | None:
        """Why pip cannot install something; None where it did."""
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            done = subprocess.run(
                [*install, *wanted],
                capture_output=True, text=True, check=False, timeout=self.install_s,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"it took longer than {self.install_s:.0f} s"
        if done.returncode == 0:
            return None
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip gave no reason"
