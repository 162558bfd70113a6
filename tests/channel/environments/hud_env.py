"""An environment of HUD's own SDK, for our client to talk to."""

# ruff: noqa: ANN201, D103

from hud import Environment

env = Environment("theirs")


@env.template(description="Say a word")
async def ask(word: str = "tea"):
    answer = yield f"Say {word}."
    yield 1.0 if answer == word else 0.25
