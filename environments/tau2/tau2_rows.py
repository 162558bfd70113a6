"""One row of tau2: what its user wants, how its databases begin, and what is graded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import orjson
from tau2_desk import Books, Domain

from hud_mcp import ActionFailed, dataset_file

__all__ = ["Case", "read_case", "side_of"]

DEFAULT_BASIS = ("DB", "COMMUNICATE")
"""The grading of a row that names nothing."""


@lru_cache(maxsize=4)
def _files(sha256: str) -> dict[str, Any]:
    """The files of one business: `db`, `user_db`, `policy`, and `tasks` by their ids."""
    return orjson.loads(dataset_file(sha256).read_bytes())


@dataclass(frozen=True)
class Case:
    """One row, with the files of its business.

    Attributes:
        domain: Its business.
        raw: The row.
        policy: What binds the agent.
    """

    domain: Domain
    raw: Mapping[str, Any]
    policy: str
    _db: Mapping[str, Any]
    _user_db: Mapping[str, Any]

    @property
    def criteria(self) -> Mapping[str, Any]:
        """The graded parts."""
        return self.raw.get("evaluation_criteria") or {}

    @property
    def basis(self) -> frozenset[str]:
        """Which of the criteria make the reward."""
        named = self.criteria.get("reward_basis")
        return frozenset(DEFAULT_BASIS if named is None else named)

    @property
    def actions(self) -> list[Mapping[str, Any]]:
        """The reference actions."""
        return list(self.criteria.get("actions") or ())

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """The reference actions, and the calls that meet assertions which these leave unmet."""
        return [*self.actions, *self._unmet]

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The texts that the user is told."""
        return self.raw.get("user_scenario") or {}

    @property
    def instructions(self) -> Mapping[str, Any]:
        """The user's wishes and knowledge; a plain text is the reason for the call."""
        told = self.scenario.get("instructions") or ""
        return {"reason_for_call": told} if isinstance(told, str) else told

    @property
    def history(self) -> list[Mapping[str, Any]]:
        """The messages with which the conversation begins, calls of tools among them."""
        return list((self.raw.get("initial_state") or {}).get("message_history") or ())

    @property
    def preparation(self) -> list[Mapping[str, Any]]:
        """The calls with which the row begins."""
        return list((self.raw.get("initial_state") or {}).get("initialization_actions") or ())

    def names(self, tool: str) -> bool:
        """Whether the policy names a tool, so that the agent knows of it."""
        return tool in self.policy

    def begin(self) -> Books:
        """Return the databases as the row begins."""
        books = Books(self.domain, self._db, self._user_db)
        state = self.raw.get("initial_state") or {}
        data = state.get("initialization_data") or {}
        books.desk.merge(data.get("agent_data") or {})
        books.user.merge(data.get("user_data") or {})
        for call in self.preparation:
            books.call(call["env_type"], call["func_name"], call["arguments"])
        for message in self.history:
            for call in message.get("tool_calls") or ():
                books.call(message["role"], call["name"], call["arguments"])
        return books

    def reference(self) -> tuple[Books, list[str]]:
        """Return the databases after all steps, and each step that fails."""
        return self._played(self.steps)

    def _played(self, steps: Iterable[Mapping[str, Any]]) -> tuple[Books, list[str]]:
        books = self.begin()
        failed: list[str] = []
        for step in steps:
            try:
                books.call(side_of(step), step["name"], step["arguments"])
            except ActionFailed as exc:  # the benchmark passes over them too
                failed.append(f"{step['name']}: {exc}")
        return books, failed

    @cached_property
    def _unmet(self) -> list[Mapping[str, Any]]:
        """A call for each assertion that the reference actions alone do not meet."""
        steps: list[Mapping[str, Any]] = []
        asserted = self.criteria.get("env_assertions") or ()
        books = self._played(self.actions)[0] if asserted and self.domain.means else None
        for each in asserted:
            if books is None or each["func_name"] not in self.domain.means or books.holds(each):
                continue
            side, name, names = self.domain.means[each["func_name"]]
            arguments = {mine: each["arguments"][theirs] for mine, theirs in names.items()}
            steps.append({"requestor": side, "name": name, "arguments": arguments})
        return steps


def side_of(step: Mapping[str, Any]) -> str:
    """Return whose step it is: the agent's, or the user's."""
    return str(step.get("requestor") or "assistant")


def read_case(domain: Domain, row: str, files: str) -> Case:
    """Read a row by its id, of the files with a digest.

    Raises:
        KeyError: The files have no such row.
    """
    found = _files(files)
    return Case(domain, found["tasks"][row], found["policy"], found["db"], found["user_db"])
