"""Where a conformance run works, and the names of everything that it makes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from delta_engine.backends.capabilities import Capabilities, Feature
from delta_engine.errors import ConfigError
from delta_engine.models import QualifiedName, SchemaName

PREFIX: Final = "delta_engine_conformance_"
"""The beginning of every name that a run gives. Nothing with another name is ever dropped."""

RUN_ID: Final = re.compile(r"[0-9a-f]{8}")

_RESERVED_SCHEMAS: Final = ("information_schema",)
_RESERVED_CATALOGS: Final = ("system", "samples", "__databricks_internal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run works.

    Args:
        catalog: the catalog.
        schema: the schema that the user named.
        run_id: eight hexadecimal digits that no other run has.
        user: the principal that runs it; empty where the platform knows none.
        external_location: where an external table may be made; empty for none.
    """

    catalog: str
    schema: str
    run_id: str
    user: str = ""
    external_location: str = ""

    def table(self, name: str) -> QualifiedName:
        """Return the name of a scratch table."""
        return QualifiedName(self.catalog, self.schema, self._named(name))

    def function(self, name: str) -> QualifiedName:
        """Return the name of a scratch function."""
        return QualifiedName(self.catalog, self.schema, self._named(name))

    @property
    def scratch_schema(self) -> SchemaName:
        """A schema of the run's own, beside the one that the user named."""
        return SchemaName(self.catalog, self._named("schema"))

    @property
    def missing_catalog(self) -> str:
        """A catalog that does not exist."""
        return self._named("missing")

    def location(self, name: str) -> str:
        """Return where the files of an external scratch table are."""
        return f"{self.external_location.rstrip('/')}/{self._named(name)}"

    def is_own(self, name: QualifiedName) -> bool:
        """Whether this run gave a name."""
        return name.table.lower().startswith(self._named(""))

    def refusals(self, capabilities: Capabilities, *features: Feature) -> tuple[str, ...]:
        """Return why a platform cannot do here what some features stand for; empty if it can."""
        reasons = {feature: capabilities.refusal(feature, self.catalog) for feature in features}
        return tuple(f"{feature.value}: {reason}" for feature, reason in reasons.items() if reason)

    def _named(self, name: str) -> str:
        return f"{PREFIX}{self.run_id}_{name}"


def parse_target(target: str) -> SchemaName:
    """Return the schema that a user named.

    Raises:
        ConfigError: it is no schema's name, or one that the platform keeps for itself.
    """
    parts = [part.strip() for part in target.split(".")]
    if len(parts) != 2 or not all(parts):
        raise ConfigError(
            f"{target!r} does not name a schema", way_out="Write catalog.schema, without quotes."
        )
    catalog, schema = parts
    if catalog.lower() in _RESERVED_CATALOGS or schema.lower() in _RESERVED_SCHEMAS:
        raise ConfigError(
            f"the conformance run cannot work in {target}: the platform keeps it for itself",
            way_out="Name a schema that you may create tables in.",
        )
    return SchemaName(catalog, schema)


def run_id_of(name: QualifiedName) -> str | None:
    """Return the id of the run that gave a name; None for a name of another origin."""
    if not name.table.lower().startswith(PREFIX):
        return None
    run_id, _, rest = name.table[len(PREFIX) :].partition("_")
    return run_id if rest and RUN_ID.fullmatch(run_id) else None
