"""The envelope of a client's request: what is taken of other hosts' habits, and what is refused.

PHP has one empty array for a list and an object, and several hosts send `null` for what they leave
out. Whatever else is wrong is named in this server's words, over every transport.
"""

from collections.abc import Container
from typing import Any, TypeAlias, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, INVALID_PARAMS
from pydantic import ValidationError

from hud_mcp.errors import clipped
from hud_mcp.schema import fault_words

__all__ = ["NOT_INITIALIZED", "explain_envelope", "is_untidy", "tidied"]

Json: TypeAlias = dict[str, Any]

_CAPABILITIES = frozenset({"capabilities", CLIENT_CAPABILITIES_META_KEY})
_OBJECTS = _CAPABILITIES | {"_meta", "arguments", "clientInfo", "context"}
"""The members of params that are objects: `[]` there is an empty one."""
_OPTIONAL_META = frozenset({"progressToken", CLIENT_INFO_META_KEY})
_MOST_FAULTS = 3

NOT_INITIALIZED = (
    "This connection is not initialized. Send `initialize` first, with protocolVersion, "
    "capabilities and clientInfo; then notifications/initialized."
)


def is_untidy(body: bytes) -> bool:
    """Whether a message may have in its params what counts as absent."""
    return b"[]" in body or b"[ ]" in body or b"null" in body


def tidied(params: Any) -> Any:
    """The params of a request or a notification, with what counts as absent left out.

    Args:
        params: As they came. `[]` is no params, and in a member that is an object an empty one;
            `null` is no progress token.
    """
    if params == [] or params is None:
        return None
    if not isinstance(params, dict):
        return params
    kept = _objects(cast("Json", params), _OBJECTS)
    meta = kept.get("_meta")
    if isinstance(meta, dict):
        told = _objects(cast("Json", meta), _OBJECTS)
        absent = {name for name in _OPTIONAL_META if name in told and told[name] is None}
        kept["_meta"] = {name: value for name, value in told.items() if name not in absent}
    return kept


def _objects(members: Json, names: Container[str]) -> Json:
    """The same, with an empty object for `[]` in these members, and in each capability."""
    kept: Json = {}
    for name, value in members.items():
        if value == [] and name in names:
            kept[name] = {}
        elif name in _CAPABILITIES and isinstance(value, dict):
            each = cast("Json", value)
            kept[name] = _objects(each, each)
        else:
            kept[name] = value
    return kept


async def explain_envelope(
    ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Pass a request on, and name what is wrong with it where the SDK only says that it is.

    Raises:
        MCPError: -32602 with the part of the envelope that is wrong, or what has to come first.
    """
    try:
        return await call_next(ctx)
    except ValidationError as exc:
        raise MCPError(code=INVALID_PARAMS, message=_faults(ctx.method, exc)) from None
    except MCPError as exc:
        if exc.error.code == INVALID_PARAMS and exc.error.data == "":  # the SDK's gate
            raise MCPError(code=INVALID_PARAMS, message=NOT_INITIALIZED) from None
        raise


def _faults(method: str, exc: ValidationError) -> str:
    """Say of each part what it should be; of several forms that one part may have, the first."""
    found: dict[str, str] = {}
    for error in exc.errors(include_url=False):
        # The library counts the forms of a union among the parts: their names are classes.
        parts = [str(part) for part in error["loc"] if not _is_form(part)]
        path = ".".join(parts if parts[:1] == ["params"] else ["params", *parts])
        if error["type"] == "missing":
            found.setdefault(path, f"{path} is required")
        else:
            found.setdefault(path, f"{path} {fault_words(error)}, got {clipped(error['input'])}")
    return f"Invalid {method}: {'; '.join(list(found.values())[:_MOST_FAULTS])}."


def _is_form(part: int | str) -> bool:
    return isinstance(part, str) and (part in ("str", "int") or part[:1].isupper())
