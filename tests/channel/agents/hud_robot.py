"""HUD's own client of robots; prints what it saw as JSON. Argument: the channel's port."""

import asyncio
import json
import sys
from typing import Any

import numpy as np
from hud.capabilities.robot import RobotClient
from hud.clients import connect
from hud.eval.runtime import Runtime


async def balance(port: str) -> dict[str, Any]:
    """Push a cart to and fro, as a policy does, until the episode ends."""
    seen: dict[str, Any] = {}
    async with connect(Runtime(f"tcp://127.0.0.1:{port}")) as client:
        await client.start_task("balance", {"steps": 60})
        binding = client.binding("openpi/0")
        robot = await RobotClient.connect(binding)
        action, observations = robot.spaces()
        seen["action"], seen["observations"] = action["names"], sorted(observations)
        found = await robot.get_observation()
        seen["shape"] = list(found["data"]["obs"].shape)
        for _ in range(200):
            if found["terminated"]:
                break
            angle, turning = found["data"]["obs"][2], found["data"]["obs"][3]
            await robot.send_action(np.array([1.0 if angle + turning > 0 else 0.0]))
            found = await robot.get_observation()
        await robot.close()
        seen["grade"] = await client.grade({"answer": ""})
    return seen


if __name__ == "__main__":
    print("SEEN " + json.dumps(asyncio.run(balance(sys.argv[1]))))
