"""A CustomGym as an environment: a folder's controller in a sandbox, an image in a container."""

import json
from pathlib import Path
from typing import Any

import anyio

from hud_mcp.environment import Environment
from hud_mcp.environment.gyms import CustomGym
from hud_mcp.environment.task import Task
from hud_mcp.errors import EnvironmentFailed, InvalidTask, SourceNotFound
from hud_mcp.plugins.hud.controller.places import (
    PACKAGE,
    Container,
    Place,
    Workshop,
    build_image,
    find_engine,
    run_once,
)
from hud_mcp.plugins.hud.controller.world import ControllerSpec, controller_functions

__all__ = ["custom_environment"]

_NAMES = Path(__file__).parents[1] / "controller" / "inside" / "names.py"


async def custom_environment(gym: CustomGym, task: Task) -> Environment:
    """Declare a user's own gym, and build its image if it needs one.

    Args:
        gym: The gym.
        task: The task that names it.

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
        found, said = await workshop.run(_names(), _asked(workshop.path))
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
        found = _read(await run_once(engine, image, _names(), _asked([])), "")
    else:
        probe = await open_place()
        try:
            found = _read(*await probe.run(_names(), _asked(probe.path)))
        finally:
            with anyio.CancelScope(shield=True):
                await probe.close()
    return _declared(gym, ControllerSpec(open_place, controller_functions(found)))


def _names() -> str:
    return _NAMES.read_text(encoding="utf-8")


def _asked(path: list[str]) -> bytes:
    return json.dumps({"path": path}).encode()


def _read(answer: bytes, said: str) -> dict[str, Any]:
    try:
        found = json.loads(answer)
    except ValueError:
        raise EnvironmentFailed(
            f"The functions of the package {PACKAGE} cannot be listed: {said[-500:] or answer!r}."
        ) from None
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
