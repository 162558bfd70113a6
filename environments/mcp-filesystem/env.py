"""Tasks of MCP benchmarks over the reference server for files, each over its own copy of a folder.

`mcp:in=mcp-filesystem COMMAND` has another server in its place. The program of a row grades the
files that the agent left, where no agent has been; other rows grade the answer.
"""

import anyio.to_thread
from mcp_answers import declare

from hud_mcp import (
    Environment,
    Grade,
    SandboxLimits,
    SubScore,
    ToolServer,
    ToolServerWorld,
    dataset_file,
)

BROKEN = 97
"""The exit status of a program that Python cannot begin: no agent has a part in that."""
NO_PROGRAM = (126, 127)
RUN = f"""
import sys, traceback
try:
    exec(compile(sys.stdin.read(), "verify.py", "exec"), {{"__name__": "__main__"}})
except (ImportError, SyntaxError):
    traceback.print_exc()
    sys.exit({BROKEN})
"""
"""Isolated, so that no module of the agent's is imported in place of one of Python's."""
SHOWN_CHARS = 2000
VERIFY_S = 240
"""Less than a grade may take: files that keep a program busy are the agent's result."""

env = Environment(
    "mcp-filesystem",
    version="0.1.0",
    world=ToolServer(
        ["@modelcontextprotocol/server-filesystem@2026.8.31", "{folder}"],
        limits=SandboxLimits(disk_bytes=1024**3, command_s=VERIFY_S),
    ),
)
declare(env)


@env.function(use="evaluate", weak="A program may compare files of the agent's with each other.")
async def mcpmark_verify(server: ToolServerWorld, sha256: str) -> Grade:
    """1.0 where the row's program, named by its digest, accepts the files that the agent left."""
    program = await anyio.to_thread.run_sync(dataset_file(sha256).read_bytes)
    done = await server.run(
        ["/usr/bin/python3", "-I", "-X", "utf8", "-c", RUN],
        stdin=program.decode(),
        env={"FILESYSTEM_TEST_DIR": server.folder},
    )
    if done.exit_code == BROKEN or done.exit_code in NO_PROGRAM:
        raise RuntimeError(f"verify.py cannot be run here: {done.output[-SHOWN_CHARS:]}")
    passed = done.exit_code == 0 and done.stopped is None
    said = {"stopped": done.stopped, "output": done.output[-SHOWN_CHARS:]}
    part = SubScore(name="verify.py", value=float(passed), info=said)
    return Grade(reward=part.value, subscores=(part,))
