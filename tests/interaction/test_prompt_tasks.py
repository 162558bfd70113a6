"""A task with a prompt and its own calls lives as one of a template does, for every client."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from peers import (
    BOARD,
    ENVIRONMENTS,
    WAYS,
    HttpServer,
    Peer,
    Way,
    child_environment,
    http_peer,
    http_server,
    load,
    load_all,
    stdio_peer,
)
from phoenix import Phoenix, phoenix
from runs import finish, query

from hud_mcp.channel.client import ChannelClient
from hud_mcp.channel.failures import ChannelRefused

pytestmark = pytest.mark.anyio

ASKED = str(ENVIRONMENTS / "asked.py")
SECRET = "WHAT-ANSWERS-ARE-HELD-TO"
BOUND_S = 120
ROWS: list[dict[str, Any]] = [
    {
        "id": "list",
        "prompt": "Write milk below the notes, and say which fruit is there.\nBe exact.",
        "gym": "asked",
        "setup": [["board.mark", "right"], ["pin", "tea", "plum"]],
        "evaluate": [
            {"function": "pinned", "args": ["tea", "plum", "milk"]},
            ["response_includes", "plum"],
            ["acted", 3],
        ],
        "metadata": {"key": SECRET},
        "target": SECRET,
    },
    {
        "id": "any",
        "prompt": "Say it.",
        "gym": "asked",
        "evaluate": [["response_includes", SECRET], ["pinned", "nothing", SECRET]],
        "config": {"combine": "mean"},
    },
    {
        "id": "flat",
        "prompt": "Say plum.",
        "evaluate": ["response_includes", "plum"],
        "gym": "asked",
    },
    {"id": "no-number", "prompt": "Say it.", "gym": "asked", "evaluate": "words"},
    {"id": "broken", "prompt": "Say it.", "gym": "asked", "evaluate": ["broken", SECRET]},
    {"id": "not-set-up", "prompt": "Say it.", "gym": "asked", "setup": "fail", "evaluate": "words"},
    {"id": "templated", "env": "board", "template": "total"},
]
LIST = ROWS[0]


def write(path: Path, rows: list[dict[str, Any]] | None = None) -> str:
    """Rows in a file."""
    path.write_bytes(b"\n".join(orjson.dumps(row) for row in (ROWS if rows is None else rows)))
    return str(path)


@pytest.fixture(scope="module")
def taskset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rows, in a file."""
    return write(tmp_path_factory.mktemp("rows") / "rows.jsonl")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, taskset: str) -> Iterator[HttpServer]:
    """A server of them over HTTP."""
    folder = tmp_path_factory.mktemp("web")
    with http_server(folder, (ASKED, BOARD), "--taskset", taskset) as running:
        yield running


@pytest.fixture(params=WAYS, ids=str)
async def client(
    request: pytest.FixtureRequest, web: HttpServer, taskset: str, tmp_path: Path
) -> AsyncIterator[Peer]:
    """A client of such a server, in each transport and era."""
    way: Way = request.param
    if way.transport == "http":
        async with http_peer(web, era=way.era) as peer:
            yield peer
    else:
        options = ("--taskset", taskset)
        async with stdio_peer(tmp_path, (ASKED, BOARD), *options, era=way.era) as peer:
            yield peer


async def work(peer: Peer, session: str) -> None:
    """Do what the first row asks for."""
    await peer.ok("act", session=session, type="type", text="mi")
    await peer.ok("step", session=session, actions=[
        {"type": "type", "text": "lk", "enter_after": True}
    ])  # fmt: skip


@pytest.mark.long
async def test_a_client_gets_such_a_task_as_any_other(client: Peer) -> None:
    """Listed, offered as a prompt, started, acted on, answered, graded and recorded."""
    listed = await client.ok("list_tasks")
    (row,) = [t for t in listed.structured["tasks"] if t["id"] == "list"]
    assert row == {
        "id": "list",
        "environment": "asked",
        "template": "prompt",
        "description": "Write milk below the notes, and say which fruit is there.",
    }
    prompts = [p.name for p in (await client.client.list_prompts()).prompts]
    assert "task" in prompts
    asked = await client.client.get_prompt("task", {"id": "list"})
    assert asked.messages[0].content.text == LIST["prompt"]  # type: ignore[union-attr]

    started = await client.ok("start_task", task="list")
    session = started.structured["session"]
    assert started.structured["prompt"] == LIST["prompt"]
    seen = await client.ok("step", session=session)
    assert "tea" in seen.text
    assert "right" in seen.text
    other = await client.ok("start_task", task="list")
    await work(client, other.structured["session"])
    graded = await client.ok(
        "response", session=other.structured["session"], answer="It is a PLUM."
    )
    assert graded.structured["reward"] == 1.0
    parts = [s["name"] for s in graded.structured["subscores"]]
    assert parts == ["part 1", "part 2", "part 3"], "functions are what answers are held to"
    wrong = await client.ok("response", session=session, answer="plum")
    assert wrong.structured["reward"] == 0.0

    record = await load(client.store, other.meta["hud-mcp/start"]["trajectory"])
    assert (record.outcome, record.reward, record.environment) == ("graded", 1.0, "asked")
    assert [str(call) for call in record.task.setup] == [
        "board.mark('right')",
        "pin('tea', 'plum')",
    ]
    assert record.receipt is not None
    assert record.receipt.task_digest == record.task.digest
    functions = [s.info["function"] for s in record.receipt.subscores if s.info]
    assert functions == ["pinned", "response_includes", "acted"]


@pytest.mark.sampled(1)
async def test_nothing_of_what_answers_are_held_to_reaches_the_client(client: Peer) -> None:
    """In no list, prompt, reply, error or resource, whatever becomes of the task."""
    said: list[str] = []

    async def call(tool: str, **arguments: Any) -> Any:
        reply = await client.call(tool, **arguments)
        said.append(reply.raw.model_dump_json())
        return reply

    await call("list_tasks")
    for row in ROWS:
        started = await call("start_task", task=row["id"])
        if started.is_error:
            assert row["id"] == "not-set-up"
            continue
        session = started.structured["session"]
        await call("step", session=session)
        await call("response", session=session, answer="plum")
        await call("task_status", session=session)
    resources = (await client.client.list_resources()).resources
    said += [(await client.client.read_resource(r.uri)).model_dump_json() for r in resources]
    assert len(said) > 20
    assert not [text for text in said if SECRET in text or "pinned'" in text]


@pytest.mark.parametrize(
    ("task", "outcome", "why"),
    [
        ("no-number", "grading_failed", "`evaluate` returned '', which is no number"),
        ("broken", "grading_failed", f"broken: ValueError: cannot compare with {SECRET}"),
        ("not-set-up", "environment_failed", "the setup's own bug"),
    ],
)
async def test_what_cannot_be_graded_has_no_reward(
    web: HttpServer, task: str, outcome: str, why: str
) -> None:
    """The record says why; it is never a reward of 0."""
    async with http_peer(web) as peer:
        started = await peer.call("start_task", task=task)
        if not started.is_error:
            session = started.structured["session"]
            assert "reward" not in (await peer.call("response", session=session, answer="")).text
    (record,) = [r for r in await load_all(web.store) if r.task.id == task and r.outcome][-1:]
    assert (record.outcome, record.reward) == (outcome, None)
    assert why in (record.error or "")


async def test_a_mean_is_a_reward_with_its_parts(web: HttpServer) -> None:
    """`config` of the row says how several become one."""
    async with http_peer(web) as peer:
        session = (await peer.ok("start_task", task="any")).structured["session"]
        receipt = await peer.ok("response", session=session, answer=f"it is {SECRET}")
    assert receipt.structured["reward"] == 0.5


# ------------------------------------------------------------------------------- the channel


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory, taskset: str) -> Iterator[str]:
    """The control channel of a server of the rows, as an address."""
    folder = tmp_path_factory.mktemp("channel")
    rows = [row for row in ROWS if row.get("gym") == "asked"]
    write(folder / "asked.jsonl", rows)
    command = [
        sys.executable, "-m", "hud_mcp", "serve", ASKED, "--http", "127.0.0.1:0",
        "--channel", "127.0.0.1:0", "--taskset", str(folder / "asked.jsonl"),
        "--store", str(folder / "store.sqlite3"),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=child_environment(), text=True,
    )  # fmt: skip
    assert process.stdout is not None
    port = ""
    while not port.startswith("HUD_SERVE_PORT="):
        port = process.stdout.readline()
        assert port
    yield f"tcp://127.0.0.1:{port.partition('=')[2].strip()}"
    process.kill()
    process.wait()
    process.stdout.close()


async def test_the_channel_lists_starts_and_grades_a_row_by_its_id(channel: str) -> None:
    """It takes no arguments; an unknown id gets the closest row."""
    with anyio.fail_after(BOUND_S):
        async with ChannelClient.connect(channel) as client:
            listed = {task["id"]: task for task in await client.list_tasks()}
            assert set(listed) == {row["id"] for row in ROWS if row.get("gym") == "asked"}
            assert listed["list"]["args"]["properties"] == {}
            assert SECRET not in str(listed)
            assert (await client.start("flat"))["prompt"] == "Say plum."
            assert (await client.grade("a plum"))["score"] == 1.0
            with pytest.raises(ChannelRefused, match="Did you mean 'flat'"):
                await client.start("flta")
            with pytest.raises(ChannelRefused, match="row with its own arguments; pass none"):
                await client.start("flat", {"word": "x"})


HUD_CLIENT = """
import asyncio, sys
from hud.clients import connect
from hud.eval import Runtime
async def main():
    async with connect(Runtime(sys.argv[1])) as client:
        listed = await client.list_tasks()
        started = await client.start_task("flat", {})
        graded = await client.grade({"answer": "plum"})
        print("flat" in str(listed), started["prompt"], graded["score"])
asyncio.run(main())
"""


async def test_hud_s_own_client_starts_and_grades_a_row(
    channel: str, hud_python: Path, tmp_path: Path
) -> None:
    """By its id, as it does a template."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUD_", "PYTHON"))}
    environment = {**kept, "HUD_TELEMETRY_ENABLED": "false", "HOME": str(tmp_path), "CI": "1"}
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [str(hud_python), "-c", HUD_CLIENT, channel], check=False, env=environment
        )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.decode().split("\n")[0] == "True Say plum. 1.0"


# ------------------------------------------------------------------------------- restarts


@pytest.fixture(scope="module")
async def bird(tmp_path_factory: pytest.TempPathFactory, taskset: str) -> AsyncIterator[Phoenix]:
    """A server that is killed and started again."""
    folder = tmp_path_factory.mktemp("phoenix")
    async with phoenix(folder, (ASKED, BOARD), "--taskset", taskset) as found:
        yield found


@pytest.mark.long
async def test_a_killed_server_takes_no_such_task_with_it(bird: Phoenix) -> None:
    """After each call: the setup is made again, what was done is done, and the grade is right."""
    with anyio.fail_after(BOUND_S):
        started = await bird.call("start_task", task="list")
        session = started["structuredContent"]["session"]
        await bird.kill_and_start()
        await bird.call("act", session=session, type="type", text="milk")
        await bird.kill_and_start()
        await bird.call("act", session=session, type="press", keys=["enter"])
        await bird.kill_and_start()
        seen = await bird.call("step", session=session)
        assert "milk" in seen["content"][0]["text"]
        graded = await bird.call("response", session=session, answer="plum")
        assert graded["structuredContent"]["reward"] == 1.0
        await bird.kill_and_start()
        again = await bird.call("response", session=session, answer="plum")
    assert again["structuredContent"] == graded["structuredContent"]


OPERATOR = """
import asyncio, sys
from hud_mcp import Look, Store, Task, TypeAction
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.loading.rows import read_row
from hud_mcp.session.registry import Sessions
from hud_mcp.loading.source import load_environments
import orjson
rows, store, session_id, *todo = sys.argv[1:]
task = read_row(orjson.loads(open(rows).readline()), rows)
async def main():
    sessions = Sessions(load_environments([ENV]), store=Store(store))
    caller = Caller(principal=OPERATOR)
    if todo.pop(0) == "begin":
        session = await sessions.start(task, caller=caller, session_id=session_id)
    else:
        session = await sessions.find(session_id, caller)
    for what in todo:
        if what == "die":
            sys.stdout.flush()
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "evaluate":
            measured = await session.evaluate()
            print(measured.value)
        elif what == "override":
            print((await session.evaluate(session.environment.bind(
                task.model_copy(update={"evaluate": task.evaluate[:1]})).evaluate)).value)
        elif what == "reset":
            await session.set_up(None, Look())
        elif what == "close":
            receipt = await session.conclude()
            print(receipt.outcome.value, receipt.reward)
        elif what.startswith("say:"):
            from hud_mcp import ResponseAction
            await session.step([ResponseAction(text=what[4:])], Look())
        else:
            await session.step([TypeAction(text=what, enter_after=True)], Look())
    await sessions.close()
asyncio.run(main())
"""


async def operate(folder: Path, session: str, *todo: str) -> list[str]:
    """Do some things as an operator, in a process of its own; return what it printed."""
    program = OPERATOR.replace("ENV", repr(ASKED))
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [sys.executable, "-c", program, str(folder / "rows.jsonl"),
             str(folder / "store.sqlite3"), session, *todo],
            check=False, env=child_environment(),
        )  # fmt: skip
    wanted = -signal.SIGKILL if todo[-1] == "die" else 0
    assert done.returncode == wanted, done.stderr.decode()
    return done.stdout.decode().splitlines()


@pytest.mark.long
async def test_an_operator_s_measurements_and_resets_outlive_its_process(tmp_path: Path) -> None:
    """The answer, what was done, and the last measurement are there again; then it is closed."""
    write(tmp_path / "rows.jsonl")
    session = f"sess-{'a' * 32}"
    row = {**LIST, "evaluate": [["pinned", "tea", "plum", "milk"], ["response_includes", "plum"]]}
    write(tmp_path / "rows.jsonl", [row])
    first = await operate(tmp_path, session, "begin", "milk", "evaluate", "say:a plum", "die")
    assert first == ["[1.0, 0.0]"]
    second = await operate(tmp_path, session, "go", "evaluate", "override", "die")
    assert second == ["[1.0, 1.0]", "1.0"]
    assert await operate(tmp_path, session, "go", "close") == ["graded 1.0"]
    (record,) = await load_all(tmp_path / "store.sqlite3")
    assert [s.kind for s in record.steps] == ["step", "evaluate", "step", "evaluate", "evaluate"]
    assert record.reward == 1.0


async def test_a_reset_forgets_what_was_measured_also_after_a_kill(tmp_path: Path) -> None:
    """Closed without a new measurement, it is cancelled, by its operator."""
    write(tmp_path / "rows.jsonl")
    session = f"sess-{'b' * 32}"
    await operate(tmp_path, session, "begin", "milk", "say:plum", "evaluate", "reset", "die")
    assert await operate(tmp_path, session, "go", "close") == ["cancelled None"]
    (record,) = await load_all(tmp_path / "store.sqlite3")
    assert [s.kind for s in record.steps] == ["step", "step", "evaluate", "reset"]


OPERATED = """
import anyio, sys
from hud_mcp import ResponseAction, Taskset, TypeAction, run_job
class Agent:
    done = 0
    async def predict(self, observation):
        self.done += 1
        if self.done == 1:
            return [TypeAction(text="milk", enter_after=True)], False
        return [ResponseAction(text="a plum")], True
async def main():
    tasks = Taskset.from_file("rows.jsonl")
    from hud_mcp.loading.source import load_environments
    [env] = load_environments([ENV])
    job = await run_job(Agent, tasks, "operated", store="store.sqlite3")
    print(job.id, job.errors)
anyio.run(main)
"""


async def test_a_job_that_its_operator_graded_is_graded_again(tmp_path: Path) -> None:
    """In the world as it was at the last measurement, with the answer that was kept."""
    key = tmp_path / "key"
    key.write_text("a plum")
    (tmp_path / "env.py").write_text((ENVIRONMENTS / "asked.py").read_text())
    (tmp_path / "board_world.py").write_text((ENVIRONMENTS / "board_world.py").read_text())
    rows = [
        {**LIST, "id": "world", "evaluate": [["pinned", "tea", "plum", "milk"], ["acted", 2]]},
        {"id": "file", "prompt": "Say it.", "gym": "asked", "evaluate": ["in_file", str(key)]},
    ]
    write(tmp_path / "rows.jsonl", rows)
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [sys.executable, "-c", OPERATED.replace("ENV", "'env.py'")], check=False, cwd=tmp_path,
            env=child_environment(),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    job, errors = done.stdout.decode().strip().split(" ", 1)
    assert errors == "[]"
    key.write_text("a pear")
    status, told = await command(tmp_path, "regrade", job, "--env", "env.py")
    assert status == 0, told
    words = [line.split() for line in told.splitlines()]
    assert ["world", "1", "1"] in words
    assert ["file", "1", "0", "-1"] in words


# ------------------------------------------------------------------------------- evaluations

ANSWERS = ENVIRONMENTS.parent / "agents" / "answer.py"


def answering(text: str) -> tuple[str, str]:
    """The options for an agent that gives this answer to everything."""
    return "--agent-command", shlex.join([sys.executable, str(ANSWERS), text])


async def command(folder: Path, *words: str) -> tuple[int, str]:
    """Run a command on the store of a folder."""
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [sys.executable, "-m", "hud_mcp", *words, "--store", str(folder / "store.sqlite3")],
            check=False, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
            env=child_environment(COLUMNS="200"),
        )  # fmt: skip
    return done.returncode, done.stdout.decode()


@pytest.mark.long
async def test_a_job_of_such_tasks_is_run_shown_exported_and_graded_again(tmp_path: Path) -> None:
    """`eval`, `jobs`, `trace`, `view`'s pages, `export` and `regrade`."""
    key = tmp_path / "key"
    key.write_text("plum")
    rows = [
        {"id": "by-file", "prompt": "Say plum.", "evaluate": ["in_file", str(key)], "gym": "asked"},
        {**LIST, "id": "by-world", "evaluate": ["pinned", "tea", "plum"]},
    ]
    status, printed = await finish(tmp_path, rows, *answering("plum"), "--env", ASKED)
    assert status == 0, printed
    store = tmp_path / "store.sqlite3"
    records = {r.task.id: r for r in await load_all(store)}
    assert {i: r.reward for i, r in records.items()} == {"by-file": 1.0, "by-world": 1.0}
    ((job,),) = query(store, "SELECT id FROM jobs")

    status, told = await command(tmp_path, "trace", records["by-world"].id)
    assert status == 0, told
    assert "Write milk below the notes" in told
    assert "setup        board.mark('right'), pin('tea', 'plum')" in told
    assert "evaluate     pinned('tea', 'plum')" in told
    for form in ("jsonl", "html", "atif"):
        status, told = await command(tmp_path, "export", job, "--to", form, "--out", f"out-{form}")
        assert status == 0, told
    exported = [orjson.loads(line) for line in (tmp_path / "out-jsonl").read_bytes().splitlines()]
    assert sorted(row["task"]["id"] for row in exported if "task" in row) == sorted(records)

    key.write_text("pear")
    status, told = await command(tmp_path, "regrade", job)
    assert status == 0, told
    words = [line.split() for line in told.splitlines()]
    assert ["by-file", "1", "0", "-1"] in words
    assert "Graded again: 2 of 2 runs; 1 changed." in told


async def test_the_oracle_says_that_it_has_no_solution(tmp_path: Path) -> None:
    """In one sentence, before anything runs."""
    status, printed = await finish(tmp_path, ROWS[:3], "--agent", "oracle", "--env", ASKED)
    assert status == 1
    assert printed == (
        "Error: Tasks with a prompt have no oracle: list and 2 more. Play them with --agent nop or "
        "--agent-command, or leave them out with --filter.\n"
    )
    assert not (tmp_path / "store.sqlite3").exists()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"evaluate": ["pined", "x"]},
     "evaluate: environment 'asked' has no function 'pined'. Did you mean 'pinned'?"),
    ({"evaluate": [["pin", "x"]]}, "evaluate: 'pin' is a function for 'setup' and not"),
    ({"evaluate": ["acted", "x"]}, "evaluate: acted(count): argument 'count' should be a valid"),
    ({"evaluate": "acted"}, "evaluate: acted(count) takes 1 argument, got 0."),
    ({"evaluate": None}, "evaluate: it names nothing to call"),
    ({"setup": ["fail", "fail"]}, "setup: ['fail', 'fail'] may be"),
    ({"setup": 5}, "setup: 5 is no call"),
    ({"template": "total"}, "a task has a 'prompt' or a 'template', and this row has 'prompt'"),
    ({"gym": "askde"}, "'askde'"),
    ({"gym": "OSWorld-Ubuntu"}, "'OSWorld-Ubuntu' was a desktop with Ubuntu for the tasks of OSW"),
    ({"gym": {"image_or_build_context": "i", "location": "remote"}}, "write location='local'"),
    ({"id": "flat"}, "the id 'flat' is taken by line 1"),
    ({"context": {"gravity": 5}}, "gravity"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("change", "said"), BAD[:5] + BAD[6:], ids=str)
@pytest.mark.parametrize("what", ["eval", "serve"])
async def test_a_bad_row_stops_everything_with_its_file_line_and_field(
    tmp_path: Path, change: dict[str, Any], said: str, what: str
) -> None:
    """One sentence, status 1; nothing has run, and nothing is recorded."""
    good = next(row for row in ROWS if row["id"] == "flat")
    rows = write(tmp_path / "rows.jsonl", [good, {**good, "id": "bad", **change}])
    if what == "eval":
        words = ("eval", "rows.jsonl", "--agent", "nop", "--env", ASKED)
    else:
        words = ("serve", ASKED, "--taskset", rows, "--http", "127.0.0.1:0")
    status, printed = await command(tmp_path, *words)
    assert status == 1, printed
    assert len(printed.splitlines()) == 1, printed
    assert "rows.jsonl:2: " in printed
    assert said in printed
    assert not (tmp_path / "store.sqlite3").exists()


@pytest.mark.long
async def test_files_of_every_kind_can_be_served_run_and_listed(tmp_path: Path) -> None:
    """`serve --taskset`, `eval` and `tasks` take .json and .py as well, and both at once.

    Of several sets, `--split` serves the rows of one split of each.
    """
    kept, other = ({"metadata": {"split": name}} for name in ("test", "train"))
    row = next(row for row in ROWS if row["id"] == "flat")
    rows = [{**row, **kept}, {**row, **other, "id": "other"}]
    (tmp_path / "a.json").write_bytes(orjson.dumps({"tasks": rows}))
    (tmp_path / "b.py").write_text(
        "from hud_mcp import Task\n"
        "t = Task(id='py', prompt='Say pear.', gym='asked', evaluate=('response_includes', 'pear'),"
        f" metadata={kept['metadata']})"
    )
    status, printed = await command(tmp_path, "eval", "b.py", "--env", ASKED, *answering("pear"))
    assert status == 0, printed
    done = await anyio.run_process(
        [sys.executable, "-m", "hud_mcp", "tasks", "a.json"], cwd=tmp_path,
        env=child_environment(COLUMNS="200"),
    )  # fmt: skip
    assert "Say plum." in done.stdout.decode()
    names = ("a.json", "b.py")
    options = [word for name in names for word in ("--taskset", str(tmp_path / name))]
    options += ["--split", "test"]
    async with stdio_peer(tmp_path / "server", (ASKED,), *options) as peer:
        listed = await peer.ok("list_tasks")
        assert [t["id"] for t in listed.structured["tasks"]] == ["flat", "py"]
