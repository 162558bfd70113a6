"""`--quota NAME=VALUE` of the command that serves, and what a token file says of one principal."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from hud_mcp.cli.tokens import QUOTA_NAMES
from hud_mcp.errors import HudMcpError, did_you_mean
from hud_mcp.plugins.operate.quotas import NO_QUOTA, Quotas
from hud_mcp.session.caller import OPERATOR

__all__ = ["read_quotas"]

_UNITS: Final = {
    "": 1,
    **{name: 1000**power for power, name in enumerate(("b", "kb", "mb", "gb", "tb"))},
    **{name: 1024**power for power, name in enumerate(("kib", "mib", "gib", "tib"), start=1)},
}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def read_quotas(
    given: Iterable[str], named: Mapping[str, str], *, living_s: float
) -> Quotas | None:
    """Read quotas; None where there are none.

    Args:
        given: `NAME=VALUE` of everybody.
        named: The same of some principals, with spaces between several.
        living_s: How long a session may go on at most.

    Raises:
        HudMcpError: A name is unknown, or a value is no amount.
    """
    usual = NO_QUOTA.with_changes(_read(given, where="--quota"))
    own = {
        principal: usual.with_changes(_read(words.split(), where="--token-file"))
        for principal, words in named.items()
    }
    if usual.is_none and not own:
        return None
    return Quotas(usual, own, exempt=frozenset({OPERATOR}), living_s=living_s)


def _read(given: Iterable[str], *, where: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or name not in QUOTA_NAMES:
            hint = did_you_mean(name, QUOTA_NAMES)
            raise HudMcpError(
                f"{where} {item}: write NAME=VALUE.{hint} The quotas are: {', '.join(QUOTA_NAMES)}."
            )
        found[name] = _amount(value, item=f"{where} {item}", is_size=name == "stored_bytes")
    return found


def _amount(value: str, *, item: str, is_size: bool) -> int:
    """An amount.

    Raises:
        HudMcpError: It is none, or not more than 0.
    """
    read = _SIZE.fullmatch(value.strip())
    unit = read[2].lower() if read else ""
    whole = is_size or (unit == "" and value.strip().isdigit())
    amount = int(float(read[1]) * _UNITS[unit]) if read and whole and unit in _UNITS else 0
    if amount < 1:
        example = "5GB or 500MiB" if is_size else "20"
        raise HudMcpError(f"{item}: {value!r} is no amount; write one such as {example}.")
    return amount
