"""What a plan does to each of its schemas: before any table, and after all of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from delta_engine.actions import AlignSchema, CreateSchema, TablePlan
from delta_engine.aspects import schemas
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities
from delta_engine.models import SchemaName


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

    def statements_before(self, addressing: Addressing, capabilities: Capabilities) -> tuple[str, ...]:
        """Return the statements that come before any table."""
        create = self.create and addressing.create_schema(
            self.create.catalog_name, self.create.schema_name, self.create.comment
        )
        changes = schemas.render(self.before, addressing, capabilities) if self.before else ()
        return (*([create] if create else []), *changes)

    def statements_after(self, addressing: Addressing, capabilities: Capabilities) -> tuple[str, ...]:
        """Return the statements that come after all tables."""
        return tuple(schemas.render(self.after, addressing, capabilities)) if self.after else ()


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
                before=schemas.before_tables(align) if align else None,
                after=schemas.after_tables(align) if align else None,
            )
        )
    return tuple(works)
