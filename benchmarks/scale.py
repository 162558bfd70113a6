"""Trivial tasks a second, in each way that there is, beside HUD's own `Taskset.run`, in one run.

Each way runs in a process of its own, one after the other, in two rounds; a figure is the better
round, and the ratios hold where the figures do not. HUD's keeps nothing. CPU is of the job's
process and its servers, without PostgreSQL's own. PostgreSQL syncs each commit. Then come the
constants that docs/scale.md and benchmarks/scale_simulated.py use.

    python benchmarks/scale.py [--hud-python PATH] [--tasks 400] [--rounds 2] [--json]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import psutil
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from scale_database import Database, database

from hud_mcp import evaluate
from hud_mcp.agents.agent import Agent

AT_ONCE = 8
SESSIONS = 8
"""Sessions that are open at once where memory is measured."""

ENV = """
from hud_mcp import Browser, BrowserWorld, Environment, Gymnasium, NoWorld, Shell

none = Environment("none", world=NoWorld())
shell = Environment("shell", world=Shell())
gymnasium = Environment("gymnasium", world=Gymnasium("CartPole-v1", screen=False))
browser = Environment("browser", world=Browser(site="site/"))


@none.template()
async def count(word: str = "lamp"):
    answer = yield f"How many letters has {word!r}?"
    yield 1.0 if answer == str(len(word)) else 0.0


@count.oracle
async def _(agent):
    return str(len(agent.prompt.split("'")[1]))


@browser.template()
async def look(page: BrowserWorld):
    await page.goto("/")
    yield "Look."
    yield 1.0


for each in (shell, gymnasium):

    @each.template()
    async def wait():
        yield "Wait."
        yield 1.0
"""
PAGE = "<!doctype html><title>Page</title>" + "<p>Some words of a page, and more of them.</p>" * 40
STEPS = 20
"""Steps of a browser whose processor time is measured."""
WORLDS = {"none": "count", "gymnasium": "wait", "shell": "wait", "browser": "look"}


async def counts(agent: Agent) -> str:
    """Counts right."""
    return str(len(agent.prompt.split("'")[1]))


def write_files(folder: Path, tasks: int) -> None:
    """Write the environments, and the rows."""
    (folder / "env.py").write_text(ENV)
    (folder / "site").mkdir()
    (folder / "site" / "index.html").write_text(PAGE)
    rows = [
        {"id": f"w{i}", "env": "none", "template": "count", "args": {"word": "a" * (i % 9 + 1)}}
        for i in range(tasks)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def used() -> float:
    """Processor seconds of this process and of those that have ended under it."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in each)


def run_one(options: dict[str, Any], folder: Path, store: str) -> dict[str, Any]:
    """One job by `evaluate`, in this process."""

    async def run() -> dict[str, Any]:
        began, before = time.perf_counter(), used()
        job = await evaluate(
            str(folder / "rows.jsonl"),
            counts,
            env=str(folder / "env.py"),
            store=store,
            max_concurrent=AT_ONCE,
            **options,
        )
        seconds = time.perf_counter() - began
        right = sum(run.reward == 1.0 for run in job.runs)
        return {"seconds": seconds, "cpu": used() - before, "right": right}

    return anyio.run(run)


def command_line(folder: Path, store: str, options: Iterable[str]) -> dict[str, Any]:
    """One job by `hud-mcp eval`, from its start as a program to its end."""
    began, before = time.perf_counter(), used()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "hud_mcp", "eval", str(folder / "rows.jsonl")),
            *("--agent", "oracle", "--env", str(folder / "env.py"), "--store", store),
            *("--max-concurrent", str(AT_ONCE), *options),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, rows = time.perf_counter() - began, (folder / "rows.jsonl").read_text().count("\n")
    right = rows if f"over {rows} graded" in done.stdout and "1.000" in done.stdout else 0
    return {"seconds": seconds, "cpu": used() - before, "right": right}


def in_child(command: list[str]) -> dict[str, Any]:
    """What a program says it has made."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("MADE "))
    return json.loads(line.removeprefix("MADE "))


def measure(arguments: argparse.Namespace, made: Database | None) -> dict[str, dict[str, Any]]:
    """The better of the rounds of each way."""
    ways: dict[str, dict[str, Any]] = {
        "evaluate, in process, batched": {"in_process": True, "record": "batched"},
        "evaluate, in process, durable": {"in_process": True},
        "evaluate, 1 server, durable": {},
        "evaluate, 1 worker, SQLite": {"workers": 1},
        "evaluate, 2 workers, SQLite": {"workers": 2},
    }
    if made is not None:
        ways["evaluate, 1 worker, PostgreSQL"] = {"workers": 1}
        ways["evaluate, 2 workers, PostgreSQL"] = {"workers": 2}
    best: dict[str, dict[str, Any]] = {}

    def keep(way: str, figures: dict[str, Any]) -> None:
        if figures["right"] != arguments.tasks:
            raise RuntimeError(f"{way}: {figures['right']} of {arguments.tasks} are right")
        figures["a_second"] = arguments.tasks / figures["seconds"]
        figures["cpu_ms"] = 1000 * figures["cpu"] / arguments.tasks
        print(f"{way}: {figures['a_second']:.0f} tasks/s", file=sys.stderr)
        if way not in best or best[way]["seconds"] > figures["seconds"]:
            best[way] = figures

    for number in range(arguments.rounds):
        if arguments.hud_python is not None:
            peer = str(Path(__file__).with_name("scale_peer.py"))
            command = [arguments.hud_python, peer, str(arguments.tasks), str(AT_ONCE)]
            keep("HUD's Taskset.run, keeps nothing", in_child(command))
        for way, options in ways.items():
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                write_files(folder, arguments.tasks)
                postgresql = made is not None and "PostgreSQL" in way
                store = made.new_url() if postgresql and made else str(folder / "runs.sqlite3")
                before = made.transactions() if postgresql and made else 0
                one = ["--one", json.dumps(options), str(folder), store]
                figures = in_child([sys.executable, __file__, *one])
                if postgresql and made:
                    figures["transactions"] = (made.transactions() - before) / arguments.tasks
                keep(way, figures)
        if number == 0:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                write_files(folder, arguments.tasks)
                store = str(folder / "runs.sqlite3")
                keep("hud-mcp eval, whole program", command_line(folder, store, ()))
                options = ("--in-process", "--record", "batched", "--name", "second")
                keep(
                    "hud-mcp eval --in-process --record batched",
                    command_line(folder, store, options),
                )
    return best


def memory_mb(pid: int) -> float:
    """Megabytes of a process and all under it, shared pages shared out."""
    process = psutil.Process(pid)
    total = 0
    for each in [process, *process.children(recursive=True)]:
        try:
            total += each.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total / 1e6


def cpu_s(pid: int) -> float:
    """Processor seconds of a process and all under it that live."""
    process = psutil.Process(pid)
    each = [one.cpu_times() for one in [process, *process.children(recursive=True)]]
    return sum(one.user + one.system for one in each)


async def memory_of(world: str, folder: Path) -> dict[str, float]:
    """Megabytes of a server without a session, of the first, and of each further one."""
    source = f"{folder / 'env.py'}:{world}"
    store = str(folder / f"{world}.sqlite3")
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "hud_mcp", "serve", source, "--store", store, "--limit", "sessions=100"],
        env=dict(os.environ),
    )
    with (folder / "log").open("w") as log:
        async with Client(stdio_client(parameters, errlog=log)) as client:
            (server,) = [one for one in psutil.Process().children() if "serve" in one.cmdline()]
            empty = memory_mb(server.pid)
            after: list[float] = []
            session = ""
            for _ in range(SESSIONS):
                done = await client.call_tool("start_task", {"task": WORLDS[world]})
                if done.is_error:
                    raise RuntimeError(str(done.content))
                session = (done.structured_content or {})["session"]
                after.append(memory_mb(server.pid))
            further = (after[-1] - after[0]) / (SESSIONS - 1)
            found = {"server": empty, "first": after[0] - empty, "session": further}
            if world != "browser":
                return found
            before = cpu_s(server.pid)
            action = {"type": "move", "point": {"x": 9, "y": 9}}
            for _ in range(STEPS):
                done = await client.call_tool("step", {"session": session, "actions": [action]})
                if done.is_error:
                    raise RuntimeError(str(done.content))
            found["step_ms"] = 1000 * (cpu_s(server.pid) - before) / STEPS
            images = [len(part.data) * 3 / 4 for part in done.content if part.type == "image"]
            found["picture_kb"] = sum(images) / 1000
            return found


def constants(made: Database | None) -> dict[str, Any]:
    """What docs/scale.md reckons with."""
    found: dict[str, Any] = {"memory_mb": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, 1)
        for world in WORLDS:
            found["memory_mb"][world] = anyio.run(memory_of, world, folder)
    if made is not None:
        found["commits_a_second"] = {n: made.commits_per_s(n, 2.0) for n in (1, 4, 16)}
    return found


def show(figures: dict[str, Any]) -> None:
    """Print tables."""
    load = ", ".join(f"{each:.1f}" for each in figures["load"])
    print(f"{figures['cores']} cores; load before and after: {load}\n")
    for way, one in figures["ways"].items():
        more = f"  {one['transactions']:.1f} transactions" if "transactions" in one else ""
        print(f"{way:45} {one['a_second']:7.0f} tasks/s  {one['cpu_ms']:6.2f} ms CPU{more}")
    found = figures["ways"]
    peer = found.get("HUD's Taskset.run, keeps nothing")
    if peer is not None:
        ours = found["evaluate, in process, batched"]
        print(f"\nin process, batched / HUD's: {ours['a_second'] / peer['a_second']:.2f}")
    for kind in ("SQLite", "PostgreSQL"):
        one, two = (found.get(f"evaluate, {n}, {kind}") for n in ("1 worker", "2 workers"))
        if one and two:
            rate, cpu = two["a_second"] / one["a_second"], two["cpu_ms"] / one["cpu_ms"]
            print(f"2 workers / 1, {kind}: {rate:.2f} of the rate, {cpu:.2f} of the CPU a task")
    print()
    for world, one in figures["constants"]["memory_mb"].items():
        if "step_ms" in one:
            print(f"{world}: {one['step_ms']:.0f} ms CPU and {one['picture_kb']:.0f} kB a step")
        parts = (one["server"], one["first"], one["session"])
        print(
            "{:10} server {:6.1f} MB, first session {:6.1f} MB, each more {:6.1f} MB".format(
                world, *parts
            )
        )
    for writers, rate in figures["constants"].get("commits_a_second", {}).items():
        print(f"PostgreSQL, {writers:2} writers: {rate:.0f} commits/s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hud-python")
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs=3, metavar=("OPTIONS", "FOLDER", "STORE"))
    arguments = parser.parse_args()
    if arguments.one is not None:
        options, folder, store = arguments.one
        print("MADE " + json.dumps(run_one(json.loads(options), Path(folder), store)))
        return
    load = [os.getloadavg()[0]]
    with database() as made:
        ways, found = measure(arguments, made), constants(made)
    load.append(os.getloadavg()[0])
    figures = {"cores": os.cpu_count(), "load": load, "ways": ways, "constants": found}
    if arguments.json:
        print(json.dumps(figures, indent=1))
    else:
        show(figures)


if __name__ == "__main__":
    main()
