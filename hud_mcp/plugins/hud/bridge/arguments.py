"""Arguments that a JSON schema describes, instead of the signature of a function."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry

from hud_mcp.base.schema import plain_schema
from hud_mcp.environment.arguments import Arguments, clip_value, withhold_answers
from hud_mcp.errors import InvalidEnvironment, InvalidTask, did_you_mean

__all__ = ["SchemaArguments"]

_SHOWN_ERRORS = 5


class SchemaArguments(Arguments):
    """Arguments with the schema of a peer: they are checked, and passed on unchanged.

    Args:
        schema: The JSON schema of an object.
        noun: The name of the tool or template in errors.
        where: The place of its declaration, for the author's errors.
        worlds: The parameters that receive the session's world.
        renamed: The peer's name of each argument that has another name here.

    A schema that is not that of an object raises InvalidEnvironment.
    """

    def __init__(
        self,
        schema: Any,
        *,
        noun: str,
        where: str,
        worlds: Mapping[str, type],
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self.noun = noun
        self.where = where
        self.world_types = dict(worlds)
        self._renamed = dict(renamed or {})
        given = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
        try:
            Draft202012Validator.check_schema(given)
            plain = plain_schema({"type": "object", **given})
        except (SchemaError, RecursionError) as exc:
            reason = getattr(exc, "message", None) or "it contains itself"
            raise InvalidEnvironment(f"{where}: {noun} has no usable schema: {reason}") from None
        if plain.get("type", "object") != "object" or not isinstance(plain["properties"], dict):
            raise InvalidEnvironment(f"{where}: the arguments of {noun} are not an object.")
        self.schema = _rename(plain, {old: new for new, old in self._renamed.items()})
        self.schema["type"] = "object"
        withhold_answers(self.schema)
        self.names = tuple(self.schema["properties"])
        # A schema from outside must not have us fetch what it refers to.
        self._check = Draft202012Validator(self.schema, registry=Registry[Any]())

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return checked JSON arguments for the peer.

        InvalidTask names each wrong one and its form.
        """
        plain = dict(given)
        try:
            self._refuse_non_finite(plain)
            errors = list(islice(self._errors(plain), _SHOWN_ERRORS))
        except RecursionError:
            raise InvalidTask(f"{self.noun}: its arguments are nested too deeply.") from None
        if errors:
            raise InvalidTask(f"{self.noun}: {'; '.join(map(self._explanation, errors))}.")
        return {self._renamed.get(name, name): value for name, value in plain.items()}

    def _errors(self, given: Mapping[str, Any]) -> "Iterator[ValidationError]":
        return cast("Iterator[ValidationError]", self._check.iter_errors(given))  # pyright: ignore[reportUnknownMemberType]

    def _explanation(self, error: ValidationError) -> str:
        path = ".".join(str(part) for part in error.absolute_path)
        instance, kind = cast("Any", error.instance), str(error.validator)
        wanted = cast("Any", error.validator_value)
        if kind == "required":
            missing = [name for name in wanted if name not in instance]
            inside = f" in {path!r}" if path else ""
            return f"argument {missing[0]!r} is required{inside}" if missing else error.message
        if kind == "additionalProperties" and not path:
            unknown = sorted(set(instance) - set(self.names))
            takes = ", ".join(self.names) or "none"
            hint = did_you_mean(unknown[0], self.names) if unknown else ""
            return f"there is no argument {unknown[0]!r}.{hint} It takes: {takes}"
        if kind == "type":
            names = wanted if isinstance(wanted, str) else " or ".join(map(str, wanted))
            return f"argument {path!r} should be of type {names}, got {clip_value(instance)}"
        if kind == "enum":
            choices = ", ".join(repr(choice) for choice in wanted)
            return f"argument {path!r} should be one of {choices}, got {clip_value(instance)}"
        if kind in ("anyOf", "oneOf"):
            return f"argument {path!r} is of none of its types, got {clip_value(instance)}"
        return f"argument {path!r}: {error.message[:200]}" if path else error.message[:200]


def _rename(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    if not names:
        return schema
    required = [names.get(name, name) for name in schema.get("required", ())]
    properties = {names.get(name, name): each for name, each in schema["properties"].items()}
    return {**schema, "properties": properties, **({"required": required} if required else {})}
