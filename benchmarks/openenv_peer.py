"""OpenEnv's own server with the benchmark's two games; run with OpenEnv's interpreter.

    python openenv_peer.py letters|pole PORT

The environments are as OpenEnv's documentation writes them: `reset` and `step` are plain functions,
which the server runs in a thread of each session. It keeps no record.
"""

import sys
from typing import Any

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from openenv_game import Pole, grade, question

MOST = 64
"""Sessions at once."""


class Answer(Action):
    """The count."""

    answer: str


class Asked(Observation):
    """The question."""

    prompt: str = ""


class Letters(Environment[Answer, Asked, State]):
    """Asks for a count."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._word = ""

    def reset(
        self,
        seed: int | None = None,  # noqa: ARG002
        episode_id: str | None = None,  # noqa: ARG002
        arguments: dict[str, str] | None = None,
        **_given: Any,
    ) -> Asked:
        """Ask."""
        self._word = (arguments or {})["word"]
        return Asked(prompt=question(self._word))

    def step(self, action: Answer, timeout_s: float | None = None, **_given: Any) -> Asked:  # noqa: ARG002
        """Grade."""
        return Asked(reward=grade(self._word, action.answer), done=True)

    @property
    def state(self) -> State:
        """Nothing is counted."""
        return State()


class Push(Action):
    """Push the cart."""

    action: int


class Seen(Observation):
    """Where the cart and the pole are."""

    text: str = ""


class Carts(Environment[Push, Seen, State]):
    """Pushes a cart."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._pole = Pole()

    def reset(
        self,
        seed: int | None = None,  # noqa: ARG002
        episode_id: str | None = None,  # noqa: ARG002
        **_given: Any,
    ) -> Seen:
        """Begin anew."""
        self._pole = Pole()
        return Seen(text=self._pole.text())

    def step(self, action: Push, timeout_s: float | None = None, **_given: Any) -> Seen:  # noqa: ARG002
        """Push."""
        reward = self._pole.push(action.action)
        return Seen(text=self._pole.text(), reward=reward)

    @property
    def state(self) -> State:
        """Nothing is counted."""
        return State()


def main() -> None:
    """Serve one of the games."""
    game, port = sys.argv[1:]
    app = (
        create_fastapi_app(Letters, Answer, Asked, max_concurrent_envs=MOST)
        if game == "letters"
        else create_fastapi_app(Carts, Push, Seen, max_concurrent_envs=MOST)
    )
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error")


if __name__ == "__main__":
    main()
