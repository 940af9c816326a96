"""What a platform can do and how it spells it. Planner, rules and aspects ask this, never "which backend"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from types import MappingProxyType


class PrimaryKeySupport(Enum):
    """Where a primary key lives."""

    CONSTRAINT = "a constraint of the catalog (informational, as Unity Catalog has it)"
    TABLE_PROPERTY = "a table property, where the platform refuses key constraints on Delta"


class TighteningSupport(Enum):
    """How an existing column becomes NOT NULL."""

    SET_NOT_NULL = "ALTER COLUMN … SET NOT NULL"
    CHECK_CONSTRAINT = "an enforced CHECK (c IS NOT NULL), where Spark's analyzer refuses SET NOT NULL"


class InlineClustering(Enum):
    """Where CREATE TABLE may say CLUSTER BY."""

    ANYWHERE = "anywhere"
    AFTER_PLAIN_TEXT = (
        "after text of the Basic Multilingual Plane alone: open-source Delta miscounts what stands beyond it"
    )


@unique
class Feature(Enum):
    """What can be declared about a table or a schema; the values are what people call it."""

    COLUMNS = "columns"
    TYPE_WIDENING = "type widening"
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
    TAGS = "tags"
    ROW_FILTERS = "row filters"
    COLUMN_MASKS = "column masks"
    COMMENTS = "comments"
    OWNERS = "owners"
    GRANTS = "grants"
    SCHEMA_METADATA = "comments, tags, owners and grants of schemas"
    EXTERNAL_TABLES = "external tables"
    TABLE_REMOVAL = "dropping tables"
    MANAGED_PARTS = "managing a part of a table"
    STREAMING_TABLES = "parts of streaming tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The answers of one platform.

    Args:
        name: the platform, as people call it.
        primary_keys: where primary and foreign keys live.
        tightening: how an existing column becomes NOT NULL.
        inline_clustering: where CREATE TABLE may say CLUSTER BY.
        refused: what it cannot do, and why.
        equivalents: what it does in a way of its own, and how.
    """

    name: str
    primary_keys: PrimaryKeySupport
    tightening: TighteningSupport
    inline_clustering: InlineClustering
    refused: Mapping[Feature, str] = field(default_factory=dict)
    equivalents: Mapping[Feature, str] = field(default_factory=dict)


_UNITY_CATALOG_ONLY = "only Unity Catalog has them"

DATABRICKS = Capabilities(
    name="databricks",
    primary_keys=PrimaryKeySupport.CONSTRAINT,
    tightening=TighteningSupport.SET_NOT_NULL,
    inline_clustering=InlineClustering.ANYWHERE,
)
OPEN_SOURCE = Capabilities(
    name="oss",
    primary_keys=PrimaryKeySupport.TABLE_PROPERTY,
    tightening=TighteningSupport.CHECK_CONSTRAINT,
    inline_clustering=InlineClustering.AFTER_PLAIN_TEXT,
    refused=MappingProxyType(
        {
            Feature.GENERATED_COLUMNS: "open-source Delta does not take them in SQL",
            Feature.IDENTITY_COLUMNS: "open-source Delta does not take them in SQL",
            Feature.AUTOMATIC_CLUSTERING: "only Databricks chooses the columns",
            Feature.TAGS: _UNITY_CATALOG_ONLY,
            Feature.ROW_FILTERS: _UNITY_CATALOG_ONLY,
            Feature.COLUMN_MASKS: _UNITY_CATALOG_ONLY,
            Feature.OWNERS: _UNITY_CATALOG_ONLY,
            Feature.GRANTS: _UNITY_CATALOG_ONLY,
            Feature.EXTERNAL_TABLES: "its tables are where its warehouse is",
            Feature.TABLE_RENAMES: "its tables are folders: rename the folder by hand",
            Feature.TABLE_REMOVAL: "its tables are folders: remove the folder by hand",
            Feature.SCHEMA_METADATA: _UNITY_CATALOG_ONLY,
            Feature.STREAMING_TABLES: "only Databricks has them",
        }
    ),
    equivalents=MappingProxyType(
        {
            Feature.PRIMARY_KEYS: "kept in a table property, and informational as on Unity Catalog",
            Feature.FOREIGN_KEYS: "kept in a table property, and informational as on Unity Catalog",
            Feature.NOT_NULL: "tightened with an enforced CHECK under a reserved name",
        }
    ),
)
