"""What every test shares."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
INSTALL_S = 400

# No property is about time, and the machine may be busy.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Playwright and the SDK's HTTP app run on asyncio, so that is what is tested."""
    return "asyncio"


@pytest.fixture(scope="session")
async def machine(anyio_backend: str) -> None:
    """That sandboxes can be made here; where not, whatever needs one is skipped aloud."""
    from hud_mcp.errors import EnvironmentFailed  # noqa: PLC0415  # few tests need it
    from hud_mcp.sandbox import Sandbox, SandboxOptions  # noqa: PLC0415

    try:
        sandbox = await Sandbox.open(SandboxOptions())
    except EnvironmentFailed as exc:
        pytest.skip(f"NO SANDBOX HERE, SO NOTHING OF IT IS TESTED: {exc}")
    await sandbox.close()


@pytest.fixture(scope="session")
def hud_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with HUD's SDK, made once and kept.

    `HUD_PYTHON` names one that is there already. HUD pins `mcp<2`, so it cannot live beside us.
    """
    if "HUD_PYTHON" in os.environ:
        return Path(os.environ["HUD_PYTHON"])
    kept = ROOT / ".venv-hud"
    folder = kept if os.access(ROOT, os.W_OK) else tmp_path_factory.mktemp("venv-hud")
    with FileLock(f"{folder}.lock"):  # the suite may run in several processes
        return _with_hud(folder)


def _with_hud(folder: Path) -> Path:
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    program = (
        "import hud.clients, hud.environment.robot, gymnasium\n"
        "import importlib.metadata as m; print(m.version('hud'))"
    )
    check = [str(python), "-c", program]
    if python.exists():
        found = subprocess.run(check, capture_output=True, text=True, check=False)
        if found.returncode == 0 and found.stdout.startswith("0.6."):
            return python
    venv.create(folder, with_pip=True, clear=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*install, "hud[robot]>=0.6.21,<0.7", "typer<0.20"],
            capture_output=True, text=True, check=False, timeout=INSTALL_S,
        )  # fmt: skip
        reason = done.stderr.strip().splitlines()[-1:] if done.returncode else None
    except subprocess.TimeoutExpired:
        reason = [f"it took longer than {INSTALL_S} s"]
    if reason is not None:
        pytest.skip(f"NOT TESTED with HUD's own SDK, which cannot be installed: {reason}")
    return python
