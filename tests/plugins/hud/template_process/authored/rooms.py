"""Templates that look at their workspace's root themselves, as HUD's authors write them."""

# ruff: noqa: ANN001, ANN201, ANN202, ASYNC220, ASYNC221, ASYNC240, ASYNC251, BLE001, D103
# ruff: noqa: FBT001, FBT002, PLW0603, PTH104, PTH116, PTH123, PTH208, SIM115  # as HUD's authors write

import asyncio
import errno
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hud_mcp import BrokenByAgent, Environment, SandboxLimits
from hud_mcp.errors import GraderFailed
from hud_mcp.world import current_world

ROOT = Path(os.environ.get("ROOMS_ROOT") or tempfile.mkdtemp(prefix="rooms-"))
SECRET = "THE-EXPECTED-WORD"
env = Environment("rooms")
workspace = env.workspace(ROOT, limits=SandboxLimits(disk_bytes=8 * 2**20))
runs = 0


@env.initialize
async def _count_starts():
    marker = Path(os.environ["ROOMS_STARTED"])
    marker.write_text(marker.read_text() + "once\n" if marker.exists() else "once\n")


@env.template()
async def write(word: str = "tea", number: int = 1):
    global runs
    runs += 1
    (ROOT / "sub").mkdir(exist_ok=True)
    (ROOT / "sub" / "given.txt").write_text(f"given to {word}\n")
    print(f"run {runs} of {word}")
    logging.getLogger("author").info("logged for %s", word)
    answer = yield {"prompt": f"Write {word} into {ROOT}/out.txt.", "number": number}
    found = (ROOT / "out.txt").read_text().strip() if (ROOT / "out.txt").exists() else ""
    code = "import sys; sys.exit(open('out.txt').read().strip() != sys.argv[1])"
    apart = subprocess.run([sys.executable, "-c", code, word], cwd=ROOT, check=False)
    shell = current_world.get()
    within = await shell.run(f"grep -qx {word} {ROOT}/out.txt && pwd", cwd=str(ROOT / "sub"))
    print(f"found {found}")
    score = (found == word) * 0.5 + (apart.returncode == 0) / 4 + (within.exit_code == 0) / 4
    yield {
        "score": score,
        "info": {"answer": answer, "found": found, "names": sorted(os.listdir(ROOT)),
                 "cwd": within.output.strip(), "when": Path("an object")},
    }  # fmt: skip


@env.template()
async def linked(own: bool = False):
    if own:
        (ROOT / "real.txt").write_text("real\n")
        (ROOT / "out.txt").symlink_to("real.txt")
    yield "Write the expected word into out.txt."
    yield float(SECRET in (ROOT / "out.txt").read_text() or own)


@env.template()
async def raises(when: str = "grading"):
    if when == "setup":
        raise ValueError(SECRET)
    yield "?"
    if when == "exit":
        sys.exit(3)
    if when == "die":
        os._exit(7)
    if when == "nan":
        yield float("nan")
    (ROOT.parent / "missing.txt").read_text()
    yield 1.0


READS = {
    "read": (ROOT / "out.txt").read_text,
    "bytes": lambda: os.stat(os.fsencode(ROOT / "out.txt")),
    "copy": lambda: shutil.copy(ROOT / "out.txt", ROOT.parent / "beside.txt"),
    "move": lambda: os.rename(ROOT / "out.txt", ROOT / "sub" / "moved.txt"),
    "write": lambda: (ROOT / "note.txt").write_text("x" * 100_000),
    "work in": lambda: subprocess.run(["true"], cwd=ROOT / "sub", check=True),
    "run": lambda: subprocess.run([str(ROOT / "out.txt")], check=True),
    "from there": lambda: (os.chdir(ROOT), open("sub/../out.txt")),
    "not beside": (ROOT / "../missing.txt").read_text,
    "copy to nowhere": lambda: shutil.copy(ROOT / "out.txt", ROOT.parent / "nowhere" / "out.txt"),
    "move to nowhere": lambda: os.rename(ROOT / "out.txt", ROOT.parent / "nowhere" / "out.txt"),
    "no program": lambda: (os.chdir(ROOT), subprocess.run(["no-such-program"], check=True)),
    "elsewhere full": lambda: _raise(OSError(errno.ENOSPC, "No space left on device")),
    "words": lambda: _raise(FileNotFoundError("out.txt is expected")),
    "broken": lambda: _raise(Torn("The ledger is torn.")),
    "grader": lambda: _raise(GraderFailed("It cannot be compared."), "out.txt"),
}  # fmt: skip


class Torn(BrokenByAgent):
    """An author's own word for it."""


def _raise(error, by=None):
    if by is None:
        raise error
    try:
        (ROOT / by).read_text()
    except OSError as exc:
        raise error from exc


@env.template()
async def opens(how: str, when: str = "grading"):
    (ROOT / "sub").mkdir()
    if when == "setup":
        READS[how]()
    (ROOT / "out.txt").write_text("empty\n")
    yield "Write into out.txt."
    if how == "within":
        await current_world.get().run("true", cwd=str(ROOT / "sub"))
    elif how == "group":
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(READS["read"]))
    else:
        READS[how]()
    yield 1.0


@env.template()
async def blocks(marker: str, phase: str):
    sleeper = [sys.executable, "-c", "import time; time.sleep(987)", "sleeper", marker]
    subprocess.Popen(sleeper, start_new_session=True)
    print("blocking")
    if phase == "setup":
        Path(marker).write_text("here")
        time.sleep(600)
    yield "?"
    if phase == "grading":
        time.sleep(600)
    try:
        await asyncio.sleep(600)
    finally:
        Path(marker).write_text("cleaned up")
    yield 1.0


@env.template()
async def held(marker: str, seconds: float = 600):
    try:
        async with asyncio.timeout(seconds):
            yield "Nobody answers in time."
    except TimeoutError:
        Path(marker).write_text("timed out")
        yield 0.25
        return
    except Exception as exc:
        Path(marker).write_text(f"{type(exc).__name__}: {exc}")
        raise
    yield 1.0


@env.template()
async def thrice():
    yield "?"
    yield 1.0
    yield 0.5


@env.template()
async def commands():
    shell = current_world.get()
    yield "?"
    try:
        await shell.run("true", cwd="/etc")
    except Exception as exc:
        kind = type(exc).__name__
    several = await asyncio.gather(*(shell.run(f"exit {code}") for code in range(4)))
    try:
        async with asyncio.timeout(0.3):
            await shell.run("sleep 600")
    except TimeoutError:
        kind += " TimeoutError"
    left = await shell.run("pgrep -x sleep")
    yield {"score": 1.0, "info": {"kind": kind, "codes": [each.exit_code for each in several],
                                  "left": left.output}}  # fmt: skip


@env.template()
async def imports():
    yield "?"
    import planted  # noqa: PLC0415  # a module that only an agent can have made

    yield planted.reward
