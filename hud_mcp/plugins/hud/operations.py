"""The operations of an operator on a session, beyond those of its agent: JSON in, JSON out.

They act for the operator, whose sessions answer to no agent; and no operation reaches an agent's
session. Over a wire they need the operator's credential. Without it, they do not exist.
"""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from hud_mcp.base import libraries
from hud_mcp.environment import Environment
from hud_mcp.environment.calls import Phase, bind_calls
from hud_mcp.environment.rows import read_row
from hud_mcp.environment.task import Task
from hud_mcp.environment.world import as_world
from hud_mcp.errors import (
    HudMcpError,
    InvalidTask,
    SessionEnded,
    SourceNotFound,
    StoreFailed,
    did_you_mean,
)
from hud_mcp.plugins.hud.operating import (
    Json,
    call_problem,
    conclude,
    evaluate,
    graded_before,
    is_unused,
    read_cause,
    read_look,
    read_text,
    set_up,
    tell_step,
)
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import live_url
from hud_mcp.record.values import Receipt
from hud_mcp.server.results import error_result, structured_result
from hud_mcp.server.tools.step import as_taken
from hud_mcp.session.caller import CREDENTIAL, OPERATOR, Caller
from hud_mcp.session.receipts import NEXT, digest, ended_text
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.values.action import parse_actions
from hud_mcp.values.call import FunctionConfig, read_json_calls

if TYPE_CHECKING:
    import mcp_types as types

logger = logging.getLogger(__name__)

_METHODS = {
    "hud-mcp/start": "_start",
    "hud-mcp/step": "_step",
    "hud-mcp/evaluate": "_evaluate",
    "hud-mcp/setup": "_set_up",
    "hud-mcp/reset": "_reset",
    "hud-mcp/urls": "_urls",
    "hud-mcp/conclude": "_conclude",
}
OPERATIONS = tuple(_METHODS)
"""The names of the operations."""


class Operations:
    """The operations on the sessions of a process.

    Args:
        sessions: The registry.
        token: The operator's credential over a wire; None admits nobody.
        environment: The environment of the started tasks; by default the one that each task names.
        live_page: Returns the address of a live page by its token; by default the registry's.
    """

    def __init__(
        self,
        sessions: Sessions,
        *,
        token: str | None = None,
        environment: Environment | None = None,
        live_page: Callable[[str], Awaitable[str | None]] | None = None,
    ) -> None:
        self._sessions = sessions
        self._token = token
        self._environment = environment
        self._live_page = live_page or self._served_page
        self._caller = Caller(principal=OPERATOR)

    def admits(self, given: Any) -> bool:
        """Whether this is the operator's credential; the comparison takes constant time."""
        if self._token is None or not isinstance(given, str):
            return False
        known = self._token.encode()
        # JSON may hold half of a surrogate pair, which a strict encoder raises on.
        return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), known)

    async def perform(self, name: str, params: Mapping[str, Any]) -> Json:
        """Perform one of `OPERATIONS`, or raise its HudMcpError; parameters and result are JSON.

        All but a start need `session`, the session's id.
        """
        try:
            perform: Callable[[Mapping[str, Any]], Awaitable[Json]] = getattr(self, _METHODS[name])
            return await perform(params)
        except SessionEnded as exc:
            raise SessionEnded(
                str(exc).replace(NEXT, "call `reset` to start the task again.")
            ) from exc

    async def _start(self, params: Mapping[str, Any]) -> Json:
        """Start a session of `task`, a row or the id of a listed one, in `job` or `job_id`.

        The caller may choose the id, `session`. The same start again with this id gives the same
        session.
        """
        task = self._read_task(params.get("task"))
        session = await self._begin(
            task,
            await self._job_id(params),
            session_id=read_text(params, "session"),
        )
        metadata = params.get("metadata")
        if metadata:
            session.journal.log(f"metadata: {metadata}")
        return self._begun(session)

    async def _step(self, params: Mapping[str, Any]) -> Json:
        """Perform `actions`, and look; a response waits for `evaluate`.

        The result has the number of `steps`. A caller whose reply was lost repeats the call with
        this number as `after_step`; then nothing is done twice.
        """
        actions = parse_actions(params.get("actions"), pointed=False)
        after_step = params.get("after_step")
        if after_step is not None and type(after_step) is not int:
            raise InvalidTask(f"after_step: expected a whole number, got {after_step!r}.")
        session = await self._living(params)
        look = read_look(params, session)
        actions = as_taken(actions, session.environment, self._sessions.environments.values())
        stepped = await session.step(
            actions, look, deliver_image=look.image is not None, after_step=after_step
        )
        return {
            **tell_step(stepped),
            "steps": session.steps,
            "final_response": session.life.measuring.final_response,
        }

    async def _evaluate(self, params: Mapping[str, Any]) -> Json:
        """Measure with the task's own `evaluate`, or with `calls` in its place."""
        found = await self._find(params)
        if isinstance(found, Receipt):
            return graded_before(found)
        given = params.get("calls")
        calls = self._read_calls(given, found.environment, Phase.EVALUATE)
        if given is not None and not calls:
            return {"value": [], "results": [], "reward": None, "override": True}
        measured = await evaluate(found, calls)
        grade = measured.grade
        return {
            "value": measured.value,
            "results": list(measured.results),
            "reward": None if grade is None else grade.reward,
            "grade": None if grade is None else grade.model_dump(mode="json"),
            "override": calls is not None,
        }

    async def _set_up(self, params: Mapping[str, Any]) -> Json:
        session = await self._living(params)
        calls = self._read_calls(params.get("calls"), session.environment, Phase.SETUP)
        look = read_look(params, session)
        return tell_step(await set_up(session, calls, look))

    async def _reset(self, params: Mapping[str, Any]) -> Json:
        """Run the setup again; for a template's task, start another session."""
        found = await self._find(params)
        session = found if isinstance(found, Session) and not found.state.is_over else None
        task = await self._task_of(found)
        calls = None
        if (given := params.get("calls")) is not None:
            environment = self._environment or self._sessions.catalogue.find_environment(task.env)
            calls = self._read_calls(given, environment, Phase.SETUP)
        if session is not None and calls is None and is_unused(session, params):
            return {
                **self._begun(session),
                **tell_step(await session.step((), read_look(params, session))),
            }
        if session is not None and task.prompt is not None:
            shown = tell_step(await set_up(session, calls, read_look(params, session)))
            return {**self._begun(session), **shown}
        if session is not None:
            await conclude(session)
        session = await self._begin(task, read_text(params, "job_id"))
        shown = (
            tell_step(await session.step((), read_look(params, session)))
            if calls is None
            else tell_step(await set_up(session, calls, read_look(params, session)))
        )
        return {**self._begun(session), **shown}

    async def _urls(self, params: Mapping[str, Any]) -> Json:
        found = await self._find(params)
        address = live = None
        if isinstance(found, Session):
            await found.back()
            if found.spec.live_token is not None:
                live = await self._live_page(found.spec.live_token)
            if not found.state.is_over and found.state.shown != "grading":
                world = found.direct_world()
                addresses = await as_world(world).urls()
                address, live = addresses.get("url"), addresses.get("live_url") or live
        return {"url": address if isinstance(address, str) else None, "live_url": live}

    async def _conclude(self, params: Mapping[str, Any]) -> Json:
        """End the session with its last measurement as the grade, else as cancelled.

        `cause` is the operator by default, and `reason` is for the record.
        """
        found = await self._find(params)
        if isinstance(found, Receipt):
            receipt: Receipt | None = found
        else:
            cause, reason = read_cause(params), read_text(params, "reason")
            receipt = await conclude(found, reason=reason, cause=cause)
        if receipt is None:
            return {"outcome": None, "reward": None, "receipt": None}
        return {
            "outcome": receipt.outcome.value,
            "reward": receipt.reward,
            "receipt": receipt.model_dump(mode="json"),
        }

    async def _served_page(self, token: str) -> str | None:
        base = self._sessions.live_base
        return None if base is None else live_url(base, token)

    def _read_task(self, given: Any) -> Task:
        if isinstance(given, str):
            if given not in self._sessions.tasks:
                hint = did_you_mean(given, self._sessions.tasks.ids)
                raise InvalidTask(f"There is no task {given!r}.{hint}")
            return self._sessions.tasks[given]
        return read_row(given, "task")

    async def _job_id(self, params: Mapping[str, Any]) -> str | None:
        """Return the job of a new session; record the job first if it is given and unknown."""
        store, given = self._sessions.store, params.get("job")
        job_id = read_text(params, "job_id")
        if given is not None:
            try:
                job = Job.model_validate(given)
            except ValidationError as exc:
                raise InvalidTask(f"job: {exc.errors(include_url=False)[0]['msg']}.") from None
            job_id = job.id
            if not await _has_job(store, job_id):
                try:
                    await store.add_job(job)
                except StoreFailed:  # another start may have recorded it meanwhile
                    if not await _has_job(store, job_id):
                        raise
        elif job_id is not None and not await _has_job(store, job_id):
            raise InvalidTask(
                f"job_id: no job {job_id!r} is recorded where this runs; pass the job itself, or "
                "record one with create_job."
            )
        return job_id

    async def _begin(
        self,
        task: Task,
        job_id: str | None,
        *,
        session_id: str | None = None,
    ) -> Session:
        drawn = session_id is None
        session_id = session_id or f"sess-{secrets.token_hex(16)}"
        # The run counts as planned before it starts: a start that fails is in the job's
        # denominators.
        if job_id is not None:
            await self._sessions.store.plan_run(job_id, digest(session_id))
        return await self._sessions.start(
            task,
            caller=self._caller,
            session_id=session_id,
            drawn=drawn,
            job_id=job_id,
            environment=self._environment,
        )

    def _begun(self, session: Session) -> Json:
        environment = session.environment
        return {
            "session": session.id,
            "trajectory": session.trajectory_id,
            "task": session.task.model_dump(mode="json"),
            "prompt": session.prompt.text if session.prompt else "",
            "environment": {
                "name": environment.name,
                "version": environment.version,
                "digest": environment.digest,
                "screen": environment.world.has_screen,
                "actions": sorted(environment.world.actions),
            },
        }

    def _read_calls(
        self, given: Any, environment: Environment, phase: Phase
    ) -> tuple[FunctionConfig, ...] | None:
        """Bind calls in place of the task's own; None if none were given."""
        if given is None:
            return None
        try:
            calls = read_json_calls(given)
        except (ValidationError, ValueError) as exc:
            raise InvalidTask(f"{phase}: {call_problem(exc)}.") from None
        return bind_calls(calls, environment.functions, phase=phase, env=environment.name)

    async def _find(self, params: Mapping[str, Any]) -> Session | Receipt:
        session_id = read_text(params, "session")
        if not session_id:
            raise InvalidTask("Pass `session`, the id that the start returned.")
        return await self._sessions.find(session_id, self._caller)

    async def _living(self, params: Mapping[str, Any]) -> Session:
        found = await self._find(params)
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        return found

    async def _task_of(self, found: Session | Receipt) -> Task:
        if isinstance(found, Session):
            return found.task
        return (await self._sessions.store.load_trajectory(found.trajectory)).task


async def _has_job(store: Store, job_id: str) -> bool:
    if not store.exists:
        return False
    try:
        await store.load_job_ids(job_id)
    except SourceNotFound:
        return False
    return True


_CALL = "tools/call"

# Its types are loose: a program that serves the channel alone loads no server of MCP.


def serve_operations(server: Any, operations: Operations, may_operate: Callable[[], bool]) -> None:
    """Perform operations for callers with the credential, or in an operator's request."""
    entry = server.get_request_handler(_CALL)

    async def call(ctx: Any, params: "types.CallToolRequestParams") -> Any:
        credential: Any = (params.meta or {}).get(CREDENTIAL)
        if params.name in OPERATIONS and (operations.admits(credential) or may_operate()):
            return await _perform(operations, params)
        return await entry.handler(ctx, params) if entry is not None else None

    server.add_request_handler(_CALL, libraries.mcp_types.CallToolRequestParams, call)


async def _perform(operations: Operations, params: "types.CallToolRequestParams") -> dict[str, Any]:
    """Perform one operation. An error names its class, which the operator's client raises."""
    name = params.name
    try:
        return structured_result(await operations.perform(name, params.arguments or {}), "Done.")
    except HudMcpError as exc:
        return error_result(str(exc), kind=type(exc).__name__)
    except Exception:  # the boundary of a tool call
        logger.exception("%s failed", name)
        return error_result(f"{name} failed inside the server; its log says why.")
