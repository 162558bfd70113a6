"""The two ends of a session's record: how it begins, and the receipt that it ends with."""

import logging

from hud_mcp.errors import LimitReached, SessionTaken, StoreFailed
from hud_mcp.record.trajectory import Receipt, utc_now
from hud_mcp.session.journal import Journal
from hud_mcp.session.log import take_rest
from hud_mcp.session.receipts import Strain, make_receipt
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.spec import SessionSpec

__all__ = ["RecordEnds"]

logger = logging.getLogger(__name__)


class RecordEnds:
    """Writes the beginning and the end of one session.

    Args:
        spec: The parts of the session.
        journal: Writes them.
        strain: What the machine's load did to it.
    """

    __slots__ = ("_journal", "_spec", "_strain")

    def __init__(self, spec: SessionSpec, journal: Journal, strain: Strain) -> None:
        self._spec = spec
        self._journal = journal
        self._strain = strain

    async def begin(self, prompt: str | None = None) -> None:
        """Record that it has begun, once; with what it asks, where that is known by then.

        Raises:
            LimitReached, StoreFailed: As for `Journal.begin`.
        """
        spec = self._spec
        await self._journal.begin(
            lambda store: store.add_session(
                spec.begun(prompt),
                secret_digest=spec.secret_digest,
                principal=spec.principal,
                token_digest=spec.token_digest,
                reward_policy=spec.reward_policy,
                environment_digest=spec.environment.digest,
                live_token=spec.live_token,
                start_key=spec.start_key,
                tries=spec.tries,
            )
        )

    def log_rest(self) -> None:
        """Log what it has printed since its last line's end."""
        if (rest := take_rest(self._journal.log)) is not None:
            self._journal.log(rest)

    async def end(self, end: SessionEnd, answer: str | None, *, is_begun: bool) -> Receipt | None:
        """Record how it ends; where that cannot be written, it is owed.

        Args:
            end: How.
            answer: What was submitted; None where nothing was.
            is_begun: Whether its beginning is written for sure.

        Returns:
            The receipt that stands, or is owed; None where its beginning cannot be recorded:
            nobody was told of it then, and nothing is to be ended.
        """
        try:
            if not is_begun:
                await self.begin()
        except (StoreFailed, LimitReached) as exc:
            logger.info("%s", exc)  # whoever starts it is told
            return None
        receipt = self._receipt(end, answer)
        if end.error:
            logger.warning("%s: %s", end.outcome, end.error)
        try:
            return await self._journal.end(receipt) or receipt
        except (StoreFailed, SessionTaken) as exc:
            logger.error("%s", exc)  # noqa: TRY400  # its text says everything
        return receipt

    def _receipt(self, end: SessionEnd, answer: str | None) -> Receipt:
        spec = self._spec
        return make_receipt(
            end,
            trajectory=spec.trajectory_id,
            environment=spec.environment.name,
            environment_digest=spec.environment.digest,
            task=spec.task,
            answer=answer,
            reward_policy=spec.reward_policy,
            started_at=spec.started_at,
            ended_at=utc_now(),
            attempt=self._journal.attempt,
            notes=(*self._journal.snapshots.notes(), *self._strain.notes()),
            strain=self._strain,
        )
