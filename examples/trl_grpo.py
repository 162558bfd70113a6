"""TRL's GRPO trains a model on a server's tasks, by OpenEnv's client, and grades are its rewards.

The model is a very small one with random weights and eight words, so nothing is downloaded.
"""

import argparse
from importlib.metadata import version

from openenv import GenericEnvClient
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

WANTED = {"trl": "1.16.0", "openenv": "0.10.0"}
ANSWERS = ("0", "1", "2", "3")
CALLS = [f'<call>{{"name": "answer", "arguments": {{"answer": "{n}"}}}}</call>' for n in ANSWERS]
TEMPLATE = """{%- for message in messages %}
{%- if message.role == 'assistant' %}{{ '<assistant>' }}
{%- for call in message.tool_calls or [] %}
{{- '<call>{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{ '}</call>' }}
{%- endfor %}{{ message.content }}{{ '<end>' }}
{%- else %}{{ '<' + message.role + '>' + message.content + '<end>' }}{% endif %}
{%- endfor %}{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"""
RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<assistant>",
    "fields": {
        "tool_calls": {
            "open": "<call>",
            "close_pattern": "</call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": "<end>", "content": "text"},
    },
}


class Episode:
    """One episode at a time on a connection of its own; its public methods are the tools."""

    url = "http://127.0.0.1:8000"

    def __init__(self) -> None:
        self._client = GenericEnvClient(base_url=self.url).sync()
        self._client.connect()
        self._reward: float | None = None

    def reset(self, **_row: object) -> str:
        """Begin an episode: what is asked is the end of the prompt."""
        self._reward = None
        arguments = {"word": "strawberry", "letter": "r"}
        return self._client.reset(template="count", arguments=arguments).observation["prompt"]

    def answer(self, answer: str) -> str:
        """Submit the final answer: the episode ends and is graded.

        Args:
            answer: The answer alone.
        """
        result = self._client.step({"answer": answer})
        self._reward = result.reward
        return result.observation["text"]

    def get_reward(self) -> float | None:
        """The grade; None where there is none, which TRL leaves out."""
        return self._reward


def tiny() -> tuple[Qwen2ForCausalLM, PreTrainedTokenizerFast]:
    """A model whose every word is a whole valid call, and its tokenizer."""
    words = ["<unknown>", "<end>", "<user>", "<tool>", "<assistant>", *CALLS]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "<unknown>"))
    tokenizer.add_special_tokens(words[1:5])
    tokenizer.add_tokens(CALLS)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unknown>",  # noqa: S106  # a word
        eos_token="<end>",  # noqa: S106  # a word
        pad_token="<end>",  # noqa: S106  # a word
        chat_template=TEMPLATE,
    )
    fast.response_template = RESPONSE
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    ends = {"eos_token_id": 1, "pad_token_id": 1, "bos_token_id": None}
    config = Qwen2Config(vocab_size=len(words), **shape, **heads, **ends)
    return Qwen2ForCausalLM(config), fast


def train(url: str, steps: int, output: str) -> GRPOTrainer:
    """Train for some steps; the trainer has what each of them had."""
    for name, wanted in WANTED.items():
        if version(name) != wanted:
            raise SystemExit(f"This needs {name} {wanted}; there is {version(name)}.")
    Episode.url = url
    model, tokenizer = tiny()
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        environment_factory=Episode,
        args=GRPOConfig(
            output_dir=output,
            max_steps=steps,
            per_device_train_batch_size=16,
            num_generations=16,
            max_completion_length=2,
            max_tool_calling_iterations=1,
            learning_rate=0.02,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
        ),
    )
    trainer.train()
    return trainer


def main(url: str, steps: int, output: str) -> None:
    """Train, and print what each step had."""
    trainer = train(url, steps, output)
    for row in trainer.state.log_history[:-1]:
        kept = {name: row[name] for name in ("reward", "reward_std", "loss", "grad_norm")}
        print(" ".join(f"{name} {value:.3f}" for name, value in kept.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--output", default="grpo")
    main(**vars(parser.parse_args()))
