"""What the methods of `Engine` return: values that show themselves in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from delta_engine.actions import TablePlan
from delta_engine.actions.drift_policy import Severity
from delta_engine.config.model_writer import python_models, yaml_models
from delta_engine.drift.drift_report import DriftReport, ResourceDrift
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import RefusedError
from delta_engine.models import AbacPolicy, Function, Schema, Securable, Table, View, of_kind
from delta_engine.orchestrate.import_folder import FolderReport
from delta_engine.orchestrate.importing import Imported
from delta_engine.plan_files.document import Options, PlanFile
from delta_engine.report.drift_text import drift_text, summary
from delta_engine.report.json_documents import plan_document, report_json
from delta_engine.report.notebook_html import framed, plan_html
from delta_engine.report.plan_text import summary_lines, tree_lines
from delta_engine.report.plan_tree import plan_summary
from delta_engine.report.refusals import refusal_messages
from delta_engine.report.suggested_entries import entry_lines
from delta_engine.telemetry.context import in_context
from delta_engine.telemetry.visible import counted, in_one_line, visible


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Plan:
    """What would be done in one environment. True if there is anything to do.

    It shows the tree of the command line as text, and the same as HTML in a notebook.

    Args:
        environment: the environment's name.
        planned: the plan, its statements, and what they were made from.
        given: the models that Python code gave; None for those of the project.
        options: with which `Engine.apply` opens the project again.
        file: what `Engine.apply` compares with; None for a plan that is refused.
        models: the number of models.
        note: what the plan is about, if it is not about the models.
        project_dir: the folder from which models are named; by default the current one.
    """

    environment: str
    planned: PlannedRun
    given: tuple[Securable, ...] | None
    options: Options
    file: PlanFile | None
    models: int = 0
    note: str = ""
    project_dir: Path = Path()

    @property
    def actions(self) -> TablePlan:
        """The changes of schemas, functions, tables, policies and views."""
        return self.planned.plan

    @property
    def refusals(self) -> tuple[RefusedError, ...]:
        """Why the plan must not be applied; empty if it may."""
        return self.planned.refusals

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be read, which rights are missing, and which views the plan breaks."""
        return self.planned.warnings

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL statements, in an order in which they can run."""
        return tuple(self.planned.compiled.sql())

    @property
    def statements_by_table(self) -> Mapping[str, tuple[str, ...]]:
        """The SQL statements of each table, by its name in lower case.

        Those of schemas are under the empty name, those of other kinds under the keys of their resources.
        """
        return {table: tuple(sql) for table, sql in self.planned.compiled.sql_by_table().items()}

    @property
    def summary(self) -> str:
        """One line with the counts."""
        return plan_summary(self.actions, is_refused=bool(self.refusals))

    def as_json(self) -> str:
        """Return the document that `delta-engine plan --json` prints."""
        return plan_document(self.planned, environment=self.environment)

    def as_markdown(self) -> str:
        """Return the summary that `delta-engine plan --markdown` prints, for a pull request."""
        from delta_engine.tools.pull_requests.code_owners import owners_of
        from delta_engine.tools.pull_requests.markdown import planned_markdown

        return planned_markdown(self.planned, self.environment, owners_of(self.actions, self.project_dir))

    def __bool__(self) -> bool:
        return bool(self.actions)

    def __str__(self) -> str:
        with self._speaking():
            return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        *notes, _ = self._summary_lines()
        with self._speaking():
            lines = [*filter(None, [self.note]), *notes, *self.warnings]
            return plan_html(self.planned, environment=self.environment, notes=lines)

    def _speaking(self) -> AbstractContextManager[None]:
        return in_context(environment=self.environment, interface="python")

    def _lines(self) -> Iterator[str]:
        if self.note:
            yield f"note: {self.note}"
        yield from tree_lines(self.actions, self.planned.undone)
        yield from map(in_one_line, self._summary_lines())
        for warning in self.warnings:
            yield f"warning: {in_one_line(warning)}"
        for message in refusal_messages(self.refusals):
            yield visible(f"refused: {message}")
        yield from map(visible, entry_lines(self.planned.consent_entries))

    def _summary_lines(self) -> Iterator[str]:
        return summary_lines(self.planned, environment=self.environment, models=self.models)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Drift:
    """What was changed outside the engine. True if there is a finding.

    It shows the report of the command line as text, and the page in a notebook.

    Args:
        report: the report as data.
        html: the page that `delta-engine drift --format html` writes.
    """

    report: DriftReport
    html: str

    @property
    def resources(self) -> tuple[ResourceDrift, ...]:
        """Tables, schemas, functions, policies and views with findings, without those that the drift policy ignores."""
        return self.report.resources

    @property
    def max_severity(self) -> Severity | None:
        """The worst severity; None without findings."""
        return self.report.max_severity

    @property
    def summary(self) -> str:
        """One line with the counts."""
        return summary(self.report)

    def as_json(self) -> str:
        """Return the document that `delta-engine drift --json` prints."""
        return report_json(self.report)

    def __bool__(self) -> bool:
        return self.max_severity is not None

    def __str__(self) -> str:
        return drift_text(self.report).rstrip("\n")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return framed(self.html, title="Drift report", height="40rem" if self else "22rem")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Models:
    """Models of what exists. It shows itself as the Python code that declares them.

    Args:
        tables: the models of tables.
        schemas: the models of whole schemas that have a comment or tags.
        functions: the models of functions.
        policies: the models of policies (ABAC).
        views: the models of views, with inline queries.
        refusals: why other tables cannot be imported.
        notes: what is left out on purpose, such as materialized views.
        variables: the environment's variables, which stand in the text for their values.
    """

    tables: tuple[Table, ...]
    schemas: tuple[Schema, ...] = ()
    functions: tuple[Function, ...] = ()
    policies: tuple[AbacPolicy, ...] = ()
    views: tuple[View, ...] = ()
    refusals: tuple[RefusedError, ...] = ()
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, imported: Imported, variables: Mapping[str, str]) -> Models:
        """Return what an import read."""
        return cls(
            tables=imported.tables,
            schemas=tuple(of_kind(Schema, imported.models)),
            functions=tuple(of_kind(Function, imported.models)),
            policies=tuple(of_kind(AbacPolicy, imported.models)),
            views=tuple(of_kind(View, imported.models)),
            refusals=imported.refusals,
            notes=imported.notes,
            variables=variables,
        )

    @property
    def _models(self) -> tuple[Securable, ...]:
        return (*self.schemas, *self.functions, *self.policies, *self.views, *self.tables)

    def as_python(self) -> str:
        """Return a Python module that declares the models."""
        return python_models(self._models, self.variables)

    def as_yaml(self) -> str:
        """Return a model file that declares the models."""
        return yaml_models(self._models, self.variables)

    def __str__(self) -> str:
        return visible(self.as_python().rstrip("\n"))

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelFiles:
    """The model files that an import wrote.

    Args:
        folder: the folder that holds them.
        files: the new files.
        tables: the number of models of tables in them.
        others: the number of models of functions, policies and views in them.
        declared: the number of resources that were declared already, and not imported again.
        refusals: why other tables cannot be imported.
        notes: what is left out on purpose, such as materialized views.
    """

    folder: Path
    files: tuple[Path, ...]
    tables: int
    others: int = 0
    declared: int = 0
    refusals: tuple[RefusedError, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, report: FolderReport, folder: Path) -> ModelFiles:
        """Return what an import wrote into a folder."""
        return cls(
            folder=folder,
            files=tuple(report.files),
            tables=report.tables,
            others=report.others,
            declared=report.declared,
            refusals=tuple(report.refusals),
            notes=tuple(report.notes),
        )

    def __str__(self) -> str:
        return visible("\n".join(self._lines()))

    def __repr__(self) -> str:
        return str(self)

    def _lines(self) -> Iterator[str]:
        files = counted(len(self.files), "file")
        yield f"{counted(self.tables + self.others, 'model')} written to {files} in {self.folder}"
        if self.declared:
            yield f"{counted(self.declared, 'resource')} declared already, and not imported again"
        yield from self.notes
        for message in refusal_messages(self.refusals):
            yield f"left out: {message}"
