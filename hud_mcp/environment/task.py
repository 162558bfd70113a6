"""One row of data: a template and its arguments, or a prompt and its calls; context and seed."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, cast

import orjson
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from hud_mcp.environment.gyms import CustomGym
from hud_mcp.errors import ReplacedCall
from hud_mcp.registry import service
from hud_mcp.values.action import Value
from hud_mcp.values.call import FunctionConfig, read_calls, read_json_calls

__all__ = [
    "COMBINATIONS",
    "DEFAULT_GYM",
    "FROM_JSON",
    "PROMPT",
    "Task",
    "Validation",
    "default_task_id",
]

PROMPT = "prompt"
"""The name that stands for the template of a task with a prompt."""

DEFAULT_GYM = "qa"
"""The gym of a prompt that names none: a question, and no world."""

FROM_JSON: Mapping[str, Any] = {"from_json": True}
"""The validation context of a row that was read from a file: a list may then be one call."""

COMBINATIONS = ("all", "any", "mean")
"""The rules that make the rewards of several `evaluate` calls one: least, greatest, mean."""

_FIRST_FIELDS = frozenset(
    {"id", "env", "template", "args", "context", "seed", "description", "metadata", "validation"}
)
"""The fields that every digest covers. Later fields count only if they are set."""

_CALLS = ("setup", "evaluate")
_TITLE_CHARS = 80


class Validation(Value):
    """The expected results of known agents on a task; never shown to an agent."""

    oracle: float | None = Field(default=1.0, description="Reward of the template's own solution.")
    nop: float | None = Field(default=0.0, description="Reward of doing nothing, answering ''.")
    wrong_answer: str | None = Field(
        default=None, description="An answer that looks right and must get less than the oracle."
    )
    wrong: tuple[str, ...] = Field(
        default=(), description="More such answers; one may be given as a text."
    )

    @field_validator("wrong", mode="before")
    @classmethod
    def _read_wrong(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @property
    def wrong_answers(self) -> tuple[str, ...]:
        """Every wrong answer once, in order."""
        first = () if self.wrong_answer is None else (self.wrong_answer,)
        return tuple(dict.fromkeys((*first, *self.wrong)))


class Task(Value):
    """A template with its arguments, or a prompt with its calls. Creating one runs nothing.

    `Task(prompt="…", gym="hud-browser", setup=("goto", "https://example.com"),
    evaluate=("page_contains", "Example"))` is the second shape. `setup` is called before the agent
    starts, and `evaluate` after its answer; its result is the reward.
    """

    id: str = Field(min_length=1, max_length=200, description="Names the row in its taskset.")
    env: str = Field(min_length=1, description="The environment's name.")
    template: str = Field(
        min_length=1, description="The template's id; `prompt` where there is a prompt instead."
    )
    args: dict[str, Any] = Field(default_factory=dict, description="JSON arguments.")
    context: dict[str, bool | int | float | str] = Field(
        default_factory=dict, description="Context features that differ from their defaults."
    )
    seed: int | None = Field(
        default=None,
        ge=-(2**63),
        lt=2**63,
        description="The seed of the world's random choices; 64 bits, as databases hold it.",
    )
    description: str = Field(default="", description="One line for people.")
    metadata: dict[str, Any] = Field(
        default_factory=dict, description="Anything; never shown to an agent."
    )
    validation: Validation | None = Field(
        default=None, description="The expected results of known agents."
    )
    prompt: str | None = Field(default=None, description="What is asked, in place of a template.")
    gym: str | CustomGym | None = Field(
        default=None, description="The environment of a prompt, by its name."
    )
    setup: tuple[FunctionConfig, ...] = Field(
        default=(), description="Called in order before the agent starts."
    )
    evaluate: tuple[FunctionConfig, ...] = Field(
        default=(), description="Called in order after the answer; never shown to an agent."
    )
    config: dict[str, Any] | None = Field(
        default=None, description="Options: `allow`, hosts; `combine`, one of `COMBINATIONS`."
    )
    target: Any = Field(default=None, description="The right answer; never shown to an agent.")
    source: str | None = Field(
        default=None, description="The origin of a row that is not your own."
    )

    from_dict: ClassVar[ReplacedCall] = ReplacedCall(
        "Task.model_validate(row) reads a row, and TaskSet.from_file a file of rows."
    )
    from_serialized: ClassVar[ReplacedCall] = ReplacedCall(
        "Task.model_validate(row) reads a row, in which a call is an object or a list."
    )
    serialize: ClassVar[ReplacedCall] = ReplacedCall(
        "Task.row is a row as JSON, and TaskSet.to_file writes a file of rows."
    )
    from_inspect_sample: ClassVar[ReplacedCall] = ReplacedCall(
        "Make a Task(prompt=sample.input, evaluate=('response_includes', sample.target))."
    )
    fit: ClassVar[ReplacedCall] = ReplacedCall(
        "task.model_copy(update={'gym': name, 'env': name}) is the same task in another gym."
    )

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, raw: Any, info: ValidationInfo) -> Any:
        if not isinstance(raw, dict):
            return raw
        row = dict(cast("dict[str, Any]", raw))
        for name in ("id", "metadata", "description"):
            if name in row and row[name] is None:
                del row[name]
        if row.get("prompt") is not None:
            return _prompt_row(row, from_json=_from_json(info))
        if row.get("template") is None and set(row) <= set(cls.model_fields):
            raise ValueError(
                "a task has a 'prompt' or a 'template', and this row has neither of them"
            )
        if "id" not in row and isinstance(row.get("template"), str):
            row["id"] = default_task_id(row["template"], row.get("args") or {})
        return row

    @field_validator(*_CALLS, mode="before")
    @classmethod
    def _read_calls(cls, given: Any, info: ValidationInfo) -> tuple[FunctionConfig, ...]:
        return _reader(from_json=_from_json(info))(given)

    @field_validator("gym", mode="before")
    @classmethod
    def _read_gym(cls, gym: Any) -> Any:
        if isinstance(gym, Mapping):
            return _custom_gym(cast("Mapping[str, Any]", gym))
        if gym is not None and not isinstance(gym, str | CustomGym):
            raise ValueError(f"a gym is a name, such as 'hud-browser', or a CustomGym, not {gym!r}")
        return gym

    @field_validator("config")
    @classmethod
    def _check_config(cls, config: dict[str, Any] | None) -> dict[str, Any] | None:
        hosts: Any = (config or {}).get("allow") or []
        if not isinstance(hosts, list) or not all(
            isinstance(h, str) for h in cast("list[Any]", hosts)
        ):
            raise ValueError(f"'allow' is a list of hosts, such as ['example.com'], not {hosts!r}")
        how = (config or {}).get("combine", COMBINATIONS[0])
        if how not in COMBINATIONS:
            raise ValueError(f"'combine' is {how!r}; it is one of {', '.join(COMBINATIONS)}")
        return config

    @model_validator(mode="after")
    def _has_one_shape(self) -> "Task":
        if self.prompt is not None:
            return self
        for name in ("gym", *_CALLS):
            if getattr(self, name):
                raise ValueError(
                    f"{name!r} belongs to a task with a 'prompt', and this one has a 'template'"
                )
        return self

    async def run(self, agent: Callable[[Any], Awaitable[Any]], **options: Any) -> Any:
        """Run an agent on this one task, with the options of `Taskset.run`; return the `Job`."""
        return await service("Task.run")(self, agent, **options)

    @property
    def title(self) -> str:
        """One line for people: its description, else the beginning of its prompt."""
        if self.description or not self.prompt:
            return self.description
        first = self.prompt.strip().partition("\n")[0]
        return first if len(first) <= _TITLE_CHARS else f"{first[: _TITLE_CHARS - 1]}…"

    @property
    def inputs(self) -> dict[str, Any]:
        """Its arguments, or its calls and options, for people."""
        if self.prompt is None:
            return self.args
        shown: dict[str, Any] = {n: [str(call) for call in getattr(self, n)] for n in _CALLS}
        shown |= {"config": self.config, "target": self.target, "source": self.source}
        return {name: value for name, value in shown.items() if value not in (None, [])}

    @property
    def digest(self) -> str:
        """The SHA-256 of the row as canonical JSON: 64 hex digits."""
        row = self.model_dump(mode="json")
        return hashlib.sha256(_canonical(_digested(row))).hexdigest()

    def asked(self, *, fixed: bool = True) -> str:
        """Return the SHA-256 of the question without id and description: 64 hex digits.

        Without `fixed` it leaves out the context and the seed too.
        """
        calls = [
            [call.model_dump(mode="json") for call in of] for of in (self.setup, self.evaluate)
        ]
        asked: list[Any] = [self.env, self.template, self.args, self.prompt, *calls]
        asked += [self.context, self.seed] if fixed else [{}, None]
        return hashlib.sha256(_canonical(asked)).hexdigest()

    @property
    def row(self) -> dict[str, Any]:
        """The row as JSON, without fields that equal their defaults or follow from others.

        Calls are in their canonical form. Only a flat list of names that no environment has checked
        is written as it was read.
        """
        row = self.model_dump(mode="json", exclude_defaults=True)
        for name in _CALLS:
            calls: tuple[FunctionConfig, ...] = getattr(self, name)
            if len(calls) == 1 and calls[0].is_flat:  # what it means, its environment will say
                row[name] = [calls[0].function, *calls[0].args]
        if self.prompt is not None:
            del row["template"]
            if self.gym is not None or self.env == DEFAULT_GYM:
                del row["env"]
            row = {name: row.pop(name) for name in ("id", "gym") if name in row} | row
        return row


def default_task_id(template: str, args: dict[str, Any]) -> str:
    """Return the default id of a task: the template's, and a short hash of its arguments."""
    if not args:
        return template
    raw = _canonical(args)
    return f"{template}-{hashlib.sha1(raw, usedforsecurity=False).hexdigest()[:8]}"


def _from_json(info: ValidationInfo) -> bool:
    context = cast("Mapping[str, Any] | None", info.context)
    return bool((context or {}).get("from_json"))


def _reader(*, from_json: bool) -> Callable[[Any], tuple[FunctionConfig, ...]]:
    return read_json_calls if from_json else read_calls


def _prompt_row(row: dict[str, Any], *, from_json: bool) -> dict[str, Any]:
    """Return a row with a prompt, completed by the names that follow from its fields."""
    if row.get("template") not in (None, "", PROMPT) or row.get("args"):
        given = "args" if row.get("args") else "template"
        raise ValueError(
            f"a task has a 'prompt' or a 'template', and this row has 'prompt' and {given!r}"
        )
    gym = row.get("gym")
    if isinstance(gym, Mapping):
        gym = _custom_gym(cast("Mapping[str, Any]", gym))
    name = gym.name if isinstance(gym, CustomGym) else gym
    name = name or row.get("env") or DEFAULT_GYM
    if row.get("env") not in (None, name):
        raise ValueError(f"'gym' and 'env' name one environment: {name!r} is not {row['env']!r}")
    made = {**row, "env": name, "template": PROMPT}
    if not isinstance(name, str):
        made["env"] = DEFAULT_GYM  # the gym is refused, by its own name
    return made if "id" in made else {**made, "id": _prompt_id(made, from_json=from_json)}


def _custom_gym(row: Mapping[str, Any]) -> CustomGym:
    """Read a gym in the form of rows; a `ValueError` names a wrong field."""
    try:
        return CustomGym.model_validate(row)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        path = ".".join(["gym", *map(str, first["loc"])])
        known = ", ".join((*CustomGym.model_fields, "build_context"))
        said = first["msg"].removeprefix("Value error, ").lower()
        raise ValueError(f"{path}: {said}. A gym of your own has: {known}") from None


def _prompt_id(row: Mapping[str, Any], *, from_json: bool) -> str:
    """Return the default id of a prompt: a short hash of its row."""
    plain = dict(row)
    for name in _CALLS:
        try:
            calls = _reader(from_json=from_json)(row.get(name))
        except ValueError:
            return PROMPT  # which is then refused, with the field's name
        plain[name] = [call.model_dump() for call in calls]
    plain = {name: value for name, value in plain.items() if value not in (None, (), [], {}, "")}
    raw = _canonical(plain)
    return f"{PROMPT}-{hashlib.sha1(raw, usedforsecurity=False).hexdigest()[:8]}"


def _digested(row: dict[str, Any]) -> dict[str, Any]:
    kept = {
        name: value
        for name, value in row.items()
        if name in _FIRST_FIELDS or value not in (None, [], ())
    }
    expected: dict[str, Any] | None = kept["validation"]
    if expected is not None and not expected["wrong"]:  # which came later than its digest
        kept["validation"] = {name: each for name, each in expected.items() if name != "wrong"}
    return kept


def _canonical(value: Any) -> bytes:
    """Return a value as JSON that is the same for equal values."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str)
    except TypeError:  # an integer beyond 64 bits, or half of a surrogate pair
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
        return text.encode("ascii")
