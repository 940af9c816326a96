"""Planned runs as JSON documents, for the command line and the Python API alike."""

from __future__ import annotations

import msgspec

from delta_engine.orchestrate.runs import PlannedRun
from delta_engine.plan_files.document import ChangedTables
from delta_engine.report.json_documents import plan_document


def planned_json(planned: PlannedRun, environment: str, changed: ChangedTables | None = None) -> str:
    """Return a plan as one JSON document, with what speaks against it.

    Args:
        changed: the tables that `--changed-since` chose.
    """
    return plan_document(
        planned.plan,
        environment=environment,
        statements=planned.compiled.sql_by_table(),
        unmanaged_parts=planned.unmanaged_parts,
        refusals=planned.refusals,
        undone=planned.undone,
        warnings=planned.warnings,
        consents=planned.consents,
        needed=planned.needed_consents,
        adopted=planned.adopted,
        changed_since=msgspec.to_builtins(changed) if changed else None,
    )
