"""An environment with tools that hand on whole replies, as those of other servers do."""

import base64
import io
import os
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from mcp_types import Tool as Entry
from PIL import Image

from hud_mcp import Environment
from hud_mcp.environment.tool import Exchange, Tool
from hud_mcp.values.reply import ToolReply

env = Environment("relayed")


def picture(colour: str) -> str:
    """A picture of one colour, encoded."""
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2), colour).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


BLOCKS: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "two pictures", "annotations": {"audience": ["user"]}},
    {"type": "image", "data": picture("red"), "mimeType": "image/png"},
    {"type": "image", "data": picture("blue"), "mimeType": "image/png"},
    {"type": "audio", "data": base64.b64encode(b"RIFF").decode(), "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt", "mimeType": "text/plain"},
    {"type": "resource", "resource": {"uri": "note://1", "text": "a note"}},
)  # fmt: skip


class Relayed(Tool):
    """A tool whose arguments and replies belong to another server."""

    passes_through = True

    def __init__(self, name: str, *, session_argument: str = "session") -> None:
        async def function(**_: Any) -> None: ...

        function.__name__ = name
        self.function, self.name, self.where = function, name, "elsewhere"
        self.read_only, self.replayable, self.open_world = False, True, False
        self.description = "Hands on a reply."
        self.session_argument = session_argument
        self.arguments = Anything()  # type: ignore[assignment]  # read by the other server

    def entry(self, name: str) -> Any:
        """Its entry, with what the author of another server declared."""
        fields = {n: {"type": "string"} for n in ("how", "session", self.session_argument)}
        return Entry.model_validate(
            {
                "name": name,
                "title": "Relay a thing",
                "description": self.description,
                "inputSchema": {"type": "object", "properties": fields},
                "outputSchema": {"type": "object", "properties": {"seen": {"type": "integer"}}},
                "icons": [{"src": "https://example.com/icon.png"}],
            }
        )  # fmt: skip

    async def call(self, args: Mapping[str, Any], world: Any) -> ToolReply:
        """Answer with every kind of block, or with an error."""
        del world
        if args.get("how") == "fail":
            refused = {"type": "text", "text": f"refused: {args.get('session', 'nothing')}"}
            return ToolReply(content=(refused,), is_error=True)
        said = {"type": "text", "text": os.environ.get("RELAYED_SAYS", "as ever")}
        meta = {"example.com/key": 1, "hud-mcp/step": {"reward": 1.0}}
        return ToolReply(content=(*BLOCKS, said), structured={"seen": 2}, meta=meta)

    async def call_in(
        self, args: Mapping[str, Any], world: Any, services: Any, exchange: Exchange | None = None
    ) -> ToolReply:
        """Report that it works, and answer."""
        del services
        if exchange is not None and exchange.progress is not None:
            await exchange.progress(0.5, 1.0, "half way")
        return await self.call(args, world)

    def recorded(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments, without the secret one."""
        return {n: "[masked]" if n == "secret" else v for n, v in args.items()}

    def kept(self, reply: ToolReply) -> dict[str, Any]:
        """The structured content too."""
        return {**super().kept(reply), "structured": reply.structured}

    def is_same(self, reply: Any, text: str | None, kept: Mapping[str, Any]) -> bool:
        """Whether text and data are the same."""
        return reply.text == text and reply.structured == kept.get("structured")


class Anything:
    """Arguments that the other server checks."""

    names: tuple[str, ...] = ()
    schema: Mapping[str, Any] = {"type": "object", "properties": {}}  # not changed

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Take all."""
        return dict(given)


env.offer(Relayed("relay"))
env.offer(Relayed("relay_session", session_argument="hud_session"))


@env.template(description="Call a tool that hands on replies")
async def call() -> AsyncGenerator[str | float]:
    """Any answer is right."""
    yield "Call relay."
    yield 1.0
