"""Calls of HUD's SDK that have no counterpart here: each says what to use instead."""

from typing import Any, NoReturn

from hud_mcp.errors import Replaced

__all__ = ["ReplacedCall"]


class ReplacedCall:
    """A method of HUD's SDK that a class of this package does not have.

    Args:
        instead: What to use, in a sentence.
    """

    def __init__(self, instead: str) -> None:
        self._instead = instead
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"{owner.__name__}.{name}"

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Say what to use.

        Raises:
            Replaced: Always.
        """
        raise Replaced(f"{self._name} was of HUD's cloud or of its older SDK. {self._instead}")
