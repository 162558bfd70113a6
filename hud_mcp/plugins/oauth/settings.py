"""The settings of sign-in: the option, the public address, and variables of the environment."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_data_path

from hud_mcp.plugins.oauth.people import People

PASSCODE = "HUD_MCP_OAUTH_PASSCODE"  # of a single person
USERS = "HUD_MCP_OAUTH_USERS"  # the path of the password file
REGISTRATION = "HUD_MCP_OAUTH_REGISTRATION"  # closes dynamic registration by the value `closed`


@dataclass(frozen=True)
class Place:
    """The addresses of a server, as its clients write them: the issuer's, and the path of MCP."""

    issuer: str
    path: str

    @property
    def resource(self) -> str:
        """The address of MCP, for which tokens are given out."""
        return self.issuer + self.path

    @property
    def origin(self) -> str:
        """The scheme and the host."""
        parts = urlsplit(self.issuer)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def prefix(self) -> str:
        """The path of the issuer, which a proxy takes away; empty for most."""
        return urlsplit(self.issuer).path

    @property
    def is_secure(self) -> bool:
        """Whether clients come over TLS."""
        return self.issuer.startswith("https:")

    def is_resource(self, given: str) -> bool:
        """Whether a client's resource indicator is this server's (RFC 8707)."""
        return given.rstrip("/").lower() == self.resource.rstrip("/").lower()


@dataclass(frozen=True)
class IssuerSettings:
    """The settings of a server whose people sign in elsewhere."""

    public: str | None
    issuer: str
    audience: str = ""  # of its tokens for this server; empty for the address of MCP
    claim: str = "sub"  # has the principal
    operators: str = ""  # the claim of operators with its value, such as `groups=operators`


@dataclass(frozen=True)
class Settings:
    """The settings of a server that people sign in to; `is_open` lets unknown clients register."""

    public: str | None
    people: People
    is_open: bool = True


def hosts_of(public: str | None) -> tuple[str, ...]:
    """Return the host of a public address, for the Host header."""
    return () if public is None else (urlsplit(public).netloc,)


def read_issuer(public: str | None, issuer: str) -> IssuerSettings:
    """Return the settings of another issuer, from variables of the environment."""
    get = os.environ.get
    return IssuerSettings(
        public,
        issuer,
        audience=get("HUD_MCP_OAUTH_AUDIENCE", ""),
        claim=get("HUD_MCP_OAUTH_CLAIM", "sub"),
        operators=get("HUD_MCP_OAUTH_OPERATORS", ""),
    )


def users_file() -> Path:
    """Return the path of the password file."""
    given = os.environ.get(USERS)
    return Path(given) if given else user_data_path("hud-mcp") / "users"
