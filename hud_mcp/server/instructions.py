"""What a client tells its model of the server as a whole."""

from hud_mcp.server.view import View

__all__ = ["instructions"]

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


_TOOLS = """\
3. Work with the environment's own tools: {tools}.
"""


def instructions(view: View) -> str:
    """The way from the list of tasks to the grade, in less than 2,000 characters."""
    own = _TOOLS.replace("{tools}", ", ".join(view.tools)) if view.tools else ""
    acting = _REFS if view.points else _CUSTOM if "custom" in view.types else own
    beginning = _ONE_SESSION if view.one_session else _ANY_SESSION
    text = _INSTRUCTIONS.replace("{beginning}", beginning).replace("{acting}", acting)
    text = text.replace("{picture}", " and picture" if view.screen else "")
    text = text.replace("{screenshot}", " screenshot only looks." if view.screen else "")
    return text if acting else text.replace("\n4. ", "\n3. ")
