"""An environment that a test can stop at will, and that says how often it graded."""

# ruff: noqa: ANN201, ASYNC110, ASYNC230, ASYNC240, D103  # gates are files of another process

import asyncio
from pathlib import Path

from hud_mcp import Capability, Environment, Grade, SubScore

env = Environment("talk", version="1.2.3")


async def pass_gate(path: str) -> None:
    """Say that it is reached, and wait until it is opened."""
    if not path:
        return
    Path(f"{path}.reached").touch()
    while not Path(f"{path}.open").exists():
        await asyncio.sleep(0.01)


@env.initialize
async def publish_echo() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
        writer.write(b"end")
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    env.echo = server
    env.add_capability(Capability(name="echo", protocol="mcp", url=f"http://127.0.0.1:{port}/x"))


@env.shutdown
async def close_echo() -> None:
    env.echo.close()


@env.template(description="Say a word")
async def ask(word: str = "tea"):
    answer = yield f"Say {word}."
    yield 1.0 if answer == word else 0.25


@env.template()
async def gated(setup: str = "", grading: str = "", tally: str = ""):
    await pass_gate(setup)
    answer = yield "Go."
    await pass_gate(grading)
    if tally:
        with Path(tally).open("a") as file:
            file.write(f"{answer}\n")
    yield 0.5


@env.template(returns=list[int])
async def rich(count: int):
    answer = yield {
        "prompt": [{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}],
        "bindings": {"echo": {"path": "/y"}},
        "hint": count,
    }
    yield Grade(
        reward=0.75,
        subscores=(SubScore(name="a", value=1.0), SubScore(name="b", value=0.5, info={"n": 1})),
        content="So so.",
        info={"got": answer.content},
    )


@env.template()
async def broken(where: str = "setup"):
    if where == "setup":
        raise RuntimeError("secret of the setup")
    answer = yield "Go."
    if where == "grading":
        raise RuntimeError("secret of the grading")
    yield float(answer == where)
