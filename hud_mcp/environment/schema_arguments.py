"""The arguments of a peer's template or tool: a JSON schema describes them, and no signature."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry

from hud_mcp.base.reading import Fault, place_of, tell
from hud_mcp.base.schema import plain_schema
from hud_mcp.environment.arguments import Arguments, withhold_answers
from hud_mcp.errors import InvalidEnvironment, InvalidTask

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
            found = cast("Iterator[ValidationError]", self._check.iter_errors(plain))  # pyright: ignore[reportUnknownMemberType]
            errors = list(islice(found, _SHOWN_ERRORS))
        except RecursionError:
            raise InvalidTask(f"{self.noun}: its arguments are nested too deeply.") from None
        if errors:
            raise InvalidTask(f"{self.noun}: {tell(map(self._fault, errors))}")
        return {self._renamed.get(name, name): value for name, value in plain.items()}

    def _fault(self, error: ValidationError) -> Fault:
        path = place_of(error.absolute_path)
        instance, wanted = cast("Any", error.instance), cast("Any", error.validator_value)
        if error.validator == "required":
            return Fault.missing(path, next(name for name in wanted if name not in instance))
        if error.validator == "additionalProperties" and not path:
            return Fault.unknown(path, min(set(instance) - set(self.names)), self.names)
        schema = cast("dict[str, Any]", error.schema)
        return Fault.of(path, schema, instance, other=error.message[:200])


def _rename(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    if not names:
        return schema
    required = [names.get(name, name) for name in schema.get("required", ())]
    properties = {names.get(name, name): each for name, each in schema["properties"].items()}
    return {**schema, "properties": properties, **({"required": required} if required else {})}
