"""Tasks of the OSWorld benchmark that a shell can do, with the home of its `user`."""

import base64
from functools import partial
from typing import Any

import anyio.to_thread
from osworld_metrics import METRICS
from osworld_office import Beside

from hud_mcp import Answer, Environment, Shell, ShellWorld, Verifier, dataset_file

HOME = "/home/user"
FAIL = "FAIL"
SHOWN_CHARS = 300
MOST_BYTES = 16 * 1024 * 1024
"""Of a file that is compared; a verifier gives no longer one."""

env = Environment("osworld", version="0.1.0", world=Shell(parts=(HOME,), env={"HOME": HOME}))


@env.function(use="setup")
async def osworld_prepare(shell: ShellWorld, *steps: list[str] | dict[str, str]) -> None:
    """Take a row's steps, in order.

    A list of one is a line for bash, a longer one a command; an object is a file of the imported
    set, by its digest, and where it goes.
    """
    await shell.run(["mkdir", "-p", f"{HOME}/Desktop", f"{HOME}/Documents", f"{HOME}/Downloads"])
    for step in steps:
        if isinstance(step, dict):
            await shell.write(inside(step["path"]), await kept(step["sha256"]))
            continue
        command = step[0] if len(step) == 1 else step
        done = await shell.run(command, cwd=f".{HOME}")
        if done.stopped is not None or done.exit_code != 0:
            raise RuntimeError(f"{command!r:.200} did not exit 0: {str(done)[-SHOWN_CHARS:]}")


@env.function(use="evaluate")
async def osworld_evaluate(
    shell: ShellWorld, answer: Answer[str], evaluator: dict[str, Any]
) -> float:
    """What OSWorld's evaluator says, of a copy of the home in which the agent has not been."""
    failed = answer.raw.strip().upper() == FAIL
    functions = as_list(evaluator["func"])
    if functions == ["infeasible"]:
        return float(failed)
    if failed:
        return 0.0
    count = len(functions)
    results = padded(evaluator.get("result"), count)
    expected = padded(evaluator.get("expected"), count)
    options = padded(evaluator.get("options"), count)
    scores: list[float] = []
    async with shell.verifier(copy=".") as clean:
        for step in evaluator.get("postconfig") or []:
            if not await taken(clean, step):
                return 0.0
        for name, result, rule, more in zip(functions, results, expected, options, strict=True):
            found = await looked_at(clean, result)
            if found is None:
                scores.append(0.0)
                continue
            wanted = () if rule is None else (await looked_at(clean, rule),)
            score = partial(METRICS[name], found, *wanted, **(more or {}))
            scores.append(await anyio.to_thread.run_sync(score))  # documents may be large
    return combined(scores, evaluator.get("conj", "and"))


def combined(scores: list[float], conj: str) -> float:
    """Several scores as one: their mean if none is 0, or their greatest for `or`."""
    if conj == "or":
        return max(scores)
    return 0.0 if 0.0 in scores else sum(scores) / len(scores)


def as_list(given: Any) -> list[Any]:
    """One value, or several, as a list."""
    return list(given) if isinstance(given, list) else [given]


def padded(given: Any, count: int) -> list[Any]:
    """One value for each metric."""
    values = as_list(given) if given not in (None, [], {}) else []
    return [*values, *([None] * (count - len(values)))][:count]


async def looked_at(clean: Verifier, getter: dict[str, Any]) -> Any:
    """What a getter sees: rules as they are, a command's output, names in a folder, or files.

    Of what is not there, or cannot be read, it sees None.
    """
    kind = getter["type"]
    if kind == "rule":
        return getter["rules"]
    if kind == "vm_command_line":
        command = getter["command"]
        line = command if isinstance(command, str) else list(map(str, command))
        done = await clean.run(line, cwd=f".{HOME}")
        return done.stdout
    if kind == "list_directory":
        done = await clean.run(["find", f"{getter['path']}/", "-mindepth", "1", "-maxdepth", "1",
                                "-printf", "%f\\0"])  # fmt: skip
        return done.stdout.rstrip("\0").split("\0") if done.exit_code == 0 else None
    if kind == "vm_file":
        paths = as_list(getter["path"])
        return given(getter, paths, [await content(clean, path) for path in paths])
    if kind == "cloud_file":
        digests = as_list(getter["sha256"])
        return given(getter, digests, [await kept(digest) for digest in digests])
    raise ValueError(f"There is no getter {kind!r} here; importing the row again says so.")


def given(getter: dict[str, Any], paths: list[str], found: list[bytes | None]) -> Any:
    """The files that a getter gives: the first one, or several as a list.

    Each knows the others, as they lie in one folder under the names that the row has for them.
    """
    names = as_list(getter.get("dest", paths))
    others = {name: data for name, data in zip(names, found, strict=True) if data is not None}
    chosen = [
        Beside.of(name, others) if (name := names[index]) in others else None
        for index in getter.get("gives", [0])
    ]
    return chosen[0] if len(chosen) == 1 else chosen


async def content(clean: Verifier, path: str) -> bytes | None:
    """A file's content; None where there is none that can be read, which is the agent's doing."""
    place = inside(path)
    line = '[ -f "$1" ] && [ "$(stat -c %s -- "$1")" -le "$2" ]'
    done = await clean.run(["bash", "-c", line, "-", f"/{place}", str(MOST_BYTES)])
    return await clean.read_bytes(place) if done.exit_code == 0 else None


async def taken(clean: Verifier, step: list[str] | dict[str, str]) -> bool:
    """Take a step before the results are looked at; False where the agent left no place for it."""
    if isinstance(step, list):
        await clean.run(step[0] if len(step) == 1 else step, cwd=f".{HOME}")
        return True
    # What the agent left under that name is not what the grade may come from.
    line = 'mkdir -p -- "$(dirname "$1")" && rm -rf -- "$1" && base64 -d > "$1"'
    text = base64.b64encode(await kept(step["sha256"])).decode()
    done = await clean.run(["bash", "-c", line, "-", f"/{inside(step['path'])}"], stdin=text)
    return done.exit_code == 0


async def kept(sha256: str) -> bytes:
    """A file of the imported set, by its digest."""
    return await anyio.to_thread.run_sync(dataset_file(sha256).read_bytes)


def inside(path: str) -> str:
    """A path of a row from the sandbox's folder on; one that names no folder is in the home."""
    whole = path.replace("~", HOME, 1) if path.startswith("~") else path
    return (whole if whole.startswith("/") else f"{HOME}/{whole}").lstrip("/")
