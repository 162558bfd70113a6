"""The scheme `mcp:`: any MCP server, by its command or by a client's entry of it.

Words with `=` come before the command, as in a shell: `mcp:files=./notes TOKEN=$TOKEN npx -y acme`.
Names in capitals are variables of the server, or headers of requests to a URL; the others are
options. `in=mine.py` is the environment of a file with another command, with more variables, or
without some of its tools.
"""

import os
import re
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from hud_mcp.environment.environment import Environment
from hud_mcp.errors import InvalidEnvironment, SourceNotFound, did_you_mean, name_known
from hud_mcp.graders.combination import grade_checks
from hud_mcp.loading.source import Scheme, Source, lasting_source
from hud_mcp.plugins.servers.install import parse
from hud_mcp.plugins.servers.launch import Launch
from hud_mcp.plugins.servers.peer import Json
from hud_mcp.plugins.servers.program import find_program
from hud_mcp.plugins.servers.reply import LEAST_SECRET_CHARS, Masker
from hud_mcp.plugins.servers.several import ToolServers
from hud_mcp.plugins.servers.spec import VARIABLE, ToolServer
from hud_mcp.plugins.servers.tool import ServerTool
from hud_mcp.plugins.servers.world import ToolServerWorld
from hud_mcp.registry import service
from hud_mcp.values.grade import Grade
from hud_mcp.worlds.shell.spec import Shell

__all__ = ["SCHEME", "Written", "read"]

_MCP = "mcp:"
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)=(?!=)(.*)", re.DOTALL)
"""A word before the command; `acme==1.0` is none."""
_SECRET = re.compile(
    r"(?i)(token|secret|password|authorization|cookie|(?<![^_-])((access|api|private)?key|pat))$"
)
_SHOWN = re.compile(
    rf"(?i)((?<=authorization=)[a-z]+ )?({VARIABLE.pattern})"
    r"|(?<!password=)\d+|(~|\.\.?)?(/[\w.-]+)+/?"
)
"""A value that is no secret under such a name: a variable, a number or a path."""
_ENTRY = re.compile(r"[a-z][a-z-]*/[^/\s]+")
_OPTIONS = ("allow", "at", "era", "files", "http", "in", "make", "name", "without")
_OF_COMMAND = ("allow", "env", "files", "http", "make", "readonly", "secrets")
"""The options that a server elsewhere has not."""
_URLS = ("url", "serverUrl", "httpUrl")
_IN_TEXT = re.compile(r"\$\{(?:env:)?([\w.:-]+?)(?::-([^}]*))?\}|\$(\w+)")
"""A variable of an entry; Claude Code has defaults, and Gemini leaves the braces out."""
_LINE = re.compile(r"(?m)^(?:export )?\s*(\w+)\s*=(.*)$")
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
        sent: The variables or headers of a client's entry.
        private: The secrets in them, by names that errors may show.
        sse: Whether a URL speaks the older HTTP with events of 2024.
    """

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    sent: Mapping[str, str] = field(default_factory=dict[str, str])
    private: Mapping[str, str] = field(default_factory=dict[str, str])
    sse: bool = False

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
        is_shown = _SHOWN.fullmatch(words[0], len(name) + 1)
        if _SECRET.search(name) and not is_shown and len(value) >= LEAST_SECRET_CHARS:
            raise InvalidEnvironment(
                f"The value of {name} would be recorded with the source. Set it in a variable, and "
                f"write {name}=$VARIABLE in single quotation marks."
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


def _with_entry(written: Written) -> Written:
    """Return a source with a client's entry in place of its name, if it names one."""
    if not _is_entry(written):
        return written
    client, _, name = written.command[0].partition("/")
    try:
        found: Json = service("client entries")(client, name, Path(written.options.get("at", "")))
        return _of_entry(written, client, name, found[name])
    except (AttributeError, OSError, TypeError, ValueError) as exc:
        raise InvalidEnvironment(f"The entry {written.command[0]} cannot be read: {exc}") from exc


def _every(written: Written) -> Json | None:
    """Return all entries of a client, or of a file of one, if a source names it alone."""
    try:
        (word,) = written.command
        return service("client entries")(word, "", Path(written.options.get("at", "")))
    except (SourceNotFound, ValueError):  # it is the command of a server
        return None


def _members(written: Written, entries: Json) -> dict[str, ToolServer]:
    """Declare each server of a client; one that cannot run here is named, or left out by name."""
    word, without = written.command[0], _listed(written, "without")
    servers, odd, known = dict[str, ToolServer](), dict[str, Exception](), dict[str, str]()
    for name, entry in entries.items():
        if name in without or entry.get("disabled") is True or entry.get("enabled") is False:
            continue
        try:
            known |= (named := {_plain(n): n for n in (*_variables(entry), *_headers(entry))})
            env = {n: value for n, value in written.env.items() if _plain(n) in named}
            one = _of_entry(Written((f"{word}/{name}",), env), word, name, entry)
            spec = _make(replace(one, options={}), name, is_member=True)
            if spec.command:
                find_program(spec.command, Path.cwd())
            called = re.sub(r"[^A-Za-z0-9-]+", "-", name)
            if servers.setdefault(called, spec) is not spec:
                odd[name] = ValueError(f"another server's tools begin with {called}_ too.")
        except (InvalidEnvironment, AttributeError, OSError, TypeError, ValueError) as exc:
            odd[name] = exc
    if odd:
        told = " ".join(f"{name}: {str(exc).rstrip('.')}." for name, exc in odd.items())
        hint = f"Leave them out with mcp:without={','.join([*without, *odd])} {word}."
        raise InvalidEnvironment(f"Servers of {word} cannot run here. {told} {hint}")
    if not servers:
        text = "has no server to serve. Add one that is on, or write its command: mcp:npx ACME."
        raise InvalidEnvironment(f"{word} {text}")
    if unknown := [n for n in written.env if _plain(n) not in known]:
        names = name_known(unknown[0], known.values(), what="They have")
        raise InvalidEnvironment(f"No server of {word} has a variable {unknown[0]!r}.{names}")
    return servers


def _of_entry(written: Written, client: str, name: str, entry: Json) -> Written:
    url = next((entry[key] for key in _URLS if isinstance(entry.get(key), str)), None)
    if not isinstance(entry.get("command") or url, str) or entry.get("type") == "ws":
        text = "has neither a command nor a URL of HTTP. Write its command, as in mcp:npx PACKAGE."
        raise InvalidEnvironment(f"{written.command[0]} {text}")
    private = dict[str, str]()
    fill = partial(_filled, noted=private, bare=client.startswith("gemini"))
    given, own = (_variables if url is None else _headers)(entry), set(map(_plain, written.env))
    sent = {n: fill(each) for n, each in given.items() if _plain(n) not in own}
    words = [fill(each) for each in (url or entry["command"], *(entry.get("args") or ()))]
    command = _absolute(words, Path(entry["cwd"])) if url is None else (words[0],)
    ends = {f"the last word of {n}": each.rpartition(" ")[2] for n, each in sent.items()}
    private |= sent if url is None else ends
    private = {n: each for n, each in private.items() if len(each) >= LEAST_SECRET_CHARS}
    kind = "sse" if urlsplit(words[0]).path.rstrip("/").endswith("/sse") else ""  # clients try both
    options = {"name": _plain(name), **written.options}
    return Written(command, written.env, options, sent, private, entry.get("type", kind) == "sse")


def _headers(entry: Json) -> Json:
    """Return an entry's headers; Codex names variables for their values."""
    named: Json = {**(entry.get("env_http_headers") or {})}
    found = {name: f"${{{each}}}" for name, each in named.items()}
    if token := entry.get("bearer_token_env_var"):
        found["Authorization"] = f"Bearer ${{{token}}}"
    return {**(entry.get("headers") or {}), **(entry.get("http_headers") or {}), **found}


def _variables(entry: Json) -> Json:
    """Return an entry's variables: those of a file, those that Codex passes on, and its own."""
    file = entry.get("envFile")
    lines = (Path(entry["cwd"]) / file).read_text(encoding="utf-8") if file else ""
    found = {name: value.strip("\"' ") for name, value in _LINE.findall(lines)}
    found |= {n: f"${{{n}}}" for n in map(str, entry.get("env_vars") or ()) if n in os.environ}
    return {**found, **(entry.get("env") or {})}


def _filled(text: Any, noted: dict[str, str], *, bare: bool = True) -> str:
    """Return a text with the values of `${NAME}`, and `$NAME` if `bare`; note these values."""

    def value(match: re.Match[str]) -> str:
        braced, default, name = match.groups()
        if name and not bare:
            return match[0]
        if found := os.environ.get(name or braced):
            noted[name or braced] = found
        elif default is None:
            hint = "Set it, or write the variable that needs it before, as in mcp:TOKEN=$TOKEN …"
            raise InvalidEnvironment(f"{match[0]} has no value here. {hint}")
        return found or default

    return _IN_TEXT.sub(value, str(text))


class _ClientServer(ToolServer):
    """A server that gets values which no declaration names: those of a client's entry."""

    def __init__(self, written: Written, **more: Any) -> None:
        super().__init__(**more)
        self.written = written

    @property
    def is_apart(self) -> bool:
        return super().is_apart or bool(self.written.private)

    async def _found(self, folder: Path) -> tuple[Launch, Shell | None]:
        launch, shell = await super()._found(folder)
        sent, sse = self.written.sent, self.written.sse
        known = {**self._filled(self._headers)[1], **self._values(), **self.written.private}
        launch = replace(launch, masker=Masker(known.items()), sse=sse)
        if launch.url is not None:
            return replace(launch, headers={**sent, **launch.headers}), shell
        return replace(launch, env={**launch.env, **sent}), shell


def _make(
    written: Written, source: str, like: ToolServer | None = None, *, is_member: bool = False
) -> ToolServer:
    """Declare a server; what its words do not say is as in a declaration that it replaces."""
    given = written.options
    before: dict[str, Any] = dict(like.options) if like is not None else {}
    more: dict[str, Any] = before | {
        "without": [*before.get("without", ()), *_listed(written, "without")]
    }
    former = like.written if isinstance(like, _ClientServer) else Written(())
    sent, private = {**former.sent, **written.sent}, {**former.private, **written.private}
    more |= {name: v for name, v in given.items() if name in ("era", "files", "make")}
    if "allow" in given:
        more["allow"] = _listed(written, "allow")
    entries = None if is_member else _every(written)
    given_too = like.declared if isinstance(like, ToolServers) and not written.command else None
    if (members := given_too if entries is None else _members(written, entries)) is not None:
        more |= dict.fromkeys(("url", "headers", "http"))
        return ToolServer(members, **more)
    url = written.url or (None if written.command else more.get("url"))
    if url is not None:
        if odd := [name for name in given if name in _OF_COMMAND]:
            raise InvalidEnvironment(f"{odd[0]}= is of a command, and {url} runs elsewhere.")
        kept = {name: value for name, value in more.items() if name not in _OF_COMMAND}
        headers = {n.replace("_", "-") if n.isupper() else n: v for n, v in written.env.items()}
        kept |= {"url": url, "headers": {**(more.get("headers") or {}), **headers}}
        return _ClientServer(replace(written, sent=sent, private=private), **kept)
    if port := given.get("http"):
        if not port.isdecimal() or not 0 < int(port) < _PORTS:
            raise InvalidEnvironment(f"{source!r}: expected a port such as http=8000.")
        more["http"] = int(port)
    plain = {name: value for name, value in written.env.items() if not VARIABLE.search(value)}
    for name in written.env.keys() - plain.keys():
        sent[name] = _filled(written.env[name], private)
    more |= {"url": None, "headers": None, "env": {**(before.get("env") or {}), **plain}}
    command = written.command or (like.command if like is not None else ())
    written = replace(written, sent=sent, private=private)
    return _ClientServer(written, command=command, **more)


def _listed(written: Written, option: str) -> list[str]:
    return [each for each in written.options.get(option, "").split(",") if each]


def _load(source: str) -> list[Environment]:
    """Make the environment of a source once; the first time may install its package."""
    lasting = _lasting(source)
    written = read(lasting)
    if "in" in written.options:
        return _replace(written, lasting)
    if lasting not in _made:
        written = _with_entry(written)
        spec, folder = _make(written, source), Path.cwd()
        own, parts = _programs(spec, folder)
        if written.url or isinstance(spec, ToolServers):
            own = urlsplit(written.url or "").hostname or Path(written.command[0]).stem
        name = written.options.get("name") or _plain(own)
        environment = Environment(name, world=spec)
        # It has no file of its own: its text and its program's parts are its digest.
        environment.file = Path(lasting)
        environment.template(id="explore", description="Try the server's tools")(_explore)
        spec.check(folder)
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
    written = _with_entry(written)
    spec = _make(written, lasting, cast("ToolServer", old.world))
    spec.check(old.folder)
    _, parts = _programs(spec, old.folder)
    made = old.with_world(spec, [t for t in old.tools.values() if not isinstance(t, ServerTool)])
    made.loaded(source=old.source, text=f"{lasting}\n{parts}")
    return [made if each is old else each for each in found]


def _programs(spec: ToolServer, folder: Path) -> tuple[str, str]:
    """Return the name of a declaration's first program, and the versions of all."""
    found = [find_program(s.command, folder) for s in spec.members.values() if s.command]
    return found[0].name if found else "", " ".join(f"{p.version} {p.digest}" for p in found)


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
    if _is_entry(written) or _every(written) is not None:
        options["at"] = str(Path(options.get("at", "")).expanduser().resolve())  # its project
    command = written.command
    is_command = command and "at" not in options and written.url is None
    if is_command and parse(command) is None:
        command = _absolute(command, Path.cwd())
    return replace(written, command=command, options=options).text


def _absolute(words: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return a command with whole paths of its scripts; other words are of the session's folder."""
    ends = (".py", ".js", ".mjs", ".cjs", ".ts", ".json", ".toml")
    scripts = [word for word in words if "/" in word or word.endswith(ends)]
    found = {word: str(folder / word) for word in scripts if (folder / word).is_file()}
    return tuple(found.get(word, word) for word in words)


def with_files(sources: Sequence[str], folder: str) -> list[str]:
    """Return sources `mcp:` with the files of a folder; `InvalidEnvironment` for another one."""
    if not sources or not all(each.startswith(_MCP) for each in sources):
        raise InvalidEnvironment("--files is for servers. Write it with a source mcp:COMMAND.")
    words = shlex.quote(f"files={folder}")
    return [f"{_MCP}{words} {each.removeprefix(_MCP)}" for each in sources]


SCHEME = Scheme(load=_load, lasting=_lasting)
