"""Agents of other processes ask their model through the gateway of their job."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from provider_server import Asked, Call, ProviderServer, Refuses, Says, provider_server

from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store import Store
from hud_mcp.values.outcome import Outcome

AGENT = Path(__file__).with_name("gateway_agent.py")
ROOT = Path(__file__).resolve().parents[2]
SECRET = "sk-the-provider-s-key-0123456789"
STRAWBERRY = ("quickstart", "--filter", "count-r-strawberry")
RIGHT = Says(text="Three.", calls=(Call("response", {"answer": "3"}),), reasoning="s-t-r…")
PROVIDERS = {
    "messages": "anthropic",
    "chat": "openai-compatible",
    "responses": "openai",
    "gemini": "google",
}
_NAMES = ("ANTHROPIC", "OPENAI", "GEMINI", "MY_OPENAI", "OPENAI_COMPATIBLE")
KEYS = {f"{name}_API_KEY": SECRET for name in _NAMES}


@dataclass
class Place:
    """A folder in which `hud-mcp eval` runs, and a provider."""

    folder: Path
    server: ProviderServer

    def run(self, form: str, *options: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run the agent of a wire form through a taskset, by the provider of this form."""
        agent = shlex.join([sys.executable, str(AGENT), form])
        provider = PROVIDERS[form]
        base = self.server.base_url(provider)
        model = ("--model", f"{provider}:some-model", "--set", f"base_url={base}")
        return self.eval(*STRAWBERRY, "--agent-command", agent, *model, *options, **more)

    def eval(self, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run `hud-mcp eval` with keys in its environment."""
        store = ("--store", "s.sqlite3", "--report", "report.html")
        return subprocess.run(
            [sys.executable, "-m", "hud_mcp", "eval", *arguments, *store],
            cwd=self.folder, env={**os.environ, **KEYS, "PYTHONPATH": str(ROOT), **more},
            text=True, capture_output=True, check=False, timeout=300,
        )  # fmt: skip

    def record(self) -> Trajectory:
        """The record of its newest run, with its turns."""

        async def read() -> Trajectory:
            store = Store(str(self.folder / "s.sqlite3"))
            try:
                jobs = await store.list_jobs()
                newest = max(jobs, key=lambda job: job.created_at)
                _, (run,) = await store.load_job(newest.id, turns=True)
                return run
            finally:
                await store.close()

        return anyio.run(read)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A provider that knows the answer."""
    with provider_server(lambda _asked: RIGHT) as server:
        yield Place(tmp_path, server)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", PROVIDERS)
def test_the_turns_of_any_agent_are_recorded_with_their_steps(place: Place, form: str) -> None:
    """With text, call, tokens and price, in each wire form; the provider sees its own key."""
    done = place.run(form, "--set", "price=1000,10000")
    assert done.returncode == 0, done.stdout + done.stderr

    run = place.record()
    assert run.reward == 1.0
    (turn,) = run.turns
    assert (turn.source, turn.text, turn.model) == (
        "gateway", "Three.", f"{PROVIDERS[form]}:some-model",
    )  # fmt: skip
    assert [call.name for call in turn.calls] == ["response"]
    assert turn.call_steps == (0,)
    assert (turn.usage.input, turn.usage.output) == (100, 10)
    assert turn.cost_usd == pytest.approx(0.2)
    (asked,) = place.server.asked
    assert SECRET in " ".join(asked.headers.values())
    assert SECRET not in (place.folder / "s.sqlite3").read_bytes().decode(errors="replace")


@pytest.mark.long
def test_an_agent_finds_no_provider_s_key(place: Place) -> None:
    """Not in its variables, its home, or the environments of other processes that it may read."""
    finds = place.folder / "finds.json"
    done = place.run("messages", AGENT_FINDS=str(finds))
    assert done.returncode == 0, done.stdout + done.stderr
    seen = finds.read_text()
    assert SECRET not in seen
    assert json.loads(seen)["home"] == []


@pytest.fixture
def open_place() -> Iterator[Place]:
    """A folder that everybody may enter, with the home of a person in it."""
    with TemporaryDirectory() as made, provider_server(lambda _asked: RIGHT) as server:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "finds").mkdir()
        (folder / "finds").chmod(0o777)
        (folder / "home" / ".config").mkdir(parents=True)
        (folder / "home" / ".config" / "login").write_text("the login of a person")
        yield Place(folder, server)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="not on this machine: root")
def test_an_agent_of_root_is_nobody_and_reads_nothing_of_root(open_place: Place) -> None:
    """Neither records, nor the home, nor the environment of the server, nor another run's folder.

    Its own program, its home and the key of its model are there.
    """
    folder = open_place.folder
    hides = {"HOME": str(folder / "home"), "HUD_MCP_TOKEN": "a token of the server"}
    looks = {"AGENT_LOOKS": f"{folder / 's.sqlite3'}:{folder / 'home'}"}
    finds = {"AGENT_FINDS": str(folder / "finds" / "finds.json")}
    done = open_place.run("messages", **hides, **looks, **finds)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as root" not in done.stdout + done.stderr
    seen = json.loads((folder / "finds" / "finds.json").read_text())
    assert seen["user"] == 65534
    assert seen["entered"] == seen["read"] == seen["home"] == []
    assert all("MODEL" in each or "bwrap" in each for each in seen["processes"])
    assert SECRET not in str(seen)
    assert "a token of the server" not in str(seen)
    assert [turn.source for turn in open_place.record().turns] == ["gateway"]


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="not on this machine: root")
def test_an_agent_in_a_closed_folder_runs_as_root_with_a_warning(open_place: Place) -> None:
    """Nobody could not read its program there."""
    open_place.folder.chmod(0o700)
    done = open_place.run("messages")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs as root, which reads all" in done.stdout + done.stderr


@pytest.mark.long
def test_a_budget_ends_an_agent_with_the_reason(place: Place) -> None:
    """What a request may cost is reserved, and no request goes to the provider beyond it."""
    done = place.run("messages", "--set", "price=1000,10000", "--set", "max_cost_per_run=0.001")
    assert done.returncode == 1
    run = place.record()
    assert run.reward is None
    assert "--max-cost-per-run" in (run.error or "")
    assert place.server.asked == []


@pytest.mark.long
def test_a_bound_of_turns_ends_an_agent_that_goes_on(place: Place) -> None:
    """The third request is refused in the provider's form."""
    place.server.script = lambda _asked: Says(calls=(Call("step", {"actions": []}),))
    place.run("messages", "--set", "max_turns=2")
    run = place.record()
    assert len(run.turns) == len(place.server.asked) == 2
    assert "max" in (run.error or "")
    assert [turn.steps[0] for turn in run.turns] == [0, 1]


@pytest.mark.long
def test_an_agent_that_hears_no_refusal_is_ended_with_its_reason(place: Place) -> None:
    """Long before its time is up."""
    code = (
        "import json, os, urllib.error, urllib.request as web\n"
        "body = {'model': 'x', 'max_tokens': 5, 'messages': [{'role': 'user', 'content': 'hi'}]}\n"
        "url = os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages'\n"
        "key = {'x-api-key': os.environ['ANTHROPIC_API_KEY']}\n"
        "while True:\n"
        "    try: web.urlopen(web.Request(url, json.dumps(body).encode(), key))\n"
        "    except urllib.error.HTTPError: pass\n"
    )
    model = ("--model", "anthropic:x", "--set", f"base_url={place.server.base_url('anthropic')}")
    agent = shlex.join([sys.executable, "-c", code])
    limits = ("--set", "max_turns=2", "--timeout", "280")
    place.eval(*STRAWBERRY, "--agent-command", agent, *model, *limits)
    run = place.record()
    assert len(place.server.asked) == len(run.turns) == 2
    assert "--max-turns" in (run.error or "")


@pytest.mark.long
def test_a_provider_that_is_busy_is_asked_again(place: Place) -> None:
    """The agent sees the reply alone."""

    def script(asked: Asked) -> Says | Refuses:
        return RIGHT if asked.number else Refuses(429, "slow down", {"retry-after": "0"})

    place.server.script = script
    done = place.run("messages")
    assert done.returncode == 0, done.stdout + done.stderr
    (turn,) = place.record().turns
    assert len(place.server.asked) == 2
    assert turn.error is None


@pytest.mark.long
def test_without_key_or_model_the_agent_goes_its_own_way(place: Place) -> None:
    """The job says that its turns are not recorded."""
    agent = shlex.join([sys.executable, "-c", "import os; os._exit(0)"])
    nothing = dict.fromkeys(KEYS, "")
    done = place.eval(*STRAWBERRY, "--agent-command", agent, **nothing)
    assert "turns" in done.stderr + done.stdout
    refused = place.eval(*STRAWBERRY, "--agent-command", agent, "--max-cost", "1", **nothing)
    assert refused.returncode != 0
    receipt = place.record().receipt
    assert receipt is not None
    assert receipt.outcome is Outcome.CANCELLED


@pytest.mark.long
def test_a_resumed_job_goes_on_from_what_it_has_cost(place: Place) -> None:
    """As the gateway counted it: an agent's own report of a great cost does not."""
    agent = shlex.join([sys.executable, str(AGENT), "messages"])
    # A reply costs $0.002, and may cost about $0.085 before it is known.
    limits = ("--max-cost", "0.09", "--set", "price=10,100")
    where = {"ANTHROPIC_BASE_URL": place.server.base_url("anthropic")}
    at = {"started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:01Z"}
    forged = json.dumps({"hud-mcp/model": {"cost_usd": 1000, **at}})
    rows = ("quickstart", "--filter", "count-*", "--max-concurrent", "1")
    first = place.eval(*rows, "--agent-command", agent, *limits, **where, AGENT_REPORTS=forged)
    job = re.search(r"job-\w+", first.stdout + first.stderr)
    assert job is not None, first.stdout + first.stderr
    assert 0 < len(place.server.asked) < 6
    assert "may cost $0.09 (--max-cost)" in first.stderr + first.stdout

    again = place.eval("--resume", job[0], "--max-cost", "1", **where, AGENT_REPORTS=forged)
    assert len(place.server.asked) == 6, again.stdout + again.stderr
    assert "6 runs" in again.stdout
    assert "$0.012" in again.stdout + again.stderr


def test_any_program_is_given_a_model_by_hand(place: Place) -> None:
    """Its turns go to a file; it has an address and a key of its own, and not the provider's."""
    code = (
        "import json, os, urllib.request as web\n"
        "body = {'model': 'x', 'max_tokens': 5, 'messages': [{'role': 'user', 'content': 'hi'}]}\n"
        "url = os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages'\n"
        "key = {'x-api-key': os.environ['ANTHROPIC_API_KEY']}\n"
        "print(web.urlopen(web.Request(url, json.dumps(body).encode(), key)).status)\n"
        f"print([name for name, value in os.environ.items() if {SECRET!r} in value])\n"
    )
    where = {"ANTHROPIC_BASE_URL": place.server.base_url("anthropic")}
    command = ["gateway", "anthropic:some-model", "turns.jsonl", sys.executable, "-c", code]
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", *command], cwd=place.folder, text=True,
        env={**os.environ, **KEYS, **where, "PYTHONPATH": str(ROOT)}, capture_output=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["200", "[]"], done.stderr
    turn = json.loads((place.folder / "turns.jsonl").read_text())
    assert (turn["model"], turn["text"]) == ("anthropic:some-model", "Three.")


@pytest.mark.long
def test_a_wrong_model_is_told_in_a_sentence(place: Place) -> None:
    """Before anything begins, and with what to write."""
    both = place.eval(*STRAWBERRY, "--agent", "oracle", "--model", "anthropic:x")
    assert "oracle asks no other model, so leave out --model anthropic:x" in both.stderr
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", "gateway", "nope", "turns.jsonl"], cwd=place.folder,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "'nope' names no model; write PROVIDER:MODEL" in done.stderr
    assert "pydantic" not in done.stderr
