"""The needs of environments, the findings about a machine, and missing packages."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.worlds.browser.chromium import Chromium, find_chromium
from hud_mcp.worlds.browser.driver import driver_complaint, missing_library, package_of

__all__ = [
    "BUBBLEWRAP",
    "CHROMIUM",
    "FONTS",
    "OPENGL",
    "Finding",
    "Need",
    "State",
    "browser_fault",
    "find_browser_needs",
]


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
