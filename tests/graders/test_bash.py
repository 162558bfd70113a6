"""A command as a grader: how it ends is a score, that it cannot run is none."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest
from tables import each_of

from hud_mcp.errors import BrokenByAgent, EnvironmentFailed, GraderFailed
from hud_mcp.graders import BashGrader, combine
from hud_mcp.graders.bash import runs_no_code
from hud_mcp.graders.commands import RunsCommands
from hud_mcp.sandbox import SandboxLimits
from hud_mcp.values.grade import SubScore
from hud_mcp.world import Opening, current_world
from hud_mcp.worlds.shell import Shell, ShellWorld

pytestmark = pytest.mark.anyio

WAIT_S = 20


async def grade(**options: Any) -> SubScore:
    """Grade by a command, within a bound."""
    with anyio.fail_after(WAIT_S):
        return await BashGrader.grade(weight=1.0, **options)


async def gone(pid: int) -> None:
    """Wait until a process is no more."""
    with anyio.fail_after(WAIT_S):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 3", 3), ("kill -9 $$", 137)])
async def test_a_command_s_exit_code_is_its_score(command: str, code: int) -> None:
    """0 is 1.0, and everything else 0.0."""
    part = await grade(command=command)
    assert part.value == float(code == 0)
    assert part.name == "BashGrader"
    assert part.info["exit_code"] == code
    assert (part.info["timed_out"], part.info["ran_in"]) == (False, "server")


async def test_what_a_command_writes_is_kept_by_stream(tmp_path: Path) -> None:
    """In the folder that was named, by the rules of bash."""
    part = await grade(command="pwd; [[ a == a ]] && echo oops >&2; exit 1", cwd=tmp_path)
    assert (part.info["stdout"], part.info["stderr"]) == (f"{tmp_path}\n", "oops\n")
    assert part.info["_parameters"]["cwd"] == str(tmp_path)


async def test_a_command_sees_nothing_of_the_server_s_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only where and how it runs, and what the author hands it; and that is not recorded."""
    for name in ("OPENAI_API_KEY", "DB_PASSWORD", "HUD_MCP_JUDGE_API_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, "the-secret")
    part = await grade(command='echo "$TOKEN"; env; cat', env={"TOKEN": "handed"})
    assert part.info["stdout"].startswith("handed\n")
    assert "PATH=" in part.info["stdout"]
    assert "the-secret" not in str(part.info)
    assert part.info["_parameters"]["env"] == "(not recorded)"


async def test_a_command_that_takes_too_long_is_killed_with_all_that_it_started() -> None:
    """It scores 0.0, and says that this was for its time."""
    part = await grade(command="sleep 300 & echo $!; sleep 300", timeout_seconds=2)
    assert part.value == 0.0
    assert part.info["timed_out"] is True
    assert (part.info["exit_code"], part.info["timeout"]) == (None, 2)
    await gone(int(part.info["stdout"]))


async def test_what_a_command_leaves_in_the_back_does_not_hold_its_score_up() -> None:
    """Nor does it go on, although it holds the output open, in a session of its own too."""
    part = await grade(command="sleep 300 & echo $!; setsid sleep 300 & echo $!")
    assert part.value == 1.0
    for pid in part.info["stdout"].split():
        await gone(int(pid))


async def test_a_flood_is_stopped_and_only_its_ends_are_kept() -> None:
    """HUD keeps all of it in memory and in the record."""
    part = await grade(command="yes")
    assert part.value == 0.0
    assert "wrote more than" in part.info["stopped"]
    some = await grade(command="seq 200000; seq 200000 >&2")
    assert some.value == 1.0
    assert some.info["stdout"].startswith("1\n2\n")
    assert some.info["stderr"].endswith("199999\n200000\n")
    assert len(some.info["stdout"]) < 70_000


async def test_a_command_that_is_cancelled_is_killed() -> None:
    """With what it started, before the caller goes on."""
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    with anyio.move_on_after(0.5):
        await BashGrader.grade(weight=1, command="sleep 301 & sleep 302")
    left = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
    assert [p for p in left if p.status() != psutil.STATUS_ZOMBIE] == []


async def test_a_command_that_cannot_run_is_no_0(tmp_path: Path) -> None:
    """HUD scores a missing folder with 0.0, and names bash as what is missing."""
    with pytest.raises(GraderFailed, match="'/not/here' is not a folder here"):
        await grade(command="true", cwd="/not/here")
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(GraderFailed, match="is not a folder here"):
        await grade(command="true", cwd=file)


@each_of(
    "options",
    [
        {},
        {"command": ""},
        {"command": "a\0b"},
        {"command": "true", "timeout_seconds": 0},
        {"command": "true", "timeout_seconds": float("nan")},
        {"command": "true", "timeout": 5},
        {"command": "true", "place": "session", "copy": ["a"]},
    ],
)
async def test_a_wrong_call_is_refused(options: dict[str, Any]) -> None:
    """A misspelt bound is not taken for the default one."""
    with pytest.raises((ValueError, TypeError)):
        await grade(**options)


# ----------------------------------------------------------------------- in a session's sandbox


@pytest.fixture
async def in_shell(
    machine: None, tmp_path: Path
) -> AsyncIterator[Callable[..., Awaitable[tuple[ShellWorld, Callable[..., Awaitable[SubScore]]]]]]:
    """Open a shell, and grade as its session would."""
    opened: list[ShellWorld] = []

    async def open_it(**options: Any) -> tuple[ShellWorld, Callable[..., Awaitable[SubScore]]]:
        world = await Shell(**options).open(Opening(folder=tmp_path))
        opened.append(world)
        context = contextvars.copy_context()
        context.run(current_world.set, world)

        async def grade_there(**given: Any) -> SubScore:
            with anyio.fail_after(WAIT_S):
                work = BashGrader.grade(weight=1.0, **given)
                return await asyncio.get_running_loop().create_task(work, context=context)

        return world, grade_there

    yield open_it
    for world in opened:
        await world.close()


@pytest.mark.sandbox
async def test_in_a_session_a_command_runs_where_the_agent_worked(in_shell: Any) -> None:
    """In a copy of its folder as it was left; or in that folder itself, which is weak."""
    world, grade_there = await in_shell()
    assert isinstance(world, RunsCommands)
    await world.write("fixed", "yes")
    part = await grade_there(command="pwd; cat fixed; echo oops >&2; rm fixed")
    assert part.value == 1.0
    assert (part.info["stdout"], part.info["stderr"]) == ("/workspace\nyes", "oops\n")
    assert (part.info["ran_in"], "weak" in part.info) == ("verifier", False)
    for given, weak in (({}, True), ({"stdout": ""}, False)):
        part = await grade_there(command="python3 -c pass", **given)
        assert (part.value, "weak" in part.info) == (1.0, weak)
    part = await grade_there(command="pwd; cat fixed; echo oops >&2", place="session")
    assert part.info["stdout"] == "/workspace\nyesoops\n"
    assert (part.info["stderr"], part.info["ran_in"]) == ("", "session")
    assert part.info["weak"].startswith("It ran in the agent's own sandbox")
    assert (await grade_there(command="test -e /work -o -e /root/x")).value == 0.0
    await world.write("sub/a", "")
    assert (await grade_there(command="test -e a", cwd="/workspace/sub")).value == 1.0
    assert (await grade_there(command="test $A = 1", cwd="sub", env={"A": "1"})).value == 1.0
    assert (await grade_there(command="test -e fixed", cwd=Path("sub"))).value == 0.0


@pytest.mark.sampled(1)
@pytest.mark.sandbox
@pytest.mark.parametrize("copy", [None, ".", ("./",), ["data", "."], {".": "."}])
async def test_the_whole_folder_is_the_agents_but_for_tests(
    in_shell: Any, tmp_path: Path, copy: Any
) -> None:
    """Also where it is named: a repair counts, and a changed test does not."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "data").write_text("broken")
    (tmp_path / "files" / "test_data").write_text("grep -q repaired data")
    world, grade_there = await in_shell(root="files")
    await world.write("test_data", "true")
    assert (await grade_there(command="sh test_data", copy=copy)).value == 0.0
    await world.write("data", "repaired")
    assert (await grade_there(command="sh test_data", copy=copy)).value == 1.0


@pytest.mark.sandbox
async def test_in_a_session_a_folder_that_is_not_there_is_no_0(in_shell: Any) -> None:
    """One that is missing is the agent's doing; one of this machine is its author's mistake."""
    world, grade_there = await in_shell()
    with pytest.raises(BrokenByAgent, match="missing cannot be read"):
        await grade_there(command="true", cwd="missing")
    with pytest.raises(BrokenByAgent, match="missing is not there"):
        await grade_there(command="true", cwd="missing", place="session")
    with pytest.raises(GraderFailed, match="in /workspace"):
        await grade_there(command="true", cwd="/usr")
    await world.close()
    with pytest.raises(EnvironmentFailed, match="closed"):
        await grade_there(command="true")


@pytest.mark.long
@pytest.mark.sandbox
async def test_in_a_session_the_sandbox_s_own_bounds_hold_too(in_shell: Any) -> None:
    """A command that reaches one has failed, and its info says by which."""
    _, grade_there = await in_shell(limits=SandboxLimits(command_s=0.5, output_bytes=20_000))
    late = await grade_there(command="echo a; sleep 60")
    assert (late.value, late.info["timed_out"], late.info["exit_code"]) == (0.0, True, None)
    assert late.info["stdout"] == "a\n"
    assert late.info["timeout"] < 10
    flood = await grade_there(command="yes")
    assert (flood.value, flood.info["timed_out"]) == (0.0, False)
    assert "more than 20000 bytes" in flood.info["stopped"]


@pytest.mark.long
@pytest.mark.sandbox
async def test_in_a_session_one_command_runs_after_the_other(in_shell: Any) -> None:
    """Two graders of one world never disturb each other: a world has one caller at a time."""
    _, grade_there = await in_shell()
    command = "mkdir held && sleep 0.1 && rmdir held"
    places = ("session", "session", "verifier", "session", None)
    parts = await asyncio.gather(*(grade_there(command=command, place=p) for p in places))
    assert [part.value for part in parts] == [1.0] * 5


async def test_any_world_that_runs_commands_will_do() -> None:
    """Nothing but `run` is asked of it: a template in a process of its own has a stand-in."""

    class End:
        exit_code, output, stopped = 0, "done", None

    class Elsewhere:
        asked: Any = None

        async def run(self, command: str, **options: Any) -> End:
            self.asked = (command, options)
            return End()

    world = Elsewhere()

    async def grading() -> float:
        current_world.set(world)  # pyright: ignore[reportArgumentType]  # a part of one
        return (await combine(BashGrader.grade(weight=1.0, command="make test"))).reward

    assert await asyncio.create_task(grading()) == 1.0
    assert world.asked == ("make test", {"cwd": "", "timeout_s": 600, "env": None})


COMMANDS = {
    "grep -q x a.txt": True,
    "test $(stat -c %a run.sh) = 700": True,
    '[ "$(cat a)" = "b; c" ] && ! grep -q "x|y" f': True,
    "if grep -q 'a;b' f; then exit 0; else exit 1; fi": True,
    "for f in *.txt; do grep -q a $f || exit 1; done": True,
    "while read l; do echo $l; done < f > g 2>&1": True,
    "[ -f a ] || { echo no; exit 1; }": True,
    "python3 -m unittest": False,
    "./run": False,
    "'./run'": False,
    "cat a | python3": False,
    "(cd a && ./run)": False,
    "diff <(sort a) <(./b)": False,
    'test "$(./run)" = 5': False,
    "$(cat a)": False,
    "A=1 make check": False,
    "find . -exec {} ;": False,
    "cat f; `./run`": False,
    "env ./run": False,
    "bash -c 'true'": False,
}
"""Lines of bash, and whether none of their programs runs what it reads."""


def test_a_command_that_may_run_an_agents_code_is_known() -> None:
    """By its programs; those that nobody knows may."""
    assert {line: runs_no_code(line) for line in COMMANDS} == COMMANDS
