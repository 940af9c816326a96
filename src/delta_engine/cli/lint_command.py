"""What `lint` does: judges models by the house rules of `conf/lint.yml`, offline."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from delta_engine.cli.options import Json, Tables, choice, flag, value
from delta_engine.cli.terminal import Context, Ended, ExitCode, print_note, say

if TYPE_CHECKING:
    from delta_engine.config.settings import Settings
    from delta_engine.tools.lint.house_rules import HouseRules
    from delta_engine.tools.lint.report import LintReport

LINT_EPILOG: Final = (
    "Examples: delta-engine -e dev lint; delta-engine -e dev lint --format sarif > lint.sarif"
)


class LintFormat(Enum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


def lint(
    ctx: typer.Context,
    table: Tables = None,
    json: Json = False,
    output_format: Annotated[
        str | None, value("--format", "FORMAT", "How to print findings: text, json or sarif.")
    ] = None,
    fail_on: Annotated[
        str | None,
        value(
            "--fail-on",
            "SEVERITY",
            "Exit with 2 if a finding has this or a higher severity: error, warning or note.",
        ),
    ] = None,
    recommended: Annotated[
        bool, flag("--recommended", help="Use the recommended rules instead of conf/lint.yml.")
    ] = False,
    rules: Annotated[bool, flag("--rules", help="List the house rules and their options, and stop.")] = False,
    full: Annotated[
        bool, flag("--full", help="Show all findings of each rule. Default: the first ten.")
    ] = False,
) -> None:
    """Check models against the house rules of conf/lint.yml. Needs no Spark and no network.

    House rules are conventions of a team: comments, names, owners, tags, types, keys. None is on by default; `preset:
    recommended` switches the recommended ones on. `validate` finds what is wrong for every team.
    """
    from delta_engine.cli.many_projects import OutputForm, run_in_projects

    if rules:
        say("\n".join(_rule_lines()))
        return
    shown = choice("--format", output_format or ("json" if json else "text"), LintFormat)
    work = partial(
        lint_models,
        tables=table or (),
        output_format=shown,
        fail_on=fail_on,
        is_recommended=recommended,
        is_full=full,
    )
    if shown is LintFormat.SARIF and ctx.obj.projects:
        raise typer.BadParameter("--format sarif is one document: run `lint` in one project, without -p")
    run_in_projects(ctx.obj, work, OutputForm.JSON if shown is LintFormat.JSON else OutputForm.TEXT)


def lint_models(
    context: Context,
    tables: Sequence[str],
    output_format: LintFormat = LintFormat.TEXT,
    *,
    fail_on: str | None = None,
    is_recommended: bool = False,
    is_full: bool = False,
) -> Ended:
    """Judge a project, and print what its house rules find.

    Args:
        fail_on: the least severity with which the command ends with 2; by default that of `conf/lint.yml`, and
            nothing fails without that file.
        is_recommended: whether the recommended rules judge instead of those of the file.
    """
    from delta_engine.config.conf_folder import LINT_FILE
    from delta_engine.config.lint import Severity
    from delta_engine.config.settings import load_settings
    from delta_engine.tools.lint.house_rules import load_house_rules
    from delta_engine.tools.lint.house_rules import recommended as recommended_rules
    from delta_engine.tools.lint.report import lint_document, lint_lines, lint_summary

    conf_dir, environment = context.place()
    least = choice("--fail-on", fail_on, Severity) if fail_on else None
    settings = load_settings(conf_dir, environment)
    house = None if is_recommended else load_house_rules(conf_dir, settings.project_dir)
    is_offer = house is None and not is_recommended
    if house is None:
        house = recommended_rules()
    report = _judged(settings, tables, house)
    if output_format is LintFormat.JSON:
        typer.echo(lint_document(report))
    elif output_format is LintFormat.SARIF:
        typer.echo(_sarif(report, house, conf_dir / f"{environment}.yml"), nl=False)
    else:
        say("\n".join(lint_lines(report, is_full=is_full)))
    for note in report.notes:
        print_note(note)
    if is_offer:
        print_note(
            f"{conf_dir / LINT_FILE} does not exist: this is what the recommended rules find"
            f"{'' if least else ', and nothing fails'}. `preset: recommended` in that file switches them on"
        )
    fails = report.fails(least or house.fail_on) and (least is not None or not is_offer)
    return Ended(lint_summary(report), ExitCode.PENDING if fails else ExitCode.DONE)


def _judged(settings: Settings, tables: Sequence[str], house: HouseRules) -> LintReport:
    """Return what rules find in a project; what they found in an unchanged one, unless rules are the project's own."""
    from delta_engine.orchestrate.project import project_of
    from delta_engine.telemetry.context import utc_now
    from delta_engine.tools.lint.linter import lint as judge
    from delta_engine.tools.lint.linter import lint_again

    today = utc_now().date()
    if not tables and not house.has_own_rules:
        return lint_again(settings, house, today)
    models = project_of(settings, tables=tables).models
    return judge(models, house, today, is_selection=bool(tables))


def _sarif(report: LintReport, house: HouseRules, conf_file: Path) -> str:
    from delta_engine.tools.lint.house_rules import summary_of
    from delta_engine.tools.pull_requests.sarif import Result, sarif

    results = [
        Result(each.rule, each.severity.value, each.text, each.subject, conf_file, each.place)
        for each in report.findings
    ]
    return sarif(results, {type(rule).__name__: summary_of(type(rule)) for rule in house.rules})


def _rule_lines() -> list[str]:
    from delta_engine.tools.lint.house_rules import RULES, options_of, summary_of

    lines = []
    for name, rule in RULES.items():
        options = ", ".join(options_of(rule))
        lines.append(f"{name}{' (recommended)' if rule.is_recommended else ''}: {summary_of(rule)}")
        lines += [f"    options: {options}"] if options else []
    return lines
