"""The command of this program: for people, and for programs in other folders."""

import json
import shutil
import sys
import sysconfig
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def own_command() -> list[str]:
    """Return the command of this installation, with an absolute path.

    In a temporary environment of `uvx`, that is `uvx` with the same package. The environment is in
    a cache, which may be emptied.
    """
    package = distribution("hud-mcp")
    uvx = shutil.which("uvx")
    if uvx is not None and _is_in_a_cache(Path(sys.prefix)):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return [uvx, "--python", version, "--from", _origin(package), "hud-mcp"]
    name = "hud-mcp.exe" if sys.platform == "win32" else "hud-mcp"
    started = Path(sys.argv[0])
    if started.name == name and started.is_file():
        return [str(started.absolute())]
    script = Path(sysconfig.get_path("scripts"), name)
    return [str(script)] if script.is_file() else [sys.executable, "-m", "hud_mcp"]


def shown_command(*arguments: str) -> str:
    """Return the shortest command for people."""
    program, *first = own_command()
    found = shutil.which("hud-mcp")
    is_named = not first and found is not None and Path(found).samefile(program)
    return " ".join([*(["hud-mcp"] if is_named else [program, *first]), *arguments])


def _is_in_a_cache(prefix: Path) -> bool:
    """Whether an environment lies in a cache; source: bford.info/cachedir."""
    return any((each / "CACHEDIR.TAG").is_file() for each in prefix.parents)


def _origin(package: Distribution) -> str:
    """Return the origin of this package in the form for installers; source: PEP 610."""
    text = package.read_text("direct_url.json")
    if text is None:
        return f"hud-mcp=={package.version}"
    said: dict[str, Any] = json.loads(text)
    url = str(said["url"])
    if "vcs_info" in said:
        return f"{said['vcs_info']['vcs']}+{url}@{said['vcs_info']['commit_id']}"
    return url2pathname(urlsplit(url).path) if url.startswith("file:") else url
