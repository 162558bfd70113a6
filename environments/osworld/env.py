"""Tasks of the OSWorld benchmark that a shell can do, with the home of its `user`."""

from typing import Any

from osworld_metrics import METRICS

from hud_mcp import Answer, Environment, Shell, ShellWorld, Verifier

HOME = "/home/user"
FAIL = "FAIL"
SHOWN_CHARS = 300

env = Environment("osworld", version="0.1.0", world=Shell(parts=(HOME,), env={"HOME": HOME}))


@env.function(use="setup")
async def osworld_prepare(shell: ShellWorld, *steps: list[str]) -> None:
    """Run a row's steps, in order: a list of one is a line for bash, a longer one a command."""
    await shell.run(["mkdir", "-p", f"{HOME}/Desktop", f"{HOME}/Documents", f"{HOME}/Downloads"])
    for step in steps:
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
        for name, result, rule, more in zip(functions, results, expected, options, strict=True):
            found = await looked_at(clean, result)
            if found is None:
                scores.append(0.0)
            elif rule is None:
                scores.append(METRICS[name](found, **(more or {})))
            else:
                wanted = await looked_at(clean, rule)
                scores.append(METRICS[name](found, wanted, **(more or {})))
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
    """What a getter sees: rules as they are, the output of a command, or a file's content."""
    kind = getter["type"]
    if kind == "rule":
        return getter["rules"]
    if kind == "vm_command_line":
        command = getter["command"]
        line = command if isinstance(command, str) else list(map(str, command))
        done = await clean.run(line, cwd=f".{HOME}")
        return done.stdout
    if kind == "vm_file":
        path = getter["path"].replace("~", HOME, 1).lstrip("/")
        return await clean.read_bytes(path) if await clean.exists(path) else None
    raise ValueError(f"There is no getter {kind!r} here; importing the row again says so.")
