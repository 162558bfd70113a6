"""HUD's workspace: a shell whose folder a template sees at the path that its author chose.

A template that takes a `ShellWorld` runs in the server's process. Any other template runs in its
own process; see docs/workspace.md.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

import hud_mcp.sandbox as sandbox_package
from hud_mcp.environment.environment import Environment
from hud_mcp.environment.spec import Opening, Shared
from hud_mcp.environment.template import Template
from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment
from hud_mcp.plugins.hud.workspace.frames import Place
from hud_mcp.plugins.hud.workspace.in_place import InPlace
from hud_mcp.plugins.hud.workspace.options import Mount, read_options
from hud_mcp.plugins.hud.workspace.stand_in import calls_of
from hud_mcp.plugins.hud.workspace.tracking import FileTracker
from hud_mcp.registry import service
from hud_mcp.sandbox import Isolation, Sandbox, SandboxLimits
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT, NOBODY, find_bubblewrap
from hud_mcp.worlds.shell.spec import MIB, Shell
from hud_mcp.worlds.shell.stage import Author
from hud_mcp.worlds.shell.world import ShellWorld

__all__ = ["Workspace", "WorkspaceWorld", "add_workspace"]

_STAND_IN = "hud_mcp.plugins.hud.workspace.stand_in:StandIn"
_PROBE_S = 20.0
_NOT_A_ROOT = ("/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys",
               "/tmp", "/usr", "/var", "/var/tmp")  # fmt: skip  # noqa: S108  # refused


class Workspace(Shell):
    """Declares a workspace. Made by `env.workspace`; nothing happens until a session starts.

    Args:
        root: The folder, relative to the environment's file, or else to the server's working
            folder. Sessions begin with a copy of it. On a machine with namespaces it is never
            written.
        folder: The folder of the environment's file.
        allow: As for `Shell`; HUD's `network` and `allowed_hosts` add to it.
        env: As for `Shell`.
        readonly: As for `Shell`; HUD's `mounts` of kind `ro` add to it.
        limits: As for `Shell`.
        isolation: As for `Shell`. By default, a machine without bubblewrap runs commands on itself,
            one session at a time, unless a template takes a `ShellWorld`.
        snapshot_bytes: As for `Shell`.
        follow_links: Whether templates follow links in the folder. By default, only templates that
            make links before the agent begins do: another link is the agent's, and may lead
            anywhere.
        guest_path: HUD's option: `/workspace`, or the root's own path; inside, both are the folder.
        options: HUD's other options; the module `options` describes each.

    Attributes:
        published_as: The capability's name on a control channel; None publishes nothing.

    Raises:
        InvalidEnvironment: An option cannot work; the text says what to use instead.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        folder: Path | None = None,
        allow: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
        readonly: Mapping[str, str | Path] | None = None,
        limits: SandboxLimits | None = None,
        isolation: Isolation | None = None,
        snapshot_bytes: int = 64 * MIB,
        follow_links: bool | None = None,
        guest_path: str = GUEST_ROOT,
        **options: Any,
    ) -> None:
        known = ("allow", "env", "readonly", "limits", "isolation", "snapshot_bytes")
        hud = read_options(options, (*known, "follow_links", "guest_path"))
        if isinstance(allow, str):
            raise InvalidEnvironment(f"allow: expected a list of hosts; write [{allow!r}].")
        super().__init__(
            root,
            allow=(*allow, *hud.allow),
            env=env,
            readonly={**(readonly or {}), **hud.readonly},
            limits=limits,
            isolation=isolation or "bwrap",
            snapshot_bytes=snapshot_bytes,
        )
        self._hud = hud
        self._folder = folder or Path.cwd()
        self._cwd = Path.cwd()
        self.falls_back = isolation is None and not hud.require_isolation
        self._follow_links = follow_links
        self.env = dict(env or {})
        self.mounts: tuple[Mount, ...] = tuple(options.get("mounts") or ())
        self.network = bool(options.get("network", False))
        hosts = options.get("allowed_hosts")
        self.allowed_hosts = None if hosts is None else frozenset[str](hosts)
        self.tracks_files = hud.track_files
        self.published_as: str | None = None
        self.endpoints = (
            "ssh/2",
            *(("filetracking/1",) if hud.track_files else ()),
        )
        if root is not None:
            self._check_root(guest_path, [folder] if folder is not None else [])

    def publish(self, name: str) -> None:
        """Set the name under which a control channel publishes it."""
        self.published_as = name

    @property
    def root(self) -> Path:
        """The folder as an absolute path; without one, the server's working folder."""
        named = self._root if self._root is not None else Path()
        beside = self._folder / named
        return (beside if beside.exists() else self._cwd / named).resolve()

    @property
    def bwrap_available(self) -> bool:
        """Whether sessions have sandboxes on this machine."""
        return self.options.isolation == "bwrap" and _why_no_bubblewrap() is None

    def runs_apart(self, template: Template) -> bool:
        """Whether a template runs in its own process, because it takes no world."""
        return self._root is not None and not template.arguments.world_types

    def check(self, folder: Path) -> None:
        """Check that all read-only paths exist; a missing root is created when needed."""
        root, self._root = self._root, None
        try:
            super().check(folder)
        finally:
            self._root = root

    async def open(self, opening: Opening) -> "WorkspaceWorld":
        """Open a session's shell. If this fails or is cancelled, nothing of the session stays open.

        Raises:
            EnvironmentFailed: As for `Shell`; also if the machine has no namespaces and another
                session works in the root.
        """
        root = self.root
        apart = opening.template is not None and self.runs_apart(opening.template)
        if self._root is not None:
            await anyio.to_thread.run_sync(partial(root.mkdir, parents=True, exist_ok=True))
        if apart and await self._works_in_place(opening):
            world = await self._open_in_place(root, opening.shared)
        else:
            world = await self._open_sandbox(opening, root, apart=apart)
        if self.tracks_files:
            world.tracker = FileTracker(world)
            await world.tracker.begin()
        return world

    async def _open_sandbox(self, opening: Opening, root: Path, *, apart: bool) -> "WorkspaceWorld":
        """Open a shell in a sandbox; a template in its own process sees the folder at the root."""
        places = _names_of(root, self._folder, self._cwd, self._root) if apart else ()
        sandbox = await Sandbox.open(replace(self._options_from(opening.folder), places=places))
        try:
            if self._root is not None:
                await self._fill(sandbox, root)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await sandbox.close()
            raise
        sandbox.files.call_also(*map(str, _names_of(root, self._folder, self._cwd, self._root)))
        world = WorkspaceWorld(
            sandbox,
            most_snapshot_bytes=self._snapshot_bytes,
            author=Author(self._folder, root if self._root is not None else None),
        )
        if apart:
            world.place = Place(
                root=root,
                places=places,
                namespaces=sandbox.namespaces,
                owner=NOBODY if os.geteuid() == 0 and self._hud.hand_over_root else None,
                follow_links=self._follow_links,
                stand_in=_STAND_IN,
                calls=calls_of(world),
                shared=opening.shared,
            )
        return world

    # Without namespaces.

    async def _works_in_place(self, opening: Opening) -> bool:
        """Whether sessions work in the root itself; EnvironmentFailed if the author forbids it."""
        if self.options.isolation == "none":
            return True
        why = await anyio.to_thread.run_sync(_why_no_bubblewrap)
        if why is None:
            why = await anyio.to_thread.run_sync(_why_no_namespaces)
            if why is not None:
                raise EnvironmentFailed(
                    f"A template cannot have its own folder here: {why} Give the template a "
                    "ShellWorld, or declare isolation='none' where the agent is trusted."
                )
            return False
        if not self.falls_back or self._hud.needs_other_user:
            raise EnvironmentFailed(why)
        opening.log(f"not isolated, as this machine has no sandboxes: {why}")
        return True

    async def _open_in_place(self, root: Path, shared: Shared) -> "WorkspaceWorld":
        if self.options.hosts.patterns or self._readonly:
            raise EnvironmentFailed(
                "Without a sandbox, commands use the machine's network and files. Leave out "
                "`allow` and `readonly`, or install bubblewrap."
            )
        folder = await InPlace.take(root, most_bytes=self.options.limits.disk_bytes)
        try:
            sandbox = await Sandbox.open(replace(self.options, isolation="none", in_place=root))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await folder.put_back()
            raise
        sandbox.files.call_also(*map(str, _names_of(root, self._folder, self._cwd, self._root)))
        world = WorkspaceWorld(
            sandbox,
            most_snapshot_bytes=self._snapshot_bytes,
            in_place=folder,
            author=Author(self._folder),
        )
        world.place = Place(
            root=root,
            places=_names_of(root, self._folder, self._cwd, self._root),
            stand_in=_STAND_IN,
            calls=calls_of(world),
            shared=shared,
        )
        return world

    def _check_root(self, guest_path: str, environments: Sequence[Path]) -> None:
        root = self.root
        inside = [*environments, *map(Path, (sys.prefix, sys.base_prefix, __file__))]
        if str(root) in _NOT_A_ROOT or any(each.is_relative_to(root) for each in inside):
            raise InvalidEnvironment(
                f"workspace: {root} contains the environment's file, or programs of this server "
                "or of the system. Name a folder that has only the agents' files."
            )
        if guest_path != GUEST_ROOT and Path(guest_path).resolve() != root:
            raise InvalidEnvironment(
                f"workspace: guest_path={guest_path!r} is not supported: inside, the folder is "
                f"{GUEST_ROOT}, and {root} too. Leave it out."
            )


def add_workspace(
    environment: Environment, root: str | Path | None = None, *, name: str = "shell", **options: Any
) -> Workspace:
    """Make a workspace the world of an environment; `Environment.workspace` says more."""
    workspace = Workspace(root, folder=environment.folder, **options)
    environment.use_world(workspace)
    workspace.publish(name)
    environment.workspace_name = name
    return workspace


class WorkspaceWorld(ShellWorld):
    """One session's workspace. Made by `Workspace.open`.

    `place` is None if its template runs in the server's process. `tracker` follows the changes of
    its files; None if they are not tracked.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        most_snapshot_bytes: int,
        in_place: InPlace | None = None,
        author: Author | None = None,
    ) -> None:
        super().__init__(sandbox, most_snapshot_bytes=most_snapshot_bytes, author=author)
        self._in_place = in_place
        self.place: Place | None = None
        self.tracker: FileTracker | None = None
        self._template_process: AsyncGenerator[Any, Any] | None = None

    def begin_template(
        self,
        template: Template,
        *,
        source: Path,
        args: Mapping[str, Any],
        context: Mapping[str, Any],
    ) -> AsyncGenerator[Any, Any]:
        """Begin the session's template, in its own process if the world was opened for one."""
        if self.place is None:
            return super().begin_template(template, source=source, args=args, context=context)
        process = self._template_process = service("template process")(
            template, source=source, args=args, context=context, place=self.place
        )
        return process

    async def close(self) -> None:
        """End everything that runs, and restore the root if the session worked in it."""
        process, self._template_process = self._template_process, None
        try:
            if process is not None:
                await process.aclose()
        finally:
            await self._close()

    async def _close(self) -> None:
        try:
            await super().close()
        finally:
            if self._in_place is not None:
                await self._in_place.put_back()


def _names_of(root: Path, folder: Path, cwd: Path, named: Path | None) -> tuple[Path, ...]:
    """Return every absolute path by which a template may name the root, the resolved one first."""
    names = [root]
    for start in (cwd, folder):
        place = Path(os.path.abspath(start / (named or "")))  # noqa: PTH100  # no link is resolved
        if place.is_dir() and place.resolve() == root and place not in names:
            names.append(place)
    return tuple(names)


@cache
def _why_no_bubblewrap() -> str | None:
    """Return the reason why this machine cannot make sandboxes, or None."""
    try:
        bubblewrap = find_bubblewrap()
    except EnvironmentFailed as exc:
        return str(exc)
    return _why_not([bubblewrap])


@cache
def _why_no_namespaces() -> str | None:
    """Return the reason why a template cannot see a folder at another path here, or None."""
    script = Path(sandbox_package.__file__ or "").parent / "outside.py"
    with tempfile.TemporaryDirectory() as place:
        wanted = json.dumps(
            {"places": [place], "parts": [], "size": 4096, "user": None, "through": None}
        )
        return _why_not([sys.executable, "-I", "-S", str(script), wanted, find_bubblewrap()])


def _why_not(start: Sequence[str]) -> str | None:
    options = ("--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc")
    try:
        done = subprocess.run(  # noqa: S603  # the reason found above
            [*start, *options, "/bin/true"],
            capture_output=True, text=True, timeout=_PROBE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as exc:
        return f"{type(exc).__name__}: {exc}."
    said = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else f"{said[-1] if said else 'bwrap failed'}."
