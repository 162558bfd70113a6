"""What a template yields for an agent's grade, where HUD's SDK has it too."""

from hud_mcp.graders.results import EvaluationResult

__all__ = ["EvaluationResult"]
