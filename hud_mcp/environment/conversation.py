"""A conversation with an agent: its prompts, its replies, and the turns of its user.

A template yields `Say` or `Ask` as often as it likes, and then its grade. A session drives it, and
keeps each of the user's turns before the agent hears of it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, ValidationError

from hud_mcp.environment.prompt import AnswerType, Prompt, PromptMessage
from hud_mcp.errors import EnvironmentFailed, GradingFailed, InvalidTemplate
from hud_mcp.values.action import Value
from hud_mcp.values.grade import Grade, SubScore, read_grade

__all__ = [
    "NOT_CARRIED", "Ask", "Conversation", "Reply", "Said", "Say", "UserTurn", "UserUse", "current",
    "turn",
]  # fmt: skip

NOT_CARRIED = (
    "This task is a conversation, and this wire carries one prompt and one answer alone. Serve it "
    "over MCP, whose tool message_user brings each reply."
)
"""The text for a wire that has no place for a user's turns."""

EndedBy: TypeAlias = Literal["agent", "user", "limit"]


@dataclass(frozen=True)
class Said:
    """A prompt in a conversation, with its part of the grade and its own limits."""

    text: str
    instructions: str = field(default="", kw_only=True)
    part: str | None = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)
    seconds: float | None = field(default=None, kw_only=True)
    steps: int | None = field(default=None, kw_only=True)

    @property
    def prompt(self) -> Prompt:
        """The prompt as messages: the instructions first, then the text."""
        rules = (PromptMessage("system", self.instructions),) if self.instructions else ()
        return Prompt((*rules, PromptMessage("user", self.text)), said=self)

    def grade(self, value: Any) -> None:
        """Grade its part by what a template may yield as its grade, of 0 to 1.

        Raises:
            InvalidTemplate: It names no part.
            GradingFailed: The value is no such grade.
        """
        if self.part is None:
            kind = type(self).__name__
            raise InvalidTemplate(f"{kind} has no part to grade; name it: {kind}(…, part='name').")
        current().grade_part(self.part, self.weight, value)


@dataclass(frozen=True)
class Say(Said):
    """A user's words to the agent; `message_user` brings the reply, and a `Reply` comes back.

    Attributes:
        text: The words.
        instructions: Rules for the agent that are not the user's words.
        part: The name of the part of the task that the reply is graded for.
        weight: The weight of that part.
        seconds: The longest wait for the reply; then the conversation ends.
        steps: The most steps of the agent before the reply; then the conversation ends.
        ends: Whether these are the last words: the reply is ended at once.
        by: The end's author where `ends` is set.
    """

    ends: bool = field(default=False, kw_only=True)
    by: EndedBy = field(default="user", kw_only=True)


@dataclass(frozen=True)
class Ask(Said):
    """A question that only `response` answers; the answer's text comes back.

    Its attributes are those of `Say`; with `returns`, a type, an `Answer` of it comes back. After a
    limit the answer is empty.
    """

    returns: Any = field(default=None, kw_only=True)

    def read(self, raw: str, *, where: str = "") -> Any:
        """Return the answer as the template receives it."""
        return AnswerType(self.returns, where=where, noun="Ask").read(raw)


@dataclass(frozen=True)
class Reply:
    """The agent's reply to a `Say`.

    Attributes:
        text: Its words; empty where none came.
        ended: Whether the conversation is over.
        by: The end's author, or None: the agent, its user, or a limit.
        steps: The agent's steps since the prompt.
        said: The prompt.
    """

    text: str
    ended: bool = False
    by: EndedBy | None = None
    steps: int = 0
    said: Say | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        """Return its words: graders of text are often handed the whole reply."""
        return self.text

    def grade(self, value: Any) -> None:
        """Grade the part that its prompt names; raises as `Say.grade`."""
        (self.said or Say("")).grade(value)


class UserTurn(Value):
    """One turn of a user, as its record has it; `turns` are those of its model, as JSON."""

    text: str
    ends: bool = False
    by: EndedBy = "user"
    name: str = "user"
    turns: tuple[Mapping[str, Any], ...] = ()
    is_person: bool = False  # its words are no measure of the agent alone
    on_page: bool = False  # that person has the viewer's token; else they are the caller's
    calls: tuple[Mapping[str, Any], ...] = ()  # its own, on the world: made again in a repetition
    tokens: int = 0
    cost: float = 0.0
    goal: str = ""
    persona: str = ""
    patterns: tuple[str, ...] = ()  # of its script


class KeptTurn(Value):
    """A user's turn and its place: after which message, which words of it, and which of several."""

    after: int
    digest: str
    number: int
    turn: UserTurn

    @property
    def place(self) -> tuple[int, str, int]:
        """The key by which a repetition finds it."""
        return self.after, self.digest, self.number


class UserUse(Value):
    """A conversation in figures; the cost of its user's model is apart from the agent's."""

    messages: int = Field(default=0, description="Of the agent.")
    questions: int = Field(default=0, description="Messages of the agent with a question mark.")
    turns: int = Field(default=0, description="Of its user.")
    by_person: int = Field(default=0, description="Turns that a person answered.")
    tokens: int = Field(default=0, description="In and out, of the user's model.")
    cost_usd: float = Field(default=0.0, description="In US dollars, of the user's model.")

    @classmethod
    def of(cls, messages: Iterable[str], turns: Iterable[UserTurn]) -> Self:
        """Return the figures of the agent's messages and its user's turns."""
        said, spoken = list(messages), list(turns)
        return cls(
            messages=len(said),
            questions=sum("?" in text for text in said),
            turns=len(spoken),
            by_person=sum(turn.is_person for turn in spoken),
            tokens=sum(turn.tokens for turn in spoken),
            cost_usd=sum(turn.cost for turn in spoken),
        )

    @classmethod
    def sum_of(cls, uses: Iterable["UserUse | None"]) -> "UserUse | None":
        """Return the sum of several; None if no run has a conversation."""
        told = [use for use in uses if use is not None]
        names = cls.model_fields
        return cls(**{n: sum(getattr(use, n) for use in told) for n in names}) if told else None

    def __str__(self) -> str:
        """Return the figures in one line."""
        parts = [f"{self.messages} messages, {self.questions} of them questions"]
        parts.append(f"{self.turns} turns of the user")
        parts += [f"{self.tokens:,} tokens"] * bool(self.tokens)
        parts += [f"${self.cost_usd:.4f}"] * bool(self.cost_usd)
        parts += [f"{self.by_person} turns by a person"] * bool(self.by_person)
        return "; ".join(parts)


Keep: TypeAlias = Callable[[KeptTurn], Awaitable[None]]


class Conversation:
    """The conversation of one run of a template; it knows the turns that are kept already."""

    def __init__(self, kept: Iterable[KeptTurn] = (), keep: Keep | None = None) -> None:
        self._kept = {each.place: each.turn for each in kept}
        self._keep = keep
        self._number = 0
        self._spoken: list[UserTurn] = []
        self.messages: list[str] = []  # the agent's, in order
        self.parts: dict[str, SubScore] = {}
        self.latest: Reply | None = None
        self.is_repeated = False  # of a record: nobody is asked then
        # a person or a program in place of each user; with None the user speaks itself
        self.speaker: Callable[[Any, str], Awaitable[UserTurn | None]] | None = None

    @property
    def use(self) -> UserUse:
        """Its figures so far; an end without words is no message."""
        return UserUse.of(filter(None, self.messages), self._spoken)

    def hear(self, reply: Reply) -> None:
        """Note a reply of the agent; the user's next turn belongs to it."""
        self.messages.append(reply.text)
        self.latest, self._number = reply, 0

    async def turn(
        self,
        produce: Callable[[], Awaitable[UserTurn]],
        repeat: Callable[[UserTurn], Awaitable[None]] | None = None,
    ) -> UserTurn:
        """Return the user's next turn: the one on record, or a new one once it is kept.

        `produce` makes one. `repeat` does again what a recorded one did to the world.
        """
        words = self.messages[-1] if self.messages else ""
        place = (len(self.messages), sha256(words.encode()).hexdigest(), self._number)
        self._number += 1
        found = self._kept.get(place)
        if found is not None:
            if repeat is not None:
                await repeat(found)
            self._spoken.append(found)
            return found
        if self.is_repeated:
            raise EnvironmentFailed("The record has no such turn of the user, and nobody is asked.")
        made = await produce()
        # Before anybody hears of it: a repeated message then gets the same words, paid for once.
        after, digest, number = place
        if self._keep is not None:
            await self._keep(KeptTurn(after=after, digest=digest, number=number, turn=made))
        self._kept[place] = made
        self._spoken.append(made)
        return made

    def grade_part(self, name: str, weight: float, value: Any) -> None:
        """Grade a part; a second grade replaces the first. Raises as `Say.grade`."""
        where = f"part {name!r}"
        found = read_grade(value, where=where)
        try:
            self.parts[name] = SubScore(
                name=name,
                value=found.reward,
                weight=weight,
                children=found.subscores,
                info=found.info,
            )
        except ValidationError as exc:
            raise GradingFailed(
                f"{where}: a part's reward lies in 0 to 1, got {found.reward:g}."
            ) from exc

    def grade_of(self, value: Any, *, where: str) -> Grade:
        """Read the task's grade, with the parts as subscores; None is their weighted mean."""
        parts = tuple(self.parts.values())
        if value is None and parts:
            whole = sum(part.weight for part in parts)
            if whole <= 0:
                raise GradingFailed(f"{where}: the weights of the parts add up to {whole:g}.")
            value = sum(part.value * part.weight for part in parts) / whole
        grade = read_grade(value, where=where)
        names = {part.name for part in grade.subscores}
        more = tuple(part for part in parts if part.name not in names)
        return grade.model_copy(update={"subscores": (*grade.subscores, *more)}) if more else grade


_current: ContextVar[Conversation | None] = ContextVar("_current", default=None)


def current() -> Conversation:
    """Return the conversation of the running template; one without a record where none is."""
    found = _current.get()
    if found is None:
        begin(found := Conversation())
    return found


def begin(conversation: Conversation) -> None:
    """Make a conversation the running template's."""
    _current.set(conversation)


async def turn(
    produce: Callable[[], Awaitable[UserTurn]],
    repeat: Callable[[UserTurn], Awaitable[None]] | None = None,
) -> UserTurn:
    """Return the next turn of the running template's user, as `Conversation.turn` does."""
    return await current().turn(produce, repeat)
