"""OpenEnv's server with CartPole, and a bare JSON client of it; run with OpenEnv's interpreter.

    python one_step_peer.py '[0, 1, …]'

It takes the actions from the seed on, one a call, and prints the seconds that took. OpenEnv's
server keeps no record.
"""

import json
import socket
import subprocess
import sys
import time
from typing import Any

import gymnasium
import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from websockets.sync.client import connect

SEED = 3
START_S = 60.0


class Push(Action):
    """Push the cart."""

    action: int


class Cart(Observation):
    """Where the cart and the pole are."""

    state: list[float]


class CartPole(Environment[Push, Cart, State]):
    """Gymnasium's CartPole."""

    def __init__(self) -> None:
        super().__init__()
        self._env = gymnasium.make("CartPole-v1", max_episode_steps=1_000_000)

    def reset(self, *_: Any, **__: Any) -> Cart:
        """Begin."""
        seen, _info = self._env.reset(seed=SEED)
        return Cart(state=seen.tolist(), done=False, reward=0.0)

    def step(self, action: Push, *_: Any, **__: Any) -> Cart:
        """Push once."""
        seen, reward, terminated, truncated, _info = self._env.step(action.action)
        return Cart(state=seen.tolist(), done=terminated or truncated, reward=float(reward))

    @property
    def state(self) -> State:
        """Nothing that is asked for."""
        return State()


def serve(port: int) -> None:
    """Serve it until killed."""
    app = create_fastapi_app(CartPole, Push, Cart)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


def reached(port: int) -> Any:
    """A connection to the server, once it listens."""
    give_up_s = time.monotonic() + START_S
    while True:
        try:
            return connect(f"ws://127.0.0.1:{port}/ws", open_timeout=START_S)
        except OSError:
            if time.monotonic() > give_up_s:
                raise
            time.sleep(0.1)


def main() -> None:
    """Start the server, take the steps, and print how long they took."""
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
        return
    actions = json.loads(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, __file__, "serve", str(port)])
    try:
        with reached(port) as web:

            def call(kind: str, data: dict[str, Any]) -> dict[str, Any]:
                web.send(json.dumps({"type": kind, "data": data}))
                return json.loads(web.recv())

            call("reset", {})
            began = time.perf_counter()
            for action in actions:
                reply = call("step", {"action": action})
                if reply["type"] != "observation" or reply["data"]["done"]:
                    raise RuntimeError(f"the step was not taken: {reply}")
            print(time.perf_counter() - began)
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
