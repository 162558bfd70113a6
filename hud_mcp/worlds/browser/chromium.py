"""Chromium: finding it, launching it, and the one process that all sessions share.

This module owns the browser process and Playwright's driver. The contexts that sessions
get are prepared by `reserve.py`.
"""

import logging
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio

from hud_mcp.base import telemetry
from hud_mcp.base.process import shown_command
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import Crashes, send
from hud_mcp.worlds.browser.driver import missing_library, start_driver
from hud_mcp.worlds.browser.reserve import Reserve
from hud_mcp.worlds.browser.slot import Slot, SlotOptions

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

__all__ = [
    "EXECUTABLE_VARIABLE",
    "BrowserGroup",
    "Chromium",
    "browser_advice",
    "find_chromium",
    "sandbox_problem",
]


@dataclass(frozen=True)
class BrowserGroup:
    """A browser's process group, and the driver that launched it.

    Attributes:
        group: The group's id. Playwright begins one for each browser.
        driver: The driver's process; None if it is not known.
    """

    group: int
    driver: int | None

    @classmethod
    async def of(cls, browser: "Browser") -> Self | None:
        """Return the group of a running browser; None if the system has no such groups.

        Raises:
            Error: Playwright's, if the browser is gone.
        """
        if sys.platform == "win32":
            return None
        cdp = await browser.new_browser_cdp_session()
        told = await send(cdp, "SystemInfo.getProcessInfo")
        await cdp.detach()
        found = [each["id"] for each in told["processInfo"] if each["type"] == "browser"]
        with suppress(ProcessLookupError):
            group = os.getpgid(found[0])
            if group != os.getpgrp():  # never ours
                return cls(group, _child_above(found[0]))
        return None

    def kill(self) -> None:
        """End the group and the driver, from any thread. Processes that are gone are no error."""
        with suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGKILL)
        if self.driver is not None:
            with suppress(ProcessLookupError):
                os.kill(self.driver, signal.SIGKILL)


def _child_above(pid: int) -> int | None:
    """Return the child of this process that a process descends from."""
    while pid > 1:
        above = _parent(pid)
        if above == os.getpid():
            return pid
        if above is None:
            return None
        pid = above
    return None


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # gone, or another system
        return None
    return int(stat.rpartition(")")[2].split()[1])


logger = logging.getLogger(__name__)

EXECUTABLE_VARIABLE = "HUD_MCP_CHROMIUM"
"""The environment variable that names the executable."""

LAUNCH_BOUND_S = 30.0
CLOSE_BOUND_S = 5.0

# The headless shell comes first because it opens a page twice as fast. Debian's command of
# that name is a shell script that waits for it, so the program itself is better.
_CANDIDATES = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)

_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    # No name is looked up here: `<link rel=dns-prefetch>` would tell a name server which host a
    # page had in mind, and the sessions' proxies are at an address.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # WebRTC would reach any address over UDP, past the session's proxy.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
)
"""The arguments that stop requests which no page made, and ways past the proxy."""

_FEATURES_OFF = (
    # A new host and a new compositor for each document cost a quarter of a visit's processor time.
    "RenderDocument",
    # The last `--disable-features` alone counts, so those that Playwright gives are given again.
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "TcpPortRandomizationWin",
    "ThirdPartyStoragePartitioning",
    "msEdgeUpdateLaunchServicesPreferredVersion",
    "msForceBrowserSignIn",
)
_DISABLE = "--disable-features="

_WEBGL = """() => {
  const gl = document.createElement("canvas").getContext("webgl");
  const named = gl && gl.getExtension("WEBGL_debug_renderer_info");
  return gl && gl.getParameter(named ? named.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
}"""


_SECRET = re.compile(r"(?:_|\A)(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)(?:_|\Z)", re.IGNORECASE)
"""The pattern for names of variables that hold a secret."""


def browser_advice() -> str:
    """Return the advice for a machine on which no Chromium starts."""
    install = shown_command("browser", "install")
    return f"Run `{install}` to install one, or name one in {EXECUTABLE_VARIABLE}."


def find_chromium(executable: str | Path | None = None) -> str | None:
    """Return the path of a Chromium, or None if only Playwright's own download is left.

    Args:
        executable: The author's choice. It wins over `HUD_MCP_CHROMIUM`, which wins over an
            installed one.

    Raises:
        EnvironmentFailed: A program is named, and cannot be run.
    """
    named = str(executable) if executable else os.environ.get(EXECUTABLE_VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise EnvironmentFailed(
                f"{named!r} is not a program that can be run. {browser_advice()}"
            )
        return found
    return next((path for name in _CANDIDATES if (path := shutil.which(name))), None)


def sandbox_problem() -> str | None:
    """Return the reason why Chromium's sandbox cannot work here; None if it can.

    Source: chromium docs/linux/sandboxing.md: it needs user namespaces, and refuses root.
    """
    if not sys.platform.startswith("linux"):
        return None
    if os.geteuid() == 0:
        return "Chromium refuses its sandbox to root"
    for setting, value in (
        ("kernel/unprivileged_userns_clone", "0"),
        ("user/max_user_namespaces", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ):
        try:
            if Path("/proc/sys", setting).read_text().strip() == value:
                return f"{setting.replace('/', '.')} is {value}, so there are no user namespaces"
        except OSError:
            continue
    return None


class Chromium:
    """A running browser with Playwright's driver, shared by the worlds of one process.

    The browser dies with the process: the driver ends it when its pipe closes.
    """

    def __init__(self, playwright: "Playwright", browser: "Browser") -> None:
        self._playwright = playwright
        self._browser = browser
        self._closed = False
        self._group: BrowserGroup | None = None
        self.crashes = Crashes()
        self.reserve = Reserve(self._prepare)

    @property
    def alive(self) -> bool:
        """Whether new contexts can be opened."""
        return not self._closed and self._browser.is_connected()

    @property
    def version(self) -> str:
        """The browser's version, such as `156.0.8078.79`."""
        return self._browser.version

    @classmethod
    async def launch(cls, executable: str | None, extra: tuple[str, ...] = ()) -> "Chromium":
        """Start the driver and the browser.

        Args:
            executable: The result of `find_chromium`.
            extra: More command line arguments.

        Raises:
            EnvironmentFailed: No browser is installed, or it or the driver does not start. The
                text says what to install.

        If this call fails or is cancelled, nothing keeps running.
        """
        arguments = _arguments(extra)
        playwright = await start_driver()
        try:
            with anyio.fail_after(LAUNCH_BOUND_S):
                browser = await _launch(playwright, executable, arguments)
        except (libraries.PlaywrightError, TimeoutError) as exc:
            with anyio.move_on_after(CLOSE_BOUND_S, shield=True):
                await playwright.stop()
            told = f"Chromium could not be started ({executable or 'Playwright download'}): "
            told += _reason(exc)
            if executable is None and "Executable doesn't exist" in str(exc):
                told = "There is no Chromium here."
            raise EnvironmentFailed(f"{told} {browser_advice()}") from exc
        except BaseException:
            with anyio.move_on_after(CLOSE_BOUND_S, shield=True):
                await playwright.stop()
            raise
        logger.info("Chromium %s started: %s", browser.version, executable or "Playwright's own")
        telemetry.add("browsers")
        browser.once("disconnected", _count_end)
        chromium = cls(playwright, browser)
        try:
            with anyio.fail_after(CLOSE_BOUND_S):
                chromium._group = await BrowserGroup.of(browser)
                await chromium.crashes.watch(browser)
        except (libraries.PlaywrightError, TimeoutError) as exc:
            logger.info("Crashes of pages may not be told apart: %s", _reason(exc))
        except BaseException:
            await chromium.close()
            raise
        return chromium

    async def _prepare(self, options: SlotOptions) -> Slot:
        return await Slot.open(self._browser, options, crashes=self.crashes)

    async def renderer(self) -> str | None:
        """Return the name of the renderer of WebGL on its pages; None if WebGL is missing.

        Raises:
            EnvironmentFailed: No page opens.
        """
        try:
            with anyio.fail_after(LAUNCH_BOUND_S):
                page = await self._browser.new_page()
                found: str | None = await page.evaluate(_WEBGL)
                await page.close()
        except (libraries.PlaywrightError, TimeoutError) as exc:
            raise EnvironmentFailed(f"Chromium opens no page: {_reason(exc)}") from exc
        return found

    def kill(self) -> None:
        """End the browser with all of its processes, and the driver, at once; from any thread."""
        if self._group is not None:
            self._group.kill()

    async def close(self) -> None:
        """End the browser and the driver, within seconds even if they are dead."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            await self.reserve.close()
            try:
                with anyio.move_on_after(CLOSE_BOUND_S):
                    await self._browser.close()
            except libraries.PlaywrightError as exc:
                logger.info("The browser had gone before it was closed: %s", _reason(exc))
            with anyio.move_on_after(CLOSE_BOUND_S):
                await self._playwright.stop()


def _count_end(_browser: "Browser") -> None:
    telemetry.add("browsers", -1)


def _arguments(extra: Iterable[str]) -> list[str]:
    """Merge our arguments with an author's, and the disabled features of both in one."""
    given = list(extra)
    off = [each.removeprefix(_DISABLE) for each in given if each.startswith(_DISABLE)]
    others = [each for each in given if not each.startswith(_DISABLE)]
    return [*_ARGUMENTS, _DISABLE + ",".join((*_FEATURES_OFF, *off)), *others]


def _environment() -> dict[str, str | float | bool]:
    """Return a browser's environment, without keys or tokens: pages are other people's."""
    return {name: value for name, value in os.environ.items() if not _SECRET.search(name)}


async def _launch(playwright: "Playwright", executable: str | None, arguments: list[str]) -> Any:
    """Launch with the sandbox if it can work, and without it if it turns out not to."""

    async def launch(*, sandbox: bool) -> "Browser":
        return await playwright.chromium.launch(
            executable_path=executable,
            args=arguments,
            chromium_sandbox=sandbox,
            env=_environment(),
            handle_sigint=False,  # the server decides when its sessions end
            handle_sigterm=False,
            handle_sighup=False,
            timeout=LAUNCH_BOUND_S * 1000,
        )

    problem = sandbox_problem()
    if problem is None:
        try:
            return await launch(sandbox=True)
        except libraries.PlaywrightError as exc:
            if "sandbox" not in str(exc).lower():
                raise
            problem = "it failed to start with it"
    logger.warning("Chromium runs without its sandbox: %s.", problem)
    return await launch(sandbox=False)


def _reason(exc: BaseException) -> str:
    library = missing_library(str(exc))
    if library is not None:
        return f"It needs {library}, which is not installed."
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return lines[0][:300] if lines else "it took too long."
