"""The world of a session: the tables of a desk, and the calls on them."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from hud_mcp import ActionFailed, EmptyWorld, NoWorld

__all__ = [
    "Call",
    "Desk",
    "DeskWorld",
    "Row",
    "Rule",
    "Tables",
    "find",
    "money",
    "shown",
    "tool_of",
]

Row = dict[str, Any]
Tables = dict[str, dict[str, Row]]
Rule = Callable[..., Any]


class Call(NamedTuple):
    """A call that changed the tables or looked at them, after so many turns of the user."""

    name: str
    turns: int


class DeskWorld(EmptyWorld):
    """One desk: its tables, and the conversation as far as it has come.

    Attributes:
        tables: Its tables; None before a task is started.
        said: The user's words so far, in order.
        calls: Each call that succeeded, in order.
    """

    def __init__(self) -> None:
        self.tables: Tables | None = None
        self.said: list[str] = []
        self.calls: list[Call] = []

    def do(self, rule: Rule, arguments: Row) -> Any:
        """Call a function on the tables.

        Raises:
            ActionFailed: It was refused, and nothing changed; or no task was started.
        """
        if self.tables is None:
            raise ActionFailed("Nobody has written yet. Start a task first.")
        done = rule(self.tables, **arguments)
        self.calls.append(Call(rule.__name__, len(self.said)))
        return done


class Desk(NoWorld):
    """Declares a desk of a business."""

    name = "service"
    world_type = DeskWorld
    is_destructive = True


def tool_of(rule: Rule) -> Callable[..., Awaitable[Any]]:
    """Return a tool of the agent that calls a function on the desk's tables."""

    async def call(desk: DeskWorld, **arguments: Any) -> Any:
        return desk.do(rule, arguments)

    signature = inspect.signature(rule)
    tables, *rest = signature.parameters.values()
    hints = {name: hint for name, hint in rule.__annotations__.items() if name != tables.name}
    named: Any = call
    named.__name__, named.__qualname__ = rule.__name__, rule.__qualname__
    named.__doc__, named.__module__ = rule.__doc__, rule.__module__
    named.__annotations__ = {"desk": DeskWorld, **hints}
    desk = inspect.Parameter("desk", tables.kind, annotation=DeskWorld)
    named.__signature__ = signature.replace(parameters=[desk, *rest])
    return call


def find(tables: Tables, table: str, key: str) -> Row:
    """Return a row; ActionFailed where there is none."""
    rows = tables[table]
    if key not in rows:
        raise ActionFailed(f"There is no {key!r} among the {table}.")
    return rows[key]


def money(cents: int) -> str:
    """Write an amount, such as 59.90."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02}"


def shown(value: Any) -> Any:
    """Return rows for an agent: each amount in cents becomes one in euros."""
    if isinstance(value, dict):
        return {
            str(name).removesuffix("_cents"): (
                f"{money(each)} euros" if str(name).endswith("_cents") else shown(each)
            )
            for name, each in value.items()
        }
    return [shown(each) for each in value] if isinstance(value, list) else value
