"""The gateway's own replies: its refusals, and the lists of models."""

import orjson

from hud_mcp.agents.agent import BoundReached
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.gateway.dialects import Asked
from hud_mcp.plugins.models.gateway.dialects.dialect import Dialect
from hud_mcp.plugins.models.gateway.http1 import Connection, Request

__all__ = ["PATHS", "Refused", "estimate", "list_models", "refuse", "sentence_of"]

_BYTES_A_TOKEN, _PICTURE_TOKENS = 4, 1_500
BAD, NO_KEY, NOT_FOUND, TOO_MANY, BAD_GATEWAY, DOWN = 400, 401, 404, 429, 502, 503

PATHS = {
    "messages": "/v1/messages",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/MODEL:generateContent",
}
"""The path of each dialect."""


class Refused(Exception):
    """A request is refused, with a status and a sentence in the form of its dialect.

    A bound has status 400: programs try again after 402, 403, 429 and 5xx, some for minutes.
    """

    def __init__(self, message: str, status: int = BAD) -> None:
        super().__init__(message)
        self.status = status


def sentence_of(error: HudMcpError) -> str:
    """Return the sentence that tells a program why its model is refused."""
    text = str(error)
    return f"This run has used its budget: {text}." if isinstance(error, BoundReached) else text


async def refuse(connection: Connection, dialect: Dialect, status: int, message: str) -> None:
    """Send a refusal in the form of a dialect."""
    status, kind, body = dialect.error(status, message)
    headers = [("content-type", kind)]
    if status == TOO_MANY:
        headers.append(("retry-after", "1"))
    await connection.reply(status, headers, body)


async def list_models(
    connection: Connection, dialect: Dialect, request: Request, names: tuple[str, ...]
) -> None:
    """Send the models that a run may ask for, in the form of a dialect; or one of them."""
    chosen = request.path.partition("/models/")[2]
    if not chosen and not names:  # an empty list would be the choice of no model
        await refuse(connection, dialect, NOT_FOUND, "There is no list of models; name one.")
        return
    if chosen and names and chosen not in names:
        there = f"There is no model {chosen}; there are {', '.join(names)}."
        await refuse(connection, dialect, NOT_FOUND, there)
        return
    listed = [_model(dialect, name) for name in ([chosen] if chosen else names)]
    body = listed[0] if chosen else {"models" if dialect.name == "gemini" else "data": listed}
    if not chosen and dialect.name != "gemini":
        body |= {"object": "list", "has_more": False}
    await connection.reply(200, [("content-type", "application/json")], orjson.dumps(body))


async def estimate(connection: Connection, dialect: Dialect, asked: Asked) -> None:
    """Send about the number of a request's tokens, which no provider counts here."""
    tokens = asked.text_bytes // _BYTES_A_TOKEN + asked.pictures * _PICTURE_TOKENS
    name = "totalTokens" if dialect.name == "gemini" else "input_tokens"
    headers = [("content-type", "application/json"), ("hud-mcp-estimate", "bytes / 4")]
    await connection.reply(200, headers, orjson.dumps({name: tokens}))


def _model(dialect: Dialect, name: str) -> dict[str, object]:
    if dialect.name == "gemini":
        methods = ["generateContent", "streamGenerateContent", "countTokens"]
        return {"name": f"models/{name}", "supportedGenerationMethods": methods}
    if dialect.name == "messages":
        return {"type": "model", "id": name, "display_name": name}
    return {"object": "model", "id": name, "created": 0, "owned_by": "provider"}
