"""Custom actions: typed functions whose schemas agents read, and whose arguments are checked."""

from typing import Annotated, Any

import pytest
from pydantic import Field
from tables import each_of

from hud_mcp import ActionEffect, Context, CustomAction, actions
from hud_mcp.environment.tool import CustomActions
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, InvalidEnvironment

pytestmark = pytest.mark.anyio

Level = Annotated[int, Field(ge=1, description="From 1.")]


async def dim(lamp: dict[str, Any], level: Level, reason: str | None = None) -> str:
    """Set the brightness, and tell it.

    Nobody reads this.
    """
    lamp |= {"level": level, "reason": reason}
    return f"It is {level}."


async def press(lamp: dict[str, Any]) -> None:
    """Press it."""
    lamp["pressed"] = True


async def blow(lamp: dict[str, Any]) -> ActionEffect:
    """Blow it out."""
    raise ActionFailed("It is electric.") if "level" in lamp else ActionFailed("It is off.")


TABLE = actions(dim, press, out=blow)


async def test_a_signature_and_a_docstring_become_a_schema() -> None:
    """Flat: an optional argument has no null in it, and only the first paragraph is shown."""
    assert list(TABLE) == ["dim", "press", "out"]
    assert TABLE["dim"] == {
        "type": "object",
        "description": "Set the brightness, and tell it.",
        "properties": {
            "level": {"type": "integer", "minimum": 1, "description": "From 1."},
            "reason": {"type": "string"},
        },
        "required": ["level"],
        "additionalProperties": False,
    }


async def test_an_action_is_performed_with_its_arguments() -> None:
    """What it returns is the effect; null counts as absent where a default is."""
    lamp: dict[str, Any] = {}
    action = CustomAction(action="dim", args={"level": 3, "reason": None})
    assert await TABLE.perform(lamp, action) == ActionEffect(text="It is 3.")
    assert await TABLE.perform(lamp, CustomAction(action="press")) == ActionEffect()
    assert lamp == {"level": 3, "reason": None, "pressed": True}


@each_of(
    ("name", "args", "told"),
    [
        ("dym", {}, "Did you mean 'dim'? There are: dim {level, reason?}, press, out."),
        ("dim", {}, "argument 'level' is required. It is used as dim {level, reason?}."),
        ("dim", {"level": None}, "level: expected a whole number of at least 1, got None"),
        ("dim", {"level": True}, "level: expected a whole number of at least 1, got True"),
        ("dim", {"level": 0}, "level: expected a whole number of at least 1, got 0"),
        ("press", {"hard": 1}, "there is no argument 'hard'. It takes: none"),
        ("out", {}, "It is off."),
    ],
)
async def test_a_wrong_call_is_refused_and_does_nothing(
    name: str, args: dict[str, Any], told: str
) -> None:
    """The text names the argument, what came, and how the action is used."""
    lamp: dict[str, Any] = {}
    with pytest.raises(ActionFailed) as refused:
        await TABLE.perform(lamp, CustomAction(action=name, args=args))
    assert told in str(refused.value)
    assert lamp == {}


def not_async(_lamp: dict[str, Any]) -> None:
    """Return at once."""


async def nothing() -> None:
    """Act on nothing."""


async def contextual(_lamp: dict[str, Any], where: Context) -> None:
    """Ask for what no agent gives."""


async def worldly(_lamp: dict[str, Any], other: World) -> None:
    """Ask for a second world."""


@each_of(
    ("functions", "told"),
    [
        ([not_async], "'not_async' must be async"),
        ([nothing], "'nothing' has no parameters; the first is the world"),
        ([press, press], "Custom actions have different names"),
        ([contextual], "'where' is no argument that an agent can give"),
        ([worldly], "'other' is no argument that an agent can give"),
    ],
)
def test_what_cannot_be_an_action_is_refused(functions: list[Any], told: str) -> None:
    """By the author's file and line where there is one."""

    def declare() -> CustomActions:
        declared = actions(*functions)
        assert len([declared[name] for name in declared]) == len(functions)
        return declared

    with pytest.raises(InvalidEnvironment, match=told):
        declare()
