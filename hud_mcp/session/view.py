"""What is told of a session: what it is made of, what it is doing, how it ended."""

from datetime import datetime

from hud_mcp.environment import Environment
from hud_mcp.errors import NoScreen
from hud_mcp.observation import Screenshot
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.core import Core
from hud_mcp.session.life import SessionSpec
from hud_mcp.session.limits import Limits
from hud_mcp.session.once import Once
from hud_mcp.session.phase import Phase, SessionState
from hud_mcp.session.receipts import ended_text
from hud_mcp.task import Task
from hud_mcp.template import Prompt, Template

__all__ = ["SessionView"]


class SessionView:
    """What is told of one session. Each answer follows from its state, and is given here alone.

    Args:
        spec: The parts of the session.
        core: Its state and its parts.
    """

    def __init__(self, spec: SessionSpec, core: Core) -> None:
        self._spec = spec
        self._core = core

    @property
    def environment(self) -> Environment:
        """Whose world and template it uses."""
        return self._spec.environment

    @property
    def task(self) -> Task:
        """What is asked."""
        return self._spec.task

    @property
    def template(self) -> Template:
        """What asks and grades."""
        return self._core.life.template

    @property
    def limits(self) -> Limits:
        """What bounds it."""
        return self._spec.limits

    @property
    def reward_policy(self) -> str:
        """Who sees the reward."""
        return self._spec.reward_policy

    @property
    def trajectory_id(self) -> str:
        """Its record's id."""
        return self._spec.trajectory_id

    @property
    def name(self) -> str:
        """Its short name: it tells sessions apart, and opens none."""
        return self._spec.name

    @property
    def secret_digest(self) -> str:
        """The SHA-256 of its id."""
        return self._spec.secret_digest

    @property
    def live_token(self) -> str | None:
        """Of its live page."""
        return self._spec.live_token

    @property
    def started_at(self) -> datetime:
        """When it began."""
        return self._spec.started_at

    @property
    def state(self) -> SessionState:
        """What it is doing."""
        return self._core.state.shown

    @property
    def is_open(self) -> bool:
        """Whether it can be acted on, and nothing ends it yet."""
        return self._core.state.phase is Phase.OPEN

    @property
    def has_world(self) -> bool:
        """Whether its world is open."""
        return self._core.life.world.is_open

    @property
    def provisional(self) -> bool:
        """Whether nobody has acted on it, so that it expires early."""
        return self._core.state.provisional

    @property
    def prompt(self) -> Prompt | None:
        """What it asks; None until it does."""
        return self._core.prompt

    @property
    def receipt(self) -> Receipt | None:
        """How it ended; None until that is recorded."""
        return self._core.state.receipt

    @property
    def told(self) -> str | None:
        """What is told of its end beside the receipt."""
        return self._core.state.told

    @property
    def ended(self) -> Once:
        """Set once its end may be read."""
        return self._core.ended

    @property
    def ended_at(self) -> datetime | None:
        """When it ended; None until it has."""
        return None if self.receipt is None else self.receipt.ended_at

    @property
    def touched_s(self) -> float:
        """When somebody acted on it last, by the clock of `time.monotonic`."""
        return self._core.touched_s

    @property
    def waited_at_touch_s(self) -> float:
        """How long this machine had let the process wait until then."""
        return self._core.waited_at_touch_s

    @property
    def is_over(self) -> bool:
        """Whether nothing can be done with it here any more."""
        return self._core.state.is_over

    @property
    def is_let_go(self) -> bool:
        """Whether it goes on without this object: it waits in its record, or another server has it.

        One that is being let go of is closed first: `closed` returns when it can be had again.
        """
        return self._core.state.is_let_go

    @property
    def is_operated(self) -> bool:
        """Whether an operator started it: an answer is kept then, and `conclude` ends it."""
        return self._spec.is_operated

    @property
    def final_response(self) -> str | None:
        """The answer that an operator will grade; None before there is one."""
        return self._core.life.measuring.final_response

    @property
    def taken(self) -> bool:
        """Whether another server process has taken it over; here, it is over."""
        return self._core.state.taken

    @property
    def latest(self) -> Screenshot | None:
        """The picture of the last observation; None before any, and after the end."""
        return None if self.is_over else self._core.life.world.latest

    @property
    def screen_size(self) -> tuple[int, int] | None:
        """Width and height of the agent's pictures, in pixels; None without a screen.

        None too where that is not known before one is taken.
        """
        shows = self.environment.world.has_screen and not self.is_over
        return self._core.life.world.screen_size if shows else None

    @property
    def job_id(self) -> str | None:
        """The job that it belongs to, or None."""
        return self._spec.job_id

    @property
    def steps(self) -> int:
        """How many steps there were."""
        return self._core.journal.count

    @property
    def busy(self) -> bool:
        """Whether a call is under way, or the task is being graded."""
        life = self._core.life
        return self._core.state.is_at_work or life.commands.count + life.direct.under_way > 0

    @property
    def waiting_calls(self) -> int:
        """How many calls wait or run."""
        return self._core.life.commands.count

    @property
    def is_behind(self) -> bool:
        """Whether its record lacks something that was done in its world directly."""
        return self._core.journal.is_behind

    @property
    def can_park(self) -> bool:
        """Whether another server process could resume it."""
        journal, world = self._core.journal, self._core.life.world
        return self._core.state.may_be_taken(
            is_behind=journal.is_behind,
            can_resume=world.can_resume(journal.changed, journal.snapshot_step),
        )

    @property
    def is_closed(self) -> bool:
        """Whether its world is closed and its record complete, as far as it could be written."""
        return self._core.state.is_closed

    async def closed(self) -> None:
        """Wait until the world is closed, for good."""
        await self._core.until(lambda state: state.is_closed)

    async def back(self) -> None:
        """Wait until the world has been resumed, where it has died."""
        if self._core.state.is_coming_back:
            await self._core.until(lambda state: not state.is_coming_back)

    @property
    def owes(self) -> bool:
        """Whether it has ended, and the record does not say so yet."""
        return self._core.journal.owes

    def _already_answered(self) -> str:
        state = self._core.state
        if not state.is_graded:
            return ended_text(state.receipt, state.told)
        if state.answered_at is None:
            return "The task ended by itself and is being graded; call task_status for the result."
        at = state.answered_at
        return f"An answer was submitted at {at:%H:%M:%S} UTC and is being graded."

    def _over_text(self) -> str:
        state = self._core.state
        if state.taken:
            return (
                "This server does not run this session any more: another one took it over, or it "
                "has ended. Call again with its id."
            )
        if state.phase is Phase.PARKED or state.is_leaving:
            why = (state.phase is Phase.PARKED and state.told) or "This server is stopping."
            return (
                f"{why} The session waits in its record, as it was after its last reply: call "
                "again with its id."
            )
        return ended_text(state.receipt, state.told)

    def need_screen(self) -> None:
        """Refuse a picture where there is no screen.

        Raises:
            NoScreen: Saying what to do instead.
        """
        if not self.environment.world.has_screen:
            raise NoScreen(
                f"Environment {self.environment.name!r} has no screen. Read the prompt, use its "
                "tools or `step`, and finish with `response`."
            )
