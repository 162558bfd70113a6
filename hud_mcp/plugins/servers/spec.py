"""The declaration of an MCP server as the world of an environment."""

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from hud_mcp.environment.function import Function
from hud_mcp.environment.spec import Opening, WorldSpec
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.servers.attacks import ATTACKS, attack
from hud_mcp.plugins.servers.eras import WantedEra
from hud_mcp.plugins.servers.functions import SERVER_FUNCTIONS
from hud_mcp.plugins.servers.launch import Launch
from hud_mcp.plugins.servers.listing import Listing, listing_file, offers
from hud_mcp.plugins.servers.made import make_files
from hud_mcp.plugins.servers.program import Program, find_program
from hud_mcp.plugins.servers.prompts import prefix_of, prompt_entries, resource_entries
from hud_mcp.plugins.servers.reply import Masker
from hud_mcp.plugins.servers.tool import ServerTool, tell_once
from hud_mcp.plugins.servers.world import ToolServerWorld
from hud_mcp.sandbox import Isolation, SandboxLimits
from hud_mcp.values.call import CORE_TOOLS
from hud_mcp.values.needs import Needs
from hud_mcp.worlds.shell.spec import Shell
from hud_mcp.worlds.shell.world import ShellWorld

if TYPE_CHECKING:
    from hud_mcp.environment.environment import Environment

__all__ = ["ToolServer"]

_ENV = {
    "XDG_CACHE_HOME": "/tmp/cache",  # noqa: S108  # of the sandbox
    "npm_config_cache": "/tmp/npm",  # noqa: S108
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""Caches are no part of the files that the agent leaves."""

_GIT = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "safe.bareRepository": "explicit",
    "core.attributesFile": "/dev/null",
    "gpg.program": "/bin/false",
    "protocol.allow": "never",
    "safe.directory": "*",
}
QUIET = {
    "GIT_EXTERNAL_DIFF": "",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_CONFIG_COUNT": str(len(_GIT)),
    **{f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(_GIT)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_GIT.values())},
}
"""The variables of verifiers: programs that git's own files name do not run."""


VARIABLE = re.compile(r"\$(?:\{(?:env:)?(\w+)\}|(\w+))")
"""A variable of this process in a header or in a client's entry."""


class ToolServer(WorldSpec):
    """Declares that an environment's world is an MCP server, one running copy for each session.

    Each copy runs in a sandbox without a network, over its own copy of the files, in `/workspace`.
    Its tools are the agent's. A template gets a `ToolServerWorld`.

    Args:
        command: The program with its arguments, or one line. `{folder}` in a word is the session's
            folder. Programs outside /usr are shown inside, with what they need and nothing else.
            Several servers are a mapping of their names to commands or `ToolServer`. Their tools
            are `NAME_TOOL`. They share the sandbox and its files; one that declares files, secrets,
            hosts or limits of its own has its own sandbox.
        url: The address of a server that runs elsewhere, in place of a command. Sessions share it.
        headers: The headers of each request to it. `$NAME` in a value is a variable of this
            process, whose value is masked as a secret's.
        http: The port on which the command speaks streamable HTTP, at the path /mcp.
        files: The folder that each session begins with a copy of, from the environment's folder.
        make: A line of bash that makes these files, or changes them. It runs once, in a sandbox.
        env: Environment variables of the server. It gets none of this process.
        secrets: The names of this process's variables that the server gets too. Their values are
            masked in replies, errors and the record.
        allow: Hosts that it may reach over HTTP and HTTPS, as for `Shell`.
        era: The version of the protocol; `auto` takes the newer one that the server speaks.
        sampling: Whether a model answers a server of 2025-11-25 that asks its client for one: the
            job's, that of `HUD_MCP_SAMPLING_MODEL`, or the judges'; at this process's expense.
        replayable: Whether a session comes back by repeating its calls, not by its files.
        describe: Another description, by the name of a tool.
        without: Tools that are left out.
        mask: The names of arguments that the record does not keep.
        quiet: More variables of verifiers.
        readonly: More read-only paths inside, each with its path of the machine.
        limits: The limits of a session.
        isolation: `none` runs the server on the machine itself. Only for what is trusted with it.

    Attributes:
        options: Its keywords, for a declaration like it with another command.
        member: Its name among several servers.
        members: The declarations of several servers, by name; itself, for one.

    Raises:
        InvalidEnvironment: An option cannot work.
    """

    name = "mcp"
    needs = Needs(cpus=0.25, memory_mb=128)
    world_type = ToolServerWorld
    is_destructive = True
    functions: tuple[Function, ...] = SERVER_FUNCTIONS
    attacks = ATTACKS

    member = ""

    several: ClassVar[Any] = None

    if not TYPE_CHECKING:

        def __new__(cls, *given: Any, **options: Any) -> Self:
            """Make a declaration; that of several servers is of the class `several`."""
            command = given[0] if given else options.get("command")
            is_several = cls is ToolServer and isinstance(command, Mapping)
            return super().__new__(cls.several if is_several else cls)

    def __init__(
        self,
        command: "Sequence[str] | str | Mapping[str, Sequence[str] | str | ToolServer]" = (),
        *,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        http: int | None = None,
        files: str | Path | None = None,
        make: str | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Iterable[str] = (),
        allow: Iterable[str] = (),
        era: WantedEra = "auto",
        sampling: bool = False,
        replayable: bool = False,
        describe: Mapping[str, str] | None = None,
        without: Iterable[str] = (),
        mask: Iterable[str] = (),
        quiet: Mapping[str, str] | None = None,
        readonly: Mapping[str, str | Path] | None = None,
        limits: SandboxLimits | None = None,
        isolation: Isolation = "bwrap",
    ) -> None:
        given = dict(locals())
        self.options = {n: v for n, v in given.items() if n not in ("self", "command")}
        if isinstance(command, Mapping):
            text = "expected the command of one server; ToolServer takes several."
            raise InvalidEnvironment(f"{type(self).__name__}: {text}")
        words = shlex.split(command) if isinstance(command, str) else list(command)
        of_command = {"files": files, "make": make, "env": env, "http": http, "readonly": readonly}
        _check_place(words, url, of_command)
        if http is not None and isolation == "none":
            raise InvalidEnvironment("ToolServer: http needs a sandbox; sessions share a port.")
        self.command, self.members = tuple(words), dict[str, ToolServer]({"": self})
        self._url, self._port = url, http
        self._headers = dict(headers or {})
        self.replayable, self._samples, self._files, self._make = replayable, sampling, files, make
        self._env, self._secrets = dict(env or {}), tuple(dict.fromkeys(secrets))
        self._era: WantedEra = era
        self._describe = dict(describe or {})
        self._without, self._mask = frozenset(without), frozenset(mask)
        self._quiet = {**QUIET, **(quiet or {})}
        self._readonly = dict(readonly or {})
        self._make_shell = partial(Shell, files, allow=allow, limits=limits, isolation=isolation)
        self._shell = self._make_shell(readonly=self._readonly)
        self.open_world = url is not None or self._shell.open_world
        self._program: Program | None = None
        self._finding = anyio.Lock()
        self._listed: tuple[dict[str, Any], ...] | None = None
        self._names: dict[str, str] = {}

    @property
    def is_apart(self) -> bool:
        """Whether it has a sandbox of its own beside other servers, or runs elsewhere."""
        given = self.options
        own = any(given[name] for name in ("url", "files", "make", "secrets", "allow", "limits"))
        return own or given["isolation"] != "bwrap"

    async def open(self, opening: Opening) -> ToolServerWorld:
        """Open a session's sandbox with its files; the server starts after the setup.

        Raises:
            EnvironmentFailed: The machine cannot make a sandbox, or the files do not fit.
            InvalidEnvironment: The program is not there, or a secret is missing.
        """
        launch, shell = await self._found(opening.folder)
        opened = await self._opened(shell, opening) if shell is not None else None
        return ToolServerWorld(opened, self._offered(launch), log=opening.log)

    def _offered(self, launch: Launch) -> Launch:
        return replace(launch, listed=self._listed, without=self._without, names=self._names)

    async def _opened(self, shell: Shell, opening: Opening) -> ShellWorld:
        opened = await shell.open(opening)
        if self._make is not None:
            try:
                begun = await anyio.to_thread.run_sync(self._digest, opening.folder)
                made = await make_files(self._shell, self._make, begun, opening.folder)
                await opened.sandbox.folder.unpack(made)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await opened.close()
                raise
        return opened

    def check(self, folder: Path) -> None:
        """Refuse files that are not there, and a secret without a value.

        Raises:
            InvalidEnvironment: The text names it.
        """
        self._shell.check(folder)
        self._filled(self._headers)
        self._values()

    def missing(self, folder: Path) -> str | None:
        """Return the reason why its program cannot be started here; a package is installed."""
        try:
            if self._url is None and self._program is None:
                self._program = find_program(self.command, folder)
        except InvalidEnvironment as exc:
            return f"has no server here; run hud-mcp doctor --fix: {exc}"
        return None

    def files(self, folder: Path) -> Iterable[Path]:
        """Return the files that the environment's digest covers beside its source."""
        yield from self._shell.files(folder)
        if self._files is not None and (folder / self._files).is_dir():
            yield from sorted(p for p in (folder / self._files).rglob("*") if p.is_file())
        for word in self.command:
            if (folder / word).is_file() and not Path(word).is_absolute():
                yield folder / word

    async def prepare(self, environment: "Environment") -> None:
        """List the server's tools, from an instance that no session uses, and offer them.

        Raises:
            EnvironmentFailed: The server does not start, or does not list its tools.
            InvalidEnvironment: Its program is not there.
        """
        listing = await self._listing(environment.folder)
        name = self._program.name if self._program is not None else self.name
        version = self._program.version if self._program is not None else ""
        facts: dict[str, Any] = {"name": f"{name} {version}".strip(), "tokens": 0, "count": 0}
        if self._url is not None:
            facts["name"] = urlsplit(self._url).hostname
            name_here = self.member or environment.name
            tell_once(environment, f"The server of {name_here} is shared by sessions.")
        prefix = self.member or prefix_of(str(facts["name"] if self._url is not None else name))
        reserved = None
        if self.member:
            facts["name"] = f"{prefix}: {facts['name']}"
            reserved = {*CORE_TOOLS, *environment.tools} - self._names.keys()
        self._listed = listing.tools
        self.prompts = prompt_entries(listing.prompts, prefix)
        self.resources = resource_entries(listing.resources, listing.templates)
        for offer in offers(listing.tools, prefix=prefix, without=self._without, reserved=reserved):
            if offer.name is not None:
                described = self._describe.get(str(offer.entry["name"]))
                tool = ServerTool(
                    offer.entry,
                    name=offer.name,
                    description=described,
                    masked=self._mask,
                    replayable=self.replayable,
                    server=facts,
                    member=self.member,
                )
                tool.offer(environment)
                self._names[tool.name] = tool.called
            if offer.note:
                tell_once(environment, offer.note)

    async def attack(self, name: str, agent: Any, environment: "Environment") -> None:
        """Try for a reward without work, by calls of every tool alone."""
        if not any(isinstance(each, ServerTool) for each in environment.tools.values()):
            await self.prepare(environment)
        await attack(name, agent, environment.tools.values())

    async def _listing(self, folder: Path) -> Listing:
        """Return the kept lists of this version, or ask an instance that no session uses."""
        launch, _ = await self._found(folder)
        file = None  # the version of a server elsewhere is not known before it is asked
        if self._program is not None:
            begun = await anyio.to_thread.run_sync(self._digest, folder)
            file = listing_file(self._program, env=launch.env, era=self._era, files=begun)
            if (kept := Listing.kept(file)) is not None:
                return kept
        world = await self.open(Opening(folder=folder))
        try:
            listing = await world.list()
        finally:
            with anyio.CancelScope(shield=True):
                await world.close()
        if file is not None:
            await anyio.to_thread.run_sync(listing.keep, file)
        return listing

    def _digest(self, folder: Path) -> str:
        found = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in self.files(folder)]
        return hashlib.sha256(repr((found, self._make)).encode()).hexdigest()

    async def _found(self, folder: Path) -> tuple[Launch, Shell | None]:
        """Return how the server starts, and a shell in which its program is shown."""
        launch = partial(
            Launch, era=self._era, samples=self._samples, is_replayable=self.replayable
        )
        if self._url is not None:
            headers, values = self._filled(self._headers)
            masker = Masker({**values, **self._values()}.items())
            name = urlsplit(self._url).hostname or self._url
            return launch(name=name, url=self._url, headers=headers, masker=masker), None
        async with self._finding:
            if self._program is None:
                self._program = await anyio.to_thread.run_sync(find_program, self.command, folder)
        program, values = self._program, self._values()
        started = launch(
            argv=program.argv,
            name=f"{program.name} {program.version}".strip(),
            env={**_ENV, **self._env, **values},
            masker=Masker(values.items()),
            port=self._port,
            quiet=self._quiet,
            has_files=self._files is not None or self._make is not None,
        )
        return started, self._make_shell(readonly={**self._readonly, **program.mounts})

    def _filled(self, given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return headers with the values of variables, and those values by their names."""
        values: dict[str, str] = {}

        def value(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if not os.environ.get(name):
                raise InvalidEnvironment(
                    f"ToolServer: the variable {name!r} of a header has no value. Set it."
                )
            return values.setdefault(name, os.environ[name])

        return {name: VARIABLE.sub(value, text) for name, text in given.items()}, values

    def _values(self) -> dict[str, str]:
        missing = [name for name in self._secrets if not os.environ.get(name)]
        if missing:
            raise InvalidEnvironment(
                f"ToolServer: the secret {missing[0]!r} has no value. Set that variable of this "
                "process, or leave it out of secrets."
            )
        return {name: os.environ[name] for name in self._secrets}


def _check_place(words: Sequence[str], url: str | None, of_command: Mapping[str, object]) -> None:
    """Refuse both places or none, and options of a command beside a URL."""
    if bool(words) == (url is not None):
        raise InvalidEnvironment("ToolServer: give a command, or the url of a server elsewhere.")
    if url is None:
        return
    if odd := [name for name, value in of_command.items() if value]:
        raise InvalidEnvironment(f"ToolServer: {odd[0]} is of a command; {url} runs elsewhere.")
    if urlsplit(url).scheme not in ("http", "https"):
        raise InvalidEnvironment(f"ToolServer: expected an http or https url, got {url!r}.")
