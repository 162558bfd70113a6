"""What mkdocs is told beside mkdocs.yml: pages from outside docs/, and the parts of llms.txt.

The pages link to files of the project, as GitHub shows them. On the site each of those is a page
too: Markdown as it is, and code in a block.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from hud_mcp.cli import main

__all__ = ["on_config", "on_files", "on_page_markdown"]

_ROOT = Path(__file__).resolve().parents[1]
_DOCS = "docs"
_SHOWN = "project"
"""The folder of the site in which files from outside docs/ are."""

_LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")
_LANGUAGES = {".py": "python", ".json": "json", ".jsonl": "json", ".toml": "toml", ".sh": "bash"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give llms.txt the sections of the navigation, and commands their names."""
    plugin: Any = config.plugins["llmstxt"]
    plugin.config.sections = {
        title: list(_pages(inside)) for entry in config.nav or [] for title, inside in entry.items()
    }
    _name_commands()
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what the pages link to outside of docs/."""
    waiting = [f"{_DOCS}/{file.src_uri}" for file in files.documentation_pages()] + [
        uri.removeprefix(f"{_SHOWN}/") for uri in _pages(config.nav) if uri.startswith(_SHOWN)
    ]
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        if not path.startswith(f"{_DOCS}/"):
            uri, text = _page_of(path)
            files.append(File.generated(config, uri, content=text))
        if path.endswith(".md"):
            waiting += _files_linked(path)
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Let links lead to where the files are on the site."""
    here = page.file.src_uri
    path = here.removeprefix(f"{_SHOWN}/") if here.startswith(_SHOWN) else f"{_DOCS}/{here}"
    return _LINK.sub(lambda found: _on_site(found, path, here), markdown)


def _name_commands() -> None:
    context = click.Context(main)
    for name in main.list_commands(context):
        found = main.get_command(context, name)
        if found is not None:
            found.name = name


def _pages(nav: Any) -> Any:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for inside in nav.values():
            yield from _pages(inside)
    else:
        for each in nav or []:
            yield from _pages(each)


def _page_of(path: str) -> tuple[str, str]:
    text = (_ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return f"{_SHOWN}/{path}", text
    language = _LANGUAGES.get(PurePosixPath(path).suffix, "text")
    return f"{_SHOWN}/{path}.md", f"# {path}\n\n````{language}\n{text}````\n"


def _files_linked(path: str) -> list[str]:
    text = (_ROOT / path).read_text(encoding="utf-8")
    found = (_resolved(link[0], path) for link in _LINK.findall(text))
    return [each for each in found if each and not each.startswith(f"{_DOCS}/")]


def _resolved(link: str, path: str) -> str | None:
    """The file of the project that a link of one of its pages names; None for other links."""
    if "://" in link or link.startswith(("mailto:", "cursor:", "vscode:")):
        return None
    target = (_ROOT / path).parent.joinpath(link).resolve()
    if not target.is_file() or not target.is_relative_to(_ROOT):
        return None
    return target.relative_to(_ROOT).as_posix()


def _on_site(found: re.Match[str], path: str, here: str) -> str:
    target = _resolved(found[1], path)
    if target is None:
        return found[0]
    if target in (f"{_DOCS}/README.md", "README.md"):
        uri = "index.md"
    elif target.startswith(f"{_DOCS}/"):
        uri = target.removeprefix(f"{_DOCS}/")
    else:
        uri = f"{_SHOWN}/{target}" + ("" if target.endswith(".md") else ".md")
    up = "../" * here.count("/")
    return f"{up}{uri}{found[2] or ''}"
