"""The site of the pages: its navigation and its reference, read without mkdocs."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from page_blocks import PAGES, ROOT, page
from tables import each_of

import hud_mcp
import hud_mcp.carl
import hud_mcp_client

SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
ELSEWHERE = "project/"
"""Pages of the navigation that are files from outside docs/."""


def named(nav: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from named(each)


NAV = list(named(SITE["nav"]))
REFERENCE = "\n".join(each.text for each in PAGES if each.path.parent.name == "reference")


def test_the_navigation_names_every_page_once() -> None:
    """docs/README.md is GitHub's index; the navigation takes its place on the site."""
    pages = [each.name.removeprefix("docs/") for each in PAGES if each.name.startswith("docs/")]
    ours = [each for each in NAV if not each.startswith(ELSEWHERE)]
    assert sorted(ours) == sorted(set(pages) - {"README.md"})


def test_pages_from_elsewhere_are_files_of_the_project() -> None:
    """The changelog, the tasksets and the examples."""
    found = [each.removeprefix(ELSEWHERE) for each in NAV if each.startswith(ELSEWHERE)]
    assert found
    assert all((ROOT / each).is_file() for each in found)


def test_mkdocs_fails_on_links_and_anchors_that_lead_nowhere() -> None:
    """`make docs` builds strictly, and each of these is a warning."""
    assert SITE["strict"]
    assert SITE["validation"]["links"]["anchors"] == "warn"
    assert SITE["validation"]["links"]["not_found"] == "warn"
    assert SITE["theme"]["font"] is False


@each_of("name", sorted(set(hud_mcp.__all__) - {"__version__"}))
def test_every_public_name_is_in_the_reference_once(name: str) -> None:
    """A new one gets a line `::: hud_mcp.NAME` in a page of docs/reference."""
    assert len(re.findall(rf"^::: hud_mcp\.{name}$", REFERENCE, re.MULTILINE)) == 1


@pytest.mark.parametrize("package", [hud_mcp.carl, hud_mcp_client], ids=["carl", "client"])
def test_every_name_of_a_package_is_in_its_page(package: Any) -> None:
    """Names of ConfigSpace are in a table, and shared ones on the page that they belong to."""
    for name in package.__all__:
        line = re.search(rf"^::: {package.__name__}\.{name}$", REFERENCE, re.MULTILINE)
        assert line or f"`{name}`" in page("docs/reference/carl.md").text, name


def test_the_reference_shows_no_inherited_internals() -> None:
    """A page names what a private base gives; members of pydantic stay out."""
    (python,) = (each for each in SITE["plugins"] if "mkdocstrings" in each)
    assert python["mkdocstrings"]["handlers"]["python"]["options"]["inherited_members"] is False
    named = re.findall(
        r"^::: (\S+)\n    options:\n      inherited_members: \[(.+)\]$", REFERENCE, re.MULTILINE
    )
    assert named
    for path, members in named:
        module, _, name = path.rpartition(".")
        value = getattr({"hud_mcp": hud_mcp, "hud_mcp_client": hud_mcp_client}[module], name)
        known = {*dir(value), *getattr(value, "model_fields", {})}
        known |= {each for base in value.__mro__ for each in vars(base).get("__annotations__", {})}
        assert set(members.split(", ")) <= known, path


@each_of(
    "job",
    [
        "own-loop", "pydantic-ai", "openai-agents", "langgraph", "inspect-ai", "openenv",
        "computer-use", "container", "ci", "training", "tasks", "hud",
        "porting-hud-02", "porting-hud-v6", "porting-carl",
    ],
)  # fmt: skip
def test_each_job_has_its_page_under_how_to(job: str) -> None:
    """Each framework, computer use, Docker, CI, training, tasksets, HUD and porting."""
    (how_to,) = (each["How to"] for each in SITE["nav"] if "How to" in each)
    assert f"{job}.md" in set(named(how_to))


def test_the_commands_are_generated_from_the_program() -> None:
    """All of them, from the group that `hud-mcp` runs."""
    text = page("docs/commands.md").text
    assert "::: mkdocs-click" in text
    assert "    :module: hud_mcp.cli\n    :command: main\n" in text


def sources() -> str:
    """The text of the package."""
    return "\n".join(each.read_text("utf-8") for each in (ROOT / "hud_mcp").rglob("*.py"))


def test_the_page_of_settings_has_every_variable_that_is_read() -> None:
    """docs/settings.md; one name is the mark of a line, and no variable."""
    read = set(re.findall(r"\bHUD_MCP_[A-Z_]*[A-Z]\b", sources())) - {"HUD_MCP_ROWS"}
    assert set(re.findall(r"\bHUD_MCP_[A-Z_]+\b", page("docs/settings.md").text)) == read


def test_the_page_of_the_wire_names_keys_and_methods_that_there_are() -> None:
    """docs/wire.md: and every method of an operator."""
    text = page("docs/wire.md").text
    named = set(re.findall(r"`(hud-mcp/[a-z_]+)`", text))
    assert all(f'"{each}"' in sources() for each in named)
    methods = text.partition("## Calls of operators")[2]
    there = re.findall(r'^ +"(hud-mcp/\w+)": "_\w+",$', sources(), re.MULTILINE)
    assert set(there) == set(re.findall(r"^\| `(hud-mcp/\w+)`", methods, re.MULTILINE))


def test_the_first_page_has_what_readme_has() -> None:
    """The same environment and the same tasks, whole."""
    first = {block.text for block in page("docs/index.md").blocks}
    shared = [block for block in page("README.md").blocks if block.file or block.language == "json"]
    assert shared
    assert all(block.text in first for block in shared)


def test_the_moving_picture_of_the_first_page_is_small() -> None:
    """Under 300 kB, with a still one for readers who want no motion."""
    text = page("docs/index.md").text
    moving = re.findall(r'src="([^"]+\.gif)"', text)
    assert len(moving) == 1
    assert (ROOT / "docs" / moving[0]).stat().st_size < 300_000
    assert "prefers-reduced-motion" in text
