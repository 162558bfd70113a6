"""Requests and answers of OAuth's endpoints: small forms, JSON, and errors by their codes."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from hud_mcp.plugins.oauth.values import Refused

_MOST_BYTES = 16_384
_MOST_FIELDS = 40
_NO_STORE = {"cache-control": "no-store", "pragma": "no-cache"}


def read_pairs(text: str) -> dict[str, str]:
    """Read the pairs of a query or a form; raise Refused if a name comes twice (RFC 6749, 3.1)."""
    if len(text) > _MOST_BYTES:
        raise Refused("invalid_request", "The request is too long.")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Refused("invalid_request", "The request has too many parameters.") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise Refused("invalid_request", f"{name[:80]} comes twice.")
    return {name: value for name, value in found.items() if value}


async def read_form(request: Request) -> dict[str, str]:
    """Read the body of a form; Refused if it is none, or too large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused("invalid_request", "The body is application/x-www-form-urlencoded.")
    return read_pairs((await _read_body(request)).decode("utf-8", "replace"))


async def read_json(request: Request) -> Any:
    """Read the body as JSON; Refused if it is none, or too large."""
    try:
        return json.loads(await _read_body(request))
    except (ValueError, RecursionError):
        raise Refused("invalid_client_metadata", "The body is no JSON.") from None


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise Refused("invalid_request", "The request is too large.", status=413)
    return bytes(body)


def json_answer(content: Mapping[str, Any], status: int = 200) -> Response:
    """Return an answer that nobody keeps."""
    return JSONResponse(dict(content), status, _NO_STORE)


def error_answer(refused: Refused) -> Response:
    """Return the answer to a refused request (RFC 6749, 5.2)."""
    told = {"error": refused.error, "error_description": str(refused)}
    answer = json_answer(told, refused.status)
    if refused.status == 401:  # noqa: PLR2004  # it says how to authenticate
        answer.headers["www-authenticate"] = 'Basic realm="client"'
    if refused.wait_s:
        answer.headers["retry-after"] = str(refused.wait_s)
    return answer


def redirect(uri: str, **parameters: str | None) -> Response:
    """Send a browser back to a client, with an answer in the query."""
    given = {name: value for name, value in parameters.items() if value is not None}
    separator = "&" if "?" in uri else "?"
    # 303: the browser must not send the person's form on to the client.
    return RedirectResponse(f"{uri}{separator}{urlencode(given)}", 303, _NO_STORE)
