"""Files keep the bytes that nobody asked to change, and output is shown as a terminal shows it."""

from collections.abc import AsyncIterator

import pytest

from hud_mcp.errors import ActionFailed, BrokenByAgent
from hud_mcp.sandbox import SandboxLimits
from hud_mcp.values.action import CustomAction
from hud_mcp.world import Opening
from hud_mcp.worlds.shell import Shell, ShellWorld
from hud_mcp.worlds.shell.actions import as_on_terminal
from hud_mcp.worlds.shell.results import fold, shorten

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

MIB = 1 << 20


@pytest.fixture
async def shell(machine: None) -> AsyncIterator[ShellWorld]:
    """One with an empty folder that has room for little."""
    world = await Shell(limits=SandboxLimits(disk_bytes=2 * MIB)).open(Opening())
    yield world
    await world.close()


EDITS = {
    "a byte of Latin-1": (b"a = 5\n# caf\xe9\n", "a = 5", "a = 7", b"a = 7\n# caf\xe9\n"),
    "beside it": (b"caf\xe9 = 5", "= 5", "= \N{GREEK SMALL LETTER PI}", b"caf\xe9 = \xcf\x80"),
    "a byte order mark": (b"\xef\xbb\xbfa\nb", "a", "c", b"\xef\xbb\xbfc\nb"),
    "UTF-16 without NUL": (b"\xff\xfea\n", "a", "b", b"\xff\xfeb\n"),
    "CRLF": (b"a\r\nb\r\n", "a\nb", "b\nc\nd", b"b\r\nc\r\nd\r\n"),
    "CRLF as it is": (b"a\r\nb\r\n", "a\r\nb", "c", b"c\r\n"),
    "both kinds of lines": (b"a\r\nb\nc", "b\nc", "d\ne", b"a\r\nd\ne"),
    "a lone CR": (b"a\rb\n", "b", "c", b"a\rc\n"),
    "no newline at the end": (b"a\nb", "b", "c", b"a\nc"),
    "only newlines": (b"\n\n\nx\n\n", "x", "", b"\n\n\n\n\n"),
    "U+2028 and form feed": ("a\u2028b\fc".encode(), "c", "d", "a\u2028b\fd".encode()),
}
"""What a file has, what is replaced by what, and what it has then."""


async def test_an_edit_keeps_every_other_byte(shell: ShellWorld) -> None:
    """In any encoding, with any line breaks; so are modes, and links that lead to the file."""
    wrong: list[str] = []
    for name, (before, old, new, after) in EDITS.items():
        await shell.write("file", before)
        await shell.edit("file", old, new)
        if (found := await shell.read_bytes("file")) != after:
            wrong.append(f"{name}: {found!r}")
    assert wrong == []
    await shell.run("chmod 750 file; ln -s file link")
    await shell.edit("link", "a", "longer than it was")
    assert (await shell.run("stat -c %a file; readlink link")).output == "750\nfile\n"
    await shell.write("link", "short")
    assert await shell.read_bytes("file") == b"short"


async def test_an_edit_that_is_refused_changes_nothing(shell: ShellWorld) -> None:
    """Also where the disk has no room for what comes in its place."""
    for before, old, new in (
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}", "tea"),
        (b"a a", "a", "b"),
        (b"a\0b", "a", "c"),
    ):
        await shell.write("file", before)
        with pytest.raises(ActionFailed):
            await shell.edit("file", old, new)
        assert await shell.read_bytes("file") == before
    await shell.write("file", "keep")
    await shell.run("head -c 1800000 /dev/zero > full")
    with pytest.raises(BrokenByAgent, match="no room left"):
        await shell.edit("file", "keep", "x" * MIB)
    assert await shell.read_bytes("file") == b"keep"
    with pytest.raises(BrokenByAgent, match="no room left"):
        await shell.write("file", "x" * MIB)
    assert await shell.read_bytes("file") == b"keep"


async def test_a_text_that_is_not_utf_8_says_so(shell: ShellWorld) -> None:
    """Where a sign stands for its bytes; elsewhere nothing is said."""
    await shell.write("file", b"one\ncaf\xe9\n")
    read = CustomAction(action="read", args={"path": "file"})
    shown = (await shell.act(read)).text or ""
    assert "not UTF-8" in shown
    first = CustomAction(action="read", args={"path": "file", "lines": 1})
    assert "not UTF-8" not in ((await shell.act(first)).text or "")


SHOWN = {
    "plain\ttext\n": "plain\ttext\n",
    "\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[m": "red and blue",
    "".join(f"\r{n:3}%" for n in range(101)) + "\ndone\n": "100%\ndone\n",
    "long text\rshort": "shorttext",
    "long text\r\x1b[Kshort": "short",
    "ab\b\bxy\n": "xy\n",
    "ab\b \b": "a ",
    "a\r\nb\r\n": "a\nb\n",
    "1\n2\n\x1b[2A\x1b[Kone\n\x1b[Ktwo\n": "one\ntwo\n",
    "a\n\x1b[1F\x1b[2Kb\x1b[1Ec": "b\nc",
    "before\x1b[2J\x1b[Hafter": "after",
    "\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\": "xlink",
    "\x1b[?25lhidden cursor\x1b[?25h\x07\x00": "hidden cursor",
    "a\x1b[3Cb": "a   b",
    "\x1b7a\x1b8b": "b",
    "abc\x1b[1Gx\x1b[0K": "x",
    "unfinished \x1b[": "unfinished ",
    "\x1b(Bascii \N{SNOWMAN}\x1b=": "ascii \N{SNOWMAN}",
}
"""What a command writes, and what a terminal shows of it."""


async def test_output_is_shown_as_on_a_terminal(shell: ShellWorld) -> None:
    """Frames, colours and cursors; for a template it stays what was written."""
    wrong = {
        text: found for text, shown in SHOWN.items() if (found := as_on_terminal(text)) != shown
    }
    assert wrong == {}
    hostile = ("\n\x1b[999Cx", "\x1b[2J\x1b[999;999Hx", "\x1b[999999999B\x1b[Ky", "\x1b[1J\x1b[A\b")
    for part in hostile:
        assert len(as_on_terminal(part * (MIB // 16))) < 8 * MIB
    bar = r"""for n in $(seq 100); do printf '\r\033[32m%3d%%\033[0m' $n; done; echo; echo end"""
    shown = (await shell.act(CustomAction(action="run", args={"command": bar}))).text
    assert shown == "100%\nend"
    assert "\x1b[32m" in (await shell.run(bar)).output


FOLDED = {
    "a line that is the same\n" * 300 + "end": "a line that is the same\n"
    "… the same line 299 more times …\nend",
    "tick tick tick\ntock tock tock\n" * 50: "tick tick tick\ntock tock tock\n"
    "… the same 2 lines 49 more times …\n",
    "\n".join(f"file {n} of 120" for n in range(1, 121)): "file 1 of 120\nfile 2 of 120\n"
    "… 117 lines left out; they count on evenly to …\nfile 120 of 120",
    "\n".join(f"part-{n:02}.csv" for n in range(0, 300, 3)): "part-00.csv\npart-03.csv\n"
    "… 97 lines left out; they count on evenly to …\npart-297.csv",
    "\n".join(map(str, range(40000))): "0\n1\n"
    "… 39997 lines left out; they count on evenly to …\n39999",
    "}\n" * 6: "}\n" * 6,  # a note would be longer
    "\n".join(str(n * n) for n in range(500)): "\n".join(str(n * n) for n in range(500)),
    "7 \N{ARABIC-INDIC DIGIT SEVEN}\n" * 9: "7 \N{ARABIC-INDIC DIGIT SEVEN}\n" * 9,
    "\n".join(f"in {n} s" for n in range(30, -9, -1)): "in 30 s\nin 29 s\n"
    "… 28 lines left out; they count on evenly to …\nin 0 s\n"
    + "\n".join(f"in -{n} s" for n in range(1, 9)),
}
"""What a command writes, and what is shown of its lines."""


def test_lines_that_tell_nothing_new_are_folded() -> None:
    """What is left out follows from what is shown; a line that differs is there."""
    wrong = {text: found for text, shown in FOLDED.items() if (found := fold(text)) != shown}
    assert wrong == {}
    odd = [f"GET /items/{n} 200" for n in range(400)]
    odd[250] = "GET /items/250 500"
    assert "GET /items/250 500" in fold("\n".join(odd)).splitlines()
    assert fold("\n".join(odd)).count("\n") == 8


def test_a_long_output_is_cut_between_lines_and_says_how_many() -> None:
    """Its beginning and its end stay; a line that is too long itself is cut inside."""
    lines = [f"{n * n % 1009} apples" for n in range(5000)]
    assert fold("\n".join(lines)) == "\n".join(lines)
    shown = shorten("\n".join(lines)).splitlines()
    (place,) = (i for i, line in enumerate(shown) if line.startswith("…"))
    assert shown[:place] == lines[:place]
    assert shown[place + 1 :] == lines[place + 1 - len(shown) :]
    assert f"in {5000 - len(shown) + 1} lines left out" in shown[place]
    assert len("\n".join(shown)) < 8200
    whole = shorten("x" * 50_000)
    assert "42000 characters left out" in whole
    assert len(whole) < 8200


async def test_a_command_s_output_is_folded_and_a_file_is_not(shell: ShellWorld) -> None:
    """A file that is read is read to be edited, so that each line stays."""
    run = CustomAction(action="run", args={"command": "yes the same line | head -200 | tee f"})
    assert (await shell.act(run)).text == "the same line\n… the same line 199 more times …"
    read = CustomAction(action="read", args={"path": "f"})
    assert (await shell.act(read)).text == "\n".join(["the same line"] * 200)
    assert (await shell.run("cat f")).output == "the same line\n" * 200
