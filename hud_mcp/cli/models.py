"""The options of `hud-mcp eval` that are about a model as the agent."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from pydantic import ValidationError

from hud_mcp.cli.finite import FiniteFloat, WholeNumber
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.job.options import LOOKS, PROVIDERS, TOOLS, ModelOptions, read_system

__all__ = [
    "MODEL_LIMITS",
    "MODEL_OPTIONS",
    "model_limits",
    "model_options",
    "read_model",
    "refuse_without_model",
]

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

MODEL_OPTIONS = (
    "model", "base_url", "look", "tools", "system", "keep_images", "max_tokens", "max_cost_per_run",
    "price",
)  # fmt: skip
"""What a resumed job takes from its record."""

MODEL_LIMITS = ("max_cost", "rpm", "tpm")
"""What it takes from there too, and may be told anew."""

_SMALLEST_USD = 1e-6


class _Price(click.ParamType[tuple[float, float]]):
    """Two prices for a million tokens: `3,15`."""

    name = "IN,OUT"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, float]:
        """Read it."""
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]  # it was read before
        try:
            into, out = (float(part) for part in str(value).split(","))
        except ValueError:
            into = out = -1.0
        if not (0 <= into < float("inf") and 0 <= out < float("inf")):
            self.fail(f"{value!r} is not IN,OUT; write 3,15 for $3 and $15.", param, ctx)
        return into, out


_OPTIONS = (
    click.option(
        "--model",
        metavar="PROVIDER:MODEL",
        help=f"A model of {', '.join(PROVIDERS)}.",
    ),
    click.option("--base-url", metavar="URL", help="The address of the model's API."),
    click.option(
        "--look",
        type=click.Choice(LOOKS),
        default="both",
        help="Give the model text, pictures or both.",
    ),
    click.option(
        "--tools",
        type=click.Choice(TOOLS),
        metavar="NAME",
        default="generic",
        help=f"generic, or the provider's own: {', '.join(TOOLS[1:])}.",
    ),
    click.option(
        "--system",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The model's system prompt.",
    ),
    click.option(
        "--keep-images",
        type=WholeNumber(0),
        metavar="N",
        default=3,
        help="Pictures that stay in its context.",
    ),
    click.option(
        "--max-tokens",
        type=WholeNumber(1),
        metavar="N",
        help="The most tokens of one reply.",
    ),
    click.option(
        "--max-cost",
        type=FiniteFloat(_SMALLEST_USD),
        metavar="USD",
        help="The job's budget; --resume may raise it.",
    ),
    click.option(
        "--max-cost-per-run",
        type=FiniteFloat(_SMALLEST_USD),
        metavar="USD",
        help="The budget of one run.",
    ),
    click.option(
        "--price",
        type=_Price(),
        help="US dollars a million tokens, in and out.",
    ),
    click.option(
        "--rpm",
        type=WholeNumber(1),
        metavar="N",
        help="Requests a minute, over all runs.",
    ),
    click.option(
        "--tpm",
        type=WholeNumber(1),
        metavar="N",
        help="Tokens a minute, over all runs.",
    ),
)


def model_options(command: CommandT) -> CommandT:
    """Give a command the options of a model."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_without_model(ctx: click.Context) -> None:
    """Refuse options of a model where none is given.

    Raises:
        UsageError: Naming the first.
    """
    named = (*MODEL_OPTIONS, *MODEL_LIMITS)
    given = [n for n in named if ctx.get_parameter_source(n) is ParameterSource.COMMANDLINE]
    if given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} needs --model; give both.")


def read_model(options: Mapping[str, Any]) -> ModelOptions:
    """How the model is to work that the options name.

    Raises:
        UsageError: They cannot work together, or the system prompt cannot be read.
    """
    system: Path | None = options["system"]
    digest: str | None = None
    try:
        if system is not None:
            system = system.absolute()
            _, digest = read_system(system)
        return ModelOptions(
            name=options["model"],
            base_url=options["base_url"],
            look=options["look"],
            tools=options["tools"],
            system=None if system is None else str(system),
            system_sha256=digest,
            keep_images=options["keep_images"],
            max_tokens=options["max_tokens"],
            max_cost_per_run_usd=options["max_cost_per_run"],
            price=options["price"],
            **model_limits(options),
        )
    except ValidationError as exc:
        said = exc.errors(include_url=False)[0]
        text = str(said["ctx"]["error"]) if "ctx" in said else str(said["msg"])
        raise click.UsageError(text) from None
    except HudMcpError as exc:
        raise click.UsageError(str(exc)) from None


def model_limits(options: Mapping[str, Any]) -> dict[str, Any]:
    """The limits of a model that may be given anew."""
    return {
        "max_cost_usd": options["max_cost"],
        "rpm": options["rpm"],
        "tpm": options["tpm"],
    }
