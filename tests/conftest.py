"""What every test shares."""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from coverage_table import pytest_terminal_summary  # noqa: F401  # a hook
from event_loops import pytest_fixture_setup, pytest_runtest_call, pytest_runtest_setup  # noqa: F401  # hooks
from garbage import pytest_collection  # noqa: F401  # a hook
from hypothesis import HealthCheck, settings
from lanes import pytest_collection_modifyitems  # noqa: F401  # a hook
from other_python import ROOT, OtherPython
from skips import pytest_make_collect_report, pytest_runtest_makereport, skip_here  # noqa: F401  # hooks
from terminals import Terminal

if TYPE_CHECKING:
    from postgresql import Cluster

HUD = OtherPython(
    name=".venv-hud",
    requirements=("hud[robot]>=0.6.21,<0.7", "typer<0.20"),
    check=(
        "import hud.clients, hud.environment.robot, gymnasium\n"
        "import importlib.metadata as m; print(m.version('hud'))"
    ),
    version="0.6.",
    what="HUD's own SDK",
    install_s=400,
)

FASTMCP = OtherPython(
    name=".venv-fastmcp",
    requirements=("fastmcp>=4.1,<5", "-e", str(ROOT)),
    check="import fastmcp, hud_mcp; print(fastmcp.__version__)",
    version="4.",
    what="an author's server of FastMCP's",
    install_s=400,
)

RAY = OtherPython(
    name=".venv-ray",
    requirements=("-e", f"{ROOT}[postgresql,ray]"),
    check="import hud_mcp, psycopg, ray.cluster_utils; print(ray.__version__)",
    version="2.",
    what="Ray",
    install_s=400,
)

# No property is about time, and the machine may be busy.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Commands that run in this process take all of its logging; it is left as it was found."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that no other test uses, of this process and its children."""
    del tmp_path  # pytest's own folder is made before, where it lasts
    folder = Path(tempfile.mkdtemp(prefix="hud-mcp-test-"))
    folder.chmod(0o1777)  # as the usual one: a sandbox may be another user
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    """Those that are open, which end with the test."""
    opened: list[Terminal] = []
    yield opened
    for each in opened:
        each.close()


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
        told = f"NO SANDBOX HERE, SO NOTHING OF IT IS TESTED: {exc}"
        if sys.platform.startswith("linux") and shutil.which("bwrap") is None:
            pytest.skip(told)
        skip_here(told)
    await sandbox.close()


@pytest.fixture(scope="session")
def hud_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with HUD's SDK, made once and kept.

    `HUD_PYTHON` names one that is there already. HUD pins `mcp<2`, so it cannot live beside us.
    """
    if "HUD_PYTHON" in os.environ:
        return Path(os.environ["HUD_PYTHON"])
    return HUD.find(tmp_path_factory)


@pytest.fixture(scope="session")
def fastmcp_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with this package and FastMCP, made once and kept.

    Some forty packages come with it, which nothing else here needs.
    """
    if "FASTMCP_PYTHON" in os.environ:
        return Path(os.environ["FASTMCP_PYTHON"])
    return FASTMCP.find(tmp_path_factory)


@pytest.fixture(scope="session")
def ray_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with this package and Ray, made once and kept.

    Ray pins none of what is used here, and is 70 MB that nothing else needs.
    """
    if "RAY_PYTHON" in os.environ:
        return Path(os.environ["RAY_PYTHON"])
    return RAY.find(tmp_path_factory)


@pytest.fixture(scope="session")
def cluster() -> Iterator["Cluster"]:
    """A running PostgreSQL, the only one of this run of tests; each test has schemas of its own."""
    from postgresql import Cluster, find_programs  # noqa: PLC0415  # its client loads for few tests

    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL is installed: make test installs it")
    started = Cluster(programs)
    try:
        started.start()
        yield started
    finally:
        started.remove()


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that is not there yet, on the database that `request.param` names."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.sqlite3"
    return request.getfixturevalue("cluster").new_schema()
