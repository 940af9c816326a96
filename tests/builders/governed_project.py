"""The models of issue 41: two functions, a policy, and a table with a mask."""

from pathlib import Path

BODY = "CASE WHEN is_account_group_member('hr') THEN email ELSE regexp_replace(email, '^[^@]+', '***') END"
FUNCTIONS = f"""\
functions:
  - catalog: ${{catalog}}
    schema: governance
    name: mask_email
    comment: Shows e-mail addresses to HR alone
    parameters: [{{name: email, type: string}}]
    returns: string
    body: "{BODY}"
    grants: {{account users: [EXECUTE]}}
  - {{catalog: "${{catalog}}", schema: governance, name: clean_iban, language: python, returns: string,
     parameters: [{{name: iban, type: string}}], body_file: functions/clean_iban.py}}
"""
POLICIES = """\
policies:
  - name: mask_pii
    on: {schema: "${catalog}.silver"}
    mask: {function: "${catalog}.governance.mask_email", column: mail}
    match: {mail: "has_tag_value('pii', 'email')"}
    when: "has_tag('sensitive')"
    to: [account users]
    except: [hr]
    comment: E-mail addresses are for HR
"""
TABLE = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: customers
    tags: {sensitive: "yes"}
    columns:
      - {name: id, type: bigint}
      - {name: mail, type: string, mask: {function: "${catalog}.governance.mask_email"}}
      - {name: other_mail, type: string, tags: {pii: email}}
"""
UNMASKED = TABLE.replace(', mask: {function: "${catalog}.governance.mask_email"}', "")
IBAN = 'return iban.replace(" ", "").upper()\n'


def write_governed_models(
    folder: Path, functions: str = FUNCTIONS, policies: str = POLICIES, table: str = TABLE
) -> None:
    """Write the models, and the file of a body, into a folder of models."""
    (folder / "functions").mkdir(exist_ok=True)
    (folder / "functions" / "clean_iban.py").write_text(IBAN)
    (folder / "governed.yml").write_text(functions + policies + table)
