"""How an answer is submitted: recorded with a look at the world, and only then handed over."""

from collections.abc import Callable

from hud_mcp.errors import EnvironmentFailed, LimitReached, StoreFailed
from hud_mcp.observation import Look
from hud_mcp.record.trajectory import utc_now
from hud_mcp.session.attempts import Attempts
from hud_mcp.session.draft import Draft, why
from hud_mcp.session.events import Answered, Post
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.measuring import FINAL_RESPONSE, Measuring
from hud_mcp.session.patience import within
from hud_mcp.session.spec import SessionSpec

__all__ = ["Answers"]

_LOOK_S = 5.0
"""How long a world may take to be looked at as it is answered: the answer does not wait longer."""
_KEEP_S = 20.0
"""The same for its snapshot, which the grade does not need."""


class Answers:
    """Takes the answer of one life of a session.

    Args:
        spec: The parts of the session.
        world: What is answered of.
        attempts: Begins the call that answers.
        journal: Takes the step that answers.
        measuring: Takes what was done.
        post: Is told of the answer, once its step is recorded.
        life: In which life of the world.
        log: Takes a line for the session's log.
    """

    __slots__ = ("_attempts", "_journal", "_life", "_log", "_measuring", "_post", "_spec", "_world")

    def __init__(
        self,
        spec: SessionSpec,
        world: LiveWorld,
        attempts: Attempts,
        *,
        journal: Journal,
        measuring: Measuring,
        post: Post,
        life: int,
        log: Callable[[str], None],
    ) -> None:
        self._spec = spec
        self._world = world
        self._attempts = attempts
        self._journal = journal
        self._measuring = measuring
        self._post = post
        self._life = life
        self._log = log

    def check(self, answer: str, max_bytes: int | None = None) -> None:
        """Refuse an answer that is too long: longer than arguments may be, by default.

        Raises:
            LimitReached: Saying how long it may be.
        """
        most = self._spec.limits.argument_bytes if max_bytes is None else max_bytes
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
        draft = self._attempts.begin("response", [{"type": "response", "text": answer}], look)
        died = await self.look(draft, look, deliver_image=False)
        await self._submit(answer, draft, died=died)

    async def look(self, draft: Draft, look: Look, *, deliver_image: bool) -> bool:
        """Look at the world as it is answered, and keep its state: neither may stop the answer.

        Returns:
            Whether the world is dead.

        Raises:
            EnvironmentFailed: It died of what this call did before the answer, and it is better
                undone than answered.
        """
        world = self._world
        if world.opens_nothing:
            draft.observation = await world.observe(look, deliver_image=deliver_image)
            return False
        step_s = self._spec.limits.step_s
        try:
            observing = world.observe(look, deliver_image=deliver_image)
            draft.observation = await within(min(_LOOK_S, step_s / 4), observing)
        except EnvironmentFailed as exc:
            if draft.performed and self._attempts.can_resume and not world.replays:
                raise
            draft.fail(f"The observation at the answer failed: {exc}", interrupted=False)
            return True
        except Exception as exc:  # noqa: BLE001  # whatever a world raises, the answer stands
            draft.fail(f"The observation at the answer failed: {why(exc)}", interrupted=False)
        try:
            state = world.snapshot(self._journal.count)  # also in the middle of an access
            draft.snapshot = await within(min(_KEEP_S, step_s / 2), state)
        except Exception as exc:  # noqa: BLE001  # the same
            self._log(f"no snapshot of what was answered: {why(exc)}")
        return False

    async def take(self, answer: str, draft: Draft, *, died: bool) -> None:
        """Take the answer that ends a step: submit it, or keep it for the operator who grades.

        Args:
            answer: What the template receives.
            draft: The step, whose next action it is.
            died: Whether the world is dead.

        Raises:
            StoreFailed: It could not be recorded, and was not submitted.
            SessionTaken: The same.
        """
        if not self._spec.is_operated:
            await self._submit(answer, draft, died=died)
            return
        draft.performed += 1
        draft.info[FINAL_RESPONSE] = answer
        self._add_to_history(draft)
        self._measuring.final_response = answer
        await self._journal.add(draft)

    async def _submit(self, answer: str, draft: Draft, *, died: bool) -> None:
        """Record the step that answers, and only then hand the answer over."""
        await self._world.stop_agent()
        draft.performed += 1
        draft.answers = True
        try:
            await self._journal.add(draft)
        except StoreFailed as exc:
            self._journal.withdraw()
            draft.performed -= 1
            draft.answers = False
            done = ""
            if draft.kind != "response":
                draft.fail("the answer was not submitted", interrupted=draft.interrupted)
                self._journal.owe(draft)
                done = " What came before it in this call was performed: do not repeat it."
            raise StoreFailed(
                "The answer was not submitted, because it cannot be recorded. "
                f"{exc.__cause__}{done}"
            ) from None
        self._add_to_history(draft)
        can_resume = died and self._attempts.can_resume
        reason = (self._world.died or "It could not be looked at.") if died else None
        self._post(Answered(self._life, answer, utc_now(), died=reason, can_resume=can_resume))

    def _add_to_history(self, draft: Draft) -> None:
        """Add the answer to what functions may ask for."""
        self._measuring.note_actions(draft.actions[draft.performed - 1 : draft.performed])
