"""The `drift` command: its options, and which of them go together. `commands` does it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from delta_engine.cli.options import Allow, Full, Tables, Yes, choice, flag, plan_options, value

DRIFT_EPILOG: Final = "Example: delta-engine -e prod drift --format html --out drift.html --fail-on high"


def drift(
    ctx: typer.Context,
    table: Tables = None,
    output_format: Annotated[
        str | None, value("--format", "text|json|html", "The format of the report. Default: text.")
    ] = None,
    json: Annotated[bool, flag("--json", help="The same as --format json.")] = False,
    out: Annotated[
        Path | None, value("--out", "FILE", "Write the report to this file instead of stdout.")
    ] = None,
    fail_on: Annotated[
        str | None,
        value(
            "--fail-on",
            "high|medium|low",
            "Exit with 2 if drift of this or a higher severity exists.",
        ),
    ] = None,
    record: Annotated[
        bool, flag("--record", help="Also add the report to drift.history_table, as the job does.")
    ] = False,
    revert: Annotated[
        bool, flag("--revert", help="Revert the drift in the catalog: plan, check, ask, apply.")
    ] = False,
    accept: Annotated[
        bool,
        flag(
            "--accept",
            help="Write the drift into the models. It remains drift until they are synced.",
        ),
    ] = False,
    allow: Allow = None,
    yes: Yes = False,
    full: Full = False,
) -> None:
    """Report changes made outside the engine: what, by whom and when. Changes nothing by default."""
    from delta_engine.actions.drift_policy import Severity
    from delta_engine.cli.commands import Format, accept_drift, print_drift, revert_drift
    from delta_engine.cli.many_projects import OutputForm, run_in_projects

    if json and output_format not in (None, "json"):
        raise typer.BadParameter("--json means --format json. Choose one of them")
    _refuse_mixed_options(
        revert, accept, allow, makes_report=json or out or fail_on or record or output_format
    )
    if revert:
        revert_drift(ctx.obj, plan_options(table, allow), yes=yes, is_full=full)
    elif accept:
        accept_drift(ctx.obj, plan_options(table), yes=yes)
    else:
        rendering = choice("--format", output_format or ("json" if json else "text"), Format)
        severity = choice("--fail-on", fail_on, Severity) if fail_on else None
        options = plan_options(table)
        if rendering is Format.HTML and out is None and ctx.obj.projects:
            raise typer.BadParameter("each project needs a separate page. Add --out 'drift/{project}.html'")
        run_in_projects(
            ctx.obj,
            lambda project: print_drift(
                project, options, rendering, path=out, fail_on=severity, is_recorded=record, is_full=full
            ),
            OutputForm.JSON if rendering is Format.JSON and out is None else OutputForm.TEXT,
            files={"--out": out},
        )


def _refuse_mixed_options(
    revert: bool, accept: bool, allow: list[str] | None, *, makes_report: object
) -> None:
    """Refuse options of `drift` that do not go together."""
    if revert and accept:
        raise typer.BadParameter("--revert and --accept cannot be combined. Choose one of them")
    if (revert or accept) and makes_report:
        raise typer.BadParameter("--revert and --accept write no report. Remove the options of reports")
    if allow and not revert:
        raise typer.BadParameter("--allow needs --revert. Add --revert, or remove --allow")
