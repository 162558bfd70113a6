"""A CustomGym as an environment: its declaration, its worlds, and its controller's functions."""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio

from hud_mcp.environment import Environment
from hud_mcp.environment.function import Function
from hud_mcp.environment.gyms import CustomGym
from hud_mcp.environment.spec import Opening, WorldSpec
from hud_mcp.environment.task import Task
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, EnvironmentFailed, InvalidTask, SourceNotFound
from hud_mcp.plugins.hud.live.places import (
    PACKAGE,
    Container,
    Place,
    Workshop,
    build_image,
    find_engine,
    run_once,
)
from hud_mcp.values.action import INPUT_TYPES, Action, ActionEffect
from hud_mcp.values.needs import Needs
from hud_mcp.values.observation import Look, Observation

_OWN = frozenset({"step", "get_urls"})
"""The functions that the live environment calls itself."""


class _Omitted:
    """The value of an argument for which the controller has a default."""

    def __repr__(self) -> str:
        return "…"


_OMITTED = _Omitted()


def controller_functions(found: Mapping[str, Any]) -> tuple[Function, ...]:
    """Return a controller's functions by their dotted paths, from what `controller_inside` lists.

    A function's parameters are None if unknown.
    """
    made: list[Function] = []
    for path, takes in found.items():
        if path not in _OWN:
            where = f"hud_controller.{path}"
            made.append(Function(_function(path, takes), name=path, where=where))
    return tuple(made)


def _function(path: str, takes: Mapping[str, Any] | None) -> Callable[..., Awaitable[Any]]:
    async def call(world: ControllerWorld, *args: Any) -> Any:
        return await world.invoke(path, [each for each in args if each is not _OMITTED])

    kinds = inspect.Parameter
    parameters = [kinds("world", kinds.POSITIONAL_ONLY)]
    for name, optional in () if takes is None else takes["names"]:
        default = _OMITTED if optional else kinds.empty
        called = "world_" if name == "world" else str(name)
        parameters.append(kinds(called, kinds.POSITIONAL_ONLY, default=default))
    rest = "args" if takes is None else takes["rest"]
    if rest is not None:
        parameters.append(kinds(rest, kinds.VAR_POSITIONAL))
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {"world": ControllerWorld}
    call.__name__ = path.rpartition(".")[2]
    call.__doc__ = f"{path} of the controller."
    return call


PROGRAM = Path(__file__).with_name("controller_inside.py").read_text(encoding="utf-8")


class ControllerFailed(ActionFailed):
    """A function of the controller raised; the text has its file and line."""


class ControllerWorld(World):
    """One session's place, and the controller in it; `log` receives the lines that it prints."""

    def __init__(self, place: Place, log: Callable[[str], None]) -> None:
        self._place = place
        self._log = log
        self._seen: Observation | None = None
        self._closed = False

    async def invoke(self, function: str, args: Sequence[Any]) -> Any:
        """Call a function of the controller in a new process; arguments and result are JSON.

        Raises:
            ControllerFailed: It raised, or its process ended without an answer.
            EnvironmentFailed: Its place is gone.
        """
        if self._closed:
            raise EnvironmentFailed("This world is closed. Start a new task.")
        call = {"function": function, "args": list(args), "path": self._place.path}
        answer, printed = await self._place.run(PROGRAM, json.dumps(call).encode())
        for line in printed.splitlines():
            self._log(f"{function}: {line}")
        try:
            reply = json.loads(answer)
        except ValueError:
            last = printed.strip().rpartition("\n")[2]
            raise ControllerFailed(
                f"The controller's {function!r} ended without a result: {last or 'nothing said'}."
            ) from None
        if "error" in reply:
            where = f"{reply['where']}: " if reply.get("where") else ""
            raise ControllerFailed(f"{where}{function}: {reply['error']}")
        return reply.get("result")

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action; see `act_all`."""
        effects: list[ActionEffect] = []
        refusal = await self.act_all([action], effects.append)
        if refusal is not None:
            raise refusal
        return effects[0]

    async def act_all(
        self, actions: Sequence[Action], keep: Callable[[ActionEffect], None]
    ) -> ActionFailed | None:
        """Send actions to the controller's `step` in one call, as HUD's environments take them."""
        rows = [action.model_dump(mode="json", exclude_none=True) for action in actions]
        try:
            info = await self._step(rows)
        except ControllerFailed as exc:
            return exc
        for i, _ in enumerate(actions):
            keep(ActionEffect(info=info if i == len(actions) - 1 else {}))
        return None

    async def observe(self, look: Look) -> Observation:
        """Return the last observation of the controller's `step`, or call `step` for a new one.

        EnvironmentFailed says that the controller shows nothing.
        """
        if self._seen is None:
            try:
                await self._step([])
            except ControllerFailed as exc:
                raise EnvironmentFailed(f"The environment cannot be looked at: {exc}") from exc
        seen, self._seen = self._seen or Observation(), None
        return Observation(
            text=seen.text if look.text else None, image=seen.image if look.image else None
        )

    async def urls(self) -> dict[str, Any]:
        """Return the result of the controller's `get_urls`; an empty dict without one."""
        try:
            reply = await self.invoke("get_urls", [])
        except ControllerFailed:
            return {}
        return _object(reply) or {}

    async def close(self) -> None:
        """Close its place. It may be called twice."""
        if not self._closed:
            self._closed = True
            await self._place.close()

    async def _step(self, actions: list[dict[str, Any]]) -> dict[str, Any]:
        reply = await self.invoke("step", [actions])
        shown = _object(reply) or {}
        given = _object(shown.get("observation"))
        if given is None:
            raise EnvironmentFailed(
                "The controller's `step` returns {'observation': {'text': …, 'screenshot': …}}, "
                f"and returned {str(reply)[:80]!r}."
            )
        try:
            known = {name: given.get(name) for name in ("text", "screenshot")}
            self._seen = Observation.model_validate(known)
        except ValueError as exc:
            raise EnvironmentFailed(f"What the controller's `step` shows: {exc}") from None
        return _object(shown.get("info")) or {}


def _object(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


class ControllerSpec(WorldSpec):
    """The declaration of a controller's worlds, with the functions that tasks may name."""

    name = "controller"
    needs = Needs(cpus=0.25, memory_mb=256)
    world_type = ControllerWorld
    actions = INPUT_TYPES
    has_screen = True

    def __init__(
        self, open_place: Callable[[], Awaitable[Place]], functions: tuple[Function, ...]
    ) -> None:
        self._open_place = open_place
        self.functions = functions

    async def open(self, opening: Opening) -> ControllerWorld:
        """Open a session's place, or raise EnvironmentFailed."""
        return ControllerWorld(await self._open_place(), opening.log)


async def custom_environment(gym: CustomGym, task: Task) -> Environment:
    """Declare a user's own gym, and build its image if it needs one.

    Raises:
        InvalidTask: The row comes from elsewhere, or the gym ran in HUD's cloud.
        SourceNotFound: The folder does not exist, or has no controller.
        EnvironmentFailed: No container engine is installed, or the image is not available.
    """
    if task.source is not None:
        raise InvalidTask(
            f"The row came from {task.source} and contains its own gym, which is a program. "
            "Read the program, then create the task in code."
        )
    if gym.location == "remote":
        raise InvalidTask(
            "A CustomGym whose location is 'remote' ran in HUD's cloud; write location='local'."
        )
    place = gym.image_or_build_context
    folder = place if isinstance(place, Path) else None
    if folder is not None and not folder.is_dir():
        raise SourceNotFound(f"There is no folder {str(folder)!r} to make a gym of.")
    controller = folder if folder is not None and (folder / PACKAGE).is_dir() else None
    if folder is not None and not (folder / "Dockerfile").is_file():
        if controller is None:
            raise SourceNotFound(
                f"{folder} has neither a Dockerfile nor a package {PACKAGE}; a gym needs one."
            )
        return await _in_sandbox(gym, controller)
    engine = find_engine()
    image = str(place)
    if folder is not None:
        image = await build_image(engine, folder, f"hud-env-{gym.name.removeprefix('custom-')}")
    return await _in_container(gym, engine, image, controller)


async def _in_sandbox(gym: CustomGym, folder: Path) -> Environment:
    async def open_place() -> Place:
        return await Workshop.open(folder)

    workshop = await Workshop.open(folder)
    try:
        found, said = await workshop.run(PROGRAM, _asked(workshop.path))
    finally:
        with anyio.CancelScope(shield=True):
            await workshop.close()
    return _declared(gym, ControllerSpec(open_place, controller_functions(_read(found, said))))


async def _in_container(
    gym: CustomGym, engine: str, image: str, folder: Path | None
) -> Environment:
    package = None if folder is None else folder / PACKAGE

    async def open_place() -> Place:
        return await Container.start(engine, image, controller=package, options=gym.host_config)

    if folder is None:
        found = _read(await run_once(engine, image, PROGRAM, _asked([])), "")
    else:
        probe = await open_place()
        try:
            found = _read(*await probe.run(PROGRAM, _asked(probe.path)))
        finally:
            with anyio.CancelScope(shield=True):
                await probe.close()
    return _declared(gym, ControllerSpec(open_place, controller_functions(found)))


def _asked(path: list[str]) -> bytes:
    return json.dumps({"path": path}).encode()


def _read(answer: bytes, said: str) -> dict[str, Any]:
    try:
        reply: dict[str, Any] = json.loads(answer)
    except ValueError:
        reply = {"error": said[-500:] or repr(answer)}
    if "error" in reply:
        raise EnvironmentFailed(
            f"The functions of the package {PACKAGE} cannot be listed: {reply['error']}."
        )
    found = reply["result"]
    if found is None:
        raise EnvironmentFailed(
            f"There is no package {PACKAGE} in the gym's image. Install one in it, or put it "
            "beside the Dockerfile."
        )
    return found


def _declared(gym: CustomGym, spec: ControllerSpec) -> Environment:
    environment = Environment(gym.name, world=spec)
    environment.loaded(text=json.dumps(gym.model_dump(mode="json"), sort_keys=True))
    return environment
