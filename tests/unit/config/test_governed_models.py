"""Functions and policies in model files: what they may say, and one message with file and line for the rest."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine.config.loading import Declared, given_models, load_declared
from delta_engine.config.model_edits import ModelEdit, edit_models, is_editable
from delta_engine.config.model_format import formatted
from delta_engine.config.settings import Settings, load_settings
from delta_engine.errors import ConfigError, DeltaEngineError, SourceLocation
from delta_engine.models import (
    AbacPolicy,
    Function,
    FunctionLanguage,
    Parameter,
    PolicyFilter,
    PolicyMask,
    PolicyScope,
    of_kind,
)
from tests.unit.config.projects import MODELS, Write

CONFIG = """\
environment: dev
backend: {type: databricks-warehouse, warehouse_id: abc}
state_backend: {type: local}
variables: {catalog: dev, sales: dev.sales, service_principal: sp-1, "n": "7"}
models:
  yaml: ["conf/models/*.yml"]
"""

FUNCTIONS = """\
functions:
  - catalog: ${catalog}
    schema: governance
    name: mask_email
    comment: Shows e-mail addresses to HR alone
    parameters: [{name: email, type: string}]
    returns: string
    body: "CASE WHEN is_account_group_member('hr') THEN email ELSE regexp_replace(email, '^[^@]+', '***') END"
    grants: {account users: [EXECUTE]}
  - {catalog: "${catalog}", schema: governance, name: clean_iban, language: python, returns: string, \
parameters: [{name: iban, type: string}], body_file: functions/clean_iban.py}
"""

POLICIES = """\
policies:
  - name: mask_pii
    on: {schema: "${catalog}.sales"}            # table, schema, or a catalog that the configuration names
    mask: {function: "${catalog}.governance.mask_email", column: mail}
    match: {mail: "has_tag_value('pii', 'email')"}
    when: "has_tag('sensitive')"
    to: [account users]
    except: [hr, "${service_principal}"]
    comment: E-mail addresses are for HR
"""

BODY = "return iban.replace(' ', '')\n"

MASK_EMAIL = Function(
    "dev",
    "governance",
    "mask_email",
    "string",
    "CASE WHEN is_account_group_member('hr') THEN email ELSE regexp_replace(email, '^[^@]+', '***') END",
    [Parameter("email", "string")],
    comment="Shows e-mail addresses to HR alone",
    grants={"account users": ["EXECUTE"]},
)

CLEAN_IBAN = Function(
    "dev",
    "governance",
    "clean_iban",
    "string",
    BODY,
    [Parameter("iban", "string")],
    language="python",
    body_file="functions/clean_iban.py",
)

MASK_PII = AbacPolicy(
    "mask_pii",
    PolicyScope("schema", "dev.sales"),
    PolicyMask("dev.governance.mask_email", "mail"),
    ["account users"],
    excepted=["hr", "sp-1"],
    match={"mail": "has_tag_value('pii', 'email')"},
    when="has_tag('sensitive')",
    comment="E-mail addresses are for HR",
)

PYTHON = """\
from delta_engine import AbacPolicy, Function, Parameter, PolicyMask, PolicyScope, Table


def models(variables):
    return [
        Function(
            "${catalog}", "governance", "clean_iban", "string", parameters=[Parameter("iban", "string")],
            language="python", body_file="functions/clean_iban.py",
        ),
        AbacPolicy(
            "mask_pii", PolicyScope("schema", "${sales}"), PolicyMask("${catalog}.governance.mask_email", "mail"),
            ["account users"], excepted=["hr", "${service_principal}"],
            match={"mail": "has_tag_value('pii', 'email')"}, when="has_tag('sensitive')",
            comment="E-mail addresses are for HR",
        ),
    ]
"""


@pytest.fixture(autouse=True)
def project(write: Write, tmp_path: Path) -> Path:
    """Return a project on Databricks with the file of a body."""
    write("conf/dev.yml", CONFIG)
    write("conf/models/functions/clean_iban.py", BODY)
    return tmp_path


def settings(project: Path) -> Settings:
    return load_settings(project / "conf", "dev")


def declared(project: Path) -> Declared:
    return load_declared(settings(project))


def functions_of(loaded: Declared) -> tuple[Function, ...]:
    return tuple(of_kind(Function, loaded.models))


def policies_of(loaded: Declared) -> tuple[AbacPolicy, ...]:
    return tuple(of_kind(AbacPolicy, loaded.models))


def refusal(project: Path) -> str:
    with pytest.raises(DeltaEngineError) as caught:
        declared(project)
    return str(caught.value).replace(f"{project}/", "")


def with_key(key: str) -> str:
    """Return a function with one more key."""
    return f"functions:\n  - catalog: dev\n    schema: s\n    name: f\n    returns: string\n    {key}\n"


def a_policy(**keys: str) -> str:
    """Return a policy with keys added, changed or (empty) removed."""
    written = {
        "name": "p",
        "on": "{schema: dev.sales}",
        "filter": "{function: dev.g.f, using: [region]}",
        "match": "{region: has_tag('region')}",
        "to": "[account users]",
        **{key.rstrip("_"): value for key, value in keys.items()},
    }
    lines = [f"{key}: {value}" for key, value in written.items() if value]
    return "policies:\n  - " + "\n    ".join(lines) + "\n"


def test_the_examples_are_read(project: Path, write: Write) -> None:
    write("conf/models/governance.yml", FUNCTIONS + POLICIES)
    models = declared(project)
    assert functions_of(models) == (MASK_EMAIL, CLEAN_IBAN)
    assert functions_of(models)[1].language is FunctionLanguage.PYTHON
    assert functions_of(models)[1].body_file == "functions/clean_iban.py"
    assert policies_of(models) == (MASK_PII,)
    governed: tuple[Function | AbacPolicy, ...] = (*functions_of(models), *policies_of(models))
    assert [str(model.declared_at) for model in governed] == [
        "conf/models/governance.yml:2",
        "conf/models/governance.yml:10",
        "conf/models/governance.yml:12",
    ]


def test_python_models_are_the_same(project: Path, write: Write) -> None:
    write("conf/models/module_of_functions.py", PYTHON)
    write("conf/dev.yml", CONFIG + '  python: ["conf.models.module_of_functions:models"]\n')
    models = declared(project)
    assert (*functions_of(models), *policies_of(models)) == (CLEAN_IBAN, MASK_PII)
    assert str(functions_of(models)[0].declared_at) == "conf/models/module_of_functions.py:6"


def test_a_project_may_hold_functions_alone(project: Path, write: Write) -> None:
    write("conf/models/m.yml", FUNCTIONS)
    assert declared(project).tables == ()
    assert len(functions_of(declared(project))) == 2
    write("conf/models/m.yml", "schemas: [{catalog: dev, name: s}]\n")
    assert "conf/dev.yml:5: the model files declare no tables." in refusal(project)


def test_functions_and_policies_are_loaded_with_some_tables_too(project: Path, write: Write) -> None:
    write("conf/models/governance.yml", FUNCTIONS + POLICIES)
    write("conf/models/other.yml", MODELS.replace("orders", "customers"))
    models = load_declared(settings(project), ["orders"])
    assert not models.is_whole
    assert len(functions_of(models)) == 2
    assert len(policies_of(models)) == 1


def test_a_loaded_function_may_be_given_again_but_not_another_body(project: Path) -> None:
    function = replace(CLEAN_IBAN, body="", declared_at=SourceLocation("conf/models/functions.py", 1))
    assert given_models([function], settings(project)).models == (CLEAN_IBAN,)
    assert given_models([replace(function, body=BODY)], settings(project)).models == (CLEAN_IBAN,)
    with pytest.raises(ConfigError, match="body and body_file exclude each other"):
        given_models([replace(function, body="return 1")], settings(project))


def test_variables_are_filled_in_where_tables_take_them(project: Path, write: Write) -> None:
    write(
        "conf/models/g.yml",
        """\
        functions:
          - catalog: ${catalog}
            schema: s_${n}
            name: f_${n}
            comment: ${n}
            parameters: [{name: "${n}", type: int, default: "'${n}'", comment: "${n}"}]
            returns: int
            body: "'${n}'"
            owner: ${service_principal}
            tags: {team: "${n}"}
            grants: {"${service_principal}": [EXECUTE]}
        policies:
          - name: p_${n}
            on: {table: "${sales}.${n}"}
            filter: {function: "${catalog}.s.f", using: ["'${n}'", a]}
            match: {a: "has_tag_value('k', '${n}')"}
            when: has_tag('${n}')
            to: ["${service_principal}"]
            comment: ${n}
        """,
    )
    (function,), (policy,) = functions_of(declared(project)), policies_of(declared(project))
    assert function == Function(
        "dev",
        "s_7",
        "f_7",
        "int",
        "'${n}'",
        [Parameter("${n}", "int", "'${n}'", "${n}")],
        comment="${n}",
        owner="sp-1",
        tags={"team": "7"},
        grants={"sp-1": ["EXECUTE"]},
    )
    assert policy == AbacPolicy(
        "p_7",
        PolicyScope("table", "dev.sales.7"),
        PolicyFilter("dev.s.f", ["'7'", "a"]),
        ["sp-1"],
        match={"a": "has_tag_value('k', '7')"},
        when="has_tag('7')",
        comment="${n}",
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("retruns: int", "function dev.s.f: unknown key 'retruns'. Did you mean 'returns'?"),
        (
            "environment: {dependencies: [x]}",
            "function dev.s.f: the engine does not manage functions with environment. "
            "Remove the key, or create the function with your own job.",
        ),
        ("handler: main", "function dev.s.f: the engine does not manage functions with handler. "),
        (
            "parameter_style: pandas",
            "function dev.s.f: the engine does not manage functions with parameter_style. ",
        ),
        ("aggregate: true", "function dev.s.f: the engine does not manage functions with aggregate. "),
        (
            "language: scala",
            "function dev.s.f: the engine does not manage functions in 'scala'. Use one of: sql, python. ",
        ),
        ("language: [sql]", "function dev.s.f: language: expected a string, got a list."),
        (
            "parameters: {a: int}",
            "function dev.s.f: parameters: expected a list, got a mapping. Begin each item",
        ),
        (
            "parameters: [{name: a}]",
            "function dev.s.f: parameters[0]: the key 'type' is missing. Add the key.",
        ),
        (
            "parameters: [{name: a, type: int, defalt: 1}]",
            "function dev.s.f: unknown key 'defalt'. Did you mean 'default'?",
        ),
        (
            "parameters: [{name: a, type: int, default: 1}]",
            "function dev.s.f: parameters[0].default: expected a string, got an integer. Write the value in quotes.",
        ),
        ("grants: {hr: EXECUTE}", "function dev.s.f: the grants of 'hr' must be a list. Write [EXECUTE]."),
        ("deterministic: maybe", "function dev.s.f: deterministic: expected true or false, got a string. "),
        (
            "body_file: a.sql",
            "function dev.s.f: body_file 'a.sql' cannot be read: No such file or directory.",
        ),
        (
            "body_file: ../../../x.sql",
            "function dev.s.f: body_file '../../../x.sql' is outside the project.",
        ),
        ("owner: hr", "function dev.s.f: body is missing. Write body, or body_file with the path of a file."),
        ("owner: ${who}\n    body: a", "function dev.s.f: unknown variable 'who'."),
    ],
)
def test_bad_keys_of_functions(project: Path, write: Write, key: str, message: str) -> None:
    write("conf/models/m.yml", with_key(key))
    assert re.match(r"conf/models/m\.yml:[26]: ", refusal(project))
    assert message in refusal(project)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            with_key("body: a").replace("returns: string", "returns: table<a int>"),
            "does not manage table functions",
        ),
        (with_key("body: a").replace("returns: string", "returns: bignit"), "Did you mean 'bigint'?"),
        (
            with_key("body: a").replace("    returns: string\n", ""),
            "the key 'returns' is missing. Add the key.",
        ),
        (with_key("parameters: [{name: a, type: varaint}]"), "parameter a: type 'varaint' cannot be used"),
        (a_policy(to=""), "conf/models/m.yml:2: policy p: the key 'to' is missing. Add the key."),
        (a_policy(on=""), "policy p: the key 'on' is missing. Add the key."),
        (a_policy(too="[hr]"), "policy p: unknown key 'too'. Did you mean 'to'?"),
        (
            a_policy(filter=""),
            "policy p: a policy has exactly one of: mask, filter. Write exactly one of them.",
        ),
        (
            a_policy(mask="{function: dev.g.f, column: region}"),
            "policy p: a policy has exactly one of: mask, filter. Write exactly one of them.",
        ),
        (a_policy(mask="", filter="null"), "filter: expected a mapping, got null. Write a value, or"),
        (
            a_policy(filter="{function: dev.g.f, column: a}"),
            "policy p: unknown key 'column'. Use one of: function, using.",
        ),
        (
            a_policy(filter="", mask="{function: dev.g.f}"),
            "policy p: mask: the key 'column' is missing. Add the key.",
        ),
        (a_policy(on="dev.sales"), "policy p: on: expected a mapping, got a string. Write {key: value}."),
        (a_policy(on="{schma: dev.sales}"), "policy p: a policy cannot be on a 'schma'. "),
        (a_policy(on="{}"), "policy p: a policy needs exactly one catalog, schema or table."),
        (
            a_policy(on="{schema: dev.a, table: dev.a.b}"),
            "policy p: a policy needs exactly one catalog, schema",
        ),
        (
            a_policy(on="{schema: sales}"),
            "conf/models/m.yml:3: policy p: 'sales' is not the full name of a schema: write catalog.schema. ",
        ),
        (
            a_policy(on='{table: "${sales}"}'),
            "policy p on table ${sales}: 'dev.sales' is not the full name of a table: write catalog.schema.table.",
        ),
        (a_policy(to="hr"), "policy p: to: expected a list, got a string. Write [a, b]."),
        (a_policy(privileges="[SELECT]"), "policy p: the engine does not manage policies with privileges. "),
        (a_policy(excepted="[hr]"), "policy p: unknown key 'excepted'. Did you mean 'except'?"),
        (
            a_policy(except_="[hr, ${service_principal}]"),
            "a value in it contains a brace. Close the list with ], put",
        ),
        ("functions: {}", "conf/models/m.yml:1: functions: expected a list, got a mapping."),
        (
            "policy: []",
            "unknown key 'policy': a model file contains lists of models: schemas, functions, tables, ",
        ),
    ],
)
def test_bad_models(project: Path, write: Write, text: str, message: str) -> None:
    write("conf/models/m.yml", text)
    assert message in refusal(project)


def test_a_function_and_a_table_may_have_one_name(project: Path, write: Write) -> None:
    write(
        "conf/models/f.yml",
        with_key("body: '1'").replace("schema: s", "schema: silver").replace("f\n", "orders\n"),
    )
    models = declared(project)
    assert [model.key for model in models.models] == ["dev.silver.orders", "dev.silver.orders"]


def test_files_are_formatted(write: Write) -> None:
    text = """\
    policies:
      - to: [a]
        on: {schema: a.b}
        name: p  # its name
        filter: {using: [x], function: a.b.f}
    functions:
      - returns: int
        parameters: [{type: int, name: x}]
        body: |-
          x
            + 1
        name: f
        schema: b
        catalog: a
    """
    assert (
        formatted(text, "m.yml")
        == """\
    functions:
      - catalog: a
        schema: b
        name: f
        parameters: [{name: x, type: int}]
        returns: int
        body: |-
          x
            + 1
    policies:
      - name: p  # its name
        on: {schema: a.b}
        filter: {function: a.b.f, using: [x]}
        to: [a]
    """
    )


def governed(project: Path) -> list[Function | AbacPolicy]:
    return [model for model in declared(project).models if isinstance(model, (Function, AbacPolicy))]


def edit(project: Path, **changes: dict[str, Any]) -> tuple[Path, ...]:
    """Edit the models of the examples by their names."""
    before = {model.key.rpartition(".")[2]: model for model in governed(project)}
    edits = [
        ModelEdit(before=before[name], after=replace(before[name], **change))
        for name, change in changes.items()
    ]
    return edit_models(edits, settings(project))


def test_an_accepted_body_goes_where_the_body_is(project: Path, write: Write) -> None:
    model_file = write("conf/models/governance.yml", FUNCTIONS + POLICIES)
    body_file = project / "conf" / "models" / "functions" / "clean_iban.py"
    assert edit(project, clean_iban={"body": "return iban"}) == (body_file,)
    assert body_file.read_text() == "return iban\n"
    assert model_file.read_text() == FUNCTIONS + POLICIES
    assert functions_of(declared(project))[1].body == "return iban\n"
    assert edit(project, mask_email={"body": "upper(email)"}, mask_pii={"to": ("a", "b")}) == (model_file,)
    written = FUNCTIONS.replace(MASK_EMAIL.body, "upper(email)") + POLICIES.replace(
        "[account users]", "[a, b]"
    )
    assert model_file.read_text() == written


def test_another_function_of_a_policy_keeps_the_variable_of_its_catalog(project: Path, write: Write) -> None:
    model_file = write("conf/models/governance.yml", FUNCTIONS + POLICIES)
    edit(project, mask_pii={"protection": PolicyMask("dev.governance.other", "mail")})
    written = POLICIES.replace(".governance.mask_email", ".governance.other")
    assert model_file.read_text() == FUNCTIONS + written
    whole = POLICIES.replace('{schema: "${catalog}.sales"} ', '{schema: "${sales}"} ')
    model_file.write_text(FUNCTIONS + whole)
    edit(project, mask_pii={"protection": PolicyMask("dev.governance.other", "mail")})
    assert 'function: "dev.governance.other"' in model_file.read_text()


def test_body_and_model_are_edited_together_or_not_at_all(project: Path, write: Write) -> None:
    model_file = write(
        "conf/models/governance.yml", FUNCTIONS.replace("clean_iban,", "clean_iban, comment: a,")
    )
    body_file = write("conf/models/functions/clean_iban.py", BODY.replace("\n", "\r\n"))
    body_file.write_bytes(b"return iban\r\n")
    edited = edit(project, clean_iban={"body": "x = 1\nreturn iban", "comment": "b"})
    assert edited == (body_file, model_file)
    assert body_file.read_bytes() == b"x = 1\r\nreturn iban\r\n"
    assert "comment: b" in model_file.read_text()

    def changes_meanwhile() -> None:
        before = functions_of(declared(project))[1]
        body_file.write_text("return 1\n")
        after = replace(before, body="return 2", comment="c")
        edit_models([ModelEdit(before=before, after=after)], settings(project))

    with pytest.raises(ConfigError, match="the file changed after the models were loaded"):
        changes_meanwhile()
    assert body_file.read_text() == "return 1\n"
    assert "comment: b" in model_file.read_text()


def test_a_body_of_several_lines_stays_readable(project: Path, write: Write) -> None:
    model_file = write("conf/models/governance.yml", FUNCTIONS)
    edit(project, mask_email={"body": "CASE\n  WHEN a THEN 1\n\nEND"})
    assert (
        "    body: |-\n      CASE\n        WHEN a THEN 1\n\n      END\n    grants" in model_file.read_text()
    )
    assert edit(project, mask_email={"body": "lower(email)"}) == (model_file,)
    assert "    body: lower(email)\n    grants" in model_file.read_text()


def test_functions_of_python_are_editable_as_far_as_their_body_has_a_file(
    project: Path, write: Write
) -> None:
    write("conf/models/module_of_bodies.py", PYTHON)
    write("conf/dev.yml", CONFIG + '  python: ["conf.models.module_of_bodies:models"]\n')
    (function,), (policy,) = functions_of(declared(project)), policies_of(declared(project))
    other_body = ModelEdit(before=function, after=replace(function, body="return 1"))
    other_comment = ModelEdit(before=function, after=replace(function, body="return 1", comment="x"))
    other_policy = ModelEdit(before=policy, after=replace(policy, comment="x"))
    assert [is_editable(edit) for edit in (other_body, other_comment, other_policy)] == [True, False, False]
    edit_models([other_body], settings(project))
    assert (project / "conf" / "models" / "functions" / "clean_iban.py").read_text() == "return 1\n"


def test_a_removed_model_leaves_the_others(project: Path, write: Write) -> None:
    model_file = write("conf/models/governance.yml", FUNCTIONS + re.sub("  +#.*", "", POLICIES))
    gone = [ModelEdit(before=model, after=None) for model in governed(project)[1:]]
    edit_models(gone, settings(project))
    assert model_file.read_text().startswith(FUNCTIONS.rpartition("  - {")[0])
    assert functions_of(declared(project)) == (MASK_EMAIL,)
    assert policies_of(declared(project)) == ()
