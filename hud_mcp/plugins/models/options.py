"""The options of a model. A job's record keeps them, so that it resumes in the same way."""

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast, get_args
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from hud_mcp.agents.kind import ANY_MODEL, AgentOptions
from hud_mcp.base.text import read_text_bytes
from hud_mcp.errors import HudMcpError, did_you_mean
from hud_mcp.values.option import Option

__all__ = [
    "PROVIDERS",
    "TOOLS",
    "ComputerVersion",
    "ModelLook",
    "ModelOptions",
    "ModelTools",
    "read_system",
]

ModelLook = Literal["text", "image", "both"]

ComputerVersion = Literal[
    "computer", "computer_20250124", "computer_20251124", "computer_toolset_20260801"
]
"""A provider's own computer tool; the versions are Anthropic's."""

ModelTools = Literal["generic", ComputerVersion]

TOOLS: tuple[ModelTools, ...] = get_args(ModelTools)
"""The tools that a model acts with."""

PROVIDERS = ("anthropic", "openai", "google", "openai-compatible")
"""The providers, as a model's name begins."""

SYSTEM = (
    "You work on one task, by calling tools. Look before you act, and check what your actions "
    "did. When the task is done, call `response` once with the answer alone: that ends the task, "
    "and it is graded."
)
"""The system prompt of a model, unless another is given."""


_SMALLEST_USD = 1e-6


def _read_price(given: Any) -> Any:
    """Read two prices from `3,15`, as a command line has them."""
    if not isinstance(given, str):
        return given
    try:
        into, out = (float(part) for part in given.split(","))
    except ValueError:
        into = out = -1.0
    if not (0 <= into < float("inf") and 0 <= out < float("inf")):
        raise ValueError(f"{given!r} is not IN,OUT; write 3,15 for $3 and $15")
    return into, out


class ModelOptions(AgentOptions):
    """The options of a model."""

    name: str = Field(description=f"A model of {', '.join(PROVIDERS)}, as PROVIDER:MODEL.")
    base_url: Annotated[str | None, Option("Model", metavar="URL", is_rare=True)] = Field(
        default=None, description="The address of the model's API, if not its provider's."
    )
    look: Annotated[ModelLook, Option("Model", is_rare=True)] = Field(
        default="both", description="Give the model text, pictures or both."
    )
    tools: Annotated[ModelTools, Option("Model", metavar="NAME", is_rare=True)] = Field(
        default="generic",
        description=f"generic, or the provider's own computer tool: {', '.join(TOOLS[1:])}.",
    )
    system: Annotated[str | None, Option("Model", metavar="FILE", is_rare=True)] = Field(
        default=None, description="The file of the model's system prompt."
    )
    system_sha256: str | None = Field(default=None, description="The digest of that file's text.")
    keep_images: Annotated[int | None, Option("Model", metavar="N", is_rare=True)] = Field(
        default=3, ge=0, description="Pictures that stay in its context."
    )
    max_tokens: Annotated[int | None, Option("Model", metavar="N", is_rare=True)] = Field(
        default=None, ge=1, description="The most tokens of one reply."
    )
    max_cost_usd: Annotated[
        float | None, Option("Runs", flag="--max-cost", metavar="USD", may_change=True)
    ] = Field(
        default=None,
        ge=_SMALLEST_USD,
        allow_inf_nan=False,
        description="The model's budget for the job; --resume may raise it.",
    )
    max_cost_per_run_usd: Annotated[
        float | None,
        Option("Model", flag="--max-cost-per-run", metavar="USD", is_rare=True),
    ] = Field(
        default=None, ge=_SMALLEST_USD, allow_inf_nan=False, description="The budget of one run."
    )
    price: Annotated[
        tuple[float, float] | None,
        BeforeValidator(_read_price),
        Option("Model", metavar="IN,OUT", is_rare=True),
    ] = Field(default=None, description="US dollars for a million tokens of input, and of output.")
    rpm: Annotated[int | None, Option("Model", metavar="N", is_rare=True, may_change=True)] = Field(
        default=None, ge=1, description="The most requests per minute, over all runs."
    )
    max_turns: Annotated[
        int | None, Option("Model", metavar="N", is_rare=True, may_change=True)
    ] = Field(default=None, ge=1, description="The most replies of the model in one run.")
    tpm: Annotated[int | None, Option("Model", metavar="N", is_rare=True, may_change=True)] = Field(
        default=None, ge=1, description="The most tokens per minute, over all runs."
    )

    @model_validator(mode="before")
    @classmethod
    def _has_digest(cls, given: Any) -> Any:
        """Keep the digest of a system prompt's text, so that a resumed job has the same."""
        fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        if fields.get("system") is None or "system_sha256" in fields:
            return given  # pyright: ignore[reportUnknownVariableType]  # the fields are checked next
        try:
            path = Path(fields["system"]).absolute()
            return {**fields, "system": str(path), "system_sha256": read_system(path)[1]}
        except HudMcpError as exc:
            raise ValueError(str(exc)) from exc

    @field_validator("name")
    @classmethod
    def _has_provider(cls, name: str) -> str:
        provider, _, model = name.partition(":")
        if name == ANY_MODEL:
            return name
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
        """The provider of the model."""
        return self.name.partition(":")[0]

    @property
    def model(self) -> str:
        """Its name at its provider."""
        return self.name.partition(":")[2]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of each of its replies, for the record."""
        kept = self.model_dump(
            include={"look", "tools", "keep_images", "max_tokens", "system_sha256"}
        )
        return {n: value for n, value in kept.items() if value is not None and value != "generic"}

    def system_text(self) -> str:
        """Return the system prompt; raise a `HudMcpError` if its file is gone or has changed."""
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
    """Return a file's text and SHA-256; raise a `HudMcpError` if it is unreadable or empty."""
    try:
        data = read_text_bytes(path)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as exc:
        raise HudMcpError(f"--system {path} cannot be read: {exc}.") from None
    if not text.strip():
        raise HudMcpError(f"--system {path} is empty; write the system prompt into it.")
    return text, hashlib.sha256(data).hexdigest()
