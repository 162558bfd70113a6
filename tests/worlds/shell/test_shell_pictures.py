"""Pictures of a shell's folder reach a client as images, and what is none is refused."""

import io
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from peers import stdio_peer
from PIL import Image

from hud_mcp import Shell, ShellWorld, view_picture
from hud_mcp.errors import ActionFailed, BrokenByAgent
from hud_mcp.world import Opening

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]


@pytest.fixture
async def shell(machine: None, tmp_path: Path) -> AsyncIterator[ShellWorld]:
    """One with an empty folder."""
    opened = await Shell().open(Opening(folder=tmp_path))
    yield opened
    await opened.close()


def encoded(kind: str, size: tuple[int, int] = (40, 30)) -> bytes:
    """A picture of one colour, with a stroke."""
    image = Image.new("RGB", size, (20, 90, 160))
    image.paste((250, 250, 250), (5, 5, 9, 25))
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def bomb(side_px: int) -> bytes:
    """A PNG that says it is large, and is small."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", side_px, side_px, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(1000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
async def test_a_picture_is_shown_as_it_is(shell: ShellWorld, kind: str) -> None:
    """Its bytes are those of the file, and its size is told in words too."""
    await shell.write("seen/a picture", encoded(kind))
    shown = await view_picture(shell, "seen/a picture")
    assert shown.text == "seen/a picture, 40 x 30 px."
    assert shown.image is not None
    assert shown.image.data == encoded(kind)


@pytest.mark.parametrize(
    "data",
    [b"", b"no picture", encoded("GIF"), encoded("PNG")[:-40], encoded("JPEG")[:300],
     bomb(6000), bomb(30_000)],
    ids=["empty", "text", "gif", "cut png", "cut jpeg", "large", "larger than pillow takes"],
)  # fmt: skip
async def test_what_is_no_whole_picture_is_refused(shell: ShellWorld, data: bytes) -> None:
    """No client gets an image that a provider of models would refuse."""
    await shell.write("x.png", data)
    with pytest.raises(ActionFailed, match=r"x\.png (is not a PNG|has 6000 x 6000 px)"):
        await view_picture(shell, "x.png")


@pytest.mark.parametrize(
    "prepare",
    [
        lambda shell: shell.run("true"),
        lambda shell: shell.run("mkdir x.png"),
        lambda shell: shell.run("ln -s /etc/passwd x.png"),
    ],
    ids=["missing", "a folder", "a link out"],
)
async def test_no_picture_is_read_from_elsewhere(
    shell: ShellWorld, prepare: Callable[[ShellWorld], Awaitable[object]]
) -> None:
    """The rules for reading files hold."""
    await prepare(shell)
    with pytest.raises((ActionFailed, BrokenByAgent), match=r"x\.png|passwd"):
        await view_picture(shell, "x.png")


@pytest.mark.long
@pytest.mark.usefixtures("machine")
async def test_a_picture_reaches_a_client_as_an_image(tmp_path: Path) -> None:
    """A client of an environment with the tool gets an image block, and an error for a text."""
    async with stdio_peer(tmp_path, ("questions",)) as peer:
        task = await peer.start("game")
        reply = await peer.ok("view_picture", session=task.session, path="board.png")
        assert reply.mime_type == "image/png"
        assert reply.image is not None
        width, height = Image.open(io.BytesIO(reply.image)).size
        assert reply.text == f"board.png, {width} x {height} px."
        refused = await peer.error("view_picture", session=task.session, path="rules.txt")
        assert refused == "rules.txt is not a PNG and no JPEG that can be read."
