"""`scripts/release.py`: a wheel that lacks something is not published."""

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "release.py"


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("release", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_that_a_wheel_lacks_are_named(release: ModuleType, tmp_path: Path) -> None:
    """Of the package, of the environments and of the tasksets, by their places."""
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("hud_mcp/__init__.py", "")
        archive.writestr("hud_mcp/environments/letter_count.py", "")
    absent = set(release.missing(wheel))
    assert {"hud_mcp/errors.py", "taskset_data/quickstart.jsonl"} < absent
    assert not {"hud_mcp/__init__.py", "environments/letter_count.py"} & absent
