"""The default rules for models, checked before any read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from delta_engine.aspects import COLUMN_FACETS, TABLE_FACETS
from delta_engine.aspects.delta_properties import (
    CHANGE_FEED,
    CHANGE_FEED_COLUMNS,
    COLUMN_MAPPING_MODE,
    has_change_feed,
    is_maintained,
    needs_column_mapping,
)
from delta_engine.aspects.facet import Facet
from delta_engine.aspects.known_properties import known_values, probably_meant
from delta_engine.backends.stored_keys import PROPERTY_PREFIX
from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, Part, Securable, Table, of_kind
from delta_engine.models.constraints import MAX_NAME_LENGTH
from delta_engine.models.nested_types import field_names, forgotten_clause
from delta_engine.models.repetitions import repeated_columns, repeated_in_primary_key
from delta_engine.state.states import SECRET_KEY
from delta_engine.telemetry.visible import appearance
from delta_engine.validation.rules import (
    ALLOWED_IN_NAMES,
    Problem,
    look_alike,
    model_refusal,
    name_problem,
    of_each,
    unfit_key_columns,
)


class ValidTableNames:
    """Catalog, schema and table names follow Unity Catalog's rules (docs: "Names", object names)."""

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse empty names, names that are too long, and characters that Unity Catalog does not store."""
        named = (("catalog", model.catalog_name), ("schema", model.schema_name), ("table", model.table_name))
        for part, name in named:
            if reason := name_problem(name):
                yield Problem(f"{part} name {name!r} {reason}", ALLOWED_IN_NAMES)


class UniqueNames:
    """No two models describe one securable; names compare as Unity Catalog stores them, in lower case.

    A function and a table may have one name.
    """

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse each further model of a securable."""
        first: dict[tuple[str, str], Securable] = {}
        for model in models:
            name = model.qualified_name
            earlier = first.setdefault((name.kind, name.key), model)
            if earlier is not model:
                place = f" at {earlier.declared_at}" if earlier.declared_at else ""
                yield model_refusal(model, f"it is declared twice, first{place}", "Remove one of them.")


class NamesLookDifferent:
    """No two names of a catalog, a schema, a table or a struct look the same (composed and decomposed characters)."""

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse each name that equals an earlier one only in Unicode's normal form NFC, and show both."""
        earlier: dict[tuple[str, str], str] = {}
        for model in of_kind(Table, models):
            for subject, scope, name, column in self._names(model):
                first = earlier.setdefault((scope, appearance(name)), name)
                if first.lower() != name.lower():
                    yield model_refusal(model, f"{subject} {look_alike(name, first)}", "Rename one.", column)

    def _names(self, model: Table) -> Iterator[tuple[str, str, str, Column | None]]:
        """Yield the names beyond ASCII of a model, each with a label, what it is unique in, and its column."""
        scope = ""
        for kind, name in zip(("catalog", "schema", "table"), model.qualified_name.parts, strict=True):
            if not name.isascii():
                yield f"the name of its {kind}" if kind != "table" else "its name", scope, name, None
            scope = f"{scope}.{name}"
        for column in model.columns:
            if not column.name.isascii():
                yield "its name", f"{scope}.", column.name, column
            for path, name in field_names(column.data_type):
                if not name.isascii():
                    place = ".".join((scope, column.key, *path))
                    yield f"the name of its field {name!r}", place, name, column


class RenamedTables:
    """A table is renamed within its schema, from an undeclared name. Two tables never share an old name."""

    about: ClassVar = ("renamed_from",)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse a `renamed_from` that would move a table between schemas, or claim another model's table."""
        tables = of_kind(Table, models)
        declared = {model.qualified_name.key for model in tables}
        taken: dict[str, Table] = {}
        for model, name in ((table, name) for table in tables for name in table.renamed_from):
            former = replace(model.qualified_name, table=name).key
            reason = ""
            if name_problem(name):
                reason = "is not the name of a table in the same schema"
            elif former in declared:
                reason = "is the name of a declared table"
            elif taken.setdefault(former, model) is not model:
                reason = f"is also the old name of {taken[former].qualified_name}"
            if reason:
                reason = f"renamed_from {name!r} {reason}"
                yield model_refusal(model, reason, "Correct renamed_from, or remove it.")


class TablesHaveColumns:
    """A table needs at least one column."""

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse tables without columns, unless the model does not manage columns."""
        if not model.columns and model.is_about(Part.COLUMNS):
            yield Problem("it has no columns", "Declare at least one column.")


class ValidColumnNames:
    """Names of columns, and of fields inside them, are ones that Delta can store.

    Without column mapping, Delta refuses ` ,;{}()=` and white space, as Parquet does. Dots and backticks are
    refused too, because they break readers.
    """

    _NEVER = re.compile(r"[\x00-\x1f\x7f-\x9f]|\$\{")
    _USUAL = re.compile(rf"\w{{1,{MAX_NAME_LENGTH}}}", re.ASCII).fullmatch

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse names that Delta cannot store, or stores only with column mapping."""
        mode = model.effective_table_properties.get(COLUMN_MAPPING_MODE, "none")
        is_unmapped = mode == "none" and model.is_about(Part.COLUMNS)
        for column in model.columns:
            fields = field_names(column.data_type)
            if not fields and self._USUAL(column.name):  # most
                continue
            for name, is_field in [(column.name, False), *((name, True) for _, name in fields)]:
                if self._USUAL(name):
                    continue
                reason, way_out = name_problem(name, self._NEVER), "Rename it."
                if not reason and is_unmapped and needs_column_mapping(name, is_field=is_field):
                    reason = "has a character that Delta stores only with column mapping"
                    way_out = f"Rename it, or set the property {COLUMN_MAPPING_MODE}: name."
                if reason:
                    subject = f"the name of its field {name!r}" if is_field else "its name"
                    yield Problem(f"{subject} {reason}", way_out, column)


class ChangeFeedNamesAreFree:
    """No column of a table with a change data feed has the name of a column that the feed adds.

    Delta refuses the feed, and such a column in a table that has it (Databricks documentation, "Change data feed
    schema"; `DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS`, `RESERVED_CDC_COLUMNS_ON_WRITE`).
    """

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse the names in any case: readers of the feed could not tell two spellings apart."""
        if has_change_feed(model.effective_table_properties):
            for column in model.columns:
                if column.key in CHANGE_FEED_COLUMNS:
                    yield Problem(
                        f"the change data feed, which {CHANGE_FEED} switches on, has a column of this name",
                        f"Rename the column, or remove {CHANGE_FEED}.",
                        column,
                    )


class DuplicateColumnNames:
    """Column names are unique without regard to case."""

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse each column that repeats an earlier name."""
        for repetition in repeated_columns(model.columns):
            yield Problem(*repetition)


class PrimaryKeyColumnsNotNull:
    """The columns of a primary key exist, once each, and are NOT NULL."""

    about: ClassVar = ("primary_key",)

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse keys over absent, repeated or nullable columns."""
        if model.primary_key is None:
            return
        if not model.primary_key.columns:
            yield Problem("its primary key has no columns", "Name columns, or remove the key.")
        yield from unfit_key_columns(model)
        for repetition in repeated_in_primary_key(model.primary_key):
            yield Problem(*repetition)


class ReadableProperties:
    """Property keys are ones whose value can be read back, each once, and not the engine's own.

    The platform hides values of keys that look like secrets or addresses (`states.SECRET_KEY`), so they are not
    comparable. Delta ignores the case of its own keys, so two spellings would overwrite each other in every run.
    """

    _NO_PROPERTIES = ("clusterbyauto", "clusteringcolumns", "delta.feature.clustering")
    _RESERVED = frozenset(
        {
            *(
                "collation",
                "comment",
                "external",
                "is_managed_location",
                "location",
                "owner",
                "path",
                "provider",
            ),
            "table_type",
        }
    )
    """Keys that Spark refuses as a property, or interprets and does not store (measured on 4.1.1)."""

    _OPTION = "option."
    """Spark passes options of a statement under this prefix. Delta drops them from the properties of a table that
    CREATE OR REPLACE makes, and `option.path` of each new one (measured on Spark 4.1.1 with Delta 4.3.1)."""

    _INSTRUCTION = "delta.ignoreprotocoldefaults"

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse keys that Spark redacts, keys under the engine's prefixes, and Delta's own keys in two spellings."""
        spellings: dict[str, str] = {}
        for key in model.effective_table_properties:
            reason, way_out = "", "Rename or remove it."
            if not key:
                reason = "is empty"
            elif key.lower().startswith("delta.") and spellings.setdefault(key.lower(), key) != key:
                reason = f"is the same to Delta as {spellings[key.lower()]!r}, which the table also has"
            elif SECRET_KEY.search(key):
                reason = "cannot be managed: Spark hides the values of such keys"
                way_out = "Rename or remove the property. Never put credentials into properties."
            elif key in self._RESERVED:
                reason = "is reserved by Spark"
            elif key.lower() in self._NO_PROPERTIES:
                reason = "is how the platform stores clustering"
            elif key.lower().startswith((PROPERTY_PREFIX, "delta.constraints.")):
                reason = "is how the platform stores constraints"
            elif key.startswith(self._OPTION):
                reason = "is an option of Spark: CREATE OR REPLACE TABLE does not store such properties"
            elif key.lower() == self._INSTRUCTION:
                reason, way_out = "is an instruction that Delta follows but does not store", "Remove it."
            elif is_maintained(key):
                reason, way_out = "is set by the platform alone", "Remove it."
            if reason:
                yield Problem(f"property {key!r} {reason}", way_out)


class KnownPropertiesFit:
    """Delta's properties are spelled as Delta knows them and have values that it takes; unknown ones pass.

    Delta compares its own keys without case. An unknown property is refused only if it resembles a known one: any
    other may be newer than the engine.
    """

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse misspelt keys, and values that Delta refuses when a statement sets them."""
        for key, value in model.effective_table_properties.items():
            values = known_values(key)
            if values is not None and not values.allow(value):
                yield Problem(
                    f"property {key!r} is {value!r}", f"Write {values.words}, or remove the property."
                )
            elif meant := probably_meant(key):
                yield Problem(f"Delta has no property {key!r}", f"Did you mean {meant!r}?")


class KeepsNestedClauses:
    """NOT NULL and COMMENT on a field inside a column stand only where the platform keeps them."""

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse clauses that Delta refuses or Spark does not store."""
        for column in model.columns:
            if forgotten := forgotten_clause(column.data_type):
                field, clause = forgotten
                yield Problem(
                    f"its field {field} cannot have {clause}: arrays and maps lose NOT NULL, and columns with char "
                    "or varchar inside lose NOT NULL and COMMENT",
                    f"Remove {clause} there.",
                    column,
                )


class DeclaresOnlyWhatItManages:
    """A model that manages only some parts of a table declares no other parts."""

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse declarations that the engine would ignore, and models that manage nothing."""
        if model.manages is None:
            return
        if not model.manages:
            yield Problem("its manages is empty", "Name a part, or remove manages.")
        declared: list[Facet[Any, Any, Any]] = [facet for facet in TABLE_FACETS if facet.is_declared(model)]
        declared += [facet for facet in COLUMN_FACETS if any(map(facet.is_declared, model.columns))]
        parts_by_title = {facet.title: facet.part for facet in declared if facet.title}
        for what, part in parts_by_title.items() if model.manages else ():
            if part is not None and not model.is_about(part):
                reason = f"it declares {what}, but does not manage {part.value}"
                yield Problem(reason, f"Add {part.value} to manages, or remove {what}.")
