"""A Ray cluster as a job uses it: its nodes, their offers, and the files that they get."""

import logging
import os
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, NotInstalled
from hud_mcp.plugins import cluster
from hud_mcp.rollout.evaluation import ROWS
from hud_mcp.rollout.options import AUTO
from hud_mcp.values.needs import Needs

_LOCAL = "local"
_MB = 1_000_000


class Cluster:
    """The living nodes of a cluster that this process is connected to, as Ray describes them."""

    def __init__(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        self._offers = [dict(node.get("Resources") or {}) for node in nodes]

    @property
    def size(self) -> int:
        """The number of nodes that may run servers."""
        return sum(1 for offer in self._offers if offer.get("CPU", 0) > 0)

    def claim(self, needs: Needs, sessions: int) -> dict[str, Any]:
        """Return the claim of a server of so many sessions, as Ray's options of an actor.

        A browser is claimed only if some node offers one; else every node is taken to have one.

        Raises:
            HudMcpError: No node offers so much.
        """
        cpus, memory = needs.of_server(sessions)
        known = {name for offer in self._offers for name in offer}
        named = {name: 1 for name in needs.offered if name in known or name != "browser"}
        wanted = {"CPU": cpus, "memory": memory, **named}
        if not any(all(offer.get(n, 0) >= w for n, w in wanted.items()) for offer in self._offers):
            raise HudMcpError(
                f"No node of the Ray cluster has room for a server of {sessions} sessions at "
                f"once. It needs {_shown(wanted)}; nodes offer {self._shown_offers(wanted)}. Run "
                "fewer at once, with more workers or a lower max_concurrent; or add a node."
            )
        return {"num_cpus": cpus, "memory": memory, "resources": named}

    def _shown_offers(self, wanted: Mapping[str, float]) -> str:
        return "; ".join(
            _shown({name: offer.get(name, 0) for name in wanted}) for offer in self._offers
        )


def _shown(amounts: Mapping[str, float]) -> str:
    parts = {"CPU": f"{amounts['CPU']:g} CPU", "memory": f"{amounts['memory'] / _MB:.0f} MB"}
    return ", ".join(parts.get(name, f"{amount:g} {name}") for name, amount in amounts.items())


async def count_nodes(address: str) -> int:
    """Return the number of nodes that may run servers, at least 1; raise as `connected` does."""
    async with connected(address) as found:
        return max(1, found.size)


@asynccontextmanager
async def connected(address: str, folder: Path | None = None) -> AsyncGenerator[Cluster]:
    """Keep a connection to a cluster while the block runs.

    Every server of the job gets the files of `folder` as its working folder.

    Raises:
        NotInstalled: Ray is not installed.
        HudMcpError: The cluster does not answer, or this process is connected already.
    """
    try:
        ray = cluster.ray
    except ImportError as exc:
        raise NotInstalled(
            f"A job on a cluster needs Ray: pip install 'hud-mcp[ray]'. ({exc})"
        ) from exc
    if ray.is_initialized():
        raise HudMcpError(
            "This program is connected to Ray already, and a job sends its files as it connects. "
            "Call ray.shutdown() before it."
        )
    # On a thread: Ray would take the signals of the main thread, which end a job in order.
    nodes = await anyio.to_thread.run_sync(_connect, ray, address, folder)
    try:
        yield Cluster(nodes)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(ray.shutdown)


def _connect(ray: Any, address: str, folder: Path | None) -> Sequence[Mapping[str, Any]]:
    given: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if folder is not None:
        given["runtime_env"] = {"working_dir": str(folder)}
    if address not in (AUTO, _LOCAL):
        given["address"] = address
    elif address == _LOCAL:
        given |= {"address": _LOCAL, "include_dashboard": False}
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray would warn of it
    try:
        ray.init(**given)
        return [node for node in ray.nodes() if node.get("Alive")]
    except (OSError, RuntimeError, ValueError, TimeoutError) as exc:
        first = str(exc).strip().splitlines()
        raise HudMcpError(
            f"The Ray cluster at {address} does not answer: {first[0] if first else exc}. "
            "`ray status` on one of its nodes tells of it; `ray start --head` starts one."
        ) from exc


_LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "node_modules", "*.sqlite3", "*.sqlite3-*", "*.pyc"
)
_MOST_BYTES = 400_000_000
"""The most bytes of a folder; Ray refuses 500 MB."""


def gather_files(sources: Sequence[str], tasks: Taskset, folder: Path) -> list[str]:
    """Copy the files of a job's servers to an empty folder, and return the sources as seen there.

    Raises:
        HudMcpError: The files are too large to be sent.
    """
    tasks.save(folder / ROWS)
    copied: dict[Path, str] = {}
    return [_gathered(source, folder, copied) for source in sources]


def _gathered(source: str, folder: Path, copied: dict[Path, str]) -> str:
    scheme = "hud:" if source.startswith("hud:") else ""
    place, name = _split(source.removeprefix(scheme))
    if place is None:
        return source  # it comes with the package, or is an address
    top = place if place.is_dir() else place.parent
    if top not in copied:
        size = sum(path.stat().st_size for path in top.rglob("*") if path.is_file())
        if size > _MOST_BYTES:
            raise HudMcpError(
                f"{top} has {size / 1e6:.0f} MB, and a cluster is sent at most "
                f"{_MOST_BYTES / 1e6:.0f}. Move {place.name} and its files to a folder of their "
                "own."
            )
        copied[top] = f"env{len(copied)}"
        shutil.copytree(top, folder / copied[top], ignore=_LEFT_OUT)
    inside = f"./{copied[top]}" if place.is_dir() else f"{copied[top]}/{place.name}"
    return f"{scheme}{inside}{'' if name is None else f':{name}'}"


def _split(source: str) -> tuple[Path | None, str | None]:
    if "/" not in source and "\\" not in source:
        return None, None
    if Path(source).exists():
        return Path(source).resolve(), None
    place, _, name = source.rpartition(":")
    return (Path(place).resolve(), name) if place and Path(place).exists() else (None, None)
