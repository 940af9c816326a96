"""What a plan does to each of its schemas: before any table, and after all of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from delta_engine import aspects
from delta_engine.actions import Action, AlignSchema, CreateSchema, TablePlan
from delta_engine.aspects.aspect import SchemaContext
from delta_engine.aspects.grants import RevokePrivileges
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities
from delta_engine.models import SchemaName

_TAKING_RIGHTS = (RevokePrivileges, ChangeOwner)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaWork:
    """What is done to one schema.

    Args:
        name: the schema.
        create: how it comes into being; None if it is there.
        before: what changes before any table; None for nothing.
        after: what changes after all tables; None for nothing.
    """

    name: SchemaName
    create: CreateSchema | None = None
    before: AlignSchema | None = None
    after: AlignSchema | None = None

    def statements_before(self, addressing: Addressing, _capabilities: Capabilities) -> tuple[str, ...]:
        """Return the statements that come before any table."""
        create = self.create and addressing.create_schema(
            self.create.catalog_name, self.create.schema_name, self.create.comment
        )
        changes = aspects.render(self.before, SchemaContext(self.name)) if self.before else ()
        return (*([create] if create else []), *changes)

    def statements_after(self, _addressing: Addressing, _capabilities: Capabilities) -> tuple[str, ...]:
        """Return the statements that come after all tables."""
        return tuple(aspects.render(self.after, SchemaContext(self.name))) if self.after else ()


def schema_works(plan: TablePlan) -> tuple[SchemaWork, ...]:
    """Return what is done to each schema of a plan, sorted by name."""
    creates = {str(create).lower(): create for create in plan.create_schemas}
    aligns = {str(align).lower(): align for align in plan.align_schemas}
    works = []
    for key in sorted({*creates, *aligns}):
        schema, align = creates.get(key) or aligns[key], aligns.get(key)
        works.append(
            SchemaWork(
                name=SchemaName(schema.catalog_name, schema.schema_name),
                create=creates.get(key),
                before=_before_tables(align) if align else None,
                after=_after_tables(align) if align else None,
            )
        )
    return tuple(works)


def _before_tables(align: AlignSchema) -> AlignSchema | None:
    return _with_actions(align, [one for one in align.actions if not isinstance(one, _TAKING_RIGHTS)])


def _after_tables(align: AlignSchema) -> AlignSchema | None:
    """Return what is done after all tables, because it may take the engine's right to change them; None for nothing."""
    return _with_actions(align, [one for one in align.actions if isinstance(one, _TAKING_RIGHTS)])


def _with_actions(align: AlignSchema, actions: Sequence[Action]) -> AlignSchema | None:
    return replace(align, actions=tuple(actions)) if actions else None
