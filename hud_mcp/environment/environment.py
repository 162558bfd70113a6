"""An environment: the declaration of an agent's tools, its tasks, and their grading.

Nothing runs until a session opens a world. The names are the HUD SDK's.
"""

import ast
import copy
import hashlib
import inspect
import os
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from hud_mcp.base.secrets import hide
from hud_mcp.environment.calls import CallTemplate, Witness, bind_calls, task_hosts
from hud_mcp.environment.declarations import (
    Declarations,
    check_hook,
    check_name,
    check_needs,
    check_reward_policy,
    check_v5_keywords,
    check_world,
)
from hud_mcp.environment.function import Phase
from hud_mcp.environment.spec import NoWorld, WorldSpec
from hud_mcp.environment.task import Task
from hud_mcp.environment.template import Template
from hud_mcp.environment.tool import Tool
from hud_mcp.errors import CapabilityNotFound, InvalidEnvironment, did_you_mean
from hud_mcp.registry import service
from hud_mcp.values.capability import Capability
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.needs import Needs

if TYPE_CHECKING:
    from hud_mcp.values.context import ContextSelector


HookT = TypeVar("HookT", bound=Callable[[], Awaitable[None]])


class Environment(Declarations):
    """The declaration of one environment.

    Args:
        name: Its identity; a task names it.
        version: Its version, for the manifest and the record.
        capabilities: Running services that the environment publishes to the agent.
        world: The kind of world that a session opens; none by default.
        contexts: Features in which tasks may differ, beside the world's own. A template reads both
            by a parameter annotated with `Context`.
        reward: The policy for showing the reward to agents, instead of the server's: one of
            `REWARD_POLICIES`.
        context_selector: The chooser of a context for each task that sets none.
        seed: The seed of tasks that set none; random for each task by default.
        needs: The resources that one session needs; by default those of its world.
        v5: Keywords of HUD's version 5 are ignored with a `DeprecationWarning`.

    Attributes:
        capabilities: The published capabilities; hooks and authors may change the list.
        source: The file that it was loaded from. That file may import the file that declares it.
        made_of: Its source text, if that is not in a file; else empty.

    Raises:
        InvalidEnvironment: The name, the reward policy, the world or the needs are invalid.
        TypeError: There is no such keyword.
    """

    def __init__(
        self,
        name: str = "environment",
        *,
        version: str = "0.0.1",
        capabilities: Iterable[Capability] | None = None,
        world: WorldSpec | None = None,
        contexts: ContextSpace | None = None,
        reward: str | None = None,
        context_selector: "ContextSelector | None" = None,
        seed: int | None = None,
        needs: Needs | None = None,
        **v5: Any,
    ) -> None:
        frame = inspect.currentframe()
        caller = frame.f_back if frame else None
        self.file = Path(caller.f_code.co_filename) if caller else Path()
        if self.file.is_file():
            hide(self.file, self.file.resolve().parent)
        where = f"{self.file}:{caller.f_lineno}" if caller else "unknown"
        check_v5_keywords(v5)
        check_name(name, where)
        check_reward_policy(reward, where)
        check_world(world, where)
        check_needs(needs, where)
        super().__init__(name, world if world is not None else NoWorld())
        self.version = version
        self.context_space = self.world.context_space | (contexts or ContextSpace())
        self.reward = reward
        self.context_selector = context_selector
        self.seed = seed
        self._needs = needs
        self._own_contexts = contexts or ContextSpace()
        self.capabilities: list[Capability] = []
        for capability in capabilities or ():
            self.add_capability(capability)
        self._on_initialize: list[Callable[[], Awaitable[None]]] = []
        self._on_shutdown: list[Callable[[], Awaitable[None]]] = []
        self._started = False
        self.made_of = ""
        self.source: Path | None = None
        self.workspace_name: str | None = None
        self._notes: list[str] = []
        if type(self) is Environment:  # what was read of a server is found by its address
            _declared[name] = self

    @property
    def needs(self) -> Needs:
        """The resources that one session takes of a machine."""
        return self._needs or self.world.needs

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for agents, beside its templates and tools, one on each line."""
        return tuple(self._notes)

    def tell_agents(self, note: str) -> None:
        """Add a line to its notes."""
        self._notes.append(note)

    def loaded(self, *, source: Path | None = None, text: str = "") -> None:
        """Set its source, a file or a text, and take its digest now: later edits do not count."""
        self.source, self.made_of = source, text
        _ = self.digest

    def freeze(self, folder: Path) -> None:
        """Have its world read a copy of its files, made in an empty folder: edits do not count."""
        freeze_folder(self.folder, self.world.files(self.folder), folder)
        self.folder = folder

    @cached_property
    def folder(self) -> Path:
        """The folder of the environment's file; its world's relative paths start there."""
        return self.file.resolve().parent if self.file.is_file() else Path.cwd()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of its source as it was loaded: 64 hex digits.

        It covers its file, the files beside it that it imports, and the files that its world
        serves. Without a file it covers the text alone that was given to `loaded`.
        """
        files: set[Path] = set()
        if self.file.is_file():
            files |= imported_files(self.file.resolve())
            files |= set(self.world.files(self.folder))
        whole = hashlib.sha256(self.made_of.encode())
        for path in sorted(files):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{os.path.relpath(path, self.folder)} {content}\n".encode())
        return whole.hexdigest()

    @property
    def has_hooks(self) -> bool:
        """Whether something runs before its first session."""
        return bool(self._on_initialize)

    def initialize(self, hook: HookT) -> HookT:
        """Register a hook that runs once, before the first session of a server starts.

        Raises:
            InvalidEnvironment: It is not an async function.
        """
        check_hook(hook, "initialize")
        self._on_initialize.append(hook)
        return hook

    def shutdown(self, hook: HookT) -> HookT:
        """Register a hook that runs once, after the last session of a server has ended.

        Raises:
            InvalidEnvironment: It is not an async function.
        """
        check_hook(hook, "shutdown")
        self._on_shutdown.append(hook)
        return hook

    def add_capability(self, capability: Capability) -> None:
        """Publish a running service; it replaces a service of the same name.

        Raises:
            InvalidEnvironment: It is not a capability.
        """
        if not isinstance(capability, Capability):  # pyright: ignore[reportUnnecessaryIsInstance]  # authors pass anything
            raise InvalidEnvironment(
                f"Environment {self.name!r} cannot publish {capability!r:.60}; give a Capability, "
                "such as Capability.mcp(url=…)."
            )
        others = [each for each in self.capabilities if each.name != capability.name]
        self.capabilities = [*others, capability]

    def capability(self, name: str) -> Capability:
        """Return the capability that is published under a name.

        Raises:
            CapabilityNotFound: No capability has this name; this is a `KeyError` too.
        """
        for each in self.capabilities:
            if each.name == name:
                return each
        known = [each.name for each in self.capabilities]
        raise CapabilityNotFound(
            f"Environment {self.name!r} publishes no {name!r}.{did_you_mean(name, known)} It "
            f"publishes: {', '.join(known) or 'nothing'}."
        )

    def gym(self, target: Any, **_options: Any) -> Any:
        """Raise `InvalidEnvironment`, and name the alternative: `world=Gymnasium(…)`."""
        shown = repr(target) if isinstance(target, str) else "…"
        raise InvalidEnvironment(
            f"Environment {self.name!r}: env.gym is not served here. Write "
            f"Environment({self.name!r}, world=Gymnasium({shown})): it is published to robots as "
            "HUD's is, and agents step it by tools."
        )

    def workspace(
        self, root: str | Path | None = None, *, name: str = "shell", **options: Any
    ) -> Any:
        """Make the environment's world a shell, and publish it as `ssh/2` on the HUD channel.

        Every session has its own folder, which begins as a copy of `root`. Agents use it by the
        tools of a shell, or over ssh. A template with a parameter annotated with `ShellWorld` gets
        the session's shell, and runs in the server's process. Any other template runs in its own
        process, which sees the session's folder at `root`.

        Args:
            root: The folder to begin with; the environment creates it if it is missing. `Workspace`
                describes it and the other options.
            name: The name of the capability.
            options: The options of `Workspace`: HUD's own, and `allow`, `readonly`, `limits`,
                `isolation`, `snapshot_bytes`, `follow_links`.

        Returns:
            The `Workspace`, which becomes `env.world`.

        Raises:
            InvalidEnvironment: The environment has another world, or an option is wrong; the text
                gives the alternative.
        """
        return service("Environment.workspace")(self, root, name=name, **options)

    def use_world(self, world: WorldSpec) -> None:
        """Declare the world of an environment that was made without one.

        Raises:
            InvalidEnvironment: The environment has a world.
        """
        if type(self.world) is not NoWorld:
            raise InvalidEnvironment(
                f"Environment {self.name!r} has a world already, {self.world.name!r}, and a "
                "session can have only one. Leave out `world=`, or the workspace."
            )
        self.world = world
        self.context_space = world.context_space | self._own_contexts
        self.add_world_tools()

    def with_world(self, world: WorldSpec, tools: Iterable[Tool]) -> "Environment":
        """Return it with another world of the same kind, and with these tools alone."""
        made = copy.copy(self)
        own = {each.name: each for each in tools}
        vars(made).update(world=world, _notes=[*self._notes], _tools=own)
        vars(made).pop("digest", None)
        return made

    async def start(self) -> None:
        """Run the initialize hooks, in order, once.

        An error of a hook is raised as is. The next call begins with the first hook again.
        """
        if self._started:
            return
        for hook in self._on_initialize:
            await hook()
        self._started = True

    async def stop(self) -> None:
        """Run the shutdown hooks in reverse order, if the environment was started."""
        if not self._started:
            return
        self._started = False
        for hook in reversed(self._on_shutdown):
            await hook()

    def bind(self, task: Task) -> Task:
        """Return a task that can be started here, its flat lists of names as calls; run nothing.

        Raises:
            InvalidTask: It names an unknown template, argument or function, or calls a function
                with wrong arguments.
            InvalidContext: Its context does not fit this environment.
        """
        self.context_space.fill(task.context)
        if task.prompt is None:
            self.find_template(task.template).arguments.parse(task.args)
            return task
        functions = self.functions
        setup = bind_calls(task.setup, functions, phase=Phase.SETUP, env=self.name)
        evaluate = bind_calls(task.evaluate, functions, phase=Phase.EVALUATE, env=self.name)
        if (setup, evaluate) == (task.setup, task.evaluate):
            return task
        return task.model_copy(update={"setup": setup, "evaluate": evaluate})

    def template_of(self, task: Task, witness: Witness | None = None) -> Template:
        """Return the template of a bound task: one of the environment's, or its own calls.

        Raises:
            InvalidTask: There is no such template.
        """
        if task.prompt is None:
            return self.find_template(task.template)
        return CallTemplate(task, self.functions, witness=witness)

    def replays(self, task: Task) -> bool:
        """Whether a session of a task can be resumed by its steps; hosts of its row may matter."""
        return self.world.replays_with(task_hosts(task))

    def split_context(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Check and complete a context, and return the world's part of it.

        Raises:
            InvalidContext: Features are unknown or out of bounds; the text names each.
        """
        filled = self.context_space.fill(context)
        if not filled:
            return filled
        names = {feature.name for feature in self.world.context_space.features}
        return {name: value for name, value in filled.items() if name in names}

    def manifest(self) -> dict[str, Any]:
        """Return the facts for agents: identity, templates with schemas, tools, capabilities."""
        return {
            "name": self.name,
            "version": self.version,
            "world": self.world.name,
            "actions": sorted(self.world.actions),
            "screen": self.world.has_screen,
            **({"spaces": spaces} if (spaces := self.world.spaces) else {}),
            "templates": [
                {
                    "id": t.id,
                    "description": t.description,
                    "args": t.arguments.schema,
                    **({"input": t.input_schema} if t.input_schema else {}),
                    **({"returns": t.returns_schema} if t.returns_schema else {}),
                }
                for t in self._templates.values()
            ],
            "tools": sorted(self._tools),
            "contexts": [f.model_dump(mode="json") for f in self.context_space.features],
            "capabilities": [{"name": c.name, "protocol": c.protocol} for c in self.capabilities],
        }


_declared: "WeakValueDictionary[str, Environment]" = WeakValueDictionary()


def declared_environment(name: str) -> Environment | None:
    """Return the environment of a name that this process declared last; None if it is gone."""
    return _declared.get(name)


def freeze_folder(folder: Path, files: Iterable[Path], copy: Path) -> None:
    """Make an empty folder look like another one, in which some files do not change any more.

    The files in it are copied. Everything else of the folder becomes a link.
    """
    top: set[str] = set()
    for file in files:
        if file.is_relative_to(folder):
            place = file.relative_to(folder)
            top.add(place.parts[0])
            (copy / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy / place)
    for entry in folder.iterdir():
        if entry.name not in top:
            (copy / entry.name).symlink_to(entry.resolve())


def imported_files(file: Path) -> set[Path]:
    """Return a Python file and the files of its folder that it imports, directly or indirectly.

    Imports under a computed name are not seen. A file that does not parse imports nothing.
    """
    root = file.parent
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for name in _imported_names(path, root):
            waiting.extend(_files_of(name, root))
    return found


def _imported_names(path: Path, root: Path) -> Iterator[str]:
    """Yield the dotted names that a file imports, absolute from the root."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = path.relative_to(root).parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            yield base
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


def _files_of(name: str, root: Path) -> Iterator[Path]:
    place = root
    for part in filter(None, name.split(".")):
        place = place / part
        for candidate in (place.with_suffix(".py"), place / "__init__.py"):
            if candidate.is_file():
                yield candidate
