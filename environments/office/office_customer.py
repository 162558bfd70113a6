"""A customer who follows a script: what they know, what they agree to, and how they react.

What they answer depends on their script and on the conversation so far, on nothing else. They
never know what the policy says, or what is right; they agree to whatever sounds like what they
want, once they are told what they wish to know of it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from office_phrases import (
    ASKS,
    CHOICE,
    CLOSING,
    KNOWN,
    NEGATIVE,
    PROPOSES,
    REFUSES,
    WEAK,
    WHETHER,
)
from office_speech import dates_in, money_in, sentences_of, times_in

__all__ = ["GONE", "Known", "Offer", "Persona", "Reply", "answer"]

GONE = "[The customer has left the conversation.]"

Suits = Callable[[str], str | None]


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a customer can tell.

    Attributes:
        says: What they say when they are asked.
        words: How questions about it sound; those of `KNOWN` for its topic by default.
    """

    says: str
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """Something that may be proposed to a customer.

    Attributes:
        words: How proposals of it sound.
        needs: What the customer wants to hear of it first: `money`, `date`, `time`, `street`.
        accepts: Whether they say yes.
        says: What they say to it, where that is not the usual.
        over: Offers that are not meant where this one is.
        suits: Says of a proposal why it does not suit; None where it does.
    """

    words: str
    needs: tuple[str, ...] = ()
    accepts: bool = True
    says: str = ""
    over: tuple[str, ...] = ()
    suits: Suits = lambda _message: None


@dataclass(frozen=True, kw_only=True)
class Persona:
    """One customer's script.

    Attributes:
        name: What they call themselves.
        opening: Their first message.
        wish: What they want, once more.
        known: What they can tell, by topic.
        offers: What they say to proposals, by name.
        later: Requests that they make only once the first is dealt with.
        ends_after: Marks of which each, or another of its group, stands before they leave.
        chosen: The offer that they choose where several are named at once.
        on_refusal: What they say when they are refused.
        patience: After how many messages they leave.
    """

    name: str
    opening: str
    wish: str
    known: dict[str, Known]
    offers: dict[str, Offer]
    later: tuple[str, ...] = ()
    ends_after: tuple[tuple[str, ...], ...] = ()
    chosen: str = ""
    on_refusal: str = "That is a pity. Is there nothing that you can do instead?"
    patience: int = 30


@dataclass
class Reply:
    """What a customer answers.

    Attributes:
        parts: The sentences.
        marks: What happened: `told:email`, `yes:refund`, `no:credit`, `refused`, `gone`, ….
    """

    parts: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)

    def add(self, text: str, mark: str) -> None:
        """Say something once, and mark it."""
        if text and text not in self.parts:
            self.parts.append(text)
        self.marks.append(mark)

    @property
    def text(self) -> str:
        """All that is said."""
        return " ".join(self.parts)


def answer(persona: Persona, before: Sequence[Sequence[str]], message: str) -> Reply:
    """What a customer answers to a message.

    Args:
        persona: Their script.
        before: The marks of each earlier answer.
        message: What the desk says.
    """
    reply = Reply(marks=[f"heard:{kind}" for kind, read in _DETAILS.items() if read(message)])
    sentences = sentences_of(message)
    if not sentences:
        reply.add("Your message is empty. What did you want to say?", "puzzled")
        return reply
    refused = any(REFUSES.search(each) for each in sentences)
    if refused:
        reply.marks.append("refused")
    questions = [each for each in sentences if _is_proposal(persona, each)]
    chosen = _choose(persona, questions, message, reply)
    names = [] if chosen else _proposed(persona, sentences, questions, message)
    _decide({name: persona.offers[name] for name in names}, message, reply)
    asked = [each for each in sentences if not ((names or chosen) and each in questions)]
    if not (_tell(persona, asked, reply) or names or chosen):
        if questions:
            reply.add(f"I do not know what I would say yes to. {persona.wish}", "puzzled")
        else:
            _react_to_the_rest(persona, before, sentences, reply, refused=refused)
    if "gone" not in reply.marks:
        _lose_patience(persona, len(before) + 1, reply)
    return reply


_STREET = re.compile(r"\d+,? +\w+ (lane|road|street|row|hill|way)\b", re.IGNORECASE)
_DETAILS: dict[str, Callable[[str], object]] = {
    "money": money_in,
    "date": dates_in,
    "time": times_in,
    "street": _STREET.search,
}
_MISSING = {
    "money": "How much money is it, exactly?",
    "date": "On which day would that be?",
    "time": "At what time would that be?",
    "street": "To which address, exactly?",
}


def _is_proposal(persona: Persona, sentence: str) -> bool:
    """Whether a sentence asks for a yes."""
    if not ASKS.search(sentence) or CLOSING.search(sentence):
        return False
    if PROPOSES.search(sentence) or CHOICE.search(sentence):
        return True
    if not WEAK.search(sentence) or WHETHER.search(sentence):
        return False
    return not (_OWN.search(sentence) and _topics(persona, sentence))


def _choose(persona: Persona, questions: list[str], message: str, reply: Reply) -> bool:
    """Choose between several things that are offered; whether there was a choice."""
    if "choice" not in persona.known or not any(CHOICE.search(each) for each in questions):
        return False
    reply.add(persona.known["choice"].says, "told:choice")
    offer = persona.offers.get(persona.chosen)
    if offer is not None and _is_complete(offer, message):
        reply.marks.append(f"yes:{persona.chosen}")
    return True


def _is_complete(offer: Offer, message: str) -> bool:
    """Whether a message offers something, says all that has to be known of it, and it suits."""
    told = all(_DETAILS[kind](message) for kind in offer.needs)
    named = re.search(offer.words, message, re.IGNORECASE)
    return bool(told and named) and offer.suits(message) is None


def _proposed(
    persona: Persona, sentences: list[str], questions: list[str], message: str
) -> list[str]:
    """The offers that are meant: those of the question, or of what stands before it."""
    if not questions:
        return []
    names = _offers_in(persona, questions) or _offers_before(persona, sentences, questions[-1])
    if not names:  # what is told of it can only be one thing
        names = [
            name
            for name, offer in persona.offers.items()
            if offer.accepts and offer.needs and all(_DETAILS[k](message) for k in offer.needs)
        ]
        names = names if len(names) == 1 else []
    left_out = {other for name in names for other in persona.offers[name].over}
    return [name for name in names if name not in left_out]


def _offers_before(persona: Persona, sentences: list[str], question: str) -> list[str]:
    before = sentences[: sentences.index(question)]
    granted = [each for each in before if not NEGATIVE.search(each)]
    return _offers_in(persona, granted) or _offers_in(persona, before)


def _offers_in(persona: Persona, sentences: list[str]) -> list[str]:
    return [
        name
        for name, offer in persona.offers.items()
        if any(re.search(offer.words, sentence, re.IGNORECASE) for sentence in sentences)
    ]


def _decide(offers: dict[str, Offer], message: str, reply: Reply) -> None:
    """Say yes or no to each thing that is proposed, or ask what is missing to say it."""
    wanted = [offer for offer in offers.values() if offer.accepts]
    needs = dict.fromkeys(kind for offer in wanted for kind in offer.needs)
    missing = [kind for kind in needs if not _DETAILS[kind](message)]
    for name, offer in offers.items():
        why = offer.suits(message)
        if not offer.accepts:
            reply.add(offer.says or "No, I do not want that.", f"no:{name}")
        elif why is not None and not missing:
            reply.add(why, f"no:{name}")
        elif not missing:
            reply.add(offer.says or "Yes, please do that.", f"yes:{name}")
    for kind in missing:
        reply.add(_MISSING[kind], f"missing:{kind}")


def _tell(persona: Persona, sentences: list[str], reply: Reply) -> bool:
    """Tell what is asked for; whether anything was."""
    asked: dict[str, None] = {}
    for sentence in sentences:
        if ASKS.search(sentence):
            asked |= dict.fromkeys(_topics(persona, sentence))
    if len(asked) > 1:
        asked.pop("wish", None)
    for topic in asked:
        reply.add(persona.known[topic].says, f"told:{topic}")
    return bool(asked)


def _topics(persona: Persona, sentence: str) -> list[str]:
    """What a question is about, of what the customer knows."""
    if CLOSING.search(sentence):
        return []
    found = [
        topic
        for topic, known in persona.known.items()
        if re.search(known.words or KNOWN[topic], sentence, re.IGNORECASE)
    ]
    if "email" in found:  # `the email address of the account that the order is of`
        beside = {
            "order": _NUMBER,
            "item": _NUMBER,
            "address": _PLACE,
            "account": _PLACE,
            "owner": _NUMBER,
        }
        found = [t for t in found if t not in beside or beside[t].search(sentence)]
    if "address" in found:
        found = [topic for topic in found if topic not in ("postcode", "name")]
    return found


_OWN = re.compile(r"\byour\b|\bthe (e-?mail|order number|photo)", re.IGNORECASE)
_NUMBER = re.compile(
    r"\b(and|or) (your |the |which )?order|order (number|id|no)|which (order|item)|(number|id) of",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\bnew\b|deliver|street|ship|post ?code", re.IGNORECASE)


def _react_to_the_rest(
    persona: Persona,
    before: Sequence[Sequence[str]],
    sentences: list[str],
    reply: Reply,
    *,
    refused: bool,
) -> None:
    """React to what neither proposes nor asks anything that the customer knows."""
    marks = {mark for each in before for mark in each} | set(reply.marks)
    done = sum(mark.startswith("later:") for mark in marks)
    groups = _group(persona, done)
    settled = all(any(mark in marks for mark in group) for group in groups)
    gladly = all(any(mark in marks - {"refused"} for mark in group) for group in groups)
    if refused and not gladly and "unhappy" not in marks:
        reply.add(persona.on_refusal, "unhappy")
    elif any(CLOSING.search(s) for s in sentences) or (settled and done < len(persona.later)):
        if not settled:
            reply.add(f"Wait, this is not settled yet. {persona.wish}", "unsettled")
        elif done < len(persona.later):
            reply.add(f"Thank you. There is one more thing. {persona.later[done]}", f"later:{done}")
        else:
            reply.add(f"No, that is all. Goodbye. {GONE}", "gone")
    elif refused:
        reply.add(persona.on_refusal, "unhappy")
    elif any("?" in s for s in sentences):
        reply.add("I am not sure what you mean. Can you ask in other words?", "puzzled")
    else:
        reply.add("All right, thank you.", "listens")


def _group(persona: Persona, done: int) -> tuple[tuple[str, ...], ...]:
    """What has to have happened before the customer goes on to the next request, or leaves."""
    return persona.ends_after[: done + 1] if persona.later else persona.ends_after


def _lose_patience(persona: Persona, count: int, reply: Reply) -> None:
    if count >= persona.patience:
        reply.add(f"I have no more time for this. Goodbye. {GONE}", "gone")
    elif persona.patience - count == 3:  # noqa: PLR2004  # a warning that comes in time
        reply.add("Please hurry, I have little time left.", "hurries")
