"""Files and terminals of the protocol, which the shell of a session serves."""

import base64
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from hud_mcp.agents.agent import Agent
from hud_mcp.base.text import clip
from hud_mcp.plugins.acp import libraries
from hud_mcp.plugins.acp.connection import INTERNAL_ERROR, Json, RequestRefused

if TYPE_CHECKING:
    from mcp_types import Tool

__all__ = ["Shell", "has_shell"]

Allows = Callable[[str], Awaitable[bool]]
_INVALID_PARAMS = -32602
_NOT_FOUND = -32002
_TOOLS = {"run_command": {"command", "timeout_s"}, "write_file": {"path", "content"}}
"""The tools of a shell, with arguments that tell them from others of the same name."""

_PART_BYTES = 5_800  # of one step: a reply shows 8,000 characters, and base64 takes a third more
_FILE_BYTES = 256 * 1024
_OUTPUT_BYTES = 64 * 1024  # the last of a terminal's output, at most
_TERMINALS = 16
_WAITS_S = (1, 2, 4, 8)  # of the steps that wait for a command: other calls wait meanwhile
_KILLED = 137
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_POLLED = re.compile(r"=(\d{0,3}) (\d{1,15}) (\d{1,15}) ([A-Za-z0-9+/=]*)")
_SAID_CHARS = 1_000


def has_shell(tools: "Iterable[Tool]") -> bool:
    """Whether the tools of a session are those of a shell."""
    found: Mapping[str, set[str]] = {
        each.name: set(each.input_schema.get("properties") or ()) for each in tools
    }
    return all(names <= found.get(name, set()) for name, names in _TOOLS.items())


@dataclass
class _Terminal:
    place: str
    most_bytes: int
    kept: bytes = b""
    read_bytes: int = 0
    is_cut: bool = False
    is_read: bool = False
    end: int | None = None


class Shell:
    """The shell of a session in the protocol's terms.

    Each request is made of calls of the session's own tools, so the record has all of it as steps,
    and an agent reaches nothing that those tools do not reach. The agent's working folder on this
    machine, which is empty, stands for the folder of the session.

    Args:
        agent: The handle on the session.
        folder: The working folder.
        allows: Decides whether a change may be made, from a line that describes it.

    Attributes:
        methods: The methods that it answers.
    """

    def __init__(self, agent: Agent, folder: Path, allows: Allows) -> None:
        self._agent = agent
        self._folders = [PurePosixPath(each) for each in (folder, folder.resolve())]
        self._allows = allows
        self._terminals: dict[str, _Terminal] = {}
        self._place = f"/tmp/acp-{token_hex(8)}"  # noqa: S108  # in the session's sandbox
        self._last = 0
        schema = libraries.schema
        self.methods: Mapping[str, tuple[Any, Callable[[Any], Awaitable[Json]]]] = {
            "fs/read_text_file": (schema.ReadTextFileRequest, self._read),
            "fs/write_text_file": (schema.WriteTextFileRequest, self._write),
            "terminal/create": (schema.CreateTerminalRequest, self._create),
            "terminal/output": (schema.TerminalOutputRequest, self._output),
            "terminal/wait_for_exit": (schema.WaitForTerminalExitRequest, self._wait),
            "terminal/kill": (schema.KillTerminalRequest, self._kill),
            "terminal/release": (schema.ReleaseTerminalRequest, self._release),
        }

    async def answer(self, method: str, params: Json) -> Json:
        """Answer a request of the agent.

        Raises:
            RequestRefused: It is malformed, or the session refused it; the text says why.
        """
        form, perform = self.methods[method]
        try:
            asked = form.model_validate(params)
        except ValidationError as exc:
            first = exc.errors(include_url=False, include_input=False)[0]
            raise RequestRefused(_INVALID_PARAMS, f"{first['loc']}: {first['msg']}") from None
        return await perform(asked)

    async def _read(self, asked: Any) -> Json:
        path = self._inside(asked.path)
        take = f"tail -n +{max(asked.line or 1, 1)} -- {path}"
        take += "" if asked.limit is None else f" | head -n {asked.limit}"
        data = b""
        while len(data) <= _FILE_BYTES:
            said = await self._run(
                f"if [ -f {path} ] && [ -r {path} ]; then echo =$({take} | tail -c +{len(data) + 1}"
                f" | head -c {_PART_BYTES} | base64 -w0); else echo no; fi"
            )
            if said == "no":
                raise RequestRefused(_NOT_FOUND, f"{asked.path} is no file that can be read.")
            data += (part := _decoded(said))
            if len(part) < _PART_BYTES:
                break
        else:
            raise RequestRefused(
                INTERNAL_ERROR,
                f"{asked.path} has more than {_FILE_BYTES} bytes from there. Read a part of it by "
                "`line` and `limit`.",
            )
        if b"\0" in data:
            raise RequestRefused(INTERNAL_ERROR, f"{asked.path} is not text.")
        return {"content": data.decode("utf-8", "replace")}

    async def _write(self, asked: Any) -> Json:
        await self._permit(f"write {asked.path}")
        await self._call("write_file", path=self._named(asked.path), content=asked.content)
        return {}

    async def _create(self, asked: Any) -> Json:
        if len(self._terminals) >= _TERMINALS:
            raise RequestRefused(
                INTERNAL_ERROR, f"{_TERMINALS} terminals are open. Release one before."
            )
        line = shlex.join([asked.command, *asked.args]) if asked.args else asked.command
        await self._permit(f"run {line}")
        variables = [(each.name, each.value) for each in asked.env or ()]
        if wrong := next((name for name, _ in variables if not _VARIABLE.fullmatch(name)), None):
            raise RequestRefused(_INVALID_PARAMS, f"{wrong!r} is no name of a variable.")
        self._last += 1
        place = f"{self._place}/{self._last}"
        exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in variables)
        # In a session of its own, all of it can be killed; what it writes stays until it is read.
        runs = 'bash -c "$1" >"$0/out" 2>&1 </dev/null; echo $? >"$0/end"'
        started = await self._run(
            f"mkdir -p {place} && cd -- {self._inside(asked.cwd or '.')} && {{ {exports}"
            f"setsid bash -c {shlex.quote(runs)} {place} {shlex.quote(line)} </dev/null >/dev/null "
            f"2>&1 & echo $! >{place}/pid; echo =; }}"
        )
        _decoded(started)
        most, number = asked.output_byte_limit, f"terminal-{self._last}"
        most = _OUTPUT_BYTES if most is None else min(most, _OUTPUT_BYTES)
        self._terminals[number] = _Terminal(place, most)
        return {"terminalId": number}

    async def _output(self, asked: Any) -> Json:
        terminal = self._terminal(asked)
        for _ in range(terminal.most_bytes // _PART_BYTES + 2):
            if terminal.is_read or not await self._poll(terminal):
                break
        kept = terminal.kept
        if terminal.is_cut:  # from the first whole character on
            kept = kept.lstrip(bytes(range(0x80, 0xC0)))
        told: Json = {"output": kept.decode("utf-8", "replace"), "truncated": terminal.is_cut}
        return told if terminal.end is None else {**told, "exitStatus": _status(terminal.end)}

    async def _poll(self, terminal: _Terminal) -> bool:
        """Read the next part of the output, and return whether more of it is there."""
        said = await self._run(
            f"cd {terminal.place} && e=$(cat end 2>/dev/null); n=$(cat out 2>/dev/null | wc -c); "
            f"s={terminal.read_bytes}; m={terminal.most_bytes}; "
            '[ $((n - s)) -gt $m ] && s=$((n - m)); echo "=$e $n $s '
            f'$(tail -c +$((s + 1)) out 2>/dev/null | head -c {_PART_BYTES} | base64 -w0)"'
        )
        found = _POLLED.fullmatch(said)
        if found is None:
            raise RequestRefused(INTERNAL_ERROR, f"The terminal is gone: {clip(said, _SAID_CHARS)}")
        end, size, start = found[1], int(found[2]), int(found[3])
        part = _decoded(f"={found[4]}")
        if start != terminal.read_bytes:
            terminal.kept, terminal.is_cut = b"", True
        terminal.kept += part
        terminal.read_bytes = start + len(part)
        if len(terminal.kept) > terminal.most_bytes:
            terminal.kept = terminal.kept[len(terminal.kept) - terminal.most_bytes :]
            terminal.is_cut = True
        more = bool(part) and terminal.read_bytes < size
        if end:
            terminal.end = min(int(end), 255) if terminal.end is None else terminal.end
            terminal.is_read = not more
        return more

    async def _wait(self, asked: Any) -> Json:
        terminal, turns = self._terminal(asked), 0
        ended = f"[ -e {terminal.place}/end ]"
        while terminal.end is None:
            wait_s = _WAITS_S[min(turns, len(_WAITS_S) - 1)]
            turns += 1
            said = await self._run(
                f"for i in $(seq {10 * wait_s}); do {ended} && break; sleep 0.1; done; "
                f"if {ended}; then cat {terminal.place}/end; elif [ -d {terminal.place} ]; "
                "then echo no; else echo gone; fi"
            )
            if said.isdecimal():
                terminal.end = min(int(said[:3]), 255)
            elif said != "no":
                raise RequestRefused(
                    INTERNAL_ERROR, f"The terminal is gone: {clip(said, _SAID_CHARS)}"
                )
        return _status(terminal.end)

    async def _kill(self, asked: Any) -> Json:
        terminal = self._terminal(asked)
        if terminal.end is None:
            said = await self._run(
                f"cd {terminal.place} && if [ -e end ]; then cat end; else "
                f"kill -KILL -- -$(cat pid); echo {_KILLED} | tee end; fi"
            )
            terminal.end = min(int(said[:3]), 255) if said.isdecimal() else _KILLED
        return {}

    async def _release(self, asked: Any) -> Json:
        await self._kill(asked)
        terminal = self._terminals.pop(asked.terminal_id)
        await self._run(f"rm -rf {terminal.place}; echo =")
        return {}

    def _terminal(self, asked: Any) -> _Terminal:
        if (found := self._terminals.get(asked.terminal_id)) is None:
            raise RequestRefused(_INVALID_PARAMS, "No terminal of that id is open.")
        return found

    def _named(self, path: str) -> str:
        """Return a path as the session's tools take it."""
        given = PurePosixPath(path)
        for folder in self._folders:
            if given.is_relative_to(folder):
                return str(given.relative_to(folder))
        return path

    def _inside(self, path: str) -> str:
        """Return a path as a word of the shell, which starts in the folder of the session."""
        named = self._named(path)
        return shlex.quote(named if named.startswith("/") else f"./{named}")

    async def _permit(self, line: str) -> None:
        with self._agent.pauses.pause():  # a person may take their time
            if not await self._allows(line):
                raise RequestRefused(INTERNAL_ERROR, "It was not permitted.")

    async def _run(self, command: str) -> str:
        return await self._call("run_command", command=command, timeout_s=30.0)

    async def _call(self, name: str, **arguments: Any) -> str:
        reply = await self._agent.call(name, **arguments)
        if reply.is_error:
            raise RequestRefused(INTERNAL_ERROR, clip(reply.text, _SAID_CHARS))
        return reply.text


def _decoded(said: str) -> bytes:
    """Read the bytes that a command has written; anything else is its error."""
    try:
        if said.startswith("="):
            return base64.b64decode(said[1:], validate=True)
    except ValueError:
        pass
    raise RequestRefused(INTERNAL_ERROR, clip(said, _SAID_CHARS))


def _status(end: int) -> Json:
    is_killed = end == _KILLED  # as shells number it
    return {"exitCode": None if is_killed else end, "signal": "SIGKILL" if is_killed else None}
