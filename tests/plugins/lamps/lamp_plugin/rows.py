"""A public set of two tasks."""

from typing import Any

from hud_mcp import Task
from hud_mcp.loading.public import Choice


class _Lamps:
    title, about = "Lamps", "Questions about lamps"
    page, licence, is_fetched = "https://lamps.example", "CC0-1.0", True

    def load(self, choice: Choice, **_options: Any) -> tuple[list[Task], tuple[str, ...]]:
        rows = [
            Task(
                id=f"lamp-{number}",
                env="room",
                prompt=f"Name the lamp of room {number}.",
                evaluate=[("lamp_names", f"lamp {number}")],
            )
            for number in (1, 2)
        ]
        return rows, ()


SET = _Lamps()
