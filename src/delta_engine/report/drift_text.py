"""The drift report as text, for terminals and mails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

from delta_engine.actions.drift_policy import DELETIONS, DriftKind, Severity
from delta_engine.aspects.aspect import Sign
from delta_engine.drift.drift_report import (
    DriftReport,
    IgnoredFinding,
    NextSync,
    PendingResource,
    PolicyNote,
    Recommendation,
    ResourceDrift,
)
from delta_engine.drift.drifted_resources import NOT_DELTA, Attribution, Finding, UnmanagedPart
from delta_engine.report.change_tree import Branch, differing_fields, differing_lines, leaf_lines, side_branch
from delta_engine.report.compact_plan import MOST_IN_FULL
from delta_engine.report.suggested_entries import entry_lines
from delta_engine.sql.readable_types import with_readable_types
from delta_engine.telemetry.visible import counted, counted_resources, in_one_line, shown_moment


class _HasResource(Protocol):
    @property
    def resource(self) -> str: ...


_T = TypeVar("_T")
_OfResource = TypeVar("_OfResource", bound=_HasResource)

_LONGEST_VALUE = 200
_CONSENT = "To consent in the pull request instead of with --allow, add to conf/consents.yml:"


@dataclass(frozen=True, slots=True)
class Line:
    """A line with the severity of its content."""

    text: str
    severity: Severity | None = None


def drift_text(report: DriftReport) -> str:
    """Return the whole report as plain text, with a final line feed."""
    return "".join(f"{line.text}\n" for line in drift_lines(report, is_full=True))


def drift_lines(report: DriftReport, *, is_full: bool = True) -> Iterator[Line]:
    """Yield the report's lines, with invisible characters spelled out.

    Args:
        is_full: whether a long report has every finding. The compact form has the numbers by schema and kind, and in
            full what is deleted and what is severe.
    """
    is_compact = not is_full and len(report.resources) + len(report.pending) > MOST_IN_FULL
    yield from (Line(in_one_line(line.text), line.severity) for line in _lines(report, is_compact=is_compact))


def summary(report: DriftReport) -> str:
    """Return one line with the counts."""
    counts = [f"{report.count(severity)} {severity.value}" for severity in reversed(Severity)]
    checked = counted_resources(report.checked.elements())
    if report.max_severity is None:
        return f"{_shown(report.environment)}: no drift in {checked}"
    total = sum(1 for _ in report.findings())
    return f"{_shown(report.environment)}: {counted(total, 'finding')} ({', '.join(counts)}) in {checked}"


def unmanaged_lines(parts: Iterable[UnmanagedPart], *, is_full: bool = True) -> Iterator[str]:
    """Yield a line per table with unmanaged parts, or only their number."""
    keys: dict[str, list[str]] = {}
    for part in parts:
        keys.setdefault(part.table, []).append(part.key)
    if keys and not is_full:
        number = counted(sum(map(len, keys.values())), "part")
        yield f"unmanaged: {number} of {counted(len(keys), 'table')}, kept as before: --full lists them"
        return
    for table, names in keys.items():
        yield f"unmanaged: {table}: {', '.join(names)}"


def _lines(report: DriftReport, *, is_compact: bool) -> Iterator[Line]:
    yield Line("Drift Detection Report")
    yield Line("")
    yield Line(f"Environment: {_shown(report.environment)}")
    if report.host:
        yield Line(f"Host: {_shown(report.host)}")
    yield Line(f"Checked at: {shown_moment(report.checked_at)}")
    if report.state_id:
        commit = "" if report.lineage == "unknown" else f", commit {_shown(report.lineage)}"
        yield Line(f"Deployment state: serial {report.serial}{commit}")
    else:
        yield Line("Nothing was applied here yet. Without a deployment state, there is no drift.")
    yield from _sections(report) if not is_compact else _compact_sections(report)
    title = "Not finished by a run of the engine (the next sync finishes these changes)"
    yield from _section(title, report.unfinished, lambda resource: [Line(f"  … {resource}")])
    yield from _advice(report, is_compact=is_compact)
    if report.notes:
        yield Line("")
        for text in report.notes:
            yield Line(f"Note: {_shown(text)}")
    yield Line("")
    if is_compact:
        yield Line(f"Compact form for more than {MOST_IN_FULL} resources. --full shows everything.")
    yield Line(summary(report), report.max_severity)


def _advice(report: DriftReport, *, is_compact: bool) -> Iterator[Line]:
    """Yield what to do: for all drift at once and, in the whole report, as alternatives for each table and schema."""
    if report.for_all:
        yield from (Line(""), Line("What to do about all of it:"))
        for number, advice in enumerate(report.for_all, start=1):
            yield from _step(f"  {number}. ", advice)
    handled = [resource for resource in report.resources if resource.alternatives] if not is_compact else []
    if handled:
        yield from (Line(""), Line("What to do about each resource, one of these:"))
    for resource in handled:
        yield Line(f"  {resource.resource}", resource.severity)
        if note := next_sync_note(resource):
            yield Line(f"    {note}")
        for advice in resource.alternatives:
            yield from _step("    - ", advice)
    entries = next((step.entry for step in report.recommendations if step.consents), "")
    lines = [*entry_lines(entries, heading=_CONSENT, is_full=not is_compact)]
    yield from map(Line, ["", *lines] if lines else [])


def _step(sign: str, step: Recommendation) -> Iterator[Line]:
    """Yield a recommended step. Of entries, it names the file alone: the page and JSON have them to paste."""
    indent = " " * len(sign)
    place = (
        f", with an entry in {step.file} (--format html shows it)" if step.file and not step.command else ""
    )
    yield Line(f"{sign}{_shown(step.text)}{place}{':' if step.command else ''}")
    if step.command:
        yield Line(f"{indent}  {step.command}")
    if step.consents:
        yield Line(f"{indent}  needs consent: {', '.join(step.consents)}")


def next_sync_note(resource: ResourceDrift) -> str:
    """Return what happens to the drift of a table or schema without any step; empty if that is not known."""
    is_schema = resource.resource.startswith("schema.")  # whose consents are those of its tables
    needs_consent = not is_schema and any(step.consents for step in resource.alternatives)
    match resource.next_sync:
        case NextSync.REFUSES:
            return "Until you choose one, the next sync is refused."
        case NextSync.REVERTS if needs_consent:
            return "Until you choose one, the next sync reverts it, which needs the same consent."
        case NextSync.REVERTS:
            return "Until you choose one, the next sync reverts it."
        case NextSync.REVERTS_SOME:
            return "Until you choose one, the next sync reverts a part of it."
        case NextSync.KEEPS:
            return "The next sync keeps it."
    return ""


def _sections(report: DriftReport) -> Iterator[Line]:
    yield from _section("Drifted Schemas", report.schemas, partial(_resource, "~"))
    yield from _section("Drifted Resources", report.drifted, partial(_resource, "~"), always=True)
    yield from _section("Deleted Resources", report.deleted, partial(_resource, "-"), always=True)
    yield from _section("Unmanaged Resources", report.unmanaged, _unmanaged, always=True)
    yield from _section("Ignored by the drift policy", report.ignored, _ignored)
    yield from _section("Policy entries without effect", report.policy_notes, _policy_note)
    yield from _section("Pending changes, which are not drift", report.pending, _pending)
    yield from _section("Unmanaged parts of tables", report.left_alone, _part)


def _compact_sections(report: DriftReport) -> Iterator[Line]:
    yield from _section("Drifted Schemas", report.schemas, partial(_severe, "~"))
    yield from _section(
        "Drifted Resources", report.drifted, partial(_severe, "~"), counts=_by_kind, always=True
    )
    yield from _section("Deleted Resources", report.deleted, partial(_resource, "-"), always=True)
    yield from _counted("Unmanaged Resources", report.unmanaged)
    yield from _counted("Ignored by the drift policy", report.ignored)
    yield from _section("Policy entries without effect", report.policy_notes, _policy_note)
    yield from _counted("Pending changes, which are not drift", report.pending)
    yield from _counted("Unmanaged parts of tables", report.left_alone)


def _severe(sign: str, resource: ResourceDrift) -> Iterator[Line]:
    """Yield the severe findings of a table or schema, and how many others it has."""
    severe = tuple(finding for finding in resource.findings if finding.severity is Severity.HIGH)
    if severe:
        yield from _resource(sign, replace(resource, findings=severe))
        if rest := len(resource.findings) - len(severe):
            yield Line(f"      and {counted(rest, 'more finding')}")


def _by_kind(resources: Sequence[ResourceDrift]) -> Iterator[Line]:
    """Yield a line per schema with its number of resources, and of findings by kind."""
    for schema, drifted in _by_schema(resources).items():
        kinds = Counter(
            finding.kind.value.replace("_", " ") for resource in drifted for finding in resource.findings
        )
        number = counted_resources(resource.resource.partition(".")[0] for resource in drifted)
        listed = ", ".join(f"{count:,} × {kind}" for kind, count in kinds.most_common())
        yield Line(f"  {schema}: {number} ({listed})")


def _counted(title: str, parts: Sequence[_OfResource]) -> Iterator[Line]:
    """Yield a section with the numbers by schema alone."""
    if parts:
        yield from (Line(""), Line(f"{title}: {len(parts):,}"))
    for schema, those in _by_schema(parts).items():
        yield Line(f"  {schema}: {len(those):,}")


def _by_schema(parts: Sequence[_OfResource]) -> Mapping[str, list[_OfResource]]:
    schemas: dict[str, list[_OfResource]] = {}
    for part in parts:
        kind, _, name = part.resource.partition(".")
        schema = name if kind == "schema" else name.rpartition(".")[0]
        schemas.setdefault(schema, []).append(part)
    return schemas


def _section(
    title: str,
    parts: Sequence[_T],
    lines: Callable[[_T], Iterable[Line]],
    *,
    counts: Callable[[Sequence[_T]], Iterable[Line]] = lambda _found: (),
    always: bool = False,
) -> Iterator[Line]:
    if parts or always:
        yield Line("")
        yield Line(f"{title}: {len(parts)}")
        yield from counts(parts)
    for part in parts:
        yield from lines(part)


def _shown(text: str) -> str:
    """Return a value, cut if it is long: comments can have pages."""
    text = with_readable_types(text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _resource(sign: str, resource: ResourceDrift) -> Iterator[Line]:
    yield Line(f"  {sign} {resource.resource}", resource.severity)
    for finding in resource.findings:
        yield from _finding(finding)


def _unmanaged(table: ResourceDrift) -> Iterator[Line]:
    yield Line(f"  ? {table.resource}", table.severity)
    for finding in table.findings:
        if finding.changed:
            yield Line(f"      created: {_author(finding.changed)}")
        if finding.actual == NOT_DELTA:
            yield Line(f"      note: it {NOT_DELTA}")
    yield Line("      note: in no model")


def _ignored(ignored: IgnoredFinding) -> Iterator[Line]:
    until = f" (through {ignored.expires})" if ignored.expires else ""
    text, leaves = _change(ignored.finding)
    yield Line(f"  = {ignored.resource}: {_shown(ignored.finding.field)}: {text}")
    yield from _leaves(leaves)
    yield Line(f"      reason: {_shown(ignored.reason)}{until}")


def _policy_note(note: PolicyNote) -> Iterator[Line]:
    yield Line(f"  ! {_shown(note.resource)} [{', '.join(map(_shown, note.fields))}]: {note.problem}")
    yield Line(f"      {_shown(note.location)}: {_shown(note.reason)}")


def _pending(table: PendingResource) -> Iterator[Line]:
    yield Line(f"  + {table.resource}{'' if table.changes else ': to be created'}")
    for change in table.changes:
        text, leaves = _sides(change.observed, change.desired)
        yield Line(f"      {_shown(change.field)}: {'RENAMED ' if change.is_rename else ''}{text}")
        yield from _leaves(leaves)


def _part(part: UnmanagedPart) -> Iterator[Line]:
    yield Line(f"  · {part.resource}: {_shown(part.key)} = {_shown(repr(part.value))}")


def _finding(finding: Finding) -> Iterator[Line]:
    text, leaves = _change(finding)
    yield Line(f"      {_shown(finding.field)}: {text}")
    yield from _leaves(leaves)
    yield Line(f"      severity: {finding.severity.value}", finding.severity)
    if finding.absence:
        yield Line(f"      rights: {_shown(finding.absence.reason)}")
    if finding.changed:
        yield Line(f"      last_modified: {_author(finding.changed)}")
    elif finding.last_written:
        yield Line(f"      last written: {_author(finding.last_written)}, not necessarily with this change")
    elif finding.kind in DELETIONS.values():
        yield Line("      last_modified: unknown")
    if finding.accepted:
        yield Line(
            f"      accepted: {_shown(str(finding.accepted))}; a sync whose models declare it ends the drift"
        )


def _author(changed: Attribution) -> str:
    parts = [
        shown_moment(changed.at) if changed.at else "time unknown," if changed.who else "",
        f"by {_shown(changed.who)}" if changed.who else "",
    ]
    origin = [
        changed.operation or "",
        f"version {changed.version}" if changed.version is not None else "",
        f"job {_shown(changed.job)}" if changed.job else "",
        f"notebook {_shown(changed.notebook)}" if changed.notebook else "",
    ]
    details = ", ".join(part for part in origin if part)
    return " ".join(part for part in (*parts, f"({details})" if details else "") if part)


def _leaves(leaves: Sequence[Branch]) -> Iterator[Line]:
    return (Line(line) for line in leaf_lines(leaves, "      "))


def _change(finding: Finding) -> tuple[str, Sequence[Branch]]:
    match finding.kind:
        case kind if kind in DELETIONS.values():
            hidden = ", or hidden from you" if finding.may_be_hidden else ""
            return f"DELETED{hidden} ({_shown(finding.expected or '')})", ()
        case DriftKind.COLUMN_RENAMED:
            return f"RENAMED {_shown(finding.expected or '')} → {_shown(finding.actual or '')}", ()
    return _sides(finding.expected, finding.actual)


def _sides(before: str | None, after: str | None) -> tuple[str, Sequence[Branch]]:
    """Return a change on one line, with the fields of nested types, or lines of a text, below it."""
    match before, after:
        case None, str(added):
            side = side_branch(added, Sign.ADDED)
            return f"ADDED {_shown(side.text)}", side.leaves
        case str(removed), None:
            side = side_branch(removed, Sign.REMOVED)
            return f"REMOVED {_shown(side.text)}", side.leaves
    leaves = differing_fields(before or "", after or "") or differing_lines(before, after)
    return "changed" if leaves else f"{_shown(before or '')} → {_shown(after or '')}", leaves
