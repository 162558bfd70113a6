"""The wishes of a request beside its messages: tools, and how the reply is to be made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hud_mcp.plugins.models.gateway.dialects import Json
from hud_mcp.plugins.models.gateway.dialects.body import count_of, dict_of, dicts_of, text_of
from hud_mcp.plugins.models.gateway.dialects.gemini import camel
from hud_mcp.plugins.models.gateway.refusals import Refused

__all__ = ["WISHES", "Tool", "Wishes", "refuse"]

_LOW, _MEDIUM = 4_000, 16_000
"""Budgets of reasoning up to which it is a low or a medium effort."""
_EFFORTS = {"none": False, "minimal": "minimal", "low": "low", "medium": "medium", "high": "high",
            "xhigh": "xhigh", "max": "xhigh"}  # fmt: skip


@dataclass(frozen=True)
class Tool:
    """A tool of a request.

    Attributes:
        name: Its name as calls have it.
        space: The namespace that a call names beside it.
        is_text: Whether its calls have a text in the place of arguments.
    """

    name: str
    about: str
    schema: Json
    is_strict: bool = False
    space: str = ""
    is_text: bool = False

    @property
    def full_name(self) -> str:
        """The name with its namespace."""
        return f"{self.space}__{self.name}" if self.space else self.name


@dataclass
class Wishes:
    """The tools of a request, and how it wants its reply.

    Attributes:
        choice: The tools to call: `auto`, `none`, `required`, or the names of some.
        settings: Settings in the words of the models' library.
        schema: The schema of a reply of JSON; the empty one for any object.
    """

    tools: list[Tool] = field(default_factory=list[Tool])
    choice: str | list[str] = "auto"
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    schema: Json | None = None
    schema_name: str | None = None


def refuse(what: str) -> Refused:
    """Return the refusal of what no other provider can do."""
    return Refused(
        f"This run's model is of another provider, to which {what} cannot be translated. Leave it "
        "out."
    )


def _needless(value: Json, *names: str) -> None:
    for name in names:
        if value.get(name):
            raise refuse(f'"{name}"')


def _settings(value: Json, **names: str) -> dict[str, Any]:
    found = {name: value.get(given) for name, given in names.items()}
    return {name: each for name, each in found.items() if isinstance(each, int | float | list)}


def _thinking(effort: Any, budget: int | None = None) -> dict[str, Any]:
    """Return the setting of an effort, or of a budget of tokens."""
    level = _EFFORTS.get(text_of(effort).lower())
    if level is None and budget is not None:
        level = budget and ("low" if budget <= _LOW else "medium" if budget <= _MEDIUM else "high")
        level = level or False
    return {} if level is None else {"thinking": level}


def _function(tool: Json, schema: str, kinds: tuple[str, ...], space: str = "") -> Tool:
    kind = text_of(tool.get("type"))
    if kind not in kinds:
        raise refuse(f"the tool {text_of(tool.get('name')) or kind!r} of type {kind!r}")
    is_text = kind == "custom" and not tool.get(schema)
    given = _TEXT if is_text else dict_of(tool.get(schema)) or _NOTHING
    about = text_of(tool.get("description"))
    if is_text and (grammar := text_of(dict_of(tool.get("format")).get("definition"))):
        about += f"\n\nThe text has this grammar:\n{grammar}"
    return Tool(text_of(tool.get("name")), about, given, tool.get("strict") is True, space, is_text)


_NOTHING: Json = {"type": "object", "properties": {}}
_TEXT: Json = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


def _messages(value: Json) -> Wishes:
    _needless(value, "mcp_servers", "container")
    choice, thinking = dict_of(value.get("tool_choice")), dict_of(value.get("thinking"))
    config = dict_of(value.get("output_config"))
    form = dict_of(config.get("format") or value.get("output_format"))
    settings = _settings(
        value, temperature="temperature", top_p="top_p", top_k="top_k",
        stop_sequences="stop_sequences",
    )  # fmt: skip
    if thinking:
        is_off = thinking.get("type") == "disabled"
        effort = "none" if is_off else config.get("effort")
        settings |= _thinking(effort, count_of(thinking.get("budget_tokens")))
    if choice.get("disable_parallel_tool_use") is True:
        settings["parallel_tool_calls"] = False
    named = {"any": "required", "none": "none", "tool": [text_of(choice.get("name"))]}
    return Wishes(
        [_function(tool, "input_schema", ("", "custom")) for tool in dicts_of(value.get("tools"))],
        named.get(text_of(choice.get("type")), "auto"),
        settings,
        dict_of(form["schema"]) if "schema" in form else None,
    )


def _openai(value: Json, settings: dict[str, Any], form: Json, effort: Any) -> Wishes:
    settings |= _settings(value, temperature="temperature", top_p="top_p") | _thinking(effort)
    if isinstance(value.get("parallel_tool_calls"), bool):
        settings["parallel_tool_calls"] = value["parallel_tool_calls"]
    has_schema = text_of(form.get("type")).startswith("json")
    schema = dict_of(form.get("schema")) if has_schema else None
    choice = _openai_choice(value.get("tool_choice"))
    return Wishes([], choice, settings, schema, text_of(form.get("name")) or None)


def _openai_choice(choice: Any) -> str | list[str]:
    if isinstance(choice, str):
        return choice if choice in ("none", "required") else "auto"
    given = dict_of(choice)
    kind = text_of(given.get("type"))
    inner = dict_of(given.get(kind)) or given
    if kind == "allowed_tools":
        tools = [dict_of(each.get("function")) or each for each in dicts_of(inner.get("tools"))]
        return [text_of(each.get("name")) for each in tools] or "auto"
    if kind in ("function", "custom"):
        return [text_of(inner.get("name"))]
    if kind:
        raise refuse(f'"tool_choice" of type {kind!r}')
    return "auto"


def _chat(value: Json) -> Wishes:
    _needless(value, "functions", "audio", "web_search_options", "logprobs")
    if "audio" in str(value.get("modalities")):
        raise refuse("a reply of sound")
    settings = _settings(
        value, seed="seed", stop_sequences="stop", presence_penalty="presence_penalty",
        frequency_penalty="frequency_penalty",
    )  # fmt: skip
    if isinstance(stop := value.get("stop"), str):
        settings["stop_sequences"] = [stop]
    form = dict_of(value.get("response_format"))
    form |= dict_of(form.get("json_schema"))
    wishes = _openai(value, settings, form, value.get("reasoning_effort"))
    for tool in dicts_of(value.get("tools")):
        inner = dict_of(tool.get("function"))
        kind = {"type": text_of(tool.get("type")) or "function"}
        wishes.tools.append(_function(inner | kind, "parameters", ("function",)))
    return wishes


def _responses(value: Json) -> Wishes:
    form = dict_of(dict_of(value.get("text")).get("format"))
    wishes = _openai(value, {}, form, dict_of(value.get("reasoning")).get("effort"))
    lent = [t for item in dicts_of(value.get("input")) if item.get("type") == "additional_tools"
            for t in dicts_of(item.get("tools"))]  # fmt: skip
    kinds = ("function", "custom")
    for tool in [*dicts_of(value.get("tools")), *lent]:
        if tool.get("type") == "namespace":
            space = text_of(tool.get("name"))
            inner = dicts_of(tool.get("tools"))
            wishes.tools += [_function(each, "parameters", kinds, space) for each in inner]
        else:
            wishes.tools.append(_function(tool, "parameters", kinds))
    return wishes


def _gemini(value: Json) -> Wishes:
    value = camel(value)
    config = camel(dict_of(value.get("generationConfig")))
    _needless(config, "responseLogprobs", "speechConfig")
    if {"IMAGE", "AUDIO"} & {str(each) for each in config.get("responseModalities") or ()}:
        raise refuse("a reply of pictures or sound")
    thinking = camel(dict_of(config.get("thinkingConfig")))
    budget = count_of(thinking.get("thinkingBudget"))
    wishes = Wishes(settings=_thinking(thinking.get("thinkingLevel"), budget))
    wishes.settings |= _settings(
        config, temperature="temperature", top_p="topP", top_k="topK", seed="seed",
        stop_sequences="stopSequences", presence_penalty="presencePenalty",
        frequency_penalty="frequencyPenalty",
    )  # fmt: skip
    for tool in dicts_of(value.get("tools")):
        for name in tool:
            if name not in ("functionDeclarations", "function_declarations"):
                raise refuse(f"the tool {name!r}")
        for each in dicts_of(camel(tool).get("functionDeclarations")):
            declared = camel(each)
            schema = declared.get("parametersJsonSchema") or _plain(declared.get("parameters"))
            kind = {"parameters": schema, "type": "function"}
            wishes.tools.append(_function(declared | kind, "parameters", ("function",)))
    calling = camel(dict_of(camel(dict_of(value.get("toolConfig"))).get("functionCallingConfig")))
    names = calling.get("allowedFunctionNames")
    if calling.get("mode") == "ANY":
        wishes.choice = [text_of(each) for each in names or ()] or "required"
    elif calling.get("mode") == "NONE":
        wishes.choice = "none"
    if text_of(config.get("responseMimeType")) == "application/json":
        schema = config.get("responseJsonSchema") or _plain(config.get("responseSchema"))
        wishes.schema = dict_of(schema)
    return wishes


def _plain(schema: Any) -> Any:
    """Return Google's form of a schema as JSON Schema: its types are in upper case."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]  # pyright: ignore[reportUnknownVariableType]
    given = dict_of(schema)
    if not given:
        return schema
    plain = {name: _plain(each) for name, each in given.items()}
    if isinstance(kind := given.get("type"), str):
        is_nullable = plain.pop("nullable", False) is True
        plain["type"] = [kind.lower(), "null"] if is_nullable else kind.lower()
    return plain


WISHES: Mapping[str, Callable[[Json], Wishes]] = {
    "messages": _messages,
    "chat": _chat,
    "responses": _responses,
    "gemini": _gemini,
}
"""The readers of the dialects' bodies."""
