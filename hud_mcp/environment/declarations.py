"""The declarations of an environment: its templates, its tools, its functions."""

import inspect
import warnings
from collections import ChainMap
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, overload

from hud_mcp.environment.arguments import source_line
from hud_mcp.environment.function import REGISTERED, Function, Use
from hud_mcp.environment.spec import WorldSpec
from hud_mcp.environment.template import Template, TemplateFunction
from hud_mcp.environment.tool import Tool
from hud_mcp.errors import InvalidEnvironment, InvalidTask, InvalidTemplate, name_known
from hud_mcp.values.needs import Needs

REWARD_POLICIES = ("hidden", "on_submit", "per_step")
"""The readers of the reward: the record alone, the agent at the end, the agent at each step."""

_NAME_CHARS = 64
_V5_KEYWORDS = frozenset(
    {
        "auth", "cache_expiration_seconds", "conflict_resolution", "dereference_schemas",
        "exclude_tags", "icons", "include_fastmcp_meta", "include_tags", "instructions",
        "lifespan", "mask_error_details", "middleware", "on_duplicate", "on_duplicate_prompts",
        "on_duplicate_resources", "on_duplicate_tools", "providers", "resource_prefix_format",
        "sampling_handler", "sampling_handler_behavior", "session_state_store",
        "strict_input_validation", "tasks", "tool_serializer", "tool_transformations", "tools",
        "transforms", "website_url",
    }
)  # fmt: skip
"""The keywords of HUD's Environment before version 6, when it was a FastMCP server."""


def check_hook(hook: Any, kind: str) -> None:
    """Raise `InvalidEnvironment` for a hook that is not an async function.

    A callable that is no plain function is let through.
    """
    if not callable(hook):
        raise InvalidEnvironment(
            f"@env.{kind} decorates an async function, not {hook!r:.60}. Write "
            f"`@env.{kind}` above `async def …():`."
        )
    plain = inspect.isfunction(hook) and hook.__name__ != "<lambda>"
    if plain and not inspect.iscoroutinefunction(inspect.unwrap(hook)):
        raise InvalidEnvironment(
            f"{source_line(hook)}: the {kind} hook {hook.__name__!r} is not async. Write "
            f"`async def {hook.__name__}():`."
        )


def check_name(name: Any, where: str) -> None:
    """Raise `InvalidEnvironment` for a name that is no line of text, or too long for the record.

    HUD allows any line; MCP gets allowed names.
    """
    is_line = isinstance(name, str) and name == name.strip() and name.isprintable()
    if is_line and 0 < len(name) <= _NAME_CHARS:
        return
    raise InvalidEnvironment(
        f"{where}: {name!r:.80} cannot name an environment; give a line of text without spaces "
        f"around it, at most {_NAME_CHARS} characters."
    )


def check_v5_keywords(given: Mapping[str, Any]) -> None:
    """Warn of keywords that HUD's environments took before version 6; others are a `TypeError`."""
    unknown = sorted(set(given) - _V5_KEYWORDS)
    if unknown:  # as Python's own for a function without such a parameter
        raise TypeError(f"Environment.__init__() got an unexpected keyword argument {unknown[0]!r}")
    if given:
        names = ", ".join(sorted(given))
        warnings.warn(
            f"Environment() ignores {names}: HUD's environments take that no more since version 6.",
            DeprecationWarning,
            stacklevel=3,  # where the environment is made
        )


def check_world(world: Any, where: str) -> None:
    """Raise `InvalidEnvironment` for a class, or an object that declares no world."""
    if isinstance(world, type):
        raise InvalidEnvironment(
            f"{where}: world={world.__name__} is a class; write world={world.__name__}(…)."
        )
    if world is not None and not isinstance(world, WorldSpec):
        raise InvalidEnvironment(
            f"{where}: {world!r} is not a world; give what declares one, such as Browser() or "
            "Shell(). A world of your own is declared by a class that derives from WorldSpec."
        )


def check_needs(needs: Any, where: str) -> None:
    """Raise `InvalidEnvironment` for an object that does not declare the needs of a session."""
    if needs is not None and not isinstance(needs, Needs):
        raise InvalidEnvironment(
            f"{where}: needs={needs!r} says no needs; write needs=Needs(cpus=2, memory_mb=1000)."
        )


def check_reward_policy(reward: str | None, where: str) -> None:
    """Raise `InvalidEnvironment` for an unknown reward policy."""
    if reward is not None and reward not in REWARD_POLICIES:
        raise InvalidEnvironment(
            f"{where}: reward={reward!r} is not a reward policy; choose one of "
            f"{', '.join(REWARD_POLICIES)}."
        )


_EVERYWHERE: Any = REGISTERED  # a ChainMap changes its first mapping alone

ToolT = TypeVar("ToolT", bound=Callable[..., Awaitable[Any]])


class Declarations:
    """The templates, tools and functions of an environment, as its author declared them.

    The tools of the kind of `world` that its sessions open are offered too.
    """

    def __init__(self, name: str, world: WorldSpec) -> None:
        self.name = name
        self.world: WorldSpec = world
        self._templates: dict[str, Template] = {}
        self._tools: dict[str, Tool] = {}
        self._functions: dict[str, Function] = {}
        self.add_world_tools()

    @property
    def templates(self) -> Mapping[str, Template]:
        """Every template by its id."""
        return self._templates

    @property
    def tasks(self) -> Mapping[str, Template]:
        """The templates under HUD's name; each creates tasks."""
        return self._templates

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Each of its own tools by its name."""
        return self._tools

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions of tasks by name: its own, its world's, and those of every environment."""
        return ChainMap(self._functions, {f.name: f for f in self.world.functions}, _EVERYWHERE)

    @overload
    def template(self, function: TemplateFunction) -> Template: ...
    @overload
    def template(
        self,
        *,
        id: str | None = None,  # HUD's name
        description: str = "",
        input: Any = None,  # HUD's name
        returns: Any = None,
        reward: str | None = None,
        user: bool = False,
    ) -> Callable[[TemplateFunction], Template]: ...
    def template(
        self,
        function: TemplateFunction | None = None,
        *,
        id: str | None = None,  # noqa: A002  # HUD's name
        description: str = "",
        input: Any = None,  # noqa: A002  # HUD's name
        returns: Any = None,
        reward: str | None = None,
        user: bool = False,
    ) -> Any:
        """Register a template: an async generator that yields a prompt, then a grade.

        Args:
            function: The generator, if the decorator has no parentheses.
            id: Its id; the function's name by default.
            description: One line for people; by default the docstring's first line.
            input: A type that describes the agent's input beside the prompt.
            returns: The type of the answer; the template then receives `Answer[T]`.
            reward: The policy for showing the reward to agents: one of `REWARD_POLICIES`.
            user: Whether it talks: it yields `Say`, and its server lists `message_user`.

        Raises:
            InvalidTemplate: The function is not a valid template, or the id is taken. The text
                names file and line.
            InvalidEnvironment: There is no such reward policy.
        """

        def register(function: TemplateFunction) -> Template:
            check_reward_policy(reward, source_line(function))
            made = Template(
                function,
                env=self.name,
                id=id,
                description=description,
                input=input,
                returns=returns,
                reward=reward,
                user=user,
            )
            self._add_template(made)
            return made

        if isinstance(function, str):
            raise InvalidEnvironment(f"Name a template by its id: @env.template(id={function!r}).")
        return register if function is None else register(function)

    def tool(
        self,
        function: Callable[..., Awaitable[Any]] | None = None,
        *,
        name: str | None = None,
        read_only: bool = False,
        replayable: bool = True,
        open_world: bool | None = None,
    ) -> Any:
        """Register an async function as a tool that agents may call.

        Args:
            function: The function, if the decorator has no parentheses.
            name: The tool's name; the function's by default.
            read_only: Whether clients learn that it changes nothing.
            replayable: Whether resuming a session may call it again after its server has ended.
                Write False for effects outside the world, such as sent mail.
            open_world: Whether it acts outside the server, for clients. By default the world
                decides; a tool that is not replayable acts outside.

        Raises:
            InvalidEnvironment: The function is not a valid tool, or the name is taken.
        """

        def register(function: ToolT) -> ToolT:
            made = Tool(
                function,
                name=name,
                read_only=read_only,
                replayable=replayable,
                open_world=open_world,
            )
            if made.name in self._tools:
                taken = self._tools[made.name].where
                raise InvalidEnvironment(
                    f"{made.where}: tool {made.name!r} is declared already, at {taken}."
                )
            self._check_worlds(made.arguments.world_types, made.where, f"tool {made.name!r}")
            self._tools[made.name] = made
            return function

        return register if function is None else register(function)

    def function(
        self,
        function: Callable[..., Awaitable[Any]] | None = None,
        *,
        name: str | None = None,
        use: Use = "both",
        weak: str | None = None,
    ) -> Any:
        """Register an async function that `setup` and `evaluate` of tasks may name.

        Args:
            function: The function, if the decorator has no parentheses.
            name: Its name in tasks; the function's name by default.
            use: The fields of a task that may name it: `setup`, `evaluate` or `both`.
            weak: A sentence that says how an agent can forge its result; None if it cannot.

        Raises:
            InvalidEnvironment: The function is not valid, or the name is taken.
        """

        def register(function: ToolT) -> ToolT:
            made = Function(function, name=name, use=use, weak=weak)
            if made.name in self.functions:
                taken = self.functions[made.name].where
                raise InvalidEnvironment(
                    f"{made.where}: function {made.name!r} is declared already, at {taken}."
                )
            self._check_worlds(made.world_types, made.where, f"function {made.name!r}")
            self._functions[made.name] = made
            return function

        return register if function is None else register(function)

    def offer(self, tool: Tool) -> None:
        """Offer a tool that was made elsewhere, in place of one of the same name."""
        self._tools[tool.name] = tool

    def find_template(self, template_id: str) -> Template:
        """Return a template; `InvalidTask` if no template has that id."""
        if template_id not in self._templates:
            known = name_known(template_id, self._templates, what="It has")
            raise InvalidTask(f"Environment {self.name!r} has no template {template_id!r}.{known}")
        return self._templates[template_id]

    def _add_template(self, made: Template) -> None:
        for other in self._templates.values():
            if other.id == made.id:
                raise InvalidTemplate(
                    f"{made.where}: the id {made.id!r} is taken by the template at {other.where}; "
                    "give this one another id."
                )
            if other.function.__name__ == made.function.__name__ and made.__name__ != "_":
                raise InvalidTemplate(
                    f"{made.where}: a template function {made.__name__!r} is declared already, at "
                    f"{other.where}; the second hides the first, so rename one."
                )
        self._check_worlds(made.arguments.world_types, made.where, made.noun)
        self._templates[made.id] = made

    def add_world_tools(self) -> None:
        """Offer the tools that come with a kind of world."""
        for tool in self.world.tools:
            self._tools.setdefault(tool.name, tool)

    def _check_worlds(self, asked: Mapping[str, type], where: str, noun: str) -> None:
        for name, world_type in asked.items():
            if not issubclass(self.world.world_type, world_type) and world_type.__name__ != "World":
                raise InvalidTemplate(
                    f"{where}: {noun} asks for {world_type.__name__} in {name!r}, but "
                    f"environment {self.name!r} {self._opens(world_type)}."
                )

    def _opens(self, wanted: type) -> str:
        opened = self.world.world_type.__name__
        if opened != "EmptyWorld":
            return f"opens a world of another kind, {opened}"
        spec = wanted.__name__.removesuffix("World")
        return f"has no world. Declare one: Environment({self.name!r}, world={spec}(…))"
