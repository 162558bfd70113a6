"""All sessions of a process: how they are found, started, expired, and closed at the end."""

from collections.abc import Iterable

from hud_mcp.environment import Environment
from hud_mcp.environment.spec import Shared
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.record.values import Receipt
from hud_mcp.session.caller import Caller
from hud_mcp.session.capacity import Capacity, Leaving, Lifecycle, OpenEndpoints, Program
from hud_mcp.session.catalogue import Catalogue
from hud_mcp.session.events import Changes
from hud_mcp.session.finding import Finding, SharedConnections
from hud_mcp.session.resumption import Resumption
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.session.starts import SessionFactory, Start, Starts
from hud_mcp.store import Store
from hud_mcp.store.lease import LEASE_S


class Sessions:
    """The registry. It belongs to the process, not to a connection or a server's lifespan.

    Args:
        environments: The environments that can be started.
        store: The record of everything.
        tasksets: Tasks that can be started by id.
        limits: The bounds of all sessions.
        reward_policy: Who sees rewards; None for the templates' and environments' own defaults,
            then `on_submit`.
        job_id: The job that every session belongs to, or None.
        tries: The most starts of the same task by one principal, in a job or in none; None for any
            number. The operator's starts have no bound.
        resumes: Whether to grade or end, unasked, the sessions that other servers on this store
            left. If not, only requested sessions are resumed.
        local_hosts: Hosts that the row of any task may open, of this machine and of private
            networks too; a row that is not the user's own may name no others of those.
        reloads: Whether `replace` is going to be called, so that clients learn of changed lists.

    Raises:
        InvalidTask: A listed task names an environment, a template or an argument that is not
            there, or two tasks have one id.
    """

    def __init__(
        self,
        environments: Iterable[Environment],
        *,
        store: Store,
        tasksets: Iterable[Taskset] = (),
        limits: Limits | None = None,
        reward_policy: str | None = None,
        job_id: str | None = None,
        tries: int | None = None,
        resumes: bool = True,
        local_hosts: Iterable[str] = (),
        reloads: bool = False,
    ) -> None:
        self._catalogue = catalogue = Catalogue(environments, tasksets)
        self.environments = catalogue.environments
        self.tasks = catalogue.tasks
        self.find_environment = catalogue.find_environment
        self.environment_of = catalogue.environment_of
        self.notes = catalogue.notes
        self.mint = catalogue.mint
        self.resolve_template = catalogue.resolve_template
        self.store = store
        self.limits = limits = limits or Limits()
        self.reward_policy = reward_policy
        self.job_id = job_id
        self.reloads = reloads
        self.changes = Changes()
        self._live_base: str | None = None
        self._is_left = False
        self._lifecycle, self._shared, self.roster = Lifecycle(), Shared(), Roster()
        roster = self.roster
        self.living_of, self.untouched = roster.living_of, roster.untouched
        self._capacity = Capacity(
            roster, store, self._lifecycle, limits=limits, tasks=self.tasks, tries=tries
        )
        self._program = Program(roster)
        factory = SessionFactory(
            roster,
            store=store,
            shared=self._shared,
            limits=limits,
            reward_policy=reward_policy,
            local_hosts=local_hosts,
            changes=self.changes,
            program=self._program.watch,
        )
        self._resumption = Resumption(
            store,
            catalogue,
            capacity=self._capacity,
            make_again=factory.make_again,
            roster=roster,
            limits=limits,
            is_wanted=resumes,
        )
        self._finding = finding = Finding(roster, store, self._resumption)
        self.here, self.key_of, self.list_own = finding.here, finding.key_of, finding.list_own
        self.find_own = finding.find_own
        self.current, self.resume = finding.current, finding.resume
        self._starts = Starts(roster, self._capacity, factory, finding, store)
        self._leaving = Leaving(roster, self._shared, self._lifecycle, store)
        self.move = self._leaving.move

    def begin(self) -> None:
        """Begin to grade or end what earlier servers left; else the first session begins it."""
        self._resumption.begin()

    def replace(
        self, environments: Iterable[Environment], tasksets: Iterable[Taskset] = ()
    ) -> None:
        """Serve these environments from now on. A session goes on in its first version.

        Raises:
            InvalidTask: As for a new registry; nothing has changed.
            InvalidEnvironment: They cannot be served together; nothing has changed.
        """
        before = Catalogue(self.environments.values())
        before.tasks = self.tasks
        self._serve(Catalogue(environments, tasksets))
        try:
            self.changes.tell_replaced()
        except HudMcpError:
            self._serve(before)
            raise

    def _serve(self, catalogue: Catalogue) -> None:
        self._catalogue.become(catalogue)
        self.tasks = self._catalogue.tasks
        self._capacity.list(self.tasks)

    @property
    def takes_new(self) -> bool:
        """Whether new sessions may start: not once the server is being left, or closed."""
        return not (self._is_left or self._capacity.is_closed)

    @property
    def live_base(self) -> str | None:
        """The address of the live pages of sessions, or None."""
        return self._live_base

    def serve_live_at(self, base: str) -> None:
        """Set the address of the live pages of sessions."""
        self._live_base = base

    async def initialize(self, environment: Environment) -> None:
        """Run an environment's initialize hooks, once in the life of the process.

        Raises:
            EnvironmentFailed: A hook failed; the next call begins with the first again.
        """
        await self._lifecycle.start(environment, self.limits.setup_s)

    async def start(
        self,
        task: Task,
        *,
        caller: Caller,
        provisional: bool = False,
        session_id: str | None = None,
        drawn: bool = False,
        job_id: str | None = None,
        named_job_id: str | None = None,
        environment: Environment | None = None,
    ) -> Session:
        """Start a session and return it with its prompt.

        If this call is cancelled, the half-made session ends as cancelled. If its caller chose the
        id, the start goes on, and the same call again returns the session.

        Args:
            task: The task.
            caller: The caller who starts it.
            provisional: Whether the session expires early until a caller acts on it, and leaves
                first at a limit.
            session_id: An id that the caller chose. The same call again, after a lost reply,
                returns the session that the first one began. Of several calls at once, one begins
                it.
            drawn: Whether that id was drawn for this call alone, so that no caller can ask again.
            job_id: The session's job, in place of the registry's.
            named_job_id: A job that the caller has named. It gives no further try of a task.
            environment: The task's environment, if the catalogue lacks it.

        Raises:
            InvalidTask, InvalidContext: The task does not fit its environment, or another id is to
                be chosen: this one is of another form, caller or task. Nothing ran.
            SessionEnded, SessionBusy: The chosen id is of a session that has ended, or that cannot
                be had here now.
            LimitReached: Too many sessions are open, or the task was started as often as it may be.
            EnvironmentFailed: The setup failed; that is recorded.
            StoreFailed: Nothing can be recorded, so nothing was started.
        """
        if caller.is_agent:
            raise InvalidTask("This credential is for one session, and cannot start another.")
        environment = environment or self.environment_of(task)
        self._resumption.watch()
        start = Start(
            environment.bind(task),
            environment,
            caller,
            job_id=named_job_id or job_id or self.job_id,
            counted_in=job_id or self.job_id,
            provisional=provisional,
            session_id=session_id,
        )
        if session_id is None or drawn:
            session = await self._starts.begin(start)
        else:
            session = await self._starts.once(start, session_id)
        await self._finding.add_to_connection(session, caller)
        return session

    async def find(
        self, session_id: str | None, caller: Caller, *, wait_s: float | None = None
    ) -> Session | Receipt:
        """Return a caller's session, at its last recorded step, or its receipt if it ended before.

        A session that waits in its record is resumed first, at most `wait_s`. Callers that ask
        meanwhile wait for that, in their order. If this call is cancelled, it is resumed
        nevertheless.

        Raises:
            SessionNotFound: No session of this caller has the id. An unknown id and another
                caller's give the same text.
            SessionBusy: Another server process runs the session.
            SessionResuming: The session is still being resumed.
            SessionEnded: The session's server has ended, and it could not be resumed.
        """
        return await self._finding.find(session_id, caller, wait_s=wait_s)

    def share_connections(self, connections: SharedConnections) -> None:
        """Search the sessions of a connection there, because other processes serve it too."""
        self._finding.share_connections(connections)
        self._resumption.wait_to_take(LEASE_S + 5.0)

    def take_no_more(self) -> None:
        """Resume nothing unasked any more: this server is being left."""
        self._is_left = True
        self._resumption.stop_looking()

    def kill(self) -> None:
        """Kill the worlds' shared processes at once, from any thread, without a record."""
        self._shared.kill()

    async def close(self, endpoints: Iterable[OpenEndpoints] = ()) -> None:
        """Leave every session to the next server, within a bound, then close shared services.

        Running calls have a moment to finish. A session that no other process could resume ends as
        lost. A session that was only offered, and never acted on, expires. `endpoints` are closed
        first.
        """
        self.changes.close()
        self._capacity.close()
        self._resumption.stop()
        self._program.stop()
        self._shared.contention.stop()
        try:
            await self._leaving.close(endpoints)
        finally:
            self.roster.close()
