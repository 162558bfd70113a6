"""Tasks whose world is ended from outside, or by what is done in it."""

# ruff: noqa: ANN001, ANN201, ANN202  # as authors write

from board_world import Board, BoardSpec, has_notes, write_notes

from hud_mcp import Action, ActionEffect, Environment, Look, Observation, Opening
from hud_mcp.errors import EnvironmentFailed


class FragileBoard(Board):
    """A board whose wall is torn down, between two calls, once it has so many notes."""

    lasts = 1_000_000
    torn = False

    @property
    def died(self) -> str | None:
        """Why it can be used no more."""
        return "The wall was torn down." if self.torn else None

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action."""
        self._check_wall()
        return await super().act(action)

    async def observe(self, look: Look) -> Observation:
        """Say what is on the board."""
        self._check_wall()
        seen = await super().observe(look)
        self.torn = len(self.notes) >= self.lasts
        return seen

    def _check_wall(self) -> None:
        if self.died:
            raise EnvironmentFailed(self.died)


class FragileSpec(BoardSpec):
    """Declares such boards; only the first one has a wall that is torn down."""

    world_type = FragileBoard
    _opened = 0

    async def open(self, opening: Opening) -> FragileBoard:
        """Put one up."""
        board = FragileBoard(opening)
        if not self._opened:
            board.lasts = 3
        self._opened += 1
        return board


env = Environment("fragile", world=FragileSpec())


@env.template()
async def notes(board: FragileBoard, number: int = 6):
    """Ask for notes, and grade what is on the board."""
    answer = yield f"Write {number} notes."
    yield 1.0 if has_notes(board, number) and answer == "done" else 0.0


@notes.oracle
async def _(agent, number):
    return await write_notes(agent, number)


@env.template()
async def jumps(board: Board):
    """Ask for what ends the board."""
    yield "Jump."
    yield 1.0


@jumps.oracle
async def _(agent):
    for _ in range(2):
        try:
            await agent.act({"type": "custom", "action": "break"})
        except Exception as exc:  # noqa: BLE001  # it tries again, whatever it is told
            print(exc)
    return "done"
