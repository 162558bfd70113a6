"""The scheme `mcp:`: any MCP server, by its command or by a client's entry of it.

Words with `=` come before the command, as in a shell: `mcp:files=./notes TOKEN=$TOKEN npx -y acme`.
Names in capitals are variables of the server, the others are options. `in=mine.py` is the
environment of a file with another command, with more variables, or without some of its tools.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from hud_mcp.environment.environment import Environment
from hud_mcp.errors import InvalidEnvironment, SourceNotFound, did_you_mean
from hud_mcp.loading.source import Scheme, Source, lasting_source
from hud_mcp.plugins.servers.install import parse
from hud_mcp.plugins.servers.program import find_program
from hud_mcp.plugins.servers.spec import ToolServer
from hud_mcp.plugins.servers.tool import ServerTool
from hud_mcp.registry import service

__all__ = ["SCHEME", "Written", "read"]

_MCP = "mcp:"
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(?!=)(.*)", re.DOTALL)
"""A word before the command; `acme==1.0` is none."""
_VARIABLE = re.compile(r"\$(?:\{(?:env:)?(\w+)\}|(\w+))")
_ENTRY = re.compile(r"[a-z][a-z-]*/[^/\s]+")
_OPTIONS = ("allow", "era", "files", "in", "name", "without")
_NAME_CHARS = 40


@dataclass(frozen=True)
class Written:
    """A source, as its words have it.

    Attributes:
        command: The command of the server, or one word `CLIENT/NAME`.
        env: Its variables.
        options: The options, by name.
        private: Values of variables that come from a client's entry, and are secrets.
    """

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    private: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def text(self) -> str:
        """The source in one line, in a form that `read` reads."""
        settings = [f"{name}={value}" for name, value in {**self.options, **self.env}.items()]
        return _MCP + shlex.join([*settings, *self.command])


def read(source: str, *, in_place: bool = False) -> Written:
    """Read a source; one in the place of another server may have no command.

    Raises:
        SourceNotFound: It names no command, or a quotation mark has no end.
        InvalidEnvironment: It has an unknown option.
    """
    try:
        words = shlex.split(source.removeprefix(_MCP))
    except ValueError as exc:
        raise SourceNotFound(f"{source!r}: {str(exc).lower()}. Write it as in a shell.") from None
    env, options = dict[str, str](), dict[str, str]()
    while words and (setting := _SETTING.fullmatch(words[0])):
        name, value = setting.groups()
        if name.islower() and name not in _OPTIONS:
            raise InvalidEnvironment(
                f"{source!r} has no option {name!r}.{did_you_mean(name, _OPTIONS)} There are: "
                f"{', '.join(_OPTIONS)}. Variables of the server have names in capitals."
            )
        (options if name.islower() else env)[name] = value
        words.pop(0)
    if not words and not in_place and "in" not in options:
        raise SourceNotFound(
            f"{source!r} names no server. Write its command, as in mcp:npx -y PACKAGE or "
            "mcp:python server.py, or CLIENT/NAME for one that a client has."
        )
    return Written(tuple(words), env, options)


def _is_entry(written: Written) -> bool:
    word = written.command[0] if written.command else ""
    return len(written.command) == 1 and bool(_ENTRY.fullmatch(word)) and not Path(word).exists()


def _of_client(written: Written) -> Written:
    """Return the command of a client's entry in place of its name."""
    client, _, name = written.command[0].partition("/")
    entry: Mapping[str, Any] = service("client entries")(client, name)
    if not isinstance(entry.get("command"), str):
        raise InvalidEnvironment(
            f"{written.command[0]} is no program of this machine. Name a server with a command."
        )
    values = cast("Mapping[str, Any]", entry.get("env") or {})
    env, private = dict(written.env), dict[str, str]()
    for key, value in values.items():
        if key not in env:  # else the source's own words come first
            (env if _VARIABLE.fullmatch(str(value)) else private)[key] = str(value)
    args = [str(each) for each in cast("list[Any]", entry.get("args") or [])]
    options = {"name": _plain(name), **written.options}
    return Written((entry["command"], *args), env, options, private)


class _ClientServer(ToolServer):
    """A server whose variables a client's entry has: their values are secrets."""

    def __init__(self, private: Mapping[str, str], command: tuple[str, ...], **more: Any) -> None:
        super().__init__(command, **more)
        self.private = dict(private)

    def _values(self) -> dict[str, str]:
        return {**self.private, **super()._values()}


def _make(written: Written, source: str, like: ToolServer | None = None) -> ToolServer:
    """Declare a server; what its words do not say is as in a declaration that it replaces."""
    secrets: list[str] = []
    plain: dict[str, str] = {}
    for name, value in written.env.items():
        found = _VARIABLE.search(value)
        if found is None:
            plain[name] = value
        elif found[0] == value and name in found.groups():
            secrets.append(name)
        else:
            raise InvalidEnvironment(
                f"{source!r}: {name}={value} is made of another variable. Set a variable {name} "
                f"for this command, and write {name}=${name}."
            )
    before: Mapping[str, Any] = like.options if like is not None else {}
    more: dict[str, Any] = {
        **before,
        "env": {**(before.get("env") or {}), **plain},
        "secrets": [*before.get("secrets", ()), *secrets],
        "without": [*before.get("without", ()), *_listed(written, "without")],
    }
    if "allow" in written.options:
        more["allow"] = _listed(written, "allow")
    more |= {name: v for name, v in written.options.items() if name in ("era", "files")}
    private = {**(like.private if isinstance(like, _ClientServer) else {}), **written.private}
    command = written.command or (like.command if like is not None else ())
    return _ClientServer(private, command, **more)


def _listed(written: Written, option: str) -> list[str]:
    return [each for each in written.options.get(option, "").split(",") if each]


def _load(source: str) -> list[Environment]:
    """Make the environment of a source once; the first time may install its package."""
    lasting = _lasting(source)
    written = read(lasting)
    if "in" in written.options:
        return _replace(written, lasting)
    if lasting not in _made:
        written = _of_client(written) if _is_entry(written) else written
        spec, folder = _make(written, source), Path.cwd()
        program = find_program(written.command, folder)
        name = written.options.get("name") or _plain(program.name)
        environment = Environment(name, world=spec)
        # It has no file of its own: its text and its program's parts are its digest.
        environment.file = Path(lasting)
        spec.check(folder)
        environment.loaded(text=f"{lasting}\n{program.version} {program.digest}")
        _made[lasting] = environment
    return [_made[lasting]]


_made: dict[str, Environment] = {}


def _replace(written: Written, lasting: str) -> list[Environment]:
    """Return the environments of the source `in`, of which one has another server."""
    found = Source(written.options["in"]).load()
    served = [each for each in found if isinstance(each.world, ToolServer)]
    if len(served) != 1 or "name" in written.options:
        names = ", ".join(each.name for each in served) or "none"
        raise InvalidEnvironment(
            f"{lasting!r}: in= replaces the server of one environment, which keeps its name. "
            f"Environments with a server are: {names}. Write in=FILE:NAME for one of several, "
            "and leave name= out."
        )
    (old,) = served
    written = _of_client(written) if _is_entry(written) else written
    spec = _make(written, lasting, cast("ToolServer", old.world))
    spec.check(old.folder)
    program = find_program(spec.command, old.folder)
    own = [each for each in old.tools.values() if not isinstance(each, ServerTool)]
    made = old.with_world(spec, own)
    made.loaded(source=old.source, text=f"{lasting}\n{program.version} {program.digest}")
    return [made if each is old else each for each in found]


def _plain(name: str) -> str:
    """Return a name of an environment for that of a package or a file."""
    last = name.rpartition("/")[2].removeprefix("mcp-").removeprefix("server-")
    return re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")[:_NAME_CHARS] or "server"


def _lasting(source: str) -> str:
    """Return a source that means the same from any folder."""
    written = read(source)
    options = dict(written.options)
    if "files" in options:
        options["files"] = str(Path(options["files"]).expanduser().resolve())
    if "in" in options:
        options["in"] = lasting_source(options["in"])
    command = written.command
    if command and parse(command) is None and not _is_entry(written):
        # Other words are paths of the session's folder, or of the server's own.
        command = tuple(
            str(Path(word).absolute()) if _is_script(word) and Path(word).is_file() else word
            for word in command
        )
    return replace(written, command=command, options=options).text


def _is_script(word: str) -> bool:
    return "/" in word or Path(word).suffix in (".py", ".js", ".mjs", ".cjs", ".ts")


def with_files(sources: Sequence[str], folder: str) -> list[str]:
    """Return sources `mcp:` whose sessions begin with a folder's files.

    Raises:
        InvalidEnvironment: A source is no server.
    """
    if not sources or not all(each.startswith(_MCP) for each in sources):
        raise InvalidEnvironment(
            "--files is for servers. Write it with a source such as mcp:COMMAND."
        )
    words = shlex.quote(f"files={folder}")
    return [f"{_MCP}{words} {each.removeprefix(_MCP)}" for each in sources]


SCHEME = Scheme(load=_load, lasting=_lasting)
