"""The option `--oauth` of `hud-mcp serve`: the identity that it asks for, checked at the start."""

import os
from typing import Any
from urllib.parse import urlsplit

from hud_mcp.base.listening import is_loopback
from hud_mcp.errors import HudMcpError, NotInstalled
from hud_mcp.plugins.oauth import libraries, surfaces
from hud_mcp.plugins.oauth.people import Passcode, PasswordFile, People
from hud_mcp.plugins.oauth.settings import PASSCODE, REGISTRATION, Settings, read_issuer, users_file

_PASSCODE_CHARS = 8  # shorter passcodes are guessed, however slowly


async def read_identity(options: dict[str, Any], sessions: Any, host: str) -> Any:
    """Return the identity that `--oauth` asks for; None without the option.

    Raise HudMcpError if an address, the people or a variable is wrong, or the extra is missing.
    """
    passcode = os.environ.pop(PASSCODE, None)  # every child inherits what is left there
    issuer: str | None = options["oauth"]
    if issuer is None:
        return None
    public = _public(options["public_url"], host)
    if public is None and options["replica"] is not None:
        raise HudMcpError("Replicas with --oauth are one server: give all the same public_url.")
    try:
        _ = libraries.PasswordHasher, libraries.jwt.PyJWK
    except (ImportError, AttributeError):
        raise NotInstalled("--oauth needs argon2-cffi and PyJWT; install hud-mcp[oauth].") from None
    if issuer:
        _check_tls("--oauth", issuer)
        identity = surfaces.OuterIssuer(read_issuer(public, issuer))
    else:
        settings = Settings(public, _people(passcode), is_open=_is_open())
        identity = surfaces.AuthorizationServer(settings, sessions.store.database)
    await identity.prepare()
    return identity


def _public(url: str | None, host: str) -> str | None:
    """Return the public address, which has TLS unless it is on loopback."""
    if url is None:
        if is_loopback(host):
            return None
        raise HudMcpError(
            f"--oauth on {host} needs the address by which clients reach the server; give "
            "--set public_url=https://tasks.example.com."
        )
    _check_tls("public_url", url)
    return url


def _check_tls(option: str, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise HudMcpError(
            f"{option} is {url}, and anybody on the way could read what people send there; give "
            "one that begins with https://."
        )


def _people(passcode: str | None) -> People:
    if passcode is not None:
        if len(passcode) < _PASSCODE_CHARS:
            raise HudMcpError(
                f"{PASSCODE} needs at least {_PASSCODE_CHARS} characters; make one with "
                "`openssl rand -hex 16`."
            )
        return Passcode.of(passcode)
    people = PasswordFile(users_file())
    if not people.all():
        raise HudMcpError(
            f"--oauth knows nobody who could sign in: {people.path} has no names. Add one with "
            f"`hud-mcp users add NAME`, or give one passcode by {PASSCODE}."
        )
    return people


def _is_open() -> bool:
    given = os.environ.get(REGISTRATION, "")
    if given not in ("", "open", "closed"):
        raise HudMcpError(f"{REGISTRATION}={given}: it is `open` or `closed`.")
    return given != "closed"
