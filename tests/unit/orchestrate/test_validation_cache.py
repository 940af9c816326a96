"""`validate` of an unchanged project answers from the verdict of the last one, and from nothing else."""

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from delta_engine.config.loading import Declared, load_declared
from delta_engine.config.settings import Settings
from delta_engine.errors import ConfigError, RefusedError
from delta_engine.orchestrate.validation_cache import valid_models
from tests.unit.config.projects import CONFIG, MODELS

Write = Callable[[str, str], object]

FUNCTION = """\
functions:
  - catalog: spark_catalog
    schema: silver
    name: f
    parameters: [{name: x, type: string}]
    returns: string
    body_file: f.sql
"""
MODULE = "delta_engine.orchestrate.validation_cache"
VERDICT = ".delta-engine/cache/dev.verdict.json"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a file of the project; one model is there already."""

    def put(name: str, text: str) -> object:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.write_text(text)

    put("conf/dev.yml", CONFIG)
    put("conf/models/orders.yml", MODELS)
    return put


def count(project: Path) -> int:
    return valid_models(project / "conf", "dev").models


@pytest.fixture
def valid(tmp_path: Path, write: Write) -> Path:
    """Return a project that was found valid."""
    assert count(tmp_path) == 1
    return tmp_path


@pytest.fixture
def forged(valid: Path) -> Path:
    """Return a valid project whose verdict says 7 models instead of 1: whoever reads 7 did not parse."""
    return forge(valid)


def forge(project: Path) -> Path:
    file = project / VERDICT
    file.write_text(json.dumps({**json.loads(file.read_text()), "models": 7}))
    return project


def test_an_unchanged_project_is_not_parsed_again(forged: Path) -> None:
    assert count(forged) == 7


@pytest.mark.parametrize(
    ("file", "text", "models"),
    [
        ("conf/models/orders.yml", MODELS.replace("orders", "sales"), 1),
        ("conf/models/more.yml", MODELS.replace("orders", "sales"), 2),
        ("conf/dev.yml", CONFIG.replace("n: 7", "n: 8"), 1),
        ("conf/dev.yml", f"{CONFIG}policy: {{create_schemas: true}}\n", 1),
        ("conf/dev.yml", f"{CONFIG}defaults: {{table_properties: {{team: retail}}}}\n", 1),
        ("conf/dev.yml", CONFIG.replace("*.yml", "o*.yml"), 1),
        (
            "conf/drift-policy.yml",
            "ignore_drift: [{resource: dev.silver.orders, fields: [owner], reason: old}]\n",
            1,
        ),
    ],
)
def test_everything_that_is_judged_changes_the_verdict(
    forged: Path, write: Write, file: str, text: str, models: int
) -> None:
    write(file, text)
    assert count(forged) == models
    assert count(forged) == models


def test_a_renamed_or_removed_file_changes_the_verdict(forged: Path) -> None:
    file = forged / "conf/models/orders.yml"
    file.rename(file.with_name("sales.yml"))
    assert count(forged) == 1
    file.with_name("sales.yml").unlink()
    with pytest.raises(RefusedError):
        count(forged)


def test_another_engine_does_not_trust_the_verdict(forged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.engine_version", lambda: "0")
    assert count(forged) == 1


@pytest.mark.parametrize("package", ["msgspec", "pyyaml", "sqlglot"])
def test_another_version_does_not_trust_the_verdict(
    forged: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr(f"{MODULE}.version", lambda name: "0" if name == package else version(name))
    assert count(forged) == 1


def test_a_refused_project_is_not_remembered(valid: Path, write: Write) -> None:
    write("conf/models/orders.yml", MODELS.replace("bigint", "bigpint"))
    for _ in range(2):
        with pytest.raises(RefusedError):
            count(valid)


def test_a_verdict_is_about_what_was_parsed(
    valid: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (valid / VERDICT).read_bytes()
    (valid / VERDICT).unlink()

    def slow(settings: Settings) -> Declared:
        declared = load_declared(settings)
        write("conf/models/orders.yml", f"{MODELS}# edited\n")
        return declared

    monkeypatch.setattr(f"{MODULE}.load_declared", slow)
    assert count(valid) == 1
    assert (valid / VERDICT).read_bytes() == before


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"fingerprint": 1, "models": 1}', b'{"models": 3}', b"\xff\x80\x04"]
)
def test_a_damaged_verdict_is_ignored_and_replaced(valid: Path, data: bytes) -> None:
    sound = (valid / VERDICT).read_bytes()
    (valid / VERDICT).write_bytes(data)
    assert count(valid) == 1
    assert (valid / VERDICT).read_bytes() == sound


def test_a_place_that_cannot_be_written_is_no_error(valid: Path) -> None:
    (valid / VERDICT).unlink()
    (valid / VERDICT).mkdir()
    assert count(valid) == 1


def test_models_and_rules_in_python_are_always_loaded(tmp_path: Path, write: Write) -> None:
    write("code_of_user.py", "class Rule:\n    def check(self, models):\n        return ()\n\ntables = ()\n")
    for config in (
        CONFIG.replace("models:\n", 'models:\n  python: ["code_of_user:tables"]\n'),
        f"{CONFIG}policy: {{rules: [code_of_user:Rule]}}\n",
    ):
        write("conf/dev.yml", config)
        assert count(tmp_path) == 1
        assert not (tmp_path / VERDICT).exists()


def test_a_project_with_bodies_may_be_named_from_elsewhere(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("conf/dev.yml", CONFIG.replace("type: oss", "type: oss, names: catalog"))
    write("conf/models/f.sql", "upper(x)")
    write("conf/models/functions.yml", FUNCTION)
    monkeypatch.chdir(tmp_path / "conf")
    for _ in range(2):
        assert count(Path("..")) == 2
    assert json.loads((tmp_path / VERDICT).read_text())["bodies"] == ["conf/models/f.sql"]


def test_a_changed_body_changes_the_verdict(tmp_path: Path, write: Write) -> None:
    write("conf/dev.yml", CONFIG.replace("type: oss", "type: oss, names: catalog"))
    write("conf/models/f.sql", "upper(x)")
    write("conf/models/functions.yml", FUNCTION)
    assert count(tmp_path) == 2
    assert json.loads((tmp_path / VERDICT).read_text())["bodies"] == ["conf/models/f.sql"]
    forge(tmp_path)
    assert count(tmp_path) == 7
    write("conf/models/f.sql", "lower(x)")
    assert count(tmp_path) == 2
    forge(tmp_path)
    (tmp_path / "conf" / "models" / "f.sql").unlink()
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        count(tmp_path)


def test_a_doubtful_body_is_remembered_with_the_verdict(tmp_path: Path, write: Write) -> None:
    write("conf/dev.yml", CONFIG.replace("type: oss", "type: oss, names: catalog"))
    write("conf/models/f.sql", "upper(x) x x")
    write("conf/models/functions.yml", FUNCTION)
    for _ in range(2):
        (doubt,) = valid_models(tmp_path / "conf", "dev").doubts
        assert doubt == (
            "conf/models/functions.yml:2: function spark_catalog.silver.f: sqlglot does not read its body as SQL, "
            "so the platform may refuse it"
        )


def test_the_verdict_of_a_project_without_doubts_holds_no_names_and_stays_out_of_git(valid: Path) -> None:
    assert json.loads((valid / VERDICT).read_text()).keys() == {
        *("fingerprint", "models", "bodies", "doubts")
    }
    assert (valid / VERDICT).with_name(".gitignore").read_text() == "*\n"
