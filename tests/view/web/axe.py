"""axe-core, which finds what a page keeps from people: installed by npm, and run in a page."""

import shutil
import subprocess

import pytest
from filelock import FileLock
from other_python import ROOT
from playwright.async_api import Frame, Page

__all__ = ["axe_source", "findings"]

VERSION = "4.14.1"

FIND = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ['violations'] });
  return violations.map(each =>
    `${each.impact}: ${each.id} at ${each.nodes.map(node => node.target.join(' ')).join(', ')}`);
}"""


def axe_source() -> str:
    """The script of axe-core, in a folder of its own that is made once and kept."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("not on this machine: npm, which installs axe-core")
    folder = ROOT / f".venv-axe-{VERSION}"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    with FileLock(f"{folder}.lock"):
        if not script.exists():
            folder.mkdir(exist_ok=True)
            install = [npm, "install", "--silent", "--no-audit", "--no-fund", f"axe-core@{VERSION}"]
            done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"not on this machine: axe-core; npm says {done.stderr[-300:]}")
    return script.read_text(encoding="utf-8")


async def findings(page: Page | Frame, source: str) -> list[str]:
    """What axe finds in a page as it is shown now, of whatever weight."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(source)
    return await page.evaluate(FIND)
