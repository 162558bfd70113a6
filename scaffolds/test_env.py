"""`python -m unittest` runs these; so does pytest, where it is installed."""

import tempfile
import unittest
from pathlib import Path

from hud_mcp import evaluate

HERE = Path(__file__).parent


class Tasks(unittest.IsolatedAsyncioTestCase):
    """What every task has to hold, whoever works on it."""

    async def reward(self, agent: str) -> float | None:
        """What an agent gets on all tasks; its record is kept for as long as that takes."""
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder, "store.sqlite3")
            job = await evaluate(HERE / "tasks.jsonl", agent, store=store)
            return job.reward

    async def test_the_oracle_solves_each(self) -> None:
        """Its solution is known, and graded as right."""
        self.assertEqual(await self.reward("oracle"), 1.0)

    async def test_nothing_is_given_for_nothing(self) -> None:
        """An empty answer gets nothing."""
        self.assertEqual(await self.reward("nop"), 0.0)
