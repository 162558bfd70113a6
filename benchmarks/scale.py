"""Trivial tasks a second, in each way that there is, beside HUD's own `Taskset.run`, in one run.

Each way runs in a process of its own, one after the other, round by round; a figure is the median
of the rounds, and a ratio is the median of the ratios of the rounds. A process first runs a job of
8 tasks, for its imports. Seconds are from the first call of an agent to the last; what the job
takes beside, such as the start of its servers, is shown by itself, and its processor time until
then is left out. `hud-mcp eval` alone is measured whole. HUD's keeps nothing. A costly task takes
some 40 ms of its server's processor time before it asks. PostgreSQL syncs each commit, and its
processor time counts, with that of the first 8 tasks. The constants are those of docs/scale.md.

    python benchmarks/scale.py [--hud-python PATH] [--part in-process|workers|command|constants]
        [--tasks 1000] [--served 400] [--costly 150] [--rounds 3] [--json]
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
from statistics import median
from typing import Any

import anyio
import psutil
from scale_constants import constants
from scale_database import Database, database
from scale_files import FEW, write_files

from hud_mcp import evaluate
from hud_mcp.agents.agent import Agent

AT_ONCE = 8
PARTS = ("in-process", "workers", "command", "constants")
PEER = "HUD's Taskset.run, keeps nothing"
HERE = "evaluate, in process"
IN_PROCESS: dict[str, dict[str, Any]] = {HERE: {"in_process": True}}
SERVED: dict[str, dict[str, Any]] = {
    "evaluate, 1 server, SQLite": {},
    "evaluate, 1 worker, SQLite": {"workers": 1},
    "evaluate, 2 workers, SQLite": {"workers": 2},
    "evaluate, 1 worker, PostgreSQL": {"workers": 1},
    "evaluate, 2 workers, PostgreSQL": {"workers": 2},
}
COSTLY: dict[str, dict[str, Any]] = {
    "costly tasks, 1 worker, PostgreSQL": {"workers": 1},
    "costly tasks, 2 workers, PostgreSQL": {"workers": 2},
}


CALLS: list[float] = []
"""When an agent was called, in this process."""
BEFORE: list[tuple[float, float]] = []
"""The processor time that a job had used as its first agent was called."""


async def counts(agent: Agent) -> str:
    """Counts right."""
    if not CALLS:
        own, under = used()
        each = [one.cpu_times() for one in psutil.Process().children(recursive=True)]
        BEFORE.append((own, under + sum(one.user + one.system for one in each)))
    CALLS.append(time.perf_counter())
    return str(len(agent.prompt.split("'")[1]))


def used() -> tuple[float, float]:
    """Processor seconds of this process, and of those that have ended under it."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, under = [one.ru_utime + one.ru_stime for one in each]
    return own, under


async def run_job(options: dict[str, Any], rows: Path, store: str) -> dict[str, Any]:
    """One job by `evaluate`, in this process."""
    CALLS.clear()
    BEFORE.clear()
    began, env = time.perf_counter(), str(rows.with_name("env.py"))
    job = await evaluate(str(rows), counts, env=env, store=store, max_concurrent=AT_ONCE, **options)
    whole, after, before = time.perf_counter() - began, used(), BEFORE[0]
    right = sum(run.reward == 1.0 for run in job.runs)
    driver, servers = after[0] - before[0], after[1] - before[1]
    seconds = CALLS[-1] - CALLS[0]
    job_s = whole - seconds
    return {
        "seconds": seconds,
        "job_s": job_s,
        "driver": driver,
        "servers": servers,
        "right": right,
    }


def run_one(options: dict[str, Any], folder: Path, store: str) -> dict[str, Any]:
    """A job of few tasks, for the imports; then the one of all, and what that took."""

    async def run() -> dict[str, Any]:
        await run_job(options, folder / "few.jsonl", store)
        return await run_job(options, folder / "rows.jsonl", store)

    return anyio.run(run)


def command_line(folder: Path, store: str, options: Iterable[str]) -> dict[str, Any]:
    """A job by `hud-mcp eval`, from its start as a program to its end."""
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
    rows = (folder / "rows.jsonl").read_text().count("\n")
    is_right = f"over {rows} graded" in done.stdout and "1.000" in done.stdout
    right, cpu = rows if is_right else 0, used()[1] - before[1]
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "job_s": 0.0, "driver": cpu, "servers": 0.0, "right": right}


def in_child(command: list[str]) -> dict[str, Any]:
    """What a program says it has made."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("MADE "))
    return json.loads(line.removeprefix("MADE "))


def read_figures(way: str, found: dict[str, Any], tasks: int) -> dict[str, float]:
    """The figures of one round, a task."""
    if found["right"] != tasks:
        raise RuntimeError(f"{way}: {found['right']} of {tasks} are right")
    parts = {key: 1000 * found[key] / tasks for key in ("driver", "servers")}
    figures = {"a_second": (tasks - 1) / found["seconds"], "job_s": found["job_s"], **parts}
    if "database" in found:
        figures["database"] = 1000 * found["database"] / tasks
        figures["transactions"] = found["transactions"] / tasks
    figures["cpu_ms"] = sum(figures.get(key, 0.0) for key in ("driver", "servers", "database"))
    print(
        f"{way}: {figures['a_second']:.0f} tasks/s, {figures['cpu_ms']:.2f} ms; "
        f"load {os.getloadavg()[0]:.1f}",
        file=sys.stderr,
    )
    return figures


def run_way(
    way: str, options: dict[str, Any], tasks: int, made: Database | None
) -> dict[str, float]:
    """One round of one way."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, tasks, "costly" if way.startswith("costly") else "count")
        on = made if "PostgreSQL" in way else None
        store = str(folder / "runs.sqlite3") if on is None else on.new_url()
        before = (0.0, 0) if on is None else (on.cpu_s(), on.transactions())
        if way.startswith("hud-mcp eval"):
            found = command_line(folder, store, options.get("options", ()))
        else:
            one = ["--one", json.dumps(options), str(folder), store]
            found = in_child([sys.executable, __file__, *one])
        if on is not None:
            found["database"] = on.cpu_s() - before[0]
            found["transactions"] = on.transactions() - before[1]
        return read_figures(way, found, tasks)


def measure(arguments: argparse.Namespace, made: Database | None) -> dict[str, list[Any]]:
    """The rounds of each way."""
    ways: list[tuple[str, dict[str, Any], int]] = []
    if "in-process" in arguments.part:
        ways += [(way, how, arguments.tasks) for way, how in IN_PROCESS.items()]
    if "command" in arguments.part:
        ways.append(("hud-mcp eval, whole program", {}, arguments.served))
        how = {"options": ("--in-process",)}
        ways.append(("hud-mcp eval --in-process", how, arguments.tasks))
    if "workers" in arguments.part:
        ways += [(way, how, arguments.served) for way, how in SERVED.items()]
        ways += [(way, how, arguments.costly) for way, how in COSTLY.items()]
    found: dict[str, list[Any]] = {}
    for _ in range(arguments.rounds):
        if arguments.hud_python is not None and "in-process" in arguments.part:
            peer = str(Path(__file__).with_name("scale_peer.py"))
            numbers = [str(each) for each in (arguments.tasks, AT_ONCE, FEW)]
            figures = in_child([arguments.hud_python, peer, *numbers])
            found.setdefault(PEER, []).append(read_figures(PEER, figures, arguments.tasks))
        for way, options, tasks in ways:
            if made is not None or "PostgreSQL" not in way:
                found.setdefault(way, []).append(run_way(way, options, tasks, made))
    return found


def ratio(rounds: dict[str, list[Any]], way: str, to: str, key: str) -> float | None:
    """The median of the ratios of the rounds; None where one was not measured."""
    if way not in rounds or to not in rounds:
        return None
    pairs = zip(rounds[way], rounds[to], strict=True)
    return median(one[key] / other[key] for one, other in pairs)


def show(figures: dict[str, Any]) -> None:
    """Print tables."""
    load = ", ".join(f"{each:.1f}" for each in figures["load"])
    print(f"{figures['cores']} cores; load before and after: {load}\n")
    rounds = figures["rounds"]
    for way, each in rounds.items():
        one = {key: median(figures[key] for figures in each) for key in each[0]}
        shares = ", ".join(
            f"{key} {one[key]:.2f}" for key in ("driver", "servers", "database") if one.get(key)
        )
        more = f"; {one['transactions']:.1f} transactions" if "transactions" in one else ""
        print(
            f"{way:43} {one['a_second']:6.0f} tasks/s  {one['cpu_ms']:6.2f} ms CPU ({shares}){more}"
            f"; beside {one['job_s']:.1f} s"
        )
    for way, to, said in (
        (HERE, PEER, "in process / HUD's"),
        *(
            (f"{what}, 2 workers, {kind}", f"{what}, 1 worker, {kind}", f"{what}, 2 / 1, {kind}")
            for what in ("evaluate", "costly tasks")
            for kind in ("SQLite", "PostgreSQL")
        ),
    ):
        rate, cpu = (ratio(rounds, way, to, key) for key in ("a_second", "cpu_ms"))
        if rate is not None and cpu is not None:
            print(f"{said}: {rate:.2f} of the rate, {cpu:.2f} of the CPU a task")
    show_constants(figures["constants"])


def show_constants(found: dict[str, Any]) -> None:
    """Print what docs/scale.md reckons with."""
    for world, one in found.get("memory_mb", {}).items():
        if "step_ms" in one:
            print(f"{world}: {one['step_ms']:.0f} ms CPU and {one['picture_kb']:.0f} kB a step")
        parts = (one["server"], one["first"], one["session"])
        print(
            "{:10} server {:6.1f} MB, first session {:6.1f} MB, each more {:6.1f} MB".format(
                world, *parts
            )
        )
    for writers, rate in found.get("commits_a_second", {}).items():
        print(f"PostgreSQL, {writers:2} writers: {rate:.0f} commits/s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hud-python")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--served", type=int, default=400)
    parser.add_argument("--costly", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs=3, metavar=("OPTIONS", "FOLDER", "STORE"))
    arguments = parser.parse_args()
    if arguments.one is not None:
        options, folder, store = arguments.one
        print("MADE " + json.dumps(run_one(json.loads(options), Path(folder), store)))
        return
    load = [os.getloadavg()[0]]
    with database() as made:
        rounds = measure(arguments, made)
        found = constants(made) if "constants" in arguments.part else {}
    load.append(os.getloadavg()[0])
    figures = {"cores": os.cpu_count(), "load": load, "rounds": rounds, "constants": found}
    if arguments.json:
        print(json.dumps(figures, indent=1))
    else:
        show(figures)


if __name__ == "__main__":
    main()
