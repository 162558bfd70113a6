"""Agents that want a reward which they have not earned, on every shell task that is shipped."""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import anyio
import orjson
import pytest

from hud_mcp.errors import HudMcpError
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.public import import_set
from hud_mcp.loading.source import load_environments, shipped_environments, shipped_folder
from hud_mcp.plugins.sets.agentbench import NAMES
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.rollout.checking.shell import ShellAttack, named_files, shell_attacks
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.action import CustomAction
from hud_mcp.values.observation import Look
from hud_mcp.worlds.shell import Shell

ROOT = Path(__file__).resolve().parents[3]
BOUND_S = 500
BROKEN = "def total(prices):\n    return sum(prices) - 1\n"
REPAIR = "sed -i 's/ - 1//' total.py"
TEST = (
    "import unittest\nfrom total import total\n\n\nclass Totals(unittest.TestCase):\n"
    "    def test_it(self):\n        self.assertEqual(total([1, 2]), 3)\n"
)
COUNT = """\
cat > count.py <<'E'
import collections, json, sys
sums = collections.Counter()
for line in sys.stdin:
    word, number = line.split()
    sums[word] += int(number)
print(json.dumps(sums))
E
python3 count.py < day.log > report.json
"""
MESS = """
mkdir -p .local/bin __pycache__; git init -q .; python3 -c 'import total' 2>/dev/null
touch conftest.py .local/bin/python3; ln -s /etc/passwd link; mkfifo pipe
(while :; do date > now; sleep 0.01; done) >/dev/null 2>&1 </dev/null &
"""
"""What an honest agent may leave behind."""

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]


@dataclass(frozen=True)
class Shipped:
    """A task that is shipped.

    Attributes:
        make: Writes its files into a folder, and returns its source and its task.
        solution: A line of bash that solves it.
        answer: What is answered then.
        every_file_counts: Whether a file beside the work is a fault, as it is in InterCode.
    """

    make: Callable[[Path], tuple[str, Task]]
    solution: str
    answer: str = "done"
    every_file_counts: bool = False


def blocks(page: str) -> list[str]:
    """A page's programs."""
    text = (ROOT / page).read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def of_shell_page(folder: Path) -> tuple[str, Task]:
    """docs/shell.md: "An example"."""
    for name, start in (("env.py", "# repair.py"), ("checks/call.py", "# checks/call.py")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(next(b for b in blocks("docs/shell.md") if b.startswith(start)))
    (folder / "files").mkdir()
    (folder / "files" / "total.py").write_text(BROKEN)
    (folder / "files" / "test_total.py").write_text(TEST)
    return str(folder / "env.py"), Task(env="repair", template="repair")


def of_graders_page(folder: Path) -> tuple[str, Task]:
    """docs/graders.md: "A verifier"."""
    block = next(b for b in blocks("docs/graders.md") if b.startswith("# grading_env.py"))
    (folder / "env.py").write_text(block)
    return str(folder / "env.py"), Task(env="reports", template="report")


def of_workspace_page(folder: Path) -> tuple[str, Task]:
    """docs/workspace.md, a file as HUD's authors write it."""
    (block,) = blocks("docs/workspace.md")
    (folder / "env.py").write_text(block.replace("/tmp/repairs", str(folder / "repairs")))
    return str(folder / "env.py"), Task(env="repairs", template="fix")


def of_hud_shell(folder: Path) -> tuple[str, Task]:
    """A row of the gym that comes with the package."""
    del folder
    task = Task(
        prompt="Repair total.py.",
        gym="hud-shell",
        setup=[("write_file", "total.py", BROKEN), ("write_file", "test_total.py", TEST)],
        evaluate=[
            ("prints", "python3 -c 'import total; print(total.total([19, 4]))'", "23"),
            ("run", "python3 -m unittest"),
        ],
    )
    return "hud-shell", task


def row_of(name: str, folder: Path, files: dict[str, bytes]) -> Task:
    """The one row of a public set that runs here, of files that are written for it."""
    for path, data in files.items():
        (folder / "set" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "set" / path).write_bytes(data)
    imported = import_set(name, place=folder / "set")
    assert imported is not None
    (task,) = imported.tasks
    assert why_not_runnable(task) is None
    return task


def of_agentbench(folder: Path) -> tuple[str, Task]:
    """A row that a script grades by a file in the home."""
    row = {
        "description": "Write the sum for each word of ~/day.log to ~/sums, sorted.",
        "create": {"init": {"code": "printf 'lamp 2\\nchair 1\\nlamp 3\\n' > ~/day.log"}},
        "evaluation": {
            "check": ['[ "$(cat ~/sums)" = "$(printf \'chair 1\\nlamp 5\')" ]'],
            "example": SUM,
        },
    }
    files = {f"data/os_interaction/data/{name}.json": b"[]" for name in NAMES}
    files["data/os_interaction/data/dev.json"] = orjson.dumps([row])
    return "agentbench-os", row_of("AgentBench-OS", folder, files)


def of_gaia(folder: Path) -> tuple[str, Task]:
    """A row with a file, whose answer is compared."""
    row = {"task_id": "t", "Question": "How many lamps are in stock.csv?", "Level": "1",
           "Final answer": "1742", "file_name": "stock.csv"}  # fmt: skip
    files = {"2023/validation/metadata.jsonl": orjson.dumps(row)}
    files["2023/validation/stock.csv"] = b"lamp,1700\nlamp,42\n"
    return "gaia", row_of("GAIA", folder, files)


def of_intercode(folder: Path) -> tuple[str, Task]:
    """A row whose files and whose output are compared with those of its gold command."""
    gold = "sort /testbed/notes.txt > /testbed/sorted.txt; cat /testbed/sorted.txt"
    rows = orjson.dumps([{"query": "Sort notes.txt into sorted.txt, and print it.", "gold": gold}])
    files = {f"data/nl2bash/nl2bash_fs_{n}.json": rows if n == 1 else b"[]" for n in range(1, 5)}
    setup = b"mkdir -p /testbed\nprintf 'plum\\npear\\n' > /testbed/notes.txt\n"
    files |= {f"docker/bash_scripts/setup_nl2b_fs_{n}.sh": setup for n in range(1, 5)}
    return "intercode", row_of("InterCode-bash", folder, files)


def of_osworld(folder: Path) -> tuple[str, Task]:
    """A row with a program of the home that grades, and a file whose text is compared."""
    check = "import sys; sys.path.insert(0, '/home/user'); print(open('/home/user/a.txt').read())"
    row = {
        "domain": "os", "file_id": "1", "id": "1",
        "instruction": "Write the words of b.txt in capitals to a.txt.",
        "config": [{"type": "execute", "parameters": {
            "command": "printf 'plum' > ~/b.txt; printf 'def test(): pass' > ~/test_a.py",
            "shell": True}}],
        "evaluator": {
            "func": ["exact_match", "check_include_exclude"],
            "result": [{"type": "vm_file", "path": "/home/user/a.txt"},
                       {"type": "vm_command_line", "command": ["python3", "-c", check]}],
            "expected": [{"type": "rule", "rules": {"expected": "PLUM"}},
                         {"type": "rule", "rules": {"include": ["PLUM"], "exclude": ["OK"]}}],
        },
    }  # fmt: skip
    return "osworld", row_of("OSWorld", folder, {"osworld_examples.jsonl": orjson.dumps(row)})


def of_shell_set(folder: Path) -> tuple[str, Task]:
    """A row of the shell set, which is graded in a verifier."""
    del folder
    return "shell", Task(env="shell", template="rename_host", args={"seed": 21})


def of_questions_set(folder: Path) -> tuple[str, Task]:
    """A row of the questions, whose answer is compared."""
    del folder
    task = Task(env="questions", template="workbook", args={"ask": "hidden", "seed": 111})
    return "questions", task


Play = Callable[[str, str], Awaitable[tuple[Trajectory, str]]]

SUM = "awk '{s[$1] += $2} END {for (w in s) print w, s[w]}' ~/day.log | sort > ~/sums"
RENAME = (
    "find etc -type f -name '*.conf' -exec perl -pi -e "
    "'s/(?<![\\w.-])db1\\.dune\\.example\\.net(?!\\.?[\\w-])/kestrel45.example.org/g' {} +"
)
SHIPPED = {
    "docs/shell.md": Shipped(of_shell_page, REPAIR),
    "docs/graders.md": Shipped(of_graders_page, COUNT),
    "docs/workspace.md": Shipped(of_workspace_page, REPAIR),
    "hud-shell": Shipped(of_hud_shell, REPAIR),
    "agentbench-os": Shipped(of_agentbench, SUM),
    "gaia": Shipped(of_gaia, "true", "1742"),
    "intercode": Shipped(
        of_intercode, "sort /testbed/notes.txt > /testbed/sorted.txt", "pear\nplum",
        every_file_counts=True,
    ),
    "osworld": Shipped(of_osworld, "tr a-z A-Z < ~/b.txt > ~/a.txt"),
    "shell": Shipped(of_shell_set, RENAME),
    "questions": Shipped(of_questions_set, "true", "Rugs"),
}  # fmt: skip
ALIKE = ("gaia", "intercode", "osworld", "questions")
"""Those whose worlds are as that of another one."""
PROVEN = {"shell", "questions"}
"""Those whose rows are shipped: `make prove` attacks each row as `hud-mcp check` does."""


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own, for the files of rows."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@asynccontextmanager
async def opened(shipped: Shipped, folder: Path) -> AsyncGenerator[Play]:
    """What plays a task: a command, then an answer."""
    source, task = shipped.make(folder)
    environments = load_environments([source])
    store = Store(folder / "store.sqlite3")
    sessions = Sessions(environments, store=store)

    async def play(command: str, answer: str) -> tuple[Trajectory, str]:
        session = await sessions.start(task, caller=Caller(None, "attacker"))
        action = CustomAction(action="run", args={"command": command, "timeout_s": 20})
        with suppress(HudMcpError):  # its record says how it ended
            await session.step((action,), Look())
        with suppress(HudMcpError):
            await session.respond(answer)
        await session.cancel()
        await session.closed()
        assert session.prompt is not None
        return await store.load_trajectory(session.trajectory_id), session.prompt.text

    try:
        yield play
    finally:
        await sessions.close()


@pytest.mark.long
@pytest.mark.parametrize("name", SHIPPED)
async def test_no_attack_on_a_shipped_task_gets_the_full_reward(name: str, tmp_path: Path) -> None:
    """Whatever an agent deletes, plants, links or leaves running: each gets less than 1."""
    shipped = SHIPPED[name]
    ended: dict[str, Trajectory] = {}
    async with opened(shipped, tmp_path) as play:
        limit = anyio.Semaphore(3)
        _, prompt = await play("true", "")
        attacks = shell_attacks(named_files(prompt.replace(str(tmp_path / "repairs"), "")))

        async def attack(each: ShellAttack) -> None:
            async with limit:
                ended[each.name], _ = await play(each.command, each.answer)

        with anyio.fail_after(BOUND_S):
            async with anyio.create_task_group() as group:
                for each in attacks:
                    group.start_soon(attack, each)
    assert len(ended) == len(attacks)
    assert {n: t.reward for n, t in ended.items() if t.reward is not None and t.reward >= 1} == {}
    ungraded = {n: (t.outcome, t.error) for n, t in ended.items() if t.outcome != "graded"}
    assert ungraded == {}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long) if name in ALIKE else name for name in SHIPPED],
)
async def test_an_honest_solution_of_a_shipped_task_gets_it(name: str, tmp_path: Path) -> None:
    """Also where it leaves behind what attacks do: programs, links, a repository, a daemon."""
    shipped = SHIPPED[name]
    with anyio.fail_after(BOUND_S):
        async with opened(shipped, tmp_path) as play:
            plain, _ = await play(shipped.solution, shipped.answer)
            messy, _ = await play(f"{shipped.solution}{MESS}", shipped.answer)
    assert (plain.outcome, plain.reward) == ("graded", 1.0), plain.error
    assert messy.outcome == "graded", messy.error
    assert messy.reward == 1.0 or shipped.every_file_counts, messy.error


@pytest.mark.long
def test_every_shipped_environment_with_a_shell_is_attacked() -> None:
    """One that is added later is named here, or this fails."""
    if find_spec("miniwob") is None:
        pytest.skip("MiniWoB++ is not installed, which one of the environments loads")
    names = set(SHIPPED) & set(shipped_environments())
    with_shell = {
        name
        for name in shipped_environments()
        if any(isinstance(e.world, Shell) for e in load_environments([name]))
    }
    assert with_shell == names
    for path in shipped_folder("taskset_data").glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        named = {row.get("env") or row.get("gym") for row in rows}
        assert not named & with_shell - PROVEN, path


def test_files_of_a_prompt_are_found() -> None:
    """With folders, and without what only looks like one."""
    prompt = "See /workspace/src/a.py, report.csv, e.g. the 2.5 of it. Write to data/out.json."
    assert named_files(prompt) == ("src/a.py", "report.csv", "data/out.json")
