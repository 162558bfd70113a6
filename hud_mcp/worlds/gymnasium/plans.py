"""What an agent's action stands for: the environment's own actions, in order."""

from collections.abc import Sequence
from typing import Any

from hud_mcp.action import Action, CustomAction
from hud_mcp.errors import ActionFailed, did_you_mean
from hud_mcp.worlds.gymnasium.actions import ActionForm

__all__ = ["MOST_ACTIONS", "how_to_act", "planned"]

MOST_ACTIONS = 100_000
"""How many actions one call may hold; the session bounds its time."""

_ARGUMENTS = ("action", "actions", "repeat")


def planned(form: ActionForm, action: Action) -> Sequence[Any]:
    """The environment's actions that an action stands for.

    Args:
        form: How the environment's actions are written.
        action: What the agent sent.

    Raises:
        ActionFailed: It is none of the environment's.
    """
    if not isinstance(action, CustomAction):
        raise ActionFailed(
            f"There is nothing to {action.type!r} here. {how_to_act(form)} 'screenshot' looks."
        )
    args = dict(action.args or {})
    if action.action != "step":
        args = {"action": _number_of(form, action.action), **args}
    return _repeated(form, args)


def how_to_act(form: ActionForm) -> str:
    """What an agent sends to act, and what its values mean."""
    example = f'{{"type": "custom", "action": "step", "args": {{"action": {form.example}}}}}'
    return f'Send {example}, or "actions" with a list; an action is {form.description}'


def _repeated(form: ActionForm, args: dict[str, Any]) -> Sequence[Any]:
    for name in args:
        if name not in _ARGUMENTS:
            raise ActionFailed(
                f"args: there is no {name!r}.{did_you_mean(name, _ARGUMENTS)} {how_to_act(form)}"
            )
    if ("action" in args) == ("actions" in args):
        raise ActionFailed(f"args: give one of `action` and `actions`. {how_to_act(form)}")
    once = [form.read(args["action"])] if "action" in args else form.read_list(args["actions"])
    repeat = args.get("repeat", 1)
    if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1:
        raise ActionFailed(f"repeat: expected a whole number from 1, got {repeat!r}.")
    if not once or len(once) * repeat > MOST_ACTIONS:
        raise ActionFailed(
            f"{len(once) * repeat} actions were given; give at least one, and at most "
            f"{MOST_ACTIONS} in one call."
        )
    return list(once) * repeat if repeat > 1 else once


def _number_of(form: ActionForm, name: str) -> Any:
    choices = form.choices
    if name.replace("_", " ") in choices:
        return choices[name.replace("_", " ")]
    raise ActionFailed(
        f"There is no action {name!r}.{did_you_mean(name, ['step', *choices])} {how_to_act(form)}"
    )
