"""What a platform can do and how it spells it. Planner, rules and aspects ask this, never "which backend"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The answers of one platform."""

    primary_keys: PrimaryKeySupport
    tightening: TighteningSupport
    inline_clustering: InlineClustering


DATABRICKS = Capabilities(
    primary_keys=PrimaryKeySupport.CONSTRAINT,
    tightening=TighteningSupport.SET_NOT_NULL,
    inline_clustering=InlineClustering.ANYWHERE,
)
OPEN_SOURCE = Capabilities(
    primary_keys=PrimaryKeySupport.TABLE_PROPERTY,
    tightening=TighteningSupport.CHECK_CONSTRAINT,
    inline_clustering=InlineClustering.AFTER_PLAIN_TEXT,
)
