"""A loop on `hud_mcp.connect`: Anthropic's Messages API, and a browser's task to its grade."""

import argparse
import asyncio

from anthropic import AsyncAnthropic

import hud_mcp

WORDS = {name: {"type": "string"} for name in ("type", "ref", "text", "answer")}
SCHEMA = {"type": "object", "properties": WORDS}
TOLD = 'Act by {"type": "click", "ref": "e3"} and see the page, or give the final answer.'
TOOLS = [{"name": "act", "description": TOLD, "input_schema": SCHEMA}]


async def main(model: str, base_url: str | None, task: str) -> None:
    """Start a task, let the model work on it, and print its grade."""
    async with (
        AsyncAnthropic(base_url=base_url) as api,
        hud_mcp.connect("browser", task=task) as live,
    ):
        seen = (await live.step()).observation.text
        turns = [{"role": "user", "content": f"{live.prompt}\n\n{seen}"}]
        while live.outcome is None and turns[-1]["role"] == "user" and len(turns) < 60:
            said = await api.messages.create(
                model=model, max_tokens=4096, tools=TOOLS, messages=turns
            )
            turns.append({"role": "assistant", "content": said.content})
            results = []
            for call in [block for block in said.content if block.type == "tool_use"]:
                if "answer" in call.input:
                    await live.answer(call.input["answer"])
                    break
                step = await live.step(call.input)
                text = step.info.get("error") or step.observation.text
                results.append({"type": "tool_result", "tool_use_id": call.id, "content": text})
            turns += [{"role": "user", "content": results}] if results else []
        print({"outcome": live.outcome, "reward": live.reward})


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model")
parser.add_argument("--base-url")
parser.add_argument("--task", default="shop-price-lamp")
asyncio.run(main(**vars(parser.parse_args())))
