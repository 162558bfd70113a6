"""What a contextual environment observes: the state and the context, each under its key."""

from typing import Any

from hud_mcp.errors import ObservationKeyNotFound

__all__ = ["Observed"]


class Observed(dict[str, Any]):
    """A state and a context; another key is an error that says how the state is called."""

    def __missing__(self, key: str) -> Any:
        (state_key,) = (name for name in self if name != "context")
        raise ObservationKeyNotFound(
            f"This observation has no {key!r}; its keys are {state_key!r} and 'context'. The "
            f"environment's argument state_key={key!r} calls the state so."
        )
