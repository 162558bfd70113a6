"""The people who may sign in, and their passwords, which argon2 hashes."""

import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from hud_mcp.base import libraries as base_libraries
from hud_mcp.base.secrets import hide
from hud_mcp.errors import HudMcpError, NotInstalled, did_you_mean
from hud_mcp.plugins.oauth import libraries

logger = logging.getLogger(__name__)

OWNER = "owner"  # the principal of the single person with a passcode
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
RESERVED = frozenset({"token"})  # the principal of a bearer token without a name
_OPERATOR = "operator"
_PASSWORD_CHARS = 8
_MOST_CHARS = 1024
_SALT = hashlib.sha256(b"hud-mcp passcode").digest()[:16]
"""The salt of a passcode. It is fixed, so that replicas agree; no hash of a passcode is stored."""


@dataclass(frozen=True)
class Person:
    """One person, by their principal; an operator may hold the scope `operate`."""

    name: str
    hashed: str  # in argon2's own form
    is_operator: bool = False

    @property
    def stamp(self) -> str:
        """A digest of the password's hash: what was granted under another password has ended."""
        return hashlib.sha256(self.hashed.encode()).hexdigest()


@cache
def _threads() -> Any:
    # A hash takes 64 MB: a crowd of guesses must not take the memory of the sessions.
    return anyio.CapacityLimiter(2)


@cache
def _hasher() -> Any:
    try:
        return libraries.PasswordHasher()
    except ImportError:
        raise NotInstalled("Passwords need argon2-cffi; install hud-mcp[oauth].") from None


def hash_password(password: str) -> str:
    """Return the hash of a new password; raise HudMcpError if it is too short or too long."""
    if not _PASSWORD_CHARS <= len(password) <= _MOST_CHARS:
        raise HudMcpError(
            f"The password has {len(password)} characters; choose one of at least "
            f"{_PASSWORD_CHARS} and at most {_MOST_CHARS}."
        )
    hashed: str = _hasher().hash(password)
    return hashed


async def verify(people: "People", name: str, password: str) -> Person | None:
    """Return the person whose password this is; it takes as long for an unknown name."""
    person = people.find(name)
    hashed = _nobody if person is None else lambda: person.hashed
    is_right = await anyio.to_thread.run_sync(
        lambda: _matches(hashed(), password[: _MOST_CHARS + 1]), limiter=_threads()
    )
    return person if is_right else None


@cache
def _nobody() -> str:
    return str(_hasher().hash(os.urandom(16).hex()))


def _matches(hashed: str, password: str) -> bool:
    try:
        return bool(_hasher().verify(hashed, password))
    except (libraries.Argon2Error, libraries.InvalidHashError, UnicodeEncodeError):
        return False


@dataclass(frozen=True)
class Passcode:
    """A single person, who gives a passcode and no name."""

    person: Person
    have_names = False

    @classmethod
    def of(cls, passcode: str) -> "Passcode":
        """Return the person of a passcode."""
        hashed: bytes = libraries.low_level.hash_secret(
            passcode.encode(), _SALT, time_cost=3, memory_cost=65_536, parallelism=4, hash_len=32,
            type=libraries.low_level.Type.ID,
        )  # fmt: skip
        return cls(Person(OWNER, hashed.decode()))

    def find(self, name: str) -> Person | None:
        """Return the person, whose name is `owner`."""
        return self.person if name == OWNER else None


class PasswordFile:
    """A file with one person a line: `NAME:HASH`, or `NAME:HASH:operator`.

    It is read again when it changes, so that a server knows a new person at once.
    """

    have_names = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._people: Mapping[str, Person] = {}
        hide(path)

    def all(self) -> Mapping[str, Person]:
        """Return the people by their names; raise HudMcpError if the file cannot be read."""
        try:
            status = self.path.stat()
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen != self._seen:
                self._people = _parse(self.path, self.path.read_text("utf-8"))
                self._seen = seen
        except FileNotFoundError:
            self._seen, self._people = None, {}
        except (OSError, UnicodeDecodeError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else "it is not text"
            raise HudMcpError(f"The password file {self.path} cannot be read: {why}.") from None
        return self._people

    def find(self, name: str) -> Person | None:
        """Return a person; None if there is none of this name now, or the file is broken."""
        try:
            return self.all().get(name)
        except HudMcpError as exc:
            logger.error("nobody can sign in: %s", exc)  # noqa: TRY400  # the text says everything
            return None

    def add(self, name: str, password: str, *, is_operator: bool) -> bool:
        """Add a person, or give them another password; return whether the name is new.

        Raises:
            HudMcpError: The name or the password cannot be one, or the file cannot be written.
        """
        if not _NAME.fullmatch(name) or name in RESERVED:
            raise HudMcpError(
                f"{name!r} cannot be a name: it takes 1 to 64 of A-Z, a-z, 0-9, _, ., @, -, and "
                "begins with a letter or a digit; `token` is taken."
            )
        person = Person(name, hash_password(password), is_operator)
        with self._locked():
            is_new = name not in self.all()
            self._write({**self.all(), name: person})
        return is_new

    def remove(self, name: str) -> None:
        """Remove a person, whose tokens end; raise HudMcpError if there is no such person."""
        with self._locked():
            people = dict(self.all())
            if people.pop(name, None) is None:
                hint = did_you_mean(name, people)
                raise HudMcpError(f"{self.path} has nobody named {name!r}.{hint}")
            self._write(people)

    def _locked(self) -> Any:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise self._unwritable(exc) from None
        return base_libraries.filelock.FileLock(f"{self.path}.lock", timeout=10)

    def _write(self, people: Mapping[str, Person]) -> None:
        lines = [
            ":".join([each.name, each.hashed, *([_OPERATOR] if each.is_operator else [])])
            for each in people.values()
        ]
        try:
            # Beside it and then in its place: a reader finds the whole file, old or new.
            with tempfile.NamedTemporaryFile(
                "w", dir=self.path.parent, prefix=".users-", delete=False, encoding="utf-8"
            ) as file:
                file.writelines(f"{line}\n" for line in lines)
            Path(file.name).replace(self.path)
        except OSError as exc:
            raise self._unwritable(exc) from None

    def _unwritable(self, exc: OSError) -> HudMcpError:
        return HudMcpError(f"The password file {self.path} cannot be written: {exc.strerror}.")


People = Passcode | PasswordFile
"""The people of a server."""


def _parse(path: Path, text: str) -> Mapping[str, Person]:
    people: dict[str, Person] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, *rest = line.strip().split(":")
        is_whole = "".join(rest[:1]).startswith("$argon2") and rest[1:] in ([], [_OPERATOR])
        if not _NAME.fullmatch(name) or name in RESERVED or not is_whole:
            raise HudMcpError(
                f"Line {number} of {path} is not NAME:HASH or NAME:HASH:operator; write it with "
                "`hud-mcp users add NAME`."
            )
        people[name] = Person(name, rest[0], bool(rest[1:]))
    return people
