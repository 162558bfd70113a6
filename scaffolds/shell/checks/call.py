"""Runs where the agent has not been: what its program computes, for the grader."""

import json
import sys

from total import total

print(json.dumps([total(prices) for prices in json.load(sys.stdin)]))
