"""What a model may use: rates, cost, and what its options admit."""

import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from pydantic import ValidationError
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp.agents.agent import BoundReached, JobHalted
from hud_mcp.agents.model.options import ModelOptions, read_system
from hud_mcp.base.contention import Contention, Pauses
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.spending import Prices, Rates, Spending
from hud_mcp.values.model_turn import TokenUsage

MILLION = TokenUsage(input=1_000_000, output=1_000_000)


class Clock:
    """A clock that goes on only while somebody waits."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        """The time."""
        return self.now_s

    async def pause(self, seconds: float) -> None:
        """Wait."""
        self.now_s += seconds
        await anyio.lowlevel.checkpoint()


@pytest.mark.anyio
async def test_a_minute_has_so_many_requests() -> None:
    """The next one waits until the oldest is a minute old."""
    clock = Clock()
    rates = Rates(rpm=3, now=clock.now, pause=clock.pause)
    at = [(await rates.admit(1)).at_s for _ in range(7)]
    assert at == [0, 0, 0, 60, 60, 60, 120]


@pytest.mark.anyio
async def test_a_minute_has_so_many_tokens() -> None:
    """By what a request took, once that is known; a larger one goes alone."""
    clock = Clock()
    rates = Rates(tpm=100, now=clock.now, pause=clock.pause)
    first = await rates.admit(90)
    first.tokens = 30  # it took less than was expected
    second = await rates.admit(70)
    third = await rates.admit(500)
    fourth = await rates.admit(1)
    assert [t.at_s for t in (first, second, third, fourth)] == [0, 0, 60, 120]


@pytest.mark.anyio
async def test_runs_that_wait_share_one_minute() -> None:
    """However many ask at once."""
    clock = Clock()
    rates = Rates(rpm=2, now=clock.now, pause=clock.pause)
    at: list[float] = []

    async def one() -> None:
        at.append((await rates.admit(1)).at_s)

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(one)
    assert at == [0, 0, 60, 60, 120, 120]


@pytest.mark.anyio
async def test_a_cost_that_is_reached_while_a_request_waits_for_its_turn_stops_it() -> None:
    """So a job costs no more than what was being asked when it had cost enough."""
    clock, spending = Clock(), Spending(limit_usd=1.0)
    rates = Rates(rpm=1, now=clock.now, pause=clock.pause)
    run = spending.of_run()
    await rates.admit(1, run.check)
    halted: list[str] = []

    async def wait() -> None:
        try:
            await rates.admit(1, spending.of_run().check)
        except JobHalted as exc:
            halted.append(str(exc))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        run.add(2.0)
    assert len(halted) == 3
    assert clock.now_s == 60, "what was not asked takes nobody's turn"


def test_a_job_that_has_cost_enough_halts() -> None:
    """What was spent before it was resumed counts."""
    spending = Spending(limit_usd=1.0, spent_usd=0.5)
    run, other = spending.of_run(), spending.of_run()
    run.check()
    run.add(0.6)
    with pytest.raises(JobHalted, match=r"has cost \$1.1 and may cost \$1 \(--max-cost\)"):
        other.check()


def test_a_run_that_has_cost_enough_ends_as_its_result() -> None:
    """The others go on."""
    spending = Spending(per_run_usd=0.5)
    run, other = spending.of_run(), spending.of_run()
    run.add(0.6)
    with pytest.raises(BoundReached, match="--max-cost-per-run"):
        run.check()
    other.check()


def test_a_limit_needs_counted_tokens() -> None:
    """A provider that tells none would spend without end."""
    Spending().of_run().add(None)
    with pytest.raises(JobHalted, match="does not report the tokens"):
        Spending(limit_usd=1.0).of_run().add(None)


@pytest.mark.parametrize(
    "name", ["anthropic:claude-opus-5", "openai:gpt-5", "google:gemini-2.5-pro"]
)
def test_the_price_of_a_known_model_is_listed(name: str) -> None:
    """And cached tokens cost less."""
    prices = Prices(ModelOptions(name=name, max_cost_usd=1))
    prices.need()
    whole = prices.cost(MILLION)
    cached = prices.cost(MILLION.model_copy(update={"cached": 900_000}))
    assert whole is not None
    assert cached is not None
    assert 0 < cached < whole


def test_a_model_without_a_price_needs_one_where_its_cost_is_limited() -> None:
    """`--price` gives it, for a million tokens in and out."""
    unknown = ModelOptions(name="anthropic:no-such-model-1")
    Prices(unknown).need()
    limited = unknown.model_copy(update={"max_cost_per_run_usd": 1.0})
    with pytest.raises(HudMcpError, match="--price IN,OUT"):
        Prices(limited).need()
    priced = limited.model_copy(update={"price": (2.0, 10.0)})
    Prices(priced).need()
    assert Prices(priced).cost(TokenUsage(input=500_000, output=100_000)) == 2.0


@each_of(
    ("given", "said"),
    [
        ({"name": "claude"}, "PROVIDER:MODEL"),
        ({"name": "antropic:claude"}, "Did you mean 'anthropic'"),
        ({"name": "openai:"}, "PROVIDER:MODEL"),
        ({"name": "openai-compatible:x"}, "needs --base-url"),
        ({"name": "openai:x", "base_url": "localhost:1"}, "http://"),
        ({"name": "openai:x", "base_url": "https://me:secret@host/v1"}, "in the environment"),
        ({"name": "openai:x", "base_url": "https://host/v1?key=secret"}, "in the environment"),
    ],
)
def test_options_that_cannot_work_are_refused(given: dict[str, str], said: str) -> None:
    """With what to write; an address holds no secret, as it is recorded."""
    with pytest.raises(ValidationError, match=said):
        ModelOptions(**given)


def test_a_system_prompt_is_the_one_that_the_job_began_with(tmp_path: Path) -> None:
    """Its digest is recorded, and another text is refused."""
    file = tmp_path / "system.txt"
    file.write_text("Be brief.")
    _, digest = read_system(file)
    options = ModelOptions(name="openai:x", system=str(file), system_sha256=digest)
    assert options.system_text() == "Be brief."
    file.write_text("Be long.")
    with pytest.raises(HudMcpError, match=digest):
        options.system_text()


@pytest.mark.anyio
async def test_a_pause_is_not_counted_against_a_bound() -> None:
    """An agent that somebody else lets wait has its whole time afterwards."""
    contention = Contention()
    pauses = Pauses()
    reached: list[str] = []

    async def work(wait: Callable[[float], Awaitable[None]]) -> None:
        with contention.bound(0.2, pauses) as scope:
            with pauses.pause():
                await wait(0.5)
            reached.append("paused")
            await anyio.sleep_forever()
        assert scope.cancelled_caught

    with anyio.fail_after(PATIENCE_S):
        await work(anyio.sleep)
    assert reached == ["paused"]


def test_a_pause_within_a_pause_is_counted_once() -> None:
    """However it is nested."""
    clock = Clock()
    pauses = Pauses(clock.now)
    with pauses.pause():
        clock.now_s = 3
        with pauses.pause():
            clock.now_s = 5
        assert pauses.seconds == 5
    clock.now_s = 9
    assert pauses.seconds == 5


@pytest.mark.long
def test_models_libraries_load_only_where_a_model_works() -> None:
    """A server and a job of another agent do not wait for them."""
    loads = "import sys, hud_mcp.cli.eval, hud_mcp.cli.serve, hud_mcp.plugins.models.requests"
    done = subprocess.run(
        [sys.executable, "-c", f"{loads}\nprint(*sys.modules)"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert not {"pydantic_ai", "genai_prices", "anthropic", "openai"} & set(done.stdout.split())
