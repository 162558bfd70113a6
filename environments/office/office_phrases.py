"""How the desk's sentences sound to a customer: a question, a proposal, a refusal, a farewell."""

import re

__all__ = [
    "ASKS", "CHOICE", "CLOSING", "KNOWN", "NEGATIVE", "PROPOSES", "REFUSES", "WEAK", "WHETHER",
]  # fmt: skip

KNOWN = {
    "email": r"e-?mails?\b",
    "name": r"\byour (full |first |last |sur)?name\b|with whom|who (am i|are you)",
    "postcode": r"post ?code|\bzip\b|postal",
    "phone": r"\bphone\b|telephone|mobile",
    "order": r"\border|purchase|reference",
    "item": r"\bitems?\b|product|instrument|which one|\bmodel\b",
    "opened": r"open|unused|\bused\b|seal|packag|condition|played|original",
    "reason": r"\breason|\bwhy\b|what('s| is| was)? (wrong|the (problem|matter|issue))|"
    r"what happened",
    "photo": r"photo|picture|image|evidence",
    "choice": r"prefer|\brather\b|which (would|do|of)|choose|options?\b|how would you like|"
    r"\bor (a |an |as |the )?(refund|replac|store|new|money|card|exchange|credit)",
    "address": r"new address|(?<!mail )(?<!mail-)\baddress|street|where .*(send|deliver|moved?)",
    "when": r"\bwhen\b|what (time|day)|which (time|day)|availab|suit|\btimes?\b|"
    r"\bdays?\b.*prefer|prefer.*\bdays?\b|works? (best )?for you",
    "appointment": r"appointment|service|repair|workshop",
    "card": r"gift card|card number|\bcode\b|number of (the|your) card|which card",
    "points": r"\bpoints\b|how many|how much",
    "account": r"account|profile|future orders|orders to come",
    "owner": r"\bowner\b|whose|relation|behalf|account holder|belongs?|who (placed|ordered)",
    "wish": r"how (can|may) (i|we)|what (can|may) (i|we)|what would you like|more (details|about)|"
    r"what do you (want|need)|your request|describe",
}
"""How questions about each topic sound."""


def _words(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


ASKS = _words(
    r"\?",
    r"\b(please|could you|can you|kindly|tell me|let me know|provide|give me|i('ll| will)? need)\b",
    r"\b(we need|may i have|send me|reply with)\b",
)
PROPOSES = _words(
    r"\b(shall|should|may|can) (i|we) (go|proceed|do|book|move|cancel|refund|change|send|issue|"
    r"process|start|make|pay|charge|exchange|accept|put|block|redeem|update|arrange|also|now|then|"
    r"please|offer you|take|replace|return|credit|reserve|schedule|use|add|convert)",
    r"\b(shall|should|may) (i|we) ?\?|\bproceed\b",
    r"go(ing)? ahead",
    r"\bagree|\baccept\b|approve",
    r"would you like (me|us|to|this|that|a|the)|do you want|want me to",
    r"\bis (this|that|it) (ok|okay|fine|right|correct|all ?right|acceptable)",
    r"are you (ok|okay|fine|happy|sure)",
    r"\b(ok|okay|all right|alright)( with (you|that|this))? ?\?",
    r"yes ?(or|/) ?no|\(yes|(reply|answer|say|respond|write|type|with)( with)?:? [\"']?yes\b",
    r"(does|would|will) (this|that|it) (suit|work|sound|be)",
    r"do i have your|your (consent|approval|confirmation|ok)",
)
WEAK = _words(r"\bconfirm")
CHOICE = _words(
    r"\bwould you (prefer|rather)|do you prefer|which (would|do|of|option)|prefer\b|choose",
    r"\bwould you like .*\bor\b|\bdo you want .*\bor\b",
)
NEGATIVE = _words(
    r"\b(can ?not|can't|unable|not able|impossible|unfortunately|no longer|too late)\b",
    r"\b(not|n't|isn't|aren't) (be )?(possible|allowed|permitted|eligible|covered|refundable|"
    r"available|paid|refunded|changed|cancelled|authori[sz]ed|(in |currently in )?stock|valid)\b",
    r"\b((must|have to|need to) (refuse|decline)|won't be|will not be|expired|past the)\b",
    r"\b(is|are|be) (lost|forfeit(ed)?)\b|non-refundable|out of stock|sold out",
)
REFUSES = _words(
    NEGATIVE.pattern,
    r"\b(not|no|nor|never|sorry|afraid|ended|closed|passed|over|instead|however)\b|n't\b",
)
WHETHER = _words(r"\b(whether|if (it|the|this|you)|which|what|when|how)\b")
CLOSING = _words(
    r"(any|some)thing (else|more|further)|what else",
    r"any (other|further) (questions?|requests?|concerns?)",
    r"good ?bye|\bbye\b|have a (nice|good|great|lovely|wonderful)|else (i|we) can",
)
