"""Pages as a parser sees them: elements, attributes and text."""

from html.parser import HTMLParser
from itertools import pairwise

WORD = ("span", ())
MARKS = ("del", "ins", "em")  # marked and left-out parts of values are the page's own, and depend on the text
VOID = ("meta", "link", "input", "br", "path", "rect", "line", "use")


class Page(HTMLParser):
    """Collects elements, attributes and text, and checks that every element is closed where it should be."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    @property
    def structure(self) -> list[tuple[str, tuple[str, ...]]]:
        """The elements without marks in values; a command has one span per word, which do not count."""
        without_marks = [element for element in self.elements if element[0] not in MARKS]
        return [
            element
            for before, element in pairwise([WORD, *without_marks])
            if element != WORD or before not in (WORD, ("code", ("id",)))
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
