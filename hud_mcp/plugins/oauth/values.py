"""The values of sign-in: clients, grants, codes, and the refusals of each."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel

WORK, OPERATE = "work", "operate"
SCOPES = (WORK, OPERATE)
"""The scopes: one's own sessions, and the operations that agents must not have."""

Kind = Literal["code", "access", "refresh"]

KINDS: Mapping[Kind, str] = {"code": "hmc", "access": "hma", "refresh": "hmr"}
"""The first letters of each kind of secret: no request with another token asks the store."""

Method = Literal["none", "client_secret_basic", "client_secret_post"]


def digest(secret: str) -> str:
    """Return the digest of a secret; the store has it in the secret's place."""
    return hashlib.sha256(f"hud-mcp oauth\0{secret}".encode("utf-8", "surrogatepass")).hexdigest()


def make_secret(kind: Kind) -> str:
    """Return a new secret of 256 random bits."""
    return f"{KINDS[kind]}-{secrets.token_urlsafe(32)}"


Secret = tuple[str, Kind, Mapping[str, Any], datetime]
"""The digest of a secret, its kind, its facts and its end."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of registered clients."""

    most: int = 200  # of those that were never given a token
    unused: timedelta = timedelta(days=1)  # until one of them expires
    hurried: timedelta = timedelta(minutes=15)  # the same, if there are too many
    idle: timedelta = timedelta(days=120)  # until any other one does, from its last token


class Refused(Exception):  # as the project's errors are named
    """A request that OAuth refuses, by one of its codes and a sentence."""

    def __init__(self, error: str, text: str, *, status: int = 400, wait_s: int = 0) -> None:
        super().__init__(text)
        self.error = error
        self.status = status
        self.wait_s = wait_s


class Client(BaseModel, frozen=True):
    """A program that asks for tokens."""

    id: str  # random, or the address of its document
    name: str  # its own word, for people; anybody may claim any
    redirect_uris: tuple[str, ...]
    method: Method = "none"  # of its authentication for tokens
    secret_digest: str | None = None
    grants: tuple[str, ...] = ("authorization_code", "refresh_token")

    @property
    def has_document(self) -> bool:
        """Whether its id is an address, whose owner vouches for it."""
        return self.id.startswith("https://")


class Grant(BaseModel, frozen=True):
    """One consent of a person to a client; all its tokens are of one family."""

    id: str
    client: str
    subject: str  # the principal
    scopes: tuple[str, ...]
    issuer: str
    resource: str  # for which its tokens are
    stamp: str  # of the person's credential at that time


@dataclass(frozen=True)
class Found:
    """A known secret; `has_ended` is of its grant."""

    grant: Grant
    facts: Mapping[str, Any]  # of this secret alone
    expires_at: datetime
    is_used: bool
    has_ended: bool
