"""How a model is to work: a job's record keeps this, so that it can be resumed in the same way."""

import hashlib
from pathlib import Path
from typing import Any, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from hud_mcp.base.text import read_text_bytes
from hud_mcp.errors import HudMcpError, did_you_mean
from hud_mcp.values.action import Value

__all__ = [
    "LOOKS",
    "PROVIDERS",
    "TOOLS",
    "ComputerVersion",
    "ModelLook",
    "ModelOptions",
    "ModelTools",
    "read_system",
]

ModelLook = Literal["text", "image", "both"]

LOOKS: tuple[ModelLook, ...] = ("text", "image", "both")
"""What a model may be shown."""

ComputerVersion = Literal[
    "computer", "computer_20250124", "computer_20251124", "computer_toolset_20260801"
]
"""A provider's own computer tool; the versions are Anthropic's."""

ModelTools = Literal[
    "generic", "computer", "computer_20250124", "computer_20251124", "computer_toolset_20260801"
]

TOOLS: tuple[ModelTools, ...] = get_args(ModelTools)
"""What a model acts with."""

PROVIDERS = ("anthropic", "openai", "google", "openai-compatible")
"""Whose models there are, as a model's name begins."""

SYSTEM = (
    "You work on one task, by calling tools. Look before you act, and check what your actions "
    "did. When the task is done, call `response` once with the answer alone: that ends the task, "
    "and it is graded."
)
"""What a model is told, where no other text is given."""


class ModelOptions(Value):
    """How a model is to work."""

    name: str = Field(description="With its provider: `anthropic:claude-…`.")
    base_url: str | None = Field(default=None, description="Where, if not at its provider.")
    look: ModelLook = "both"
    tools: ModelTools = Field(
        default="generic", description="The tools of any client, or its provider's computer tool."
    )
    system: str | None = Field(default=None, description="The file of its system prompt.")
    system_sha256: str | None = Field(default=None, description="Of that file's text.")
    keep_images: int | None = Field(default=3, ge=0, description="Pictures that stay in view.")
    max_tokens: int | None = Field(default=None, ge=1, description="Of one reply.")
    max_cost_usd: float | None = Field(default=None, gt=0, description="Of the job.")
    max_cost_per_run_usd: float | None = Field(default=None, gt=0)
    price: tuple[float, float] | None = Field(
        default=None, description="US dollars for a million tokens of input, and of output."
    )
    rpm: int | None = Field(
        default=None, ge=1, description="The most requests per minute, over all runs."
    )
    tpm: int | None = Field(
        default=None, ge=1, description="The most tokens per minute, over all runs."
    )

    @field_validator("name")
    @classmethod
    def _has_provider(cls, name: str) -> str:
        provider, _, model = name.partition(":")
        if provider not in PROVIDERS or not model:
            hint = did_you_mean(provider, PROVIDERS)
            raise ValueError(
                f"{name!r} names no model; write PROVIDER:MODEL, where the provider is one of "
                f"{', '.join(PROVIDERS)}.{hint}"
            )
        return name

    @field_validator("base_url")
    @classmethod
    def _has_no_secret(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"--base-url {url!r} is not an address; write http://… or https://…")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError(
                "--base-url is recorded, so it takes no user, password, query or fragment; give "
                "the key in the environment"
            )
        return url.rstrip("/")

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        if self.provider == "openai-compatible" and self.base_url is None:
            raise ValueError(
                "openai-compatible: needs --base-url, such as http://127.0.0.1:8000/v1"
            )
        return self

    @model_validator(mode="after")
    def _has_such_tools(self) -> Self:
        if self.tools == "generic":
            return self
        if self.provider == "openai-compatible":
            raise ValueError(
                "--tools computer is for anthropic:, openai: and google:, which have such a tool; "
                "leave it out for openai-compatible:"
            )
        if self.tools != "computer" and self.provider != "anthropic":
            raise ValueError(
                f"--tools {self.tools} is Anthropic's; for {self.provider}: write --tools computer"
            )
        if self.look == "text":
            raise ValueError("--tools computer shows pictures; leave out --look text")
        return self

    @property
    def provider(self) -> str:
        """Whose model it is."""
        return self.name.partition(":")[0]

    @property
    def model(self) -> str:
        """Its name at its provider."""
        return self.name.partition(":")[2]

    @property
    def settings(self) -> dict[str, Any]:
        """What each of its replies was made with, for the record."""
        kept = self.model_dump(
            include={"look", "tools", "keep_images", "max_tokens", "system_sha256"}
        )
        return {n: value for n, value in kept.items() if value is not None and value != "generic"}

    def system_text(self) -> str:
        """The system prompt.

        Raises:
            HudMcpError: Its file cannot be read, or has another text than when the job began.
        """
        if self.system is None:
            return SYSTEM
        text, digest = read_system(Path(self.system))
        if digest != self.system_sha256:
            raise HudMcpError(
                f"The system prompt in {self.system} has changed since the job began. Restore "
                f"the text whose SHA-256 is {self.system_sha256}, or start another job."
            )
        return text


def read_system(path: Path) -> tuple[str, str]:
    """The text of a system prompt's file, and its SHA-256.

    Raises:
        HudMcpError: It cannot be read, or is empty.
    """
    try:
        data = read_text_bytes(path)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as exc:
        raise HudMcpError(f"--system {path} cannot be read: {exc}.") from None
    if not text.strip():
        raise HudMcpError(f"--system {path} is empty; write the system prompt into it.")
    return text, hashlib.sha256(data).hexdigest()
