"""A page that follows a job is sent what has changed, and knows where a run is."""

from typing import Any

import httpx
import pytest
from recorded import START, Run, plain, receipt

from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.values.grade import Outcome
from hud_mcp.values.model_turn import ModelTurn, TokenUsage

pytestmark = pytest.mark.anyio


class Asking:
    """A page's questions."""

    def __init__(self, run: Run) -> None:
        transport = httpx.ASGITransport(app=viewer_app(run.store))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def __call__(self, path: str, **parameters: Any) -> Any:
        """Ask; gives what is answered."""
        return (await self._client.get(path, params=parameters)).json()


async def test_only_rows_that_changed_are_sent_again(run: Run) -> None:
    """A run that ends is sent, and one that begins; the others are not."""
    names = [await run.add(f"task-{i}", outcome=None) for i in range(20)]
    ask = Asking(run)
    first = await ask("/api/job", id=run.job.id)
    assert len(first["trajectories"]) == 20
    known = first["revision"]
    assert await ask("/api/job", id=run.job.id, known=known) == {"revision": known}
    made = plain("task-7", None, None).model_copy(update={"id": names[7]})
    await run.store.end_session(names[7], receipt(made, Outcome.GRADED, 1.0))
    await run.add("late", reward=0.5)
    second = await ask("/api/job", id=run.job.id, known=known)
    assert "trajectories" not in second
    assert [(place, row["id"], row["reward"]) for place, row in second["changed"]] == [
        (7, names[7], 1.0), (20, "tr-20", 0.5)]  # fmt: skip
    assert (second["since"], second["total"], second["outcomes"]["graded"]) == (known, 21, 2)
    # A page that knows an earlier revision gets what has changed since that one.
    await run.add("later", reward=0.5)
    third = await ask("/api/job", id=run.job.id, known=known)
    assert [place for place, _ in third["changed"]] == [7, 20, 21]
    whole = await ask("/api/job", id=run.job.id, known="of-another-server-3")
    assert len(whole["trajectories"]) == 22
    rest = await ask("/api/rows", id=run.job.id, start=0, revision=whole["revision"])
    assert rest["rows"] == whole["trajectories"]


async def test_what_a_model_used_is_told_of_a_run_that_has_ended(run: Run) -> None:
    """A report that comes after the end changes the page."""
    name = await run.add("one", reward=1)
    ask = Asking(run)
    known = (await ask("/api/job", id=run.job.id))["revision"]
    turn = ModelTurn(started_at=START, ended_at=START, usage=TokenUsage(input=7, output=5))
    assert await run.store.add_turns(name, [turn]) == 0
    said = await ask("/api/job", id=run.job.id, known=known)
    assert "7" in next(f["value"] for f in said["statistics"] if f["name"] == "model, in all")


async def test_a_run_knows_its_neighbours(run: Run) -> None:
    """They are those of its own job in the order in which they began, and the ends have one."""
    names = [await run.add(f"task-{i}", reward=1) for i in range(3)]
    loose = await run.add("alone", job_id=None, outcome=None, live_token="t" * 64)
    ask = Asking(run)
    found = [await ask("/api/place", id=name) for name in names]
    assert [(f["previous"], f["next"]) for f in found] == [
        (None, {"id": names[1]}),
        ({"id": names[0]}, {"id": names[2]}),
        ({"id": names[1]}, None),
    ]
    assert {f["job"]["name"] for f in found} == {"A job"}
    alone = await ask("/api/place", id=loose)
    assert (alone["previous"], alone["next"], alone["live"]) == (None, None, "t" * 64)
    assert alone["job"]["id"] == ""
