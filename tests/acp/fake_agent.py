"""An agent of the protocol, written on its SDK, in the shape that its first argument names.

    python fake_agent.py SHAPE [FILE]

It works on its task through the server of tools that `session/new` gives it. FILE gets what it was
told, as a line of JSON for each session, and what it was answered.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import acp
import anyio
import httpx2
from acp import schema
from acp.stdio import stdio_streams
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

SHAPE = sys.argv[1]
FILE = Path(sys.argv[2]) if sys.argv[2:] else None
STATE = Path.home() / "session.json"


def tell(**told: Any) -> None:
    """Write a line for the test."""
    if FILE is not None:
        with FILE.open("a") as file:
            file.write(json.dumps(told) + "\n")


async def call(server: Any, name: str, arguments: dict[str, Any], number: str = "") -> str:
    """Call a tool of the server, and return its text."""
    meta: Any = {"hud-mcp/tool-call": number} if number else None
    if hasattr(server, "command"):
        variables = {each.name: each.value for each in server.env}
        wire = stdio_client(
            StdioServerParameters(command=server.command, args=server.args, env=variables)
        )
        async with Client(wire) as client:
            result = await client.call_tool(name, arguments, meta=meta)
    else:
        headers = {each.name: each.value for each in server.headers}
        async with (
            httpx2.AsyncClient(headers=headers) as web,
            Client(streamable_http_client(server.url, http_client=web)) as client,
        ):
            result = await client.call_tool(name, arguments, meta=meta)
    return " ".join(getattr(each, "text", "") for each in result.content)


def options() -> list[schema.PermissionOption]:
    """The usual choices, the lasting one first."""
    return [
        schema.PermissionOption(option_id="always", name="Always", kind="allow_always"),
        schema.PermissionOption(option_id="once", name="Once", kind="allow_once"),
        schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
    ]


async def write(data: bytes) -> None:
    """Write whatever it is to standard output, which the SDK has made one that does not wait."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(1, left) :]
        except BlockingIOError:
            await asyncio.sleep(0.001)


class FakeAgent:
    """The agent: each shape is a method that plays one prompt."""

    def __init__(self) -> None:
        self.client: Any = None
        self.servers: list[Any] = []
        self.session = ""
        self.prompts = 0
        self.cancelled = asyncio.Event()
        self.provider: dict[str, Any] = {}

    def on_connect(self, conn: Any) -> None:
        """Keep the client's end."""
        self.client = conn

    async def initialize(self, protocol_version: int, **more: Any) -> schema.InitializeResponse:
        """Say what it can."""
        tell(initialize=str(more.get("client_capabilities")))
        if SHAPE == "mute":
            await asyncio.Event().wait()
        if SHAPE == "exits":
            print("no such flag", file=sys.stderr, flush=True)
            os._exit(3)
        http = SHAPE != "stdio"
        return schema.InitializeResponse(
            protocol_version=9 if SHAPE == "newer" else protocol_version,
            agent_capabilities=schema.AgentCapabilities(
                load_session=SHAPE in ("dies once", "dies always"),
                mcp_capabilities=schema.McpCapabilities(http=http),
                providers=schema.ProvidersCapabilities() if SHAPE == "providers" else None,
            ),
            auth_methods=[schema.AuthMethodAgent(id="gateway", name="gateway")]
            if SHAPE == "gateway"
            else [],
        )

    async def authenticate(self, method_id: str, **more: Any) -> schema.AuthenticateResponse:
        """Note the way."""
        tell(authenticate=method_id, more=more)
        return schema.AuthenticateResponse()

    async def new_session(
        self, cwd: str, mcp_servers: Any = None, **more: Any
    ) -> schema.NewSessionResponse:
        """Begin a session, and keep it for a later life."""
        if SHAPE == "login":
            raise acp.RequestError.auth_required()
        self.servers, self.session = mcp_servers, "s-1"
        STATE.write_text(json.dumps([each.model_dump(by_alias=True) for each in mcp_servers]))
        tell(
            cwd=cwd,
            files=[str(each) async for each in anyio.Path(cwd).iterdir()],
            servers=[str(each) for each in mcp_servers],
        )
        return schema.NewSessionResponse(session_id=self.session)

    async def load_session(self, cwd: str, session_id: str, **more: Any) -> None:
        """Go on with a session, after it has told what was said in it."""
        tell(loaded=session_id, kept=STATE.exists())
        self.servers, self.session = more["mcp_servers"], session_id
        await self.say("This was said before.")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Note a cancellation."""
        tell(cancelled=session_id)
        self.cancelled.set()

    async def say(self, text: str) -> None:
        """Send a part of a message."""
        await self.client.session_update(self.session, acp.update_agent_message_text(text))

    async def think(self, text: str) -> None:
        """Send a part of a thought."""
        await self.client.session_update(self.session, acp.update_agent_thought_text(text))

    async def begin(self, number: str, title: str, **more: Any) -> None:
        """Tell of a call that begins."""
        await self.client.session_update(
            self.session, acp.start_tool_call(number, title, status="in_progress", **more)
        )

    async def ask(self, number: str, title: str, **more: Any) -> bool:
        """Ask for a permission."""
        wanted = schema.ToolCallUpdate(tool_call_id=number, title=title, **more)
        reply = await self.client.request_permission(
            session_id=self.session, tool_call=wanted, options=options()
        )
        tell(asked=title, outcome=reply.outcome.model_dump())
        return getattr(reply.outcome, "option_id", "no") != "no"

    async def prompt(self, prompt: Any, session_id: str, **_: Any) -> schema.PromptResponse:
        """Work as its shape says."""
        self.prompts += 1
        tell(prompt=prompt[0].text, number=self.prompts)
        ended = await getattr(self, f"play_{SHAPE.replace(' ', '_')}", self.play)()
        usage = schema.Usage(
            total_tokens=160, input_tokens=100, output_tokens=20, cached_read_tokens=40
        )
        return schema.PromptResponse(stop_reason=ended or "end_turn", usage=usage)

    async def play(self) -> None:
        """Look, think, plan and answer."""
        await self.think("I look ")
        await self.think("first.")
        await self.begin("c-1", "mcp__hud-mcp__step", raw_input={"actions": []})
        await self.ask("c-1", "mcp__hud-mcp__step")  # so that the turn is recorded by now
        await call(self.servers[0], "step", {"actions": []}, "c-1")
        plan = acp.update_plan([acp.plan_entry("count the letters", status="in_progress")])
        await self.client.session_update(self.session, plan)
        cost = schema.Cost(amount=0.25, currency="USD")
        await self.client.session_update(
            self.session,
            schema.UsageUpdate(session_update="usage_update", used=9, size=99, cost=cost),
        )
        await self.say("There are three.")
        await self.begin("c-2", "mcp__hud-mcp__response", raw_input={"answer": "3"})
        await self.ask("c-2", "mcp__hud-mcp__response")
        await call(self.servers[0], "response", {"answer": "3"}, "c-2")
        await self.say("Done.")

    async def play_forgets(self) -> None:
        """Answer only when it is asked again."""
        if self.prompts > 1:
            await self.play()

    async def play_never_answers(self) -> None:
        """Say what nobody grades."""
        await self.say("It is three.")

    async def play_talks(self) -> None:
        """Ask the user, then promise something."""
        texts = ("Gladly. Which order is it?", "The refund takes 5 days.")
        await self.say(texts[min(self.prompts, len(texts)) - 1])

    async def play_bound(self) -> str:
        """Stop at a bound of its own."""
        await self.say("One, two")
        return "max_turn_requests"

    async def play_junk(self) -> None:
        """Write lines that are no messages between others."""
        await write(b'Welcome!\n{"half": \n[1, 2]\n\xff\xfe\n{"id": 1}\n')
        await write(b'{"jsonrpc": "2.0", "id": 999, "result": {}}\n')
        update = {"sessionUpdate": "agent_message_chunk", "content": 7}
        for params in (
            [1],
            {"sessionId": "s-1", "update": 7},
            {"sessionId": "s-1", "update": update},
        ):
            line = {"jsonrpc": "2.0", "method": "session/update", "params": params}
            await write(json.dumps(line).encode() + b"\n")
        await self.play()

    async def play_all_junk(self) -> None:
        """Write nothing else."""
        while True:
            await write(b"la " * 1000 + b"\n")

    async def play_long_line(self) -> None:
        """Write a message without an end."""
        while True:
            await write(b"x" * 65536)

    async def play_floods(self) -> None:
        """Tell one thing for ever."""
        line = b'{"jsonrpc": "2.0", "method": "session/update", "params": {}}\n' * 500
        while True:
            await write(line)

    async def play_dies_once(self) -> None:
        """Die with the first life; work in the second."""
        if self.prompts == 1 and not (marker := Path.home() / "died").exists():
            marker.touch()
            await self.say("I begin.")
            await asyncio.sleep(0.2)
            os._exit(7)
        await self.play()

    async def play_dies_always(self) -> None:
        """Die in each life."""
        print("the end is near", file=sys.stderr, flush=True)
        os._exit(7)

    async def play_fails(self) -> None:
        """Answer the prompt with an error."""
        raise acp.RequestError(-32603, "Internal error", {"details": "the model is gone"})

    async def play_never_ends(self) -> str:
        """Wait until it is told to stop."""
        await self.say("I wait.")
        await self.cancelled.wait()
        return "cancelled"

    async def play_deaf(self) -> None:
        """Wait for ever, and start what outlives it."""
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "import time; time.sleep(300)", start_new_session=True
        )
        tell(child=child.pid)
        await asyncio.Event().wait()

    async def play_asks(self) -> None:
        """Ask for tools of the session, of another server, and of its own."""
        await self.begin("c-0", "looks")
        wanted: list[tuple[str, dict[str, Any]]] = [
            ("mcp__hud-mcp__step", {"kind": "other"}),
            ("step (hud-mcp MCP Server)", {}),
            ("mcp__mail__send", {"kind": "other"}),
            ("mcp__hud-mcp__no_such_tool", {}),
            ("mcp__hud-mcp__step", {"kind": "edit"}),
            ("echo mcp__hud-mcp__step", {"kind": "other"}),
            ("hud-mcp", {}),
        ]
        for number, (title, more) in enumerate(wanted):
            await self.ask(f"p-{number}", title, **more)
        await self.play()

    async def play_asks_much(self) -> None:
        """Ask more at once than anybody answers."""
        for number in range(200):
            line = {"jsonrpc": "2.0", "id": f"x{number}", "method": "session/request_permission"}
            await write(json.dumps(line).encode() + b"\n")
        await asyncio.Event().wait()

    async def play_edits(self) -> None:
        """Start a task by itself, as an editor's agent does, and answer it."""
        (server,) = self.servers
        variables = {each.name: each.value for each in server.env}
        wire = StdioServerParameters(command=server.command, args=server.args, env=variables)
        async with Client(stdio_client(wire)) as client:
            if await self.ask("e-1", "start_task"):
                await client.call_tool("start_task", {"task": "count-r-strawberry"})
            await client.call_tool("response", {"answer": "3"})

    async def play_wants_files(self) -> None:
        """Ask for what the client has not."""
        try:
            await self.client.read_text_file(session_id=self.session, path="/etc/passwd")
        except acp.RequestError as exc:
            tell(refused=exc.code)
        await self.play()

    async def play_uses_a_shell(self) -> None:
        """Work by the files and the terminals of the client."""
        here, of = Path.cwd(), {"session_id": self.session}
        text = "one\ntwo\n\nthr\u00e9e\n" + "x" * 9000 + "\n\n"
        await self.client.write_text_file(path=str(here / "own/a b.txt"), content=text, **of)
        whole = await self.client.read_text_file(path=str(here / "own/a b.txt"), **of)
        part = await self.client.read_text_file(
            path="/workspace/own/a b.txt", line=2, limit=2, **of
        )
        tell(
            whole=whole.content == text,
            part=part.content,
            here=[str(each) async for each in anyio.Path(here).iterdir()],
        )
        for path in (here / "nothing", "/etc/shadow", here / "own"):
            try:
                tell(read=(await self.client.read_text_file(path=str(path), **of)).content)
            except acp.RequestError as exc:
                tell(refused=exc.code)
        for path in ("/etc/hosts", "../../outside"):
            try:
                tell(wrote=await self.client.write_text_file(path=path, content="x", **of))
            except acp.RequestError as exc:
                tell(refused=exc.code)
        await self.run("printf '%s|%s' \"$A\" \"$PWD\"; exit 3", cwd=str(here / "own"),
                       env=[schema.EnvVariable(name="A", value="it's $A")])  # fmt: skip
        await self.run("printf", args=["<%s>", "a  b", "$HOME"])
        await self.run("for i in $(seq 20000); do echo line \u00e9 $i; done", limit=1001)
        slow = await self.client.create_terminal(command="sleep 600", **of)
        now = await self.client.terminal_output(terminal_id=slow.terminal_id, **of)
        tell(running=now.exit_status is None)
        await self.client.kill_terminal(terminal_id=slow.terminal_id, **of)
        ended = await self.client.wait_for_terminal_exit(terminal_id=slow.terminal_id, **of)
        tell(killed=[ended.exit_code, ended.signal])
        await self.client.release_terminal(terminal_id=slow.terminal_id, **of)
        for wrong in (
            self.client.terminal_output(terminal_id=slow.terminal_id, **of),
            self.client.terminal_output(session_id="s-2", terminal_id="terminal-1"),
            self.client.create_terminal(command="true", cwd=str(here / "no"), **of),
            self.client.create_terminal(
                command="true", env=[schema.EnvVariable(name="A=1;x", value="")], **of
            ),
        ):
            try:
                tell(went=str(await wrong))
            except acp.RequestError as exc:
                tell(refused=exc.code)
        await call(self.servers[0], "response", {"answer": "3"}, "c-2")

    async def run(self, command: str, limit: int | None = None, **more: Any) -> None:
        """Run a command in a terminal, and tell its end and its output."""
        of = {"session_id": self.session}
        begun = await self.client.create_terminal(
            command=command, output_byte_limit=limit, **more, **of
        )
        ended = await self.client.wait_for_terminal_exit(terminal_id=begun.terminal_id, **of)
        said = await self.client.terminal_output(terminal_id=begun.terminal_id, **of)
        assert said.exit_status is not None
        assert said.exit_status.exit_code == ended.exit_code
        tell(ran=[ended.exit_code, said.output, said.truncated])
        await self.client.release_terminal(terminal_id=begun.terminal_id, **of)


PROVIDERS = [
    {"providerId": "main", "supported": ["anthropic", "vertex"], "required": True},
    {"providerId": "cloud", "supported": ["bedrock"], "required": False},
]


def answer_providers(line: bytes) -> bool:
    """Answer a request for providers, which the SDK does not route; return whether it was one."""
    asked = json.loads(line)
    method = asked.get("method", "")
    if not method.startswith("providers/"):
        return False
    tell(method=method, params=asked["params"])
    result = {"providers": PROVIDERS} if method == "providers/list" else {}
    os.write(
        1, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode() + b"\n"
    )
    return True


async def main() -> None:
    """Serve standard input and output."""
    output, writer = await stdio_streams()
    lines = asyncio.StreamReader(limit=2**26)

    async def read() -> None:
        while line := await output.readline():
            if not answer_providers(line):
                lines.feed_data(line)
        lines.feed_eof()

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        await acp.run_agent(FakeAgent(), writer, lines, use_unstable_protocol=True)


asyncio.run(main())
