"""The file for `docker compose`: what the schema cannot say of it is looked at here."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hud_mcp.sandbox.bubblewrap import OPTIONS, PROFILE
from hud_mcp.store import Store

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "compose.yaml"


@pytest.fixture
def services() -> dict[str, Any]:
    """What it starts."""
    return YAML(typ="safe", pure=True).load(COMPOSE)["services"]


def check(path: Path) -> subprocess.CompletedProcess[str]:
    """Hold a file against the schema of the Compose specification."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    return subprocess.run(
        [*command, path], capture_output=True, text=True, timeout=600, check=False
    )


def test_the_compose_file_is_as_the_specification_says(tmp_path: Path) -> None:
    """And one with a condition that there is not would be refused."""
    done = check(COMPOSE)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(COMPOSE.read_text().replace("service_healthy", "service_well"))
    assert "service_well" in check(wrong).stdout


def test_the_compose_file_gives_a_shell_what_its_message_asks_for(services: dict[str, Any]) -> None:
    """The same options, and the profile that is shipped."""
    given = services["hud-mcp"]["security_opt"]
    assert COMPOSE.parent / given[0].removeprefix("seccomp=") == ROOT / PROFILE.relative_to(ROOT)
    options = OPTIONS.replace("seccomp=seccomp.json", given[0])
    assert options.split() == [word for each in given for word in ("--security-opt", each)]


@pytest.mark.anyio
async def test_the_compose_file_names_the_database_that_it_starts(
    services: dict[str, Any],
) -> None:
    """Its user, its password, its host and its name, in a URL that a store takes."""
    database = services["postgres"]["environment"]
    secret = database["POSTGRES_PASSWORD"]
    url = services["hud-mcp"]["environment"]["HUD_MCP_STORE"]
    place = f"@postgres/{database['POSTGRES_DB']}"
    assert url == f"postgresql://{database['POSTGRES_USER']}:{secret}{place}"
    store = Store(re.sub(r"\$\{[^}]*\}", "0a", url))
    await store.close()
