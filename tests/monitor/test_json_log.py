"""A log for programs: one object a line, and nothing in it that opens anything."""

import json
from pathlib import Path

import pytest
from peers import ENVIRONMENTS, MODERN, http_peer, http_server

pytestmark = pytest.mark.anyio

TOKEN = "secret-of-ann"


@pytest.mark.long
async def test_each_line_of_a_log_for_programs_is_an_object(tmp_path: Path) -> None:
    """With its time, level, logger and message; a session's lines have its short name."""
    options = ("--log-format", "json", "--log-level", "debug", "--token", f"ann={TOKEN}")
    with http_server(
        tmp_path, (str(ENVIRONMENTS / "mortal.py"), "letter_count"), *options
    ) as server:
        async with http_peer(server, era=MODERN, token=TOKEN) as ann:
            held = await ann.start("notes", print_noise=True)
            counted = await ann.start("count", word="lamp", letter="a")
            await ann.ok("response", session=counted.session, answer="1")
        server.process.terminate()
        server.process.wait()
        text = server.logged()
    child = "echoed by its child"  # what others write to stderr themselves stays as it is
    lines = [json.loads(line) for line in text.splitlines() if line != child]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    printed = [line for line in lines if line["logger"] == "print"]
    assert any("printed by a template" in line["message"] for line in printed)
    assert {line["session"] for line in printed} == {held.trajectory[-6:]}
    for secret in (TOKEN, held.session, counted.session):
        assert secret not in text
