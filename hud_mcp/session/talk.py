"""The conversation of one life of a session, on its driver's side."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from hud_mcp.environment.conversation import (
    Ask,
    Conversation,
    EndedBy,
    KeptTurn,
    Reply,
    Said,
    Say,
    begin,
)
from hud_mcp.environment.template import Template
from hud_mcp.errors import InvalidTemplate
from hud_mcp.record.values import USER_TURN, TrajectoryStep
from hud_mcp.registry import service
from hud_mcp.session.draft import Draft
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld, Play
from hud_mcp.values.grade import Grade
from hud_mcp.values.observation import Observation

_MOST_MESSAGES = 200
"""The most messages of a session; the conversation ends with the next one."""
_MOST_AFTER = 100
"""The most prompts that a template yields after the end of its conversation."""


class GoesOn:
    """The result of an order after which the template waits, or its grade is to be submitted."""


GOES_ON: Final = GoesOn()


class Heard(NamedTuple):
    """The words that came back for a message."""

    text: str
    is_over: bool  # the template has its grade
    ended: bool  # the conversation; an `Ask` may wait nevertheless
    asks: bool  # only `response` answers them
    notes: tuple[str, ...] = ()  # of the world's moves


class Talk:
    """One conversation; `expire` is called if the time of a prompt is up."""

    __slots__ = (
        "_expire", "_template", "_timer", "_words", "_world", "conversation", "ended_by", "said",
        "steps",
    )  # fmt: skip

    def __init__(
        self,
        template: Template,
        world: LiveWorld,
        conversation: Conversation,
        expire: Callable[[], object],
    ) -> None:
        self._template = template
        self._world = world
        self._expire = expire
        self.conversation = conversation
        self.said: Said | None = None  # waits for the agent
        self.ended_by: EndedBy | None = None
        self.steps = 0  # of the agent, since that
        self._words: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def heard(self) -> Heard:
        """The words since the last message."""
        text = "\n\n".join(filter(None, self._words))
        asks, ended = isinstance(self.said, Ask), self.ended_by is not None
        return Heard(text, is_over=self.said is None, ended=ended, asks=asks)

    @property
    def is_spent(self) -> bool:
        """Whether the agent has had the steps of the prompt."""
        most = None if self.said is None else self.said.steps
        return most is not None and self.steps >= most

    def wait(self, said: Said) -> None:
        """Wait for the agent, at most as long as the prompt says."""
        self.said, self.steps = said, 0
        self._words.append(said.prompt.text)
        if said.seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(said.seconds, self._expire)

    async def resume(self, play: Play, text: str, by: EndedBy | None) -> Grade | GoesOn:
        """Resume a waiting template with the agent's words, up to its next wait or its grade."""
        said, self.said = self.said, None
        self._words.clear()
        if self._timer is not None:
            self._timer.cancel()
        if by is None and len(self.conversation.messages) >= _MOST_MESSAGES:
            by = "limit"
        if by is not None:
            await self._world.stop_agent()
        return await self.go_on(play, play.asend(self._given(said, text, by)))

    async def last_words(self, play: Play, text: str) -> Grade:
        """Resume a template with an answer on record, which led to its grade before."""
        return self._only_grade(await self.resume(play, text, "agent"))

    async def run_out(self, play: Play, overdue: BaseException | None) -> Grade:
        """End the conversation by a limit, or by a deadline of the template's own."""
        if overdue is None:
            return self._only_grade(await self.resume(play, "", "limit"))
        self.ended_by = "limit"
        return self._only_grade(await self.go_on(play, play.athrow(overdue)))

    def _only_grade(self, found: Grade | GoesOn) -> Grade:
        if isinstance(found, GoesOn):
            raise InvalidTemplate(f"{self._template.where}: {self._template.noun} asks again.")
        return found

    async def go_on(self, play: Play, first: Awaitable[Any]) -> Grade | GoesOn:
        """Bring a template from its next value to its next wait or its grade."""
        value = await first
        for _ in range(_MOST_AFTER):
            if not isinstance(value, Say | Ask):
                return self.conversation.grade_of(value, where=self._template.where)
            if isinstance(value, Ask):
                is_last = self.ended_by == "limit"  # nobody is there to answer
            else:
                is_last = self.ended_by is not None or value.ends
            if is_last and self.ended_by is None:
                self._words.append(value.text)
                self.ended_by = value.by if isinstance(value, Say) else None
                await self._world.stop_agent()
            if not is_last:
                self.wait(value)
                return GOES_ON
            value = await play.asend(self._given(value, "", self.ended_by))
        raise InvalidTemplate(
            f"{self._template.where}: {self._template.noun} yields prompts without end after its "
            "conversation has ended; look at `reply.ended`."
        )

    def _given(self, said: Said | None, text: str, by: EndedBy | None) -> Any:
        if isinstance(said, Ask):
            if by == "limit":
                self.ended_by = by
            return self._template.read_answer(text) if said.returns is None else said.read(text)
        reply = Reply(text, by is not None, by, self.steps, said if isinstance(said, Say) else None)
        if self.ended_by is None:
            self.conversation.hear(reply)
            self.ended_by = by
        return reply


def open_talk(
    template: Template,
    world: LiveWorld,
    journal: Journal,
    steps: Sequence[TrajectoryStep],
    expire: Callable[[], object],
    *,
    reply_s: float,
) -> Talk:
    """Begin a conversation in the running context, with the user's turns of recorded steps."""
    kept = [KeptTurn.model_validate(step.info[USER_TURN]) for step in steps if step.kind == "user"]
    begin(conversation := Conversation(kept, partial(_keep, journal)))
    conversation.speaker = service("person as user")(reply_s)
    return Talk(template, world, conversation, expire)


async def _keep(journal: Journal, kept: KeptTurn) -> None:
    draft = Draft("user", [])
    draft.info[USER_TURN] = kept.model_dump(mode="json", exclude_defaults=True)
    draft.observation = Observation(text=kept.turn.text)
    await journal.keep(draft)
