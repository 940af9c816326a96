"""`conf/lint.yml`: which house rules are on, and which findings are accepted. `tools/lint` has the rules."""

from __future__ import annotations

from datetime import date
from enum import Enum, unique
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

_NAMES: Final = """
TableComments ViewComments SchemaComments FunctionComments ColumnComments Owners
TableNames ViewNames FunctionNames SchemaNames ColumnNames ReservedWords MaximumColumns
MoneyTypes TimestampTypes ForbiddenTypes SameTypes
PrimaryKeys KeyColumnsFirst ForeignKeys Partitions ClusteringColumns RequiredProperties DeprecatedFeatures
RequiredTags TagValues PersonalGrants Determinism ViewStars SharedViews
"""

HOUSE_RULES: Final = tuple(_NAMES.split())
"""The names of the engine's house rules, for editors; `tools/lint` has the classes."""


@unique
class Severity(Enum):
    """How severe a finding is, the most severe first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    def reaches(self, least: Severity) -> bool:
        """Whether it is at least as severe as another one."""
        severities = [*Severity]
        return severities.index(self) <= severities.index(least)


class Suppression(msgspec.Struct, frozen=True):
    """Findings that a team accepts for a time.

    Args:
        rules: the names of rules.
        on: globs of the tables and other securables.
        reason: why the findings are accepted.
        expires: the last day; the findings come back after it.
    """

    rules: tuple[str, ...]
    on: tuple[str, ...]
    reason: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": r"\S"})]
    expires: date


_RuleEntry: TypeAlias = bool | Literal["on", "off", "error", "warning", "note"] | dict[str, Any]


class LintDocument(msgspec.Struct):
    """The house rules of a project, `conf/lint.yml`.

    Args:
        preset: `recommended` switches the recommended rules on; without it, only the named rules are on.
        fail_on: the least severity with which `lint` ends with exit code 2.
        rules: by name: false, true, a severity, or the options of the rule. `delta-engine lint --rules` lists them.
        own_rules: classes of the project, `module:ClassName`.
        suppressions: findings that are accepted for a time.
    """

    preset: Literal["recommended"] | None = None
    fail_on: Severity = Severity.WARNING
    rules: dict[str, _RuleEntry] = msgspec.field(default_factory=dict)
    own_rules: tuple[str, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
