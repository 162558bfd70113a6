"""An agent in Python: it reads the prompt, and answers. Let a model decide instead."""

import re


async def solve(agent):
    """Count the letter that the prompt names."""
    letter, word = re.findall(r"'(\w+)'", agent.prompt)
    return word.lower().count(letter)
