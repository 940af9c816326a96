"""House rules about tags, rights, functions and views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from delta_engine.actions.policy import matches_glob
from delta_engine.models import Function, Securable, Table, View
from delta_engine.tools.lint.rule import Finding, RuleOfKind, columns_of, finding


class RequiredTags(RuleOfKind[Table]):
    """Every table has certain tags.

    Args:
        tags: the allowed values by tag; none allow any.
    """

    tags: dict[str, list[str]] = msgspec.field(default_factory=dict)

    def _judge(self, model: Table) -> Iterator[Finding]:
        for tag, values in self.tags.items():
            value = model.tags.get(tag)
            allowed = f" ({', '.join(values)})" if values else ""
            if value is None:
                yield finding(model, f"it has no tag {tag}", f"Declare it in `tags`{allowed}.")
            elif values and value not in values:
                yield finding(model, f"its tag {tag} is {value!r}", f"Choose another value{allowed}.")


class TagValues(RuleOfKind[Securable]):
    """Tags of tables, views and columns have allowed values.

    Args:
        tags: the allowed values by tag.
    """

    kind: ClassVar[Any] = object
    tags: dict[str, list[str]] = msgspec.field(default_factory=dict)

    def _judge(self, model: Securable) -> Iterator[Finding]:
        for column in (None, *columns_of(model)):
            declared = getattr(model if column is None else column, "tags", {})
            for tag, value in declared.items():
                if tag in self.tags and value not in self.tags[tag]:
                    fix = f"Use one of: {', '.join(self.tags[tag])}."
                    yield finding(model, f"its tag {tag} is {value!r}", fix, column)


class PersonalGrants(RuleOfKind[Securable]):
    """Rights are granted to groups and service principals, not to people.

    Args:
        people: globs of the names of people.
        except_people: globs of those that may have rights.
    """

    kind: ClassVar[Any] = object
    is_recommended: ClassVar[bool] = True
    people: tuple[str, ...] = ("*@*",)
    except_people: tuple[str, ...] = ()

    def _judge(self, model: Securable) -> Iterator[Finding]:
        for principal in getattr(model, "grants", {}):
            is_person = any(matches_glob(principal, glob) for glob in self.people)
            if is_person and not any(matches_glob(principal, glob) for glob in self.except_people):
                yield finding(model, f"{principal} has rights as a single user", "Grant it to a group.")


class Determinism(RuleOfKind[Function]):
    """Functions say whether they are deterministic, so that the platform may optimize them."""

    kind: ClassVar[type[Any]] = Function

    def _judge(self, model: Function) -> Iterator[Finding]:
        if model.is_deterministic is None:
            yield finding(
                model, "it does not declare whether it is deterministic", "Declare `deterministic`."
            )


class ViewStars(RuleOfKind[View]):
    """Queries of views name their columns: `SELECT *` takes in whatever tables get."""

    kind: ClassVar[type[Any]] = View
    is_recommended: ClassVar[bool] = True

    def _judge(self, model: View) -> Iterator[Finding]:
        from delta_engine.sql.view_queries import read_columns

        if (reads := read_columns(model.query, {})) and reads.spread:
            yield finding(model, "its query selects *", "Name the columns.")


class SharedViews(RuleOfKind[View]):
    """Views that others may read document their columns."""

    kind: ClassVar[type[Any]] = View

    def _judge(self, model: View) -> Iterator[Finding]:
        if model.grants and not model.columns:
            yield finding(
                model,
                "other principals may read it, but its columns are not documented",
                "Declare `columns`.",
            )
