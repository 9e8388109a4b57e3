"""Questions about a page that only a browser can answer, as scripts that run in it."""

from __future__ import annotations

# Elements that reach beyond the window and are in no region that scrolls by itself.
OVERFLOWING = """
[...document.body.querySelectorAll('*')].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && box.right > document.documentElement.clientWidth + 0.5 && !one.closest('.region, .wide, .skip');
}).map((one) => one.outerHTML.slice(0, 120))
"""
# What scrolls sideways and cannot be reached with Tab.
OUT_OF_REACH = """
[...document.querySelectorAll('*')].filter((one) =>
  one.scrollWidth > one.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX)
  && one.tabIndex < 0).map((one) => one.outerHTML.slice(0, 120))
"""
# Every text with less than 4.5:1 against what lies under its middle, HTML or a shape of an SVG, and how many were seen.
CONTRAST = """
(() => {
  const read = (text) => {
    const found = text.match(/[\\d.]+/g);
    return found ? [...found.slice(0, 3).map(Number), found.length > 3 ? Number(found[3]) : 1] : null;
  };
  const over = (top, under) => top.slice(0, 3).map((one, place) => one * top[3] + under[place] * (1 - top[3]));
  const light = (colour) => {
    const [r, g, b] = colour.map((one) => {
      const part = one / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (text, x, y) => {
    const layers = [];
    for (const one of document.elementsFromPoint(x, y)) {
      if (one === text || text.contains(one)) continue;
      const style = getComputedStyle(one);
      const shape = one instanceof SVGGeometryElement;
      const colour = read(shape ? style.fill : style.backgroundColor);
      if (!colour || (shape && style.fill === 'none')) continue;
      colour[3] *= shape ? Number(style.fillOpacity) * Number(style.opacity) : 1;
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = [];
  let seen = 0;
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const parent = node.parentElement;
    if (!node.data.trim() || ['SCRIPT', 'STYLE'].includes(parent.tagName) || !parent.checkVisibility()) continue;
    parent.closest('.region')?.scrollTo(0, 0);
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = [...range.getClientRects()].find((one) => one.width && one.height);
    if (!box) continue;
    const x = box.x + box.width / 2, y = box.y + box.height / 2;
    if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
    const hit = document.elementFromPoint(x, y);  // another where the text is scrolled away
    if (!(parent instanceof SVGElement) && !(hit && (hit === parent || parent.contains(hit)))) continue;
    const style = getComputedStyle(parent);
    const own = read(parent instanceof SVGElement ? style.fill : style.color);
    const under = ground(parent, x, y);
    const [high, low] = [light(over(own, under)), light(under)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    seen += 1;
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${node.data.trim().slice(0, 40)}`);
  }
  return { seen, poor };
})()
"""
# Ids that stand twice, and links within the page that lead nowhere.
BROKEN = """
(() => {
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
  const twice = ids.filter((id, place) => ids.indexOf(id) !== place);
  const links = [...document.querySelectorAll('a[href^="#"]')].map((one) => one.getAttribute('href').slice(1));
  return [...twice, ...links.filter((id) => !document.getElementById(id))];
})()
"""


def column(title: str, table: str = "decisions") -> str:
    """The texts of a column's cells as they stand, by the title of the column."""
    return (
        f"(() => {{ const table = document.getElementById('{table}');"
        "const titles = [...table.tHead.rows[0].cells].map((one) => one.textContent.trim());"
        f"const place = titles.indexOf('{title}');"
        "return [...table.tBodies[0].rows].map((row) => row.cells[place].textContent.trim()) })()"
    )
