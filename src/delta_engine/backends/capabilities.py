"""What a platform supports and how it spells it. Planner, rules and aspects ask this, never "which backend"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, unique
from types import MappingProxyType


class PrimaryKeySupport(Enum):
    """Where a primary key is stored."""

    CONSTRAINT = "a constraint of the catalog (informational, as Unity Catalog has it)"
    TABLE_PROPERTY = "a table property, where the platform refuses key constraints on Delta"


class TighteningSupport(Enum):
    """How an existing column becomes NOT NULL."""

    SET_NOT_NULL = "ALTER COLUMN … SET NOT NULL"
    CHECK_CONSTRAINT = "an enforced CHECK (c IS NOT NULL), where Spark's analyzer refuses SET NOT NULL"


class ColumnsPerStatement(Enum):
    """How many columns one ALTER COLUMN changes."""

    MANY = "any number, in one commit"
    ONE = "one: the grammar before Spark 4 and Databricks Runtime 16.3"


class RenameTarget(Enum):
    """How ALTER TABLE … RENAME TO spells the desired name."""

    FULL_NAME = "catalog.schema.table"
    WITHIN_CATALOG = "schema.table: Spark's catalogs take no catalog here (measured on Spark 4.1.1)"


class InlineClustering(Enum):
    """Where CREATE TABLE accepts CLUSTER BY."""

    ANYWHERE = "anywhere"
    AFTER_PLAIN_TEXT = (
        "only after characters of the Basic Multilingual Plane: open-source Delta miscounts other characters"
    )


class Visibility(Enum):
    """Whether a catalog may hide tables and schemas that exist."""

    WHOLE = "the catalog shows everything that exists"
    BY_RIGHTS = "the catalog hides objects without rights, and rights can be read"
    UNKNOWN = "the catalog may hide objects without rights, and rights cannot be read"


@unique
class Feature(Enum):
    """What can be declared; the values are their names in messages."""

    COLUMNS = "columns"
    TYPE_WIDENING = "type widening"
    VOID_WIDENING = "void columns that get a type"
    NESTED_FIELDS = "nested fields"
    COLUMN_ORDER = "column order"
    COLUMN_RENAMES = "renamed columns"
    TABLE_RENAMES = "renamed tables"
    PROPERTIES = "table properties and features"
    PRIMARY_KEYS = "primary keys"
    FOREIGN_KEYS = "foreign keys"
    CHECKS = "CHECK constraints"
    NOT_NULL = "NOT NULL"
    DEFAULTS = "column defaults"
    GENERATED_COLUMNS = "generated columns"
    IDENTITY_COLUMNS = "identity columns"
    CLUSTERING = "liquid clustering"
    AUTOMATIC_CLUSTERING = "automatic clustering"
    PARTITIONING = "partitioning"
    REPARTITIONING = "other partitions"
    TAGS = "tags"
    ROW_FILTERS = "row filters"
    COLUMN_MASKS = "column masks"
    COMMENTS = "comments"
    PREDICTIVE_OPTIMIZATION = "predictive optimization"
    OWNERS = "owners"
    GRANTS = "grants"
    SCHEMA_METADATA = "comments, tags, owners and grants of schemas"
    EXTERNAL_TABLES = "external tables"
    MANAGED_CONVERSION = "external tables that become managed"
    TABLE_REMOVAL = "dropping tables"
    MANAGED_PARTS = "managing a part of a table"
    STREAMING_TABLES = "parts of streaming tables"
    FUNCTIONS = "functions"
    FUNCTION_TAGS = "tags of functions"
    POLICIES = "policies"
    VIEWS = "views"
    VIEW_COLUMN_COMMENTS = "comments of the columns of views"


HOW_FEATURES_CHANGE: Mapping[Feature, str] = {
    Feature.COLUMNS: "added in place; dropped with consent (`drop_column`)",
    Feature.TYPE_WIDENING: (
        "in place where Delta's matrix allows, its table feature in the same run; other changes of type need `using`"
    ),
    Feature.VOID_WIDENING: "in place, to any type; the engine creates no void column",
    Feature.NESTED_FIELDS: (
        "fields of structs, also inside arrays and maps: added, dropped, renamed, commented, loosened, widened"
    ),
    Feature.COLUMN_ORDER: "reported; changed with `policy.column_order: enforce`",
    Feature.COLUMN_RENAMES: (
        "`renamed_from`: the column keeps its data; keys, checks and clustering follow. A conversion with "
        "`using` also needs it"
    ),
    Feature.TABLE_RENAMES: "`renamed_from`: the table keeps its data",
    Feature.PROPERTIES: (
        "set, and unset if they were applied once; properties that the platform sets are unmanaged; table features are "
        "permanent and shown as such; `name → none` column mapping is refused"
    ),
    Feature.PRIMARY_KEYS: "name, columns in order, RELY; recreated when they change",
    Feature.FOREIGN_KEYS: "parents first, cycles broken; checked against the declared or the existing parent",
    Feature.CHECKS: "by name, expressions compared in a normal form; refused with a count if rows violate them",
    Feature.NOT_NULL: "loosened freely; tightened if no row has a NULL or `using` fills it, else refused with a count",
    Feature.DEFAULTS: "set and dropped in place",
    Feature.GENERATED_COLUMNS: "at creation only; a later change is refused",
    Feature.IDENTITY_COLUMNS: "at creation only; a later change is refused",
    Feature.CLUSTERING: "changed in place",
    Feature.AUTOMATIC_CLUSTERING: "`cluster_by: AUTO`, switched in place",
    Feature.PARTITIONING: "at creation",
    Feature.REPARTITIONING: "a changed `partitioned_by`, with consent (`rewrite_table`): one commit rewrites all rows",
    Feature.TAGS: "of tables and columns: key by key, additive or in full (`policy.tags`)",
    Feature.ROW_FILTERS: "part of CREATE TABLE; set, replaced and dropped in place",
    Feature.COLUMN_MASKS: "part of CREATE TABLE; set, replaced and dropped in place",
    Feature.COMMENTS: "of tables, columns and nested fields: set and cleared in place",
    Feature.PREDICTIVE_OPTIMIZATION: "of managed tables and schemas: changed in place; unmanaged if undeclared",
    Feature.OWNERS: "changed in place; unmanaged if no model declares an owner",
    Feature.GRANTS: "on tables: additive, or in full (`policy.grants`)",
    Feature.SCHEMA_METADATA: "`schemas:` in a model file, or `Schema`",
    Feature.EXTERNAL_TABLES: "`location`, at creation only; a change to another location is refused",
    Feature.MANAGED_CONVERSION: (
        "`location` removed from the model: `SET MANAGED` copies the files, with consent (`rewrite_table`)"
    ),
    Feature.TABLE_REMOVAL: "`policy.removed_tables: drop`, with consent (`drop_table`)",
    Feature.MANAGED_PARTS: "`manages`: another owner manages the rest of the table",
    Feature.STREAMING_TABLES: "comments and tags, with `manages`",
    Feature.FUNCTIONS: (
        "`functions:` in a model file, or `Function`: replaced as a whole, with consent (`change_protection`) where a "
        "mask, a row filter or a policy uses them"
    ),
    Feature.FUNCTION_TAGS: "key by key, as for tables",
    Feature.POLICIES: (
        "`policies:` in a model file, or `AbacPolicy`: replaced as a whole, with consent (`change_protection`) if they "
        "may hide less; dropped with `drop_policy`"
    ),
    Feature.VIEWS: "`views:` in a model file, or `View`: ALTER VIEW, never replaced; dropped with `drop_view`",
    Feature.VIEW_COLUMN_COMMENTS: "set and cleared one by one, and set again when the query changes",
}
"""How each feature changes, for docs/statements.md."""

NEEDED_TO_CREATE = frozenset({Feature.GENERATED_COLUMNS, Feature.IDENTITY_COLUMNS})
"""The features that only the creation of a table needs: a table that has them can be declared anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities of one platform.

    Args:
        takes_default_collation: whether CREATE TABLE takes DEFAULT COLLATION.
        refused: the unsupported features, and why.
        refused_in: the features that single catalogs do not support, and why, by the catalog's name.
        equivalents: the features that it provides in another way, and how.
        refused_values: the values of Delta's table properties that other platforms take, by the property's name in
            lower case.
        most_name_bytes: the most bytes in UTF-8 of each part of a table's name; None where characters are counted.
        refused_properties: the properties of Delta that only Databricks knows, in lower case.
        undrops_tables: whether UNDROP brings back a dropped table.
        chooses_statistics: whether the platform chooses of which columns of a managed table it collects statistics.
        clones_tables: whether CREATE TABLE … DEEP CLONE copies a table with its metadata.
        session_catalog: the only catalog that takes functions, only in SQL, and views; None where every catalog does.
    """

    name: str
    primary_keys: PrimaryKeySupport
    tightening: TighteningSupport
    inline_clustering: InlineClustering
    visibility: Visibility
    columns_per_statement: ColumnsPerStatement = ColumnsPerStatement.MANY
    rename_target: RenameTarget = RenameTarget.FULL_NAME
    takes_default_collation: bool = False
    refused: Mapping[Feature, str] = field(default_factory=dict)
    refused_in: Mapping[str, Mapping[Feature, str]] = field(default_factory=dict)
    equivalents: Mapping[Feature, str] = field(default_factory=dict)
    refused_values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    refused_properties: frozenset[str] = frozenset()
    most_name_bytes: int | None = None
    undrops_tables: bool = False
    clones_tables: bool = False
    session_catalog: str | None = None
    chooses_statistics: bool = False

    def refusal(self, feature: Feature, catalog: str) -> str | None:
        """Return why a catalog does not support a feature; None if it does."""
        return self.refused.get(feature) or self.refused_in.get(catalog.lower(), {}).get(feature)


_UNITY_CATALOG_ONLY = "only Unity Catalog on Databricks has them"

DATABRICKS = Capabilities(
    name="databricks-warehouse",
    primary_keys=PrimaryKeySupport.CONSTRAINT,
    tightening=TighteningSupport.SET_NOT_NULL,
    inline_clustering=InlineClustering.ANYWHERE,
    visibility=Visibility.BY_RIGHTS,
    takes_default_collation=True,
    undrops_tables=True,
    clones_tables=True,
    chooses_statistics=True,
)
"""Databricks SQL: it has every feature and is always current."""

DATABRICKS_SPARK = replace(
    DATABRICKS,
    name="databricks",
    refused=MappingProxyType(
        {
            Feature.STREAMING_TABLES: (
                "ALTER STREAMING TABLE is a statement of Databricks SQL alone, which `databricks-warehouse` runs"
            )
        }
    ),
)
"""Databricks through Spark, on a current runtime (Databricks' SQL reference, "ALTER STREAMING TABLE")."""


@unique
class RuntimeFeature(Enum):
    """Features that Databricks Runtime has since a certain version."""

    SEVERAL_COLUMNS = "several columns in one ALTER COLUMN"
    DEFAULT_COLLATION = "new tables that inherit no collation from their schema"
    SET_MANAGED = "external tables that become managed"
    VOID_WIDENING = "void columns that get a type"
    POLICIES = "policies (ABAC)"
    FUNCTION_TAGS = "tags of functions"
    VIEW_COLUMN_COMMENTS = "comments of the columns of views"
    AUTOMATIC_CLUSTERING = "automatic clustering"


LEAST_RUNTIMES: Mapping[RuntimeFeature, tuple[int, int]] = MappingProxyType(
    {
        RuntimeFeature.SEVERAL_COLUMNS: (16, 3),
        RuntimeFeature.DEFAULT_COLLATION: (16, 4),
        RuntimeFeature.SET_MANAGED: (17, 0),
        RuntimeFeature.VOID_WIDENING: (18, 2),
        RuntimeFeature.POLICIES: (16, 4),
        RuntimeFeature.FUNCTION_TAGS: (18, 1),
        RuntimeFeature.VIEW_COLUMN_COMMENTS: (16, 1),
        RuntimeFeature.AUTOMATIC_CLUSTERING: (15, 4),
    }
)
"""The first runtime with each (Databricks Runtime 16.3 release notes; "CREATE POLICY"; "SET TAG"; "COMMENT ON";
"CLUSTER BY"; "Convert an external table to a managed Unity Catalog table"; "Type widening").
"""

_NEWER_FEATURES = {
    Feature.MANAGED_CONVERSION: LEAST_RUNTIMES[RuntimeFeature.SET_MANAGED],
    Feature.VOID_WIDENING: LEAST_RUNTIMES[RuntimeFeature.VOID_WIDENING],
    Feature.POLICIES: LEAST_RUNTIMES[RuntimeFeature.POLICIES],
    Feature.FUNCTION_TAGS: LEAST_RUNTIMES[RuntimeFeature.FUNCTION_TAGS],
    Feature.VIEW_COLUMN_COMMENTS: LEAST_RUNTIMES[RuntimeFeature.VIEW_COLUMN_COMMENTS],
    Feature.AUTOMATIC_CLUSTERING: LEAST_RUNTIMES[RuntimeFeature.AUTOMATIC_CLUSTERING],
}

_SERVERLESS = "client."
_VERSION = re.compile(r"(\d+)(?:\.(\d+))?")


def on_runtime(version: str) -> Capabilities:
    """Return the capabilities of Databricks through Spark on a runtime.

    Args:
        version: as the platform reports it: `15.4`, `17.3.x-scala2.13`, `client.4.9` on serverless compute. Empty if
            unknown: then only statements that every runtime accepts are used.
    """
    match = _VERSION.match(version)
    runtime = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    capabilities = DATABRICKS_SPARK
    if version.startswith(_SERVERLESS):
        return capabilities
    if runtime < LEAST_RUNTIMES[RuntimeFeature.SEVERAL_COLUMNS]:
        capabilities = replace(capabilities, columns_per_statement=ColumnsPerStatement.ONE)
    if runtime < LEAST_RUNTIMES[RuntimeFeature.DEFAULT_COLLATION]:
        capabilities = replace(capabilities, takes_default_collation=False)
    refused = {
        feature: f"it needs Databricks Runtime {'.'.join(map(str, least))}, serverless compute or a SQL warehouse"
        for feature, least in _NEWER_FEATURES.items()
        if runtime < least
    }
    return replace(capabilities, refused=MappingProxyType({**capabilities.refused, **refused}))


_REFUSED_BY_OPEN_SOURCE = {
    Feature.VOID_WIDENING: "open-source Delta cannot change the type of void columns",
    Feature.GENERATED_COLUMNS: "open-source Delta does not create them in SQL",
    Feature.IDENTITY_COLUMNS: "open-source Delta does not create them in SQL",
    Feature.AUTOMATIC_CLUSTERING: "only Databricks chooses the columns automatically",
    Feature.TAGS: _UNITY_CATALOG_ONLY,
    Feature.ROW_FILTERS: _UNITY_CATALOG_ONLY,
    Feature.COLUMN_MASKS: _UNITY_CATALOG_ONLY,
    Feature.PREDICTIVE_OPTIMIZATION: "only Databricks has it",
    Feature.MANAGED_CONVERSION: "only Databricks moves the files of a table",
    Feature.OWNERS: _UNITY_CATALOG_ONLY,
    Feature.GRANTS: _UNITY_CATALOG_ONLY,
    Feature.SCHEMA_METADATA: _UNITY_CATALOG_ONLY,
    Feature.STREAMING_TABLES: "only Databricks has them",
    Feature.FUNCTION_TAGS: _UNITY_CATALOG_ONLY,
    Feature.POLICIES: _UNITY_CATALOG_ONLY,
}

OPEN_SOURCE = Capabilities(
    name="oss",
    primary_keys=PrimaryKeySupport.TABLE_PROPERTY,
    tightening=TighteningSupport.CHECK_CONSTRAINT,
    inline_clustering=InlineClustering.AFTER_PLAIN_TEXT,
    visibility=Visibility.WHOLE,
    rename_target=RenameTarget.WITHIN_CATALOG,
    refused=MappingProxyType(
        {
            **_REFUSED_BY_OPEN_SOURCE,
            Feature.EXTERNAL_TABLES: "its tables are where its warehouse is",
            Feature.TABLE_RENAMES: "its tables are folders: rename the folder by hand",
            Feature.TABLE_REMOVAL: "its tables are folders: remove the folder by hand",
            Feature.FUNCTIONS: "its schemas are folders, which cannot contain functions",
            Feature.VIEWS: "its schemas are folders, which cannot contain views",
            Feature.VIEW_COLUMN_COMMENTS: "its schemas are folders, which cannot contain views",
        }
    ),
    equivalents=MappingProxyType(
        {
            Feature.PRIMARY_KEYS: "kept in a table property, and informational as on Unity Catalog",
            Feature.FOREIGN_KEYS: "kept in a table property, and informational as on Unity Catalog",
            Feature.NOT_NULL: "tightened with an enforced CHECK under a reserved name",
        }
    ),
    refused_properties=frozenset(
        {
            "delta.enableicebergwritercompatv1",
            "delta.parquet.compression.codec",
            "delta.targetfilesize",
            "delta.tunefilesizesforrewrites",
            "delta.universalformat.compatibility.location",
        }
    ),
    refused_values=MappingProxyType(
        {
            "delta.autooptimize.autocompact": frozenset({"auto", "legacy"}),
            "delta.isolationlevel": frozenset({"writeserializable"}),
        }
    ),
    most_name_bytes=255,
)
"""Spark with Delta, tables by path: a table is a folder, whose name has at most 255 bytes on Linux (`NAME_MAX`)."""

OPEN_SOURCE_CATALOG = replace(
    OPEN_SOURCE,
    name="oss with names: catalog",
    refused=MappingProxyType(_REFUSED_BY_OPEN_SOURCE),
    visibility=Visibility.UNKNOWN,
    most_name_bytes=None,
    session_catalog="spark_catalog",
    equivalents=MappingProxyType(
        {
            **OPEN_SOURCE.equivalents,
            Feature.FUNCTIONS: "in SQL, only in Spark's session catalog (`spark_catalog`)",
            Feature.VIEWS: "only in Spark's session catalog (`spark_catalog`)",
            Feature.VIEW_COLUMN_COMMENTS: "the view is replaced, with consent (`replace_view`)",
        }
    ),
)
"""Spark with Delta, tables by name; the class of a catalog determines what it lacks."""

UNITY_CATALOG = "io.unitycatalog.spark.UCSingleCatalog"
"""The class of open-source Unity Catalog's connector."""

REFUSED_BY_CLASS: Mapping[str, Mapping[Feature, str]] = MappingProxyType(
    {
        UNITY_CATALOG: MappingProxyType(
            {
                Feature.COLUMN_RENAMES: "open-source Unity Catalog does not rename columns yet",
                Feature.TABLE_RENAMES: "open-source Unity Catalog does not rename tables yet",
                Feature.FUNCTIONS: "Spark creates functions only in its session catalog",
                Feature.VIEWS: "the engine manages only views of the session catalog",
                Feature.VIEW_COLUMN_COMMENTS: "the engine manages only views of the session catalog",
                Feature.REPARTITIONING: (
                    "open-source Unity Catalog replaces neither external tables nor the partitions of managed tables"
                ),
            }
        )
    }
)
"""The features that implementations of a Spark catalog refuse for every table.

Unity Catalog's connector 0.6 throws UnsupportedOperationException for renames: `alterTable` and `renameTable` in
connectors/spark of unitycatalog/unitycatalog (pull request 1598). It replaces managed tables only (pull request 1373;
measured for an external one), and Delta refuses a replacement with different partitioning there (delta-io/delta 6166).
"""


def in_catalogs(classes: Mapping[str, str]) -> Capabilities:
    """Return the capabilities of Spark with catalogs of the given implementation classes, by name."""
    refused = {
        name.lower(): REFUSED_BY_CLASS[implementation]
        for name, implementation in classes.items()
        if implementation in REFUSED_BY_CLASS
    }
    return replace(OPEN_SOURCE_CATALOG, refused_in=MappingProxyType(refused))
