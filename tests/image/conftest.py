"""The image, and a folder that containers see."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker_runs import Image


@pytest.fixture
def image() -> Iterator[Image]:
    """The image that `make image` has built, with an empty folder."""
    # Not pytest's own folder, which other users may not enter.
    folder = Path(tempfile.mkdtemp(prefix="hud-mcp-image-"))
    yield Image.named(folder)
    shutil.rmtree(folder)
