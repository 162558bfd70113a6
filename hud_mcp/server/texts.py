"""What replies say of a session: what to do with it, and what its answer must be."""

from typing import Any

import orjson

from hud_mcp.record.trajectory import live_url
from hud_mcp.schema import plain_schema
from hud_mcp.server.own_tools import listed_names
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session

__all__ = ["answer_schema", "begun_text", "live_address", "screen_size"]

_SCHEMA_CHARS = 4000
"""Of an answer's schema in a text; programs find it whole beside the text."""


def begun_text(session: Session, sessions: Sessions) -> str:
    """What to do with a session that has begun, with the names of its tools as clients see them."""
    world = session.environment.world
    acts = bool(world.actions - ({"wait", "custom"} if world.tools_suffice else {"wait"}))
    tools = ", ".join(listed_names(sessions.environments, session.environment))
    also = f" Its own tools: {tools}." if tools else ""
    if acts:
        how = "Look with step, act with step or act, and finish with response."
    elif world.tools_suffice:
        how, also = f"Work with its tools, {tools}, and finish with response.", ""
    else:
        how = "Answer with response."
    typed = ""
    if schema := answer_schema(session):
        shown = orjson.dumps(schema["answer_schema"]).decode()
        if len(shown) > _SCHEMA_CHARS:
            shown = f"{shown[:_SCHEMA_CHARS]}… (answer_schema has it whole)"
        typed = f" The answer is JSON of this schema: {shown}"
    size = session.screen_size
    screen = "" if size is None else f" The screen is {size[0]} x {size[1]} pixels."
    passed = f'Pass session="{session.id}" to every call.'
    return f"[session: {session.id}] {how} {passed}{also}{screen}{typed}"


def answer_schema(session: Session) -> dict[str, Any]:
    """What the answer must be, where its template says so; any text is a text."""
    schema = session.life.template.returns_schema
    if schema is None or schema.get("type") == "string":
        return {}
    return {"answer_schema": plain_schema(schema)}


def screen_size(session: Session) -> dict[str, Any]:
    """How large the pictures of a session are, where it has a screen whose size is known."""
    size = session.screen_size
    return {} if size is None else {"screen": {"width": size[0], "height": size[1]}}


def live_address(sessions: Sessions, session: Session) -> dict[str, Any]:
    """Where people can watch a session, if that is served."""
    if sessions.live_base is None or session.live_token is None:
        return {}
    return {"live_url": live_url(sessions.live_base, session.live_token)}
