"""What is wrong with models as SARIF 2.1.0, which code hosts show at the lines of the files.

GitHub requires a location of every result, and a short description, a full description and a help text of every rule
(docs.github.com, "SARIF support for code scanning"). A result without a file of the repository is shown at the
environment's configuration. GitHub recognizes a result again by `primaryLocationLineHash` alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

from delta_engine.config.conf_folder import repository_root
from delta_engine.errors import RefusedError, SourceLocation, engine_version
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import visible
from delta_engine.tools.pull_requests.repository import file_of

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_MOST_RESULTS: Final = 5_000
"""GitHub shows no more of one run."""

_LONGEST_DESCRIPTION: Final = 1_024
"""Characters; GitHub takes no longer ones. The help of a rule may be longer."""

_WORD_START: Final = re.compile(r"-|(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Result:
    """Something wrong at a line of a file.

    Args:
        rule: the name of the rule.
        level: error, warning or note.
        subject: the securable and column, which identify the result while lines move.
        conf_file: the configuration of the environment, which is shown without a location.
    """

    rule: str
    level: str
    message: str
    subject: str
    conf_file: Path
    location: SourceLocation | None = None


def refused_results(refusals: Iterable[RefusedError], conf_file: Path) -> list[Result]:
    """Return refusals as results; the topic of each error is its rule."""
    return [
        Result(
            refusal.topic,
            "error",
            refusal.message,
            ".".join(filter(None, (refusal.table, refusal.securable, refusal.column))),
            conf_file,
            refusal.location,
        )
        for refusal in refusals
    ]


def sarif(results: Sequence[Result], rules: Mapping[str, str]) -> str:
    """Return the log with results, the first 5,000 of them.

    Args:
        rules: what each rule demands and its fixes, by name; a rule without a text has its name.
    """
    shown = results[:_MOST_RESULTS]
    used = sorted({result.rule for result in shown})
    driver = {
        "name": "delta-engine",
        "version": engine_version(),
        "rules": [_rule(rule, rules.get(rule, "")) for rule in used],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, used.index(result.rule)) for result in shown],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(name: str, help_text: str) -> dict[str, object]:
    title = _WORD_START.sub(" ", name).lower().capitalize()
    text = help_text or title
    description = text.partition("\n\n")[0][:_LONGEST_DESCRIPTION]
    return {
        "id": name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": description},
        "help": {"text": text},
    }


def _result(result: Result, rule_index: int) -> dict[str, object]:
    project_dir = result.conf_file.absolute().parent.parent.resolve()
    root = repository_root(project_dir) or next(
        folder for folder in (Path.cwd(), project_dir) if project_dir.is_relative_to(folder)
    )
    place = result.location
    file = file_of(place, project_dir) if place else None
    if place is None or file is None or not file.is_relative_to(root):
        file, line, told = project_dir.joinpath(*result.conf_file.parts[-2:]), 1, str(place or "")
    else:
        line, told = max(1, place.line or 1), ""
    message = visible(redacted(": ".join(filter(None, (told, result.subject, result.message)))))
    identity = "\0".join((result.rule, result.subject, result.message))
    region = {"startLine": line}
    artifact = {"uri": quote(file.relative_to(root).as_posix()), "uriBaseId": "%SRCROOT%"}
    return {
        "ruleId": result.rule,
        "ruleIndex": rule_index,
        "level": result.level,
        "message": {"text": message},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        "partialFingerprints": {"primaryLocationLineHash": sha256(identity.encode()).hexdigest()},
    }
