"""A server's program starts in a sandbox with what it needs, and nothing else of its place."""

import platform
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from programs import BASE, make_environment, make_modules, make_package, static_binary, write
from tables import each_of

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.servers.places import is_in_system
from hud_mcp.plugins.servers.program import Program, find_program
from hud_mcp.sandbox import Finished

Run = Callable[..., Awaitable[Finished]]

pytestmark = [pytest.mark.sandbox, pytest.mark.anyio]

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


async def files_below(start: Run, program: Program, folder: Path) -> list[str]:
    """Return the files that can be read below a folder of the machine, inside."""
    line = f"find {folder} -type f -readable 2>/dev/null | sort; true"
    done = await start(program, ["/bin/bash", "-c", line])
    return [str(Path(each).relative_to(folder)) for each in done.text.split()]


async def test_a_virtual_environment_in_a_private_home_starts(home: Path, start: Run) -> None:
    """With the interpreter of another private place, and with none of the files beside them."""
    program = find_program([str(make_package(make_environment(home / "app/.venv"), "acme"))], home)
    done = await start(program)
    assert done.code == 0, done.text
    assert f"in {home / 'app/.venv'}" in done.text
    assert (program.name, program.version) == ("acme", "1.2.3")
    found = await files_below(start, program, home)
    assert {each.split("/")[:2] == ["app", ".venv"] for each in found} == {True}
    assert "app/.venv/pyvenv.cfg" in found


@pytest.mark.long
async def test_packages_of_the_interpreter_are_not_those_of_its_environments(
    home: Path, start: Run
) -> None:
    """An environment without the system's packages sees none, as on the machine."""
    program = find_program([str(make_package(make_environment(home / "v"), "acme"))], home)
    assert "pydantic None" in (await start(program)).text
    shared = [each for each in await files_below(start, program, BASE) if "site-packages" in each]
    assert shared == [] or is_in_system(BASE / "lib")


@pytest.mark.long
async def test_an_interpreter_behind_a_linked_folder_starts(home: Path, start: Run) -> None:
    """As uv has it: the environment names a folder that is a link to the release."""
    link = home / "uv/python/cpython-3-linux"
    link.parent.mkdir(parents=True)
    link.symlink_to(BASE)
    program = find_program([str(make_package(make_environment(home / "v", link), "acme"))], home)
    done = await start(program)
    assert done.code == 0, done.text


@pytest.mark.long
async def test_the_script_of_a_version_manager_stands_for_its_program(
    home: Path, start: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pyenv has it: the manager is asked, here, for the interpreter itself."""
    real = make_environment(home / "v") / "bin" / "python3"
    manager = f'#!/bin/sh\n[ "$1" = which ] && echo {real}\n'
    write(home / "bin/pyenv", manager, mode=0o755)
    write(home / "shims/python", '#!/bin/sh\nexec pyenv exec "$0" "$@"\n', mode=0o755)
    monkeypatch.setenv("PATH", f"{home}/shims:{home}/bin", prepend=":")
    script = write(home / "work/server.py", "import needed, sys\nprint(needed.TEXT, sys.argv[1])\n")
    write(home / "work/needed.py", "TEXT = 'imported'\n")
    write(home / "work/answers.py", "KEY = 'not imported'\n")
    program = find_program(["python", "server.py", "word"], script.parent)
    done = await start(program)
    assert done.text.strip() == "imported word"
    found = [each for each in await files_below(start, program, home) if each[:2] != "v/"]
    assert found == ["work/needed.py", "work/server.py"]


@pytest.mark.long
async def test_an_editable_package_brings_its_own_folder(home: Path, start: Run) -> None:
    """By a path file, and not the folder of the environment where it lies there."""
    environment = make_environment(home / "v")
    (packages,) = environment.glob("lib/python*/site-packages")
    write(packages / "acme.pth", f"{home / 'code/src'}\n{home / 'graded'}\n")
    write(home / "code/src/acme_module.py", "def main():\n    print('editable')\n")
    write(home / "code/notes.txt", "beside it")
    write(home / "graded/env.py", "ANSWER = 1")
    command = [str(make_package(environment, "acme", ""))]
    program = find_program(command, home / "graded")
    assert (await start(program)).text.strip() == "editable"
    found = await files_below(start, program, home)
    assert [each for each in found if not each.startswith("v/")] == ["code/src/acme_module.py"]


@pytest.mark.long
async def test_an_editable_package_with_a_finder_brings_the_places_that_it_maps(
    home: Path, start: Run
) -> None:
    """As Setuptools has it: a package, a module and a namespace, and nothing beside them."""
    environment = make_environment(home / "v")
    (packages,) = environment.glob("lib/python*/site-packages")
    mapping = {"acme": f"{home}/code/acme", "acme_module": f"{home}/code/acme_module"}
    mapping["graded"] = f"{home}/graded"
    finder = f"""import sys
from importlib.machinery import PathFinder
MAPPING: dict[str, str] = {mapping!r}
NAMESPACES: dict[str, list[str]] = {{'space': ['{home}/space']}}


class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        place = MAPPING.get(name)
        return place and PathFinder.find_spec(name, [place.rpartition('/')[0]])


def install():
    sys.meta_path.append(Finder)
"""
    write(packages / "__editable___acme_1_2_3_finder.py", finder)
    line = "import __editable___acme_1_2_3_finder; __editable___acme_1_2_3_finder.install()\n"
    write(packages / "__editable__.acme-1.2.3.pth", line)
    write(home / "code/acme/__init__.py", "TEXT = 'mapped'\n")
    write(home / "code/acme_module.py", "import acme\ndef main():\n    print(acme.TEXT)\n")
    write(home / "code/notes.txt", "beside it")
    write(home / "graded/env.py", "ANSWER = 1")
    write(home / "space/part.py", "PART = 1\n")
    program = find_program([str(make_package(environment, "acme", ""))], home / "graded")
    assert (await start(program)).text.strip() == "mapped"
    found = await files_below(start, program, home)
    assert {each for each in found if not each.startswith("v/")} == {
        "code/acme/__init__.py",
        "code/acme_module.py",
        "space/part.py",
    }
    write(home / "code/acme/__init__.py", "TEXT = 'changed'\n")
    changed = find_program([str(environment / "bin/acme")], home / "graded")
    assert changed.digest != program.digest


@pytest.mark.sampled(1)
@needs_node
@pytest.mark.parametrize("hoisted", [True, False], ids=["a project", "a global prefix"])
async def test_a_program_of_npm_starts(home: Path, start: Run, *, hoisted: bool) -> None:
    """With the packages that it needs; of a global prefix, with no other package."""
    program = find_program([str(make_modules(home / "p", hoisted=hoisted)), "word"], home)
    done = await start(program)
    assert done.text.strip() == "needed is there word"
    assert (program.name, program.version) == ("@acme/server", "4.5.6")
    found = await files_below(start, program, home)
    assert "private.txt" not in found
    assert ("p/node_modules/other/secret.txt" in found) == hoisted


@pytest.mark.long
@needs_node
async def test_a_script_of_node_brings_its_project(home: Path, start: Run) -> None:
    """The built files and what they need, without hidden files and without sources."""
    project = home / "server"
    write(project / "package.json", '{"name": "mine", "version": "0.1.0"}')
    write(project / "dist/index.js", 'console.log(require("needed"))\n')
    write(project / "node_modules/needed/index.js", 'module.exports = "found"\n')
    write(project / "src/index.ts", "secret")
    write(project / ".env", "TOKEN=1")
    program = find_program(["node", "server/dist/index.js"], home)
    assert (await start(program)).text.strip() == "found"
    assert program.name == "mine"
    found = await files_below(start, program, home)
    names = ["dist/index.js", "node_modules/needed/index.js", "package.json"]
    assert found == [f"server/{each}" for each in names]


@pytest.mark.long
@needs_node
async def test_a_script_of_typescript_brings_its_project(home: Path, start: Run) -> None:
    """Its runner is a package, of the project or from npm, that gets the script's own path."""
    project = home / "server"
    runner = "#!/usr/bin/env node\nconsole.log(require('fs').readFileSync(process.argv[2], 'utf8'))"
    write(project / "package.json", '{"name": "mine", "version": "0.1.0"}')
    write(project / "src/index.ts", "const served: string = 'it'")
    write(project / "node_modules/tsx/cli.js", runner)
    (project / "node_modules/tsx/cli.js").chmod(0o755)
    (project / "node_modules/.bin").mkdir()
    (project / "node_modules/.bin/tsx").symlink_to("../tsx/cli.js")
    program = find_program(["server/node_modules/.bin/tsx", "server/src/index.ts"], home)
    assert "const served" in (await start(program)).text
    assert "server/package.json" in await files_below(start, program, home)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="not on this machine: x86-64")
async def test_a_static_binary_starts(home: Path, start: Run) -> None:
    """Alone: nothing else of its folder is there."""
    write(home / "go/bin/other", "beside it")
    program = find_program([str(static_binary(home / "go/bin/served", "hello"))], home)
    done = await start(program)
    assert (done.code, done.text) == (0, "hello")
    assert await files_below(start, program, home) == ["go/bin/served"]


@pytest.mark.long
async def test_a_binary_behind_a_link_keeps_its_name(home: Path, start: Run) -> None:
    """Its own name may tell a program its task; its libraries are those of the system."""
    shutil.copy("/bin/cat", home / "real")
    (home / "named").symlink_to("real")
    program = find_program([str(home / "named"), "/proc/self/cmdline"], home)
    assert (await start(program)).text.startswith(f"{home / 'named'}\0")


async def test_the_folder_of_a_session_has_a_name_in_a_command(home: Path, start: Run) -> None:
    """Inside, where the server's files are."""
    assert (
        await start(find_program(["echo", "{folder}/notes"], home))
    ).text == "/workspace/notes\n"


async def test_a_digest_is_of_contents(home: Path) -> None:
    """It changes with a module that a script imports, and with no path or time."""
    for name in ("one", "two"):
        write(home / name / "server.py", "import needed\n")
        write(home / name / "needed.py", "TEXT = 1\n")
    python = str(make_environment(home / "v") / "bin" / "python3")
    one, two = (find_program([python, "server.py"], home / name) for name in ("one", "two"))
    assert one.digest == two.digest
    write(home / "two/needed.py", "TEXT = 2\n")
    assert find_program([python, "server.py"], home / "two").digest != one.digest


@each_of(
    "command, told",
    [
        (["docker", "run", "-i", "image"], "daemon"),
        (["/usr/bin/podman", "run", "image"], "daemon"),
        (["sudo", "server"], "rights"),
        (["pnpm", "run", "serve"], "script of a project"),
        (["uv", "run", "server.py"], "uv sync"),
        ([""], "empty"),
        (["no-such-program-of-anyone"], "PATH"),
        (["./no-such-file"], "no-such-file"),
        (["/etc/passwd"], "interpreter"),
    ],
)
def test_commands_that_no_sandbox_can_run_are_refused(command: list[str], told: str) -> None:
    """In a sentence that says what to name instead."""
    with pytest.raises(InvalidEnvironment, match=told):
        find_program(command, Path.cwd())


def test_a_program_beside_the_answers_is_refused(home: Path) -> None:
    """A project that has the environment's file would show it."""
    write(home / "package.json", "{}")
    write(home / "index.js", "")
    with pytest.raises(InvalidEnvironment, match="folder of its own"):
        find_program(["node", "index.js"], home)
