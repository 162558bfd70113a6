"""Servers that the client's tests share."""

from collections.abc import Iterator

import pytest
from peers import HttpServer, http_server
from ways import BENCH

TILL = """
from hud_mcp import Environment

env = Environment("till")
sales = []


@env.tool
async def sell(what: str) -> str:
    "Sell something."
    sales.append(what)
    return await sold()


@env.tool
async def sold() -> str:
    "What was sold."
    return " ".join(["sold:", *sales])


@env.template()
async def day():
    answer = yield "Sell a lamp."
    yield float(answer == "done")
"""


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server of the bench and a till, which tells the reward of each step."""
    folder = tmp_path_factory.mktemp("bench")
    till = folder / "till.py"
    till.write_text(TILL)
    with http_server(folder, [str(BENCH), str(till)], "--reward", "per_step") as server:
        yield server
