"""The sizes of all that a model reads, beside @playwright/mcp and beside an older version."""

import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import anyio.to_thread
import pytest
from filelock import FileLock
from other_python import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from reading import (
    MADE,
    bytes_of,
    page_sizes,
    playwright_mcp,
    read_pages,
    sizes_before,
    talk_sizes,
    tokens_of,
)
from reading_talks import talks_of

pytestmark = [pytest.mark.anyio, pytest.mark.browser, pytest.mark.peers]

PACKAGES = ("@playwright/mcp@0.0.83", "gpt-tokenizer@4.0.0")
ROWS = ("count-umlaut", "shop-price-lamp", "desk-count-high", "board-new-card")


@pytest.fixture(scope="module")
def modules() -> Path:
    """Playwright's MCP server and a tokenizer, in a folder that is made once and kept."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("not on this machine: npm, which installs @playwright/mcp")
    folder = ROOT / ".venv-reading"
    with FileLock(f"{folder}.lock"):
        if not (folder / "installed").exists():
            folder.mkdir(exist_ok=True)
            install = [npm, "install", "--silent", "--no-audit", "--no-fund", *PACKAGES]
            done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"not on this machine: @playwright/mcp; npm says {done.stderr[-300:]}")
            (folder / "installed").touch()
    return folder / "node_modules"


async def test_a_page_reads_in_half_of_the_size_of_playwrights_snapshot(modules: Path) -> None:
    """In bytes and in tokens; what is beyond the page's own words has at most 0.3 of the bytes."""
    with playwright_mcp(modules) as mcp:
        pages = [page async for page in read_pages(mcp)]
    of_bytes = page_sizes(pages, bytes_of)
    of_tokens = page_sizes(pages, lambda texts: tokens_of(texts, modules))
    for sizes in (of_bytes, of_tokens):
        shipped = [size.whole for name, size in sizes.items() if name not in MADE]
        assert statistics.median(shipped) <= 0.5, sizes
        assert max(size.beyond for size in sizes.values()) <= 0.5, sizes
    assert statistics.median(size.beyond for size in of_bytes.values()) <= 0.3, of_bytes


async def test_a_conversation_has_half_of_its_former_size(modules: Path) -> None:
    """With the list of tools once, and with the list in each turn of the model."""
    talks = await anyio.to_thread.run_sync(talks_of, None, ROWS)
    assert {talk.row for talk in talks} == set(ROWS)
    of_bytes = talk_sizes(talks, bytes_of), sizes_before("bytes")
    of_tokens = talk_sizes(talks, lambda texts: tokens_of(texts, modules)), sizes_before("tokens")
    for now, before in (of_bytes, of_tokens):
        for row, size in now.items():
            assert size.once <= before[row].once / 2, row
            assert size.each_turn <= before[row].each_turn / 2, row
