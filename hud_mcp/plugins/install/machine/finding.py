"""One thing of the machine that was looked at."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Finding", "State"]

State = Literal["ok", "failed", "absent"]
"""`absent` is what only some environments need."""


class Finding(BaseModel):
    """What was looked at, how it is, and what to do."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="What was looked at.")
    state: State = Field(description="Whether it works, fails though it is needed, or is absent.")
    said: str = Field(description="What was found.")
    do: str = Field(default="", description="What to do; empty where nothing has to be done.")

    @classmethod
    def ok(cls, name: str, said: str, do: str = "") -> "Finding":
        """Of what works."""
        return cls(name=name, state="ok", said=said, do=do)

    @classmethod
    def lack(cls, name: str, said: str, do: str, *, needed: bool) -> "Finding":
        """Of what does not work, or is not there."""
        return cls(name=name, state="failed" if needed else "absent", said=said, do=do)
