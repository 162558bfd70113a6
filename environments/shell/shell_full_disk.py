"""A report that is made once all files are there, on a disk that another program fills."""

from collections.abc import AsyncGenerator

from shell_files import (
    File,
    Files,
    Seed,
    arrive,
    draws,
    fill,
    graded,
    intact,
    need,
    read_small,
    run,
    scan,
)
from shell_words import FIRST_NAMES, LAST_NAMES, PRODUCTS, a_word

from hud_mcp import Agent, BrokenByAgent, Environment, Grade, ShellWorld

__all__ = ["declare", "orders_case"]

REPORT = """#!/bin/bash
# Usage: report.sh FILE... - prints all orders, sorted.
part=$(mktemp -d)
cat "$@" > "$part/all" 2> "$part/warnings"
LC_ALL=C sort "$part/all"
rm -r "$part"
"""
LAST = "orders/3-evening.csv"
_LINES, _LOOKS = 1500, 12
_MOST_BYTES, _FREE_BYTES = 1 << 30, 40_000
"""The largest /tmp that is filled; and how much of it stays free, which is one file's."""

# In the machine's own /tmp, which others use and which has a disk, nothing may be filled.
_ROOM = f"""
set -e
test "$(stat -f -c %T /tmp)" = tmpfs
test "$(df --output=size -B1 /tmp | tail -1)" -le {_MOST_BYTES}
"""
_FILL = f"""
import os
room = os.statvfs("/tmp")
os.makedirs("/tmp/thumbnails", exist_ok=True)
with open("/tmp/thumbnails/cache.bin", "wb") as file:
    size = room.f_bavail * room.f_frsize - {_FREE_BYTES}
    if size > 0:
        os.posix_fallocate(file.fileno(), 0, size)
"""


def orders_case(seed: int) -> tuple[Files, str]:
    """Draw the day's files of orders, and the report on all of them."""
    draw = draws("full disk", seed)
    files: dict[str, File | str | bytes] = {}
    lines: list[str] = []
    for name in ("orders/1-morning.csv", "orders/2-noon.csv", LAST):
        drawn = [
            f"{draw.choice(FIRST_NAMES)} {draw.choice(LAST_NAMES)},"
            f"{draw.choice(PRODUCTS)},{draw.randint(1, 99)}"
            for _ in range(_LINES)
        ]
        files[name] = "".join(f"{line}\n" for line in drawn)
        lines += drawn
    return files, "".join(f"{line}\n" for line in sorted(lines))


async def report_orders(shell: ShellWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for a report by a script that says nothing where the disk is full."""
    files, report = orders_case(seed)
    given = {**files, "report.sh": File(REPORT, mode=0o755)}
    out = f"{a_word('full disk', seed)}.csv"
    await need(shell)
    if (await shell.run(["bash", "-c", _ROOM])).exit_code != 0:
        raise RuntimeError("This task needs a /tmp of the session's own: a tmpfs of 1 GiB at most.")
    await fill(shell, {path: file for path, file in given.items() if path != LAST})
    yield (
        "Today's orders come as files into /workspace/orders, between your commands; the last one "
        f"is /workspace/{LAST}. Once it is there, write the report on all of them to "
        f"/workspace/{out}: every line of every file, sorted by its bytes, as /workspace/report.sh "
        "makes it. Change neither the script nor the files."
    )
    async with shell.verifier(copy=["orders", "report.sh", out]) as clean:
        seen = await scan(clean, "orders", "report.sh")
        said = await read_small(clean, out)
    harmless = intact(seen, given, "orders", "report.sh")
    right = (said or b"").decode("utf-8", "replace").splitlines() == report.splitlines()
    yield graded({"all orders": right}, harmless=harmless)


async def the_disk_gets_full(shell: ShellWorld, seed: int) -> None:
    """Bring the last file, and fill /tmp.

    Raises:
        BrokenByAgent: Something of the agent's is in the way.
    """
    done = await shell.run(["python3", "-I", "-S", "-c", _FILL])
    if done.exit_code != 0:
        raise BrokenByAgent(f"The temporary folder is in the way: {done.output.strip()[-200:]}")
    await arrive(shell, {LAST: orders_case(seed)[0][LAST]})


async def solve_report(agent: Agent) -> str:
    """Wait for the last file, see that lines are missing, and take the folder's own disk."""
    await run(agent, "ls -l orders; cat report.sh")
    for _ in range(_LOOKS):
        if LAST in await run(agent, "ls orders/*"):
            break
    out = agent.prompt.partition("them to /workspace/")[2].partition(":")[0]
    made = f"./report.sh orders/*.csv > {out}; cat orders/*.csv | wc -l; wc -l {out}"
    await run(agent, made)
    await run(agent, "df -h /tmp /workspace; ls -R /tmp")
    await run(agent, f"export TMPDIR=/workspace; {made}")
    return "done"


def declare(env: Environment) -> None:
    """Declare the template, what happens in it, and its solution."""
    report = env.template(description="Make a report of the day's orders")(report_orders)
    report.oracle(solve_report)
    report.after(step=2)(the_disk_gets_full)
