"""The plan that a sync would make, and the rights that it and the engine's own tables take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delta_engine.actions import TablePlan
from delta_engine.aspects.rights import Right
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.doctor.catalogs import Wanted
from delta_engine.orchestrate.orchestrator import Preview
from delta_engine.report.doctor_report import Check, Status, Topic
from delta_engine.report.plan_tree import plan_summary
from delta_engine.sql import quote_ident, sql_grant
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import CatalogState
from delta_engine.validation.needed_rights import (
    Need,
    Securable,
    Verdict,
    functions_of,
    locations_of,
    merged,
    rights_at_hand,
    table_securable,
)


def plan_checks(preview: Preview, *, is_recorded: bool) -> Iterator[Check]:
    """Yield what a sync would do, and why it would refuse to.

    Args:
        preview: the plan and its refusals.
        is_recorded: whether it was made with the deployment state.
    """
    without = "" if is_recorded else " (planned without the deployment state)"
    found = f"{plan_summary(preview.plan)}{without}"
    yield Check(topic=Topic.PLAN, subject="sync", status=Status.OK, found=found)
    for refusal in preview.refusals:
        yield Check(
            topic=Topic.PLAN,
            subject="sync",
            status=Status.MISSING,
            found=f"it would refuse: {str(refusal).removesuffix(refusal.way_out).strip()}",
            way_out=refusal.way_out,
        )


def unseen_right_checks(plan: TablePlan, principal: str) -> Iterator[Check]:
    """Yield the rights of a plan that the doctor does not look for: on functions and on external locations.

    Args:
        plan: the plan.
        principal: the identity that runs its statements.
    """
    for function in functions_of(plan):
        address = ".".join(map(quote_ident, (function.catalog, function.schema, function.table)))
        grant = sql_grant(f"FUNCTION {address}", ["EXECUTE"], principal)
        yield _unseen(f"EXECUTE on function {function}", f"If it is missing: {grant}")
    for location in locations_of(plan):
        grant = sql_grant("EXTERNAL LOCATION `<name>`", ["CREATE EXTERNAL TABLE"], principal)
        yield _unseen(
            f"CREATE EXTERNAL TABLE on the external location of {location}",
            f"If it is missing, with the name of that location: {grant}",
        )


def _unseen(subject: str, way_out: str) -> Check:
    found = "the plan needs it, and the doctor does not look for it"
    return Check(topic=Topic.RIGHTS, subject=subject, status=Status.UNKNOWN, found=found, way_out=way_out)


def needs_around(
    wanted: Sequence[Wanted], own: Sequence[QualifiedName], observed: CatalogState
) -> Iterator[Need]:
    """Yield what it takes to look at everything, and to keep the engine's own tables.

    Args:
        wanted: what is used of each catalog.
        own: the tables that the engine keeps for itself.
        observed: the catalogs, as far as they could be read.
    """
    for one in wanted:
        yield Need(securable=one.use_catalog, right=Right.USE_CATALOG)
        for schema in one.schemas:
            if f"{one.catalog}.{schema}" in observed.schema_states:
                above = Securable((one.catalog, schema))
                yield Need(securable=above, right=Right.USE_SCHEMA, owners_above=True)
    for table in (table for one in wanted for table in one.tables):
        if table.key in observed.tables and observed.table(table).exists:
            yield Need(securable=table_securable(table), right=Right.SELECT)
    for table in own:
        if table.key in observed.tables and observed.table(table).exists:
            yield Need(securable=table_securable(table), right=Right.MODIFY, statements=("its rows",))
        else:
            above = Securable((table.catalog, table.schema))
            if above.levels[0] in observed.schema_states:
                yield Need(securable=above, right=Right.CREATE_TABLE, statements=(f"CREATE TABLE {table}",))


def right_checks(reader: PrincipalReader, wanted: Sequence[Need], observed: CatalogState) -> Iterator[Check]:
    """Yield whether the identity has each right, as far as it can see.

    Raises:
        StatementError: the platform refused a question.
    """
    at_hand = rights_at_hand(reader, wanted, observed)
    name = at_hand.principal.name
    for need in merged(wanted):
        statements = f" for {', '.join(need.statements)}" if need.statements else ""
        subject = f"{need.right.privilege} on {need.securable}"
        grant = need.securable.grant(need.right, name)
        match at_hand.verdict(need):
            case Verdict.HELD:
                status, found, way_out = Status.OK, f"held{statements}", ""
            case Verdict.LACKING:
                owner = at_hand.owner(need.securable)
                owned = f"; its owner is {owner}" if owner else ""
                status, found, way_out = Status.MISSING, f"not granted{statements}{owned}", grant
            case Verdict.HIDDEN:
                found = f"no right of {name} is visible{statements}: information_schema hides some grants"
                status, way_out = Status.UNKNOWN, f"If it is missing: {grant}"
        yield Check(topic=Topic.RIGHTS, subject=subject, status=status, found=found, way_out=way_out)
