"""The ways into the worlds of a channel's sessions, beside its own calls.

A door is one server for all sessions, on a loopback port that is reached through the channel's
own. It is opened when the first peer says hello, and what lets a session in is that session's
alone: a key, or an address that cannot be guessed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from hud_mcp.capability import Capability
from hud_mcp.channel.endpoints.endpoint import Admission, Door
from hud_mcp.channel.hud_sessions import Held
from hud_mcp.environment import Environment
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.session.session import Session

__all__ = ["Doors"]

_CLOSE_S = 1.0


class Doors:
    """All doors of one channel.

    Args:
        environment: What the channel serves.

    Attributes:
        find_session: Returns the session of the task that a HUD session holds.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._doors = _doors_of(environment)
        self._opening = asyncio.Lock()
        self._is_open = False
        self._closed = False
        self._admissions: dict[Held, list[tuple[Door, Admission]]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.find_session: Callable[[Held], Awaitable[Session]] = _nobody

    def check(self) -> None:
        """Refuse an environment whose doors cannot be opened here.

        Raises:
            HudMcpError: Saying what to do.
        """
        for door in self._doors:
            door.check()

    async def admit(self, held: Held) -> list[Capability]:
        """What a HUD session is given, the same each time it asks."""
        if not await self._open():
            return []
        if held not in self._admissions:

            async def find_session() -> Session:
                return await self.find_session(held)

            self._admissions[held] = [(door, door.admit(find_session)) for door in self._doors]
        taken = self._taken
        return [
            admission.capability
            for door, admission in self._admissions[held]
            if door.name not in taken
        ]

    async def addresses(self) -> list[Capability]:
        """Where each door listens."""
        if not await self._open():
            return []
        return [door.address for door in self._doors if door.name not in self._taken]

    def find(self, name: str) -> Capability | None:
        """What one session alone is given under a name of its own, which nobody else knows."""
        for admitted in self._admissions.values():
            for _door, admission in admitted:
                if admission.capability.name == name:
                    return admission.capability
        return None

    def dismiss(self, held: Held) -> None:
        """Let a HUD session in no more."""
        for _door, admission in self._admissions.pop(held, ()):
            task = asyncio.get_running_loop().create_task(admission.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close every door, with whoever is in. Closing twice is no error."""
        self._closed = True
        for held in list(self._admissions):
            self.dismiss(held)
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSE_S)
        async with self._opening:
            if self._is_open:
                self._is_open = False
                for door in self._doors:
                    await door.close()

    @property
    def _taken(self) -> set[str]:
        """Names under which the author publishes something else."""
        return {capability.name for capability in self._environment.capabilities}

    async def _open(self) -> bool:
        """Open the doors, once; return whether they are."""
        if not self._doors:
            return False
        async with self._opening:
            if not self._is_open and not self._closed:
                for door in self._doors:
                    await door.open()
                self._is_open = True
            return self._is_open


async def _nobody(_held: Held) -> Session:
    raise EnvironmentFailed("No task is in progress.")


def _doors_of(environment: Environment) -> list[Door]:
    doors: list[Door] = []
    if environment.workspace_name is not None:
        from hud_mcp.channel.endpoints.ssh import ShellDoor  # noqa: PLC0415  # loads only where used

        doors.append(ShellDoor(environment.workspace_name, environment.world))
        if getattr(environment.world, "tracks_files", False):
            from hud_mcp.channel.endpoints.files import FilesDoor  # noqa: PLC0415  # the same

            doors.append(FilesDoor(cast("Any", environment.world)))
    if environment.world.name == "browser":
        from hud_mcp.channel.endpoints.cdp import BrowserDoor  # noqa: PLC0415  # the same

        if BrowserDoor.fits(environment.world):
            doors.append(BrowserDoor("browser"))
    if environment.world.name == "gymnasium":
        from hud_mcp.channel.endpoints.openpi import RobotDoor, offers_robot  # noqa: PLC0415  # the same

        if offers_robot(environment):
            doors.append(RobotDoor(environment))
    return doors
