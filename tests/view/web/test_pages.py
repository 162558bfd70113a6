"""The pages' sources: what is sent, what is joined, and what would break the joining."""

import re
from importlib.resources import files

from hud_mcp.plugins.view.web.pages import ASSETS, joined, modules_of, read_asset

MODULES = [name for name in ASSETS if name.endswith(".js")]


def test_every_file_of_the_folder_is_sent_or_is_a_page() -> None:
    """A module that is added without being named here would be missing in a browser."""
    there = {file.name for file in files("hud_mcp.plugins.view.web").joinpath("assets").iterdir()}
    assert {name for name in there if not name.endswith(".html")} == set(ASSETS)


def test_modules_are_joined_after_what_they_import_and_once() -> None:
    """The single file has every module that its entry needs, in an order that works."""
    order = modules_of("inline.js")
    assert len(order) == len(set(order))
    assert order[-1] == "inline.js"
    for name in order:
        for imported in re.findall(r"from '\./(.+?)'", read_asset(name)):
            assert order.index(imported) < order.index(name)
    assert not re.search(r"^(import|export)\b", joined("inline.js"), re.MULTILINE)


def test_no_two_modules_declare_the_same_name() -> None:
    """Joined, they share one scope."""
    declared = re.compile(
        r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+|\$)", re.MULTILINE
    )
    names = [
        name for module in modules_of("inline.js") for name in declared.findall(read_asset(module))
    ]
    assert len(names) > 60
    assert sorted(names) == sorted(set(names))


def test_no_module_makes_markup_or_code_of_text() -> None:
    """Nothing that turns a string into elements, styles or scripts is used anywhere."""
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc"
    sinks = rf"{markup}|\beval\b|new Function|cssText"
    for name in MODULES:
        assert not re.search(sinks, read_asset(name)), name
