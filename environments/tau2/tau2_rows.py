"""One row of tau2: what its user wants, how its databases begin, and what is graded."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from tau2_desk import Books, Domain

from hud_mcp import ActionFailed, dataset_file

__all__ = ["Case", "read_case"]

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

    def begin(self) -> Books:
        """Return the databases as the row begins."""
        books = Books(self.domain, self._db, self._user_db)
        state = self.raw.get("initial_state") or {}
        data = state.get("initialization_data") or {}
        books.desk.merge(data.get("agent_data") or {})
        books.user.merge(data.get("user_data") or {})
        for call in state.get("initialization_actions") or ():
            books.call(call["env_type"], call["func_name"], call["arguments"])
        for message in self.history:
            for call in message.get("tool_calls") or ():
                books.call(message["role"], call["name"], call["arguments"])
        return books

    def reference(self) -> tuple[Books, list[str]]:
        """Return the databases after the reference actions, and each action that fails."""
        books = self.begin()
        failed: list[str] = []
        for action in self.actions:
            side = action.get("requestor") or "assistant"
            try:
                books.call(side, action["name"], action["arguments"])
            except ActionFailed as exc:  # the benchmark passes over them too
                failed.append(f"{action['name']}: {exc}")
        return books, failed


def read_case(domain: Domain, row: str, files: str) -> Case:
    """Read a row by its id, of the files with a digest.

    Raises:
        KeyError: The files have no such row.
    """
    found = _files(files)
    return Case(domain, found["tasks"][row], found["policy"], found["db"], found["user_db"])
