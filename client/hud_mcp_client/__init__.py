"""Work on tasks of a hud-mcp server: start, step, answer, resume.

    async with connect("http://127.0.0.1:8000/mcp", token=TOKEN) as server:
        async with await server.start("count-r-strawberry") as task:
            print(task.prompt)
            print(await task.answer("3"))

`hud_mcp_client.sync` has the same names for programs without an event loop. `server` and `session`
have the objects of a program. `wire` makes the calls over HTTP for both.
"""

from hud_mcp_client.errors import (
    ActionFailed,
    AlreadyAnswered,
    CallRefused,
    ClientError,
    ConnectionFailed,
    EnvironmentFailed,
    GradingFailed,
    InvalidAction,
    InvalidTask,
    LimitReached,
    OutOfStep,
    SessionBusy,
    SessionEnded,
    SessionNotFound,
    Unauthorized,
)
from hud_mcp_client.server import Server, connect
from hud_mcp_client.session import Session
from hud_mcp_client.values import Observation, Receipt, Screenshot, Step, ToolReply

__version__ = "0.1.0"

__all__ = [
    "ActionFailed",
    "AlreadyAnswered",
    "CallRefused",
    "ClientError",
    "ConnectionFailed",
    "EnvironmentFailed",
    "GradingFailed",
    "InvalidAction",
    "InvalidTask",
    "LimitReached",
    "Observation",
    "OutOfStep",
    "Receipt",
    "Screenshot",
    "Server",
    "Session",
    "SessionBusy",
    "SessionEnded",
    "SessionNotFound",
    "Step",
    "ToolReply",
    "Unauthorized",
    "connect",
]
