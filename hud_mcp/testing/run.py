"""Every check of the contract in one call, without pytest."""

from collections.abc import Sequence

from hud_mcp.environment.world import WorldSpec
from hud_mcp.testing.checks import ContractBroken
from hud_mcp.testing.contract import WorldContract
from hud_mcp.values.action import Action

__all__ = ["check_world"]


class _Given(WorldContract):
    """The contract of one spec, with samples that were given."""

    def __init__(
        self,
        spec: WorldSpec,
        samples: tuple[Sequence[Action], ...],
        size: tuple[int, int] | None,
    ) -> None:
        changing, kept, refused, other = samples
        self.make_spec = lambda: spec
        self.changing_actions = lambda: changing
        self.kept_actions = lambda: kept
        self.refused_actions = lambda: refused
        self.other_actions = lambda: other
        self.css_size = lambda: size


async def check_world(
    spec: WorldSpec,
    *,
    changing_actions: Sequence[Action] = (),
    refused_actions: Sequence[Action] = (),
    kept_actions: Sequence[Action] | None = None,
    other_actions: Sequence[Action] = (),
    css_size: tuple[int, int] | None = None,
) -> None:
    """Make every check of the contract on one kind of world.

    Args:
        spec: The declaration whose worlds are tested.
        changing_actions: As `WorldContract.changing_actions`.
        refused_actions: As `WorldContract.refused_actions`.
        kept_actions: As `WorldContract.kept_actions`; the changing ones by default.
        other_actions: As `WorldContract.other_actions`.
        css_size: As `WorldContract.css_size`.

    Raises:
        ContractBroken: Naming each check that failed, with what it claims and why it failed.
    """
    kept = changing_actions if kept_actions is None else kept_actions

    given = _Given(spec, (changing_actions, kept, refused_actions, other_actions), css_size)
    broken: list[str] = []
    for name in sorted(dir(WorldContract)):
        if name.startswith("test_"):
            check = getattr(given, name)
            try:
                await check()
            except Exception as exc:  # noqa: BLE001  # whatever a wrong world raises is the finding
                claim = str(check.__doc__).partition("\n")[0]
                broken.append(f"{name}: {claim}\n  {type(exc).__name__}: {exc}")
    if broken:
        raise ContractBroken(f"{spec.name} breaks the contract:\n" + "\n".join(broken))
