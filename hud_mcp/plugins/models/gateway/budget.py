"""The most that a request may cost, and the cap that its reply gets."""

from hud_mcp.plugins.models.gateway.dialects import Asked, ReadTurn
from hud_mcp.plugins.models.gateway.retrying import LEAST_TOKENS
from hud_mcp.plugins.models.spending import Prices

__all__ = ["Budget"]


class Budget:
    """The bound of one request's cost.

    Args:
        asked: The request.
        prices: The prices of its model.
        given: The most tokens of its input.
        cap: The cap that we give a reply whose body has none.
    """

    def __init__(self, asked: Asked, prices: Prices, given: int, cap: int) -> None:
        self._asked, self._prices, self._given = asked, prices, given
        self._wanted = asked.cap or cap

    @property
    def most_usd(self) -> float:
        """The cost of all the tokens that it may take."""
        return self._prices.most(self._given, self._wanted * self._asked.choices)

    @property
    def least_usd(self) -> float:
        """The cost with the shortest reply that is worth asking for."""
        least = min(self._wanted, (self._asked.thinking or 0) + LEAST_TOKENS)
        return self._prices.most(self._given, least * self._asked.choices)

    def cap_within(self, usd: float) -> int | None:
        """Return the cap to write into the body, so that it costs no more; None for its own."""
        paid = self._prices.output_within(usd, self._given) // self._asked.choices
        is_own = self._asked.cap is not None
        return None if paid >= self._wanted and is_own else min(paid, self._wanted)

    def broken_usd(self, read: ReadTurn, came_bytes: int) -> float | None:
        """Return the most that a reply cost of which so many bytes came; None if nothing tells.

        A provider counts a reply's tokens at its end, and an agent may hang up before. A token
        takes more bytes than one in a stream.
        """
        if not came_bytes:
            return None
        given = read.usage.input or self._given  # a stream may begin with a 0
        made = max(read.usage.output or 0, min(self._wanted * self._asked.choices, came_bytes))
        return self._prices.most(given, made)
