"""What capabilities of HUD's own server become: a shell, tools over MCP, and what is named."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bridging import SILENT, Bridged, HudServer, bridged, graded

from hud_mcp.errors import ActionFailed, InvalidTask
from hud_mcp.plugins.hud.bridge import proxy
from hud_mcp.session.session import Session
from hud_mcp.values.action import parse_actions
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio


async def test_a_shell_is_used_and_the_work_in_it_is_graded(bench: Bridged) -> None:
    """Commands and files are those of HUD's workspace, in its sandbox."""
    session = await bench.start("total", a=20, b=3)
    assert "numbers.txt" in await bench.use(session, "run_command", command="pwd; ls")
    assert await bench.use(session, "read_file", path="numbers.txt") == "20\n3"
    assert await bench.use(session, "run_command", command="echo out; echo err >&2; exit 7") == (
        "out\nerr\n[exit code 7]"
    )
    await bench.use(session, "write_file", path="sum.txt", content="24\n")
    await bench.use(session, "edit_file", path="sum.txt", old="4", new="3")
    assert (await graded(session, "done")).reward == 1.0
    record = await bench.record(session)
    assert [s.actions[0].get("tool") for s in record.steps[:-1]] == [
        "run_command",
        "read_file",
        "run_command",
        "write_file",
        "edit_file",
    ]


@pytest.mark.parametrize(
    "path",
    ["it's.txt", "a b.txt", "-n", "$(touch gone)", "deep/er/ü.txt", "`id`", '"q"', "*", "a\nb"],
)
async def test_any_name_is_a_name(bench: Bridged, path: str) -> None:
    """No name of a file is taken for an option or a part of a command."""
    session = await bench.start("total")
    text = "one\n'two'\n$HOME\n"
    await bench.use(session, "write_file", path=path, content=text)
    assert await bench.use(session, "read_file", path=path) == text.rstrip("\n")
    await bench.use(session, "edit_file", path=path, old="'two'", new="")
    assert "two" not in await bench.use(session, "read_file", path=path)
    assert "gone" not in (await bench.use(session, "run_command", command="ls -a")).split()
    await session.cancel()


async def test_what_a_shell_refuses_is_told_and_the_session_goes_on(bench: Bridged) -> None:
    """Missing files, folders, NUL bytes, texts that are not there, and too long commands."""
    session = await bench.start("total")
    for path, said in (("none.txt", "No such file"), (".", "Is a directory"), ("a\0b", "a path")):
        with pytest.raises(ActionFailed, match=said):
            await bench.use(session, "read_file", path=path)
    await bench.use(session, "run_command", command="printf 'a\\0b' > nul; printf 'aa' > twice")
    with pytest.raises(ActionFailed, match="is not text"):
        await bench.use(session, "read_file", path="nul")
    with pytest.raises(ActionFailed, match="twice 2 times"):
        await bench.use(session, "edit_file", path="twice", old="a", new="b")
    await bench.use(session, "edit_file", path="twice", old="a", new="b", every=True)
    assert await bench.use(session, "read_file", path="twice") == "bb"
    said = await bench.use(
        session, "run_command", command="echo first; sleep 55 & sleep 55", timeout_s=1.5
    )
    assert said == "first\n[stopped: it took longer than 1.5 s]"
    left = await bench.use(session, "run_command", command="cat /proc/[0-9]*/cmdline | tr -d '\\0'")
    assert "sleep55" not in left.replace("tr-d", "")
    long = await bench.use(session, "run_command", command="seq 1 300000")
    assert long.startswith("1\n2\n")
    assert long.endswith("\n300000")
    assert "left out" in long
    await session.cancel()


async def test_a_shell_is_stepped_and_looked_at(bench: Bridged) -> None:
    """The custom actions of a shell work, and a look lists the folder."""
    session = await bench.start("total")
    actions = parse_actions(
        [
            {"type": "custom", "action": "write", "args": {"path": "new.txt", "content": "x"}},
            {"type": "custom", "action": "run", "args": {"command": "cat new.txt"}},
        ]
    )
    stepped = await session.step(actions, Look())
    assert stepped.error is None
    assert stepped.notes == ("Wrote 1 bytes to new.txt.", "x")
    assert re.search(r"Folder \.: \d+ entries\n", stepped.result.observation.text or "")
    assert "  new.txt" in (stepped.result.observation.text or "")
    await session.cancel()


async def test_tools_of_mcp_servers_are_tools_with_their_schemas(bench: Bridged) -> None:
    """Over streamable HTTP and over SSE, under the capability's name."""
    tools = bench.environment.tools
    assert {"calc_multiply", "calc_say_it", "calc_fail", "events_multiply"} <= set(tools)
    multiply = tools["calc_multiply"]
    assert multiply.description == "Multiply two whole numbers."
    assert multiply.read_only
    assert not tools["calc_fail"].read_only
    assert multiply.arguments.schema["properties"] == {
        "a": {"type": "integer"},
        "b": {"default": 2, "type": "integer"},
    }
    session = await bench.start("total")
    assert await bench.use(session, "calc_multiply", a=6, b=7) == "42"
    assert await bench.use(session, "events_multiply", a=6) == "12"
    with pytest.raises(InvalidTask, match="a: expected a whole number such as 10, got 'x'"):
        await bench.use(session, "calc_multiply", a="x")
    with pytest.raises(ActionFailed, match="no luck"):
        await bench.use(session, "calc_fail")
    assert (await graded(session, "")).outcome is Outcome.GRADED


async def test_an_argument_that_is_named_as_ours_has_another_name(bench: Bridged) -> None:
    """Every tool of ours has a `session`; the server's own goes over as what it is there."""
    assert bench.environment.tools["calc_say_it"].arguments.names == ("calc_session",)
    session = await bench.start("total")
    assert await bench.use(session, "calc_say_it", calc_session="tea") == "it is tea"
    await session.cancel()


async def test_a_picture_of_a_tool_is_a_picture(bench: Bridged) -> None:
    """An image block comes as the observation's image."""
    session = await bench.start("total")
    stepped = await session.call_tool(bench.environment.tools["calc_draw"], {}, Look(text=False))
    image = stepped.result.observation.image
    assert image is not None
    assert (image.width_px, image.height_px, image.mime_type) == (1, 1, "image/png")
    await session.cancel()


async def test_what_cannot_be_bridged_is_named_with_its_reason(bench: Bridged) -> None:
    """Nothing is skipped in silence."""
    notes = "\n".join(bench.environment.notes)
    assert "'arm' (openpi/0) cannot be bridged: its contract declares 0 action features" in notes
    assert "'dead' (mcp/2025-11-25) cannot be bridged: it does not list its tools" in notes
    assert "'socket' (mcp/2025-11-25) cannot be bridged: its transport is websocket" in notes
    assert "'filetracking' (filetracking/1) cannot be bridged: it is for HUD's own" in notes
    assert not any(name.startswith(("dead", "socket", "arm")) for name in bench.environment.tools)


async def test_what_does_not_answer_is_named_and_holds_up_nothing_else(
    mortal: Callable[..., HudServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are asked at once; what a task may yet start is tried again when it is used."""
    monkeypatch.setattr(proxy, "_CONNECT_S", 1.5)
    hud = mortal(SILENT)
    async with bridged(hud.url, tmp_path / "store.sqlite3") as bridge:
        asked = [(hud.notes / f"asked-{name}").read_text().split()[-1] for name in ("deaf", "mute")]
        assert abs(float(asked[0]) - float(asked[1])) < 1.0, "one after the other: 1.5 s apart"
        notes = "\n".join(bridge.environment.notes)
        said = "cannot be bridged: it does not list its tools: it did not answer within 1.5 s"
        assert f"'deaf' (mcp/2025-11-25) {said}" in notes
        assert f"'mute' (mcp/2025-11-25) {said}" in notes
        assert "'wheel' (steering/1) cannot be bridged: there is no bridge for its" in notes
        assert "'browser' (cdp/1.3) does not answer now" in notes
        session = await bridge.start("ask")
        seen = (await session.step((), Look(image="jpeg"))).result.observation
        assert (seen.text or "").startswith("There is nothing to see: browser: ")
        assert (await graded(session, "well")).reward == 1.0


async def test_a_long_result_of_a_tool_is_read(bench: Bridged) -> None:
    """A picture of some megabytes comes in one message; a text is cut as others are."""
    session = await bench.start("total")
    long = await bench.use(session, "calc_say_it", calc_session="x" * 100_000)
    assert len(long) <= 10_000
    image = (
        await session.call_tool(bench.environment.tools["calc_paint"], {}, Look(text=False))
    ).result.observation.image
    assert image is not None
    assert image.width_px > 0
    await session.cancel()


async def test_a_shell_goes_on_after_our_server_was_stopped(
    workbench: HudServer, tmp_path: Path
) -> None:
    """The next server finds the folder as it was left, because it never came here."""
    store = tmp_path / "store.sqlite3"
    async with bridged(workbench.url, store) as first:
        before = await first.start("total", a=1, b=1)
        await first.use(before, "write_file", path="sum.txt", content="2")
    async with bridged(workbench.url, store) as second:
        session = await second.find(before.id)
        assert isinstance(session, Session)
        assert await second.use(session, "read_file", path="sum.txt") == "2"
        assert (await graded(session, "done")).reward == 1.0
