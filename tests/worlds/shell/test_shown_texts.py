"""Files keep the bytes that nobody asked to change, and output is shown as a terminal shows it."""

from collections.abc import AsyncIterator

import pytest

from hud_mcp.errors import ActionFailed, BrokenByAgent
from hud_mcp.sandbox import SandboxLimits
from hud_mcp.values.action import CustomAction
from hud_mcp.world import Opening
from hud_mcp.worlds.shell import Shell, ShellWorld
from hud_mcp.worlds.shell.actions import as_on_terminal

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
