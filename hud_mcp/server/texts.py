"""Texts of a server and of a session: the next steps, and the form of the answer."""

from typing import Any

import orjson

from hud_mcp.base.schema import plain_schema
from hud_mcp.record.trajectory import live_url
from hud_mcp.server.own_tools import listed_names
from hud_mcp.server.view import View
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session

__all__ = [
    "answer_schema",
    "begun_text",
    "instructions",
    "live_address",
    "next_steps",
    "screen_size",
]

_SCHEMA_CHARS = 4000
"""The longest schema of an answer in a text; programs find it whole beside the text."""


_INSTRUCTIONS = """\
{beginning}
2. {looking}
{acting}4. {talking}response submits your final answer, once, and the task is graded. \
Submit even where the work itself is the answer. task_status tells where a session stands; \
cancel_task gives one up.
An error says what to do next, and leaves the session as it was."""

_LOOKING = """\
step performs actions and shows the result as text{picture}; with no actions it only looks. act \
performs one action and returns text alone, which is quicker.{screenshot}"""
_BARE = "step looks, where there is something to see."

_ANY_SESSION = """\
hud-mcp holds tasks in environments (web pages, questions, games) and grades them.
1. list_tasks shows what there is; start_task begins a task and returns its prompt and a \
`session` id. Pass the id to every other tool; it is optional while you hold just one."""
_ONE_SESSION = """\
hud-mcp holds one task for you in an environment (a web page, a question, a game) and grades it.
1. The task has begun, and you may leave `session` out of every call. task_status repeats its \
prompt."""

_REFS = """\
3. Elements in the text have refs such as [e12]: `{"type": "click", "ref": "e12"}` is surer \
than a point. Points are pixels of the last picture that you were shown.
"""
_CUSTOM = """\
3. Act with `{"type": "custom", "action": …, "args": {…}}`; the schema of step says which actions \
there are, and what they take.
"""
_TOOLS = """\
3. Work with the environment's own tools: {tools}.
"""


def begun_text(session: Session, sessions: Sessions) -> str:
    """Return a session's id, the next steps in it, and the forms of its screen and its answer."""
    typed = ""
    if schema := answer_schema(session).get("answer_schema"):
        shown = orjson.dumps(schema).decode()
        if len(shown) > _SCHEMA_CHARS:
            shown = f"{shown[:_SCHEMA_CHARS]}… (answer_schema has it whole)"
        typed = f" The answer is JSON of this schema: {shown}"
    size = session.screen_size
    screen = "" if size is None else f" The screen is {size[0]} x {size[1]} pixels."
    return f"{next_steps(session, sessions)}{screen}{typed}"


def next_steps(session: Session, sessions: Sessions) -> str:
    """Return a session's id and the next steps in it, with the clients' names of its tools."""
    world = session.environment.world
    acts = bool(world.actions - ({"wait", "custom"} if world.tools_suffice else {"wait"}))
    tools = ", ".join(listed_names(sessions.environments, session.environment))
    also = f" Its own tools: {tools}." if tools else ""
    has_user = session.waits_for == "message_user"
    talk = "talk to the user with message_user; end with response."
    finish = talk if has_user else "finish with response."
    if acts:
        how = f"Look and act with step or act; {finish}"
    elif world.tools_suffice:
        how, also = f"Work with {tools}; {finish}", ""
    else:
        how = f"T{talk[1:]}" if has_user else "Answer with response."
    return f"[session: {session.id}] Pass this id to every call. {how}{also}"


def answer_schema(session: Session) -> dict[str, Any]:
    """Return the form of the answer, if it is no text, and the tool that a conversation waits for.

    The tool is for programs that put a model's own words to the user.
    """
    talks = {} if session.waits_for is None else {"waits_for": session.waits_for}
    schema = session.life.template.returns_schema
    if schema is None or schema.get("type") == "string":
        return talks
    return {"answer_schema": plain_schema(schema), **talks}


def screen_size(session: Session) -> dict[str, Any]:
    """Return the size of a session's pictures, if it has a screen of known size."""
    size = session.screen_size
    return {} if size is None else {"screen": {"width": size[0], "height": size[1]}}


def live_address(sessions: Sessions, session: Session) -> dict[str, Any]:
    """Return the address where people can watch a session, if one is served."""
    if sessions.live_base is None or session.spec.live_token is None:
        return {}
    return {"live_url": live_url(sessions.live_base, session.spec.live_token)}


def instructions(view: View) -> str:
    """Return the way from the list of tasks to the grade, in less than 2,000 characters."""
    own = _TOOLS.replace("{tools}", ", ".join(view.tools)) if view.tools else ""
    acting = _REFS if view.points else _CUSTOM if "custom" in view.types else own
    beginning = _ONE_SESSION if view.one_session else _ANY_SESSION
    looking = _LOOKING if view.acts else _BARE
    text = _INSTRUCTIONS.replace("{beginning}", beginning).replace("{acting}", acting)
    shows = " screenshot only looks." if view.pictures else " screenshot shows a picture."
    text = text.replace("{looking}", looking)
    text = text.replace("{talking}", "message_user talks to a task's user. " if view.talks else "")
    text = text.replace("{picture}", " and picture" if view.pictures else "")
    text = text.replace("{screenshot}", shows if view.screen else "")
    return text if acting else text.replace("\n4. ", "\n3. ")
