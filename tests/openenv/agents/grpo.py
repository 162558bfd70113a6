"""What the trainer of an example has seen, as JSON. Usage: grpo.py EXAMPLES URL FOLDER."""

import json
import math
import sys

import torch

sys.path.insert(0, sys.argv[1])
import trl_grpo
from trl import GRPOTrainer

torch.manual_seed(1)
groups = []
before = {}
calculate, tiny = GRPOTrainer._calculate_rewards, trl_grpo.tiny


def calculated(self: GRPOTrainer, *args: object, **kwargs: object) -> torch.Tensor:
    """The trainer's own rewards of one group, kept."""
    rewards = calculate(self, *args, **kwargs)
    groups.append([None if math.isnan(each) else each for each in rewards.flatten().tolist()])
    return rewards


def remembered() -> tuple:
    """The model, with its weights kept."""
    model, tokenizer = tiny()
    before.update({name: each.detach().clone() for name, each in model.named_parameters()})
    return model, tokenizer


GRPOTrainer._calculate_rewards = calculated
trl_grpo.tiny = remembered
trainer = trl_grpo.train(sys.argv[2], 8, sys.argv[3])
after = dict(trainer.model.named_parameters())
changed = sum(float((after[name] - each).abs().sum()) for name, each in before.items())
rows = [row for row in trainer.state.log_history if "loss" in row]
print()
print(json.dumps({"groups": groups, "rows": rows, "changed": changed}))
