"""What the image is built from: three files name it, and agree."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def copied() -> set[str]:
    """What the Dockerfile copies from this repository, by its first part."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    words = [line.split()[1:-1] for line in lines if line.startswith("COPY ")]
    return {word.split("/")[0] for each in words if "--from=build" not in each for word in each}


def test_the_image_has_all_that_the_wheel_is_made_of() -> None:
    """A folder that the wheel takes in, and the image was not given, is missed at its build."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    target = wheel["targets"]["wheel"]
    assert {*target["packages"], *target["force-include"], "pyproject.toml"} <= copied()


def test_a_build_is_given_what_the_dockerfile_copies_and_nothing_else() -> None:
    """`.dockerignore` leaves everything out, and lets these in."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    assert {line[1:] for line in lines if line.startswith("!")} == copied()
    assert all((ROOT / name).exists() for name in copied())
