"""Missing parts of a machine, the system's package manager, and Playwright's download."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field

from hud_mcp.base import libraries
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.worlds.browser.chromium import Chromium, find_chromium
from hud_mcp.worlds.browser.driver import driver_complaint, missing_library, package_of


@dataclass(frozen=True)
class Need:
    """One thing that the machine must have, with its packages by package manager.

    `a|b` means the first of both that is known.
    """

    what: str
    packages: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


CHROMIUM = Need(
    "a Chromium",
    {
        # The headless shell opens pages twice as fast; not every distribution has it apart.
        "apt-get": ("chromium-headless-shell|chromium", "fonts-dejavu-core"),
        "dnf": ("chromium-headless|chromium", "dejavu-sans-fonts"),
    },
)

FONTS = Need("a font", {"apt-get": ("fonts-dejavu-core",), "dnf": ("dejavu-sans-fonts",)})

BUBBLEWRAP = Need("bubblewrap", {"apt-get": ("bubblewrap",), "dnf": ("bubblewrap",)})

OPENGL = Need(
    "an OpenGL that draws without a display",
    {
        "apt-get": ("libegl1", "libgl1", "libgl1-mesa-dri"),
        "dnf": ("mesa-libEGL", "mesa-libGL", "mesa-dri-drivers"),
    },
)


def browser_fault() -> str | None:
    """Return the reason why a browser cannot start; None if one started and stopped."""

    async def launch() -> None:
        browser = await Chromium.launch(find_chromium())
        await browser.close()

    try:
        anyio.run(launch)
    except EnvironmentFailed as exc:
        return str(exc)
    return None


def find_browser_needs() -> Iterator[Need]:
    """Yield the missing parts of a browser.

    Raises:
        EnvironmentFailed: A Chromium was named that is not there.
    """
    complaint = anyio.run(driver_complaint)
    if complaint is not None:
        library = missing_library(complaint)
        if library is not None:
            manager, package = package_of(library)
            known = {manager: (package,)} if manager and package else {}
            yield Need(f"{library} for Playwright's driver", known)
    if find_chromium() is None and (complaint is not None or browser_fault() is not None):
        yield CHROMIUM  # Playwright's own was not there either


State = Literal["ok", "failed", "absent"]
"""`absent` is a thing that only some environments need."""


class Finding(BaseModel):
    """A finding about the machine, with advice."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="What was looked at.")
    state: State = Field(description="Whether it works, fails though it is needed, or is absent.")
    said: str = Field(description="What was found.")
    do: str = Field(default="", description="What to do; empty where nothing has to be done.")

    @classmethod
    def ok(cls, name: str, said: str, do: str = "") -> "Finding":
        """Create a finding about something that works."""
        return cls(name=name, state="ok", said=said, do=do)

    @classmethod
    def lack(cls, name: str, said: str, do: str, *, needed: bool) -> "Finding":
        """Create a finding about something that fails or is missing."""
        return cls(name=name, state="failed" if needed else "absent", said=said, do=do)


Progress = Callable[[float, str], None]
"""A function that gets the progress, from 0 to 100, and the present activity in words."""

_BOUND_S = 1800
_ASK_BOUND_S = 60
_MIB = 1024 * 1024
_COMPLAINTS = ("E:", "W: Failed to fetch", "Error", "sudo:")
"""The beginnings of lines about errors. `apt-get update` warns and goes on."""

_APT_STATUS = re.compile(r"(?:dl|pm)status:[^:]*:(?P<percent>[\d.]+):(?P<what>.*)")
_DNF_SIZE = re.compile(r"[Dd]ownload size: ([\d.]+ ?\w+)")
_OPTIONS = {
    # Through sudo, no descriptor but the standard ones is kept.
    "apt-get": ("-y", "-qq", "--no-install-recommends", "-o", "APT::Status-Fd=1"),
    "dnf": ("-y", "-q", "--setopt=install_weak_deps=False"),
}


class PackageManager:
    """The package manager of the system. `complaint` is its first complaint; empty without one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._is_root = name == "brew" or (hasattr(os, "geteuid") and os.geteuid() == 0)
        self._has_sudo = shutil.which("sudo") is not None
        self.complaint = ""

    @classmethod
    def find(cls) -> "PackageManager | None":
        """Return the package manager of this machine."""
        return next((cls(n) for n in ("apt-get", "dnf", "brew") if shutil.which(n)), None)

    @property
    def may_install(self) -> bool:
        """Whether it is worth asking: without root, sudo may allow it."""
        return self._is_root or self._has_sudo

    def choose(self, needs: Iterable[Need]) -> list[str]:
        """Return the packages to install, each once."""
        wanted = [p for need in needs for p in need.packages.get(self.name, ())]
        return list(dict.fromkeys(self._first_known(p.split("|")) for p in wanted))

    def size(self, packages: list[str]) -> str | None:
        """Return the size of the download as text; None if the package manager cannot tell."""
        if self.name == "apt-get":
            said = self._ask("install", "--print-uris", *_OPTIONS["apt-get"][:3], *packages)
            sizes = [line.split()[2] for line in said.splitlines() if line.startswith("'")]
            return f"{sum(map(int, sizes)) / _MIB:.0f} MB" if sizes else None
        if self.name == "dnf":
            found = _DNF_SIZE.search(self._ask("install", "--assumeno", *packages))
            return found[1] if found else None
        return None

    def update(self) -> None:
        """Update the list of packages, if that is a step of its own."""
        if self.name == "apt-get":
            self._run("update", "-qq")

    def install(self, packages: list[str], progress: Progress | None = None) -> None:
        """Install packages that `choose` returned. The caller checks whether they work."""
        # One that it has not heard of would keep it from installing the others.
        known = [name for name in packages if self._is_known(name)]
        if len(known) < len(packages):
            unknown = ", ".join(name for name in packages if name not in known)
            self.complaint = self.complaint or f"{self.name} has no {unknown}"
        if known:
            self._run("install", *_OPTIONS.get(self.name, ()), *known, progress=progress)

    def command(self, packages: list[str]) -> str:
        """Return the command that a person types instead."""
        sudo = "sudo " if self._has_sudo and not self._is_root else ""
        if self.name == "apt-get":
            return f"{sudo}apt-get update && {sudo}apt-get install -y {' '.join(packages)}"
        return f"{sudo}{self.name} install {' '.join(packages)}"

    def advice(self, packages: list[str]) -> str:
        """Return a sentence about the command that a person types instead."""
        who = "" if self._is_root or self._has_sudo else " as root"
        return f"Run this{who}, then try again:\n    {self.command(packages)}"

    def _first_known(self, names: list[str]) -> str:
        return next((name for name in names if self._is_known(name)), names[-1])

    def knows(self, packages: list[str]) -> bool:
        """Whether it has heard of each."""
        return bool(packages) and all(self._is_known(name) for name in packages)

    def _is_known(self, name: str) -> bool:
        if self.name != "apt-get" or not shutil.which("apt-cache"):
            return True
        asked = ["apt-cache", "show", "--no-all-versions", name]
        done = subprocess.run(asked, capture_output=True, check=False)  # noqa: S603  # the system's
        return done.returncode == 0

    def _ask(self, *arguments: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603  # the system's
                [self.name, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", check=False, timeout=_ASK_BOUND_S,
                env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout

    def _run(self, *arguments: str, progress: Progress | None = None) -> None:
        """Call it, and note its first complaint."""
        if not self.may_install:
            self.complaint = "only root may install them"
            return
        as_root = [] if self._is_root else ["sudo", "-n"]
        told: list[str] = []
        try:
            with subprocess.Popen(  # noqa: S603  # the system's
                [*as_root, self.name, *arguments], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            ) as process:  # fmt: skip
                bound = threading.Timer(_BOUND_S, process.kill)
                bound.start()
                try:
                    for line in process.stdout or ():
                        _take(line.strip(), told, progress)
                    status = process.wait()
                finally:
                    bound.cancel()
        except OSError as exc:
            self.complaint = self.complaint or str(exc)
            return
        errors = [line for line in told if line.startswith(_COMPLAINTS)]
        if status and not errors:
            errors = told[-1:] or [f"status {status}"]
        if errors and not self.complaint:
            self.complaint = f"{self.name} said: {errors[0]}"


def _take(line: str, told: list[str], progress: Progress | None) -> None:
    status = _APT_STATUS.match(line)
    if status is None:
        if line:
            told.append(line)
    elif progress is not None:
        progress(float(status["percent"]), status["what"])


_ROUNDS = 3
"""A loader names one library at a time."""


def install(
    find: Callable[[], Iterable[Need]],
    manager: PackageManager | None,
    *,
    tell: Callable[[str], None],
    progress: Progress | None = None,
) -> list[Need]:
    """Install missing parts, and return the parts that are still missing.

    Args:
        find: A function that looks for missing parts.
        manager: The package manager of the system, or None.
        tell: A function that gets each event as a text.
        progress: A function that gets the progress.

    Raises:
        EnvironmentFailed: `find` raised it.
    """
    needs = list(find())
    for _ in range(_ROUNDS):
        if not needs or manager is None:
            break
        manager.update()
        if not manager.may_install:
            break
        packages = manager.choose(needs)
        if not packages:
            break
        tell(f"Installing {', '.join(need.what for need in needs)}.")
        manager.install(packages, progress)
        before, needs = needs, list(find())
        if needs == before:
            break
    if CHROMIUM in needs and anyio.run(driver_complaint) is None:
        tell("Downloading Playwright's Chromium.")
        complaint = _download_chromium(progress)
        if complaint is not None:
            tell(f"Playwright said: {complaint}")
        needs = list(find())
    return needs


def still_missing(who: str, needs: list[Need], manager: PackageManager | None) -> str:
    """Return the text about the needed parts: the reason, and the command to type."""
    text = f"{who} needs {', '.join(need.what for need in needs)}"
    packages = manager.choose(needs) if manager else []
    if manager is None or not packages:
        return f"{text}: install them, then try again."
    reason = f"; {manager.complaint}" if manager.complaint else ""
    return f"{text}{reason}.\n{manager.advice(packages)}"


_SHELL = "chromium-headless-shell"
_ABOUT = "some 120 MB"
"""The usual size of Playwright's own Chromium, if its server does not tell it."""
_CHROMIUM_ASK_BOUND_S = 10.0
_DRY_BOUND_S = 60
_URL = re.compile(r"Download url:\s+(https://\S+)")
_PERCENT = re.compile(r"(?P<percent>\d+)% of (?P<size>[\d.]+ \w+)")


@dataclass(frozen=True)
class Offer:
    """An installation that is offered: the package or project, and the download's size in words."""

    source: str
    size: str


def offer_of(manager: PackageManager | None) -> Offer:
    """Return the installation of a Chromium that `install` would do with this package manager."""
    packages = manager.choose([CHROMIUM]) if manager else []
    if manager is not None and manager.may_install and manager.knows(packages):
        size = manager.size(packages) or "some 150 MB"
        return Offer(f"{packages[0]} from {manager.name}", size)
    return Offer("Playwright's Chromium", _playwright_size() or _ABOUT)


def _playwright_size() -> str | None:
    command = [sys.executable, "-m", "playwright", "install", "--dry-run", _SHELL]
    try:
        said = subprocess.run(  # noqa: S603  # our own interpreter
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=_DRY_BOUND_S,
        ).stdout  # fmt: skip
        found = _URL.search(said)
        if found is None:
            return None
        reply = libraries.httpx.head(found[1], timeout=_CHROMIUM_ASK_BOUND_S, follow_redirects=True)
        size = int(reply.headers.get("content-length", "0"))
    except (OSError, subprocess.TimeoutExpired, libraries.httpx.HTTPError, ValueError):
        return None
    return f"{size / _MIB:.0f} MB" if reply.is_success and size else None


def _download_chromium(progress: Progress | None = None) -> str | None:
    """Let Playwright download its own Chromium, with its libraries if they may be installed.

    Return its last complaint; None if Chromium was downloaded.
    """
    complaint = ""
    for options in [["--with-deps"], []] if _may_install() else [[]]:
        command = [sys.executable, "-m", "playwright", "install", *options, _SHELL]
        with subprocess.Popen(  # noqa: S603  # our own interpreter
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace",
        ) as process:  # fmt: skip
            for line in process.stdout or ():
                said = _PERCENT.search(line)
                if said is not None and progress is not None:
                    progress(float(said["percent"]), f"of {said['size']}")
                if line.startswith("Error:"):
                    complaint = line.removeprefix("Error:").strip()[:300]
            if process.wait() == 0:
                return None
    return complaint or "nothing"


def _may_install() -> bool:
    """Whether packages can be installed without asking anybody for a password."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return hasattr(os, "geteuid")
    sudo = shutil.which("sudo")
    return (
        sudo is not None
        and not subprocess.run(  # noqa: S603  # the system's
            [sudo, "-n", "true"], capture_output=True, check=False
        ).returncode
    )
