"""An Inspect AI task: its solver uses the tools of a server, and its score is the reward.

inspect eval inspect_ai_task.py --model anthropic/MODEL -T tasks=shop-price-lamp,shop-price-rug
"""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import mcp_server_http, mcp_tools
from mcp.client.client import Client

URL = "http://127.0.0.1:8000/mcp"


@task
def graded_tasks(tasks: str | list[str] = "shop-price-lamp", url: str = URL) -> Task:
    """The tasks of a running server, by their ids."""
    ids = tasks.split(",") if isinstance(tasks, str) else tasks
    return Task(
        dataset=[Sample(id=each, input=each) for each in ids],
        solver=work(url),
        scorer=reward(url),
        message_limit=60,
    )


@solver
def work(url: str) -> Solver:
    """Start the task that a sample names, and let the model work on it."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with Client(url) as client:
            started = (
                await client.call_tool("start_task", {"task": state.input_text})
            ).structured_content
        state.store.set("session", started["session"])
        state.messages = [ChatMessageUser(content=f"{started['prompt']}\n\n{started['next']}")]
        server = mcp_server_http(url=url, timeout=60)
        async with server:
            state.tools = await mcp_tools(server, tools=["step", "act", "response"]).tools()
            return await generate(state)

    return solve


@scorer(metrics=[mean(), stderr()])
def reward(url: str) -> Scorer:
    """The reward; a task that has none, because something failed, is left unscored."""

    async def score(state: TaskState, target: Target) -> Score:
        session = {"session": state.store.get("session")}
        async with Client(url) as client:
            status = (await client.call_tool("task_status", session)).structured_content
            if status["state"] == "open":  # it ended without `response`: what it said last counts
                await client.call_tool("response", {**session, "answer": state.output.completion})
                status = (await client.call_tool("task_status", session)).structured_content
        receipt = status["receipt"]
        if receipt["outcome"] != "graded":
            return Score.unscored(explanation=receipt["outcome"], metadata=receipt)
        return Score(value=receipt["reward"], explanation=receipt["content"], metadata=receipt)

    return score
