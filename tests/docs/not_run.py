"""Commands of README and docs that the runner of blocks does not run, or that are to fail."""

__all__ = ["FAILS", "NOT_RUN", "why_not_run"]

_EXAMPLE = "it needs a provider's key, and a peer; tests/interaction/test_examples.py runs it"

NOT_RUN = {
    "make demo": "`make fresh` runs it on a new machine; the taskset has tests of its own",
    "make test": "it is what runs this test",
    "pip install": "it needs a package registry; `make test` has installed the same extras",
    "uvx --from": "the same, and a wheel that was built",
    "hud-mcp eval quickstart --model anthropic:": "it needs a provider's key, and costs money; "
    "tests/agents runs it against that provider's protocol",
    "hud-mcp eval quickstart --filter shop-price-lamp --model openai:": "the same",
    "python loop.py MODEL": _EXAMPLE,
    "python connect_loop.py MODEL": _EXAMPLE,
    "python pydantic_ai_browser.py MODEL": _EXAMPLE,
    "python openai_agents_browser.py MODEL": _EXAMPLE,
    "python langgraph_browser.py MODEL": _EXAMPLE,
    "inspect eval ": _EXAMPLE,
    "python openenv_episode.py": "it needs OpenEnv's package; tests/openenv runs it with it",
    "claude ": "it is other people's program",
    "docker ": "it needs a daemon and the image; `make image` has both, and runs it",
    "hud-mcp export JOB --to otel": "it needs a collector; tests/show/export/test_otel.py has one",
    "hud-mcp serve hud:": "it needs HUD's SDK; tests/channel/bridge runs it",
    "python -m hud_mcp.channel ": "it listens beyond the loopback; tests/channel runs the module",
}
"""How a command begins, and why it is not run here."""

FAILS = {("docs/check.md", "hud-mcp check env.py"): 1, ("docs/tasks.md", "hud-mcp eval"): 1}
"""A page, and how a command of it begins, to the exit status that it is to have."""


def why_not_run(command: str) -> str | None:
    """Why a command is not run here; None where it is."""
    return next((why for begins, why in NOT_RUN.items() if command.startswith(begins)), None)
