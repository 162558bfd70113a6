"""How rows of benchmarks are asked: in the words of this package, and in those of their authors."""

from hud_mcp.environment.task import Task

__all__ = ["GAIA_ASKED", "WEBVOYAGER_WINDOW", "published_gaia", "published_webvoyager"]

WEBVOYAGER_WINDOW = {"viewport_width": 1024, "viewport_height": 768}
"""What the authors ran it with."""

GAIA_ASKED = "Answer with nothing but that: a number, a few words, or a list with commas."
_PUBLISHED_PROMPT = (
    "You are a general AI assistant. I will ask you a question. Report your thoughts, and finish "
    "your answer with the following template: FINAL ANSWER: [YOUR FINAL ANSWER]. YOUR FINAL ANSWER "
    "should be a number OR as few words as possible OR a comma separated list of numbers and/or "
    "strings. If you are asked for a number, don't use comma to write your number neither use "
    "units such as $ or percent sign unless specified otherwise. If you are asked for a string, "
    "don't use articles, neither abbreviations (e.g. for cities), and write the digits in plain "
    "text unless specified otherwise. If you are asked for a comma separated list, apply the above "
    "rules depending of whether the element to be put in the list is a number or a string."
)
"""What the benchmark's authors have agents told."""


def published_webvoyager(task: Task, *, judge: str) -> Task:
    """A row in the wording and the window of its authors, before a judge that is named.

    Args:
        task: A row of WebVoyager.
        judge: The model that judges.
    """
    question, address = str(task.evaluate[0].args[0]), str(task.setup[0].args[0])
    asked = f"Now given a task: {question}  Please interact with {address} and get the answer."
    call = task.evaluate[0].model_copy(update={"args": (question, judge)})
    context = {**task.context, **WEBVOYAGER_WINDOW}
    return task.model_copy(update={"prompt": asked, "evaluate": (call,), "context": context})


def published_gaia(task: Task) -> Task:
    """A row in the wording of its authors, graded by what stands behind FINAL ANSWER.

    Args:
        task: A row of GAIA.
    """
    begun = (task.prompt or "").removeprefix(_PUBLISHED_PROMPT).strip()
    asked = begun.removesuffix(GAIA_ASKED).rstrip()
    call = task.evaluate[0].model_copy(update={"function": "gaia_final_answer"})
    prompt = f"{_PUBLISHED_PROMPT}\n\n{asked}"
    return task.model_copy(update={"prompt": prompt, "evaluate": (call,)})
