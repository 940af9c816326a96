"""The keys of configurations, of the drift policy and of consents, as Markdown tables, from the schemas of editors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from delta_engine.config.editor_schemas import editor_schema

_TAG: Final = "type"
_LINKS: Final[Mapping[str, Mapping[str, str]]] = {
    "configuration": {
        name: f"#{name}"
        for name in (
            *("extends", "backend", "variables", "models", "state_backend"),
            *("owns", "policy", "drift", "apply", "defaults"),
        )
    },
    "backend": {"type": "backends.md", "leave_out": "backends.md#leave-features-out"},
    "state_backend": {"type": "deployment-state.md#where-it-is"},
    "policy": {
        "allow": "rules.md#consent",
        "removed_tables": "rules.md#tables-that-are-not-declared-any-more",
        "policies_on": "models.md#policy",
        "rules": "rules.md#your-own-rules",
        "max_rewrite_bytes": "data-changes.md#what-it-costs",
        "drift": "drift.md#what-sync-does-about-it",
        "drift_severities": "drift.md#what-is-found",
    },
    "ignored": {"resource": "commands.md#globs", "fields": "drift.md#what-is-found"},
    "consents": {"kind": "rules.md#consent"},
}
"""The section that explains a key, where a line does not, by mark."""

_KINDS: Final = {"backend": "what runs SQL", "state_backend": "the kind of store"}

_MOST_VALUES: Final = 5
"""More fixed values than this stand where the link of the key leads."""


class Key(NamedTuple):
    """A key of a mapping.

    Args:
        of: the types of the mapping that have it; none if every type has it, or if there is one.
    """

    name: str
    schema: Mapping[str, Any]
    is_required: bool
    of: Sequence[str] = ()


def configuration_tables() -> Mapping[str, str]:
    """Return the tables of the page about configurations, by mark."""
    config, policy, consents = (_Schema(name) for name in ("config", "policy", "consents"))
    sections = ("models", "policy", "drift", "apply", "defaults")
    return {
        mark: _table(keys, _LINKS.get(mark, {}))
        for mark, keys in {
            "configuration": config.keys_of("Configuration"),
            **{section: config.variants(section) for section in ("backend", "state_backend")},
            **{section: config.section(section) for section in sections},
            "ignored": policy.keys_of("IgnoredDrift"),
            "consents": consents.keys_of("Consent"),
        }.items()
    }


class _Schema:
    """A schema of an editor, with its definitions."""

    def __init__(self, name: str) -> None:
        self.definitions: Mapping[str, Any] = json.loads(editor_schema(name))["$defs"]

    def keys_of(self, name: str) -> list[Key]:
        """Return the keys of a definition."""
        return list(self._keys(self.definitions[name]))

    def section(self, name: str) -> list[Key]:
        """Return the keys of a section of a configuration."""
        return list(self._keys(self._resolved(self.definitions["Configuration"]["properties"][name])))

    def variants(self, name: str) -> list[Key]:
        """Return the keys of a section with several types, those inside its mappings with their path."""
        kinds = {
            kind["properties"][_TAG]["enum"][0]: list(self._flat(kind, ""))
            for kind in self._options(self.definitions["Configuration"]["properties"][name])
        }
        keys: dict[str, Key] = {
            _TAG: Key(_TAG, {"description": _KINDS[name], "enum": [*kinds]}, is_required=True)
        }
        for kind, its_keys in kinds.items():
            for key in its_keys:
                before = keys.get(key.name, key)
                keys[key.name] = before._replace(of=(*before.of, kind))
        return [key._replace(of=() if len(key.of) == len(kinds) else key.of) for key in keys.values()]

    def _flat(self, schema: Mapping[str, Any], prefix: str) -> Iterator[Key]:
        for key in self._keys(schema):
            name, below = f"{prefix}{key.name}", self._resolved(key.schema)
            if "properties" in below:
                yield from self._flat(below, f"{name}.")
            elif key.name != _TAG or prefix == "lock.":
                yield key._replace(name=name)

    def _keys(self, schema: Mapping[str, Any]) -> Iterator[Key]:
        required = schema.get("required", ())
        for name, value in schema["properties"].items():
            yield Key(name, {**self._resolved(value), **value}, is_required=name in required)

    def _options(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        for option in schema.get("anyOf", (schema,)):
            below = self._resolved(option)
            if "anyOf" in below:
                yield from self._options(below)
            elif "properties" in below:
                yield below

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = schema.get("$ref")
        return schema if reference is None else self.definitions[reference.rpartition("/")[2]]


def _table(keys: Sequence[Key], links: Mapping[str, str]) -> str:
    of_types = any(key.of for key in keys)
    head = ["key", *(["for"] if of_types else []), "type", "default", "meaning"]
    rows = [head, ["---"] * len(head), *([*_cells(key, links, of_types=of_types)] for key in keys)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(key: Key, links: Mapping[str, str], *, of_types: bool) -> Iterator[str]:
    link = links.get(key.name)
    yield f"[`{key.name}`]({link})" if link else f"`{key.name}`"
    if of_types:
        yield ", ".join(f"`{kind}`" for kind in key.of) or "all"
    yield _type(key.schema)
    yield "required" if key.is_required else _default(key.schema)
    yield key.schema.get("description", "").removesuffix(".").replace("|", "\\|")


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"enum": [*values]} if len(values) > _MOST_VALUES:
            return "string"
        case {"enum": [*values]}:
            *before, last = (f"`{value}`" for value in values)
            return f"{', '.join(before)} or {last}" if before else last
        case {"anyOf": [*options]}:
            names = [_type(option) for option in options if option.get("type") != "null"]
            return " or ".join(dict.fromkeys(names))
        case {"minimum": least, "maximum": most}:
            return f"{schema['type']}, {least} to {most}"
        case {"format": "date"}:
            return "date"
        case {"type": str(name)}:
            return _WORDS.get(name, name)
    return "mapping"


_WORDS: Final = {"array": "list", "object": "mapping", "boolean": "`true` or `false`"}


def _default(schema: Mapping[str, Any]) -> str:
    match schema.get("default"):
        case None:
            return "`{}`" if "properties" in schema else "none"
        case "":
            return '`""`'
        case str(text):
            return f"`{text}`"
        case value:
            return f"`{json.dumps(value)}`"
