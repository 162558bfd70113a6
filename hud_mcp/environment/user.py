"""Users that an agent talks to: by a script of rules here; by a model or a person elsewhere."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from hud_mcp.environment.conversation import Reply, Say, UserTurn, current, turn
from hud_mcp.errors import InvalidTemplate
from hud_mcp.registry import service

__all__ = ["User", "When"]

_UNKNOWN = "I am not sure what you mean."
"""The words of a script without a rule that fits."""


@dataclass(frozen=True)
class When:
    """A rule of a user's script: what it says where the agent's message fits a pattern.

    All fitting rules with a slot are said, in order; else the first that fits, else one without a
    pattern. `{name}` in the words stands for a named group that a pattern has found so far.

    Args:
        pattern: A regular expression, found anywhere in the message, in any case.
        say: The words.
        slot: The name that `after` of other rules may have.
        after: The slots that must have been said before.
        once: Whether it is said only once.
        ends: Whether the conversation ends with it.
        calls: Tools of its user with their arguments, called then; the results follow the words.
    """

    pattern: str | None = None
    say: str = ""
    slot: str | None = None
    after: str | tuple[str, ...] = ()
    once: bool = False
    ends: bool = False
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    @cached_property
    def _found(self) -> re.Pattern[str]:
        return re.compile(self.pattern or "", re.IGNORECASE | re.DOTALL)

    def fits(self, message: str) -> "re.Match[str] | None":
        """Return the match of its pattern in a message."""
        return self._found.search(message)

    @property
    def before(self) -> tuple[str, ...]:
        """The slots that must have been said before."""
        return (self.after,) if isinstance(self.after, str) else tuple(self.after)


class User:
    """A user that a template talks for.

    Its goal, persona, knowledge and script are kept as expected answers are: no agent sees them.

    Args:
        goal: The user's aim, for its model and for authors.
        persona: Its manner and circumstances, for its model.
        knows: The facts that it may tell when asked, for its model.
        script: Its rules. Without a model it speaks by them alone.
        model: The model that speaks for it; None for the script, else for HUD_MCP_USER_MODEL.
        seed: The seed of the model.
        temperature: The temperature of the model.
        tools: Functions of its own on the world, for its model and its script.
        end: The text by which its model ends the conversation.
        turns: The most turns; the conversation ends with the next message.
        chars: The longest message of the agent that it reads; a longer one ends the conversation.
        name: Its name in the record.

    Raises:
        InvalidTemplate: It has neither a script nor a model, or a rule is wrong.
    """

    def __init__(
        self,
        *,
        goal: str,
        persona: str = "",
        knows: Iterable[str] = (),
        script: Iterable[When] = (),
        model: str | None = None,
        seed: int = 0,
        temperature: float = 0.0,
        tools: Iterable[Callable[..., Any]] = (),
        end: str = "###STOP###",
        turns: int = 30,
        chars: int = 4000,
        name: str = "user",
    ) -> None:
        self.goal = goal
        self.persona = persona
        self.knows = tuple(knows)
        self.script = tuple(script)
        self.model = model
        self.seed = seed
        self.temperature = temperature
        self.tools = tuple(tools)
        self.end = end
        self.turns = turns
        self.chars = chars
        self.name = name
        self._said: list[str] = []
        self._heard: list[str] = []
        self._used: set[int] = set()
        self._groups: dict[str, str] = {}
        _check(self)

    @property
    def said(self) -> tuple[str, ...]:
        """Its words so far, in order."""
        return tuple(self._said)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of its script that nobody writes by chance."""
        every = (rule.pattern or "" for rule in self.script)
        return tuple(each for each in every if re.escape(each) != each)

    @property
    def told(self) -> tuple[str, ...]:
        """The agent's words to it so far, in order, with those that ended the conversation."""
        latest = current().latest
        last = latest is not None and latest.ended and latest.text not in ("", *self._heard[-1:])
        return (*self._heard, latest.text) if last and latest is not None else tuple(self._heard)

    def heard(self, text: str | re.Pattern[str]) -> bool:
        """Whether the agent told it a text, in any case and spacing, or what a pattern finds."""
        if isinstance(text, re.Pattern):
            return any(text.search(each) for each in self.told)
        return any(_plain(text) in _plain(each) for each in self.told)

    async def answer(self, reply: Reply | str = "") -> Say:
        """Return its answer to a reply, to be yielded; the first one opens the conversation.

        A turn that is on record is used, and nobody is asked.
        """
        text = str(reply)
        if text:
            self._heard.append(text)
        made = await turn(partial(self._produce, text), self._repeat)
        self._said.append(made.text)
        return Say(made.text, ends=made.ends, by=made.by)

    async def _produce(self, text: str) -> UserTurn:
        made = await self._speak(text)
        private = {"goal": self.goal, "persona": self.persona, "patterns": self.patterns}
        return made.model_copy(update=private)

    async def _speak(self, text: str) -> UserTurn:
        if len(self._said) >= self.turns or len(text) > self.chars:
            return UserTurn(text="", ends=True, by="limit", name=self.name)
        speaker = current().speaker
        if speaker is not None and (made := await speaker(self, text)) is not None:
            return made
        if self.model is None and self.script:
            made = self.by_script(text)
            return await service("make a user's calls")(self, made) if made.calls else made
        return await service("user by a model")(self, text)

    async def _repeat(self, made: UserTurn) -> None:
        if made.calls:
            await service("repeat a user's calls")(self, made)
        if self.model is None and self.script and made.by != "limit":
            self.by_script(self._heard[-1] if self._heard else "")  # its slots are as they were

    def by_script(self, message: str) -> UserTurn:
        """Speak by the rules of the script."""
        rules = self.script
        said = {rules[i].slot for i in self._used}
        spent = {i for i in self._used if rules[i].once}
        free = [i for i, each in enumerate(rules) if i not in spent and said >= {*each.before}]
        fitting: list[int] = []
        for i in free:
            if rules[i].pattern is not None and (match := rules[i].fits(message)):
                self._groups |= {name: text for name, text in match.groupdict("").items() if text}
                fitting.append(i)
        places = [i for i in fitting if rules[i].slot is not None] or fitting[:1]
        places = places or [i for i in free if rules[i].pattern is None][:1]
        self._used |= {*places}
        chosen = [rules[i] for i in places]
        words = " ".join(self._filled(rule.say) for rule in chosen) if chosen else _UNKNOWN
        calls = ({"name": n, "arguments": given} for rule in chosen for n, given in rule.calls)
        ends = any(rule.ends for rule in chosen)
        return UserTurn(text=words, ends=ends, name=self.name, calls=tuple(calls))

    def _filled(self, words: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda m: self._groups.get(m[1], m[0]), words)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _check(user: User) -> None:
    if not (user.script or user.model is not None or os.environ.get("HUD_MCP_USER_MODEL")):
        raise InvalidTemplate("A User has no script; give it a model, or set HUD_MCP_USER_MODEL.")
    slots = {rule.slot for rule in user.script}
    tools = {tool.__name__ for tool in user.tools}
    for i, rule in enumerate(user.script):
        try:
            rule.fits("")
        except re.error as exc:
            raise InvalidTemplate(f"script[{i}]: {rule.pattern!r} is no pattern: {exc}.") from None
        wrong = [f"no rule has the slot {name!r}" for name in rule.before if name not in slots]
        wrong += [f"its user has no tool {name!r}" for name, _ in rule.calls if name not in tools]
        if wrong:
            raise InvalidTemplate(f"script[{i}]: {wrong[0]}.")
