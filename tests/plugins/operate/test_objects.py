"""Pictures in an object store: servers of several machines write them, and each reads all."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from records import picture, step, trajectory

from hud_mcp import Store
from hud_mcp.errors import StoreFailed
from hud_mcp.record.place import read_pictures_place
from hud_mcp.record.values import ScreenshotRecord

pytestmark = [pytest.mark.anyio, pytest.mark.scale]

SERVER = """
import sys
import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
host, port = server.get_host_and_port()
boto3.client("s3", endpoint_url=f"http://{host}:{port}").create_bucket(Bucket="runs")
print(f"http://{host}:{port}", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a folder of a bucket, on a server of this machine."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.stdout.readline().strip())
        yield "s3://runs/pictures"
        server.stdin.close()


async def test_a_picture_that_one_machine_has_written_another_reads(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both name one object store; the second has a folder of its own for copies."""
    shot = picture()
    monkeypatch.setenv("HUD_MCP_PICTURES", bucket)
    first = Store(tmp_path / "one" / "runs.sqlite3")
    await first.add_session(trajectory(), secret_digest="0" * 64, principal=None)
    await first.add_step("traj-1", step(0, screenshot=ScreenshotRecord.of(shot)), shot)
    await first.close()
    file = tmp_path / "two" / "runs.sqlite3"
    file.parent.mkdir()
    (tmp_path / "one" / "runs.sqlite3").rename(file)

    second = Store(file)
    (read,) = await second.load_steps("traj-1")
    assert read.screenshot is not None
    assert not (second.screenshots / read.screenshot.name).exists()
    found = await second.read_screenshot(read.screenshot)

    assert found == shot.data
    assert (await anyio.Path(second.screenshot_path(read.screenshot)).read_bytes()) == shot.data
    await second.close()


async def test_a_step_whose_picture_cannot_be_written_is_not_recorded(
    tmp_path: Path, bucket: str
) -> None:
    """No row refers to a picture that is nowhere; the same call later records both."""
    shot = picture()
    store = Store(tmp_path / "runs.sqlite3", screenshots=bucket.replace("runs", "none"))
    await store.add_session(trajectory(), secret_digest="0" * 64, principal=None)

    with pytest.raises(StoreFailed, match="took no picture"):
        await store.add_step("traj-1", step(0, screenshot=ScreenshotRecord.of(shot)), shot)

    assert await store.load_steps("traj-1") == []
    await store.close()


def test_a_place_of_pictures_is_a_folder_or_an_object_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As given, else as the variable says, else beside the store."""
    own = tmp_path / "screenshots"
    monkeypatch.delenv("HUD_MCP_PICTURES", raising=False)
    assert read_pictures_place(None, tmp_path) == (own, None)
    monkeypatch.setenv("HUD_MCP_PICTURES", "s3://runs/here")
    assert read_pictures_place(None, tmp_path) == (own, "s3://runs/here")
    assert read_pictures_place(tmp_path / "a", tmp_path) == (tmp_path / "a", None)
