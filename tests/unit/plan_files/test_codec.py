"""What is wrong with a plan file is said, and never by a traceback."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from delta_engine.plan_files.codec import (
    encode_plan_file,
    is_replaceable,
    read_plan_file,
    sealed,
)
from delta_engine.plan_files.document import PlanFile, PlanFileError
from tests.builders.published_schemas import plan_file_schema
from tests.projects.plan_files import PLAN, SOME

PUBLISHED = Path(__file__).parents[3] / "docs" / "schemas" / "plan-file-v3.json"


def read(path: Path, data: bytes, *, environment: str = "dev", engine: str = "0.3.0") -> PlanFile:
    path.write_bytes(data)
    return read_plan_file(path, environment=environment, engine_version=engine)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


def test_another_layout_is_the_same_plan(path: Path) -> None:
    document = json.loads(encode_plan_file(PLAN))
    turned = dict(reversed(document.items()))
    assert read(path, json.dumps(turned, indent=7).encode()) == PLAN


def edited(**fields: object) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(fields)


EDITS: list[Callable[[dict[str, Any]], object]] = [
    edited(environment="prod"),
    edited(statements=[]),
    edited(further="field"),
    edited(checksum=SOME),
    edited(checksum=None),
    lambda document: document.pop("checksum"),
    lambda document: document.pop("touched"),
    lambda document: document["statements"][0].update(sql="DROP TABLE x"),
    lambda document: document["options"]["allow"].append("drop_table"),
    lambda document: document["touched"].clear(),
    lambda document: document["plan"]["tables"].clear(),
]


@pytest.mark.parametrize("edit", EDITS)
def test_edited_files_are_refused(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(encode_plan_file(PLAN))
    edit(document)
    with pytest.raises(PlanFileError, match="was edited or damaged: it does not match its checksum"):
        read(path, json.dumps(document).encode())


def test_a_plan_file_is_laid_out_for_reviews() -> None:
    data = encode_plan_file(PLAN)
    assert data.startswith(b'{\n  "$schema": ')
    assert data.endswith(b"\n}\n")


def test_a_plan_file_that_was_cut_off_may_be_written_anew_there(path: Path) -> None:
    data = encode_plan_file(PLAN)
    with pytest.raises(PlanFileError, match="Write it again and review it"):
        read(path, data[:1_000])
    for content in (data, data[:300], b"", b"\n"):
        path.write_bytes(content)
        assert is_replaceable(path)
    for content in (b"tables: []", b"{}", b"\xff"):
        path.write_bytes(content)
        assert not is_replaceable(path)


@pytest.mark.parametrize("place", ["statements", "environment", "table"])
def test_what_is_said_twice_is_refused(path: Path, place: str) -> None:
    """Its last one counts, and its checksum fits; a reader may have seen the first."""
    data = encode_plan_file(PLAN).replace(f'"{place}":'.encode(), f'"{place}": [], "{place}":'.encode())
    with pytest.raises(PlanFileError, match=f"edited or damaged: it has '{place}' twice in one place"):
        read(path, data)


def test_every_truncation_is_refused(path: Path) -> None:
    data = encode_plan_file(PLAN).rstrip()
    for length in range(0, len(data), 7):
        with pytest.raises(PlanFileError, match=r"is empty|is not complete JSON"):
            read(path, data[:length])


@given(
    place=st.integers(0, len(encode_plan_file(PLAN)) - 1), byte=st.integers(0, 255), is_added=st.booleans()
)
def test_no_changed_byte_gets_through(place: int, byte: int, is_added: bool) -> None:
    data = bytearray(encode_plan_file(PLAN))
    data[place : place if is_added else place + 1] = bytes([byte])
    with NamedTemporaryFile() as file:
        try:
            decoded = read(Path(file.name), bytes(data))
        except PlanFileError:
            return
    assert decoded == PLAN  # a blank between two tokens


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"not JSON", "it is not complete JSON: "),
        (b"\xff\xfe", "it is not complete JSON: "),
        (b'{"a": "\\ud800"}', "it is not complete JSON: "),
        (b"[" * 100_000, "it is not complete JSON: "),
        (b"[]", "it is JSON, but not a plan file"),
        (b"{}", "it is JSON, but not a plan file"),
        (b'{"format": "delta-engine/plan", "version": 1}', "it is JSON, but not a plan file"),
    ],
)
def test_what_is_no_plan_file_is_refused(path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(PlanFileError) as refused:
        read(path, data)
    assert str(refused.value).startswith(f"{path}: {reason}")
    again = f"Write it again and review it: `delta-engine -e dev plan --out {path}`."
    another = "Name a file that `delta-engine -e ENV plan --out FILE` wrote."
    assert str(refused.value).endswith(another if data.strip() else again)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"version": 4}, "it has format 4 of a newer engine, but this engine reads format 3"),
        ({"version": 1}, "it has format 1 of an older engine, but this engine applies only format 3"),
        ({"version": 0}, "it has format 0 of an older engine, but this engine applies only format 3"),
        ({"version": True}, "its version is True"),
        ({"version": "1"}, "its version is '1'"),
        ({"version": -1}, "its version is -1"),
        (
            {"engine_version": "0.10.0"},
            "a newer engine made it: delta-engine 0.10.0, but this is 0.3.0. Install delta-engine 0.10.0",
        ),
        ({"engine_version": "0.1.9"}, "another engine made it: delta-engine 0.1.9, but this is 0.3.0"),
        ({"engine_version": None}, "its engine_version is None"),
        ({"engine_version": "0.3.0; rm x"}, "its engine_version is '0.3.0; rm x'"),
        ({"version": [[]]}, "its version is [[]]"),
    ],
)
def test_other_versions_are_refused_first(path: Path, fields: dict[str, object], reason: str) -> None:
    document = json.loads(encode_plan_file(PLAN)) | fields
    with pytest.raises(PlanFileError) as refused:
        read(path, json.dumps(document).encode())
    assert reason in str(refused.value)


def test_a_file_of_format_2_is_refused_with_the_command_that_plans_again(path: Path) -> None:
    older = Path(__file__).parent / "documents" / "v2.json"
    with pytest.raises(PlanFileError) as refused:
        read(path, older.read_bytes())
    assert str(refused.value) == (
        f"{path}: it has format 2 of an older engine, but this engine applies only format 3. "
        f"Write it again and review it: `delta-engine -e dev plan --out {path}`."
    )


@pytest.mark.parametrize(
    "plan",
    [
        {"tables": "all"},
        {"tables": [{"table": 1}]},
        {"tables": [{"table": "x", "actions": [{"changes": [{"subject": "comment"}]}]}]},
        {"align_schemas": [{"schema": "x", "actions": [{"change": []}]}]},
        {"create_schemas": {}},
    ],
)
def test_a_plan_whose_changes_cannot_be_read_is_refused(path: Path, plan: dict[str, Any]) -> None:
    forged = sealed(msgspec.structs.replace(PLAN, plan=plan))
    with pytest.raises(PlanFileError, match=r"it is not a valid plan file: (Expected|Object missing)"):
        read(path, encode_plan_file(forged))


def test_a_wrong_shape_under_a_right_checksum_is_refused(path: Path) -> None:
    forged = sealed(msgspec.structs.replace(PLAN, policy="all is allowed"))
    with pytest.raises(PlanFileError, match=r"it is not a valid plan file: Expected `object`, got `str`"):
        read(path, encode_plan_file(forged))


def test_the_published_schema_is_the_generated_one_and_judges_plan_files() -> None:
    assert PUBLISHED.read_text("utf-8") == plan_file_schema() + "\n"
    schema = json.loads(plan_file_schema())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    document = json.loads(encode_plan_file(PLAN))
    validator.validate(document)
    for edit in (edited(version=2), edited(statements=[{}]), edited(checksum="md5:x"), edited(touched=[])):
        broken = json.loads(json.dumps(document))
        edit(broken)
        assert not validator.is_valid(broken)
