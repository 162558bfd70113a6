"""The kinds of agents, by the names of the core's table and of plugins."""

import pytest
from pydantic import ValidationError

from hud_mcp.agents.kind import AgentKind, agent_names, agent_schemes, find_agent
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.record.job import Job
from hud_mcp.rollout.options import RunOptions


def test_every_name_and_scheme_of_an_agent_has_a_kind() -> None:
    """Names come from two tables: the core's, and those of plugins."""
    assert {"oracle", "nop", "random", "human", "codex"} <= set(agent_names())
    kinds = {name: find_agent(name) for name in agent_names()}
    kinds |= {scheme: find_agent(f"{scheme}:model") for scheme in agent_schemes()}
    assert all(isinstance(kind, AgentKind) for kind in kinds.values())
    assert {name for name, kind in kinds.items() if kind and kind.is_remote} == {
        "acp", "claude-code", "codex", "gemini"
    }  # fmt: skip
    assert [name for name, kind in kinds.items() if kind and kind.is_person] == ["human"]


def test_a_name_that_no_table_has_is_no_agent() -> None:
    """A scheme needs what follows its colon, and a scripted agent takes nothing after one."""
    for name in ("oracles", "anthropic", "oracle:x", "nobody:x"):
        assert find_agent(name) is None


def test_the_options_of_a_record_are_those_of_the_agent_s_own_class() -> None:
    """A job of an earlier version is read with the class that its plugin has for the scheme."""
    options = {"model": {"name": "anthropic:claude", "look": "text", "rpm": 3}, "sources": ["x"]}
    how = RunOptions.of(Job(name="j", taskset="t", agent="a", metadata={"options": options}))
    assert isinstance(how.model, ModelOptions)
    assert (how.model.look, how.model.rpm, how.is_remote, how.lists_tools) == (
        "text", 3, False, True
    )  # fmt: skip
    assert how.model_dump(mode="json", exclude_none=True)["model"]["look"] == "text"
    with pytest.raises(ValidationError, match="no plugin has an agent 'nobody:x'"):
        RunOptions.model_validate({"model": {"name": "nobody:x"}})
