"""hud-mcp: any MCP client works inside an environment, and is graded there.

Read `environment` and `template` to declare, `session` for what a held task is and `performer`
for what a call does to its world, `server` for the surface that clients see, `trajectory` for
what is recorded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hud_mcp.action import (
        Action,
        ActionEffect,
        ClickAction,
        CustomAction,
        DragAction,
        KeyDownAction,
        KeyUpAction,
        MoveAction,
        Point,
        PositionFetch,
        PressAction,
        ResponseAction,
        ScreenshotFetch,
        ScrollAction,
        TypeAction,
        WaitAction,
    )
    from hud_mcp.agents.agent import Agent
    from hud_mcp.call import FunctionConfig
    from hud_mcp.capability import Capability
    from hud_mcp.context import Context, ContextFeature, ContextSpace
    from hud_mcp.environment import Environment
    from hud_mcp.function import History
    from hud_mcp.grade import Grade, Outcome, SubScore
    from hud_mcp.graders.bash import BashGrader
    from hud_mcp.graders.combination import combine, combine_all, combine_any
    from hud_mcp.graders.grader import Grader
    from hud_mcp.graders.judge import LLMJudgeGrader
    from hud_mcp.graders.results import EvaluationResult
    from hud_mcp.graders.text import (
        contains,
        contains_all,
        contains_any,
        exact_match,
        f1_score,
        normalize,
        numeric_match,
    )
    from hud_mcp.job import Job, load_job
    from hud_mcp.observation import Look, Observation, Screenshot, TaskResult
    from hud_mcp.record import Receipt, TrajectoryStep
    from hud_mcp.sandbox import SandboxLimits
    from hud_mcp.statistics import JobStatistics
    from hud_mcp.store import Store
    from hud_mcp.task import Task, Validation
    from hud_mcp.taskset import TaskSet, Taskset
    from hud_mcp.template import Answer, Prompt, PromptMessage, Template
    from hud_mcp.trajectory import Trajectory
    from hud_mcp.types import CustomGym
    from hud_mcp.world import Opening, World, WorldSpec
    from hud_mcp.worlds.browser import Browser, BrowserWorld, SiteRequest, SiteResponse
    from hud_mcp.worlds.gymnasium import Gymnasium, GymnasiumWorld
    from hud_mcp.worlds.none import NoWorld
    from hud_mcp.worlds.shell import CommandResult, Shell, ShellWorld

# Importing a name from here loads its module and nothing else: a template file that
# only counts letters does not wait for a browser's classes.
_HOMES = {
    "action": "Action ActionEffect ClickAction CustomAction DragAction KeyDownAction KeyUpAction "
    "MoveAction Point PositionFetch PressAction ResponseAction ScreenshotFetch ScrollAction "
    "TypeAction WaitAction",
    "agents.agent": "Agent",
    "call": "FunctionConfig",
    "capability": "Capability",
    "context": "Context ContextFeature ContextSpace",
    "environment": "Environment",
    "function": "History",
    "grade": "Grade Outcome SubScore",
    "graders.bash": "BashGrader",
    "graders.combination": "combine combine_all combine_any",
    "graders.grader": "Grader",
    "graders.judge": "LLMJudgeGrader",
    "graders.results": "EvaluationResult",
    "graders.text": "contains contains_all contains_any exact_match f1_score normalize "
    "numeric_match",
    "job": "Job load_job",
    "observation": "Look Observation Screenshot TaskResult",
    "record": "Receipt TrajectoryStep",
    "sandbox": "SandboxLimits",
    "statistics": "JobStatistics",
    "store": "Store",
    "task": "Task Validation",
    "taskset": "TaskSet Taskset",
    "template": "Answer Prompt PromptMessage Template",
    "trajectory": "Trajectory",
    "types": "CustomGym",
    "world": "Opening World WorldSpec",
    "worlds.browser": "Browser BrowserWorld SiteRequest SiteResponse",
    "worlds.gymnasium": "Gymnasium GymnasiumWorld",
    "worlds.none": "NoWorld",
    "worlds.shell": "CommandResult Shell ShellWorld",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Action",
    "ActionEffect",
    "Agent",
    "Answer",
    "BashGrader",
    "Browser",
    "BrowserWorld",
    "Capability",
    "ClickAction",
    "CommandResult",
    "Context",
    "ContextFeature",
    "ContextSpace",
    "CustomAction",
    "CustomGym",
    "DragAction",
    "Environment",
    "EvaluationResult",
    "FunctionConfig",
    "Grade",
    "Grader",
    "Gymnasium",
    "GymnasiumWorld",
    "History",
    "Job",
    "JobStatistics",
    "KeyDownAction",
    "KeyUpAction",
    "LLMJudgeGrader",
    "Look",
    "MoveAction",
    "NoWorld",
    "Observation",
    "Opening",
    "Outcome",
    "Point",
    "PositionFetch",
    "PressAction",
    "Prompt",
    "PromptMessage",
    "Receipt",
    "ResponseAction",
    "SandboxLimits",
    "Screenshot",
    "ScreenshotFetch",
    "ScrollAction",
    "Shell",
    "ShellWorld",
    "SiteRequest",
    "SiteResponse",
    "Store",
    "SubScore",
    "Task",
    "TaskResult",
    "TaskSet",
    "Taskset",
    "Template",
    "Trajectory",
    "TrajectoryStep",
    "TypeAction",
    "Validation",
    "WaitAction",
    "World",
    "WorldSpec",
    "__version__",
    "combine",
    "combine_all",
    "combine_any",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "f1_score",
    "load_job",
    "normalize",
    "numeric_match",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hud_mcp' has no attribute {name!r}")
    value = getattr(import_module(f"hud_mcp.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
