"""Frameworks of other people, each at one version, in an environment of its own."""

from other_python import OtherPython

__all__ = ["ANTHROPIC", "INSPECT_AI", "LANGCHAIN", "OPENAI_AGENTS", "PYDANTIC_AI"]


def framework(
    name: str, requirements: tuple[str, ...], distribution: str, version: str
) -> OtherPython:
    """A framework at one version, in an environment of its own."""
    return OtherPython(
        name=f".venv-{name}",
        requirements=requirements,
        check=f"import importlib.metadata as m; print(m.version({distribution!r}))",
        version=version,
        what=f"agents of {distribution}",
        install_s=400,
    )


OPENAI_AGENTS = framework("openai-agents", ("openai-agents==0.24.0",), "openai-agents", "0.24.0")
PYDANTIC_AI = framework(
    "pydantic-ai", ("pydantic-ai-slim[mcp,openai]==2.68.0",), "pydantic-ai-slim", "2.68.0"
)
LANGCHAIN = framework(
    "langchain",
    ("langchain-mcp-adapters==0.3.2", "langchain-openai==1.7.3", "langgraph==1.2.22"),
    "langchain-mcp-adapters",
    "0.3.2",
)
ANTHROPIC = framework("anthropic", ("anthropic==2.12.0", "mcp==2.3.0"), "anthropic", "2.12.0")
INSPECT_AI = framework(
    "inspect-ai",
    ("inspect-ai==0.3.285", "anthropic==2.12.0", "mcp==2.3.0"),
    "inspect-ai",
    "0.3.285",
)
