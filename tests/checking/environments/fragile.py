"""Graders that long texts or odd outputs deceive or break; and sound twins."""

import json

from hud_mcp import Environment, Shell, ShellWorld

env = Environment("fragile")
desk = Environment("desk", world=Shell())

LEAST_WORDS = 40


@env.template()
async def wordy(topic: str = "rivers"):
    """Whatever is long enough is good enough."""
    answer = yield f"Explain in at least {LEAST_WORDS} words how {topic} begin."
    yield float(len(answer.split()) >= LEAST_WORDS)


@env.template()
async def keyed(topic: str = "rivers"):
    """The words of the prompt are what is looked for, in any order."""
    answer = yield f"Explain at length, with springs and glaciers, how {topic} begin."
    words = {word.strip(".,") for word in answer.split()}
    yield float({"springs", "glaciers", topic} <= words and len(words) > LEAST_WORDS)


@env.template()
async def worded(topic: str = "rivers"):
    """A long answer is read for what the prompt does not tell."""
    answer = yield f"Explain in at least {LEAST_WORDS} words how {topic} begin."
    yield float("meltwater" in answer and len(answer.split()) >= LEAST_WORDS)


@env.template()
async def counted(word: str = "lamp"):
    """An answer that is JSON, whatever it holds, is read as an object."""
    answer = yield f'Answer {{"word": "{word}"}}, as JSON.'
    try:
        given = json.loads(answer)
    except ValueError:
        given = {}
    yield float(given.get("word") == word)


@desk.template()
async def report(shell: ShellWorld):
    """A report of another shape breaks the grader."""
    yield 'Write {"total": 3} into report.json.'
    if not await shell.exists("report.json"):
        yield 0.0
        return
    given = json.loads(await shell.read("report.json"))
    yield float(given.get("total") == 3)


@desk.template()
async def sturdy(shell: ShellWorld):
    """A report is read as data."""
    yield 'Write {"total": 3} into report.json.'
    async with shell.verifier(copy="report.json") as clean:
        given = await clean.read_json("report.json")
    yield float(given == {"total": 3})


@wordy.oracle
@keyed.oracle
@worded.oracle
async def _(agent):
    known = "Rain and meltwater of glaciers seep into the ground, and springs let rivers begin. "
    return known * 4 + " ".join(f"brook{number}" for number in range(40))


@counted.oracle
async def _(agent, word):
    return json.dumps({"word": word})


@report.oracle
@sturdy.oracle
async def _(agent):
    await agent.custom("write", path="report.json", content='{"total": 3}')
