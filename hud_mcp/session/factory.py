"""What makes sessions, with all that those of one process have in common."""

from collections.abc import Iterable

from hud_mcp.environment import Environment
from hud_mcp.errors import IdTaken
from hud_mcp.registry import service
from hud_mcp.session.caller import Caller
from hud_mcp.session.capacity import Count
from hud_mcp.session.changes import Changes
from hud_mcp.session.group_setup import GroupSetups
from hud_mcp.session.limits import Limits
from hud_mcp.session.reaper import Reaper
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.task import Task
from hud_mcp.world import Shared

__all__ = ["SessionFactory"]


class SessionFactory:
    """Makes sessions, enters them among those of the process, and has them looked after.

    Args:
        roster: Who is here.
        reaper: Looks after them.
        store: Where they are recorded.
        shared: What their worlds share.
        limits: What bounds them.
        reward_policy: Who sees rewards; None for the templates' and environments' own.
        local_hosts: Hosts that any row may open, of this machine and of private networks too.
        changes: Is told what they record.
    """

    def __init__(
        self,
        roster: Roster,
        reaper: Reaper,
        *,
        store: Store,
        shared: Shared,
        limits: Limits,
        reward_policy: str | None,
        local_hosts: Iterable[str],
        changes: Changes,
    ) -> None:
        self._roster = roster
        self._reaper = reaper
        self._store = store
        self._shared = shared
        self._limits = limits
        self._reward_policy = reward_policy
        self._local_hosts = tuple(local_hosts)
        self._changes = changes
        self._setups: GroupSetups = service("group setups")(store)

    def make(
        self,
        task: Task,
        environment: Environment,
        *,
        caller: Caller,
        count: Count,
        job_id: str | None,
        provisional: bool = False,
        session_id: str | None = None,
    ) -> Session:
        """Make a new session.

        Raises:
            IdTaken: Another one here has the id that was chosen.
        """
        own = environment.template_of(task).reward
        policy = self._reward_policy or own or environment.reward or "on_submit"
        session = Session(
            environment,
            task,
            caller=caller,
            store=self._store,
            shared=self._shared,
            limits=self._limits,
            reward_policy=policy,
            job_id=job_id,
            provisional=provisional,
            session_id=session_id,
            start_key=count.key,
            tries=count.tries,
            local_hosts=self._local_hosts,
            program=self._reaper.watch(),
            group_setup=self._setups.of(task, environment, caller.principal, job_id),
            changes=self._changes,
        )
        if session_id is not None and session.secret_digest in self._roster:
            raise IdTaken("Another session has this id; nothing was recorded.")
        self._add(session)
        return session

    def make_again(
        self, environment: Environment, stored: StoredSession, caller: Caller
    ) -> Session:
        """Make the session that resumes a record, which is this process's now."""
        session = Session(
            environment,
            stored.trajectory.task,
            caller=caller,
            store=self._store,
            shared=self._shared,
            limits=self._limits,
            reward_policy=stored.reward_policy,
            job_id=stored.trajectory.job_id,
            stored=stored,
            local_hosts=self._local_hosts,
            program=self._reaper.watch(),
            changes=self._changes,
        )
        self._add(session)
        return session

    def _add(self, session: Session) -> None:
        self._roster.add(session)
        self._shared.contention.start()
