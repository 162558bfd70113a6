"""The scheme `mcp:`: any MCP server, by its command or by a client's entry of it.

Words with `=` come before the command, as in a shell: `mcp:files=./notes TOKEN=$TOKEN npx -y acme`.
Names in capitals are variables of the server, or headers of requests to a URL; the others are
options. `in=mine.py` is the environment of a file with another command, with more variables, or
without some of its tools.
"""

import re
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from hud_mcp.environment.environment import Environment
from hud_mcp.errors import InvalidEnvironment, SourceNotFound, did_you_mean
from hud_mcp.graders.combination import grade_checks
from hud_mcp.loading.source import Scheme, Source, lasting_source
from hud_mcp.plugins.servers.install import parse
from hud_mcp.plugins.servers.program import find_program
from hud_mcp.plugins.servers.reply import LEAST_SECRET_CHARS
from hud_mcp.plugins.servers.spec import VARIABLE, ToolServer
from hud_mcp.plugins.servers.tool import ServerTool
from hud_mcp.plugins.servers.world import ToolServerWorld
from hud_mcp.registry import service
from hud_mcp.values.grade import Grade

__all__ = ["SCHEME", "Written", "read"]

_MCP = "mcp:"
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(?!=)(.*)", re.DOTALL)
"""A word before the command; `acme==1.0` is none."""
_ENTRY = re.compile(r"[a-z][a-z-]*/[^/\s]+")
_OPTIONS = ("allow", "era", "files", "http", "in", "make", "name", "without")
_OF_COMMAND = ("allow", "env", "files", "http", "make", "readonly", "secrets")
"""The options that a server elsewhere has not."""
_URLS = ("url", "serverUrl", "httpUrl")
_PORTS = 65_536
_NAME_CHARS = 40
_TASK = "Find out what the tools of this server do, and tell it in a few sentences."


@dataclass(frozen=True)
class Written:
    """A source, as its words have it.

    Attributes:
        command: The command of the server, or one word: a URL, or `CLIENT/NAME`.
        env: Its variables; those of a URL are headers.
        options: The options, by name.
        private: Values of variables that come from a client's entry, and are secrets.
    """

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    private: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def url(self) -> str | None:
        """The address of a server that runs elsewhere."""
        word = self.command[0] if self.command else ""
        return word if word.startswith(("http://", "https://")) and not self.command[1:] else None

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
            "mcp:python server.py, its URL, or CLIENT/NAME for one that a client has."
        )
    return Written(tuple(words), env, options)


def _is_entry(written: Written) -> bool:
    word = written.command[0] if written.command else ""
    return len(written.command) == 1 and bool(_ENTRY.fullmatch(word)) and not Path(word).exists()


def _of_client(written: Written) -> Written:
    """Return the command of a client's entry in place of its name."""
    client, _, name = written.command[0].partition("/")
    entry: Mapping[str, Any] = service("client entries")(client, name)
    url = next((entry[key] for key in _URLS if isinstance(entry.get(key), str)), None)
    if entry.get("type") == "sse" or not isinstance(entry.get("command") or url, str):
        raise InvalidEnvironment(
            f"{written.command[0]} has neither a command nor a URL of streamable HTTP."
        )
    values = cast("Mapping[str, Any]", entry.get("env" if url is None else "headers") or {})
    env, private = dict(written.env), dict[str, str]()
    for key, value in values.items():
        if key not in env:  # else the source's own words come first
            (env if VARIABLE.search(str(value)) else private)[key] = str(value)
    args = [str(each) for each in cast("list[Any]", entry.get("args") or [])]
    options = {"name": _plain(name), **written.options}
    command = (entry["command"], *args) if url is None else (url,)
    return Written(command, env, options, private)


class _ClientServer(ToolServer):
    """A server whose variables a client's entry has: their values are secrets."""

    def __init__(self, private: Mapping[str, str], **more: Any) -> None:
        super().__init__(**more)
        self.private = dict(private)

    def _values(self) -> dict[str, str]:
        return {**self.private, **super()._values()}


def _make(written: Written, source: str, like: ToolServer | None = None) -> ToolServer:
    """Declare a server; what its words do not say is as in a declaration that it replaces."""
    given = written.options
    before: dict[str, Any] = dict(like.options) if like is not None else {}
    more: dict[str, Any] = {
        **before,
        "without": [*before.get("without", ()), *_listed(written, "without")],
    }
    private = {**(like.private if isinstance(like, _ClientServer) else {}), **written.private}
    more |= {name: v for name, v in given.items() if name in ("era", "files", "make")}
    url = written.url or (None if written.command else more.get("url"))
    if url is not None:
        kept = {name: value for name, value in more.items() if name not in _OF_COMMAND}
        headers = {
            name.replace("_", "-") if name.isupper() else name: value
            for name, value in {**written.env, **written.private}.items()
        }
        kept |= {"url": url, "headers": {**(more.get("headers") or {}), **headers}}
        long = {name: value for name, value in private.items() if len(value) >= LEAST_SECRET_CHARS}
        return _ClientServer(long, **kept)
    if port := given.get("http"):
        if not port.isdecimal() or not 0 < int(port) < _PORTS:
            raise InvalidEnvironment(f"{source!r}: expected a port such as http=8000.")
        more["http"] = int(port)
    secrets: list[str] = []
    plain: dict[str, str] = {}
    for name, value in written.env.items():
        found = VARIABLE.search(value)
        if found is None:
            plain[name] = value
        elif found[0] == value and name in found.groups():
            secrets.append(name)
        else:
            raise InvalidEnvironment(
                f"{source!r}: {name}={value} is made of another variable. Set a variable {name} "
                f"for this command, and write {name}=${name}."
            )
    more |= {
        "url": None,
        "headers": None,
        "env": {**(before.get("env") or {}), **plain},
        "secrets": [*before.get("secrets", ()), *secrets],
    }
    if "allow" in given:
        more["allow"] = _listed(written, "allow")
    command = written.command or (like.command if like is not None else ())
    return _ClientServer(private, command=command, **more)


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
        program = None if written.url else find_program(written.command, folder)
        host = urlsplit(written.url or "").hostname or ""
        name = written.options.get("name") or _plain(program.name if program else host)
        environment = Environment(name, world=spec)
        # It has no file of its own: its text and its program's parts are its digest.
        environment.file = Path(lasting)
        environment.template(id="explore", description="Try the server's tools")(_explore)
        spec.check(folder)
        parts = f"{program.version} {program.digest}" if program else ""
        environment.loaded(text=f"{lasting}\n{parts}")
        _made[lasting] = environment
    return [_made[lasting]]


async def _explore(server: ToolServerWorld, task: str = _TASK) -> AsyncGenerator[str | Grade, str]:
    """Ask for anything; the tools that were called without an error count."""
    yield task
    calls = server.calls
    yield grade_checks({"called a tool": bool(calls), "no error": calls.errors_at_most(0)})


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
    is_command = command and not _is_entry(written) and written.url is None
    if is_command and parse(command) is None:
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
