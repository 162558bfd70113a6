"""What clients read before they call: the core tools' descriptions and input schemas.

The schemas are flat: several model APIs reject a `oneOf`, a `$ref` or a list of types, and
some fill in every property of an object, so every property but the necessary is optional
and `null` and `""` count as absent. The descriptions are what a model reads. Of actions, a
server shows those that its environments' worlds take.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import mcp_types as types

from hud_mcp.action import ACTION_TYPES, MAX_WAIT_MS, flat_fields
from hud_mcp.environment import Environment

__all__ = ["BEGINNING", "OWN_SESSION", "SESSION", "core_tools", "instructions", "make_tool"]

_INSTRUCTIONS = """\
{beginning}
2. step performs actions and shows the result as text{picture}; with no actions it only \
looks. act performs one action and returns text alone, which is quicker.{screenshot}
{acting}4. Finish with response: it submits your final answer, once, and the task is graded. \
Submit even where the work itself is the answer. task_status tells where a session stands; \
cancel_task gives one up.
An error says what to do next, and leaves the session as it was."""

_ANY_SESSION = """\
hud-mcp holds tasks in environments (web pages, questions, games) and grades them.
1. list_tasks shows what there is; start_task begins a task and returns its prompt and a \
`session` id. Keep the id, and pass it to every other tool."""
_ONE_SESSION = """\
hud-mcp holds one task for you in an environment (a web page, a question, a game) and grades it.
1. The task has begun, and you may leave `session` out of every call. task_status repeats its \
prompt."""

_REFS = """\
3. Elements in the text have refs such as [ref=e12]: `{"type": "click", "ref": "e12"}` is surer \
than a point. Points are pixels of the last picture that you were shown.
"""
_CUSTOM = """\
3. Act with `{"type": "custom", "action": …, "args": {…}}`; the schema of step says which actions \
there are, and what they take.
"""

SESSION: dict[str, Any] = {
    "type": "string",
    "description": "The id that start_task returned. May be left out if you hold just one.",
}


OWN_SESSION: dict[str, Any] = {
    "type": "string",
    "description": "Your session's id. May be left out: you have just one.",
}

BEGINNING = frozenset({"list_tasks", "start_task"})
"""The tools that an agent of one session does not have."""


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema


def _number(description: str) -> dict[str, Any]:
    return {"type": "number", "description": description}


def _string(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _list(items: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": "array", "items": items, "description": description}


_POINT = _object({"x": {"type": "number"}, "y": {"type": "number"}}, "x", "y")

ACTION: dict[str, Any] = {
    "type": _string("What to do; the other fields depend on it.", enum=list(ACTION_TYPES)),
    "x": _number("click, move, scroll, type: pixels from the left of the last picture."),
    "y": _number("click, move, scroll, type: pixels from its top."),
    "ref": _string("Instead of x and y: a ref of the last text, such as e12."),
    "selector": _string("Instead of x and y: a CSS or Playwright selector."),
    "button": _string(
        "click: which button; left by default.",
        enum=["left", "right", "middle", "back", "forward"],
    ),
    "pattern": _list(
        {"type": "integer"},
        "click: pauses in ms between several clicks; [100] is a double click. drag: pauses "
        "between the points.",
    ),
    "hold_keys": _list({"type": "string"}, "click, scroll, drag: keys held down meanwhile."),
    "keys": _list({"type": "string"}, "press, keydown, keyup: such as ['ctrl', 'a'] or ['enter']."),
    "text": _string(
        "type: the text; into x and y, ref or selector it replaces what is there, else it goes "
        "where the focus is. response: the final answer."
    ),
    "enter_after": {"type": "boolean", "description": "type: press Enter afterwards."},
    "scroll_x": _number("scroll: pixels to the right; negative to the left."),
    "scroll_y": _number("scroll: pixels down; negative up."),
    "offset_x": _number("move: pixels to the right of where the pointer is."),
    "offset_y": _number("move: pixels below where the pointer is."),
    "time": {
        "type": "integer",
        "description": f"wait: milliseconds, at most {MAX_WAIT_MS}.",
    },
    "path": _list(_POINT, "drag: the points, in order, at least two."),
    "action": _string(
        "custom: the name of an action of the environment's own; in a browser: goto, back, "
        "forward, reload, switch_tab, close_tab, select_option."
    ),
    "args": {
        "type": "object",
        "description": 'custom: its arguments, such as {"url": "/cart"} for goto.',
    },
}

_OBSERVE = _string(
    "full (default), or changes: only what is different in the text since your last look.",
    enum=["full", "changes"],
)

_AFTER_STEP: dict[str, Any] = {
    "type": "integer",
    "description": "How many steps you have seen, as replies say; 0 at first. A call whose reply "
    "was lost can then be repeated: it is not done twice.",
}

_MOST_CHARS = 1000
"""Of one description; hosts take little more."""


class _Served:
    """What the worlds of some environments take; everything, where there are none."""

    def __init__(self, environments: Iterable[Environment]) -> None:
        worlds = [environment.world for environment in environments]
        taken = frozenset[str]().union(*(world.actions for world in worlds)) | {"response"}
        self.types = [kind for kind in ACTION_TYPES if not worlds or kind in taken]
        self.points = "click" in self.types
        self.screen = not worlds or any(world.has_screen for world in worlds)
        own: list[Mapping[str, Any]] = [
            world.custom_actions for world in worlds if "custom" in world.actions
        ]
        self.custom = _merged(own) if own and all(own) else None

    def action(self) -> dict[str, Any]:
        """The fields of one action."""
        names = frozenset[str]().union(*map(flat_fields, self.types))
        fields = {name: schema for name, schema in ACTION.items() if name in names}
        fields["type"] = {**ACTION["type"], "enum": self.types}
        if "type" not in self.types:
            fields["text"] = _string("response: the final answer.")
        if "custom" in self.types and self.custom is not None:
            fields |= _custom_fields(self.custom)
        return fields


def _merged(own: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The custom actions of several worlds; None where two differ in one of the same name."""
    merged: dict[str, Any] = {}
    for actions in own:
        for name, schema in actions.items():
            if merged.setdefault(name, schema) != schema:
                return None
    return merged


def _custom_fields(custom: Mapping[str, Any]) -> dict[str, Any]:
    """`action` and `args` for these actions: what each takes, side by side."""
    said = [f"{name}: {schema.get('description', 'see args.')}" for name, schema in custom.items()]
    taken: dict[str, Any] = {}
    for name, schema in custom.items():
        for field, what in schema.get("properties", {}).items():
            named = what if len(custom) == 1 else {**what, "description": _of(name, what)}
            if field in taken and len(custom) > 1:
                if {**taken[field], "description": ""} != {**named, "description": ""}:
                    return {"action": _custom_name(custom, said)}
                named["description"] = f"{taken[field]['description']} {named['description']}"
            taken[field] = named
    args = _object(taken) | {"description": "custom: what the action takes."}
    return {"action": _custom_name(custom, said), "args": args}


def _custom_name(custom: Mapping[str, Any], said: list[str]) -> dict[str, Any]:
    return _string(f"custom: {' '.join(said)}"[:_MOST_CHARS], enum=list(custom))


def _of(name: str, what: Mapping[str, Any]) -> str:
    return f"{name}: {what.get('description', 'see there.')}"


def instructions(environments: Iterable[Environment] = (), *, one_session: bool = False) -> str:
    """What a client tells its model of the server as a whole.

    Args:
        environments: Those that are served; none for any.
        one_session: Whether it is for an agent that has one session, and begins none.
    """
    served = _Served(environments)
    acting = _REFS if served.points else _CUSTOM if "custom" in served.types else ""
    beginning = _ONE_SESSION if one_session else _ANY_SESSION
    text = _INSTRUCTIONS.replace("{beginning}", beginning).replace("{acting}", acting)
    text = text.replace("{picture}", " and picture" if served.screen else "")
    text = text.replace("{screenshot}", " screenshot only looks." if served.screen else "")
    return text if acting else text.replace("\n4. ", "\n3. ")


def make_tool(  # noqa: D103  # private to the package; its arguments are the tool's fields
    name: str,
    title: str,
    description: str,
    schema: dict[str, Any],
    *,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
    open_world: bool = False,
) -> types.Tool:
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema=schema,
        annotations=types.ToolAnnotations(
            title=title,
            read_only_hint=read_only,
            destructive_hint=destructive,
            idempotent_hint=idempotent,
            open_world_hint=open_world,
        ),
        # Claude Code otherwise hides the tools of a server behind a search.
        _meta={"anthropic/alwaysLoad": True},
    )


def core_tools(
    environments: Iterable[Environment] = (), *, one_session: bool = False
) -> list[types.Tool]:
    """The tools that every server has, whatever its environments.

    Args:
        environments: Those that are served, whose actions are described; none for all actions.
        one_session: Whether they are for an agent that has one session, and begins none.
    """
    served = _Served(environments)
    action = served.action()
    refs = " with refs" if served.points else ""
    picture = ", and a picture where the environment has a screen" if served.screen else ""
    session = OWN_SESSION if one_session else SESSION
    tools = [
        make_tool(
            "list_tasks",
            "List tasks",
            "List the tasks that can be started, and the templates with their arguments. Call "
            "start_task next, with a task's id, or with a template and its arguments.",
            _object(
                {
                    "environment": _string("Only this environment's."),
                    "filter": _string("Only ids and templates like this; * matches anything."),
                    "offset": {"type": "integer", "description": "Skip so many tasks."},
                }
            ),
            read_only=True,
            idempotent=True,
        ),
        make_tool(
            "start_task",
            "Start a task",
            "Start a task and get its prompt and its session id, to pass to every other tool. "
            "Give `task` (an id of list_tasks), or `template` with `arguments`. Then look with "
            "step, act, and finish with response. Opening may take some seconds.",
            _object(
                {
                    "task": _string("The id of a listed task."),
                    "template": _string("Or: the id of a template."),
                    "arguments": {
                        "type": "object",
                        "description": "The template's arguments; left out, they are its defaults.",
                    },
                    "environment": _string("Needed only if several have such a template."),
                    "context": {
                        "type": "object",
                        "description": "Features of the environment to change, such as "
                        '{"viewport_width": 390}; list_tasks names none, its manifest does.',
                    },
                    "seed": {"type": "integer", "description": "For what is drawn at random."},
                    "session": _string(
                        "An id of your own: `sess-` and 32 to 64 random hex digits. The same call "
                        "again then returns the same session. Leave it out to be given one."
                    ),
                }
            ),
        ),
        make_tool(
            "step",
            "Act and look",
            f"Perform actions in order, then return what there is to see: text{refs}{picture}. No "
            "actions: only look. At a refused action it stops and says which one and what is true "
            "now. Call step again to go on, response when done.",
            _object(
                {
                    "actions": _list(_object(action, "type"), "In order; at most 50."),
                    "observe": _OBSERVE,
                    "after_step": _AFTER_STEP,
                    "session": session,
                }
            ),
            destructive=True,
            open_world=True,
        ),
        make_tool(
            "act",
            "One action",
            "Perform one action and return the text that follows"
            + (
                ", without a picture: quicker than step. Call screenshot or step to see, response "
                "when done."
                if served.screen
                else ". Call step for several, response when done."
            ),
            _object(
                {**action, "observe": _OBSERVE, "after_step": _AFTER_STEP, "session": session},
                "type",
            ),
            destructive=True,
            open_world=True,
        ),
        make_tool(
            "screenshot",
            "Screenshot",
            "Return a picture of the screen; change nothing. Points of later actions are pixels "
            "of it. Where there is no screen, use step, which returns text.",
            _object(
                {
                    "format": _string(
                        "jpeg or png; the server's choice by default.", enum=["jpeg", "png"]
                    ),
                    "session": session,
                }
            ),
            read_only=True,
            idempotent=True,
        ),
        make_tool(
            "response",
            "Submit the answer",
            "Submit your final answer: the task ends and is graded, exactly once. The same answer "
            "again returns the same receipt; another one is refused. Submit also where the work "
            "itself is the answer."
            + ("" if one_session else " Call start_task afterwards for another task."),
            _object(
                {
                    "answer": _string(
                        "The answer alone, without explanation; JSON where the task asks for a "
                        "type. May be empty where the work is the answer."
                    ),
                    "session": session,
                },
                "answer",
            ),
            idempotent=True,
        ),
        make_tool(
            "task_status",
            "Where a task stands",
            "Tell where a session stands: open, being graded, or how it ended, with its receipt. "
            "It repeats the prompt. Change nothing.",
            _object({"session": session}),
            read_only=True,
            idempotent=True,
        ),
        make_tool(
            "cancel_task",
            "Give a task up",
            "End a session without a grade. One that has ended stays as it is."
            + ("" if one_session else " Call start_task for another."),
            _object({"session": session}),
            destructive=True,
            idempotent=True,
        ),
    ]
    return [tool for tool in tools if not (one_session and tool.name in BEGINNING)]
