"""hud-mcp: any MCP client works inside an environment, and is graded there.

Read `environment` and `template` to declare, `session/` for what a held task is and what its
calls do to its world, `server/` for the surface that clients see, `record/` for what is kept of
it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    import hud_mcp.env as env  # noqa: PLR0402  # pyright: ignore[reportUnusedImport]  # a module
    import hud_mcp.gym as gym  # noqa: PLR0402  # pyright: ignore[reportUnusedImport]  # a module
    from hud_mcp.action import (
        CLA,
        Action,
        ActionEffect,
        ClickAction,
        CustomAction,
        DragAction,
        KeyDownAction,
        KeyUpAction,
        Mark,
        MoveAction,
        Point,
        PositionFetch,
        PressAction,
        Response,
        ResponseAction,
        ScreenshotFetch,
        ScrollAction,
        Targeted,
        TypeAction,
        WaitAction,
    )
    from hud_mcp.agents.agent import Agent
    from hud_mcp.analysis.statistics import JobStatistics
    from hud_mcp.call import FunctionConfig, FunctionConfigs, HudStyleConfigs
    from hud_mcp.capability import Capability
    from hud_mcp.context import Context, ContextFeature, ContextSpace
    from hud_mcp.env.client import Client
    from hud_mcp.environment import Environment
    from hud_mcp.errors import (
        ActionFailed,
        BrokenByAgent,
        EnvironmentFailed,
        GymMakeException,
    )
    from hud_mcp.function import History, Phase
    from hud_mcp.grade import Grade, SubScore
    from hud_mcp.graders.answers import gaia_match
    from hud_mcp.graders.bash import BashGrader
    from hud_mcp.graders.changes import Before, grade_checks
    from hud_mcp.graders.combination import combine, combine_all, combine_any
    from hud_mcp.graders.grader import Grader
    from hud_mcp.graders.judge import LLMJudgeGrader
    from hud_mcp.graders.reasoning import ReasoningGymGrader
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
    from hud_mcp.graders.webvoyager import WebVoyagerJudge
    from hud_mcp.gym import connect
    from hud_mcp.loading.contexts import NamedContext, read_contexts, sample_contexts, spread
    from hud_mcp.loading.importers.files import dataset_file
    from hud_mcp.loading.source import load_environments
    from hud_mcp.loading.tasksets import load_taskset
    from hud_mcp.needs import Needs
    from hud_mcp.observation import Look, Observation, Screenshot, TaskResult
    from hud_mcp.outcome import Cause, Counts, Outcome
    from hud_mcp.record.job import Job, create_job, load_job, run_job
    from hud_mcp.record.model_turn import ModelCall, ModelTurn, TokenUsage
    from hud_mcp.record.registered_job import register_job
    from hud_mcp.record.trajectory import Trajectory
    from hud_mcp.record.values import Receipt, TrajectoryStep
    from hud_mcp.rollout.evaluate import JobProgress, evaluate
    from hud_mcp.rollout.runs import Run, Trace
    from hud_mcp.rollout.runtime import LocalRuntime, Runtime, SubprocessRuntime
    from hud_mcp.sandbox import SandboxLimits
    from hud_mcp.session.caller import session_token
    from hud_mcp.show.export import (
        ExportSummary,
        export_atif,
        export_gif,
        export_html,
        export_jsonl,
        export_otel,
        export_parquet,
    )
    from hud_mcp.store import Store
    from hud_mcp.task import Task, Validation
    from hud_mcp.taskset import TaskSet, Taskset
    from hud_mcp.template import Answer, Prompt, PromptMessage, Template
    from hud_mcp.types import CustomGym, Gym
    from hud_mcp.world import Opening, World, WorldSpec
    from hud_mcp.worlds.browser import Browser, BrowserWorld, SiteRequest, SiteResponse
    from hud_mcp.worlds.gymnasium import Gymnasium, GymnasiumWorld
    from hud_mcp.worlds.none import NoWorld
    from hud_mcp.worlds.shell import (
        CommandResult,
        Shell,
        ShellWorld,
        Verifier,
        VerifierResult,
        view_picture,
    )

# Importing a name from here loads its module and nothing else: a template file that
# only counts letters does not wait for a browser's classes.
_HOMES = {
    "action": "CLA Action ActionEffect ClickAction CustomAction DragAction KeyDownAction "
    "KeyUpAction Mark MoveAction Point PositionFetch PressAction Response ResponseAction "
    "ScreenshotFetch ScrollAction Targeted TypeAction WaitAction",
    "agents.agent": "Agent",
    "call": "FunctionConfig FunctionConfigs HudStyleConfigs",
    "env.client": "Client",
    "errors": "ActionFailed BrokenByAgent EnvironmentFailed GymMakeException",
    "capability": "Capability",
    "context": "Context ContextFeature ContextSpace",
    "environment": "Environment",
    "function": "History Phase",
    "grade": "Grade SubScore",
    "graders.answers": "gaia_match",
    "graders.bash": "BashGrader",
    "graders.changes": "Before grade_checks",
    "graders.combination": "combine combine_all combine_any",
    "graders.grader": "Grader",
    "graders.judge": "LLMJudgeGrader",
    "graders.reasoning": "ReasoningGymGrader",
    "graders.results": "EvaluationResult",
    "graders.text": "contains contains_all contains_any exact_match f1_score normalize "
    "numeric_match",
    "graders.webvoyager": "WebVoyagerJudge",
    "record.job": "Job create_job load_job run_job",
    "record.registered_job": "register_job",
    "gym": "connect",
    "needs": "Needs",
    "loading.contexts": "NamedContext read_contexts sample_contexts spread",
    "loading.importers.files": "dataset_file",
    "loading.source": "load_environments",
    "loading.tasksets": "load_taskset",
    "observation": "Look Observation Screenshot TaskResult",
    "outcome": "Cause Counts Outcome",
    "record.model_turn": "ModelCall ModelTurn TokenUsage",
    "record.values": "Receipt TrajectoryStep",
    "rollout.evaluate": "JobProgress evaluate",
    "rollout.runs": "Run Trace",
    "rollout.runtime": "LocalRuntime Runtime SubprocessRuntime",
    "sandbox": "SandboxLimits",
    "session.caller": "session_token",
    "show.export": "ExportSummary export_atif export_gif export_html export_jsonl export_otel "
    "export_parquet",
    "analysis.statistics": "JobStatistics",
    "store": "Store",
    "task": "Task Validation",
    "taskset": "TaskSet Taskset",
    "template": "Answer Prompt PromptMessage Template",
    "record.trajectory": "Trajectory",
    "types": "CustomGym Gym",
    "world": "Opening World WorldSpec",
    "worlds.browser": "Browser BrowserWorld SiteRequest SiteResponse",
    "worlds.gymnasium": "Gymnasium GymnasiumWorld",
    "worlds.none": "NoWorld",
    "worlds.shell": "CommandResult Shell ShellWorld Verifier VerifierResult view_picture",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CLA",
    "Action",
    "ActionEffect",
    "ActionFailed",
    "Agent",
    "Answer",
    "BashGrader",
    "Before",
    "BrokenByAgent",
    "Browser",
    "BrowserWorld",
    "Capability",
    "Cause",
    "ClickAction",
    "Client",
    "CommandResult",
    "Context",
    "ContextFeature",
    "ContextSpace",
    "Counts",
    "CustomAction",
    "CustomGym",
    "DragAction",
    "Environment",
    "EnvironmentFailed",
    "EvaluationResult",
    "ExportSummary",
    "FunctionConfig",
    "FunctionConfigs",
    "Grade",
    "Grader",
    "Gym",
    "GymMakeException",
    "Gymnasium",
    "GymnasiumWorld",
    "History",
    "HudStyleConfigs",
    "Job",
    "JobProgress",
    "JobStatistics",
    "KeyDownAction",
    "KeyUpAction",
    "LLMJudgeGrader",
    "LocalRuntime",
    "Look",
    "Mark",
    "ModelCall",
    "ModelTurn",
    "MoveAction",
    "NamedContext",
    "Needs",
    "NoWorld",
    "Observation",
    "Opening",
    "Outcome",
    "Phase",
    "Point",
    "PositionFetch",
    "PressAction",
    "Prompt",
    "PromptMessage",
    "ReasoningGymGrader",
    "Receipt",
    "Response",
    "ResponseAction",
    "Run",
    "Runtime",
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
    "SubprocessRuntime",
    "Targeted",
    "Task",
    "TaskResult",
    "TaskSet",
    "Taskset",
    "Template",
    "TokenUsage",
    "Trace",
    "Trajectory",
    "TrajectoryStep",
    "TypeAction",
    "Validation",
    "Verifier",
    "VerifierResult",
    "WaitAction",
    "WebVoyagerJudge",
    "World",
    "WorldSpec",
    "__version__",
    "combine",
    "combine_all",
    "combine_any",
    "connect",
    "contains",
    "contains_all",
    "contains_any",
    "create_job",
    "dataset_file",
    "evaluate",
    "exact_match",
    "export_atif",
    "export_gif",
    "export_html",
    "export_jsonl",
    "export_otel",
    "export_parquet",
    "f1_score",
    "gaia_match",
    "grade_checks",
    "load_environments",
    "load_job",
    "load_taskset",
    "normalize",
    "numeric_match",
    "read_contexts",
    "register_job",
    "run_job",
    "sample_contexts",
    "session_token",
    "spread",
    "view_picture",
]


_MODULES = frozenset({"env", "gym", "task", "taskset", "types"})
"""Modules that are reached as attributes too: `import hud_mcp; hud_mcp.gym.make(…)`."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"hud_mcp.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'hud_mcp' has no attribute {name!r}")
    value = getattr(import_module(f"hud_mcp.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
