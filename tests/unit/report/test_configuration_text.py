"""The texts of a configuration: YAML that loads as the same settings, and a JSON document."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.config.configured_values import configured_values
from delta_engine.config.settings import load_settings
from delta_engine.report.configuration_text import configuration_json, configuration_yaml
from tests.proofs import examples
from tests.unit.config.test_broken_configuration import FILES

AWKWARD = st.text("ab.:#'\"-?* {}[],&!|>%@`~\\\n\t\u202e\u2028\x85\ufeff$é0<=", max_size=8)
TEXTS = st.dictionaries(AWKWARD, st.one_of(AWKWARD, st.booleans(), st.integers(), st.floats()), max_size=4)
ESCAPED = TEXTS.map(
    lambda texts: {
        key: text.replace("${", "$${") if isinstance(text, str) else text for key, text in texts.items()
    }
)
OSS: dict[str, Any] = {**FILES["dev.yml"], "backend": {"type": "oss", "names": "catalog"}}


@settings(max_examples=examples(50, 1_000), deadline=None)
@given(TEXTS, ESCAPED, ESCAPED)
def test_the_yaml_loads_as_the_same_settings(
    variables: dict[str, Any], spark: dict[str, Any], properties: dict[str, Any]
) -> None:
    with TemporaryDirectory() as folder:
        conf = Path(os.path.realpath(folder)) / "conf"
        conf.mkdir()
        document = {
            **OSS,
            "variables": variables,
            "backend": {**OSS["backend"], "spark": spark},
            "defaults": {"table_properties": properties},
        }
        (conf / "base").mkdir()
        (conf / "base" / "dev.yml").write_text(json.dumps(document), "utf-8")
        (conf / "dev.yml").write_text("extends: base/dev.yml\n", "utf-8")
        text = configuration_yaml(configured_values(conf, "dev"))
        expected = load_settings(conf, "dev")
        (conf / "dev.yml").write_text(text + "\n", "utf-8")
        assert load_settings(conf, "dev") == expected


def test_every_configuration_of_the_corpus_is_shown(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "dev.yml").write_text(json.dumps(FILES["dev.yml"], indent=1), "utf-8")
    expected = load_settings(conf, "dev")
    (conf / "dev.yml").write_text(configuration_yaml(configured_values(conf, "dev")), "utf-8")
    assert load_settings(conf, "dev") == expected


def test_the_document_has_a_path_a_value_and_an_origin_of_each_value(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "dev.yml").write_text("environment: dev\nbackend: {type: oss}\nmodels: {yaml: [a.yml]}\n")
    document = json.loads(configuration_json("dev", configured_values(conf, "dev")))
    assert (document["format"], document["version"]) == ("delta-engine/configuration", 1)
    assert document["environment"] == "dev"
    by_path = {tuple(value["path"]): (value["value"], value["origin"]) for value in document["values"]}
    assert by_path["models", "yaml", 0] == ("a.yml", {"file": "conf/dev.yml", "line": 3})
    assert by_path["apply", "parallelism"] == (4, None)
    assert by_path["variables",] == ({}, None)
