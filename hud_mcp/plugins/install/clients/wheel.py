"""The wheel of what is installed here: one that can be handed on."""

import base64
import hashlib
import importlib.util
import json
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from hud_mcp.errors import HudMcpError, NotInstalled

__all__ = ["own_wheel"]

_BUILD_S = 600.0
_NOT_OF_A_WHEEL = frozenset(
    {"INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json"}
)
"""What installers add to the folder of metadata."""
_FIRST = (1980, 1, 1, 0, 0, 0)
"""The date of all files: the same content makes the same bytes."""


def own_wheel(folder: Path) -> Path:
    """Make the wheel of this package: of its installed files, or of the sources that it runs from.

    Args:
        folder: Where it goes.

    Raises:
        NotInstalled: It runs from its sources, and nothing that builds wheels is there.
        HudMcpError: It cannot be built.
    """
    package = distribution("hud-mcp")
    sources = _sources(package)
    return _pack(package, folder) if sources is None else _build(sources, folder)


def _sources(package: Distribution) -> Path | None:
    """The folder that an editable installation runs from; None for any other one."""
    said: dict[str, Any] = json.loads(package.read_text("direct_url.json") or "{}")
    if not said.get("dir_info", {}).get("editable"):
        return None
    return Path(url2pathname(urlsplit(str(said["url"])).path))


def _build(sources: Path, folder: Path) -> Path:
    if importlib.util.find_spec("hatchling") is not None:
        command = ["hatchling", "build", "-t", "wheel", "-d", str(folder)]
    elif importlib.util.find_spec("pip") is not None:  # which fetches hatchling for this alone
        command = ["pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(sources)]
    else:
        raise NotInstalled(
            "hud-mcp runs from its sources, and neither hatchling nor pip is here to build a wheel "
            f"of them. Run `uv build --wheel {sources}`, and name its wheel with --wheel."
        )
    done = subprocess.run(  # noqa: S603  # this interpreter, with a module of it
        [sys.executable, "-m", *command],
        cwd=sources,
        capture_output=True,
        text=True,
        timeout=_BUILD_S,
        check=False,
    )
    built = list(folder.glob("*.whl"))
    if done.returncode or len(built) != 1:
        raise HudMcpError(f"The wheel of {sources} cannot be built: {done.stderr.strip()}")
    return built[0]


def _pack(package: Distribution, folder: Path) -> Path:
    """Put the files of an installation into a wheel again; source: PEP 427."""
    contents: dict[str, bytes] = {}
    info = ""
    for file in package.files or ():
        name = file.as_posix()
        if name.startswith("..") or "__pycache__" in file.parts:
            continue  # scripts, which an installer writes for its own machine
        if file.parts[0].endswith(".dist-info"):
            info = file.parts[0]
            if file.name in _NOT_OF_A_WHEEL:
                continue
        contents[name] = Path(str(package.locate_file(file))).read_bytes()
    if f"{info}/WHEEL" not in contents:
        raise HudMcpError("The installation of hud-mcp is not complete. Name a wheel with --wheel.")
    rows = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    path = folder / f"hud_mcp-{package.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(zipfile.ZipInfo(name, _FIRST), data, zipfile.ZIP_DEFLATED)
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
