"""Real worlds that an agent breaks, or that are killed: every answer is taken, by whom it was."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import psutil
import pytest
from waiting import PATIENCE_S, until

from hud_mcp import Browser, BrowserWorld, Environment, Shell, ShellWorld, SiteRequest
from hud_mcp.errors import ActionFailed, HudMcpError, WorldDied
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.action import ClickAction, CustomAction, TypeAction
from hud_mcp.values.grade import Cause, Outcome
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio

LOOK = Look()
PAGE = """
<h1>Notes</h1>
<input id=note><button id=save onclick="fetch('/api/notes', {method: 'POST',
  body: JSON.stringify({text: note.value})}).then(() => said.textContent = 'saved')">Save</button>
<p id=said></p>
<button id=remove onclick="document.documentElement.remove()">Remove everything</button>
<button id=open onclick="let n = 0; const t = setInterval(
  () => { open('/', '_blank'); if (++n > 60) clearInterval(t); }, 10)">Open windows</button>
<button id=hang onclick="setTimeout(() => { for (;;) {} }, 200)">Hang</button>
"""


def notes(request: SiteRequest, state: dict[str, list[str]]) -> list[str]:
    """Keep what the page sends."""
    state["notes"].append(request.json["text"])
    return state["notes"]


@asynccontextmanager
async def registry(tmp_path: Path) -> AsyncGenerator[Sessions]:
    """Sessions in a browser and in a shell, closed at the end."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text(PAGE)
    web = Environment("web", world=Browser(site=site, backend=notes, state={"notes": []}))
    bench = Environment("bench", world=Shell())

    @web.template(id="by_state")
    async def by_state(browser: BrowserWorld, text: str = "tea"):  # noqa: ANN202
        answer = yield f"Save the note {text!r}."
        yield 1.0 if browser.state["notes"] == [text] and answer == "done" else 0.0

    @web.template(id="by_look")
    async def by_look(browser: BrowserWorld):  # noqa: ANN202
        yield "Save a note."
        yield 1.0 if "saved" in await browser.text() else 0.0

    @bench.template(id="by_answer")
    async def by_answer(_shell: ShellWorld):  # noqa: ANN202
        answer = yield "Say yes."
        yield float(answer == "yes")

    sessions = Sessions([web, bench], store=Store(tmp_path / "s.sqlite3"))
    try:
        with anyio.fail_after(150):
            yield sessions
    finally:
        with anyio.fail_after(PATIENCE_S):
            await sessions.close()


async def begin(sessions: Sessions, template: str, env: str = "web", **args: str) -> Session:
    """A session of a template."""
    task = Task(env=env, template=template, args=args)
    return await sessions.start(task, caller=Caller(connection="c"))


async def save(session: Session, text: str) -> None:
    """Save a note, as an agent does."""
    actions = (TypeAction(selector="#note", text=text), ClickAction(selector="#save"))
    stepped = await session.step(actions, LOOK)
    assert stepped.error is None, stepped.error


def _used_by_pages() -> dict[psutil.Process, float]:
    """The seconds of the processor that each process of a page has used; one that ends is none."""
    used: dict[psutil.Process, float] = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "--type=renderer" in " ".join(process.cmdline()):
                used[process] = sum(process.cpu_times()[:2])
    return used


async def crash(session: Session) -> None:
    """End the process of a session's page, as the machine does that has no memory left."""
    world = session.direct_world()
    assert isinstance(world, BrowserWorld)
    before = _used_by_pages()
    await world.page.evaluate("() => { const end = Date.now() + 700; while (Date.now() < end); }")
    used = {p: used_s - before[p] for p, used_s in _used_by_pages().items() if p in before}
    max(used, key=lambda p: used[p]).kill()
    await until(lambda: world.died is not None)


@pytest.mark.long
@pytest.mark.browser
async def test_a_page_that_crashes_disturbs_its_own_session_alone(tmp_path: Path) -> None:
    """Its session comes back with what was saved; another one on the same browser sees nothing."""
    async with registry(tmp_path) as sessions:
        first = await begin(sessions, "by_state", text="tea")
        other = await begin(sessions, "by_state", text="rice")
        await save(first, "tea")
        await crash(first)
        await save(other, "rice")
        with pytest.raises(WorldDied, match=r"crashed\. It has been restored"):
            await first.step((), LOOK)
        seen = await first.step((), LOOK)
        assert "saved" in (seen.result.observation.text or "")
        for session in (first, other):
            receipt = await session.respond("done")
            assert receipt is not None
            assert (receipt.reward, receipt.error) == (1.0, None)
        record = await sessions.store.load_trajectory(other.trajectory_id)
        assert "its world died" not in (record.logs or "")


@pytest.mark.sampled(1)
@pytest.mark.browser
@pytest.mark.parametrize("template", ["by_state", "by_look"])
async def test_an_answer_to_a_page_that_has_crashed_is_graded_on_one_that_lives(
    tmp_path: Path, template: str
) -> None:
    """Nobody is told of the crash: the world comes back, and the work is graded as it was."""
    async with registry(tmp_path) as sessions:
        session = await begin(sessions, template)
        await save(session, "tea")
        await crash(session)
        receipt = await session.respond("done")
        assert receipt is not None
        assert (receipt.outcome, receipt.reward, receipt.error) == (Outcome.GRADED, 1.0, None)


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("how", ["remove", "open", "hang"])
async def test_an_answer_is_taken_whatever_the_agent_did_to_its_page(
    tmp_path: Path, how: str
) -> None:
    """A removed root element, a loop of windows, a page that hangs: what there is, is graded."""
    async with registry(tmp_path) as sessions:
        session = await begin(sessions, "by_state")
        await save(session, "tea")
        with suppress(HudMcpError):
            await session.step((ClickAction(selector=f"#{how}"),), LOOK)
        with anyio.fail_after(PATIENCE_S):
            receipt = await session.respond("done")
        assert receipt is not None
        assert (receipt.outcome, receipt.reward, receipt.cause) == ("graded", 1.0, Cause.AGENT)


@pytest.mark.long
@pytest.mark.browser
async def test_a_grader_that_looks_at_a_page_without_a_root_gives_no_other_try(
    tmp_path: Path,
) -> None:
    """However the page is read then, the outcome is the agent's: graded, 0.0."""
    async with registry(tmp_path) as sessions:
        session = await begin(sessions, "by_look")
        with suppress(HudMcpError):
            await session.step((ClickAction(selector="#remove"),), LOOK)
        receipt = await session.respond("done")
        assert receipt is not None
        assert (receipt.outcome, receipt.reward, receipt.cause) == ("graded", 0.0, Cause.AGENT)


async def test_an_answer_is_taken_from_a_shell_whose_folder_nobody_may_read(
    tmp_path: Path,
) -> None:
    """`chmod 0 /workspace` keeps the session from looking, and not from being answered."""
    async with registry(tmp_path) as sessions:
        session = await begin(sessions, "by_answer", "bench")
        command = "chmod 0 /workspace"
        with suppress(ActionFailed):
            await session.step((CustomAction(action="run", args={"command": command}),), LOOK)
        receipt = await session.respond("yes")
        assert receipt is not None
        assert (receipt.outcome, receipt.reward) == ("graded", 1.0)


async def test_an_agent_that_kills_every_process_of_its_sandbox_is_told_or_goes_on(
    tmp_path: Path,
) -> None:
    """The session is not lost by it, and can be answered."""
    async with registry(tmp_path) as sessions:
        session = await begin(sessions, "by_answer", "bench")
        with suppress(HudMcpError):
            args = {"command": "kill -9 -1; kill -9 1"}
            await session.step((CustomAction(action="run", args=args),), LOOK)
        receipt = await session.respond("yes")
        assert receipt is not None
        assert (receipt.outcome, receipt.reward) == ("graded", 1.0)
