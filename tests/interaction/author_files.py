"""Files as an author of HUD environments writes them; what they import as the SDK is left open."""

from pathlib import Path

__all__ = ["QUIZ", "TOOLBOX", "write"]

QUIZ = '''
"""Questions: messages, a typed answer, and tasks that are listed."""

from pydantic import BaseModel

from {sdk} import Environment
from {sdk}.environment import Answer, GradingArg, PromptArg

env = Environment(name="org/quiz v1.0", version="1.2.3")


class Total(BaseModel):
    amount: float
    currency: str = "EUR"


@env.template(description="Add up a bill", returns=Total)
async def bill(items: list[float], style: PromptArg = "brief"):
    answer: Answer[Total] = yield [
        {{"role": "system", "content": f"Be {{style}}."}},
        {{
            "role": "user",
            "content": [
                {{"type": "text", "text": f"Add up {{items}}."}},
                {{"type": "image", "data": "{pixel}", "mimeType": "image/png"}},
            ],
        }},
    ]
    right = isinstance(answer.content, Total) and answer.content.amount == sum(items)
    yield 1.0 if right else 0.0


@env.template()
async def capital(country: str = "France", expected: GradingArg[str] = ["Paris"]):
    answer = yield f"What is the capital of {{country}}?"
    yield 1.0 if answer in expected else 0.0


france = capital(country="France")
tasks = [france, bill(items=[1.5, 2.5]), capital(country="Peru", expected=["Lima"])]
'''

TOOLBOX = '''
"""Tools: an MCP server of the author's own, which the environment starts and publishes."""

import asyncio
import socket
from pathlib import Path

from fastmcp import Context, FastMCP

from {sdk} import Environment
from {sdk}.capabilities import Capability

server = FastMCP(name="tools")


@server.tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool
async def count(ctx: Context) -> int:
    """Say how often this session has called."""
    seen = (await ctx.get_state("seen") or 0) + 1
    await ctx.set_state("seen", seen)
    return seen


@server.tool
def fail() -> str:
    """Fail, always."""
    raise ValueError("no luck today")


env = Environment(name="calc")
_task: asyncio.Task | None = None


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@env.initialize
async def _up():
    global _task
    port = free_port()
    if _task is None:
        _task = asyncio.create_task(
            server.run_async(
                transport="http", host="127.0.0.1", port=port, show_banner=False,
                log_level="warning",
            )
        )
    for _ in range(1000):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            break
        except OSError:
            await asyncio.sleep(0.02)
    env.add_capability(Capability.mcp(name="tools", url=f"http://127.0.0.1:{{port}}/mcp"))


@env.shutdown
async def _down():
    global _task
    if _task is not None:
        _task.cancel()
        _task = None
    (Path(__file__).parent / "down").touch()


@env.template(description="Add with the tool")
async def total(a: int = 3, b: int = 4):
    answer = yield f"Add {{a}} and {{b}} with your tools, and answer with the number."
    yield 1.0 if answer == str(a + b) else 0.0


tasks = [total(a=20, b=3), total()]
'''

_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)


def write(folder: Path, text: str, sdk: str = "hud_mcp") -> Path:
    """Write a file for one of the SDKs, and return where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "env.py"
    path.write_text(text.format(sdk=sdk, pixel=_PIXEL))
    return path
