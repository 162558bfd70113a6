"""A HUD author's question set runs as it is, and is graded as HUD grades it."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from peers import WAYS, Peer, Way, http_peer, http_server, stdio_peer

from hud_mcp.values.grade import Outcome, SubScore

QUESTIONS = Path(__file__).resolve().parent / "question_set.py"
HUD_GRADES = Path(__file__).resolve().parent / "hud_grades.py"

RIGHT = '{"city": "Paris", "nights": 3, "total": 240}'
HALF = '{"city": "Rome", "nights": 3, "total": 240}'
CALLS: list[tuple[str, dict[str, Any], str, float]] = [
    # A template, its arguments, an answer, and the reward that both give it.
    ("capital", {"country": "Japan"}, "Tokyo", 1.0),
    ("capital", {"country": "Japan"}, " tokyo. ", 1.0),
    ("capital", {"country": "Japan"}, "Kyoto", 0.0),
    ("count", {}, "3", 1.0),
    ("count", {}, "4", 0.0),
    ("trip", {}, RIGHT, 1.0),
    ("trip", {}, HALF, 0.4),
    ("trip", {}, "Paris for three nights", 0.0),
    ("trip", {"nights": 2}, '{"city": "Paris", "nights": 2, "total": 160.004}', 1.0),
    ("explain", {}, "Masses attract each other.", 1.0),
    ("explain", {}, "Perhaps masses attract each other.", 0.5 * 8 / 9 + 0.5 - 0.25),
]


@pytest.mark.sampled(1)
@pytest.mark.anyio
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_every_answer_is_graded_and_the_tree_reaches_the_receipt_and_the_record(
    way: Way, tmp_path: Path
) -> None:
    """A client in another process, over both transports and eras."""
    if way.transport == "stdio":
        async with stdio_peer(tmp_path, (str(QUESTIONS),), era=way.era) as peer:
            await converse(peer)
    else:
        with http_server(tmp_path, (str(QUESTIONS),)) as server:
            async with http_peer(server, era=way.era) as peer:
                await converse(peer)


async def converse(peer: Peer) -> None:
    """Answer everything, and look at what was kept."""
    for template, args, answer, reward in CALLS:
        task = await peer.start(template, **args)
        graded = await peer.ok("response", session=task.session, answer=answer)
        assert graded.structured["reward"] == pytest.approx(reward), (template, answer)
        record = await peer.record(task)
        assert record.receipt is not None
        assert record.receipt.reward == graded.structured["reward"]
        told = graded.structured.get("subscores", [])
        assert told == [told_of(part) for part in record.receipt.subscores]
        if answer is HALF:
            assert_half(graded.structured, record.receipt.subscores, record.receipt.info)
        if template == "explain":
            parts = {part.name: part for part in record.receipt.subscores}
            assert parts["hedging"].weight == -0.25
            assert parts["length"].info["most"] == 60
            assert parts["length"].info["_parameters"]["answer"] == answer
            assert "_parameters" not in graded.text + json.dumps(graded.structured)

    task = await peer.start("broken")
    told_text = (await peer.call("response", session=task.session, answer="x")).text
    record = await peer.record(task)
    assert record.receipt is not None
    assert (record.outcome, record.reward) == (Outcome.GRADING_FAILED, None)
    assert re.search(r"question_set\.py:\d+: .* The reference is missing", record.error or "")
    assert "reference" not in told_text


def assert_half(shown: dict[str, Any], parts: tuple[SubScore, ...], info: dict[str, Any]) -> None:
    """The tree of a trip to the wrong city, as it is shown and as it is kept."""
    assert shown["content"] == "3 nights in Rome."
    assert info == {"price": 80.0}
    stay, sense = parts
    assert (stay.name, stay.value, stay.weight) == ("stay", 0.0, pytest.approx(0.6))
    assert [child.name for child in stay.children] == ["nights", "total", "any"]
    assert [child.value for child in stay.children] == [1.0, 1.0, 0.0]
    assert [c.name for c in stay.children[2].children] == ["city", "country"]
    assert (sense.value, sense.children) == (1.0, ())


def told_of(part: SubScore) -> dict[str, Any]:
    """A part as an agent is told of it: no info."""
    told: dict[str, Any] = {"name": part.name, "value": part.value, "weight": part.weight}
    return {**told, "children": [told_of(c) for c in part.children]} if part.children else told


@pytest.fixture(scope="module")
def by_hud(hud_python: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What HUD's own SDK gives, with nothing changed but where the file imports from."""
    tmp_path = tmp_path_factory.mktemp("hud")
    source = QUESTIONS.read_text().replace("from hud_mcp", "from hud")
    copy = tmp_path / "question_set.py"
    copy.write_text(source)
    done = subprocess.run(
        [str(hud_python), str(HUD_GRADES), str(copy)],
        input=json.dumps([call[:3] for call in CALLS]),
        capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
        env={"HUD_TELEMETRY_ENABLED": "false", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.peers
@pytest.mark.anyio
async def test_hud_s_own_sdk_gives_the_same_grades_to_the_same_file(
    by_hud: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Reward, sentence and tree, answer by answer."""
    async with stdio_peer(tmp_path, (str(QUESTIONS),)) as peer:
        for (template, args, answer, reward), theirs in zip(CALLS, by_hud, strict=True):
            assert theirs["error"] is False, theirs
            assert theirs["reward"] == pytest.approx(reward), (template, answer)
            task = await peer.start(template, **args)
            graded = (await peer.ok("response", session=task.session, answer=answer)).structured
            assert graded["reward"] == pytest.approx(theirs["reward"])
            assert graded.get("content") == theirs["content"]
            ours = [plain(part) for part in graded.get("subscores", [])]
            assert ours == [plain(part) for part in theirs["subscores"] or []], (template, answer)


def plain(part: dict[str, Any]) -> dict[str, Any]:
    """A part without what is written differently: no children, and binary fractions."""
    children = [plain(child) for child in part.get("children") or []]
    return {
        "name": part["name"],
        "value": round(part["value"], 9),
        "weight": round(part["weight"], 9),
        "children": children,
    }
