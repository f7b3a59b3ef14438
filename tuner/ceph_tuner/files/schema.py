"""Structure by JSON Schema: which keys there are, and of what type. Ranges and meaning are the core's."""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.files.yaml_document import YamlDocument

MOST_FAULTS = 20
"""Finding the line of one takes longer the larger the file is."""

_NAMES: Dict[type, str] = {type(None): "nothing", dict: "a mapping", list: "a list"}
_TYPES = {
    "object": "a mapping of keys to values",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "nothing",
}


def _is_whole(_: Any, value: Any) -> bool:
    # JSON Schema takes 4.0 for one, and nothing that counts does
    return isinstance(value, int) and not isinstance(value, bool)


@cache
def _validator() -> Any:
    from jsonschema import Draft7Validator, validators  # a fifth of a second, which who reads no file does not wait for

    extend: Any = validators.extend
    return extend(Draft7Validator, type_checker=Draft7Validator.TYPE_CHECKER.redefine("integer", _is_whole))


class SchemaFault(NamedTuple):
    """A part of a document that is not as its schema says. They order by the lines of the document."""

    missing: bool
    """Whether a key is missing: a misspelled one, elsewhere, may be it, and comes first."""
    line: int
    keys: Tuple[object, ...]
    error: InputError


def check(document: YamlDocument, schema: Mapping[str, Any], version: Optional[int] = None) -> None:
    """Raise InputError for the first of `faults`."""
    all_faults = faults(document, schema, version)
    if all_faults:
        raise all_faults[0].error


def faults(document: YamlDocument, schema: Mapping[str, Any], version: Optional[int] = None) -> List[SchemaFault]:
    """Give the first MOST_FAULTS faults of a document, in the order of its lines.

    Where a version is given, another one under the key `schema` is the only one: the keys of that one may be others.
    """
    if version is not None and isinstance(document.data, dict):
        found_version = document.data.get("schema", version)
        if _is_whole(None, found_version) and found_version != version:
            error = InputError(document.place("schema"), repr(found_version), str(version))
            return [SchemaFault(False, document.line("schema"), ("schema",), error)]
    errors = islice(_validator()(schema).iter_errors(document.data), MOST_FAULTS)
    return sorted((_fault(document, error) for error in errors), key=lambda fault: fault[:2])


def _fault(document: YamlDocument, error: Any) -> SchemaFault:
    keys: List[object] = list(error.absolute_path)
    content, expected = _words(error)
    if not keys and not isinstance(document.data, (dict, list)):
        # a file of another kind: what is all there is of it may be a password
        content = "nothing" if document.data is None else "one value"
    if error.validator == "additionalProperties":
        extra = sorted(set(error.instance) - set(error.schema.get("properties", {})), key=str)[0]
        keys.append(extra)
        content = f"unknown key {extra!r}"
        expected = f"one of {', '.join(error.schema['properties'])}"
    refusal = InputError(document.place(*keys), content, expected)
    return SchemaFault(error.validator == "required", document.line(*keys), tuple(keys), refusal)


def _words(error: Any) -> Tuple[str, str]:
    """Say in our words what was found and what was expected."""
    content = _NAMES.get(type(error.instance)) or repr(error.instance)[:60]
    rule: Any = error.validator_value
    if error.validator == "type":
        kinds = rule if isinstance(rule, list) else [rule]
        return content, " or ".join(_TYPES[kind] for kind in kinds)
    if error.validator == "required":
        absent = [key for key in rule if key not in error.instance]
        return f"no key {absent[0]!r}", f"{absent[0]}, as every one has it"
    if error.validator == "enum":
        return repr(error.instance), f"one of {', '.join(str(value) for value in rule)}"
    return content, f"{error.validator} {rule}"


def mapping(properties: Dict[str, Any], *required_keys: str) -> Dict[str, Any]:
    """The schema of a mapping that has no other keys than these."""
    return {"type": "object", "properties": properties, "required": list(required_keys), "additionalProperties": False}


def of_file(title: str, properties: Dict[str, Any], *required_keys: str) -> Dict[str, Any]:
    """The schema of a whole file, which is such a mapping."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"ceph-tuner {title}",
        **mapping(properties, *required_keys),
    }


_TEXT = {"type": "string"}

PROFILE = of_file(
    "profile",
    {
        "schema": {"type": "integer"},
        "name": _TEXT,
        "description": _TEXT,
        "release": _TEXT,
        "version": _TEXT,
        "built_in": {"type": "boolean"},
        "hardware": mapping(
            {
                "capacity_iops": {"type": "number"},
                "bandwidth_bytes_s": {"type": "number"},
                "shards": {"type": "integer"},
                "device_class": _TEXT,
                "osds": {"type": "integer"},
            },
            "capacity_iops",
            "bandwidth_bytes_s",
            "shards",
        ),
        "workload": _TEXT,
        "slos": {"type": "array", "items": {"type": "object"}},
        "evidence": {"type": "array", "items": {"type": "object"}},
        "settings": {"type": "object"},
    },
    "schema",
    "name",
    "release",
    "settings",
)
"""A profile file; `docs/profiles.md` explains it."""
