"""Rows of our own sets in which something arrives: who never looks again gets nothing."""

import re
from collections.abc import AsyncIterator

import anyio
import pytest
from plays import playing
from waiting import PATIENCE_S

from hud_mcp import Agent, Taskset
from hud_mcp.loading.sets import find_taskset
from hud_mcp.world import Shared

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

ROWS = Taskset.load(find_taskset("shell"))
MAIL = Taskset.load(find_taskset("web"))
SUM = (
    "cat deliveries/list-*.csv | awk -F, '/^[a-z]+,/ { n[$1] += $2 } "
    'END { for (k in n) print k "," n[k] }\' | sort > OUT'
)
ADD = "cat prices/*.txt | awk '{ n += $1 } END { print n }' > TOTAL"
COMMIT = f"cd repo && {ADD} && git commit -qam Sum"


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """What worlds share."""
    services = Shared()
    yield services
    with anyio.fail_after(PATIENCE_S):
        await services.close()


def settings(agent: Agent) -> str:
    """The command that sets what the prompt asks for."""
    pairs = re.findall(r"(\w+) to (\d+)", agent.prompt.partition(". Bruno")[0])
    return ";".join(
        f"sed -i 's/^{name} = .*/{name} = {value}/' service.ini" for name, value in pairs
    )


def sums(agent: Agent) -> str:
    """The command that adds up what is there now."""
    out = agent.prompt.partition("write to /workspace/")[2].split()[0]
    return SUM.replace("OUT", out)


def report(agent: Agent) -> str:
    """The command that makes the report of the files that are there now."""
    out = agent.prompt.partition("them to /workspace/")[2].partition(":")[0]
    return f"./report.sh orders/*.csv > {out}"


HASTY = {
    "sums of the first list": ("shell-deliveries", ["SUMS"]),
    "sums of two lists": ("shell-deliveries", ["ls", "ls", "SUMS"]),
    "a folder that takes no list": ("shell-deliveries", ["mv deliveries d; touch deliveries"] * 5),
    "corrections as counts": ("shell-deliveries-corrected", ["ls"] * 5 + ["SUMS"]),
    "settings that are overwritten": ("shell-shared-settings-silent", ["SETTINGS", "ls"]),
    "settings without his": ("shell-shared-settings", [
        "cp service.ini kept.ini", "echo >> service.ini", "cp kept.ini service.ini; SETTINGS"]),
    "a sum without hers": ("shell-push-sum-silent", [f"{COMMIT}; git push -q origin main"]),
    "a sum that is never pushed": ("shell-push-sum", ["ls", "ls", "ls", COMMIT]),
    "her commit overwritten": ("shell-push-sum", [
        COMMIT, "ls", "ls", "cd repo; git push -qf origin main"]),
    "a report before the last file": ("shell-full-disk", ["REPORT", "ls", "ls"]),
    "a report that lacks lines": ("shell-full-disk", ["ls", "ls", "ls", "REPORT"]),
    "a file in the way of others": ("shell-full-disk", [
        "touch /tmp/thumbnails", "ls", "REPORT"]),
    "no remote to push to": ("shell-push-sum", ["rm -rf origin.git", "ls", "ls", COMMIT]),
}  # fmt: skip
QUICK = "settings that are overwritten"


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == QUICK else pytest.mark.long, id=n) for n in HASTY]
)
async def test_who_does_not_notice_what_arrives_gets_nothing(name: str, shared: Shared) -> None:
    """The work is right for what was there at first, and wrong for what is there at the end."""
    row, commands = HASTY[name]
    with anyio.fail_after(PATIENCE_S):
        async with playing(ROWS[row], shared) as play:
            for command in commands:
                made = command.replace("SUMS", sums(play.agent) if "SUMS" in command else "")
                made = made.replace("REPORT", report(play.agent) if "REPORT" in command else "")
                made = made.replace("SETTINGS", settings(play.agent))
                await play.agent.tool("run_command", command=made)
            await play.agent.respond("done")
    assert play.grade is not None
    assert play.grade.reward == 0.0, play.grade


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("row", ["web-mail-late-change", "web-mail-awaited-code-silent"])
async def test_a_mail_that_comes_is_in_the_mailbox_and_is_told_where_the_row_says_so(
    row: str, shared: Shared
) -> None:
    """The solution reads it; its row tells whether a reply said that it came."""
    with anyio.fail_after(PATIENCE_S):
        async with playing(MAIL[row], shared) as play:
            await play.solve(MAIL[row])
    assert play.grade is not None
    assert play.grade.reward == 1.0, play.grade
    told = any("A new mail has come" in reply for reply in play.tools.replies)
    assert told == bool(MAIL[row].args.get("told"))
    assert len(play.tools.events) == 1
