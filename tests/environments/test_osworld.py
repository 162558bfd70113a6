"""Rows of OSWorld that a shell can do are prepared, worked on and graded by its own rules."""

import base64
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import orjson
import pytest
from dataset_place import dataset_place
from office_files import word
from waiting import PATIENCE_S

from hud_mcp import GymMakeException
from hud_mcp.errors import SourceNotFound
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.public import count, import_set
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud import gym
from hud_mcp.plugins.sets import osworld
from hud_mcp.task import Task

pytestmark = pytest.mark.anyio

CLICK = {"type": "execute", "parameters": {"command": ["python", "-c",
    "import pyautogui; import time; pyautogui.click(960, 540); time.sleep(0.5);"]}}  # fmt: skip
RENAME = {
    "id": "1-rename",
    "instruction": "Rename the folder 'plans' to 'pläne'.",
    "config": [
        {"type": "execute", "parameters": {
            "command": "echo 'password' | sudo -S mkdir ~/Desktop/plans", "shell": True}},
        {"type": "execute", "parameters": {
            "command": ["python3", "-c", "open('/home/user/Desktop/plans/a b', 'w').write('x')"]}},
        CLICK,
    ],
    "evaluator": {
        "func": "exact_match",
        "result": {"type": "vm_command_line", "shell": True,
                   "command": "[ -f ~/Desktop/pläne/'a b' ] && echo yes || echo no"},
        "expected": {"type": "rule", "rules": {"expected": "yes\n"}},
    },
}  # fmt: skip
INFEASIBLE = {
    "id": "2-infeasible",
    "instruction": "Switch the moon off.",
    "config": [
        {"type": "execute", "parameters": {"command": "echo password | sudo -S su - charles"}}
    ],
    "evaluator": {"func": "infeasible"},
}
SEVERAL = {
    "id": "3-several",
    "instruction": "Write settings and notes.",
    "config": [],
    "evaluator": {
        "func": ["check_json_settings", "check_list"],
        "conj": "and",
        "result": [{"type": "vm_file", "path": "/home/user/settings.json"},
                   {"type": "vm_file", "path": "~/notes.txt"}],
        "expected": [{"type": "rule", "rules": {"expected": {"ü": 1}}},
                     {"type": "rule", "rules": {"expect": ["^a+$"], "unexpect": ["z"]}}],
    },
}  # fmt: skip
OTHERS = [
    ({"config": [{"type": "launch", "parameters": {"command": ["gimp"]}}]}, "it needs a desktop"),
    ({"config": [{"type": "download", "parameters": {"files": [
        {"url": "http://169.254.169.254/x", "path": "/home/user/x"}]}}]}, "no place of the bench"),
    ({"config": [{"type": "download", "parameters": {"files": [
        {"url": "https://drive.google.com/uc?id=none", "path": "/home/user/x"}]}}]},
     "its files are at drive.google.com, and are not given or not there"),
    ({"evaluator": {**RENAME["evaluator"], "func": "compare_table",
                    "options": {"rules": [{"type": "sparkline"}]}}}, "compare_table: sparkline"),
    ({"evaluator": {**RENAME["evaluator"], "func": "compare_table",
                    "options": {"rules": [{"type": "style", "props": ["hyperlink"]}]}}},
     "compare_table: style of hyperlink"),
    ({"evaluator": {**RENAME["evaluator"], "func": "compare_zips"}}, "metric compare_zips"),
    ({"evaluator": {**RENAME["evaluator"], "result": {"type": "vm_screen_size"}}}, "getter vm_s"),
    ({"config": [{"type": "execute", "parameters": {"command": "gsettings set a b c"}}]},
     "it needs a desktop \\(GNOME"),
    ({"config": [{"type": "execute", "parameters": {"command": [
        "python", "-c", "pyautogui.click(960, 540); pyautogui.write('ls')"]}}]}, "a desktop"),
    ({"domain": "gimp"}, "it needs a desktop"),
]  # fmt: skip


def rows(folder: Path, *given: dict[str, object]) -> list[Task]:
    """Rows as a user imports them from a file of his own."""
    made = [{"domain": "os", "file_id": row["id"], **row} for row in given]
    (folder / "osworld_examples.jsonl").write_bytes(b"\n".join(map(orjson.dumps, made)))
    imported = import_set("OSWorld", place=folder)
    assert imported is not None
    return imported.tasks


async def played(task: Task, command: str, answer: str) -> float:
    """The reward of a task after one command and an answer."""
    with anyio.fail_after(120):
        env = await gym.make(task)
        try:
            if command:
                await env.step([{"type": "custom", "action": "run", "args": {"command": command}}])
            await env.step([{"type": "response", "text": answer}])
            return await env.evaluate()
        finally:
            await env.close()


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of the test's own."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))


@pytest.mark.sandbox
async def test_a_row_of_files_is_graded_in_a_copy_of_the_home(tmp_path: Path) -> None:
    """Paths of the row hold as they are, spaces and letters beyond ASCII too."""
    (task,) = rows(tmp_path, RENAME)
    assert why_not_runnable(task) is None
    assert await played(task, "mv /home/user/Desktop/plans ~/Desktop/pläne", "DONE") == 1.0
    assert await played(task, "", "DONE") == 0.0
    assert await played(task, "mv ~/Desktop/plans ~/Desktop/pläne", "FAIL") == 0.0


@pytest.mark.sandbox
async def test_an_infeasible_row_is_done_by_saying_so(tmp_path: Path) -> None:
    """And by nothing else."""
    (task,) = rows(tmp_path, INFEASIBLE)
    assert await played(task, "", "FAIL") == 1.0
    assert await played(task, "", "") == 0.0


@pytest.mark.long
@pytest.mark.sandbox
async def test_several_metrics_have_to_hold_at_once(tmp_path: Path) -> None:
    """A file that is not there is 0, as is one metric of two that does not hold."""
    (task,) = rows(tmp_path, SEVERAL)
    right = """echo '{"ü": 1, "b": 2}' > ~/settings.json; printf 'b\\naaa\\n' > ~/notes.txt"""
    assert await played(task, right, "DONE") == 1.0
    assert await played(task, f"{right}; echo z >> ~/notes.txt", "DONE") == 0.0
    assert await played(task, f"{right}; rm ~/notes.txt", "DONE") == 0.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("change", "why"), OTHERS, ids=[why for _, why in OTHERS])
async def test_a_row_that_a_shell_cannot_do_says_why(
    tmp_path: Path, change: dict[str, object], why: str
) -> None:
    """It is imported like the others, and starting it says the same."""
    (task,) = rows(tmp_path, {**RENAME, **change})
    assert re.search(why, why_not_runnable(task) or "")
    with anyio.fail_after(PATIENCE_S), pytest.raises(GymMakeException, match=why):
        await gym.make(task)


async def test_rows_are_counted_by_their_first_reason_and_what_else_they_lack(
    tmp_path: Path,
) -> None:
    """So that hundreds of rows make a few lines."""
    zips = {**RENAME, "domain": "gimp", "evaluator": {"func": ["compare_zips", "compare_zips"]}}
    counted = count([*rows(tmp_path, zips), *rows(tmp_path, {**RENAME, "domain": "gimp"})])
    assert counted.reasons == {"it needs a desktop": 2}
    assert counted.besides == {"metric compare_zips": 1}


def metric(name: str) -> Callable[..., float]:
    """A metric by its name."""
    load_environments(["osworld"])
    return sys.modules["osworld_metrics"].METRICS[name]


@pytest.mark.parametrize(
    ("name", "result", "rules", "score"),
    [
        ("check_include_exclude", "a b", {"include": ["a"], "exclude": ["c"]}, 1.0),
        ("check_include_exclude", "a c", {"include": ["a"], "exclude": ["c"]}, 0.0),
        ("check_direct_json_object", "{'a': 1, 'b': 2}", {"expected": {"a": 1}}, 1.0),
        ("check_direct_json_object", '{"a": 2}', {"expected": {"a": 1}}, 0.0),
        ("check_direct_json_object", {"a": ["x", "y"]},
         {"expected": {"a": ["x"]}, "expect_in_result": True}, 1.0),
        ("check_direct_json_object", {"a": ["x", "y"]},
         {"expected": {"a": ["z", "y"]}, "expect_in_result": True}, 1.0),
        ("check_direct_json_object", {"a": 5},
         {"expected": {"a": "x"}, "expect_in_result": True}, 0.0),
        ("check_direct_json_object", "nothing", {"expected": {"a": 1}}, 0.0),
        ("check_moved_jpgs", ["b.jpg", "a.jpg"], {"expected": ["a.jpg", "b.jpg"]}, 1.0),
        ("check_moved_jpgs", ["a.jpg", "c"], {"expected": ["a.jpg"]}, 0.0),
        ("is_in_list", ["x"], {"expected": "x"}, 1.0),
        ("is_in_list", "only y", {"expected": "x"}, 0.0),
        ("check_gnome_favorite_apps", "['b', 'a']\n", {"expected": ["a", "b"]}, 1.0),
        ("check_gnome_favorite_apps", "['b']\n", {"expected": ["a", "b"]}, 0.0),
        ("is_expected_url_pattern_match", {"url": "https://x.example/a?b"},
         {"expected": [r"x\.example", "b$"]}, 1.0),
        ("is_expected_url_pattern_match", "https://y.example", {"expected": [r"x\."]}, 0.0),
        ("compare_text_file", b"a b\r\n", b"a b\n", 1.0),
        ("compare_text_file", b"a b\n", b"a c\n", 0.0),
        ("literal_match", "x", "x", 1.0),
    ],
)  # fmt: skip
async def test_a_metric_scores_by_its_published_rule(
    name: str, result: object, rules: object, score: float
) -> None:
    """On what is right, and on what is wrong."""
    assert metric(name)(result, rules) == score


async def test_metrics_without_rules_look_at_the_result_alone() -> None:
    """A zone at +0000, and a scale above 1."""
    status = "Local: x\nUniversal: x\nRTC: x\nTime zone: Etc/UTC (UTC, +0000)\n"
    assert metric("is_utc_0")(status) == 1.0
    assert metric("is_utc_0")(status.replace("+0000", "+0100")) == 0.0
    assert metric("check_text_enlarged")("1.25\n") == 1.0
    assert metric("check_text_enlarged")("1.0") == 0.0
    assert metric("check_text_enlarged")("large") == 0.0
    assert metric("literal_match")("X", "x", ignore_case=True) == 1.0
    assert metric("literal_match")(["X"], ["x"], type="list", ignore_case=True) == 1.0
    assert metric("literal_match")(["x", "y"], ["x"], type="list") == 0.0
    assert metric("compare_text_file")(b"a\tb\n", b"a b", ignore_blanks=True) == 1.0


FILES = {
    "id": "4-files",
    "instruction": "Put the price of the lamp into price.docx, and a copy of it into the folder.",
    "config": [
        {"type": "download", "parameters": {"files": [
            {"url": "https://drive.google.com/uc?id=a1&export=download", "path": "setup.sh"}]}},
        {"type": "execute", "parameters": {"command": "chmod +x setup.sh && ./setup.sh",
                                           "shell": True}},
        {"type": "execute", "parameters": {"command": ["python", "-c",
            "import pyautogui; pyautogui.write('cd shop'); pyautogui.press('enter')"]}},
        {"type": "activate_window", "parameters": {"window_name": "Terminal"}},
    ],
    "evaluator": {
        "postconfig": [{"type": "download", "parameters": {"files": [
            {"url": "https://drive.usercontent.google.com/download?id=b2", "path": "eval.sh"}]}}],
        "func": ["compare_docx_files", "check_include_exclude", "check_moved_jpgs"],
        "result": [{"type": "vm_file", "path": "/home/user/shop/price.docx", "dest": "p.docx"},
                   {"type": "vm_command_line", "command": "bash eval.sh", "shell": True},
                   {"type": "list_directory", "path": "/home/user/shop/copies"}],
        "expected": [
            {"type": "cloud_file", "dest": "gold.docx",
             "path": "https://drive.google.com/uc?id=c3&export=download"},
            {"type": "rule", "rules": {"include": ["there"], "exclude": ["no"]}},
            {"type": "rule", "rules": {"expected": ["price.docx"]}},
        ],
    },
}  # fmt: skip
PUBLISHED = {
    "files/a1/setup.sh": b"#!/bin/bash\nmkdir -p ~/shop/copies; echo 42 > ~/shop/lamp\n",
    "files/b2/eval.sh": b"[ -f ~/shop/copies/price.docx ] && echo there || echo no\n",
    "files/c3/gold.docx": word("42"),
}


@pytest.mark.long
@pytest.mark.sandbox
async def test_files_of_a_row_are_fetched_with_it_and_named_by_their_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that prepare it, those that grade it, and the expected one; an agent's stand for none.

    A file that has changed at its place is an error that names it.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    row = orjson.dumps(FILES)
    with anyio.fail_after(300):
        async with dataset_place() as place:
            listed = orjson.dumps({"os": ["4-files"]})
            name = "evaluation_examples/examples/os/4-files.json"
            place.files = {"evaluation_examples/test_all.json": listed, name: row, **PUBLISHED}

            async def load() -> Task:
                work = partial(import_set, "OSWorld", place=place.url)
                imported = await anyio.to_thread.run_sync(work)
                assert imported is not None
                return imported.tasks[0]

            task = await load()
            assert why_not_runnable(task) is None
            assert "Work in /home/user/shop, which is the current directory." in (task.prompt or "")
            assert "drive" not in repr(task.evaluate)
            place.files["files/c3/gold.docx"] = word("43")
            assert await load() == task
            for kept in (tmp_path / "cache").rglob("gold.docx"):
                kept.unlink()
            with pytest.raises(SourceNotFound, match=r"gold\.docx has changed: its digest is"):
                await load()
    made = base64.b64encode(word("42")).decode()
    solve = f"cd ~/shop && echo {made} | base64 -d > price.docx && cp price.docx copies"
    assert await played(task, f'[ "$(cat ~/shop/lamp)" = 42 ] && {solve}', "DONE") == 1.0
    assert await played(task, f"{solve}; rm copies/*; echo echo there > ~/eval.sh", "DONE") == 0.0
    assert await played(task, f"{solve}; mkdir -p ~/eval.sh/x", "DONE") == 1.0
    huge = f"{solve}; truncate -s 20M price.docx"
    assert await played(task, huge, "DONE") == 0.0


async def test_the_importer_names_what_the_environment_has() -> None:
    """A metric that rows are said to run with is there."""
    load_environments(["osworld"])
    assert set(sys.modules["osworld_metrics"].METRICS) | {"infeasible"} == set(osworld.METRICS)
