"""A figure as SVG text and as PNG bytes. The SVG is rewritten from matplotlib's: its colours are variables that a page
sets, its ids begin with the figure's name, and nothing is left in it that runs, loads or applies outside of it."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from campaign.report.figures._figure import WIDTH, Figure
from campaign.report.figures._palette import LIGHT, PAPER, shade, variable
from campaign.report.figures._sheet import drawn

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.figure import Figure as Drawing

Switch = Callable[[str], str]  # from a colour of light paper to what stands in the SVG
SPACE = "http://www.w3.org/2000/svg"
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_NOT_TURNED = re.compile(r"rotate\(-?0(?:\.0*)? [^)]*\)\s*")
_KEPT = frozenset({"svg", "g", "path", "use", "text", "tspan", "clipPath", "defs", "rect", "circle", "line"})
_POINTLESS = frozenset({"font-family", "stroke-miterlimit"})


@dataclass(frozen=True)
class Output:
    """One figure in every form: `svg` for a page, `file` for a file of its own, `png` in bytes."""

    svg: str
    file: str
    png: bytes


def output(figure: Figure) -> Output:
    """Every form of a figure from one drawing, in light colours where a page sets no others."""
    with drawn(figure) as drawing:
        picture = _png(drawing)
        whole = _svg(drawing)
    return Output(_for_page(figure, whole, dark=False), _for_file(figure, whole, dark=False), picture)


def svg(figure: Figure, *, dark: bool = False) -> str:
    """The figure as an `svg` element for a page: text as text, colours as `var(--figure-...)` with the light colour as
    fallback (the dark one where `dark`), so that `theme` switches it. No ground is painted."""
    with drawn(figure) as drawing:
        return _for_page(figure, _svg(drawing), dark=dark)


def svg_file(figure: Figure, *, dark: bool = False) -> str:
    """The same drawing as a file of its own, on its own ground, in colours that every program knows."""
    with drawn(figure) as drawing:
        return _for_file(figure, _svg(drawing), dark=dark)


def png(figure: Figure) -> bytes:
    """The same drawing on white, at two pixels a unit."""
    with drawn(figure) as drawing:
        return _png(drawing)


def _png(drawing: Drawing) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a script that the font does not have is drawn as boxes
        drawing.savefig(buffer, format="png", dpi=144, metadata={"Software": None}, pil_kwargs={"compress_level": 3})
    return buffer.getvalue()


def _svg(drawing: Drawing) -> Element:
    """The drawing as matplotlib writes it, without its ground."""
    from xml.etree import ElementTree

    buffer = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        drawing.patch.set_visible(False)
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
    return ElementTree.fromstring(buffer.getvalue())


def _for_page(figure: Figure, whole: Element, *, dark: bool) -> str:
    return _rewritten(figure, whole, lambda colour: variable(colour, dark=dark), ground="")


def _for_file(figure: Figure, whole: Element, *, dark: bool) -> str:
    ground = shade(LIGHT[PAPER], dark=dark)
    made = _rewritten(figure, whole, lambda colour: shade(colour, dark=dark), ground=ground)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{made}\n'


def _rewritten(figure: Figure, whole: Element, colour: Switch, *, ground: str) -> str:
    from xml.etree import ElementTree

    used = _references(whole)
    made = ElementTree.Element(
        "svg",
        {
            "xmlns": SPACE,
            "viewBox": f"0 0 {WIDTH:g} {figure.height:g}",
            "width": f"{WIDTH:g}",
            "height": f"{figure.height:g}",
            "role": "img",
            "aria-label": figure.alt,
            "font-family": FONTS,
            "stroke-linejoin": "round",
        },
    )
    if ground:
        ElementTree.SubElement(made, "rect", {"width": "100%", "height": "100%", "fill": ground})
    for child in whole:
        made.extend(_copied(child, figure.name, used, colour))
    return ElementTree.tostring(made, encoding="unicode")


def _references(whole: Element) -> set[str]:
    """The ids that something in the drawing points at."""
    found = set()
    for one in whole.iter():
        for name, value in one.attrib.items():
            if name.endswith("href"):
                found.add(value.removeprefix("#"))
            elif "url(#" in value:
                found.update(re.findall(r"url\(#([^)]+)\)", value))
    return found


def _copied(one: Element, prefix: str, used: set[str], colour: Switch) -> list[Element]:
    """The element without what a page needs not, or its children in its place where it only groups them."""
    from xml.etree import ElementTree

    tag = one.tag.rpartition("}")[2] if isinstance(one.tag, str) else ""
    if tag not in _KEPT:
        return []
    inside = [copied for child in one for copied in _copied(child, prefix, used, colour)]
    kept = {name: value for key, old in one.attrib.items() for name, value in _attributes(key, old, prefix, used)}
    if "style" in kept:
        kept["style"] = _styled(kept["style"], colour)
    kept = {name: value for name, value in kept.items() if value}
    if tag == "g" and (not kept or not inside):
        return inside
    if tag == "defs" and not inside:
        return []
    if tag == "path" and not kept.get("d"):
        return []
    made = ElementTree.Element(tag, kept)
    made.text = one.text if tag in ("text", "tspan") else None
    made.extend(inside)
    return [made]


def _attributes(key: str, value: str, prefix: str, used: set[str]) -> list[tuple[str, str]]:
    name = key.rpartition("}")[2]
    if name == "id":
        return [("id", f"{prefix}-{value}")] if value in used else []
    if name == "href":
        return [("href", f"#{prefix}-{value.removeprefix('#')}")]
    if name in ("d", "x", "y", "width", "height", "transform", "points"):
        flat = " ".join(_NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value).split())
        return [(name, _NOT_TURNED.sub("", flat) if name == "transform" else _tight(flat) if name == "d" else flat)]
    return [(name, value.replace("url(#", f"url(#{prefix}-"))]


def _tight(path: str) -> str:
    """A path without the spaces that it needs not: 'M1 2L3 4z'."""
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", path)


def _styled(style: str, colour: Switch) -> str:
    parts = []
    for part in style.split(";"):
        name, _, value = part.partition(":")
        name, value = name.strip(), value.strip()
        if name and name not in _POINTLESS and (name, value) != ("text-anchor", "start"):
            parts.append(f"{name}:{_COLOUR.sub(lambda found: colour(found[0]), value)}")
    return ";".join(parts)
