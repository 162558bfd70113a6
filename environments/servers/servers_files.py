"""Tasks on files, over the reference server for a file system."""

import json
from collections.abc import AsyncGenerator
from typing import Literal

from servers_outcome import WORDS, Seed, digests, draws, fill, graded, left

from hud_mcp import Agent, Environment, Grade, ToolServer, ToolServerWorld

__all__ = ["declare"]

SERVER = "@modelcontextprotocol/server-filesystem@2026.8.31"
HERE = "/workspace"
LAST = 3
"""The file that has the key nowhere at its top."""
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def invoices(seed: int, level: str) -> tuple[dict[str, str], dict[str, str]]:
    """Scanned letters by the scanner's names, and by the names that they are to get."""
    draw = draws(f"invoices/{level}", seed)
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    suppliers = draw.sample(WORDS, 4)
    count = 5 if level == "plain" else 6
    scans = draw.sample(range(100, 999), count + 2)
    for place in range(count):
        supplier = suppliers[place % 4]
        year, month, day = draw.choice((2023, 2024)), draw.randint(1, 11), draw.randint(1, 28)
        number = draw.randint(1000, 9999)
        issued = f"{day} {MONTHS[month - 1]} {year}"
        due = f"{day} {MONTHS[month]} {year}"
        dates = [f"Issued: {issued}", f"Due: {due}"]
        if level == "plain":
            draw.shuffle(dates)
        else:
            # The first date of the page is never the one that counts.
            dates = [f"Printed: {due}", f"Due: {due}", f"Issued: {issued}"]
        lines = [f"{supplier.title()} Ltd", f"Invoice {number}", *dates]
        lines += [f"Total: {draw.randint(20, 900)}.{draw.randint(10, 99)} EUR"]
        text = "\n".join(lines) + "\n"
        before[f"inbox/scan-{scans[place]}.txt"] = text
        after[f"inbox/{year}-{month:02}-{day:02}-{supplier}-{number}.txt"] = text
    letter = f"{suppliers[0].title()} Ltd\n\nYour payment of invoice {draw.randint(1000, 9999)} "
    letter += "is overdue since 3 March 2024.\nPlease pay at once.\n"
    notes = f"Shopping: tea, jam\nIssued: never\n{draw.choice(WORDS)}\n"
    for name, text in ((scans[-1], letter), (scans[-2], notes)):
        before[f"inbox/scan-{name}.txt"] = after[f"inbox/scan-{name}.txt"] = text
    return before, after


async def name_invoices(
    server: ToolServerWorld, seed: Seed = 0, level: Literal["plain", "dated"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for names of files by what they say."""
    before, after = invoices(seed, level)
    await fill(server, before)
    yield (
        f"The scanner has named the files in {HERE}/inbox by numbers. Rename each invoice to "
        "YYYY-MM-DD-supplier-number.txt, in the same folder: the date on which it was issued, the "
        "supplier's name in small letters without Ltd, and the invoice's number. Leave what is no "
        "invoice as it is."
    )
    found = await left(server)
    yield graded({"the names": found == digests(after)})


async def solve_invoices(agent: Agent, seed: int = 0, level: str = "plain") -> str:
    """List, read, and move."""
    listed = await agent.call("list_directory", path=f"{HERE}/inbox")
    names = [line.removeprefix("[FILE] ") for line in listed.text.splitlines()]
    await agent.call("read_multiple_files", paths=[f"{HERE}/inbox/{name}" for name in names])
    before, after = invoices(seed, level)
    for old, text in before.items():
        new = next(path for path, each in after.items() if each == text)
        if new != old:
            await agent.call("move_file", source=f"{HERE}/{old}", destination=f"{HERE}/{new}")
    return "done"


def services(seed: int, level: str) -> tuple[dict[str, str], str, str, str]:
    """The files of services, the file to change, its line, and the line that it is to get."""
    draw = draws(f"services/{level}", seed)
    names = draw.sample(WORDS, 5)
    ports = dict(zip(names, draw.sample(range(8001, 8999), 5), strict=True))
    wrong = draw.choice(names[1:])
    taken = ports[names[0]]
    table = "".join(f"| {name} | {port} |\n" for name, port in sorted(ports.items()))
    files = {"docs/ports.md": f"# Ports\n\n| service | port |\n|---|---|\n{table}"}
    old = f"port = {taken}"
    for name in names:
        port = taken if name == wrong and level == "plain" else ports[name]
        kept = f"# port = {taken}  # before the move\n" if name == wrong else ""
        text = f"[server]\n{kept}port = {port}\nworkers = {draw.randint(2, 9)}\n"
        text += f"\n[metrics]\nport = {port + 1000}\n"
        files[f"services/{name}/service.toml"] = text
    changed = f"services/{wrong}/service.toml"
    if level == "override":
        # The file that counts is the last one.
        for name in names[:3]:
            files[f"services/{name}/conf.d/10-local.toml"] = "[server]\nworkers = 3\n"
        changed = f"services/{wrong}/conf.d/90-local.toml"
        files[changed] = f"[server]\nport = {taken}\ntimeout = 30\n"
        files["docs/README.md"] = (
            "Each service reads service.toml, then the files of conf.d in order of their names.\n"
            "A later value replaces an earlier one. service.toml is generated: do not edit it.\n"
        )
    return files, changed, old, f"port = {ports[wrong]}"


async def mend_port(
    server: ToolServerWorld, seed: Seed = 0, level: Literal["plain", "override"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for the one setting that is wrong to be found and put right."""
    files, changed, old, new = services(seed, level)
    await fill(server, files)
    taken = old.removeprefix("port = ")
    yield (
        f"Two of the services in {HERE}/services start on port {taken}, so that one of them fails. "
        f"{HERE}/docs is right: find the service that listens on the wrong port, and change that "
        "one setting to the port that it is to have. Change nothing else, comments included."
    )
    before, line, after = files[changed].rpartition(f"\n{old}\n")
    wanted = {**files, changed: f"{before}\n{new}\n{after}"}
    found = await left(server)
    yield graded({"the setting": line != "" and found == digests(wanted)})


async def solve_port(agent: Agent, seed: int = 0, level: str = "plain") -> str:
    """Read the documents and the settings, and edit one line."""
    await agent.call("directory_tree", path=HERE)
    files, changed, old, new = services(seed, level)
    await agent.call("read_multiple_files", paths=[f"{HERE}/{path}" for path in files])
    text = files[changed]
    after = text[text.rindex(f"\n{old}\n") + len(old) + 2 :].split("\n")[0]
    edit = {"oldText": f"{old}\n{after}", "newText": f"{new}\n{after}"}
    await agent.call("edit_file", path=f"{HERE}/{changed}", edits=[edit])
    return "done"


def notes(seed: int) -> tuple[dict[str, str], str]:
    """Notes of some days, and the list of what is open in them."""
    draw = draws("notes", seed)
    files: dict[str, str] = {}
    wanted: list[str] = []
    days = sorted(draw.sample(range(1, 29), 5))
    for day in days:
        lines = [f"# 2024-05-{day:02}", "", f"Talked about the {draw.choice(WORDS)}.", ""]
        for _ in range(draw.randint(2, 4)):
            task = f"{draw.choice(('Call', 'Pay', 'Ship', 'Order'))} {draw.choice(WORDS)}"
            task += f" {draw.randint(10, 99)}"
            mark = draw.choice((" ", " ", "x", "X"))
            lines.append(f"{draw.choice(('-', '*'))} [{mark}] {task}")
            if mark == " ":
                wanted.append(f"- [ ] {task} (2024-05-{day:02})")
        lines += ["", "```", f"- [ ] An example of {draw.choice(WORDS)}", "```"]
        files[f"notes/2024-05-{day:02}.md"] = "\n".join(lines) + "\n"
    files[f"notes/archive/2024-04-{days[0]:02}.md"] = "# old\n\n- [ ] Forgotten\n"
    return files, "\n".join(wanted) + "\n"


async def collect_tasks(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for one list of the open tasks of several notes."""
    files, wanted = notes(seed)
    await fill(server, files)
    yield (
        f"Write {HERE}/OPEN.md: the open tasks of the notes in {HERE}/notes, a line each, such as\n"
        "- [ ] Call maple 12 (2024-05-03)\n"
        "with the date of the note, oldest note first, in each note's own order. A task is open if "
        "its box is empty. Examples in code blocks are no tasks, and archived notes do not count. "
        "The file has these lines alone. Leave the notes as they are."
    )
    found = await left(server)
    yield graded({"the list": found == digests({**files, "OPEN.md": wanted})})


async def solve_tasks(agent: Agent, seed: int = 0) -> str:
    """Read the notes, and write the list."""
    await agent.call("list_directory", path=f"{HERE}/notes")
    files, wanted = notes(seed)
    paths = [f"{HERE}/{path}" for path in files if "archive" not in path]
    await agent.call("read_multiple_files", paths=paths)
    await agent.call("write_file", path=f"{HERE}/OPEN.md", content=wanted)
    return "done"


def logs(seed: int) -> tuple[dict[str, str], dict[str, str]]:
    """Logs of programs in one folder, and in folders by the month of their last line."""
    draw = draws("logs", seed)
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for name in draw.sample(WORDS, 5):
        first, months = draw.randint(1, 6), draw.randint(0, 2)
        lines = [
            f"2024-{first + place:02}-{draw.randint(1, 28):02}T08:00:00Z {draw.choice(WORDS)} began"
            for place in range(months + 1)
        ]
        last = first + months
        # The newest line's text names another month.
        lines.append(f"2024-{last:02}-28T09:00:00Z next rotation is 2024-{last + 1:02}-01")
        text = "\n".join(lines) + "\n"
        before[f"logs/{name}.log"] = text
        after[f"logs/2024-{last:02}/{name}.log"] = text
    live = f"logs/{draw.choice(('web', 'mail'))}.log"
    before[live] = after[live] = "2024-02-03T10:00:00Z began\n2025-01-02T10:00:00Z still here\n"
    return before, after


async def file_logs(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for logs to be filed by the month of their last line."""
    before, after = logs(seed)
    await fill(server, before)
    yield (
        f"File the logs of 2024: move each log in {HERE}/logs whose last line is of 2024 to the "
        f"folder {HERE}/logs/YYYY-MM of the month in which that line was written. A log whose last "
        "line is of another year stays. Make no other folders, and change no log."
    )
    found = await left(server)
    yield graded({"the logs": found == digests(after)})


async def solve_logs(agent: Agent, seed: int = 0) -> str:
    """Read the ends of the logs, make folders, and move."""
    before, after = logs(seed)
    await agent.call("read_multiple_files", paths=[f"{HERE}/{path}" for path in before])
    made: set[str] = set()
    for old, text in before.items():
        new = next(path for path, each in after.items() if each == text)
        folder = new.rpartition("/")[0]
        if new == old:
            continue
        if folder not in made:
            await agent.call("create_directory", path=f"{HERE}/{folder}")
            made.add(folder)
        await agent.call("move_file", source=f"{HERE}/{old}", destination=f"{HERE}/{new}")
    return "done"


def settings(seed: int, level: str) -> tuple[dict[str, str], dict[str, str], str, str]:
    """JSON files before and after a key got another name, and the two names."""
    draw = draws(f"settings/{level}", seed)
    old, new = draw.sample(WORDS, 2)
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for place, name in enumerate(draw.sample([w for w in WORDS if w not in (old, new)], 4)):
        data: dict[str, object] = {"name": name, f"{old}s": draw.randint(1, 9)}
        if place != 1:
            data[f"{old}_limit"] = draw.randint(10, 99)
        data["note"] = f"the {old} of {name}" if level == "plain" else f'"{old}": quoted'
        renamed = dict(data)
        if place < LAST:
            # Only as a key at the top; below it, the same word means another thing.
            value = draw.randint(100, 999)
            data |= {old: value, "inner": {old: value}}
            renamed |= {new: value, "inner": {old: value}}
        before[f"config/{name}.json"] = json.dumps(data, indent=2) + "\n"
        after[f"config/{name}.json"] = json.dumps(renamed, indent=2) + "\n"
    for files in (before, after):
        files["config/vendor/base.json"] = json.dumps({old: 1}, indent=2) + "\n"
    return before, after, old, new


async def rename_key(
    server: ToolServerWorld, seed: Seed = 0, level: Literal["plain", "quoted"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for another name of a key in several files."""
    before, after, old, new = settings(seed, level)
    await fill(server, before)
    yield (
        f"In the JSON files of {HERE}/config, rename the key {old!r} to {new!r} where it is at the "
        "top of a file. Longer keys, keys further in, and texts stay, and so does the folder "
        "vendor, which belongs to others. Keep each file's order, spaces and line ends."
    )
    found = await left(server)
    yield graded({"the files": found == digests(after)})


async def solve_key(agent: Agent, seed: int = 0, level: str = "plain") -> str:
    """Look, and edit the line of each file that has the key at its top."""
    before, after, old, new = settings(seed, level)
    await agent.call("search_files", path=f"{HERE}/config", pattern="**/*.json")
    await agent.call("read_multiple_files", paths=[f"{HERE}/{path}" for path in before])
    for path, text in before.items():
        if text != after[path]:
            edit = {"oldText": f'\n  "{old}": ', "newText": f'\n  "{new}": '}
            await agent.call("edit_file", path=f"{HERE}/{path}", edits=[edit])
    return "done"


def declare() -> Environment:
    """Declare the environment and its templates."""
    env = Environment("servers-files", version="0.1.0", world=ToolServer([SERVER, "{folder}"]))
    for template, oracle in (
        (name_invoices, solve_invoices),
        (mend_port, solve_port),
        (collect_tasks, solve_tasks),
        (file_logs, solve_logs),
        (rename_key, solve_key),
    ):
        env.template()(template).oracle(oracle)
    return env
