"""JSON schemas for editors: of model files, of configurations, of the drift policy, of consents and of house rules.

They derive from what the readers read: the facets of models, and the shapes of configurations. A schema sees keys,
types and fixed values. Rules, variables and types inside types are left to `delta-engine validate`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from delta_engine.aspects.facet import REQUIRED, Facet
from delta_engine.config.consents import ConsentsDocument
from delta_engine.config.extended import EXTENDS
from delta_engine.config.json_schema import describe
from delta_engine.config.lint import HOUSE_RULES, LintDocument
from delta_engine.config.model_text import COLUMN_FIELDS, FIELDS, LISTS, Fields, alternatives
from delta_engine.config.policies import DriftPolicyDocument
from delta_engine.config.settings import Configuration

_DRAFT = "http://json-schema.org/draft-07/schema#"
"""The draft that all editors know."""

_DEFINITIONS = "#/$defs/"
_REFERENCE = _DEFINITIONS + "{name}"

_Schema = dict[str, Any]


def editor_schema(name: str) -> str:
    """Return a schema of `EDITOR_SCHEMAS` as indented JSON."""
    return json.dumps(EDITOR_SCHEMAS[name](), indent=2, ensure_ascii=False)


def _model_schema() -> _Schema:
    definitions: dict[str, _Schema] = {}
    for word, fields in FIELDS.items():
        definitions[word.capitalize()] = _mapping(f"A {word}.", fields, definitions)
    definitions["Table"] = _with_columns(definitions["Table"])
    column = _mapping("A column.", COLUMN_FIELDS, definitions)
    definitions["Column"] = {**column, "required": ["name"]}
    lists = {
        key: {
            "description": f"The {key} that the file declares.",
            "type": "array",
            "items": {"$ref": f"{_DEFINITIONS}{kind.word.capitalize()}"},
        }
        for key, kind in LISTS.items()
    }
    root = {"type": "object", "properties": lists, "additionalProperties": False, "minProperties": 1}
    return _document("model-file", "Delta Engine model file", root, definitions)


def _with_columns(table: _Schema) -> _Schema:
    """Return the schema of tables, in which columns with their types are required unless a model manages parts only."""
    columns = {"type": "array", "minItems": 1, "items": {"required": ["type"]}}
    whole = {"required": ["columns"], "properties": {"columns": columns}}
    required = [key for key in table["required"] if key != "columns"]
    return {**table, "required": required, "if": {"not": {"required": ["manages"]}}, "then": whole}


def _mapping(
    description: str,
    fields: Fields,
    definitions: dict[str, _Schema],
) -> _Schema:
    """Return the schema of a mapping with a key per field, and add the schemas that it references to `definitions`."""
    options = [{"oneOf": [{"required": [key]} for key in keys]} for keys in alternatives(fields)]
    return {
        "description": description,
        "type": "object",
        "properties": {field.key: _value(field, definitions) for field in fields},
        "required": [field.key for field in fields if field.default == REQUIRED],
        "additionalProperties": False,
        **({"allOf": options} if options else {}),
    }


def _value(field: Facet[Any, Any, Any], definitions: dict[str, _Schema]) -> _Schema:
    (written,), components = msgspec.json.schema_components(
        [field.form.written_type], ref_template=_REFERENCE
    )
    definitions.update(_closed(components))
    text = _LINK.sub(r"\1", field.meaning or "")
    return {"description": text, **_public(field.form.schema or written)}


_LINK: Final = re.compile(r"\[([^]]+)\]\([^)]*\)")


def _configuration_schema() -> _Schema:
    """Return the schema of configurations: one that extends another may leave required keys to it."""
    document = _shape_schema("configuration", "Delta Engine configuration", Configuration)
    whole = {"$ref": document.pop("$ref")}
    part = _part(whole, document["$defs"])
    document["$defs"] = dict(sorted(document["$defs"].items()))
    return {**document, "if": {"required": [EXTENDS]}, "then": part, "else": whole}


def _lint_schema() -> _Schema:
    """Return the schema of house rules: other names than those of the engine need rules of the project."""
    document = _shape_schema("house-rules", "Delta Engine house rules", LintDocument)
    definitions = document["$defs"]
    root, suppression = definitions["LintDocument"], definitions["Suppression"]["properties"]["rules"]
    rules = root["properties"]["rules"]
    definitions["Rule"] = {
        "description": "Whether a rule is on, and its options.",
        **rules["additionalProperties"],
    }
    rule = {"$ref": f"{_DEFINITIONS}Rule"}
    rules |= {"properties": dict.fromkeys(HOUSE_RULES, rule), "additionalProperties": rule}
    suppression["items"] = {"anyOf": [{"enum": [*HOUSE_RULES]}, suppression["items"]]}
    named = {"properties": {"rules": {"items": {"enum": [*HOUSE_RULES]}}}}
    known = {"rules": {"propertyNames": {"enum": [*HOUSE_RULES]}}, "suppressions": {"items": named}}
    root |= {"if": {"not": {"required": ["own_rules"]}}, "then": {"properties": known}}
    return {**document, "$defs": dict(sorted(definitions.items()))}


def _part(schema: _Schema, definitions: dict[str, _Schema]) -> _Schema:
    """Return a schema that requires no keys of a mapping and the mappings in it; add definitions that it needs."""
    match schema:
        case {"$ref": str(reference)}:
            whole = definitions[reference.removeprefix(_DEFINITIONS)]
            part = _part(whole, definitions)
            if part == whole:
                return schema
            definitions[f"Partial{reference.removeprefix(_DEFINITIONS)}"] = part
            return {**schema, "$ref": reference.replace(_DEFINITIONS, f"{_DEFINITIONS}Partial")}
        case {"anyOf": list(options)}:
            return {**schema, "anyOf": [_part(option, definitions) for option in options]}
        case {"properties": dict(properties)}:
            parts = {key: _part(property_schema, definitions) for key, property_schema in properties.items()}
            return {**schema, "properties": parts, **({"required": []} if "required" in schema else {})}
    return schema


def _shape_schema(name: str, title: str, shape: type) -> _Schema:
    (reference,), components = msgspec.json.schema_components([shape], ref_template=_REFERENCE)
    return _document(name, title, _public(reference), _closed(components))


def _document(name: str, title: str, root: _Schema, components: Mapping[str, _Schema]) -> _Schema:
    head = {"$schema": _DRAFT, "$id": f"urn:delta-engine:{name}:v1", "title": title}
    return {**head, **root, "$defs": dict(sorted(components.items()))}


def _closed(components: Mapping[str, _Schema]) -> dict[str, _Schema]:
    """Return msgspec's schemas with descriptions, refusing unknown keys as the readers do."""
    for component in components.values():
        component.pop("title", None)
        describe(component)
        if "properties" in component:
            component["additionalProperties"] = False
    public = {_public_name(name): _public(component) for name, component in components.items()}
    for component in public.values():
        for key, value in component.get("properties", {}).items():
            section = public.get(value.get("$ref", "").removeprefix(_DEFINITIONS), {})
            if _TAG in section.get("required", ()):
                component["properties"][key] = _without_tag(section)
    return public


_TAG: Final = "type"


def _without_tag(section: _Schema) -> _Schema:
    """Return the schema of a section that no other could replace: it may leave its type out."""
    return {**section, "required": [key for key in section["required"] if key != _TAG]}


def _public(value: Any) -> Any:
    """Return a schema with public names in its references, without the keyword that only OpenAPI has."""
    match value:
        case {"$ref": str(reference), **others}:
            name = _public_name(reference.removeprefix(_DEFINITIONS))
            return {"$ref": f"{_DEFINITIONS}{name}", **others}
        case Mapping():
            return {key: _public(item) for key, item in value.items() if key != "discriminator"}
        case list():
            return [_public(item) for item in value]
    return value


def _public_name(name: str) -> str:
    """Return the name of a class; with its module, where two modules have one of that name."""
    return name.removeprefix("delta_engine.config.").replace("_", "").replace(".", "")


EDITOR_SCHEMAS: Final[Mapping[str, Callable[[], _Schema]]] = {
    "model": _model_schema,
    "config": _configuration_schema,
    "policy": lambda: _shape_schema("drift-policy", "Delta Engine drift policy", DriftPolicyDocument),
    "consents": lambda: _shape_schema("consents", "Delta Engine consents", ConsentsDocument),
    "lint": _lint_schema,
}
"""What makes each schema, by the name that `delta-engine schema` takes."""
