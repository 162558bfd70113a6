"""Claude Code, Codex and Gemini CLI work through a gateway, with a provider of this machine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from provider_server import (
    Asked,
    Breaks,
    Call,
    ProviderServer,
    Refuses,
    Says,
    provider_server,
)

from hud_mcp import evaluate
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store import Store

pytestmark = pytest.mark.peers

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
}
# Codex's own default has no price, and Gemini asks a small model which one to take.
AGENTS = {"claude-code": "claude-code", "codex": "codex:gpt-5.1-codex",
          "gemini": "gemini:gemini-3.1-pro-preview"}  # fmt: skip
ROWS = {"count-r-strawberry": "quickstart", "shop-price-lamp": "quickstart",
        "shell-find-twin": "shell"}  # fmt: skip
RUN_S = 400


@pytest.fixture(scope="module", params=PACKAGES)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of an agent, whose program is on PATH."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("not on this machine: npm, which brings the programs")
    folder = ROOT / ".venv-programs"
    done = subprocess.run(
        [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", folder,
         PACKAGES[request.param]],
        timeout=RUN_S, check=False, capture_output=True, text=True,
        cwd=tmp_path_factory.mktemp("npm"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return request.param


@dataclass
class Place:
    """A folder with rows, their right answers, and a provider that a model is behind."""

    folder: Path
    agent: str
    server: ProviderServer
    answers: dict[str, str] = field(default_factory=dict)

    def begin(self, *options: str) -> "subprocess.Popen[str]":
        """Start `hud-mcp eval` with the agent; its provider is the one of this machine."""
        bins = str(ROOT / ".venv-programs" / "node_modules" / ".bin")
        address = self.server.url
        variables = {
            "PATH": f"{bins}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
            "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "sk-the-key-of-the-test-1",
            "OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "sk-the-key-of-the-test-2",
            "GOOGLE_GEMINI_BASE_URL": address, "GEMINI_API_KEY": "sk-the-key-of-the-test-3",
        }  # fmt: skip
        place = ("--store", "s.sqlite3", "--report", "report.html", "--max-concurrent", "1")
        return subprocess.Popen(
            [sys.executable, "-m", "hud_mcp", "eval", *options, *place], cwd=self.folder,
            env={**os.environ, **variables}, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    def eval(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Run it to its end; its errors are among what it prints."""
        with self.begin(*options) as running:
            printed, _ = running.communicate(timeout=RUN_S)
        return subprocess.CompletedProcess(running.args, running.returncode, printed, "")

    def job(self) -> str:
        """The id of its one job."""
        return self._read()[0]

    def play(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Run the agent through the rows."""
        return self.eval("rows.jsonl", "--agent", AGENTS[self.agent], *options)

    def runs(self) -> list[Trajectory]:
        """The records of the runs of its one job, with their turns."""
        return self._read()[1]

    def _read(self) -> tuple[str, list[Trajectory]]:
        async def read() -> tuple[str, list[Trajectory]]:
            store = Store(str(self.folder / "s.sqlite3"))
            try:
                (job,) = await store.list_jobs()
                return job.id, (await store.load_job(job.id, turns=True))[1]
            finally:
                await store.close()

        return anyio.run(read)

    def solve(self, asked: Asked) -> Says:
        """Look once, then answer rightly, as a model would."""
        named = {name.rpartition("__")[2].rpartition("/")[2].rpartition("_")[2]: name
                 for name in asked.heard.tools}  # fmt: skip
        if "response" not in named:
            return Says("A title")
        if asked.heard.turns == 0:
            return Says("I look.", (Call(named["step"], {"actions": []}),), reasoning="First.")
        if asked.heard.turns == 1:
            said = json.dumps(asked.body)
            answers = self.answers.items()
            answer = next(text for of, text in answers if json.dumps(of)[1:-1] in said)
            return Says("I answer.", (Call(named["response"], {"answer": answer}),))
        return Says("Done.")


@contextmanager
def made_place(folder: Path, agent: str, rows: dict[str, str]) -> Iterator[Place]:
    """Write rows, and find their answers by their oracles."""
    text = ""
    for row, of in rows.items():
        lines = (ROOT / "taskset_data" / f"{of}.jsonl").read_text(encoding="utf-8").splitlines()
        text += next(line for line in lines if json.loads(line)["id"] == row) + "\n"
    (folder / "rows.jsonl").write_text(text, encoding="utf-8")

    async def solved() -> dict[str, str]:
        store = str(folder / "oracle.sqlite3")
        job = await evaluate(folder / "rows.jsonl", "oracle", store=store)
        found = await job.load_trajectories()
        return {str(run.prompt): run.steps[-1].actions[0]["text"] for run in found}

    with provider_server(lambda _asked: Says()) as server:
        place = Place(folder, agent, server, anyio.run(solved))
        server.script = place.solve
        yield place


def test_a_program_plays_a_question_a_browser_and_a_shell(program: str, tmp_path: Path) -> None:
    """To a grade, with its turns, tokens and price, which are those that the provider counted."""
    with made_place(tmp_path, program, ROWS) as place:
        done = place.play()
        assert done.returncode == 0, done.stdout + done.stderr
        asked = len(place.server.asked)
    runs = place.runs()
    assert [run.reward for run in runs] == [1.0, 1.0, 1.0]
    turns = [turn for run in runs for turn in run.turns]
    assert len(turns) == asked
    assert {turn.source for turn in turns} == {"gateway"}
    assert sum(turn.usage.input or 0 for turn in turns) == 100 * asked
    assert all((turn.cost_usd or 0) > 0 for turn in turns)
    for run in runs:
        named = [call.name.rpartition("_")[2] for turn in run.turns for call in turn.calls]
        assert named[:2] == ["step", "response"]
        joined = [index for turn in run.turns for index in turn.call_steps]
        assert [run.steps[index].kind for index in joined if index is not None] == named[:2]
        assert joined[:2] == [step.index for step in run.steps]
    recorded = (tmp_path / "s.sqlite3").read_bytes()
    assert b"sk-the-key-of-the-test" not in recorded


def test_a_budget_ends_a_program(program: str, tmp_path: Path) -> None:
    """It ends soon after the refusal, and the run says the reason."""
    with made_place(tmp_path, program, {"count-r-strawberry": "quickstart"}) as place:
        done = place.play("--set", "max_cost_per_run=0.00001")
        assert place.server.asked == []
    (run,) = place.runs()
    assert "--max-cost-per-run" in (run.error or ""), done.stdout + done.stderr


def test_a_program_goes_on_after_a_reply_that_broke_off(program: str, tmp_path: Path) -> None:
    """The broken turn is recorded as such, and what is asked again is marked."""
    with made_place(tmp_path, program, {"count-r-strawberry": "quickstart"}) as place:
        broken: list[Asked] = []

        def script(asked: Asked) -> Says | Refuses | Breaks:
            says = place.solve(asked)
            if says.calls and not broken:
                broken.append(asked)
                return Breaks(says)
            return says

        place.server.script = script
        place.play()
    (run,) = place.runs()
    # Gemini's reply is one event, so nothing of it had gone, and the gateway tried again.
    assert any(turn.is_broken or turn.tries for turn in run.turns)
    assert run.reward == 1.0


def test_a_killed_job_resumes_with_what_its_program_has_cost(program: str, tmp_path: Path) -> None:
    """A turn that was answered is in the record, though the runner was killed after it."""
    with made_place(tmp_path, program, {"count-r-strawberry": "quickstart"}) as place:
        running = place.begin("rows.jsonl", "--agent", AGENTS[program])

        def script(asked: Asked) -> Says:
            says = place.solve(asked)
            if asked.heard.turns == 1 and running.poll() is None:
                running.kill()
            return says

        place.server.script = script
        with running:
            running.communicate(timeout=RUN_S)
        again = place.eval("--resume", place.job())
        assert again.returncode == 0, again.stdout + again.stderr
    runs = place.runs()
    assert [run.reward for run in runs] == [None, 1.0]
    assert [turn.text for turn in runs[0].turns] == ["I look."]
