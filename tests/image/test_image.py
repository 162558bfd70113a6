"""What runs in the image, in a real Docker: servers, browsers, shells and their records."""

import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import httpx
import httpx2
import orjson
import pytest
from docker_runs import Image, docker
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from postgresql import Cluster, find_programs
from waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.image]

MOST_BYTES = 900_000_000
LONG_S = 300.0
SHELL = """
from hud_mcp import Agent, Environment, Shell, ShellWorld

env = Environment("sums", world=Shell())


@env.template(id="sum", description="Add numbers with a program")
async def add(shell: ShellWorld):
    await shell.write("numbers", "19 23")
    yield "Write the sum of the numbers in /workspace/numbers to /workspace/sum."
    async with shell.verifier(copy=["sum"]) as clean:
        yield float((await clean.run("cat sum")).stdout.strip() == "42")


@add.oracle
async def _(agent: Agent):
    program = "print(sum(map(int, open('numbers').read().split())))"
    await agent.tool("run_command", command=f'python3 -c "{program}" > sum')
    return "done"
"""
SHELL_EVAL = ("eval", "/set/sums.jsonl", "--env", "/set/sums.py", "--agent", "oracle")
ROW = """
{"id": "lamp", "env": "letter_count", "template": "count", "args": {"word": "lamp", "letter": "a"}}
"""
WHO = """
import os
lines = open("/proc/self/status").read().splitlines()
print(os.getuid(), *(line.split()[1] for line in lines if line.startswith(("CapEff", "CapAmb"))))
"""


@pytest.fixture
def shell_image(image: Image) -> Image:
    """The image, with a taskset that needs a sandbox in the folder that it sees."""
    (image.folder / "sums.py").write_text(SHELL)
    (image.folder / "sums.jsonl").write_text('{"id": "sum", "env": "sums", "template": "sum"}\n')
    return image


@pytest.fixture
def volume() -> Iterator[str]:
    """A volume of Docker's, gone after the test."""
    name = f"hud-mcp-test-{secrets.token_hex(8)}"
    assert docker("volume", "create", name).returncode == 0
    yield name
    docker("volume", "rm", "--force", name)


@asynccontextmanager
async def over_stdio(image: Image, *options: str) -> AsyncIterator[Client]:
    """A client that starts a container as its server."""
    _docker, *arguments = image.command(options=("-i", *options))
    server = StdioServerParameters(command="docker", args=arguments, env=dict(os.environ))
    with anyio.fail_after(LONG_S):
        async with Client(stdio_client(server)) as client:
            yield client


async def find_price(client: Client) -> None:
    """Do a task of the shop: open a product's page by its link, and tell what a variant costs."""
    started = await client.call_tool("start_task", {"task": "shop-price-lamp"})
    assert not started.is_error, started.content
    session = (started.structured_content or {})["session"]
    seen = await client.call_tool("step", {"session": session, "actions": []})
    assert [block.type for block in seen.content] == ["text", "image"]
    link = re.search(r'link "Heron desk lamp" \[(\w+)', text(seen))
    assert link is not None, text(seen)
    click = {"type": "click", "ref": link[1]}
    seen = await client.call_tool("step", {"session": session, "actions": [click]})
    assert "heron-desk-lamp" in text(seen)
    answer = {"session": session, "answer": "€60.90"}
    graded = await client.call_tool("response", answer)
    assert (graded.structured_content or {})["reward"] == 1.0


def text(result: object) -> str:
    """The text of a tool's result."""
    return "\n".join(getattr(block, "text", "") for block in getattr(result, "content", ()))


def test_it_is_smaller_than_900_mb(image: Image) -> None:
    """All layers together, unpacked."""
    size = docker("image", "inspect", "--format", "{{.Size}}", image.name)
    assert 0 < int(size.stdout) < MOST_BYTES


def test_it_runs_as_a_user_without_rights(image: Image) -> None:
    """Nobody's root, and no capability is in effect."""
    assert image.python(WHO).split() == ["10001", "0000000000000000", "0000000000000000"]


def test_its_health_is_a_command_and_a_label_says_whose_it_is(image: Image) -> None:
    """A server on stdio is well as long as it runs."""
    looked = docker("image", "inspect", image.name, "--format", "{{json .Config}}")
    config = orjson.loads(looked.stdout)
    assert config["Labels"]["io.modelcontextprotocol.server.name"] == "io.github.hud-mcp/hud-mcp"
    _, *command = config["Healthcheck"]["Test"]
    done = image.run(*command[1:], options=("--entrypoint", command[0]))
    assert done.returncode == 0, done.stderr


async def test_a_browser_task_is_graded_over_stdio(image: Image) -> None:
    """As hosts start it: `docker run -i --rm`; without a network, which its sites do not need."""
    async with over_stdio(image) as client:
        await find_price(client)


async def test_a_browser_task_is_graded_over_http(image: Image) -> None:
    """With a token; then the server ends at Docker's signal."""
    token = secrets.token_hex(16)
    headers = {"Authorization": f"Bearer {token}"}
    with served(image, token) as url:
        async with httpx2.AsyncClient(headers=headers, timeout=LONG_S) as web:
            await until(lambda: answers(web, url), within_s=LONG_S)
            with anyio.fail_after(LONG_S):
                async with Client(streamable_http_client(url, http_client=web)) as client:
                    await find_price(client)
        async with httpx.AsyncClient() as stranger:
            assert (await stranger.post(url, json={})).status_code == 401


@contextmanager
def served(image: Image, token: str) -> Iterator[str]:
    """A server over HTTP on a free port; afterwards it has ended as it was told to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    name = f"hud-mcp-test-{secrets.token_hex(8)}"
    options = ("--network", "host", "--env", f"HUD_MCP_TOKEN={token}", "--name", name)
    server = subprocess.Popen(image.command("serve", "--http", place, options=options))
    try:
        yield f"http://{place}/mcp"
        docker("kill", "--signal", "TERM", name)
        assert server.wait(LONG_S) in (0, 128 + signal.SIGTERM)
    finally:
        docker("rm", "--force", name)
        server.wait(LONG_S)


async def answers(web: httpx2.AsyncClient, url: str) -> bool:
    """Whether a server is there."""
    try:
        await web.get(url)
    except httpx2.TransportError:
        return False
    return True


def test_the_oracle_is_graded_on_each_browser_task_and_its_record_stays(
    image: Image, volume: str
) -> None:
    """One container runs the quickstart; others read what it left in the volume."""
    kept = ("--volume", f"{volume}:/var/lib/hud-mcp")
    done = image.run("eval", "quickstart", "--agent", "oracle", options=kept)
    assert done.returncode == 0, done.stdout + done.stderr
    job = read_job(image, *kept)
    assert job["mean"] == 1.0
    assert job["outcomes"]["graded"] == job["wanted"] > 30
    listed = image.python("import os; print(os.listdir('/var/lib/hud-mcp/reports'))", options=kept)
    assert f"{job['id']}.html" in listed


def test_its_doctor_finds_all_but_the_namespaces_of_a_shell(shell_image: Image) -> None:
    """It fails where an environment needs them, and says how the container gets them."""
    found = findings(shell_image)
    for name in ("Playwright's driver", "Chromium", "GL", "fonts", "bubblewrap", "store"):
        assert found[name]["state"] == "ok", found[name]
    assert found["user namespaces"]["state"] == "absent"
    assert "`docker run --security-opt seccomp=" in found["user namespaces"]["said"]
    assert shell_image.run("doctor", "/set/sums.py").returncode == 1


def findings(image: Image) -> dict[str, dict[str, str]]:
    """What `hud-mcp doctor` finds in the image, by name."""
    looked = image.run("doctor", "--json")
    assert looked.returncode == 0, looked.stdout
    return {each["name"]: each for each in orjson.loads(looked.stdout)["findings"]}


def test_dockers_default_refuses_a_shell_and_what_is_told_makes_it_run(shell_image: Image) -> None:
    """The two commands that it names are run as they stand there; a table has room for one."""
    refused = shell_image.run(*SHELL_EVAL)
    assert refused.returncode != 0
    assert "environment_failed" in refused.stdout
    said = findings(shell_image)["user namespaces"]["said"]
    start = re.search(r"`docker run (--security-opt [^`]+)`", said)
    show = re.search(r"`docker (run --rm --entrypoint cat hud-mcp [^`]+)`", said)
    assert start is not None, said
    assert start[0] in refused.stdout
    assert show is not None, said
    profile = docker(*show[1].replace("hud-mcp ", f"{shell_image.name} ", 1).split())
    (shell_image.folder / "seccomp.json").write_text(profile.stdout)
    options = start[1].replace("=seccomp.json", f"={shell_image.folder}/seccomp.json")
    done = shell_image.run(*SHELL_EVAL, options=tuple(shlex.split(options)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mean reward  1.000" in done.stdout


def test_its_record_may_be_in_postgresql(image: Image) -> None:
    """The driver is in the image: `HUD_MCP_STORE` is all that it takes."""
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL is installed: make test installs it")
    (image.folder / "row.jsonl").write_text(ROW)
    cluster = Cluster(programs)
    try:
        cluster.folder.chmod(0o755)  # for the image's user; the data's own folder stays closed
        cluster.start()
        place = ("--volume", f"{cluster.folder}:{cluster.folder}")
        options = (*place, "--env", f"HUD_MCP_STORE={cluster.new_schema()}")
        done = image.run("eval", "/set/row.jsonl", "--agent", "oracle", options=options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert read_job(image, *options)["mean"] == 1.0
    finally:
        cluster.remove()


def read_job(image: Image, *options: str) -> dict[str, Any]:
    """The one job of a record, as another container reads it."""
    read = image.run("jobs", "--json", options=options)
    assert read.returncode == 0, read.stderr
    (line,) = read.stdout.splitlines()
    job: dict[str, Any] = orjson.loads(line)
    return job
