"""A grader's own sandbox: the author's files, named outputs as data, and nothing else."""

# ruff: noqa: ASYNC240  # the author's files are made here

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from hud_mcp.errors import ActionFailed, BrokenByAgent, EnvironmentFailed, GraderFailed
from hud_mcp.sandbox import SandboxLimits
from hud_mcp.world import Opening
from hud_mcp.worlds.shell import Shell, ShellWorld

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

OpenShell = Callable[..., Awaitable[ShellWorld]]
BOUND_S = 120


@pytest.fixture
async def open_shell(machine: None, tmp_path: Path) -> AsyncIterator[OpenShell]:
    """Open shells beside an author's files; they are closed after the test."""
    opened: list[ShellWorld] = []

    async def open_it(*args: Any, **options: Any) -> ShellWorld:
        opened.append(await Shell(*args, **options).open(Opening(folder=tmp_path)))
        return opened[-1]

    yield open_it
    with anyio.fail_after(BOUND_S):
        for shell in opened:
            await shell.close()


@pytest.fixture
async def shell(open_shell: OpenShell) -> ShellWorld:
    """One with an empty folder."""
    return await open_shell()


def write(folder: Path, **files: str) -> None:
    """Write an author's files; two underscores stand for a slash, one at the end for `.py`."""
    for name, content in files.items():
        path = folder / re.sub("_$", ".py", name.replace("__", "/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


async def test_it_has_the_authors_files_and_the_named_outputs_alone(
    temporary_files: Path, shell: ShellWorld, tmp_path: Path
) -> None:
    """What is named and not there is told; afterwards all is gone."""
    write(tmp_path, checks__check_="print('the author')", checks__data__a="1")
    await shell.run("mkdir out; echo x > out/x; echo y > y; echo secret > other; echo z > z")
    before = set(temporary_files.iterdir())
    async with shell.verifier("checks/", {"out": "out", "y": "in/deep/y", "gone": "gone"}) as clean:
        seen = await clean.run("find . -type f | sort; cat in/deep/y")
        assert seen.stdout.split() == ["./check.py", "./data/a", "./in/deep/y", "./out/x", "y"]
        assert clean.missing == {"gone": "it is not there"}
        assert (await clean.read_text("out/x"), await clean.read_bytes("check.py")) == (
            "x\n",
            b"print('the author')",
        )
        assert await clean.exists("data/a")
        assert not await clean.exists("other")
        with pytest.raises(ActionFailed, match="other cannot be read"):
            await clean.read_text("other")
        assert set(temporary_files.iterdir()) > before
    assert set(temporary_files.iterdir()) == before
    with pytest.raises(EnvironmentFailed):
        await clean.run("true")
    async with shell.verifier("checks/check.py") as clean:
        assert (await clean.run("ls")).stdout.split() == ["__pycache__", "check.py"]


async def test_a_command_says_how_it_ended(shell: ShellWorld) -> None:
    """Both streams, the exit code as shells have it, a bound; what it leaves running is killed."""
    async with shell.verifier() as clean:
        done = await clean.run("cat; echo oops >&2; exit 3", stdin="in")
        assert (done.exit_code, done.stdout, done.stderr) == (3, "in", "oops\n")
        assert (await clean.run("kill -9 $$")).exit_code == 137
        late = await clean.run("echo a; sleep 60", timeout_s=0.5)
        assert (late.exit_code, late.stdout) == (137, "a\n")
        assert "longer than 0.5 s" in (late.stopped or "")
        await clean.run("sleep 100 & echo")
        assert (await clean.run("pgrep -x sleep")).exit_code == 1
        await clean.run("sleep 100 >/dev/null 2>&1 & echo", background=True)
        assert (await clean.run("pgrep -f 'sleep 10[0]'")).exit_code == 0
        assert (
            await clean.run(["printenv", "A"], env={"A": "1"}, cwd="/workspace")
        ).output == "1\n"
        for wrong in ({"cwd": "nowhere"}, {"timeout_s": 0}, {"cwd": "/etc"}):
            with pytest.raises(GraderFailed):
                await clean.run("true", **wrong)


async def test_nothing_of_the_agents_comes_by_itself(shell: ShellWorld) -> None:
    """Links out, pipes, sockets, and what programs run without being told, wherever they lie."""
    await shell.run(
        "mkdir -p d/.git/hooks d/__pycache__ d/.local/bin; cd d; echo x > kept; ln -s kept link;"
        "ln -s /etc/passwd outside; mkfifo pipe; touch conftest.py sitecustomize.py a.pth"
        " __pycache__/kept.pyc .git/hooks/pre-commit .git/config .git/HEAD .bashrc .local/bin/git;"
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"; ln kept hard"
    )
    async with shell.verifier(copy=["d", "d/conftest.py"]) as clean:
        found = (await clean.run("find d ! -type d | sort")).stdout.split()
        assert found == ["d/.git/HEAD", "d/conftest.py", "d/hard", "d/kept", "d/link"]
        assert "it is a link" in clean.left_out["d/outside"]
        assert clean.left_out["d/pipe"] == "it is a pipe"
        assert clean.left_out["d/socket"] == "it is a socket"
        assert clean.left_out["d/.git/config"] == "git runs it"
    await shell.run("ln -s d to; ln -s /etc/passwd a")
    async with shell.verifier(copy=["a", "to/kept", "d/pipe", "d/kept/x"]) as clean:
        assert set(clean.missing) == {"a", "to/kept", "d/pipe", "d/kept/x"}
        assert "link" in clean.missing["to/kept"]


@pytest.mark.long
async def test_the_authors_files_stand_in_front_and_cannot_be_written(
    shell: ShellWorld, tmp_path: Path
) -> None:
    """Also against modules that Python would take before them, and folders that are renamed."""
    write(tmp_path, checks__check_="print('author')", checks__src__helper_="print('helper')")
    await shell.run(
        "mkdir -p src/helper check; echo 'print(0)' > check.py; touch check.so check.abi3.so "
        "check.pyc check/__init__.py src/helper.cpython-311-x86_64-linux-gnu.so "
        "src/helper/__init__.py;"
        "echo mine > src/mine.txt; echo 'print(1)' > src/helper.py"
    )
    async with shell.verifier("checks", ".") as clean:
        done = await clean.run("python3 -m check; python3 src/helper.py; cat src/mine.txt")
        assert done.stdout.split() == ["author", "helper", "mine"]
        assert (await clean.run("ls -A . src")).stdout.split() == [
            ".:", "__pycache__", "check.py", "src", "src:", "helper.py", "mine.txt",
        ]  # fmt: skip
        for line in (
            "echo x > check.py", "rm -f check.py", "mv check.py a", "mv src a", "rm -rf src",
            "chmod 777 check.py", "touch src/new", "touch __pycache__/a",
            "echo x > /run/hud-mcp-site/sitecustomize.py", "umount check.py",
            "mount -o remount,rw .",
        ):  # fmt: skip
            assert (await clean.run(line)).exit_code != 0, line
        assert (await clean.run("python3 check.py")).stdout == "author\n"


@pytest.mark.long
async def test_planted_modules_hide_nothing_of_the_system(shell: ShellWorld) -> None:
    """A program finds what lies beside it, and the system's own before that."""
    await shell.run(
        "mkdir -p unittest sub; echo 'print(\"planted\")' | tee unittest/__init__.py json.py os.py "
        "usercustomize.py; echo 'import json, unittest, beside' > sub/main.py;"
        "echo 'print(\"beside\")' > sub/beside.py"
    )
    async with shell.verifier(copy=".") as clean:
        for line in ("python3 sub/main.py", "cd sub && python3 -W error -m main"):
            assert (await clean.run(line)).output == "beside\n"
        assert (await clean.run("python3 -c 'import json, os, unittest'")).output == ""


async def test_its_commands_see_nothing_that_the_agent_set(open_shell: OpenShell) -> None:
    """A clean environment, with what the author gave every command; and no network by default."""
    shell = await open_shell(env={"GIVEN": "1"}, allow=["example.com"])
    await shell.run("mkdir -p bin; printf '#!/bin/sh\\necho mine' > bin/python3; chmod +x bin/*")
    async with shell.verifier(copy=".") as clean:
        names = dict(
            line.split("=", 1) for line in (await clean.run("env")).stdout.splitlines() if line
        )
        assert names["PATH"] == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        assert (names["HOME"], names["GIVEN"], names["PYTHONNOUSERSITE"]) == ("/tmp", "1", "1")
        assert "https_proxy" not in names
    async with shell.verifier(network=True) as clean:
        assert "https_proxy" in (await clean.run("env")).stdout


LINKS = {
    "to": "v2",
    "file": "v2/x",
    "chain": "to/../file",
    "v1/up": "../v2/x",
    "v1/new": "../absolute",
    "absolute": "/workspace/v2",
    "elsewhere": "/testbed/lib",
    "self": ".",
}
"""Links that lead to other outputs."""
NO_LINKS = {
    "passwd": "/etc/passwd",
    "out": "../workspace/v2",
    "up": "self/..",
    "root": "/",
    "nowhere": "none",
    "later": "wanted",
    "beneath": "v2/x/y",
    "key": "key.txt",
    "key2": "self/key.txt",
    "key3": "/workspace/self/checks/key",
    "key4": "/proc/self/cwd/key.txt",
    "through": "nowhere/../v2",
    "a": "b",
    "b": "a",
    ".git": "v2",
    "v2/.git": "../v1",
    "__pycache__": "v2",
    "setup.cfg": "v2/x",
    "hidden.so": "v2/x",
    "checks/mine": "../v2/x",
}
"""Links that would show a grader something else than the agent made."""


@pytest.mark.long
async def test_a_copy_has_the_modes_and_the_links_that_the_agent_made(
    open_shell: OpenShell, tmp_path: Path
) -> None:
    """Bit for bit without setuid and setgid; a link where it leads to what is copied with it."""
    write(
        tmp_path, **{"files__key.txt": "the key", "files__checks__key": "k", "files__hidden_": ""}
    )
    shell = await open_shell(parts=["/testbed"])
    await shell.run("mkdir -p v1 v2 checks testbed/lib; echo x > v2/x")
    for path, target in {**LINKS, **NO_LINKS}.items():
        await shell.run(["ln", "-sT", target, path])
    modes = {"0": "0", "640": "640", "1777": "1777", "4755": "755", "2711": "711", "444": "444"}
    for mode in modes:
        line = f"touch f.{mode} && mkdir d.{mode} && chmod {mode} ?.{mode}"
        assert (await shell.run(line)).exit_code == 0
    async with shell.verifier("files", ".") as clean:
        seen = (await clean.run("stat -c '%n %a' [fd].[0-9]*")).stdout
        assert dict(line.split(" ") for line in seen.splitlines()) == {
            f"{kind}.{mode}": kept for kind in "fd" for mode, kept in modes.items()
        }
        found = (await clean.run("find . -type l -printf '%P %l\\n'")).stdout
        assert dict(line.split(" ") for line in found.splitlines()) == LINKS
        assert set(clean.left_out) == set(NO_LINKS)
        assert (await clean.run("cat file chain v1/up v1/new/x")).stdout == "x\n" * 4
    assert (await shell.run("stat -c %a d.0 f.0 d.640")).output == "0\n0\n640\n", "lent, not given"
    async with shell.verifier(copy={"to": "to", "v1": "v2", "v2": "v1"}) as clean:
        assert set(clean.missing) == {"to"}, "what is named itself is no link"
        assert set(clean.left_out) == {"v2/up", "v2/new", "v1/.git"}, "it leads elsewhere there"


@pytest.mark.long
async def test_what_still_runs_cannot_change_what_is_copied(shell: ShellWorld) -> None:
    """A daemon swaps a file and a folder all the time: a copy is of one moment, in the folder."""
    await shell.run(
        "mkdir d; head -c 300000 /dev/zero | tr '\\0' a > A; tr a b < A > B; cp A d/out; cp A out;"
        "setsid sh -c 'while :; do cp A new; mv new out; ln -s /etc e; mv -T e d 2>/dev/null || "
        "{ mv d away; ln -s /etc d; rm d; mv away d; }; cp B new; mv new out; rm -f e; done' "
        ">/dev/null 2>&1 </dev/null &"
    )
    for _ in range(8):
        async with shell.verifier(copy=["out", "d/out"]) as clean:
            for name in {"out", "d/out"} - set(clean.missing):
                content = await clean.read_text(name)
                assert set(content) in ({"a"}, {"b"})
                assert len(content) == 300000
    changes = 'a=$(stat -c %y out); until [ "$a" != "$(stat -c %y out)" ]; do sleep 0.05; done'
    assert (await shell.run(changes)).exit_code == 0, "it goes on when the copy is made"
    await shell.stop_agent()
    one = (await shell.sandbox.files.stat("B")).modified, await shell.read_bytes("out")
    async with shell.verifier(copy=["out"]) as clean:
        assert (await clean.read_bytes("out")) == one[1]
    assert (await shell.read_bytes("out")) == one[1], "it stays stopped once there is an answer"


@pytest.mark.long
async def test_an_agent_cannot_keep_a_grader_from_copying(open_shell: OpenShell) -> None:
    """Rights are lent and taken back; what is too much is the agent's own doing."""
    limits = SandboxLimits(disk_bytes=4 * 1024 * 1024, files=2000)
    shell = await open_shell(limits=limits)
    await shell.run("mkdir -p d/e; echo x > d/e/f; chmod 0 d/e/f d/e d")
    async with shell.verifier(copy=["d", "d/e/f"]) as clean:
        assert (await clean.run("chmod -R u+rwX d && cat d/e/f")).stdout == "x\n"
    assert (await shell.sandbox.files.stat("d")).mode & 0o777 == 0
    await shell.run("chmod -R 700 d; for n in 1 2 3; do truncate -s 2M $n; done")
    with pytest.raises(BrokenByAgent, match="more than 4194304 bytes"):
        async with shell.verifier(copy="."):
            pass
    await shell.run("rm ?; d=.; for i in $(seq 250); do d=$d/a; mkdir $d; done; echo x > $d/deep")
    async with shell.verifier(copy=".") as clean:
        assert [why for why in clean.left_out.values() if "deep" in why]
    await shell.run("rm -rf a; echo x > b; chmod 0 .")
    async with shell.verifier(copy=["b"]) as clean:
        assert await clean.read_text("b") == "x\n"
    for wrong in ("/etc/passwd", "../a", "a/../../b"):
        with pytest.raises(GraderFailed, match="not a path in the agent's folder"):
            await shell.verifier(copy=[wrong]).__aenter__()
    with pytest.raises(GraderFailed, match="there is no 'cheks' beside"):
        await shell.verifier("cheks").__aenter__()


async def test_what_grades_comes_from_the_original(open_shell: OpenShell, tmp_path: Path) -> None:
    """Tests that the agent changed or deleted; all else where outputs are named."""
    write(tmp_path, root__test_a_="author", root__tests__b="author", root__code_="author",
          root__data="author")  # fmt: skip
    shell = await open_shell("root")
    await shell.run("rm -r tests; for f in test_a.py code.py data; do echo agent > $f; done")
    for copy, originals, wanted in (
        (".", "tests", {"test_a.py": "author", "tests/b": "author", "code.py": "agent\n"}),
        (["code.py"], "*", {"test_a.py": "author", "code.py": "agent\n", "data": "author"}),
        (".", ["data", "test_*"], {"data": "author", "code.py": "agent\n"}),
    ):
        async with shell.verifier(copy=copy, originals=originals) as clean:
            assert {name: await clean.read_text(name) for name in wanted} == wanted


DATA_TEST = (
    "import decimal, random, unittest\n\n\nclass Data(unittest.TestCase):\n"
    "    def test_it(self):\n        self.assertEqual(open('data').read(), '42\\n')\n"
)
EXIT = "import os; os._exit(0)"


@pytest.mark.long
async def test_an_agent_adds_no_tests_to_the_authors(open_shell: OpenShell, tmp_path: Path) -> None:
    """Wherever the runner would look for them, in a whole folder; its own scripts stay."""
    write(tmp_path, root__tests__test_data_=DATA_TEST,
          root__Makefile="check:\n\tgrep -q 42 data\n", files__test_data_=DATA_TEST)  # fmt: skip
    (tmp_path / "root" / "tests" / "__init__.py").touch()
    planted = (
        "test_aaa.py tests/test_aaa.py tests/new/__init__.py aaa/test_a.py tests/random.py "
        "tests/decimal.py random.py decimal.py"
    )
    attack = (
        f"mkdir -p tests/new aaa; for f in {planted}; do echo '{EXIT}' > $f; done; "
        "touch aaa/__init__.py check; printf 'check:\\n\\ttrue\\n' | tee GNUmakefile > makefile; "
        "echo 41 > data; echo 'print(1)' > mine.py"
    )
    for root, files in (("root", None), (None, "files")):
        shell = await open_shell(root)
        await shell.run(attack)
        for data, code in (("41", 1), ("42", 0)):
            await shell.run(f"echo {data} > data")
            async with shell.verifier(files, ".", originals=["tests"]) as clean:
                lines = ["python3 -m unittest"]
                if root:
                    lines += ["python3 -m unittest discover -s tests", "make check"]
                for line in lines:
                    done = await clean.run(line)
                    assert (done.exit_code != 0) == (code != 0), (line, done.output)
                assert (await clean.run("python3 mine.py")).stdout == "1\n"
                assert "`copy` can name it" in clean.left_out["test_aaa.py"]
    async with shell.verifier(copy=[".", "test_aaa.py"], files="files") as clean:
        assert await clean.exists("test_aaa.py")
    alone = await open_shell()
    await alone.run("echo 1 > test_mine.py")
    async with alone.verifier(copy=".", originals=["tests"]) as clean:
        assert await clean.exists("test_mine.py"), "nobody else has written any"


@pytest.mark.long
async def test_what_configures_pytest_is_the_authors(open_shell: OpenShell, tmp_path: Path) -> None:
    """In files that are also for other things, which an agent may write as long as it does not."""
    write(tmp_path, **{"root__setup.cfg": "[tool:pytest]\n", "root__pyproject.toml": "[project]\n"})
    shell = await open_shell("root")
    await shell.run(
        "mkdir d e; echo '[tool.pytest.ini_options]' | tee d/pyproject.toml > pyproject.toml; "
        "echo '[metadata]' | tee e/setup.cfg > setup.cfg"
    )
    async with shell.verifier(copy=".", originals=["tests"]) as clean:
        assert await clean.read_text("setup.cfg") == "[tool:pytest]\n"
        assert await clean.read_text("e/setup.cfg") == "[metadata]\n"
        assert {"d/pyproject.toml", "pyproject.toml"} <= set(clean.left_out)
        assert not await clean.exists("d/pyproject.toml")
    async with shell.verifier(copy=["d", "d/pyproject.toml"]) as clean:
        assert await clean.exists("d/pyproject.toml")


@pytest.mark.long
async def test_git_runs_nothing_of_the_agents(shell: ShellWorld) -> None:
    """Not from a repository that lies elsewhere, is bare, or is in another one."""
    begin = (
        "cd; printf '#!/bin/sh\\necho ran >&2\\n' > evil; chmod +x evil; echo 1 > data; "
        "echo '* filter=e' > .gitattributes; arm() { for k in diff.external filter.e.clean "
        "core.fsmonitor; do git config -f $1 $k /workspace/evil; done; }; "
        "new() { git init -q $1; git -C $1 config user.email a@b; git -C $1 config user.name a; }; "
    )
    ways = {
        "a file that names it": "new r; arm r/.git/config; git --git-dir r/.git --work-tree . add "
        "data; mv r/.git gd; git config -f gd/config core.worktree /workspace; rmdir r; "
        "echo 'gitdir: gd' > .git; echo 2 > data",
        "the folder itself": "new r; arm r/.git/config; git --git-dir r/.git --work-tree . add "
        "data; mv r/.git/* .; rm -r r; git config -f config core.bare false; "
        "git config -f config core.worktree /workspace; echo 2 > data",
        "a submodule": "new .; new s; echo 1 > s/f; git -C s add f; git -C s commit -qm x; "
        "git -c protocol.file.allow=always submodule --quiet add ./s sm; git commit -qam y; "
        "cp .gitattributes sm; git submodule absorbgitdirs; arm .git/modules/sm/config; "
        "echo 2 > sm/f",
    }
    look = "git status; git diff --ext-diff; git -C sm status; git -C sm diff --ext-diff"
    for way, line in ways.items():
        await shell.run("rm -rf .git * .gitattributes .gitmodules")
        made = await shell.run(begin + line)
        assert "ran" in (await shell.run(look)).output, (way, made.output)
        async with shell.verifier(copy=".") as clean:
            assert "ran" not in (await clean.run(look)).output.split("\n"), way
    await shell.run(f"rm -rf .git * .git*; {begin} new .; git checkout -qb config; "
                    "git add data; git commit -qm x")  # fmt: skip
    async with shell.verifier(copy=".") as clean:
        log = await clean.run("git log --format=%s config")
        assert log.stdout == "x\n", "its commits are data, whatever its branches are called"


@pytest.mark.long
async def test_names_that_are_no_text_do_not_spoil_a_record(shell: ShellWorld) -> None:
    """An agent chooses the names of what is left out; records keep text alone."""
    await shell.run(
        "mkfifo \"$(printf 'a\\xff')\" \"$(printf 'b\\nc')\"; touch \"$(printf 'd\\xff')\""
    )
    async with shell.verifier(copy=".") as clean:
        assert json.loads(json.dumps(clean.left_out).encode()) == dict(clean.left_out)
        assert {name.encode() for name in clean.left_out} == {b"a?", b"b\nc"}
        assert (await clean.run("ls | wc -l")).stdout == "1\n"


async def test_on_a_machine_without_sandboxes_it_is_a_folder_of_its_own(
    open_shell: OpenShell, tmp_path: Path
) -> None:
    """Nothing guards it there; it has the same files, and is removed."""
    write(tmp_path, checks__check_="import total; print(total.total)")
    shell = await open_shell(isolation="none")
    await shell.write("total.py", "total = 3\n")
    async with shell.verifier("checks", ["total.py"]) as clean:
        assert (await clean.run("python3 check.py")).output == "3\n"
        assert clean.root != shell.root
    assert not Path(clean.root).exists()


@pytest.mark.long
async def test_outputs_that_lie_in_each_other_keep_nobody_from_looking(
    shell: ShellWorld, tmp_path: Path
) -> None:
    """The first of two that cannot both be there is taken, and the other one is left out."""
    write(tmp_path, checks__check_="print(1)")
    named = {"src": "app", "conf": "app/conf", "more": "checks", "one": "checks/one"}
    wrong: list[str] = []
    for line in (
        "mkdir -p src/conf/x; echo 1 > conf",
        "echo 1 > src; echo 1 > conf",
        "mkdir src conf; echo 1 > src/conf; echo 1 > conf/x",
        "ln -s conf src; mkdir conf; echo 1 > conf/x",
        "mkdir src; ln -s x src/conf; echo 1 > src/x; mkdir conf; echo 1 > conf/y",
        "mkdir -p more/one; echo 1 > one",
        "mkdir more one; echo 1 > more/one; echo 1 > one/x",
        "echo 1 > more; mkdir one",
    ):
        await shell.run(f"rm -rf src conf more one; {line}")
        try:
            async with shell.verifier(".", named) as clean:
                done = await clean.run("python3 checks/check.py")
                if done.stdout != "1\n":
                    wrong.append(f"{line}: {done}")
        except EnvironmentFailed as exc:
            wrong.append(f"{line}: {exc}")
    assert wrong == []
