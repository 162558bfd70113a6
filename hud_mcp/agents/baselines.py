"""Agents to compare others with: a template's own solution, an empty answer, and chance."""

import inspect
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import cache
from random import Random
from typing import Any, cast

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.kind import AgentKind
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import ActionFailed, InvalidTask
from hud_mcp.registry import service
from hud_mcp.values.action import ACTION_CLASSES
from hud_mcp.values.refs import refs_in


class OracleAgent:
    """An agent that knows every template's solution. It uses the tools of any client."""

    name = "oracle"
    is_remote = False

    def __init__(self, environments: Iterable[Environment]) -> None:
        self._environments = {e.name: e for e in environments}

    async def solve(self, agent: Agent, task: Task) -> None:
        """Solve a task. Submit the solution's result, unless it has submitted an answer itself.

        Raises:
            InvalidTask: The template has no oracle.
            ActionFailed: The world refused an action of the solution.
        """
        if task.prompt is not None:
            raise InvalidTask(
                f"The task {task.id!r} has its own prompt, and only templates have oracles."
            )
        environment = self._environments[task.env]
        template = environment.find_template(task.template)
        function = template.oracle_function
        if function is None:
            raise InvalidTask(
                f"{template.where}: {template.noun} has no oracle; declare one with "
                f"@{template.__name__}.oracle."
            )
        arguments = template.arguments.parse(task.args)
        context = environment.context_space.fill(task.context)
        arguments |= {name: dict(context) for name in template.arguments.context_names}
        answer = await function(agent, **{name: arguments[name] for name in _asked_by(function)})
        if not agent.answered:
            await agent.respond("" if answer is None else answer)


@cache
def _asked_by(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)[1:]


class NopAgent:
    """An agent that submits an empty answer. Its reward is what a task gives away for free."""

    name = "nop"
    is_remote = False

    async def solve(self, agent: Agent, task: Task) -> None:  # noqa: ARG002  # every solver takes it
        """Submit an empty answer."""
        await agent.respond("")


ORACLE = AgentKind(lambda _options, place: nullcontext(OracleAgent(place.environments())))
NOP = AgentKind(lambda _options, _place: nullcontext(NopAgent()))

WORDS = ("red", "lamp", "seven", "north", "paper", "yes", "no", "first", "42", "3.5")
"""The words that a drawn text consists of."""

_REACH = 10
"""The largest distance from 0 of a number without bounds."""
_MOST_ITEMS = 3
_DEPTH = 6
_CHARS = 40

Schema = Mapping[str, Any]


def sample(schema: Schema, draw: Random) -> Any:
    """Draw a value of a JSON schema, whose references lead to its own `$defs`.

    Patterns and formats of texts are not read. Endless nesting is cut off.
    """
    return _sample(schema, draw, schema, _DEPTH)


def _sample(schema: Schema, draw: Random, root: Schema, depth: int) -> Any:
    if "$ref" in schema:
        return _sample(_resolved(str(schema["$ref"]), root), draw, root, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw.choice(list(schema["enum"]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            chosen: Schema = draw.choice(list(schema[several]))
            return _sample(chosen, draw, root, depth)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = draw.choice(cast("list[str]", kind))
    if kind is None:
        kind = "object" if "properties" in schema else "string"
    return _KINDS.get(str(kind), _text)(schema, draw, root, depth)


def _resolved(reference: str, root: Schema) -> Schema:
    found: Any = root
    for part in filter(None, reference.removeprefix("#").split("/")):
        found = found.get(part, {}) if isinstance(found, Mapping) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # JSON
    return cast("Schema", found)


def _bounds(schema: Schema, step: float) -> tuple[float, float]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + step
    if high is None and "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - step
    if low is None:
        low = -_REACH if high is None else min(-_REACH, high - _REACH)
    if high is None:
        high = max(_REACH, low + _REACH)
    return float(low), float(high)


def _integer(schema: Schema, draw: Random, _root: Schema, _depth: int) -> int:
    low, high = _bounds(schema, 1)
    step = int(schema.get("multipleOf", 1)) or 1
    first = -(-int(low) // step)
    return step * draw.randint(first, max(first, int(high) // step))


def _text(schema: Schema, draw: Random, _root: Schema, _depth: int) -> str:
    least = int(schema.get("minLength", 0))
    most = int(schema.get("maxLength", max(_CHARS, least)))
    text = draw.choice(WORDS)
    while len(text) < least:
        text = f"{text} {draw.choice(WORDS)}"
    return text[:most]


def _array(schema: Schema, draw: Random, root: Schema, depth: int) -> list[Any]:
    fixed: list[Schema] = list(schema.get("prefixItems", ()))
    made = [_sample(item, draw, root, depth - 1) for item in fixed]
    least = int(schema.get("minItems", 0))
    most = int(schema.get("maxItems", max(least, _MOST_ITEMS)))
    count = least if depth <= 0 else draw.randint(least, max(least, min(most, least + _MOST_ITEMS)))
    items: Schema = schema.get("items") or {}
    made += [_sample(items, draw, root, depth - 1) for _ in range(count - len(made))]
    return made


def _object(schema: Schema, draw: Random, root: Schema, depth: int) -> dict[str, Any]:
    properties: dict[str, Schema] = dict(schema.get("properties", {}))
    required = set(schema.get("required", ()))
    return {
        name: _sample(part, draw, root, depth - 1)
        for name, part in properties.items()
        if name in required or (depth > 0 and draw.random() < 1 / 2)
    }


_KINDS: dict[str, Callable[[Schema, Random, Schema, int], Any]] = {
    "integer": _integer,
    "number": lambda schema, draw, _root, _depth: draw.uniform(*_bounds(schema, 1e-6)),
    "boolean": lambda _schema, draw, _root, _depth: draw.random() < 1 / 2,
    "null": lambda _schema, _draw, _root, _depth: None,
    "string": _text,
    "array": _array,
    "object": _object,
}

Choice = Callable[[Random, str], dict[str, Any]]
"""Draws an action as JSON, from the last text of the world."""

_KEYS = ("enter", "tab", "escape", "space", "up", "down", "left", "right")
_WIDTH_PX, _HEIGHT_PX = 1280, 720
_LONGEST_MS = 200
_LEFT_OUT = frozenset({"response", "custom", "keydown", "keyup", "position", "screenshot", "wait"})
"""Actions that are not drawn: they end the task, have an own schema, or are idle."""
_UNUSED = frozenset({"type", "reasoning", "logs", "selector", "hold_keys", "pattern"})


def action_choices(environment: Environment) -> list[Choice]:
    """Return the possible actions. A Gymnasium environment has its space's steps alone."""
    world = environment.world
    described = world.spaces
    if described is not None and "step" in world.custom_actions:
        return [_space_choice(described["action"])]
    kinds = sorted(world.actions - _LEFT_OUT)
    found: list[Choice] = [_typed_choice(kind) for kind in kinds if kind in ACTION_CLASSES]
    return found + [_custom_choice(name, s) for name, s in sorted(world.custom_actions.items())]


def _space_choice(described: Mapping[str, Any]) -> Choice:
    space = service("space from JSON")(described)
    seeded: list[int] = []

    def draw(random: Random, _text: str) -> dict[str, Any]:
        if not seeded:
            seeded.append(random.getrandbits(31))
            space.seed(seeded[0])
        return {"type": "custom", "action": "step", "args": {"action": _plain(space.sample())}}

    return draw


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  # Gymnasium's
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]  # the same
    return value.tolist() if hasattr(value, "tolist") else value


def _custom_choice(name: str, schema: Mapping[str, Any]) -> Choice:
    def draw(random: Random, text: str) -> dict[str, Any]:
        args = _aimed(sample(schema, random), random, text)
        return {"type": "custom", "action": name, "args": args}

    return draw


def _typed_choice(kind: str) -> Choice:
    schema = ACTION_CLASSES[kind].model_json_schema()
    parts = {k: v for k, v in schema["properties"].items() if k not in _UNUSED}
    whole = {**schema, "properties": parts, "required": list(parts)}

    def draw(random: Random, text: str) -> dict[str, Any]:
        made: dict[str, Any] = sample(whole, random)
        for name, value in made.items():
            if name == "keys":
                made[name] = [random.choice(_KEYS)]
            elif name in ("point", "offset", "scroll"):
                made[name] = _point(random)
            elif name == "path":
                made[name] = [_point(random), _point(random)]
            elif name == "time":
                made[name] = random.randint(0, _LONGEST_MS)
            elif name == "text":
                made[name] = value or random.choice(WORDS)
        return {"type": kind, **_aimed(made, random, text)}

    return draw


def _point(random: Random) -> dict[str, int]:
    return {"x": random.randrange(_WIDTH_PX), "y": random.randrange(_HEIGHT_PX)}


def _aimed(made: dict[str, Any], random: Random, text: str) -> dict[str, Any]:
    refs = refs_in(text)
    if "ref" in made:
        made["ref"] = random.choice(refs) if refs else None
        if refs:
            made.pop("point", None)
    return {name: value for name, value in made.items() if value is not None}


_STEPS = 20
"""The steps of a run without any bound."""
_EPISODE = 1_000
"""The steps of an episode without a bound of its own."""
_REFUSALS = 5
"""After so many refusals in a row, the episode is over."""
_SEED_BITS = 32


class RandomAgent:
    """An agent that acts and answers at random, from the seed of the run.

    In an environment that it does not know, it only answers. Without a bound of steps, the world
    suggests one.
    """

    name = "random"
    is_remote = False

    def __init__(self, environments: Iterable[Environment], *, max_steps: int | None) -> None:
        self._environments = {e.name: e for e in environments}
        self._max_steps = max_steps

    async def solve(self, agent: Agent, task: Task) -> None:
        """Act, then answer. The log has the seed."""
        seed = secrets.randbits(_SEED_BITS) if task.seed is None else task.seed
        agent.log(f"random: seed {seed}")
        random = Random(seed)  # noqa: S311  # no secret
        environment = self._environments.get(task.env)
        if environment is not None:
            await self._act(agent, environment, random)
        await agent.respond(_answer(environment, task, agent.prompt, random))

    async def _act(self, agent: Agent, environment: Environment, random: Random) -> None:
        choices = action_choices(environment)
        refused = 0
        for _ in range(self._steps_of(environment) if choices else 0):
            try:
                await agent.step(random.choice(choices)(random, agent.text))
            except ActionFailed:
                refused += 1
                if refused == _REFUSALS:
                    return
                continue
            refused = 0

    def _steps_of(self, environment: Environment) -> int:
        episode = getattr(environment.world, "most_steps", None)
        least = _STEPS if environment.world.spaces is None else (episode or _EPISODE)
        return least if self._max_steps is None else min(least, self._max_steps)


def _answer(environment: Environment | None, task: Task, prompt: str, random: Random) -> object:
    """Draw an answer that the template's schema admits, else a word of the prompt or any other."""
    if environment is not None and task.prompt is None:
        schema = environment.find_template(task.template).returns_schema
        if schema is not None and schema.get("type") != "string":
            return sample(schema, random)
    return random.choice([*re.findall(r"\w+", prompt)[:200], *WORDS])


RANDOM = AgentKind(
    lambda _options, place: nullcontext(
        RandomAgent(place.environments(), max_steps=place.max_steps)
    )
)
