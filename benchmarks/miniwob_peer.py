"""BrowserGym's part of `miniwob.py`, run by an interpreter that has `browsergym-miniwob`.

    python3 -m venv .venv-browsergym
    .venv-browsergym/bin/pip install browsergym-miniwob==0.14.3

It pins Playwright 1.44, whose own Chromium is not needed: a link to the one that is given stands
in its place. Episodes come on standard input as JSON; how many a minute were played is printed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distribution
from pathlib import Path
from typing import Any


class FixedSeed:
    """Draws a page's seed as it is, where BrowserGym draws one from its own."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def randint(self, *_bounds: int) -> int:
        """The seed."""
        return self._seed


def link_browser(folder: Path, chromium: str) -> None:
    """Let Playwright find a browser of this machine where it looks for its own."""
    package = Path(str(distribution("playwright").locate_file("playwright")))
    known = json.loads((package / "driver/package/browsers.json").read_text())
    revision = next(b["revision"] for b in known["browsers"] if b["name"] == "chromium")
    place = folder / f"chromium-{revision}/chrome-linux/chrome"
    place.parent.mkdir(parents=True)
    # A program of its own: the browser looks for its files beside itself.
    place.write_text(f'#!/bin/sh\nexec {chromium} --no-sandbox "$@"\n')
    place.chmod(0o755)
    os.environ["PLAYWRIGHT_BROWSERS_PATH"] = str(folder)


def written(action: dict[str, Any]) -> str:
    """An action as the code that BrowserGym runs.

    Raises:
        ValueError: No way is known for it.
    """
    match action:
        case {"type": "click", "selector": selector}:
            return f"page.click({selector!r})"
        case {"type": "type", "selector": selector, "text": text}:
            return f"page.fill({selector!r}, {text!r})"
        case {"type": "custom", "action": "select_option", "args": given}:
            return f"page.select_option({given['selector']!r}, {given['values']!r})"
        case _:
            raise ValueError(f"No way is known for {action}.")


def play(page: str, seed: int, steps: list[list[dict[str, Any]]]) -> None:
    """Play one episode.

    Raises:
        RuntimeError: It was not solved.
    """
    import gymnasium  # noqa: PLC0415  # after the browser's place is known

    environment = gymnasium.make(f"browsergym/miniwob.{page}", headless=True, action_mapping=None)
    reward: Any = 0
    try:
        environment.reset(seed=seed)
        for actions in steps:
            _, reward, *_ = environment.step("\n".join(map(written, actions)))
    finally:
        environment.close()
    if reward != 1:
        raise RuntimeError(f"{page} with the seed {seed} gave {reward}.")


def main() -> None:
    """Play all episodes, and print how many that is a minute."""
    given = json.load(sys.stdin)
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command, cwd=given["pages"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as site,
    ):
        try:
            link_browser(Path(folder), given["chromium"])
            said = site.stdout.readline().decode()  # type: ignore[union-attr]
            os.environ["MINIWOB_URL"] = said.split("(")[1].split(")")[0] + "miniwob/"
            import browsergym.miniwob as pages  # noqa: PLC0415  # it looks at that address

            begin = pages.all.AbstractMiniwobTask.setup

            def setup(task: Any, page: Any) -> Any:
                task.random = FixedSeed(seeds[-1])
                return begin(task, page)

            pages.all.AbstractMiniwobTask.setup = setup
            seeds: list[int] = []
            began = 0.0
            for number, (page, seed, steps) in enumerate(given["episodes"][:1] + given["episodes"]):
                if number == 1:  # what loads with the first one is not measured
                    began = time.perf_counter()
                seeds.append(seed)
                play(page, seed, steps)
            print(60 * len(given["episodes"]) / (time.perf_counter() - began))
        finally:
            site.kill()


if __name__ == "__main__":
    main()
