"""What a peer may ask for in its `hello`, checked before it is refused or granted."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

__all__ = ["WrongGreeting", "check_greeting"]

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LAST_PORT = 65_535


class WrongGreeting(Exception):
    """Something in a `hello` is not of the form that HUD's wire gives it."""


def check_greeting(params: Mapping[str, Any]) -> str | None:
    """Check a `hello`, and return the first thing in it that this server cannot enforce.

    Raises:
        WrongGreeting: Naming what is of another form.
    """
    wanted = params.get("session_id")
    if wanted is not None and not isinstance(wanted, str):
        raise WrongGreeting("'session_id' must be a string")
    asked: str | None = None
    for name, check in _LISTS.items():
        given = params.get(name)
        if given is None:
            continue
        if not isinstance(given, list):
            raise WrongGreeting(f"'{name}' must be a list")
        for number, each in enumerate(cast("list[Any]", given)):
            where = f"'{name}[{number}]'"
            if not isinstance(each, dict):
                raise WrongGreeting(f"{where} must be an object")
            problem = check(cast("dict[str, Any]", each))
            if problem is not None:
                raise WrongGreeting(f"{where}: {problem}")
            asked = asked or name
    return asked


def _route_problem(given: Mapping[str, Any]) -> str | None:
    host, port = given.get("host"), given.get("port")
    if not _is_plain(given.get("capability")):
        return "'capability' must be the name of one"
    if not _is_plain(host) or any(sign.isspace() for sign in str(host)) or _is_address(str(host)):
        return "'host' must be a host's name"
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= _LAST_PORT:
        return f"'port' must be a whole number from 1 to {_LAST_PORT}"
    return None


def _connection_problem(given: Mapping[str, Any]) -> str | None:
    name, url, headers = given.get("name"), given.get("url"), given.get("headers")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "'name' must begin with a lower-case letter, then a to z, 0 to 9, _ and -"
    if not _is_plain(given.get("capability")):
        return "'capability' must be the name of one"
    if not isinstance(url, str) or not _is_upstream(url):
        return "'url' must be of http or https, with a host, and without credentials or a query"
    return _headers_problem(headers)


def _headers_problem(headers: Any) -> str | None:
    if not isinstance(headers, dict) or not headers:
        return "'headers' must be an object, and not empty"
    for key, value in cast("dict[str, Any]", headers).items():
        if not _HEADER.fullmatch(key) or not isinstance(value, str) or not value:
            return "'headers' must have texts by the names of headers"
        if "\r" in value or "\n" in value:
            return "'headers' must have texts of one line"
    return None


_LISTS: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "workspace_routes": _route_problem,
    "connections": _connection_problem,
}


def _is_plain(given: Any) -> bool:
    return isinstance(given, str) and bool(given) and given == given.strip()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_upstream(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    plain = not (parts.username or parts.password or parts.query or parts.fragment)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and plain
