"""Programs as people have them on their machines, made by hand: no network, and no real package."""

import os
import struct
import sys
from pathlib import Path

__all__ = ["BASE", "make_environment", "make_modules", "make_package", "static_binary", "write"]

BASE = Path(sys.base_prefix)
"""The interpreter's own installation, as of pyenv or uv where it is none of the system."""

PYTHON = f"python3.{sys.version_info.minor}"

MODULE = """
import importlib.util, sys

def main():
    print("served by", sys.argv[0], *sys.argv[1:], "in", sys.prefix)
    import ssl, sqlite3  # libraries of the interpreter
    print("pydantic", importlib.util.find_spec("pydantic"))
"""
"""A server's module; `pydantic` is a package that only another environment has."""

SCRIPT = """#!{python}
import sys
from {module} import main
sys.exit(main())
"""


def write(path: Path, text: str, *, mode: int = 0o644) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def make_environment(folder: Path, base: Path = BASE) -> Path:
    """A virtual environment as `venv` and uv make it; its folder is returned."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python3").symlink_to(base / "bin" / "python3")
    (folder / "bin" / "python").symlink_to("python3")
    (folder / "lib" / PYTHON / "site-packages").mkdir(parents=True)
    write(folder / "pyvenv.cfg", f"home = {base / 'bin'}\ninclude-system-site-packages = false\n")
    return folder


def make_package(
    environment: Path, name: str, module: str = MODULE, version: str = "1.2.3"
) -> Path:
    """A package with one program in a virtual environment, as pip leaves it; its program."""
    (packages,) = environment.glob("lib/python*/site-packages")
    entry = f"[console_scripts]\n{name} = {name}_module:main\n"
    write(packages / f"{name}-{version}.dist-info" / "entry_points.txt", entry)
    if module:
        write(packages / f"{name}_module.py", module)
    text = SCRIPT.format(python=environment / "bin" / "python", module=f"{name}_module")
    return write(environment / "bin" / name, text, mode=0o755)


def make_modules(folder: Path, *, hoisted: bool) -> Path:
    """A package of npm and one that it needs; where they are hoisted, beside it."""
    own = folder / "node_modules" / "@acme" / "server"
    described = '{"name": "@acme/server", "version": "4.5.6", "bin": {"acme": "dist/index.js"}}'
    write(own / "package.json", described)
    code = '#!/usr/bin/env node\nconsole.log(require("needed"), process.argv.slice(2).join())\n'
    write(own / "dist" / "index.js", code, mode=0o755)
    beside = folder / "node_modules" if hoisted else own / "node_modules"
    write(beside / "needed" / "index.js", 'module.exports = "needed is there"\n')
    write(folder / "node_modules" / "other" / "secret.txt", "a package of somebody else")
    if hoisted:
        write(folder / "node_modules" / ".package-lock.json", "{}")
    binary = folder / ("node_modules/.bin" if hoisted else "bin") / "acme"
    binary.parent.mkdir(parents=True, exist_ok=True)
    binary.symlink_to(os.path.relpath(own / "dist" / "index.js", binary.parent))
    return binary


def static_binary(path: Path, text: str) -> Path:
    """A program of x86-64 without any library, which writes a text: as Go and Rust make them."""
    data = text.encode()
    at = 0x400000
    code = b"\xb8\x01\x00\x00\x00\xbf\x01\x00\x00\x00\x48\xbe" + struct.pack("<Q", at + 0x78 + 39)
    code += b"\xba" + struct.pack("<I", len(data))
    code += b"\x0f\x05\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05"
    code = code.ljust(39, b"\x90")
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, at + 0x78, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    size = 0x78 + len(code) + len(data)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, at, at, size, size, 0x1000)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + segment + code + data)
    path.chmod(0o755)
    return path
