"""WebVoyager: questions about live web sites, judged by a model that sees the last picture.

The judge's prompt is the benchmark's own, of `evaluation/auto_eval.py` in
github.com/MinorJerry/WebVoyager (Apache-2.0), so that scores can be compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

import anyio
import orjson

from hud_mcp.environment.task import Task
from hud_mcp.errors import GraderFailed
from hud_mcp.graders.combination import Grader
from hud_mcp.graders.endpoint import Question, Unreadable, find_endpoint, open_client
from hud_mcp.loading.protocols import Conduct, Protocol
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files
from hud_mcp.plugins.sets.imports import ImportedSet, as_tasks, json_rows, row, row_id
from hud_mcp.values.grade import SubScore

__all__ = ["WebVoyagerJudge"]

_TITLE = "WebVoyager"
_GYM = "webvoyager"
_TASKS = "data/WebVoyager_data.jsonl"
_ANSWERS = "data/reference_answer.json"
_WINDOW = {"viewport_width": 1024, "viewport_height": 768}
"""The window of the authors' runs."""


def read(files: Files, choice: Choice) -> list[Task]:
    """Read the rows, joined with their reference answers."""
    answers = _read_answers(files)
    rows = json_rows(files.read(_TASKS), _TASKS, _TITLE)
    return as_tasks(rows, lambda _, raw: _task(files, raw, answers.get(raw["id"]), choice), _TITLE)


def _mapped(address: str, hosts: Mapping[str, str]) -> str:
    """Return an address with its host replaced, with or without `www.`.

    A replacement is a host, or the beginning of an address such as `http://127.0.0.1:8001`.
    """
    parts = urlsplit(address)
    plain = {name.removeprefix("www."): place for name, place in hosts.items()}
    place = plain.get((parts.hostname or "").removeprefix("www."))
    if place is None:
        return address
    begins = place if "://" in place else f"http://{place}"
    rest = parts._replace(scheme="", netloc="").geturl()
    return begins.rstrip("/") + (rest if rest.startswith("/") else f"/{rest}")


def _task(
    files: Files, raw: Mapping[str, str], answer: Mapping[str, Any] | None, choice: Choice
) -> Task:
    site, question, address = raw["web_name"], raw["ques"], _mapped(raw["web"], choice.hosts)
    prompt = f"{question}\n\nBegin at {address}, which is open. Answer with what you found."
    is_local = address != raw["web"]
    return row(
        row_id(raw["id"]),
        _GYM,
        prompt,
        parts=[site],
        split="test",
        source=f"{files.published.credit(_TASKS)}, {raw['id']}",
        is_local=is_local,
        setup=[["goto", address]],
        evaluate=[["webvoyager_judge", question]],
        metadata={
            "site": site,
            "needs": ["judge"] if is_local else ["network", "judge"],
            **({"is_local": True} if is_local else {}),
            **({"reference": dict(answer)} if answer else {}),
        },
        context=dict(_WINDOW),
        config={"allow": [urlsplit(address).netloc if is_local else "*"]},
    )


def _read_answers(files: Files) -> dict[str, dict[str, Any]]:
    """Read the reference answers by the ids of their tasks. People see them; the judge does not."""
    whole: Any = orjson.loads(files.read(_ANSWERS))
    return {
        f"{site}--{each['id']}": {"kind": each["type"], "answer": each["ans"]}
        for site, given in cast("dict[str, Any]", whole).items()
        for each in given["answers"]
    }


def _as_published(task: Task, conduct: Conduct) -> Task:
    """Return a row in its authors' wording and window, before a judge that is named."""
    question, address = str(task.evaluate[0].args[0]), str(task.setup[0].args[0])
    asked = f"Now given a task: {question}  Please interact with {address} and get the answer."
    judge = conduct.judge or PROTOCOL.judge
    call = task.evaluate[0].model_copy(update={"args": (question, judge)})
    context = {**task.context, **_WINDOW}
    return task.model_copy(update={"prompt": asked, "evaluate": (call,), "context": context})


SET = ImportedSet(_TITLE, read)

PROTOCOL = Protocol(
    _TITLE,
    ("webvoyager_judge",),
    as_published=_as_published,
    max_steps=15,
    rows=643,
    judge="gpt-4-vision-preview",
)

_SYSTEM = """\
As an evaluator, you will be presented with three primary components to assist you in your role:

1. Web Task Instruction: This is a clear and specific directive provided in natural language, \
detailing the online activity to be carried out. These requirements may include conducting \
searches, verifying information, comparing prices, checking availability, or any other action \
relevant to the specified web service (such as Amazon, Apple, ArXiv, BBC News, Booking etc).

2. Result Screenshots: This is a visual representation of the screen showing the result or \
intermediate state of performing a web task. It serves as visual proof of the actions taken in \
response to the instruction.

3. Result Response: This is a textual response obtained after the execution of the web task. It \
serves as textual result in response to the instruction.

-- You DO NOT NEED to interact with web pages or perform actions such as booking flights or \
conducting searches on websites.
-- You SHOULD NOT make assumptions based on information not presented in the screenshot when \
comparing it to the instructions.
-- Your primary responsibility is to conduct a thorough assessment of the web task instruction \
against the outcome depicted in the screenshot and in the response, evaluating whether the actions \
taken align with the given instructions.
-- NOTE that the instruction may involve more than one task, for example, locating the garage and \
summarizing the review. Failing to complete either task, such as not providing a summary, should \
be considered unsuccessful.
-- NOTE that the screenshot is authentic, but the response provided by LLM is generated at the end \
of web browsing, and there may be discrepancies between the text and the screenshots.
-- Note the difference: 1) Result response may contradict the screenshot, then the content of the \
screenshot prevails, 2) The content in the Result response is not mentioned on the screenshot, \
choose to believe the content.

You should elaborate on how you arrived at your final evaluation and then provide a definitive \
verdict on whether the task has been successfully accomplished, either as 'SUCCESS' or 'NOT \
SUCCESS'."""
_JUDGE_ASKED = "TASK: {question}\nResult Response: {answer}\n{count} screenshots at the end: "
_LAST = "Your verdict:\n"
_TOKENS, _SEED = 1000, 42
"""The limits of the benchmark's own requests, at temperature 0."""
_YES, _NO = "SUCCESS", "NOT SUCCESS"
_SHOWN_CHARS = 2000


class WebVoyagerJudge(Grader):
    """Whether a task on a web site was done, by the judgement of a vision model.

    It takes the model of `LLMJudgeGrader`, from the same variables. It is **weak**: an answer or a
    page can persuade a model.
    """

    name: ClassVar[str] = "WebVoyagerJudge"
    unrecorded: ClassVar[frozenset[str]] = frozenset({"base_url", "pictures"})
    backoff_s: ClassVar[float] = 0.5
    """The first wait before a request is sent again; each next one is twice as long."""
    limiter: ClassVar[anyio.CapacityLimiter] = anyio.CapacityLimiter(8)
    """The most requests at one time, over all sessions."""

    @classmethod
    async def compute_score(  # pyright: ignore[reportIncompatibleMethodOverride]  # each grader has parameters of its own
        cls,
        answer: str = "",
        question: str = "",
        pictures: Sequence[bytes] = (),
        *,
        model: str = "",
        base_url: str | None = None,
        timeout_seconds: float = 120,
    ) -> SubScore:
        """Ask once: `NOT SUCCESS` in the reply is 0.0, else `SUCCESS` 1.0.

        Args:
            answer: The submitted answer. An empty one is 0.0 without a request.
            question: The task.
            pictures: The last pictures of the screen, PNG or JPEG, the newest one last.
            model: Its name; `HUD_MCP_JUDGE_MODEL` by default.
            base_url: Its address; as for `LLMJudgeGrader`.
            timeout_seconds: The time limit for everything.

        Returns:
            A part with the reply in `info`.

        Raises:
            GraderFailed: The judge is unreachable, or its reply has no verdict. There is no score
                then.

        If this call is cancelled, so is its request.
        """
        if not answer.strip():
            return SubScore(name=cls.name, value=0.0, info={"reason": "There was no answer."})
        endpoint = find_endpoint(model, base_url=base_url)
        asked = _JUDGE_ASKED.format(question=question, answer=answer, count=len(pictures))
        shown = tuple(pictures)
        case = Question(_SYSTEM, asked, None, shown, _LAST, reply_tokens=_TOKENS, seed=_SEED)
        deadline = anyio.current_time() + timeout_seconds
        with anyio.CancelScope(deadline=deadline) as bound:
            async with open_client() as client:
                try:
                    reply = await endpoint.ask(
                        client,
                        case,
                        limiter=cls.limiter,
                        deadline=deadline,
                        backoff_s=cls.backoff_s,
                    )
                except Unreadable as exc:
                    raise GraderFailed(
                        f"The judge {endpoint.model} at {endpoint.shown_url} cannot be read: {exc}."
                    ) from exc
            return SubScore(
                name=cls.name,
                value=_value(reply, endpoint.model),
                info={
                    "reply": reply[-_SHOWN_CHARS:],
                    "model": endpoint.model,
                    "endpoint": endpoint.shown_url,
                },
            )
        if bound.cancelled_caught:
            raise GraderFailed(
                f"The judge at {endpoint.shown_url} took longer than {timeout_seconds:g} s. Raise "
                "timeout_seconds."
            )
        raise GraderFailed(f"The judge at {endpoint.shown_url} was not asked.")


def _value(reply: str, model: str) -> float:
    """Return the verdict by the benchmark's rule; raise GraderFailed if the reply has none."""
    if _YES not in reply:
        raise GraderFailed(
            f"The judge {model} said neither {_YES!r} nor {_NO!r}: {reply[-300:]!r}. Another model "
            "may."
        )
    return 0.0 if _NO in reply else 1.0
