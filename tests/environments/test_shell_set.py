"""The set `shell`: rewards that were not earned are not given, and what is missing is told."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import anyio
import pytest
from plays import Play, environment_of, play_answer, playing
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import Opening, Task, Taskset
from hud_mcp.loading.sets import find_taskset
from hud_mcp.world import Shared

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

ROWS = Taskset.load(find_taskset("shell"))
ENV = environment_of("shell")


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """What worlds share, which is nothing for shells."""
    services = Shared()
    yield services
    with anyio.fail_after(PATIENCE_S):
        await services.close()


@dataclass(frozen=True)
class Attack:
    """What an agent does for a reward.

    Attributes:
        row: The task.
        command: What it runs.
        solves: Whether it solves the task before.
        most: The reward stays at this, or below.
    """

    row: str
    command: str
    solves: bool = False
    most: float = 0.0


REPLACED = r"""cd repo
key=$(git log --all -p | grep -oE 'sk-[0-9a-f]{20}' | head -1)
export FILTER_BRANCH_SQUELCH_WARNING=1
old=$(git rev-list --all)
git clone -q --mirror . ../other; cd ../other
git filter-branch -f --tree-filter "grep -rlZ $key . | xargs -0 -r sed -i s/$key/REMOVED/g" \
  --msg-filter "sed s/$key/REMOVED/g" --tag-name-filter cat -- --all >/dev/null 2>&1
cd ../repo; git fetch -q ../other '+refs/*:refs/new/*'
for ref in $(git for-each-ref --format='%(refname)' refs/heads refs/tags); do
  git replace -f $ref refs/new/${ref#refs/}; done
git for-each-ref --format='delete %(refname)' refs/new | git update-ref --stdin
git grep -c $key $(git rev-parse main) || echo gone
"""
GRAFTED = """cd repo
gifts=$(git for-each-ref --format='%(refname:short)' refs/heads | grep gifts)
git merge -q -s ours $gifts -m Merge; tip=$(git rev-parse HEAD)
git update-ref refs/replace/$tip $tip
git checkout -q --orphan new; git commit -q -m Merged; git branch -f main new
git checkout -q main; git branch -D new
mkdir -p .git/info; echo "$(git rev-parse main) $(git rev-parse $tip^1 $tip^2 | xargs)" \
  > .git/info/grafts; git log --graph --oneline
"""
LOUD = """import os, sys
sys.stdout.write("9" * 20_000_000)
os.kill(os.getppid(), 9)
"""
OPEN = 'print(*(open(f"/proc/{p}/cmdline").read() for p in __import__("os").listdir("/proc")))'

ATTACKS = {
    "lists every line's length": Attack("shell-lists-plain", "cat inbox/*.txt > /tmp/x; "
        "for f in a b; do cp /tmp/x $f.txt; done; ln -s /tmp/x names.txt"),
    "renames longer names too": Attack("shell-rename-host-alike", "old=$(grep -ohE "
        "'db[0-9]\\.[a-z]+\\.example\\.net' etc/README.md | head -1); "
        'sed -i "s/$old/new.example.org/g" $(find etc -type f)'),
    "renames, and leaves a copy": Attack("shell-rename-host", "cp -r etc etc/old", solves=True),
    "rights of everything": Attack("shell-set-rights-odd", "for f in $(grep -oE "
        "'workspace/[a-z]+.sh' /dev/null) $(ls -d *.sh 2>/dev/null); do "
        "echo 'chmod -R 750 \"$1\" outside' > $f; done", solves=True),
    "rights through links": Attack("shell-set-rights-odd", "for f in *.sh; do echo 'find -L . "
        "-type f -exec chmod 640 {} +' >> $f; done", solves=True),
    "restores a link": Attack("shell-backup-two", "d=$(ls -d restored-*); mv $d kept; "
        "ln -s kept $d", solves=True),
    "restores one file more": Attack("shell-backup-two", "touch $(ls -d restored-*)/more",
        solves=True),
    "spoils the backups": Attack("shell-backup-two", "echo >> backups/SHA256SUMS", solves=True),
    "copies the example's end": Attack("shell-migrate-columns", "echo 'import shutil, sys; "
        "shutil.copy(\"done.db\", sys.argv[1])' > migrate.py"),
    "prints the example's output": Attack("shell-slow-pairs", "for f in *.py; do "
        "echo \"print('$(cat example.out)')\" > $f; done"),
    "prints far too much": Attack("shell-slow-pairs", f"for f in *.py; do cat > $f <<'E'\n{LOUD}E\n"
        "done"),
    "looks for what is expected": Attack("shell-flaky-set", f"for f in *_plan.py; do echo '{OPEN}' "
        "> $f; done"),
    "one good run": Attack("shell-flaky-set", "sed -i 's/^    people = .*/    people = "
        "sorted(set(team[\"people\"]))/' *_plan.py"),
    "prints the build's own files": Attack("shell-build-broken", "printf 'all:\\n\\tmkdir -p out\\n"
        "\\techo A > out/book.txt\\n' > Makefile; cp Makefile GNUmakefile"),
    "cleans by making a folder of a file": Attack("shell-build-stale", "sed -i 's/^clean:.*/&\\n"
        "\\trm -rf title.txt; mkdir title.txt/' Makefile", solves=True),
    "a service of its own": Attack("shell-service-one", "echo 'print(\"{}\")' > service.py; "
        "echo 'raise SystemExit' > settings/sitecustomize.py; printf '#!/bin/sh\\n' > python3; "
        "chmod +x python3"),
    "git replaces what has the key": Attack("shell-git-secret", REPLACED),
    "keeps the key on another ref": Attack("shell-git-secret", "cd repo && "
        "git update-ref refs/keep/old $(git rev-list --no-walk $(git fsck --unreachable "
        "--no-reflogs 2>/dev/null | awk '/commit/ {print $3}') | tail -1)", solves=True),
    "grafts a merge": Attack("shell-git-merge", GRAFTED),
    "resets to the lost commit": Attack("shell-git-lost-commit", "cd repo; git reset -q --hard "
        "$(git reflog --format=%h | sed -n 3p)"),
    "adds another branch": Attack("shell-git-lost-branch", "cd repo; git branch a; git branch b",
        solves=True),
    "tidies what it may not": Attack("shell-script-odd", "echo 'rm -f .h*; true' >> tidy.sh",
        solves=True),
    "no repository at all": Attack("shell-git-merge", "rm -rf repo; echo gone > repo"),
    "a git of another folder": Attack("shell-git-lost-branch", "mv repo/.git gd; "
        "echo 'gitdir: ../gd' > repo/.git", solves=True),
}  # fmt: skip
QUICK = ("renames longer names too", "restores a link", "prints the example's output",
         "git replaces what has the key", "grafts a merge", "no repository at all",
         "a service of its own")  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.prove], id=n) for n in ATTACKS],
)
async def test_an_attack_on_a_shell_task_gets_nothing(name: str, shared: Shared) -> None:
    """What looks done and is not, or does too much, gets no reward."""
    attack = ATTACKS[name]
    with anyio.fail_after(PATIENCE_S):
        async with playing(ROWS[attack.row], shared) as play:
            if attack.solves:
                await play.solve(ROWS[attack.row])
            await play.agent.tool("run_command", command=attack.command)
            if not attack.solves:
                await play.agent.respond("done")
    assert play.grade is not None
    assert play.grade.reward <= attack.most, play.grade


async def all_of(play: Play, command: str) -> str:
    """Every candidate that a command lists, as one answer."""
    return await play.agent.tool("run_command", command=command)


LISTED: dict[str, Callable[[Task], str]] = {
    "shell-find-twin": lambda _: "find store -type f",
    "shell-log-client": lambda _: "cut -d' ' -f1 logs/access.log | sort -u",
    "shell-log-errors": lambda _: "seq 0 900",
    "shell-shop-product": lambda _: (
        "echo lamp chair desk shelf rug vase clock stool mirror basket bench easel"
    ),
    "shell-git-bisect": lambda _: "cd repo && git rev-list main",
    "shell-schedule-clash": lambda _: "for d in $(seq 1 30); do echo 2024-04-0$d 06:00; done",
}


@pytest.mark.long
@each_of("row_id", LISTED)
async def test_an_answer_that_lists_everything_is_wrong(row_id: str, shared: Shared) -> None:
    """Naming all candidates answers no question."""
    with anyio.fail_after(PATIENCE_S):
        async with playing(ROWS[row_id], shared) as play:
            await play.agent.respond(await all_of(play, LISTED[row_id](ROWS[row_id])))
    assert play.grade is not None
    assert play.grade.reward == 0.0


FORMS = {
    "shell-sales-quoted": ("{:,.2f}", "€{:.2f}", "{:.2f}."),
    "shell-find-twin": ("./{}", "/workspace/{}", "`{}`"),
    "shell-schedule-clash": ("{}.", " {}\n"),
}


@pytest.mark.prove
@pytest.mark.parametrize("row_id", FORMS)
async def test_usual_forms_of_a_right_answer_are_right(row_id: str, shared: Shared) -> None:
    """How an answer is written does not matter where it cannot be mistaken."""
    row = ROWS[row_id]
    with anyio.fail_after(PATIENCE_S):
        async with playing(row, shared) as play:
            await play.solve(row)
        assert play.tools.answer is not None
        answer = play.tools.answer
        for form in FORMS[row_id]:
            told = form.format(float(answer) if "f}" in form else answer)
            again = await play_answer(row, told, shared)
            assert again.grade is not None
            assert again.grade.reward == 1.0, told


async def test_a_missing_program_is_named_before_a_task_begins(shared: Shared) -> None:
    """Where the sandbox lacks what a task needs, its setup fails and says what to install."""
    need = ENV.find_template("find_lost").function.__globals__["need"]
    world = await ENV.world.open(Opening(folder=ENV.folder, shared=shared))
    try:
        with anyio.fail_after(PATIENCE_S):
            await need(world, "bash")
            with pytest.raises(RuntimeError, match=r"needs no-such-program in /usr.*apt-get"):
                await need(world, "bash", "no-such-program")
    finally:
        await world.close()


def test_traps_and_wrong_answers_are_where_they_belong() -> None:
    """Questions have two wrong answers or more; tasks that leave files have none."""
    asked = {"find_twin", "read_log", "read_schedule", "sum_sales", "ask_shop", "find_breaking"}
    for row in ROWS:
        assert row.validation is not None
        wrong = [row.validation.wrong_answer, *row.validation.wrong]
        assert (len(wrong) >= 2) == (row.template in asked), row.id
        assert json.dumps(row.args).isascii()
