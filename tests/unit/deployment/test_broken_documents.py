"""Documents that somebody damaged in one place: they are read or refused, and so is all that reads them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from delta_engine.deployment.codec import decode_state, encode_state
from delta_engine.deployment.stored_definitions import TableDefinition
from delta_engine.errors import RefusedError
from delta_engine.models.open_struct import canonical_checksum, decode_open
from tests.builders.broken_documents import broken_copies, nested
from tests.builders.deployment import deployment_state
from tests.builders.models import WORKED_MODEL
from tests.projects.plan_files import PlanProject

DOCUMENTS = Path(__file__).parent / "documents"


def is_read(data: bytes) -> bool:
    """Whether a document is taken for one; what is taken can be written."""
    try:
        state = decode_state(data, environment="test", where="the document")[0]
    except RefusedError:
        return False
    return bool(encode_state(state))


def with_checksums(document: Any) -> bytes:
    """Return a document whose definitions have their checksums, as far as they have one."""
    with suppress(AttributeError, KeyError, TypeError, msgspec.DecodeError):
        for resource in document["resources"].values():
            definition = json.dumps(resource["metadata"]["declared"]).encode()
            resource["config_checksum"] = canonical_checksum(decode_open(definition, TableDefinition))
    return json.dumps(document).encode()


@pytest.mark.parametrize("path", sorted(DOCUMENTS.glob("*.in.json")), ids=lambda path: path.stem)
def test_every_broken_document_is_read_or_refused(path: Path) -> None:
    answers = [is_read(with_checksums(broken)) for _, broken in broken_copies(json.loads(path.read_bytes()))]
    assert {*answers} == {True, False}


@pytest.mark.parametrize("depth", [500, 1_000, 5_000, 200_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_documents_without_end_are_read_or_refused(brackets: str, depth: int) -> None:
    document = json.loads(encode_state(deployment_state(WORKED_MODEL)))
    for key in (*document, "stranger"):
        data = json.dumps(document | {key: "here"}).replace('"here"', nested(brackets, depth)).encode()
        assert not is_read(data) or key == "stranger"


def test_a_document_that_is_read_works_or_is_refused(plan_project: PlanProject) -> None:
    plan_project.declare(a="first")
    plan_project.sync()
    plan_project.declare(a="second")
    path = plan_project.folder / "state" / "local.state.json"
    document = json.loads(path.read_bytes())
    for what, broken in broken_copies(document["resources"], ("x", None)):
        data = with_checksums(document | {"resources": broken})
        if is_read(data):
            with plan_project.unchanged():
                path.write_bytes(data)
                assert plan_project.run("sync", "--yes").code in (0, 3), what
