"""Keys in a model's texts are masked before they are written.

Only the model's side of a session is masked. Replay repeats actions, and grading reads answers.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

MASK = "[masked]"

_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    # OpenAI, Anthropic, OpenRouter, DeepSeek, Cerebras, Pinecone and others; words have no digit.
    r"(?:c?sk-|pcsk_)(?=[A-Za-z_-]{0,48}[0-9])[A-Za-z0-9_-]{16,}"
    r"|(?:AIza|GOCSPX-|AQ\.|ya29\.)[A-Za-z0-9_-]{16,}"  # Google
    r"|ABSK[A-Za-z0-9+/=]{40,}"  # Bedrock
    r"|(?:pplx|nvapi|tvly|xapp)-[A-Za-z0-9_-]{20,}"
    r"|(?:r8|fw|e2b|whsec|lsv2_[a-z]{2}|tgp_v1)_[A-Za-z0-9_-]{20,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"  # AWS
    r"|(?:gh[pousr]|hf|gsk|npm|dop_v1)_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}"
    r"|xai-[A-Za-z0-9_-]{20,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}"
    r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|pypi-[A-Za-z0-9_-]{20,}"
    # A JSON web token; only where a run begins, for each `eyJ` in one would be read to its end.
    r"|(?<![_-])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}"
    r"|sess-[0-9a-f]{32,64}"  # opens a session of ours
    r"|hms-[0-9a-f]{64}-[0-9a-f]{64}"
    r")"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN[A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END[A-Z ]{0,40}PRIVATE KEY-----|\Z)"
)
_WORD = r"(?:[A-Z]?[a-z]+|[A-Z]+)(?:-[a-z]+)*(?![A-Za-z0-9._~+/=-])"
_HEADER_NAMES = r"authorization|x-api-key|x-goog-api-key|api-key|set-cookie|cookie"
_HEADER = re.compile(
    rf"\b((?i:{_HEADER_NAMES}))(\\?[\"']?[ \t]{{0,8}}[:=][ \t]{{0,8}}\\?[\"']?)"
    rf"(?=[^\s\"'\\]{{0,200}}[0-9=]|[^\s\"'\\]{{20}}|[A-Za-z]{{5,9}}[ \t]{{1,8}}(?!{_WORD})\S)"
    r"([^\r\n\"'\\]+)"
)
_BEARER = re.compile(rf"\b((?i:Bearer|Basic))([ \t]{{1,8}})(?!{_WORD})([A-Za-z0-9._~+/=-]{{8,}})")
_IN_URL = re.compile(r"(://[^\s/@:]{0,200}:)([^\s/@]{1,200})(@)")
_NAMED = re.compile(
    r"(key|token|secret|password|passwd|credentials?|signature)"
    r"(\\?[\"']?[ \t]{0,8}[:=][ \t]{0,8}\\?[\"']?)([A-Za-z0-9+/=_.~-]{16,})",
    re.IGNORECASE,
)
_HEADER_FIELD = re.compile(rf"(?:proxy-)?(?:{_HEADER_NAMES})", re.IGNORECASE)
_NAMED_FIELD = re.compile(r"key|token|secret|password|passwd|credential|signature", re.IGNORECASE)

_PRESSED_ONE = r"(?:[A-Z][A-Za-z]{0,14}[0-9]{0,2}|[^A-Z])"
_PRESSED = re.compile(rf"{_PRESSED_ONE}(?:\+{_PRESSED_ONE})+")

_LEAST_CHARS = 16
_LEAST_BITS = 3.2
"""The fewest bits of a character that make a value after `key=` look random; words have less."""


def masked(value: Any) -> Any:
    """Mask keys in a text, or in every text and name of a JSON value."""
    if isinstance(value, str):
        return _masked_text(value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {_masked_text(name): _masked_field(name, of) for name, of in fields.items()}
    if isinstance(value, Sequence):
        return [masked(each) for each in cast("Sequence[Any]", value)]
    return value


def _masked_field(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return masked(value)
    if _HEADER_FIELD.fullmatch(name):
        return MASK
    return MASK if _NAMED_FIELD.search(name) and _looks_random(value) else _masked_text(value)


def _masked_text(text: str) -> str:
    if len(text) < 8:  # noqa: PLR2004  # no key is as short
        return text
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _SHAPES.sub(MASK, text)
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    text = _BEARER.sub(rf"\1\2{MASK}", text)
    text = _IN_URL.sub(rf"\1{MASK}\3", text)
    return _NAMED.sub(_mask_random, text)


def _mask_random(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{MASK}" if _looks_random(found[3]) else found[0]


def _looks_random(value: str) -> bool:
    """Whether a value has as many different characters as a key, and of two kinds or more."""
    if len(value) < _LEAST_CHARS or " " in value or _PRESSED.fullmatch(value):
        return False
    kinds = sum(any(map(kind, value)) for kind in (str.islower, str.isupper, str.isdigit))
    if kinds < 2:  # noqa: PLR2004  # of three
        return False
    counts = Counter(value).values()
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts)
    return bits >= _LEAST_BITS
