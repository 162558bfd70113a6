"""An MCP bundle: one file that a client installs, with this package and what it is to serve.

Source: MANIFEST.md of github.com/modelcontextprotocol/mcpb, version 0.4: a server of the type
`uv` has its requirements in a `pyproject.toml`, and the client brings Python and installs them.
"""

import base64
import hashlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import click
import tomlkit

from hud_mcp.base import __version__
from hud_mcp.base.text import clip_text
from hud_mcp.cli.help import Command
from hud_mcp.errors import HudMcpError, LimitReached, NotInstalled, OutputExists
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.install.client import serve_arguments
from hud_mcp.plugins.install.install import name_option, taskset_option

_BUILD_S = 600.0
_NOT_OF_A_WHEEL = frozenset(
    {"INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json"}
)
"""The files that installers add to the folder of metadata."""
_FIRST = (1980, 1, 1, 0, 0, 0)
"""The date of all files: the same content makes the same bytes."""


def _own_wheel(folder: Path) -> Path:
    """Make the wheel of the installed files, or of the sources that the package runs from.

    Raise NotInstalled without a builder of wheels, and HudMcpError if the wheel cannot be built.
    """
    package = distribution("hud-mcp")
    sources = _sources(package)
    return _pack(package, folder) if sources is None else _build(sources, folder)


def _sources(package: Distribution) -> Path | None:
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


_HERE = "${__dirname}"
_MOST_BYTES = 100 * 2**20
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "dist", "build"})
_PYTHON = ">=3.11"
_PLATFORMS = ("darwin", "win32", "linux")
_STARTER = '''"""Starts hud-mcp on what this bundle is to serve."""

import os
import sys
from pathlib import Path

from hud_mcp.__main__ import main

ARGUMENTS = {arguments}


def setting(name):
    """A client passes the placeholder itself where a person left a setting empty."""
    value = os.environ.pop(name, "").strip()
    return "" if value.startswith("${{") else value


if __name__ == "__main__":
    here = str(Path(__file__).resolve().parent)
    arguments = [each.replace("{here}", here) for each in ARGUMENTS]
    if source := setting("BUNDLE_SOURCE"):
        arguments.append(source)
    if store := setting("BUNDLE_STORE"):
        arguments += ["--store", store]
    for limit in setting("BUNDLE_LIMITS").replace(",", " ").split():
        arguments += ["--limit", limit]
    sys.argv = ["hud-mcp", *arguments]
    main()
'''
_SETTINGS = {
    "source": (
        "file",
        "Another environment",
        "A Python file with an environment of yours, which is served too.",
    ),
    "store": (
        "string",
        "Record",
        "The SQLite file or the PostgreSQL URL of the record. Empty: your own.",
    ),
    "limits": ("string", "Limits", "Such as: sessions=8, step_s=120. Empty: the defaults."),
}
"""The type, the title and the sentence of each setting that a client asks a person for."""
_DESCRIPTION_CHARS = 100
_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


@dataclass(frozen=True)
class Bundle:
    """The contents of a bundle.

    Attributes:
        name: The name that clients show.
        wheel: The wheel of this package.
        sources: The sources to serve, as `serve` takes them. A file goes in, with its folder.
        tasksets: Files of tasks, which go in, or names of sets.
        extras: The extras of this package that are needed.
    """

    name: str
    wheel: Path
    sources: Sequence[str]
    tasksets: Sequence[str] = ()
    extras: Sequence[str] = ()
    _files: dict[str, Path] = field(default_factory=dict[str, Path], init=False)
    _folders: dict[Path, str] = field(default_factory=dict[Path, str], init=False)

    def write(self, path: Path, *, force: bool = False) -> list[str]:
        """Write the file; return the names of what is in it.

        Raises:
            OutputExists: There is one, and nobody has forced it.
            LimitReached: A folder with a source holds more than a bundle should.
        """
        if path.exists() and not force:
            raise OutputExists(
                f"{path} exists already. Choose another -o, or replace it with --force."
            )
        arguments = [self._placed(each) for each in serve_arguments(self.sources, self.tasksets)]
        wheel = f"wheels/{self.wheel.name}"
        texts = {
            "manifest.json": json.dumps(self._manifest(), indent=2, ensure_ascii=False) + "\n",
            "pyproject.toml": tomlkit.dumps(self._project(wheel)),
            "server.py": _STARTER.format(arguments=json.dumps(arguments), here=_HERE),
        }
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(name, text)
            for name, file in {wheel: self.wheel, **self._files}.items():
                archive.write(file, name)
            return archive.namelist()

    def _placed(self, argument: str) -> str:
        """Return an argument with its path in the bundle, and add the files that it names."""
        place, colon, name = argument.rpartition(":")
        whole = Path(argument)
        if whole.is_absolute() and whole.exists():
            return f"{_HERE}/{self._take(whole)}"
        if colon and Path(place).is_absolute() and Path(place).is_file():
            return f"{_HERE}/{self._take(Path(place))}:{name}"
        return argument

    def _take(self, path: Path) -> str:
        if path.is_file() and path.suffix != ".py":
            inside = self._free(f"tasksets/{path.stem}") + path.suffix
            self._files[inside] = path
            return inside
        folder = path if path.is_dir() else path.parent
        inside = self._folders.setdefault(folder, self._free(f"sources/{folder.name or 'source'}"))
        size = 0
        for file in _files_of(folder):
            size += file.stat().st_size
            if size > _MOST_BYTES:
                raise LimitReached(
                    f"{folder} holds more than {_MOST_BYTES >> 20} MB. Move the environment "
                    "into its own folder."
                )
            self._files[f"{inside}/{file.relative_to(folder).as_posix()}"] = file
        return inside if path.is_dir() else f"{inside}/{path.name}"

    def _free(self, name: str) -> str:
        number, found = 1, name
        while any(each.startswith((f"{found}/", f"{found}.")) for each in self._files):
            number += 1
            found = f"{name}-{number}"
        return found

    def _project(self, wheel: str) -> dict[str, Any]:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return {
            "project": {
                "name": f"{self.name}-bundle",
                "version": __version__,
                "requires-python": _PYTHON,
                "dependencies": [f"hud-mcp{extras}"],
            },
            "tool": {"uv": {"package": False, "sources": {"hud-mcp": {"path": wheel}}}},
        }

    @property
    def _description(self) -> str:
        served = ", ".join(self.sources) or "the quickstart environments"
        return f"Tasks in environments, graded once and recorded: {served}."

    def entry(self, path: Path, address: str) -> dict[str, Any]:
        """Return the entry of the MCP registry for the written file, which `address` will offer.

        Source: server.schema.json of 2025-12-11.
        """
        return {
            "$schema": _SCHEMA,
            "name": f"{_namespace(address)}/{self.name}",
            "description": clip_text(self._description, _DESCRIPTION_CHARS),
            "version": __version__,
            "packages": [
                {
                    "registryType": "mcpb",
                    "identifier": address,
                    "fileSha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                    "transport": {"type": "stdio"},
                }
            ],
        }

    def _manifest(self) -> dict[str, Any]:
        return {
            "manifest_version": "0.4",
            "name": self.name,
            "display_name": self.name,
            "version": __version__,
            "description": self._description,
            "author": {"name": "The authors of hud-mcp"},
            "license": "MIT",
            "server": {
                "type": "uv",
                "entry_point": "server.py",
                "mcp_config": {
                    "command": "uv",
                    "args": ["run", "--directory", _HERE, "server.py"],
                    "env": {
                        f"BUNDLE_{key.upper()}": f"${{user_config.{key}}}" for key in _SETTINGS
                    },
                },
            },
            "user_config": {
                key: {"type": kind, "title": title, "description": text, "required": False}
                for key, (kind, title, text) in _SETTINGS.items()
            },
            "tools_generated": True,
            "prompts_generated": True,
            "compatibility": {"platforms": list(_PLATFORMS), "runtimes": {"python": _PYTHON}},
        }


def _namespace(address: str) -> str:
    """Return the part before the slash of an entry's name, which the address makes one's own.

    The registry lets a person enter the names of a GitHub account and those of a domain.
    """
    parts = urlsplit(address)
    if parts.scheme != "https" or parts.hostname is None:
        raise HudMcpError(
            f"{address!r} is not an https address. Name the one that will offer the bundle."
        )
    if parts.hostname == "github.com":
        return f"io.github.{parts.path.strip('/').split('/')[0]}"
    return ".".join(reversed(parts.hostname.split(".")))


def _files_of(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, without hidden files, Python environments and built files."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _LEFT_OUT or path.suffix == ".mcpb":
            continue
        if path.is_dir() and not (path / "pyvenv.cfg").exists():
            yield from _files_of(path)
        elif path.is_file():
            yield path


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="hud-mcp.mcpb",
    show_default=True,
    help="The file to write the bundle to.",
)
@taskset_option
@name_option
@click.option(
    "--extra",
    "extras",
    hidden=True,
    multiple=True,
    metavar="NAME",
    help="An extra of this package that the sources need.",
)
@click.option(
    "--wheel",
    hidden=True,
    metavar="FILE",
    help="The wheel to include. Default: a wheel of the installed package.",
)
@click.option(
    "--address",
    hidden=True,
    metavar="URL",
    help="The address that will offer the bundle: writes its entry for the MCP registry too.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def command(sources: Sequence[str], output: str, wheel: str | None, **options: Any) -> None:
    """Make an MCP bundle (.mcpb) that serves SOURCE, for clients such as Claude Desktop.

    The bundle contains the wheel of this package, and the folder of each source that is a file. The
    client gets Python through uv, and installs the packages that the wheel requires.
    """
    load_environments(serve_arguments(sources)[1:])
    address = options["address"]
    if address is not None:
        _namespace(address)  # refused before anything is written
    with tempfile.TemporaryDirectory() as folder:
        built = _own_wheel(Path(folder)) if wheel is None else Path(wheel)
        bundle = Bundle(
            options["name"],
            built,
            sources or serve_arguments(())[1:],
            options["tasksets"],
            options["extras"],
        )
        names = bundle.write(Path(output), force=options["force"])
        if address is not None:
            entry = Path(output).with_suffix(".server.json")
            found = bundle.entry(Path(output), address)
            entry.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
            click.echo(f"Written: {entry} ({found['name']}, for `mcp-publisher publish`)")
    size = Path(output).stat().st_size / 2**20
    click.echo(f"Written: {output} ({len(names)} files, {size:.1f} MB)")
    click.echo("Open it with a client that takes bundles, such as Claude Desktop.")
