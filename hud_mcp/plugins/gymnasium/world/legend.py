"""The lines of a whole look beside the observation: the rules, the rewards, and the map."""

from collections.abc import Callable, Iterator
from typing import Any

from hud_mcp.plugins.gymnasium.world.known import Known

__all__ = ["legend_of"]

_UNKNOWN = (
    "The rewards are the environment's own, and nothing is known of them but what steps return."
)


def legend_of(env: Any, known: Known) -> list[str]:
    """Return the lines that explain an environment that was reset; they stay while it is open."""
    lines = [known.about] if known.about else []
    spec, space = env.unwrapped.spec, env.observation_space
    # An option that changes what is rewarded has it in its name.
    has_own_rewards = spec is not None and "reward" in " ".join(spec.kwargs)
    lines.append(_UNKNOWN if has_own_rewards else known.rewarded or _UNKNOWN)
    maker = None if spec is None else _MAPS.get(spec.name)
    if maker is not None:
        lines += list(maker(env.unwrapped))
    is_picture = len(space.shape or ()) in (2, 3) and space.dtype == "uint8"
    if is_picture and not known.numbers:
        lines.append(
            "What is seen here is a picture: text cannot describe it. Look at the screenshot."
            if env.render_mode == "rgb_array"
            else "What is seen here is a picture: text cannot describe it, and there is no screen."
        )
    return lines


def _lake(env: Any) -> Iterator[str]:
    chances = _chances(env)
    if len(chances) > 1:
        yield (
            "The ice is slippery: a step goes where you choose with a chance of "
            f"{chances[1]:.3g}, and to either side of that with {chances[0]:.3g} each."
        )
    else:
        yield "The ice is not slippery: each step goes where you choose."
    yield "The lake (S start, F frozen, H hole, G goal; row 0 is at the top):"
    yield from ("".join(cell.decode() for cell in line) for line in env.desc)


def _chances(env: Any) -> list[float]:
    return [float(each[0]) for each in env.P[0][0]]


def _cliff(env: Any) -> Iterator[str]:
    rows, columns = env.shape
    yield "The map (S start, G goal, C cliff, . free; row 0 is at the top):"
    yield from ["." * columns] * (rows - 1)
    yield f"S{'C' * (columns - 2)}G"
    if getattr(env, "is_slippery", False):
        yield "The ground is slippery: a step goes to either side as often as where you choose."


def _taxi(env: Any) -> Iterator[str]:
    yield "The map (R red, G green, Y yellow, B blue; | is a wall, : can be passed; rows from 0):"
    yield from ("".join(cell.decode() for cell in line) for line in env.desc)
    yield (
        "A step against a wall stays where it is. "
        "Pick up on the passenger's square, and drop off on the destination's."
    )
    if len(_chances(env)) > 1:
        yield "The streets are wet: a step may go to either side of where you drive."


def _blackjack(env: Any) -> Iterator[str]:
    yield (
        "Cards count their number, pictures 10, an ace 11 where that is not above 21, else 1. "
        "Above 21 you lose at once. When you stick, the dealer draws to 17 or more. The nearest to "
        "21 wins, and cards come back after each draw."
    )
    if getattr(env, "sab", False):
        yield "An ace and a 10 at the start win, unless the dealer has them too."
    elif getattr(env, "natural", False):
        yield "To win with an ace and a 10 at the start is rewarded with 1.5."


_MAPS: dict[str, Callable[[Any], Iterator[str]]] = {
    "FrozenLake": _lake,
    "FrozenLake8x8": _lake,
    "CliffWalking": _cliff,
    "CliffWalkingSlippery": _cliff,
    "Taxi": _taxi,
    "Blackjack": _blackjack,
}
