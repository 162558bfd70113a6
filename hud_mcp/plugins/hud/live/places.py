"""The places of a controller: a sandbox on this machine, or a container of its image."""

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio

from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment, did_you_mean
from hud_mcp.sandbox import Sandbox, SandboxOptions
from hud_mcp.sandbox.shown import inside_python

PACKAGE = "hud_controller"
"""The name of a controller's package in the HUD SDK."""

_GUEST = "/controller"
_ANSWER_BYTES = 64 * 1024 * 1024
_BUILD_S = 1800.0
_CALL_S = 110.0
_STOP_S = 15.0

_FLAGS = {
    "CapAdd": "--cap-add",
    "CapDrop": "--cap-drop",
    "CpusetCpus": "--cpuset-cpus",
    "Dns": "--dns",
    "ExtraHosts": "--add-host",
    "Memory": "--memory",
    "NetworkMode": "--network",
    "PidsLimit": "--pids-limit",
    "Privileged": "--privileged",
    "ReadonlyRootfs": "--read-only",
    "Runtime": "--runtime",
    "SecurityOpt": "--security-opt",
    "ShmSize": "--shm-size",
    "Binds": "--volume",
}
"""Options of a container in Docker's API, and the flags of the engine's command."""


class Workshop:
    """A sandbox with the author's controller in it, read-only. Made by `open`."""

    path = [_GUEST]  # noqa: RUF012  # never changed
    """The folders before the installed packages in which a script looks for the package."""

    def __init__(self, sandbox: Sandbox, copy: tempfile.TemporaryDirectory[str]) -> None:
        self._sandbox = sandbox
        self._copy = copy

    @classmethod
    async def open(cls, folder: Path) -> "Workshop":
        """Open a sandbox; EnvironmentFailed says why this machine cannot make one."""
        copy = await anyio.to_thread.run_sync(_copied, folder)
        try:
            guest = f"{_GUEST}/{PACKAGE}"
            options = SandboxOptions(readonly={guest: Path(copy.name) / PACKAGE})
            return cls(await Sandbox.open(options), copy)
        except BaseException:
            copy.cleanup()
            raise

    async def run(self, script: str, call: bytes) -> tuple[bytes, str]:
        """Return a script's bytes on its answer descriptor, and the text that it printed.

        A script that does not end raises EnvironmentFailed.
        """
        pipes = [os.pipe() for _ in range(3)]
        (in_read, in_write), (out_read, out_write), (err_read, err_write) = pipes
        try:
            process = await self._sandbox.spawn(
                [inside_python(), "-I", "-c", script], stdio=(in_read, out_write, err_write)
            )
        except BaseException:
            for fd in (in_write, out_read, err_read):
                os.close(fd)
            raise
        finally:
            for fd in (in_read, out_write, err_write):
                os.close(fd)
        feeding = asyncio.ensure_future(anyio.to_thread.run_sync(_write, in_write, call))
        try:
            with anyio.fail_after(self._sandbox.limits.command_s):
                answer = await anyio.to_thread.run_sync(_read, out_read, abandon_on_cancel=True)
                await process.wait()
        except BaseException as exc:
            with anyio.CancelScope(shield=True):
                await self._sandbox.kill(process, "the call was cut off")
                self._sandbox.drop_output(err_read)
            if isinstance(exc, TimeoutError):
                raise EnvironmentFailed(
                    f"A function of the controller took longer than "
                    f"{self._sandbox.limits.command_s:g} s."
                ) from None
            raise
        finally:
            await asyncio.wait({feeding}, timeout=1.0)
        printed = _read_now(err_read)
        self._sandbox.drop_output(err_read)  # its background processes may write on
        return answer, printed

    async def close(self) -> None:
        """Close the sandbox."""
        await self._sandbox.close()
        self._copy.cleanup()


class Container:
    """A container of an image. Made by `start`."""

    def __init__(self, engine: str, name: str, path: list[str]) -> None:
        self._engine = engine
        self._name: str | None = name
        self.path = path

    @classmethod
    async def start(
        cls, engine: str, image: str, *, controller: Path | None, options: Mapping[str, Any] | None
    ) -> "Container":
        """Start a container.

        Args:
            engine: The engine's program.
            image: The image's name.
            controller: The author's package, mounted read-only; None for the image's.
            options: Options of the container as Docker's API names them.

        Raises:
            EnvironmentFailed: The engine does not start it; the text has the engine's error.
            InvalidEnvironment: An option is unknown.
        """
        name = f"hud-mcp-{secrets.token_hex(6)}"
        flags = container_flags(options)
        path: list[str] = []
        if controller is not None:
            where = os.path.abspath(controller)  # noqa: ASYNC240, PTH100  # no file is looked at
            flags += ["--volume", f"{where}:{_GUEST}/{PACKAGE}:ro"]
            path = [_GUEST]
        container = cls(engine, name, path)
        command = [engine, "run", "--detach", "--rm", "--init", "--name", name, *flags, image]
        try:
            await _said(command, within_s=_CALL_S)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await container.close()
            raise
        return container

    async def run(self, script: str, call: bytes) -> tuple[bytes, str]:
        """Run a script; see `Workshop.run`."""
        if self._name is None:
            raise EnvironmentFailed("The container is closed. Start a new task.")
        command = [self._engine, "exec", "--interactive", self._name, "python3", "-I", "-c", script]
        return await _communicate(command, call, within_s=_CALL_S)

    async def close(self) -> None:
        """Stop and remove the container. It may be called twice."""
        name, self._name = self._name, None
        if name is None:
            return
        try:
            await _said([self._engine, "rm", "--force", name], within_s=_STOP_S)
        except EnvironmentFailed:
            return  # it is not there, or its engine is not


Place = Workshop | Container
"""A place where each call of a controller runs in a new process."""


def find_engine() -> str:
    """Return the program that runs containers; EnvironmentFailed says what to install."""
    for name in ("docker", "podman"):
        found = shutil.which(name)
        if found is not None:
            return found
    raise EnvironmentFailed(
        "A CustomGym of an image or of a Dockerfile runs in a container, and neither `docker` nor "
        "`podman` is on the PATH. Install one of them; or name a folder with a "
        f"{PACKAGE} package and no Dockerfile, which runs in a sandbox."
    )


async def build_image(engine: str, folder: Path, tag: str) -> str:
    """Build the image of a folder with a Dockerfile; EnvironmentFailed has the engine's error."""
    await _said([engine, "build", "--tag", tag, str(folder)], within_s=_BUILD_S)
    return tag


async def run_once(engine: str, image: str, script: str, call: bytes) -> bytes:
    """Run a script in a new container of an image, and return its output, or EnvironmentFailed."""
    command = [engine, "run", "--rm", "--interactive", "--entrypoint", "python3", image]
    return (await _communicate([*command, "-I", "-c", script], call, within_s=_CALL_S))[0]


def container_flags(options: Mapping[str, Any] | None) -> list[str]:
    """Return the engine's flags for options of a container.

    An unknown one is InvalidEnvironment.
    """
    flags: list[str] = []
    for name, value in (options or {}).items():
        if name not in _FLAGS:
            raise InvalidEnvironment(
                f"host_config: there is no option {name!r} here.{did_you_mean(name, _FLAGS)} "
                f"There are: {', '.join(sorted(_FLAGS))}."
            )
        if isinstance(value, bool):
            flags += [_FLAGS[name]] if value else []
            continue
        every = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else [value]
        for each in every:
            flags += [_FLAGS[name], str(each)]
    return flags


async def _said(command: Sequence[str], *, within_s: float) -> str:
    """Return the output of a command of the engine; EnvironmentFailed has the end of its errors."""
    out, _ = await _communicate(command, b"", within_s=within_s)
    return out.decode("utf-8", "replace")


async def _communicate(
    command: Sequence[str], given: bytes, *, within_s: float
) -> tuple[bytes, str]:
    name = f"{Path(command[0]).name} {command[1]}"
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as exc:
        raise EnvironmentFailed(f"{name} does not start: {exc}.") from exc
    try:
        with anyio.fail_after(within_s):
            out, err = await process.communicate(given)
    except BaseException as exc:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.wait()
        if isinstance(exc, TimeoutError):
            raise EnvironmentFailed(f"{name} took longer than {within_s:g} s.") from None
        raise
    said = err.decode("utf-8", "replace").strip()
    if process.returncode:
        raise EnvironmentFailed(f"{name} failed ({process.returncode}): {said[-2000:]}")
    if len(out) > _ANSWER_BYTES:
        raise EnvironmentFailed(f"{name} wrote {len(out)} bytes; at most {_ANSWER_BYTES} are read.")
    return out, said


def _copied(folder: Path) -> "tempfile.TemporaryDirectory[str]":
    """Copy the package, so that the user inside the sandbox may read it."""
    copy = tempfile.TemporaryDirectory(prefix="hud-mcp-controller-")
    os.chmod(copy.name, 0o755)  # noqa: PTH101, S103  # a sandbox of root runs as nobody
    shutil.copytree(
        folder / PACKAGE, Path(copy.name) / PACKAGE, ignore=shutil.ignore_patterns("__pycache__")
    )
    for place, _, files in os.walk(copy.name):
        os.chmod(place, 0o755)  # noqa: PTH101, S103  # the same
        for file in files:
            os.chmod(os.path.join(place, file), 0o644)  # noqa: PTH101, PTH118  # the same
    return copy


def _write(fd: int, data: bytes) -> None:
    try:
        with open(fd, "wb") as pipe:  # a descriptor
            pipe.write(data)
    except BrokenPipeError:
        return  # it ended without reading: its answer says why


def _read(fd: int) -> bytes:
    with open(fd, "rb") as pipe:  # a descriptor
        data = pipe.read(_ANSWER_BYTES + 1)
    if len(data) > _ANSWER_BYTES:
        raise EnvironmentFailed(f"A function returned more than {_ANSWER_BYTES} bytes.")
    return data


def _read_now(fd: int) -> str:
    os.set_blocking(fd, False)
    data = b""
    while True:
        try:
            more = os.read(fd, 65_536)
        except BlockingIOError:
            break
        data += more
        if not more or len(data) > _ANSWER_BYTES:
            break
    return data.decode("utf-8", "replace")
