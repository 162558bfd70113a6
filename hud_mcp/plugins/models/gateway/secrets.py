"""The variables of a provider's keys and addresses, which no agent with a gateway is given."""

import re

__all__ = ["is_provider_variable"]

_PROVIDERS = (
    "ANTHROPIC", "AI21", "ALIBABA", "AZURE", "BEDROCK", "CEREBRAS", "CLAUDE", "COHERE", "CODEX",
    "DASHSCOPE", "DEEPSEEK", "FIREWORKS", "GEMINI", "GOOGLE", "GROQ", "HF", "HUGGINGFACE",
    "LITELLM", "MISTRAL", "MOONSHOT", "NEBIUS", "NVIDIA", "OLLAMA", "OPENAI", "OPENAI_COMPATIBLE",
    "OPENROUTER", "PERPLEXITY", "PORTKEY", "REPLICATE", "SAMBANOVA", "TOGETHER", "VERTEX",
    "VERTEXAI", "XAI", "ZAI", "ZHIPUAI",
)  # fmt: skip
_SECRETS = (
    "KEY", "TOKEN", "SECRET", "CREDENTIALS", "PASSWORD", "BASE_URL", "API_BASE", "ENDPOINT", "HOST",
)  # fmt: skip
_VARIABLE = re.compile(
    rf"(?:.*_)?(?:{'|'.join(_PROVIDERS)})(?:_.*)?_(?:{'|'.join(_SECRETS)})S?(?:_.*)?"
    r"|AWS_.*|HUD_API_KEY|CLOUDSDK_.*",
    re.IGNORECASE,
)


def is_provider_variable(name: str) -> bool:
    """Return whether a variable holds a provider's key, or the address where one is sent."""
    return _VARIABLE.fullmatch(name) is not None
