"""`hud-mcp eval --agent PROVIDER:MODEL`: a model behind its provider's protocol."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from provider_server import (
    Asked,
    Call,
    ProviderServer,
    Refuses,
    Says,
    Script,
    overflows,
    provider_server,
)
from skips import skip_here
from waiting import PATIENCE_S

from hud_mcp import Job, evaluate
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.gateway.keys import KEYS
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.store import Store
from hud_mcp.values.outcome import Cause, Outcome

ROOT = Path(__file__).resolve().parents[2]
SECRET = "sk-a-secret-of-the-test"
STRAWBERRY = ("quickstart", "--filter", "count-r-strawberry")
MODELS = {
    "openai-compatible": "some-model",
    "anthropic": "claude-opus-5",
    "openai": "gpt-5",
    "google": "gemini-2.5-pro",
}
RIGHT = Says(calls=(Call("response", {"answer": "3"}),))


@dataclass
class Command:
    """`hud-mcp eval` in a folder of its own, with a provider's server.

    Attributes:
        folder: Where its record and its report are.
        server: What the model is behind.
        provider: Whose protocol it speaks.
    """

    folder: Path
    server: ProviderServer
    provider: str = "openai-compatible"

    def run(self, *options: str, resumes: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run it to its end; a resumed job takes the model from its record."""
        model = f"{self.provider}:{MODELS[self.provider]}"
        named = ["--agent", model, "--set", f"base_url={self.server.base_url(self.provider)}"]
        begins = ["--resume", resumes] if resumes else named
        keys = {name: SECRET for names in KEYS.values() for name in names[:1]}
        place = ["--store", "s.sqlite3", "--report", "report.html"]
        return subprocess.run(
            [sys.executable, "-m", "hud_mcp", "eval", *options, *begins, *place],
            cwd=self.folder, env={**os.environ, **keys, "PYTHONPATH": str(ROOT)}, text=True,
            capture_output=True, check=False, timeout=300,
        )  # fmt: skip

    def runs(self) -> list[TrajectorySummary]:
        """What is recorded of the runs of its one job."""

        async def read() -> list[TrajectorySummary]:
            store = Store(str(self.folder / "s.sqlite3"))
            try:
                (job,) = await store.list_jobs()
                return list((await store.load_job_summary(job.id))[2])
            finally:
                await store.close()

        with ThreadPoolExecutor() as another:  # this thread may have a loop
            return another.submit(anyio.run, read).result()


@contextmanager
def command(
    tmp_path: Path, script: Script, provider: str = "openai-compatible"
) -> Iterator[Command]:
    """A command whose model does what a script says."""
    with provider_server(script) as server:
        yield Command(tmp_path, server, provider)


def job_of(printed: str) -> str:
    """The job that a command ran."""
    found = re.search(r"Job (job-\w+)", printed)
    assert found, printed
    return found[1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("provider", MODELS)
def test_a_model_answers_through_the_tools_of_any_client(provider: str, tmp_path: Path) -> None:
    """It looks, submits, and is graded; its key is in no file that the command leaves."""

    def script(asked: Asked) -> Says:
        if asked.heard.turns == 0:
            return Says("I look.", (Call("step", {"actions": []}),), reasoning="Three, I think.")
        return RIGHT

    with command(tmp_path, script, provider) as model:
        done = model.run(*STRAWBERRY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mean reward  1.000" in done.stdout
    first, second = (asked.heard for asked in model.server.asked)
    assert first.prompt.startswith("How many times does the letter 'r' occur in 'strawberry'?")
    assert {"step", "response"} <= set(first.tools)
    assert not {"start_task", "list_tasks", "note"} & set(first.tools)
    assert all("session" not in schema["properties"] for schema in first.tools.values())
    assert "nothing to look at" in second.results[0]
    (run,) = model.runs()
    assert run.use is not None
    assert (run.use.turns, run.use.input, run.use.output) == (2, 200, 20)
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes(), file
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("look", "pictures", "reads"), [
    ("both", 1, True), ("text", 0, True), ("image", 1, False),
])  # fmt: skip
def test_a_model_works_in_a_browser(
    look: str, pictures: int, *, reads: bool, tmp_path: Path
) -> None:
    """It goes to a page, is shown what it is to see of it, and answers."""

    def script(asked: Asked) -> Says:
        if asked.heard.turns == 0:
            goto = {"type": "custom", "action": "goto", "args": {"url": "/product/heron-lamp"}}
            return Says(calls=(Call("step", {"actions": [goto]}),))
        return Says(calls=(Call("response", {"answer": "59.90"}),))

    with command(tmp_path, script) as model:
        done = model.run("quickstart", "--filter", "shop-price-lamp", "--look", look)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (asked.heard for asked in model.server.asked)
    assert ("The screen is 1280 x 800 pixels." in first.prompt) is (look != "text")
    assert ("screenshot" in first.tools) is (look != "text")
    assert second.pictures == pictures
    assert ("Page: " in second.results[0]) is reads


@pytest.mark.long
def test_a_model_that_ends_with_text_has_answered(tmp_path: Path) -> None:
    """Its text is submitted as it is."""
    with command(tmp_path, lambda _asked: Says("3")) as model:
        done = model.run(*STRAWBERRY)
    assert "mean reward  1.000" in done.stdout, done.stdout + done.stderr
    assert len(model.server.asked) == 1


@pytest.mark.long
def test_a_model_that_says_nothing_is_reminded_and_then_answers_nothing(tmp_path: Path) -> None:
    """So that what it did is graded, and it does not end beside the mean."""
    with command(tmp_path, lambda _asked: Says("")) as model:
        done = model.run(*STRAWBERRY)
    assert "mean reward  0.000" in done.stdout, done.stdout + done.stderr
    assert len(model.server.asked) == 3


@pytest.mark.long
def test_arguments_that_are_no_object_come_back_to_the_model(tmp_path: Path) -> None:
    """Nothing is called, and it may write them again."""

    def script(asked: Asked) -> Says:
        if asked.heard.turns == 0:
            return Says(calls=(Call("response", '{"answer": 3'),))
        return RIGHT

    with command(tmp_path, script) as model:
        done = model.run(*STRAWBERRY)
    assert "mean reward  1.000" in done.stdout, done.stdout + done.stderr
    assert "no JSON object" in model.server.asked[1].heard.results[0]


@pytest.mark.long
def test_a_model_calls_no_other_tools_than_its_own(tmp_path: Path) -> None:
    """Neither what reports its side of the record, nor what begins another session."""

    def script(asked: Asked) -> Says:
        if asked.heard.turns == 0:
            other = {"task": "count-s-mississippi"}
            return Says(calls=(Call("note", {"text": "cheap"}), Call("start_task", other)))
        return RIGHT

    with command(tmp_path, script) as model:
        done = model.run(*STRAWBERRY)
    assert "mean reward  1.000" in done.stdout, done.stdout + done.stderr
    refused = model.server.asked[1].heard.results
    assert ["There is no tool" in text for text in refused] == [True, True]
    (run,) = model.runs()
    assert run.use is not None
    assert run.use.turns == 2


@pytest.mark.long
def test_a_refused_model_is_the_operators_failure_and_the_job_can_be_resumed(
    tmp_path: Path,
) -> None:
    """No reward of 0: the job stops at once, and goes on once the key is right."""
    with command(tmp_path, lambda _asked: Refuses(401, f"wrong key {SECRET}")) as model:
        done = model.run(*STRAWBERRY, "--group", "3", "--max-concurrent", "1")
        assert done.returncode == 1
        assert "The job was stopped" in done.stdout
        assert "status 401" in done.stdout
        assert SECRET not in done.stdout
        assert len(model.server.asked) == 1
        (run,) = model.runs()
        assert (run.outcome, run.cause) == (Outcome.CANCELLED, Cause.OPERATOR)
        model.server.script = lambda _asked: RIGHT
        again = model.run(resumes=job_of(done.stdout))
    assert again.returncode == 0, again.stdout + again.stderr
    assert "mean reward  1.000" in again.stdout
    assert "over 3 graded of 3 runs" in again.stdout


@pytest.mark.long
def test_a_provider_that_is_silent_until_the_run_ends_is_nobodys_result(tmp_path: Path) -> None:
    """The time was the provider's, so the run can be resumed."""
    over = threading.Event()

    def script(_asked: Asked) -> Says:
        over.wait(PATIENCE_S)
        return RIGHT

    with command(tmp_path, script) as model:
        done = model.run(*STRAWBERRY, "--timeout", "2")
        over.set()
    assert "provider had not replied for" in done.stdout, done.stdout + done.stderr
    assert "--resume" in done.stdout
    (run,) = model.runs()
    assert (run.outcome, run.cause) == (Outcome.CANCELLED, Cause.OPERATOR)


@pytest.mark.long
def test_a_full_context_counts_as_the_agents(tmp_path: Path) -> None:
    """It is not run again."""
    with command(tmp_path, overflows) as model:
        done = model.run(*STRAWBERRY)
    assert done.returncode == 1
    assert "context was full" in done.stdout
    assert "--resume" not in done.stdout
    (run,) = model.runs()
    assert (run.outcome, run.cause) == (Outcome.CANCELLED, Cause.AGENT)


@pytest.mark.long
def test_the_cost_of_a_job_stops_it_until_it_may_cost_more(tmp_path: Path) -> None:
    """What it had cost counts on; runs that were cut off say nothing of the agent."""
    million = Says(calls=(Call("response", {"answer": "3"}),), tokens=(1_000_000, 0))
    with command(tmp_path, lambda _asked: million) as model:
        limits = ("--price", "1,1", "--max-cost", "1.5", "--max-concurrent", "1")
        done = model.run(*STRAWBERRY, "--group", "4", *limits)
        assert done.returncode == 1
        assert "has cost $2 and may cost $1.5" in done.stdout, done.stdout + done.stderr
        assert len(model.server.asked) == 2
        job = job_of(done.stdout)
        same = model.run(resumes=job)
        assert len(model.server.asked) == 2, same.stdout
        more = model.run("--max-cost", "9", resumes=job)
    assert more.returncode == 0, more.stdout + more.stderr
    assert "over 4 graded of 4 runs" in more.stdout
    assert len(model.server.asked) == 4


@pytest.mark.long
def test_python_gives_a_stopped_job_a_larger_budget_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options of its model; another option than its limits is refused."""
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", SECRET)
    million = Says(calls=(Call("response", {"answer": "3"}),), tokens=(1_000_000, 0))
    with command(tmp_path, lambda _asked: million) as model:
        limits = ("--price", "1,1", "--max-cost", "1.5", "--max-concurrent", "1")
        job = job_of(model.run(*STRAWBERRY, "--group", "4", *limits).stdout)
        options = ModelOptions(
            name="openai-compatible:some-model",
            base_url=model.server.base_url("openai-compatible"),
            price=(1, 1),
            max_cost_usd=9,
        )

        async def resume(options: ModelOptions) -> Job:
            return await evaluate(agent=options, resume=job, store=str(tmp_path / "s.sqlite3"))

        with pytest.raises(HudMcpError, match="has look 'both', and 'text' was given"):
            anyio.run(resume, options.model_copy(update={"look": "text"}))
        resumed = anyio.run(resume, options)
    assert [run.reward for run in resumed.runs] == [1.0] * 4
    assert len(model.server.asked) == 4


@pytest.mark.long
def test_the_cost_of_a_run_ends_it_as_its_result(tmp_path: Path) -> None:
    """The others of the job go on."""
    looks = Says(calls=(Call("step", {"actions": []}),), tokens=(600_000, 0))
    with command(tmp_path, lambda _asked: looks) as model:
        limits = ("--price", "1,1", "--max-cost-per-run", "1.5")
        done = model.run(*STRAWBERRY, "--group", "2", *limits)
    assert "--max-cost-per-run" in done.stdout, done.stdout + done.stderr
    assert [(r.outcome, r.cause) for r in model.runs()] == [(Outcome.CANCELLED, Cause.AGENT)] * 2
    assert len(model.server.asked) == 4


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-cost", "1"), "--price IN,OUT"),
        (("--system", "none.txt"), "none.txt cannot be read"),
        (("--price", "cheap"), "IN,OUT"),
        (("--max-tokens", "0"), "max-tokens"),
        (("--model", "openai:x"), "Give one agent: --agent oracle"),
    ],
)
def test_options_that_cannot_work_are_refused_before_anything_is_asked(
    options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    """With what to write; no job is begun."""
    with command(tmp_path, lambda _asked: RIGHT) as model:
        done = model.run(*STRAWBERRY, *options)
    assert done.returncode != 0
    assert said in done.stderr
    assert model.server.asked == []
    assert not (tmp_path / "report.html").exists()


@pytest.mark.long
def test_an_option_of_a_model_needs_one(tmp_path: Path) -> None:
    """It would do nothing for another agent."""
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", "eval", *STRAWBERRY, "--agent", "nop", "--rpm", "3"],
        cwd=tmp_path, text=True, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--rpm needs a model; give --agent PROVIDER:MODEL." in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("missing", ["pydantic_ai", "anthropic"])
def test_a_missing_extra_says_how_to_install_it(missing: str, tmp_path: Path) -> None:
    """In one line, before anything is recorded."""
    program = (
        f"import sys\nsys.modules[{missing!r}] = None\nfrom hud_mcp.cli import main\n"
        "main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "eval", *STRAWBERRY, "--model", "anthropic:claude-opus-5"],
        cwd=tmp_path, env={**os.environ, "ANTHROPIC_API_KEY": SECRET}, text=True,
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "pip install 'hud-mcp[agents]'" in done.stderr
    assert "Traceback" not in done.stderr


REAL = {
    "anthropic": "anthropic:claude-haiku-5-5",
    "openai": "openai:gpt-5-mini",
    "google": "google:gemini-2.5-flash",
}
"""Small models, which the test below pays for where a key is set."""


@pytest.mark.parametrize("provider", REAL)
def test_a_real_model_solves_a_task_where_a_key_is_set(provider: str, tmp_path: Path) -> None:
    """`ANTHROPIC_API_KEY=… make test TESTS=tests/agents/test_model_eval.py` runs it."""
    if not any(os.environ.get(name) for name in KEYS[provider]):
        skip_here(f"{KEYS[provider][0]} is not set, and a run costs money")
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", "eval", *STRAWBERRY, "--model", REAL[provider],
         "--max-cost", "0.05", "--max-steps", "5", "--store", "s.sqlite3", "--report", "r.html"],
        cwd=tmp_path, text=True, capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "over 1 graded of 1 run" in done.stdout
