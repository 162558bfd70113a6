"""The judge of the WebVoyager benchmark: a model that sees the task, the answer and the end.

What it is told is the benchmark's own wording, of `evaluation/auto_eval.py` in
github.com/MinorJerry/WebVoyager (Apache-2.0), so that scores can be compared.
"""

from collections.abc import Sequence
from typing import ClassVar

import anyio

from hud_mcp.errors import GraderFailed
from hud_mcp.graders.endpoint import Question, Unreadable, find_endpoint, open_client
from hud_mcp.graders.grader import Grader
from hud_mcp.values.grade import SubScore

__all__ = ["WebVoyagerJudge"]

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
_ASKED = "TASK: {question}\nResult Response: {answer}\n{count} screenshots at the end: "
_LAST = "Your verdict:\n"
_TOKENS, _SEED = 1000, 42
"""What the benchmark asks its model with, at temperature 0."""
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
        asked = _ASKED.format(question=question, answer=answer, count=len(pictures))
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
    """The verdict, by the benchmark's rule.

    Raises:
        GraderFailed: There is none in it.
    """
    if _YES not in reply:
        raise GraderFailed(
            f"The judge {model} said neither {_YES!r} nor {_NO!r}: {reply[-300:]!r}. Another model "
            "may."
        )
    return 0.0 if _NO in reply else 1.0
