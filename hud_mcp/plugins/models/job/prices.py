"""What a reply costs: by the price that was given, or by the list that genai-prices brings along.

The list is the one of the installed release; nothing is looked up over the network.
"""

from typing import TYPE_CHECKING

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.job import libraries
from hud_mcp.plugins.models.job.options import ModelOptions
from hud_mcp.record.model_turn import TokenUsage

if TYPE_CHECKING:
    from genai_prices import Usage

__all__ = ["Prices"]

_MILLION = 1_000_000


class Prices:
    """The prices of one model.

    Args:
        options: Which model, and what it was said to cost.
    """

    def __init__(self, options: ModelOptions) -> None:
        self._options = options

    def need(self) -> None:
        """Refuse a limit of cost where the model's price is not known.

        Raises:
            HudMcpError: It is not; the text says how to give it.
        """
        options = self._options
        limited = options.max_cost_usd is not None or options.max_cost_per_run_usd is not None
        if limited and self.cost(TokenUsage(input=_MILLION, output=_MILLION)) is None:
            raise HudMcpError(
                f"The price of {options.name} is not known, so its cost cannot be limited. Give "
                "it by --price IN,OUT, in US dollars for a million tokens, or leave out "
                "--max-cost and --max-cost-per-run. No request was sent."
            )

    def cost(self, usage: TokenUsage) -> float | None:
        """What a reply cost, in US dollars; None where that is not known.

        A price that was given counts for every token of the input, cached ones too.
        """
        if usage.input is None or usage.output is None:
            return None
        if (price := self._options.price) is not None:
            return (usage.input * price[0] + usage.output * price[1]) / _MILLION
        counted = libraries.genai_prices.Usage(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cached or 0,
            cache_write_tokens=usage.cache_write or 0,
        )
        return self._listed(counted)

    def _listed(self, usage: "Usage") -> float | None:
        options = self._options
        calculate = libraries.genai_prices.calc_price
        try:
            if options.provider != "openai-compatible":
                found = calculate(usage, options.model, provider_id=options.provider)
            else:
                found = calculate(usage, options.model, provider_api_url=options.base_url)
        except (LookupError, ValueError):
            return None
        return float(found.total_price)
