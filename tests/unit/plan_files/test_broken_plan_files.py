"""Plan files that somebody forged under a right checksum: whatever is in them, they are refused or applied."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from delta_engine.models.open_struct import checksum_of
from delta_engine.plan_files.codec import encode_plan_file, read_plan_file
from delta_engine.plan_files.document import PlanFileError
from tests.builders.broken_documents import broken_copies, nested
from tests.projects.plan_files import PLAN, PlanProject


def forged(document: Any) -> bytes:
    """Return a document under the checksum of its content, as far as it has one."""
    data = json.dumps(document).encode()
    read = msgspec.json.decode(data)
    if not isinstance(read, dict) or "checksum" not in read:
        return data
    content = {key: value for key, value in read.items() if key != "checksum"}
    return json.dumps(
        document | {"checksum": checksum_of(msgspec.json.encode(content, order="sorted"))}
    ).encode()


def is_read(path: Path, data: bytes) -> bool:
    path.write_bytes(data)
    try:
        read_plan_file(path, environment=PLAN.environment, engine_version=PLAN.engine_version)
    except PlanFileError:
        return False
    return True


def test_every_broken_file_is_read_or_refused(tmp_path: Path) -> None:
    document = json.loads(encode_plan_file(PLAN))
    answers = [is_read(tmp_path / "plan.json", forged(broken)) for _, broken in broken_copies(document)]
    assert {*answers} == {True, False}


@pytest.mark.parametrize("depth", [500, 900, 950, 980, 1_000, 5_000, 200_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_files_without_end_are_refused(tmp_path: Path, brackets: str, depth: int) -> None:
    document = json.loads(encode_plan_file(PLAN))
    for key in document:
        data = json.dumps(document | {key: "here"}).replace('"here"', nested(brackets, depth)).encode()
        assert not is_read(tmp_path / "plan.json", data), key


def compared_part_of(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of a plan without what people alone read."""
    (table,) = plan["tables"]
    (action,) = table["actions"]
    return {"tables": [{"table": table["table"], "actions": [{"changes": action["changes"]}]}]}


@pytest.mark.parametrize(
    "name", ["", "x", "a.b.c.d", "a..c", "a.b.x\x1b[2J", "a.b.`", "x" * 5_000, "a.b.c/../d"]
)
def test_a_forged_name_of_a_removed_table_is_refused(tmp_path: Path, name: str) -> None:
    document = json.loads(encode_plan_file(PLAN))
    document["options"]["changed"] = {
        "since": "main",
        "tables": ["dev.silver.A"],
        "removed": ["dev.silver.B"],
    }
    assert is_read(tmp_path / "plan.json", forged(document))
    document["options"]["changed"]["removed"].append(name)
    assert not is_read(tmp_path / "plan.json", forged(document))


def test_a_plan_that_is_read_is_applied_or_refused(plan_project: PlanProject) -> None:
    plan_project.declare(a="first", b="first")
    plan_project.sync()
    plan_project.declare(a="second", b="first")
    plan_project.plan("-t", "silver.*", "--allow", "drop_column")
    document = json.loads(plan_project.file.read_bytes())
    document["plan"] = compared_part_of(document["plan"])
    reviewed = [statement["sql"] for statement in document["statements"]]
    counts = {0: 0, 3: 0}
    for what, broken in broken_copies(document, ("x", "\x1b[2J", [], {}, None)):
        plan_project.file.write_bytes(forged(broken))
        with suppress(PlanFileError), plan_project.unchanged():
            plan_project.read()
            result = plan_project.apply()
            assert result.code in counts, what
            assert plan_project.platform.statements == (reviewed if result.code == 0 else []), what
            counts[result.code] += 1
    assert all(counts.values())
