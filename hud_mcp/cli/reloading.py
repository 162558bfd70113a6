"""`hud-mcp serve --reload`: new sessions get the present content of the files."""

import logging
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from hud_mcp.cli import surfaces
from hud_mcp.cli.sources import load
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.source import Stamps, forgotten, inputs_of, python_files, stamps_of

__all__ = ["Reloading"]

logger = logging.getLogger(__name__)

_LOOK_S = 0.5


class Reloading:
    """A follower of the files of the served environments. `stack` keeps copies while it serves."""

    def __init__(self, options: dict[str, Any], stack: AsyncExitStack) -> None:
        self._options = options
        self._stack = stack
        self._environments: list[Any] = []
        self._tasks = list(
            surfaces.find_sets(options["tasksets"]).paths if options["tasksets"] else ()
        )

    def freeze(self, environments: Sequence[Any]) -> None:
        """Have worlds read copies of their files from now on: held sessions keep their version."""
        for environment in environments:
            files = environment.file.is_file() and environment.world.files(environment.folder)
            if any(True for _ in files or ()):
                folder = tempfile.TemporaryDirectory(prefix="hud-mcp-version-")
                environment.freeze(Path(self._stack.enter_context(folder)).resolve())
        self._environments = list(environments)

    @asynccontextmanager
    async def following(self, sessions: Any) -> AsyncGenerator[None]:
        """Load edited files again while the body runs."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow, sessions)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    async def _follow(self, sessions: Any) -> None:
        loaded = await anyio.to_thread.run_sync(self._stamps)
        while True:
            await anyio.sleep(_LOOK_S)
            now = await anyio.to_thread.run_sync(self._stamps)
            if now == loaded:
                continue
            await anyio.sleep(_LOOK_S)
            if await anyio.to_thread.run_sync(self._stamps) != now:
                continue  # somebody is still writing
            self._load(sessions)
            loaded = await anyio.to_thread.run_sync(self._stamps)
            if any(loaded.get(path) != stamp for path, stamp in now.items() if path in loaded):
                loaded = now  # written once more while it was loaded

    def _stamps(self) -> Stamps:
        return stamps_of(inputs_of(self._environments, self._tasks))

    def _load(self, sessions: Any) -> None:
        """Serve the changed files. A mistake in them is logged, and changes nothing."""
        options = self._options
        try:
            with forgotten(python_files(self._environments)):
                found, tasksets = load(
                    options["sources"], options["tasksets"], split=options["split"]
                )
                changed, served = self._told_apart(found, sessions)
                sessions.replace(served, tasksets)
        except (HudMcpError, SystemExit) as exc:
            logger.warning("not loaded, so the version before is served: %s", exc)
            return
        self._environments = served
        names = ", ".join(each.name for each in changed) or "the tasks"
        logger.info("loaded again: %s; sessions that are held keep their version", names)

    def _told_apart(self, found: Sequence[Any], sessions: Any) -> tuple[list[Any], list[Any]]:
        """Return the changed environments; then all, with the served ones where equal."""
        before = sessions.environments
        changed = [
            each
            for each in found
            if each.name not in before or before[each.name].digest != each.digest
        ]
        former = self._environments
        self.freeze(changed)
        self._environments = former
        return changed, [each if each in changed else before[each.name] for each in found]
