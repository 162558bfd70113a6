"""How an answer is submitted: recorded with a look at the world, and only then handed over."""

import asyncio
from collections.abc import Callable

from hud_mcp.environment import Environment
from hud_mcp.errors import EnvironmentFailed, LimitReached, StoreFailed
from hud_mcp.observation import Look
from hud_mcp.record.trajectory import utc_now
from hud_mcp.session.attempts import Attempts
from hud_mcp.session.draft import Draft
from hud_mcp.session.events import Answered
from hud_mcp.session.executor import Post
from hud_mcp.session.journal import Journal
from hud_mcp.session.limits import Limits
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.measuring import Measuring
from hud_mcp.session.patience import done_now, within
from hud_mcp.session.stepped import why

__all__ = ["Answers"]

_LOOK_S = 5.0
"""How long a world may take to be looked at as it is answered: the answer does not wait longer."""
_KEEP_S = 20.0
"""The same for its snapshot, which the grade does not need."""

_NOT_SUBMITTED = "The answer was not submitted, because it cannot be recorded."


class Answers:
    """Takes the answer of one life of a session.

    Args:
        environment: Whose world it is.
        world: What is answered of.
        attempts: Begins the call that answers.
        journal: Takes the step that answers.
        limits: How long an answer may be, and a look may take.
        measuring: Takes what was done.
        post: Is told of the answer, once its step is recorded.
        life: In which life of the world.
        log: Takes a line for the session's log.
    """

    def __init__(
        self,
        environment: Environment,
        world: LiveWorld,
        attempts: Attempts,
        *,
        journal: Journal,
        limits: Limits,
        measuring: Measuring,
        post: Post,
        life: int,
        log: Callable[[str], None],
    ) -> None:
        self._environment = environment
        self._world = world
        self._attempts = attempts
        self._journal = journal
        self._limits = limits
        self._measuring = measuring
        self._post = post
        self._life = life
        self._log = log

    def check(self, answer: str, max_bytes: int | None = None) -> None:
        """Refuse an answer that is too long: longer than arguments may be, by default.

        Raises:
            LimitReached: Saying how long it may be.
        """
        most = self._limits.argument_bytes if max_bytes is None else max_bytes
        if (size := len(answer.encode())) > most:
            raise LimitReached(
                f"The answer has {size} bytes; the limit is {most}. Nothing was submitted."
            )

    async def respond(self, answer: str) -> None:
        """Submit an answer, with what the world looks like, if it shows that.

        Raises:
            StoreFailed: It could not be recorded, and was not submitted.
            SessionTaken: The same.
        """
        look = Look()
        draft = self._attempts.begin("response", [{"type": "response", "text": answer}], look).draft
        died = await self.look(draft, look, deliver_image=False)
        await self.submit(answer, draft, died=died)

    @property
    def is_ready(self) -> bool:
        """Whether an answer can be recorded without a task: nothing of it waits its turn."""
        return self._environment.world.looks_at_once and self._journal.is_idle

    def submit_at_once(self, answer: str) -> "asyncio.Future[None]":
        """Submit an answer while this is ready, in the turn of the caller.

        Returns:
            What ends once it is recorded and handed over, or with the error of `respond`. It
            happens also where nobody waits for it.
        """
        actions = [{"type": "response", "text": answer}]
        draft = self._attempts.begin("response", actions, Look()).draft
        draft.see(done_now(self._world.observe(Look(), deliver_image=False)))
        draft.answer()
        told = asyncio.get_running_loop().create_future()
        written = self._journal.hand_over(draft)
        written.add_done_callback(lambda done: self._tell(told, done, draft, answer))
        return told

    def _tell(
        self,
        told: "asyncio.Future[None]",
        written: "asyncio.Future[None]",
        draft: Draft,
        answer: str,
    ) -> None:
        """Hand an answer over that is recorded, and tell the caller, if it still waits."""
        error = asyncio.CancelledError() if written.cancelled() else written.exception()
        if error is None:
            self._hand_over(answer, draft, died=False)
        elif isinstance(error, StoreFailed):
            error = StoreFailed(f"{_NOT_SUBMITTED} {error}")
        if told.done():
            return
        if error is None:
            told.set_result(None)
        else:
            told.set_exception(error)

    async def look(self, draft: Draft, look: Look, *, deliver_image: bool) -> bool:
        """Look at the world as it is answered, and keep its state: neither may stop the answer.

        Returns:
            Whether the world is dead.

        Raises:
            EnvironmentFailed: It died of what this call did before the answer, and it is better
                undone than answered.
        """
        if self._environment.world.opens_nothing:
            seen = await self._world.observe(look, deliver_image=deliver_image)
            draft.see(seen)
            return False
        step_s = self._limits.step_s
        try:
            seen = await within(
                min(_LOOK_S, step_s / 4),
                self._world.observe(look, deliver_image=deliver_image),
            )
            draft.see(seen)
        except EnvironmentFailed as exc:
            if draft.performed and self._attempts.can_resume and not self._world.replays:
                raise
            draft.fail(f"The observation at the answer failed: {exc}", interrupted=False)
            return True
        except Exception as exc:  # noqa: BLE001  # whatever a world raises, the answer stands
            draft.fail(f"The observation at the answer failed: {why(exc)}", interrupted=False)
        try:
            state = self._world.snapshot(self._journal.count)  # also in the middle of an access
            draft.keep(await within(min(_KEEP_S, step_s / 2), state))
        except Exception as exc:  # noqa: BLE001  # the same
            self._log(f"no snapshot of what was answered: {why(exc)}")
        return False

    async def submit(self, answer: str, draft: Draft, *, died: bool) -> None:
        """Record the step that answers, and only then hand the answer over.

        Args:
            answer: What the template receives.
            draft: The step, whose next action it is.
            died: Whether the world is dead.

        Raises:
            StoreFailed: It could not be recorded, and was not submitted.
            SessionTaken: The same.
        """
        await self._world.stop_agent()
        draft.answer()
        try:
            await self._journal.add(draft)
        except StoreFailed as exc:
            self._journal.withdraw()
            draft.unanswer()
            done = ""
            if draft.kind != "response":
                draft.fail("the answer was not submitted", interrupted=draft.interrupted)
                self._journal.owe(draft)
                done = " What came before it in this call was performed: do not repeat it."
            raise StoreFailed(f"{_NOT_SUBMITTED} {exc.__cause__}{done}") from None
        self._hand_over(answer, draft, died=died)

    def _hand_over(self, answer: str, draft: Draft, *, died: bool) -> None:
        """Say that an answer is recorded: the template is resumed with it."""
        self._measuring.note_actions(draft.actions[draft.performed - 1 : draft.performed])
        self._post(
            Answered(
                self._life,
                answer,
                utc_now(),
                died=(self._world.died or "It could not be looked at.") if died else None,
                can_resume=died and self._attempts.can_resume,
            )
        )

    async def keep(self, answer: str, draft: Draft) -> None:
        """Record an answer that an operator will grade; raises as `Journal.add` does."""
        draft.keep_answer(answer)
        self._measuring.note_actions(draft.actions[draft.performed - 1 : draft.performed])
        self._measuring.keep_answer(answer)
        await self._journal.add(draft)
