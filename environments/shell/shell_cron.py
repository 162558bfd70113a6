"""Questions on a schedule: how often a job runs, and when two of them start together."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from shell_files import Files, Seed, draws, fill, need, run
from shell_words import WORDS

from hud_mcp import Agent, Environment, ShellWorld, exact_match, numeric_match

__all__ = ["Schedule", "cron_case", "declare"]

Ask = Literal["daily", "count", "clash"]
MINUTE = timedelta(minutes=1)
SUNDAY = 7
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
FORMAT = """# How to read `crontab`

A line is: minute, hour, day of the month, month, day of the week, and the job's name.

- `*` is every value; `a-b` is a range with both ends; `a,b` is a list of values and ranges.
- `*/n` is every n-th value, counted from the least one that the field can have; `a-b/n` is every
  n-th one of a range, counted from `a`.
- Months are 1 to 12. Days of the week are 0 to 7; 0 and 7 are both Sunday.
- A job starts in each minute in which minute, hour and month fit, and the day fits. Where both day
  fields are other than `*`, one of them suffices. Where one is `*`, the other one decides.
- Lines that begin with `#` are not read. The clock is UTC, and the calendar has leap years.
"""
SOLVE = r"""
import datetime, sys
def values(text, low, high):
    found = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        a, _, b = span.partition("-")
        first, last = (low, high) if span == "*" else (int(a), int(b or a))
        found |= set(range(first, last + 1, int(step or 1)))
    return found
def starts(name, begin, end):
    for line in open("crontab"):
        if not line.startswith("#") and line.split() and line.split()[-1] == name:
            break
    fields = line.split()[:5]
    m, h, d, mo, w = [values(f, *r) for f, r in
                      zip(fields, [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)])]
    w = {each % 7 for each in w}
    while begin < end:
        week = (begin.weekday() + 1) % 7
        day, of_week = begin.day in d, week in w
        fits = day or of_week if fields[2] != "*" != fields[4] else day and of_week
        if begin.minute in m and begin.hour in h and begin.month in mo and fits:
            yield begin
        begin += datetime.timedelta(minutes=1)
names = sys.argv[3:]
begin, end = (datetime.datetime.fromisoformat(each) for each in sys.argv[1:3])
both = set.intersection(*(set(starts(name, begin, end)) for name in names))
print(len(both), min(both))
"""


@dataclass(frozen=True)
class Schedule:
    """The five fields of one line."""

    text: str

    def values(self, index: int) -> set[int]:
        """The values of a field."""
        low, high = RANGES[index]
        found: set[int] = set()
        for part in self.text.split()[index].split(","):
            span, _, step = part.partition("/")
            first, _, last = span.partition("-")
            bounds = (low, high) if span == "*" else (int(first), int(last or first))
            found |= set(range(bounds[0], bounds[1] + 1, int(step or 1)))
        return found

    def starts(self, begin: datetime, end: datetime, *, either: bool = True) -> list[datetime]:
        """Each minute from the beginning to before the end in which it starts."""
        minutes, hours, days, months, week = map(self.values, range(5))
        fields = self.text.split()
        both = "*" not in (fields[2], fields[4])
        found: list[datetime] = []
        at = begin.replace(hour=0, minute=0)
        while at < end:
            of_month, of_week = at.day in days, bool({at.isoweekday(), at.isoweekday() % 7} & week)
            fits = (of_month or of_week) if both and either else (of_month and of_week)
            if fits and at.month in months:
                found += [
                    at + timedelta(hours=hour, minutes=minute)
                    for hour in sorted(hours)
                    for minute in sorted(minutes)
                ]
            at += timedelta(days=1)
        return [each for each in found if begin <= each < end]


@dataclass(frozen=True)
class CronCase:
    """A schedule, which jobs are asked for between which times, and the answers."""

    files: Files
    jobs: list[str]
    begin: datetime
    end: datetime
    answer: str
    careless: list[str]


def cron_case(seed: int, ask: str) -> CronCase:
    """Draw a schedule in which the answer is neither nothing nor at the edge."""
    for turn in range(1000):
        case = drawn(seed, ask, turn)
        if case is not None:
            return case
    raise RuntimeError(f"No schedule was drawn for the seed {seed}.")


def drawn(seed: int, ask: str, turn: int) -> CronCase | None:
    """One try; None where it has no good answer."""
    draw = draws(f"cron/{ask}/{turn}", seed)
    names = draw.sample(WORDS, 7)
    begin = datetime(2024, 2, draw.randint(18, 26), draw.randint(0, 20), 0, tzinfo=UTC)
    end = begin + timedelta(days=draw.randint(8, 20) if ask != "clash" else 120)

    def plain() -> str:
        minute = draw.choice(("0", "30", "*/20", "5-50/15", f"{draw.randint(1, 59)}"))
        return f"{minute} {draw.choice(('*/6', '8-17/3', '4,16', str(draw.randint(1, 22))))} * * *"

    def either() -> str:
        days = draw.choice(("1-10/3", "*/13", "13,29", f"{draw.randint(1, 28)}"))
        hours = draw.choice(("*/7", "9-17/4", "6,18"))
        week = draw.choice(("7", "1,7", "5-7", "0"))
        return f"{draw.choice(('10', '*/25', '15,45'))} {hours} {days} {draw.choice('*')} {week}"

    lines = {name: draw.choice((plain, either))() for name in names}
    lines[names[0]] = plain() if ask == "daily" else either()
    jobs = names[:1]
    if ask == "clash":
        jobs = names[:2]
        lines[names[1]] = f"*/{draw.choice((15, 20, 35))} {draw.choice(('6-18', '*/9'))} 29 2-4 1"
    found, wrong = (common(lines, jobs, begin, end, either=rule) for rule in (True, False))
    if not found or (ask == "clash" and (found[0] - begin).days < 1) or found[-1] + MINUTE == end:
        return None
    if ask != "daily" and (found[:1] == wrong[:1] if ask == "clash" else len(found) == len(wrong)):
        return None
    rows = [f"{fields} {name}" for name, fields in lines.items()]
    rows.insert(draw.randint(0, 3), f"# {either()} {jobs[0]}")
    draw.shuffle(rows)
    files: Files = {"crontab": "\n".join(rows) + "\n", "FORMAT.md": FORMAT}
    if ask == "clash":
        late = [f"{each:%Y-%m-%d %H:%M}" for each in (*wrong[:1], found[0] + timedelta(days=1))]
        return CronCase(files, jobs, begin, end, f"{found[0]:%Y-%m-%d %H:%M}", late)
    near = [str(len(found) - 1), str(len(wrong)) if ask == "count" else str(len(found) + 1)]
    return CronCase(files, jobs, begin, end, str(len(found)), near)


def common(
    lines: Mapping[str, str], jobs: list[str], begin: datetime, end: datetime, *, either: bool
) -> list[datetime]:
    """Each minute in which all of the jobs start."""
    sets = [set(Schedule(lines[name]).starts(begin, end, either=either)) for name in jobs]
    return sorted(set.intersection(*sets))


async def read_schedule(
    shell: ShellWorld, seed: Seed = 0, ask: Ask = "daily"
) -> AsyncGenerator[str | float]:
    """Ask how often a job starts in a span of time, or when two start together first."""
    case = cron_case(seed, ask)
    await need(shell)
    await fill(shell, case.files)
    begin, end = (f"{each:%Y-%m-%d %H:%M}" for each in (case.begin, case.end))
    told = "/workspace/crontab is a schedule, and /workspace/FORMAT.md says how it is read. "
    if ask == "clash":
        answer = yield told + (
            f"When is the first minute at or after {begin} in which the jobs {case.jobs[0]} and "
            f"{case.jobs[1]} both start? It is before {end}. Answer as YYYY-MM-DD HH:MM."
        )
        yield exact_match(str(answer).replace("T", " "), case.answer)
        return
    answer = yield told + (
        f"How often does the job {case.jobs[0]} start from {begin} until {end}? A start at the "
        "first of these times counts, and one at the second does not. Answer with the number alone."
    )
    yield numeric_match(answer, int(case.answer))


async def solve_schedule(agent: Agent, ask: str) -> str:
    """Read the rules, find the line, and go through the minutes."""
    await run(agent, "cat FORMAT.md")
    await run(agent, "cat crontab")
    told = agent.prompt.replace("?", " ").replace(".", " ")
    times = [f"{a} {b}" for a, b in zip(told.split(), told.split()[1:], strict=False) if ":" in b]
    after = told.partition("the jobs " if ask == "clash" else "the job ")[2].split()
    jobs = [after[0], after[2]] if ask == "clash" else after[:1]
    await run(agent, f"grep -n -e '{jobs[0]}' -e '{jobs[-1]}' crontab; cal 2 2024 || true")
    await agent.tool("write_file", path="/workspace/.starts.py", content=SOLVE)
    asked = " ".join(f"'{each}'" for each in (*times[:2], *jobs))
    found = await run(agent, f"python3 .starts.py {asked}; rm .starts.py")
    count, _, first = found.partition(" ")
    return first.strip()[:16] if ask == "clash" else count


def declare(env: Environment) -> None:
    """Declare the template of this file."""
    template = env.template(description="Answer a question on a cron-like schedule")
    template(read_schedule).oracle(solve_schedule)
