"""A gym of the user's own: its controller acts and grades, apart from what the agent can reach."""

import json
import os
import textwrap
from pathlib import Path

import anyio
import pytest
from places import PATIENCE_S, Place

from hud_mcp import CustomGym, Task
from hud_mcp.env import Environment
from hud_mcp.errors import GradingFailed, GymMakeException, InvalidTask

pytestmark = pytest.mark.anyio

GYMS = Path(__file__).resolve().parent / "gyms"
ENGINES = Path(__file__).resolve().parent / "engines"
COUNTER = CustomGym(image_or_build_context=GYMS / "counter")
BOXED = CustomGym(
    image_or_build_context=GYMS / "boxed", host_config={"Memory": 268435456, "Privileged": False}
)


def task(gym: CustomGym, **fields: object) -> Task:
    """A task of a gym."""
    row = {"prompt": "Count to 3.", "setup": ("main.begin", 1), "evaluate": ("main.counted", 3)}
    return Task(gym=gym, **{**row, **fields})  # type: ignore[arg-type]


async def check(env: Environment) -> None:
    """What a controller does is the same wherever it runs."""
    observation, info = await env.reset()
    assert observation.text == 'Count to 3.\n\n{"count": 1, "said": ""}'
    assert info == {}
    step = await env.step([{"type": "click", "x": 1, "y": 2}, {"type": "wait", "time": 1}])
    assert step.observation.text == '{"count": 3, "said": ""}'
    assert step.info == {"n": 2}
    assert await env.evaluate() == 1.0
    assert await env.evaluate([("main.counted", 4), ("main.counted", 3)]) == [0.0, 1.0]
    with pytest.raises(GradingFailed, match=r"main\.py:\d+: main.leave: SystemExit: 3"):
        await env.evaluate("main.leave")
    with pytest.raises(InvalidTask, match=r"no function 'main.count'. Did you mean 'main.counted'"):
        await env.evaluate("main.count")
    with pytest.raises(InvalidTask, match=r"main\.counted\(to\) takes 1 argument, got 0"):
        await env.evaluate("main.counted")
    await env.reset(("main.begin", 5, 2))
    assert await env.evaluate(("main.counted", 10)) == 1.0
    await env.step()


@pytest.mark.sandbox
async def test_a_controller_of_a_folder_runs_in_a_sandbox(here: Place, machine: None) -> None:
    """Its functions set up, step and grade; each session has a place of its own."""
    env, other = await here.make(task(COUNTER)), await here.make(task(COUNTER))
    await check(env)
    assert (await other.step()).observation.text == '{"count": 1, "said": ""}'
    assert await env.evaluate("main.writable") is False, "the author's copy is not the agent's"
    with pytest.raises(GradingFailed, match=r"'main.vanish' ended without a result"):
        await env.evaluate("main.vanish")
    await env.step([{"type": "press", "keys": ["a"]}])
    record = await here.record(env)
    assert record.task.gym == COUNTER
    await env.close()
    assert "main.begin: it begins" in ((await here.record(env)).logs or "")


FORGER = textwrap.dedent("""
    import json, os, time
    forged = json.dumps({"result": 1.0}).encode()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for process in os.listdir("/proc"):
            if not process.isdigit() or int(process) == os.getpid():
                continue
            with open("looked", "a") as looked:
                looked.write(f"{process}\\n")
            try:
                descriptors = os.listdir(f"/proc/{process}/fd")
            except OSError:
                continue
            for name in descriptors:
                try:
                    if "pipe" in os.readlink(f"/proc/{process}/fd/{name}") and int(name) > 2:
                        fd = os.open(f"/proc/{process}/fd/{name}", os.O_WRONLY | os.O_NONBLOCK)
                        os.write(fd, forged)
                        os.close(fd)
                        open("forged", "a").write(name)
                except OSError:
                    pass
""")


@pytest.mark.long
@pytest.mark.sandbox
async def test_an_agent_s_program_cannot_write_what_a_grader_returns(
    here: Place, machine: None
) -> None:
    """Neither by what it inherits, nor by way of /proc while the grader runs."""
    env = await here.make(task(COUNTER, evaluate=("main.patient", 2)))
    told = await env.step({"type": "type", "text": "ls /proc/self/fd | wc -w"})
    said = json.loads(told.observation.text or "")["said"]
    assert int(said) == 4, "three, and the folder that it lists"
    command = f"cat > forger.py <<'X'\n{FORGER}\nX\nsetsid python3 forger.py >/dev/null 2>&1 &"
    await env.step({"type": "type", "text": command})
    assert [await env.evaluate(), await env.evaluate()] == [0.0, 0.0]
    seen = await env.step({"type": "type", "text": "cat looked | sort -u | wc -l"})
    said = json.loads(seen.observation.text or "")["said"]
    assert int(said) > 1, "it has looked at other processes"
    await env.close()
    assert env.reward == 0.0


@pytest.mark.long
async def test_an_image_or_a_dockerfile_runs_through_the_engine_that_is_found(
    here: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exact calls: build, run with the package read-only, exec for each function, remove."""
    monkeypatch.setenv("PATH", f"{ENGINES}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_ENGINE", str(tmp_path))
    env = await here.make(task(BOXED))
    await check(env)
    await env.close()

    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    tag = f"hud-env-{BOXED.name.removeprefix('custom-')}"
    assert calls[0] == ["build", "--tag", tag, str(GYMS / "boxed")]
    started = [call for call in calls if call[0] == "run"]
    assert len(started) == 2, "one to list its functions, one for the session"
    name = started[1][started[1].index("--name") + 1]
    mount = f"{GYMS / 'boxed' / 'hud_controller'}:/controller/hud_controller:ro"
    flags = ["--memory", "268435456", "--volume", mount]
    assert started[1] == ["run", "--detach", "--rm", "--init", "--name", name, *flags, tag]
    performed = [call for call in calls if call[0] == "exec" and call[2] == name]
    assert performed
    for call in performed:
        assert call[:6] == ["exec", "--interactive", name, "python3", "-I", "-c"]
        assert len(call) == 7, "arguments come by the pipe"
    assert calls[-1] == ["rm", "--force", name]

    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "Dockerfile").write_text("FROM nothing\n")
    with pytest.raises(GymMakeException, match=r"docker build failed \(1\): no such base image"):
        await here.make(task(CustomGym(image_or_build_context=broken)))
    wrong = BOXED.model_copy(update={"host_config": {"Memry": 3}})
    with pytest.raises(GymMakeException, match=r"no option 'Memry' here. Did you mean 'Memory'"):
        await here.make(task(wrong))


async def test_what_is_missing_is_said_and_nothing_is_built(
    here: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No engine, no folder, nothing in it, a cloud's gym, a row that is not the user's own."""
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    empty = tmp_path / "empty"
    empty.mkdir()
    for gym, said in (
        (CustomGym(image_or_build_context="an/image:1"), "neither `docker` nor `podman` is on"),
        (BOXED, "neither `docker` nor `podman` is on the PATH. Install one of them"),
        (CustomGym(image_or_build_context=tmp_path / "gone"), "There is no folder"),
        (CustomGym(image_or_build_context=empty), "neither a Dockerfile nor a package hud_contr"),
        (COUNTER.model_copy(update={"location": "remote"}), "ran in HUD's cloud; write location="),
    ):
        with pytest.raises(GymMakeException) as caught:
            await here.make(gym)
        assert said in str(caught.value)
    with pytest.raises(GymMakeException, match="came from a/dataset and contains its own gym"):
        await here.make(task(COUNTER, source="a/dataset"))
    with pytest.raises(GymMakeException, match="A custom gym runs only in this process"):
        await here_over(here, "stdio:")
    assert await here.count() == 0


async def here_over(place: Place, url: str) -> None:
    """Make a gym of a folder somewhere else."""
    place.url = url
    await place.make(task(COUNTER))


@pytest.mark.sandbox
async def test_a_function_that_takes_too_long_is_cut_off(here: Place, machine: None) -> None:
    """A call that is cancelled leaves no process, and the session goes on."""
    env = await here.make(task(COUNTER))
    with anyio.move_on_after(1.0) as scope:
        await env.evaluate(("main.patient", 60))
    assert scope.cancelled_caught
    with anyio.fail_after(PATIENCE_S):
        assert await env.evaluate(("main.counted", 1)) == 1.0
