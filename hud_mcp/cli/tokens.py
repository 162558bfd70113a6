"""Bearer tokens: from options, the environment or a file, each with its principal."""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from hud_mcp.base.secrets import hide
from hud_mcp.base.text import read_text_file
from hud_mcp.errors import HudMcpError
from hud_mcp.registry import load
from hud_mcp.session.caller import OPERATOR, OPERATOR_TOKEN

logger = logging.getLogger(__name__)

QUOTA_NAMES: Final = ("sessions", "starts_per_minute", "stored_bytes")
_QUOTA_WORDS: Final = re.compile(rf"(?:\s+(?:{'|'.join(QUOTA_NAMES)})=\S+)+$")
"""The end of a line of a token file: the quotas of that principal."""

_TOKEN_CHARS = 8
"""Shorter secrets are guessed."""
_NAMED_TOKEN = re.compile(r"([A-Za-z0-9_-]+)=([^=].*)")
"""A name, `=` and a secret. A trailing `=` is padding of base64, and separates nothing."""

token_file_option = click.option(
    "--token-file",
    metavar="FILE",
    help="Read tokens from FILE, one on each line, as other users can read a command line.",
)
"""The option; the same for each command that asks for tokens."""


def read_tokens(given: Sequence[str], file: str | None) -> dict[str, str]:
    """Read `[NAME=]SECRET` tokens, and those of a file, into secret to principal.

    Raises:
        HudMcpError: A secret is too short, two names have one secret, or the file cannot be read.
    """
    tokens: dict[str, str] = {}
    of_file = _lines(file)
    for number, item in enumerate((*given, *of_file)):
        name, secret = _split(item)
        _check_length(secret, None if number < len(given) else file)
        if tokens.setdefault(secret, name) != name:
            raise HudMcpError(
                f"{tokens[secret]!r} and {name!r} have the same --token; give each name its own."
            )
    return tokens


def quotas_of_tokens(file: str | None) -> dict[str, str]:
    """Read the quotas in the lines of a token file, by principal.

    Raises:
        HudMcpError: The file cannot be read, or two lines say something of one principal.
    """
    found: dict[str, str] = {}
    for line in _whole_lines(file):
        words = _QUOTA_WORDS.search(line)
        if words is None:
            continue
        name, _ = _split(line[: words.start()])
        if name in found:
            raise HudMcpError(
                f"--token-file {file} has two lines with quotas of {name!r}; keep one of them."
            )
        found[name] = words[0].strip()
    return found


def _split(item: str) -> tuple[str, str]:
    """Return the principal and the secret of a token. The secret may hold `=`, as base64 does."""
    named = _NAMED_TOKEN.fullmatch(item)
    return (named[1], named[2]) if named else ("token", item)


def read_one_token(given: str | None, file: str | None, *, check: bool = True) -> str | None:
    """Read the one token of a command, from its options or a file; None if none is given.

    With `check`, it must be long enough not to be guessed.

    Raises:
        HudMcpError: It is given twice or too short, or the file cannot be read.
    """
    of_file = _lines(file)
    found = [*([given] if given is not None else []), *of_file]
    if len(found) > 1:
        raise HudMcpError(
            f"There are {len(found)} tokens, and this command takes one: give --token, its "
            "environment variable or a --token-file of one line."
        )
    if found and check:
        _check_length(found[0], file if of_file else None)
    return found[0] if found else None


def with_operator(tokens: dict[str, str], token: str | None) -> dict[str, str]:
    """Add the operator's token to the bearer tokens, if there are any: one credential is enough.

    Raises:
        HudMcpError: An agent has the operator's.
    """
    if token is None or not tokens:
        return tokens
    if token in tokens:
        raise HudMcpError(
            f"{tokens[token]!r} has the operator's token as its --token; give agents another one."
        )
    return {**tokens, token: OPERATOR}


def _lines(file: str | None) -> list[str]:
    lines = [_QUOTA_WORDS.sub("", line) for line in _whole_lines(file)]
    if file is not None and load("hud_mcp.store.files:is_open_to_others")(Path(file)):
        logger.warning("others on this machine may read %s; chmod 600 keeps it yours", file)
    return lines


def _whole_lines(file: str | None) -> list[str]:
    if file is None:
        return []
    lines = [line.strip() for line in read_secret("--token-file", file).splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise HudMcpError(f"--token-file {file} holds no token; write one a line: [NAME=]SECRET.")
    return found


def read_secret(option: str, file: str) -> str:
    """Read the file of an option; no sandbox of this process shows the file from now on.

    Raises:
        HudMcpError: The file cannot be read.
    """
    hide(file)
    try:
        return read_text_file(file)
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise HudMcpError(f"{option} {file} cannot be read: {why}.") from None


def _check_length(secret: str, file: str | None) -> None:
    if len(secret) < _TOKEN_CHARS:
        place = "A --token" if file is None else f"Each token of --token-file {file}"
        raise HudMcpError(
            f"{place} needs at least {_TOKEN_CHARS} characters. Make one with `openssl rand "
            "-hex 32`."
        )


_OPERATOR_TOKEN_CHARS = 16
"""Shorter secrets are guessed."""

_hidden: list[str] = []


def hide_operator_token() -> None:
    """Take the token out of this process's environment, which every child inherits."""
    token = os.environ.pop(OPERATOR_TOKEN, None)
    if token:
        _hidden[:] = [token]


def read_operator_token(file: str | None) -> str | None:
    """Return the token of a server's operations; None if nobody may call them.

    It comes from the file, or else from the environment variable.

    Raises:
        HudMcpError: The file cannot be read, or the token is too short to be a secret.
    """
    hide_operator_token()
    token = _hidden[0] if _hidden else None
    if file is not None:
        token = read_secret("--operator-token-file", file).strip()
    if token is not None and len(token) < _OPERATOR_TOKEN_CHARS:
        raise HudMcpError(
            f"The operator's token needs at least {_OPERATOR_TOKEN_CHARS} characters; make "
            "one with `openssl rand -hex 32`."
        )
    return token


_VIEW_TOKEN = "HUD_MCP_VIEW_TOKEN"  # noqa: S105  # the name of one


def read_page_token(callers: Mapping[str, str], *, replica: str | None) -> str | None:
    """Return the token of those who answer as users on live pages; None if nobody does.

    Raises:
        HudMcpError: The token is missing, too short or a caller's, or the server is a replica.
    """
    if os.environ.get("HUD_MCP_USER", "").strip() != "page":
        return None
    token = os.environ.pop(_VIEW_TOKEN, "").strip()  # every child inherits what is left there
    if len(token) < _OPERATOR_TOKEN_CHARS or not token.isascii():
        raise HudMcpError(
            f"HUD_MCP_USER=page needs {_VIEW_TOKEN}, the secret of those who answer, of at least "
            f"{_OPERATOR_TOKEN_CHARS} ASCII characters; make one with `openssl rand -hex 32`."
        )
    if token in callers:
        raise HudMcpError(
            f"{callers[token]!r} has {_VIEW_TOKEN} as its --token; give agents another one."
        )
    if replica is not None:
        # A page that another replica serves would not know the message.
        raise HudMcpError("HUD_MCP_USER=page needs a server alone; leave --replica out.")
    return token
