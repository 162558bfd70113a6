"""All sessions of a process: how they are found, started, expired, and closed at the end."""

from collections.abc import Iterable
from typing import Literal

from hud_mcp.environment import Environment
from hud_mcp.environment.spec import Shared
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.registry import service
from hud_mcp.session.caller import Caller
from hud_mcp.session.capacity import Capacity, Leaving, Lifecycle, OpenEndpoints, Program
from hud_mcp.session.catalogue import Catalogue
from hud_mcp.session.events import Changes
from hud_mcp.session.finding import Finding
from hud_mcp.session.resumption import Resumption
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.session.starts import SessionFactory, Start, Starts
from hud_mcp.store import Store


class Sessions(Finding):
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
        look: The parts of an observation that a step shows, unless its caller chooses.

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
        look: Literal["text", "both"] = "both",
    ) -> None:
        self.catalogue = Catalogue(environments, tasksets)
        self.environments = self.catalogue.environments
        self.limits = limits = limits or Limits()
        self.job_id, self.reloads, self.look = job_id, reloads, look
        self.changes = Changes()
        self.live_base: str | None = None  # the address of live pages, once they are served
        self._is_left = False
        self._lifecycle, self._shared, roster = Lifecycle(), Shared(), Roster()
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
        resumption = Resumption(
            store,
            self.catalogue,
            capacity=self._capacity,
            make_again=factory.make_again,
            roster=roster,
            limits=limits,
            is_wanted=resumes,
        )
        super().__init__(roster, store, resumption)
        self._starts = Starts(roster, self._capacity, factory, self, store)
        self._leaving = Leaving(roster, self._shared, self._lifecycle, store)
        self.move = self._leaving.move

    @property
    def tasks(self) -> Taskset:
        """The tasks that can be started by id."""
        return self.catalogue.tasks

    async def prepare(self, environments: Iterable[Environment] | None = None) -> None:
        """Find out what lists need, before a server is built: of all environments, or of these."""
        for environment in self.environments.values() if environments is None else environments:
            await environment.world.prepare(environment)
            if environment.has_hooks or environment.capabilities:
                await service("published tools")(self, environment)

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
        self.catalogue.become(catalogue)
        self._capacity.list(self.tasks)

    @property
    def takes_new(self) -> bool:
        """Whether new sessions may start: not once the server is being left, or closed."""
        return not (self._is_left or self._capacity.is_closed)

    async def initialize(self, environment: Environment) -> None:
        """Run an environment's hooks for its start, once; a call after a failure tries again."""
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

        A provisional one expires early until a caller acts on it, and leaves first at a limit. The
        same call again with a chosen `session_id`, unless that was `drawn` for this call alone,
        returns the session that the first one began. A named job gives no further try of a task.

        If this call is cancelled, the half-made session ends as cancelled. If its caller chose the
        id, the start goes on, and the same call again returns the session.

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
        environment = environment or self.catalogue.environment_of(task)
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
        await self.add_to_connection(session, caller)
        return session

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
        self._capacity.is_closed = True
        self._resumption.stop()
        self._program.stop()
        self._shared.contention.stop()
        try:
            await self._leaving.close(endpoints)
        finally:
            self.roster.close()
