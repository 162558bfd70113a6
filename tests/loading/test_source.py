"""Environments and tasksets are found by name, by file, and by a name in a file."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import InvalidEnvironment, SourceNotFound
from hud_mcp.loading.sets import find_taskset
from hud_mcp.loading.source import (
    default_sources,
    load_environments,
    shipped_environments,
    shipped_folder,
)

DECLARES = "from hud_mcp import Environment\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An author's folder, which is the current one; what is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:  # the library's own stay: each is loaded once
        if str(tmp_path) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def write(path: Path, text: str) -> str:
    """Write an author's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_every_environment_of_a_file_is_loaded_in_order(folder: Path) -> None:
    """Names that begin with an underscore are the file's own."""
    text = f"{DECLARES}b = Environment('b')\na = Environment('a')\n_c = Environment('c')\nd = a\n"
    path = write(folder / "envs.py", text)
    assert [e.name for e in load_environments([path])] == ["b", "a"]
    assert [e.name for e in load_environments([f"{path}:a"])] == ["a"]
    assert [e.file for e in load_environments([path])] == [folder / "envs.py"] * 2


@pytest.mark.parametrize("source", [".", "./", "shop", "./shop", "env.py", "shop/env.py"])
def test_a_folder_means_its_env_py(folder: Path, source: str) -> None:
    """From wherever it is named."""
    write(folder / "env.py", f"{DECLARES}env = Environment('e')\n")
    write(folder / "shop" / "env.py", f"{DECLARES}env = Environment('e')\n")
    (loaded,) = load_environments([source])
    assert loaded.file == folder / ("shop/env.py" if "shop" in source else "env.py")


def test_a_file_is_loaded_once_however_often_it_is_named(folder: Path) -> None:
    """Two names of one file give the same objects."""
    write(folder / "env.py", f"{DECLARES}a = Environment('a')\nb = Environment('b')\n")
    first = load_environments(["env.py:a", str(folder / "env.py"), "env.py:b"])
    assert [e.name for e in first] == ["a", "b"]
    assert load_environments(["."]) == first


def test_a_file_imports_what_lies_beside_it(folder: Path) -> None:
    """An author splits an environment over files as in any script."""
    write(folder / "names_of_shops.py", "NAME = 'corner'\n")
    text = f"{DECLARES}from names_of_shops import NAME\nenv = Environment(NAME)\n"
    assert load_environments([write(folder / "env.py", text)])[0].name == "corner"


def test_each_file_imports_what_lies_beside_itself(folder: Path) -> None:
    """Modules and packages of one name are two, whichever is loaded first, and stay so."""
    text = (
        f"{DECLARES}from rules import NAME\nfrom parts.names import LAST\n"
        "env = Environment(f'{NAME}-{LAST}')\n"
    )
    for place in ("one", "two"):
        write(folder / place / "env.py", text)
        write(folder / place / "rules.py", f"NAME = {place!r}\n")
        write(folder / place / "parts" / "__init__.py", "")
        write(folder / place / "parts" / "names.py", f"LAST = {place!r}\n")
        late = f"{DECLARES}import rules\nenv = Environment(f'late-{{rules.NAME}}')\n"
        write(folder / place / "late.py", late)
    loaded = load_environments(["one/env.py", "two/env.py", "one/late.py", "two/late.py"])
    assert [e.name for e in loaded] == ["one-one", "two-two", "late-one", "late-two"]
    import rules  # noqa: PLC0415  # as a template does that imports late

    assert rules.NAME == "one"


def test_two_environments_of_one_name_are_refused(folder: Path) -> None:
    """In two files, and in one: neither hides the other in silence."""
    one = write(folder / "one.py", f"{DECLARES}env = Environment('same')\n")
    two = write(folder / "two.py", f"{DECLARES}env = Environment('same')\n")
    with pytest.raises(InvalidEnvironment, match=r"are named 'same': in .*one.py and in"):
        load_environments([one, two])
    both = write(folder / "both.py", f"{DECLARES}a = Environment('x')\nb = Environment('x')\n")
    with pytest.raises(InvalidEnvironment, match=r"both.py declares two environments named 'x'"):
        load_environments([both])


def test_a_file_without_an_environment_is_refused(folder: Path) -> None:
    """The text says what to write."""
    path = write(folder / "empty.py", "x = 1\n")
    with pytest.raises(InvalidEnvironment, match=r"declares no Environment; write `env = Env"):
        load_environments([path])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\ndef f(:\n", "env.py:2: invalid syntax. Correct this line"),
        ("import no_such_module\n", "env.py:1: ModuleNotFoundError: No module named"),
        ("1 / 0\n", "env.py:1: ZeroDivisionError: division by zero."),
        (f"{DECLARES}e = Environment(wrld=1)\n", "env.py:2: TypeError: Environment.__init__() got"),
        (f"{DECLARES}e = Environment(wrld=1)\n", "Did you mean 'world'?"),
        (f"{DECLARES}e = Environment()\n@e.template(retuns=float)\ndef f(): ...\n", "'returns'?"),
    ],
)
def test_a_file_that_fails_to_load_is_told_by_its_line(folder: Path, text: str, said: str) -> None:
    """Every exception of an author's file becomes one sentence with the place and the advice."""
    path = write(folder / "env.py", text)
    with pytest.raises(InvalidEnvironment) as caught:
        load_environments([path])
    assert said in str(caught.value)


def test_a_site_that_is_not_there_is_told_before_anything_opens(folder: Path) -> None:
    """A misspelt folder is an author's mistake, found when the file loads."""
    (folder / "site").mkdir()
    text = (
        "from hud_mcp import Browser, Environment\nenv = Environment('a', world=Browser('siet/'))\n"
    )
    path = write(folder / "env.py", text)
    with pytest.raises(InvalidEnvironment, match=r"env\.py: .*'siet.*Did you mean 'site'\?"):
        load_environments([path])


def test_a_file_that_raises_can_be_mended_and_loaded(folder: Path) -> None:
    """A failed import leaves no half of a module behind."""
    path = write(folder / "env.py", "raise RuntimeError('broken')\n")
    with pytest.raises(InvalidEnvironment, match=r"env.py:1: RuntimeError: broken"):
        load_environments([path])
    write(folder / "env.py", f"{DECLARES}env = Environment('mended, at last'[:6])\n")
    assert load_environments([path])[0].name == "mended"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("letter_cuont", "no environment at 'letter_cuont'. Did you mean 'letter_count'? "),
        ("missing.py", "There is no environment at 'missing.py'"),
        ("missing/", "There is no environment at 'missing/'"),
        ("notes.txt", "There is no environment at 'notes.txt'"),
        ("env.py:shpo", "env.py has no environment 'shpo'. Did you mean 'shop'? It has: shop."),
    ],
)
def test_what_is_not_there_is_named_with_what_is(folder: Path, source: str, said: str) -> None:
    """A close name is suggested, and the rest listed."""
    write(folder / "env.py", f"{DECLARES}env = Environment('shop')\n")
    write(folder / "notes.txt", "")
    with pytest.raises(SourceNotFound) as caught:
        load_environments([source])
    assert said in str(caught.value)


def test_shipped_environments_are_found_by_name(folder: Path) -> None:
    """From any folder; and a folder of one's own is not hidden by a shipped name."""
    assert "letter_count" in shipped_environments()
    (shipped,) = load_environments(["letter_count"])
    assert shipped.file == shipped_environments()["letter_count"]
    write(folder / "letter_count" / "env.py", f"{DECLARES}env = Environment('mine')\n")
    assert load_environments(["./letter_count"])[0].name == "mine"


def test_the_current_folder_s_environment_is_served_by_default(folder: Path) -> None:
    """Without one, the quickstart is."""
    assert default_sources() == ("letter_count", "browser")
    write(folder / "env.py", "")
    assert default_sources() == ("env.py",)


def test_a_taskset_is_found_by_path(folder: Path) -> None:
    """The file that was named comes first."""
    path = write(folder / "mine.jsonl", "")
    assert find_taskset(path) == Path(path)
    assert find_taskset("mine.jsonl") == Path("mine.jsonl")


def test_shipped_tasksets_are_found_as_the_readme_names_them(folder: Path) -> None:
    """By name, and by the path that they have in the repository, from any folder."""
    names = [p.stem for p in shipped_folder("taskset_data").glob("*.jsonl")]
    for name in names:
        expected = shipped_folder("taskset_data") / f"{name}.jsonl"
        assert find_taskset(name) == expected
        assert find_taskset(f"taskset_data/{name}.jsonl") == expected


@pytest.mark.parametrize("name", ["nope", "other/nope.jsonl", "/nope.jsonl"])
def test_a_taskset_that_is_not_there_is_named(folder: Path, name: str) -> None:
    """The text lists the shipped ones."""
    with pytest.raises(SourceNotFound, match=r"There is no taskset at .* Name a file of tasks"):
        find_taskset(name)


def test_what_gymnasium_needs_is_named_where_it_is_missing() -> None:
    """With the extra to install, and not as a mistake in a file."""
    program = """
import subprocess
import sys
sys.modules["gymnasium"] = None
from hud_mcp.errors import NotInstalled
from hud_mcp.loading.source import load_environments
try:
    load_environments(["gym:CartPole-v1"])
except NotInstalled as exc:
    print(exc)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert "gym:CartPole-v1 needs gymnasium: pip install 'hud-mcp[gymnasium]'" in done.stdout
