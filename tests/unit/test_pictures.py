"""The pictures of the documentation: each has a text for those who do not see it, and is there in both colours."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.text import Text

from scripts.drawings import COLUMNS, Step, concept_svg, sequence_svg, terminal_svg
from scripts.pictures import _steps

DOCS = Path(__file__).parents[2] / "docs"
IMAGES = DOCS / "images"

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("picture", sorted(path.name for path in IMAGES.glob("*.svg")))
def test_a_drawing_has_a_title_and_both_colours(picture: str) -> None:
    root = ElementTree.parse(IMAGES / picture).getroot()
    assert root.findtext(f"{_SVG}title")
    assert "prefers-color-scheme:dark" in str(root.findtext(f"{_SVG}style"))


@pytest.mark.parametrize("picture", sorted(path.stem for path in IMAGES.glob("*.png")))
def test_a_picture_of_a_page_has_a_twin(picture: str) -> None:
    twin = picture.removesuffix("-dark") if picture.endswith("-dark") else f"{picture}-dark"
    assert (IMAGES / f"{twin}.png").is_file()


def test_pictures_in_pages_have_a_text_and_are_there() -> None:
    for page in DOCS.glob("*.md"):
        for tag in re.findall(r"<img [^>]*>", page.read_text("utf-8")):
            (source,) = re.findall(r'src="([^"]*)"', tag)
            assert (DOCS / source).is_file(), f"{page.name}: {tag}"
            assert re.search(r'alt="[^"]{20,}"', tag), f"{page.name}: {tag}"


def test_a_terminal_wraps_lines_between_words_and_keeps_colours() -> None:
    shown = Text.from_ansi("\x1b[1;31mrefused:\x1b[0m 1 < 2 " + "x" * (COLUMNS - 9) + " a < b")
    svg = ElementTree.fromstring(terminal_svg("delta-engine plan", shown, title="A plan"))
    lines = ["".join(line.itertext()).replace("\xa0", " ") for line in svg.iter(f"{_SVG}text")]
    assert [line.rstrip() for line in lines] == [
        "$ delta-engine plan",
        "refused: 1 < 2",
        f"{'x' * (COLUMNS - 9)} a < b",
    ]
    assert [span.get("class") for span in svg.iter(f"{_SVG}tspan")][1] == "bold red"


def test_drawings_are_well_formed() -> None:
    for svg in (concept_svg(title="a & b"), sequence_svg([Step("1", "a < b", "old")], title="a & b")):
        assert ElementTree.fromstring(svg).findtext(f"{_SVG}title") == "a & b"


def test_a_plan_without_a_step_makes_no_picture() -> None:
    with pytest.raises(ValueError, match="the plan has no statement for 2"):
        list(_steps("ALTER TABLE `t` ADD COLUMNS (`delta_engine_new_coupon` bigint);"))
