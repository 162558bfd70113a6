"""`--limit NAME=VALUE` of the commands that serve."""

from collections.abc import Sequence

from pydantic import ValidationError

from hud_mcp.errors import HudMcpError, did_you_mean
from hud_mcp.session.limits import Limits

__all__ = ["read_limits"]


def read_limits(given: Sequence[str]) -> Limits:
    """Read `NAME=VALUE` limits.

    Raises:
        HudMcpError: A name is unknown, or a value out of range.
    """
    values: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or name not in Limits.model_fields:
            hint = did_you_mean(name, Limits.model_fields)
            raise HudMcpError(
                f"--limit {item}: write NAME=VALUE.{hint} The limits are: "
                f"{', '.join(Limits.model_fields)}."
            )
        values[name] = value
    try:
        return Limits.model_validate(values)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        said = first["msg"].partition(",")[0].removeprefix("Input ")
        name = first["loc"][0]
        raise HudMcpError(f"--limit {name}={first['input']}: it {said}.") from None
