"""Questions on a web server's log: of one file, of rotated ones, of several time zones."""

import gzip
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Literal

from shell_files import File, Files, Seed, draws, fill, need, run
from shell_words import WORDS

from hud_mcp import Agent, Environment, ShellWorld, exact_match, numeric_match

__all__ = ["declare", "log_case"]

Level = Literal["plain", "rotated", "zones"]
Ask = Literal["errors", "client"]
ZONES = (0, 0, 120, -300, 330)
STATUSES = (200, 200, 200, 304, 404, 500, 502, 503)
READ = r"""
import collections, datetime, glob, gzip, re, sys
day, path, ask = sys.argv[1:]
counts = collections.Counter()
for name in glob.glob("logs/access.log*"):
    opened = gzip.open(name, "rt") if name.endswith(".gz") else open(name)
    for line in opened:
        found = re.match(r'(\S+) \S+ \S+ \[(.*?)\] "\S+ (\S+) [^"]*" (\d{3}) ', line)
        if not found:
            continue
        client, when, target, status = found.groups()
        utc = datetime.datetime.strptime(when, "%d/%b/%Y:%H:%M:%S %z")
        utc = utc.astimezone(datetime.timezone.utc)
        if utc.strftime("%Y-%m-%d") == day and target.split("?")[0] == path:
            if ask == "client" or status[0] == "5":
                counts[client] += 1
print(sum(counts.values()), counts.most_common(3))
"""


@dataclass(frozen=True)
class Request:
    """One line of the log."""

    when: datetime
    client: str
    target: str
    status: int
    size: int

    def line(self, zone: int) -> str:
        """As a server in a zone writes it, whose offset is in minutes."""
        local = self.when.astimezone(timezone(timedelta(minutes=zone)))
        at = f"{local:%d}/{'Feb' if local.month == 2 else 'Mar'}/{local:%Y:%H:%M:%S %z}"  # noqa: PLR2004
        return (
            f'{self.client} - - [{at}] "GET {self.target} HTTP/1.1" {self.status} {self.size} "-" '
            f'"probe/{self.size % 7}.0"'
        )


@dataclass(frozen=True)
class LogCase:
    """Files, what is asked of them, the answer, and what a careless reader answers."""

    files: Files
    day: str
    path: str
    answer: str
    careless: list[str]


def log_case(seed: int, level: str, ask: str) -> LogCase:
    """Draw a log in which one answer is right, and a careless one differs."""
    for turn in range(1000):
        case = drawn(seed, level, ask, turn)
        if case is not None:
            return case
    raise RuntimeError(f"No log was drawn for the seed {seed}.")


def drawn(seed: int, level: str, ask: str, turn: int) -> LogCase | None:
    """The log of four days around the end of a February with 29 days, or None."""
    draw = draws(f"log/{level}/{ask}/{turn}", seed)
    path = f"/api/{draw.choice(WORDS)}"
    others = [f"{path}s", f"{path}/new", f"/{path[5:]}", f"/api/{draw.choice(WORDS)}"]
    clients = [f"203.0.113.{draw.randint(1, most)}" for most in (24, 250, 250, 250, 250, 250)]
    clients.append(f"{clients[0]}1")
    start = datetime(2024, 2, 28, tzinfo=UTC)
    requests: list[tuple[Request, int]] = []
    for second in sorted(draw.sample(range(4 * 86_400), 900)):
        target = draw.choice((path, path, f"{path}?page={draw.randint(1, 9)}", *others))
        client = draw.choice(clients)
        request = Request(
            start + timedelta(seconds=second),
            client,
            target,
            draw.choice(STATUSES),
            draw.choice((500, 503, 1234, draw.randint(100, 9000))),
        )
        requests.append((request, draw.choice(ZONES) if level == "zones" else 0))
    day = "2024-02-29"
    answer = answer_of(requests, day, path, ask)
    careless = careless_answers(requests, day, path, ask)
    if not answer or (level == "zones" and careless[0] == answer):
        return None
    lines = [request.line(zone) for request, zone in requests]
    return LogCase(
        files_of(lines, level, draw),
        day,
        path,
        answer,
        [each for each in careless if each not in ("", answer)],
    )


def answer_of(requests: list[tuple[Request, int]], day: str, path: str, ask: str) -> str:
    """What is right: a number, or the client with the most requests; empty where there are two."""
    counts: dict[str, int] = {}
    for request, _ in requests:
        wanted = f"{request.when:%Y-%m-%d}" == day and request.target.split("?")[0] == path
        if wanted and (ask == "client" or request.status >= 500):  # noqa: PLR2004  # a server's error
            counts[request.client] = counts.get(request.client, 0) + 1
    if ask == "errors":
        return str(sum(counts.values()))
    best = [each for each, count in counts.items() if count == max(counts.values())]
    return best[0] if len(best) == 1 else ""


def careless_answers(
    requests: list[tuple[Request, int]], day: str, path: str, ask: str
) -> list[str]:
    """What comes out without the query strings, by local days, or for a longer path."""
    local = [(_moved(request, zone), zone) for request, zone in requests]
    bare = [(r, z) for r, z in requests if "?" not in r.target]
    newest = [(r, z) for r, z in requests if r.when.hour >= 12]  # noqa: PLR2004  # noon
    longer = [
        (Request(r.when, r.client, path if r.target.startswith(path) else "/", r.status, r.size), z)
        for r, z in requests
    ]
    return [answer_of(each, day, path, ask) for each in (local, bare, longer, newest)]


def _moved(request: Request, zone: int) -> Request:
    when = request.when + timedelta(minutes=zone)
    return Request(when, request.client, request.target, request.status, request.size)


def files_of(lines: list[str], level: str, draw: random.Random) -> Files:
    """One file; or three, the oldest of which is packed, and another server's beside them."""
    if level == "plain":
        return {"logs/access.log": "\n".join(lines) + "\n"}
    first, second = sorted(draw.sample(range(300, 600), 2))
    text = ["\n".join(part) + "\n" for part in (lines[:first], lines[first:second], lines[second:])]
    packed = gzip.compress(text[0].encode(), mtime=0)
    elsewhere = "\n".join(draw.sample(lines, 50)) + "\n"
    return {
        "logs/access.log.2.gz": File(packed),
        "logs/access.log.1": text[1],
        "logs/access.log": text[2],
        "logs/staging/access.log": elsewhere,
        "logs/error.log": "".join(f"{line} upstream failed\n" for line in draw.sample(lines, 20)),
    }


async def read_log(
    shell: ShellWorld, seed: Seed = 0, level: Level = "plain", ask: Ask = "errors"
) -> AsyncGenerator[str | float]:
    """Ask how often a path failed on a day, or who called it most."""
    case = log_case(seed, level, ask)
    await need(shell)
    await fill(shell, case.files)
    where = "/workspace/logs/access.log"
    if level != "plain":
        where += " and its older, rotated parts beside it (access.log.1, access.log.2.gz)"
    question = (
        "How many requests for the path {} had a status of 500 to 599 on {}? Answer with the "
        "number alone."
        if ask == "errors"
        else "Which client address sent the most requests for the path {} on {}, whatever their "
        "status? Answer with the address alone."
    )
    answer = yield (
        f"Look at {where}. {question.format(case.path, case.day)} The day is one in UTC, from "
        "00:00 to 24:00; the log's times have an offset from UTC. A path is all before a '?', "
        "and must be exactly this one."
    )
    grade = numeric_match(answer, int(case.answer)) if ask == "errors" else 0.0
    yield exact_match(answer, case.answer) if ask == "client" else grade


async def solve_log(agent: Agent, level: str, ask: str) -> str:
    """Look at each file, then read all of them."""
    await run(agent, "ls -lR logs; wc -l logs/access.log; head -3 logs/access.log")
    if level != "plain":
        await run(agent, "head -2 logs/access.log.1; tail -1 logs/access.log.1")
        await run(agent, "zcat logs/access.log.2.gz | head -2")
    await run(agent, "cut -d' ' -f5 logs/access.log | sort | uniq -c")
    told = agent.prompt.partition("the path ")[2].split()
    path = told[0].rstrip(",")
    await agent.tool("write_file", path="/workspace/.count.py", content=READ)
    found = await run(agent, f"python3 .count.py 2024-02-29 {path} {ask}; rm .count.py")
    return found.split()[0] if ask == "errors" else found.split("'")[1]


def declare(env: Environment) -> None:
    """Declare the template of this file."""
    env.template(description="Answer a question on a web server's log")(read_log).oracle(solve_log)
