"""Variables of scripts, contracts and manifests, which become those of models.

While a source is read, a stand-in that is a plain SQL name takes the place of each variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, NoReturn, TypeVar

from delta_engine.config.variables import substitute, with_texts
from delta_engine.errors import ConfigError, InvalidCommandError, SourceLocation
from delta_engine.models import Securable
from delta_engine.sql.string_literals import LITERAL, literal_text
from delta_engine.sql.text import quote_ident

SomeModel = TypeVar("SomeModel", bound=Securable)

_STAND_IN: Final = re.compile(r"zqv(\d+)vqz")
_ANY_CASE: Final = re.compile(_STAND_IN.pattern, re.IGNORECASE)
_KEPT: Final = "\ua66e"
"""A letter, so that names with it stay names, before each reference that the file keeps. No script has it."""

_WRITTEN: Final = re.compile(rf"`{_KEPT}\$+(\{{[^}}`]*\}})`|{_KEPT}\$+(\{{)")
_REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")
_OF_CONTRACTS: Final = re.compile(r"\$\{(?!(?:object|property|table|column)\})([^{}]*)\}")
"""Without what stands for the table and the column in quality rules of contracts."""

_TEMPLATE: Final = re.compile(r"\{[{%#]")
_PART: Final = re.compile(rf":\w+|{LITERAL}")
_IDENTIFIER: Final = re.compile(
    rf"\bIDENTIFIER\s*\(\s*((?:{_PART.pattern})(?:\s*\|\|\s*(?:{_PART.pattern}))*)\s*\)", re.IGNORECASE
)
_ERRORS_OF_TEMPLATES: Final = (TypeError, ValueError, ArithmeticError, LookupError, RecursionError)
_RENDER: Final = "Render it first, and import the result."


class Variables:
    """The variables of the sources.

    Args:
        given: the text of models for a variable; it may have references to variables of the project.
        project: the variables of the project, with their values.

    Raises:
        ConfigError: a text refers to a variable that the project lacks.
    """

    def __init__(self, given: Mapping[str, str], project: Mapping[str, str]) -> None:
        self._given = given
        self._project = project
        self._uses: dict[str, SourceLocation] = {}
        for text in given.values():
            substitute(text, project, None)

    def rendered(self, text: str, file: str, *, is_template: bool = True) -> str:
        """Return a text with stand-ins for its `${name}`, and for `{{ name }}` and `IDENTIFIER(:name)` of scripts.

        Raises:
            ConfigError: a template of Jinja fails.
        """

        def stand_in(match: re.Match[str]) -> str:
            return self._stand_in(match[1].strip(), _place(file, match))

        references = _REFERENCE if is_template else _OF_CONTRACTS
        rendered = references.sub(stand_in, text) if "${" in text else text
        if not is_template:
            return rendered
        if _TEMPLATE.search(rendered):
            rendered = self._from_template(rendered, file)
        return _IDENTIFIER.sub(lambda match: self._identifier(match, file), rendered)

    @property
    def unused(self) -> list[str]:
        """The given variables that no source has, which may be typing errors."""
        used = {part for name in self._uses for part in (name, name.rpartition(".")[2])}
        return [name for name in self._given if name not in used]

    def shown(self, text: str) -> str:
        """Return a text for messages, with the variables in place of their stand-ins."""
        return self._replaced(text, lambda name: f"${{{name}}}")

    def valued(self, model: SomeModel) -> SomeModel:
        """Return a model with the values of this environment.

        Raises:
            ConfigError: a variable has neither a text nor a value.
        """
        return self._with_values(model) if self._uses else model

    def kept(self, model: SomeModel) -> SomeModel:
        """Return a model for `written`: names and values keep references, comments and expressions take values."""
        if not self._uses:
            return model

        def reference(text: str) -> str:
            return self._replaced(text, lambda name: self._definition(name).replace("${", f"{_KEPT}${{"))

        return self._with_values(with_texts(model, names=reference, values=reference))

    def _with_values(self, model: SomeModel) -> SomeModel:
        changed: SomeModel = _with_all_texts(model, lambda text: self._replaced(text, self._value))
        return changed

    def _replaced(self, text: str, replacement: Callable[[str], str]) -> str:
        names = [*self._uses]
        return _STAND_IN.sub(lambda match: replacement(names[int(match[1])]), text)

    def _stand_in(self, name: str, place: SourceLocation) -> str:
        self._uses.setdefault(name, place)
        return f"zqv{[*self._uses].index(name)}vqz"

    def _definition(self, name: str) -> str:
        short = name.rpartition(".")[2]
        for each in (name, short):
            if each in self._given:
                return self._given[each]
            if each in self._project:
                return f"${{{each}}}"
        raise ConfigError(
            f"variable {name!r} has no value",
            location=self._uses[name],
            way_out=f"Add --var {short}=VALUE, or --var '{short}=${{NAME}}' for a variable of the project.",
        )

    def _value(self, name: str) -> str:
        return substitute(self._definition(name), self._project, self._uses[name])

    def _identifier(self, match: re.Match[str], file: str) -> str:
        name = "".join(
            self._stand_in(part[0][1:], _place(file, match)) if part[0][0] == ":" else literal_text(part[0])
            for part in _PART.finditer(match[1])
        )
        return ".".join(part if part.isidentifier() else quote_ident(part) for part in name.split("."))

    def _from_template(self, text: str, file: str) -> str:
        from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, meta
        from jinja2.sandbox import SandboxedEnvironment

        environment = SandboxedEnvironment(keep_trailing_newline=True, undefined=StrictUndefined)
        try:
            names = meta.find_undeclared_variables(environment.parse(text))
            rendered = environment.from_string(text).render(
                {name: self._variable(name, file, text) for name in sorted(names)}
            )
        except (TemplateError, *_ERRORS_OF_TEMPLATES) as error:
            line = error.lineno if isinstance(error, TemplateSyntaxError) else None
            place = SourceLocation(file, line)
            raise ConfigError(f"its template fails: {error}", location=place, way_out=_RENDER) from None
        if len(_ANY_CASE.findall(rendered)) != len(_STAND_IN.findall(rendered)):
            reason = "its template changes the case of a variable"
            raise ConfigError(reason, location=SourceLocation(file), way_out=_RENDER)
        return rendered

    def _variable(self, name: str, file: str, text: str) -> _Variable:
        use = re.search(rf"\b{re.escape(name)}\b", text)
        variable = _Variable(self._stand_in(name, _place(file, use) if use else SourceLocation(file)))
        variable.name = name
        variable.value = self._value(name) if {name} & {*self._given, *self._project} else None
        return variable


class _Variable(str):
    """A variable in a template: shows its stand-in, and compares as its value."""

    name: str = ""
    value: str | None = None

    def __call__(self, *_arguments: object, **_options: object) -> NoReturn:
        raise TypeError(f"it calls {self.name}, which only the tool of the template knows")

    def __eq__(self, other: object) -> bool:
        return self.value == other

    def __ne__(self, other: object) -> bool:
        return self.value != other

    def __hash__(self) -> int:
        return hash(self.value)


def written(text: str) -> str:
    """Return the text of a file with the references that models keep."""
    return _WRITTEN.sub(lambda match: f"${match[1] or match[2]}", text) if _KEPT in text else text


def given_variables(texts: Sequence[str]) -> dict[str, str]:
    """Return what options such as `env=${env}` say; InvalidCommandError for other forms."""
    pairs = [text.partition("=") for text in texts]
    for name, is_pair, value in pairs:
        if not is_pair or not name.strip():
            fix = "Write --var env=dev or --var 'env=${env}'."
            raise InvalidCommandError(f"--var {name}{is_pair}{value} is not NAME=TEXT", way_out=fix)
    return {name.strip(): value for name, _, value in pairs}


def _place(file: str, match: re.Match[str]) -> SourceLocation:
    return SourceLocation(file, match.string.count("\n", 0, match.start()) + 1)


def _with_all_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a model, or a part of one, with each of its texts changed."""
    match value:
        case str():
            return change(value)
        case tuple():
            return tuple(_with_all_texts(item, change) for item in value)
        case Mapping():
            return {change(key): _with_all_texts(item, change) for key, item in value.items()}
        case SourceLocation():
            return value
    if not is_dataclass(value) or isinstance(value, type):
        return value
    texts = {field.name: getattr(value, field.name) for field in fields(value)}
    changed = {name: _with_all_texts(text, change) for name, text in texts.items()}
    different = {name: text for name, text in changed.items() if text != texts[name]}
    return replace(value, **different) if different else value
