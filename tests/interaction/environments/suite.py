"""What the official conformance suites ask of tools and prompts, where it can be ours."""

# ruff: noqa: ANN201, PT028  # as authors write; the names are the suites'

from hud_mcp import Environment

env = Environment("suite")


@env.tool
async def test_simple_text() -> str:
    """Return a simple text."""
    return "This is a simple text response for testing."


@env.tool
async def test_error_handling() -> str:
    """Fail, always."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@env.template()
async def test_simple_prompt():
    """Ask for nothing."""
    yield "This is a simple prompt for testing."
    yield 1.0


@env.template()
async def test_prompt_with_arguments(arg1: str = "a", arg2: str = "b"):
    """Repeat two arguments."""
    yield f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
    yield 1.0
