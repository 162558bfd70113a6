"""The world of a session: the databases of a desk and of its user, and the calls on them."""

import ast
import inspect
import operator
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tau2_airline
import tau2_mock
import tau2_phone
import tau2_phone_calls
import tau2_phone_checks
import tau2_retail
import tau2_telecom
from tau2_tables import Database, Row

from hud_mcp import ActionFailed, EmptyWorld, NoWorld, Opening

__all__ = ["DOMAINS", "Desk", "DeskWorld", "Domain", "tool_of", "user_tool_of"]

Rule = Callable[..., Any]
Tables = Mapping[str, Any]

MOST_CHARS = 200
_OPERATORS: Mapping[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def calculate(db: Database, expression: str) -> str:  # noqa: ARG001  # as the other tools
    """Calculate with numbers, `+ - * /` and parentheses; the result has two decimals."""
    try:
        if len(expression) > MOST_CHARS:
            raise ActionFailed(f"An expression has at most {MOST_CHARS} characters")
        return str(round(_value(ast.parse(expression.strip(), mode="eval").body), 2))
    except (SyntaxError, ValueError, ArithmeticError, RecursionError) as exc:
        raise ActionFailed(f"This cannot be calculated: {exc}") from exc


def transfer_to_human_agents(db: Database, summary: str) -> str:  # noqa: ARG001
    """Transfer the user to a human, where your tools cannot help, or where the policy says so."""
    return "Transfer successful"


def _value(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.operand))
    raise ValueError("it has more than numbers, + - * / and parentheses")


@dataclass(frozen=True)
class Domain:
    """One business: the tables of both sides, and the functions on them.

    Attributes:
        name: The folder of its files.
        nouns: Its tables, with what one row of each is.
        reads: The agent's tools that change nothing.
        writes: The agent's other tools.
        checks: Functions for assertions and for the beginning of rows.
        user_nouns: The tables of the user's side.
        user_calls: The tools of the user.
        user_checks: As `checks`, on the user's side.
        tables: A function that makes the tables of its file.
        user_tables: As `tables`, of the user's file.
        synchronize: What a call on one side changes on the other, after each call.
        means: For an assertion, the call that meets it: its side, its name, and how its arguments
            are named in the assertion.
    """

    name: str
    nouns: Mapping[str, str]
    reads: tuple[Rule, ...]
    writes: tuple[Rule, ...]
    checks: tuple[Rule, ...] = ()
    user_nouns: Mapping[str, str] | None = None
    user_calls: tuple[Rule, ...] = ()
    user_checks: tuple[Rule, ...] = ()
    tables: Callable[[Tables], Tables] = dict
    user_tables: Callable[[Tables], Tables] = dict
    synchronize: Callable[[Database, Database], None] = lambda _desk, _user: None
    means: Mapping[str, tuple[str, str, Mapping[str, str]]] = field(default_factory=dict)

    def rule(self, side: str, name: str) -> Rule:
        """The function of a side with a name; LookupError where it has none."""
        desk, user = (
            (*self.reads, *self.writes, *self.checks),
            (*self.user_calls, *self.user_checks),
        )
        return next(each for each in (user if side == "user" else desk) if each.__name__ == name)


_ALL = (
    Domain(
        "retail",
        tau2_retail.NOUNS,
        (*tau2_retail.READS, calculate),
        (*tau2_retail.WRITES, transfer_to_human_agents),
    ),
    Domain(
        "airline",
        tau2_airline.NOUNS,
        (*tau2_airline.READS, calculate),
        (*tau2_airline.WRITES, transfer_to_human_agents),
    ),
    Domain(
        "mock",
        tau2_mock.NOUNS,
        tau2_mock.READS,
        (*tau2_mock.WRITES, transfer_to_human_agents),
        tau2_mock.CHECKS,
        tau2_mock.USER_NOUNS,
        tau2_mock.USER_CALLS,
        tau2_mock.USER_CHECKS,
        means=tau2_mock.MEANS,
    ),
    Domain(
        "telecom",
        tau2_telecom.NOUNS,
        tau2_telecom.READS,
        (*tau2_telecom.WRITES, transfer_to_human_agents),
        tau2_telecom.CHECKS,
        tau2_phone.NOUNS,
        tau2_phone_calls.CALLS,
        tau2_phone_checks.CHECKS,
        tau2_telecom.tables,
        tau2_phone.tables,
        tau2_telecom.synchronize,
    ),
)
DOMAINS = {each.name: each for each in _ALL}


class Books:
    """The databases of both sides, at one moment of a row.

    Attributes:
        desk: The agent's database.
        user: The user's.
    """

    def __init__(self, domain: Domain, db: Mapping[str, Any], user_db: Mapping[str, Any]) -> None:
        self._domain = domain
        self.desk = Database(domain.nouns, domain.tables(db))
        self.user = Database(domain.user_nouns or {}, domain.user_tables(user_db))

    def call(self, side: str, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a function of a side.

        Raises:
            ActionFailed: It was refused. Nothing changed.
        """
        try:
            rule = self._domain.rule(side, name)
            found = rule(self.user if side == "user" else self.desk, **arguments)
            self._domain.synchronize(self.desk, self.user)
        except (StopIteration, TypeError, KeyError) as exc:
            raise ActionFailed(f"{name} cannot be called with {dict(arguments)}: {exc!r}") from exc
        return found

    def holds(self, assertion: Mapping[str, Any]) -> bool:
        """Whether an assertion is as it should be; one that fails does not hold."""
        of = assertion
        try:
            found = self.call(of["env_type"], of["func_name"], of["arguments"])
        except ActionFailed:
            return False
        return found is of.get("assert_value", True)

    @property
    def digests(self) -> tuple[str, str]:
        """The digests of both databases."""
        return self.desk.digest, self.user.digest


class DeskWorld(EmptyWorld):
    """One desk: the databases of its row, and who called which function on them.

    Attributes:
        domain: Its business.
        books: Its databases; None before a task is started.
        calls: Each call of the agent and of the user: the side, the name, the arguments.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.books: Books | None = None
        self.calls: list[tuple[str, str, Row]] = []

    def do(self, side: str, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a function for the agent or for the user, and remember it, also where it is refused.

        Raises:
            ActionFailed: It was refused, or no task was started.
        """
        if self.books is None:
            raise ActionFailed("Nobody has written yet. Start a task first.")
        self.calls.append((side, name, dict(arguments)))
        return self.books.call(side, name, arguments)


class Desk(NoWorld):
    """Declares a desk of one business."""

    name = "tau2"
    world_type = DeskWorld
    is_destructive = True

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    async def open(self, opening: Opening) -> DeskWorld:  # noqa: ARG002  # a task fills it
        """Open a desk without a database; the task's template fills it."""
        return DeskWorld(self._domain)


def tool_of(rule: Rule) -> Callable[..., Awaitable[Any]]:
    """Return a tool of the agent that calls a function on the desk's database."""

    async def call(desk: DeskWorld, **arguments: Any) -> Any:
        return desk.do("assistant", rule.__name__, arguments)

    return _signed(call, rule, {"desk": DeskWorld})


def user_tool_of(desk: DeskWorld, rule: Rule) -> Callable[..., Awaitable[Any]]:
    """Return a tool of the user that calls a function on the user's database."""

    async def call(**arguments: Any) -> Any:
        return desk.do("user", rule.__name__, arguments)

    return _signed(call, rule, {})


def _signed(call: Any, rule: Rule, first: Mapping[str, type]) -> Callable[..., Awaitable[Any]]:
    """Give a call the name, the text and the arguments of a function, but for its database."""
    signature = inspect.signature(rule)
    database, *rest = signature.parameters.values()
    hints = {name: hint for name, hint in rule.__annotations__.items() if name != database.name}
    call.__name__, call.__qualname__ = rule.__name__, rule.__qualname__
    call.__doc__, call.__module__ = rule.__doc__, rule.__module__
    call.__annotations__ = {**first, **hints}
    added = [inspect.Parameter(n, database.kind, annotation=hint) for n, hint in first.items()]
    call.__signature__ = signature.replace(parameters=[*added, *rest])
    return call
