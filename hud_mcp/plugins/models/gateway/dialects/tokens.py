"""Token ids and log-probabilities out of a reply, for those who train."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from hud_mcp.plugins.models.gateway.dialects import Json
from hud_mcp.plugins.models.gateway.dialects.body import (
    count_of,
    dict_of,
    dicts_of,
    mended,
    text_of,
)
from hud_mcp.values.model_turn import TurnTokens

__all__ = ["TokenLists", "read_chat_tokens", "read_gemini_tokens", "read_logprobs", "turn_tokens"]

_ID = "token_id:"
"""The begin of a token's text that vLLM writes with `return_tokens_as_token_ids`."""


@dataclass(slots=True)
class TokenLists:
    """The tokens of a piece of a reply, which grow with it."""

    prompt_ids: list[int] = field(default_factory=list[int])
    ids: list[int] = field(default_factory=list[int])
    logprobs: list[float | None] = field(default_factory=list[float | None])
    texts: list[str] = field(default_factory=list[str])


def read_chat_tokens(lists: TokenLists, reply: Json, choice: Json) -> None:
    """Read vLLM's, SGLang's and llama.cpp's ids, and the log-probabilities of all.

    With `return_token_ids` the ids of the prompt stand in the first chunk, and those of the reply
    in each; llama.cpp has an id in each log-probability.
    """
    if not lists.prompt_ids:
        lists.prompt_ids += _ids(reply.get("prompt_token_ids") or choice.get("prompt_token_ids"))
    ids = _ids(choice.get("token_ids"))
    lists.ids += ids
    logprobs = dicts_of(dict_of(choice.get("logprobs")).get("content"))
    read_logprobs(lists, logprobs, has_ids=bool(ids))


def read_logprobs(lists: TokenLists, listed: list[Json], *, has_ids: bool = False) -> None:
    """Read OpenAI's list: `{"token", "logprob"}`."""
    for each in listed:
        text = text_of(each.get("token"))
        number = text.removeprefix(_ID) if text.startswith(_ID) else ""
        id_ = int(number) if number.isascii() and number.isdigit() else each.get("id")
        _add(lists, text, each.get("logprob"), None if has_ids else id_)


def read_gemini_tokens(lists: TokenLists, candidate: Json) -> None:
    """Read `logprobsResult.chosenCandidates`."""
    for each in dicts_of(dict_of(candidate.get("logprobsResult")).get("chosenCandidates")):
        _add(lists, text_of(each.get("token")), each.get("logProbability"), each.get("tokenId"))


def _add(lists: TokenLists, text: str, logprob: Any, id_: Any) -> None:
    number = float(logprob) if isinstance(logprob, int | float) and math.isfinite(logprob) else None
    lists.logprobs.append(number)
    lists.texts.append(text)
    if count_of(id_) is not None:
        lists.ids.append(id_)


def _ids(value: Any) -> list[int]:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [each for each in listed if count_of(each) is not None]


def turn_tokens(rows: Iterable[TokenLists]) -> TurnTokens | None:
    """Return the tokens of a reply in the order of its pieces; None without any."""
    listed = list(rows)
    tokens = TurnTokens(
        prompt_ids=tuple(n for each in listed for n in each.prompt_ids),
        ids=tuple(n for each in listed for n in each.ids),
        logprobs=tuple(n for each in listed for n in each.logprobs),
        texts=tuple(mended(text) for each in listed for text in each.texts),
    )
    return None if tokens == TurnTokens() else tokens
