"""A matplotlib figure as inline SVG: the same bytes every time, colours that follow the page, and words."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcspark.report.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIABLES = {
    style.INK: "ink",
    style.MUTED: "muted",
    style.RULE: "rule",
    style.GROUND: "ground",
    style.BLANK: "blank",
    style.BEFORE_COLOUR: "before",
    style.AFTER_COLOUR: "after",
    style.FLOOR_COLOUR: "muted",
    **{colour: f"series-{i}" for i, colour in enumerate(style.SERIES)},
}
"""Colours of the figures and the custom properties of the page that they become."""

LARGEST = 1.5
"""A figure is shown at most so many times its own size."""

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_COLOUR = re.compile("|".join(map(re.escape, VARIABLES)))
_FAMILY = re.compile(r"font-family: [^;]*;? ?")
_REFERENCE = re.compile(r"url\(#([^)]*)\)")


@dataclass(frozen=True)
class Picture:
    """A figure on the page.

    Attributes
    ----------
    name : str
        Its identifier on the page.
    title : str
    words : str
        What it shows, for those who cannot see it.
    svg : str
        Safe to stand in a page as it is.
    """

    name: str
    title: str
    words: str
    svg: str


def picture(figure: Figure, name: str, words: str) -> Picture:
    """Draw a figure for the page.

    Parameters
    ----------
    figure : Figure
        Made by :mod:`mcspark.report.plots`.
    name : str
        Letters, digits and hyphens; no two pictures of a page share one.
    words : str
        Alternative text.
    """
    title = figure.axes[0].get_title(loc="left")
    root = ET.fromstring(drawn(figure, name))
    _tidy(root)
    box = str(root.get("viewBox"))
    whole = ET.Element(
        f"{_SVG}svg",
        {
            "viewBox": box,
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-words",
            "style": f"max-width: {float(box.split()[2]) * LARGEST:.0f}px",
        },
    )
    for tag, end, text in (("title", "title", title), ("desc", "words", words)):
        ET.SubElement(whole, f"{_SVG}{tag}", {"id": f"{name}-{end}"}).text = text
    whole.extend(list(root))
    ET.register_namespace("", _SVG[1:-1])
    # ElementTree has escaped every text and attribute.
    return Picture(name, title, words, ET.tostring(whole, encoding="unicode"))


def drawn(figure: Figure, name: str, background: str = "none") -> str:
    """The figure as an SVG document, the same bytes for the same figure and name."""
    text = io.StringIO()
    with style.styled(salt=f"mcspark-{name}"):
        figure.savefig(text, format="svg", metadata={"Date": None}, facecolor=background)
    return text.getvalue()


def document(figure: Figure, name: str, words: str) -> str:
    """The figure as a file of its own: on white, no wider than its window, with alternative text."""
    root = ET.fromstring(drawn(figure, name, background="white"))
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-words")
    root.set("style", "max-width: 100%; height: auto")
    title = figure.axes[0].get_title(loc="left")
    for place, (tag, end, text) in enumerate((("title", "title", title), ("desc", "words", words))):
        reported = ET.Element(f"{_SVG}{tag}", {"id": f"{name}-{end}"})
        reported.text = text
        root.insert(place, reported)
    for metadata in root.findall(f"{_SVG}metadata"):
        root.remove(metadata)
    ET.register_namespace("", _SVG[1:-1])
    ET.register_namespace("xlink", _LINK[1 : _LINK.index("}")])
    return ET.tostring(root, encoding="unicode")


def _tidy(root: ET.Element) -> None:
    """Drop what a page needs not: metadata, styles for the whole document, names that nothing refers to."""
    used = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            used.update(_REFERENCE.findall(value))
            if key == _LINK:
                used.add(value.removeprefix("#"))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
        if link := element.attrib.pop(_LINK, None):
            element.set("href", link)
        if look := element.get("style"):
            element.set("style", _COLOUR.sub(lambda c: f"var(--{VARIABLES[c[0]]})", _FAMILY.sub("", look)))
        if element.tag != f"{_SVG}text" and not (element.text or "").strip():
            element.text = None
        element.tail = None
        if path := element.get("d"):
            element.set("d", " ".join(path.split()))
