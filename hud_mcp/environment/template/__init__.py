"""Templates: async generators that yield a prompt, receive the answer, and yield a grade.

Read `template` for the declaration, `prompt` for what one may ask, `answer` for what it receives,
and `syntax` for what its source tells before it runs.
"""

from hud_mcp.environment.template.answer import Answer, AnswerType
from hud_mcp.environment.template.prompt import Prompt, PromptMessage, read_prompt
from hud_mcp.environment.template.template import Oracle, Template

__all__ = ["Answer", "AnswerType", "Oracle", "Prompt", "PromptMessage", "Template", "read_prompt"]
