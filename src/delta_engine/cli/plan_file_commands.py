"""What `delta-engine apply` does."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from delta_engine.cli.commands import carry_out, open_engine
from delta_engine.cli.context import Context
from delta_engine.cli.results import Results
from delta_engine.cli.terminal import print_note, say, status
from delta_engine.deployment.document import AppliedPlan
from delta_engine.orchestrate.plan_files import earlier_apply, reviewed_plan
from delta_engine.plan_files.codec import read_plan_file


def apply_plan_file(context: Context, path: Path, results: Results, *, yes: bool) -> None:
    """Read the plan file, lock, hold it against what is there now, show, ask, apply, record."""
    environment = context.require_environment()
    file = read_plan_file(path, environment=environment, engine_version=version("delta-engine"))
    options = file.options
    project, backend, engine = open_engine(
        context, options.tables, options.allow, counts_checks=options.counts_checks
    )
    with engine.run("apply", print_note) as run:
        applied = earlier_apply(file, run.loaded)
        if applied is not None and applied.is_whole:
            note = _already_applied(applied)
            if results.as_json:
                print_note(note)
                results.print(run.unchanged())
            else:
                say(f"{environment}: {note}")
            return
        with status("reading the catalog …"):
            plan = run.plan(project.models, is_partial=project.is_partial)
            reviewed = reviewed_plan(file, path, project, backend, run, plan)
        carry_out(run, plan, project, results, yes=yes, reviewed=reviewed)


def _already_applied(applied: AppliedPlan) -> str:
    return (
        f"this plan was already applied, by {applied.applied_by} at {applied.applied_at:%Y-%m-%d %H:%M:%S} UTC: "
        "nothing was run"
    )
