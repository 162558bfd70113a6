"""The most that a request may cost, and the cap that its reply gets."""

from dataclasses import dataclass

from hud_mcp.plugins.models.gateway.dialects import Asked, ReadTurn
from hud_mcp.plugins.models.gateway.retrying import LEAST_TOKENS
from hud_mcp.plugins.models.spending import Prices

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """The bound of one request's cost.

    Attributes:
        prices: The prices of its model.
        given: The most tokens of its input.
        wanted: The most tokens of its reply, by its body or by us.
        is_own: Whether this cap is ours, since the body has none.
        thinking: The tokens of reasoning that a cap leaves room for.
        choices: The number of replies.
    """

    prices: Prices
    given: int
    wanted: int
    is_own: bool
    thinking: int
    choices: int

    @classmethod
    def of(cls, asked: Asked, prices: Prices, given: int, cap: int) -> "Budget":
        """Return the bound of a request; `cap` is for a body without one."""
        return cls(
            prices, given, asked.cap or cap, asked.cap is None, asked.thinking or 0, asked.choices
        )

    @property
    def most_usd(self) -> float:
        """The cost of all the tokens that it may take."""
        return self.prices.most(self.given, self.wanted * self.choices)

    @property
    def least_usd(self) -> float:
        """The cost with the shortest reply that is worth asking for."""
        least = min(self.wanted, self.thinking + LEAST_TOKENS)
        return self.prices.most(self.given, least * self.choices)

    def cap_within(self, usd: float) -> int | None:
        """Return the cap to write into the body, so that it costs no more; None for its own."""
        paid = self.prices.output_within(usd, self.given) // self.choices
        return None if paid >= self.wanted and not self.is_own else min(paid, self.wanted)

    def broken_usd(self, read: ReadTurn, came_bytes: int) -> float | None:
        """Return the most that a reply cost of which so many bytes came; None if nothing tells.

        A provider counts a reply's tokens at its end, and an agent may hang up before. A token
        takes more bytes than one in a stream.
        """
        if not came_bytes:
            return None
        given = read.usage.input or self.given  # a stream may begin with a 0
        made = max(read.usage.output or 0, min(self.wanted * self.choices, came_bytes))
        return self.prices.most(given, made)
