"""What makes the page hard to read or to use: axe's rules, and a walk over the contrast of all text."""
from axe_playwright_python.sync_playwright import Axe

from support.page import at_rest

# For each visible text node: its contrast with what is painted beneath it, by WCAG 2.2; bad: those under 4.5.
CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const colours = new Map();
  const draw = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
    const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255]; };
  const rgba = (css) => { if (!colours.has(css)) colours.set(css, draw(css)); return colours.get(css); };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = (c) => { const f = c.slice(0, 3).map((v) => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  const ground = (node) => { const layers = [];
    for (let n = node; n; n = n.parentElement) { const c = rgba(getComputedStyle(n).backgroundColor);
      if (c[3] > 0) layers.push(c); if (c[3] === 1) break; }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]); };
  const bad = [];
  let seen = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (parent.closest('.sr, option, noscript')) continue;
    const box = parent.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) continue;
    seen++;
    const style = getComputedStyle(parent), back = ground(parent);
    const a = luminance(over(rgba(style.color), back)), b = luminance(back);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} "${node.data.trim().slice(0, 30)}" .${parent.className} in .${parent.closest('[class]')?.parentElement?.className}`);
  }
  return { seen, bad: [...new Set(bad)] };
}"""

ONLY_CONTRAST = {"runOnly": ["color-contrast"]}
BUT_CONTRAST = {"rules": {"color-contrast": {"enabled": False}}}


def violations(page, where, rules=None):
    """What axe finds, by all of its rules or as `rules` says (axe's options)."""
    found = Axe().run(page, options={"resultTypes": ["violations"], **(rules or {})}).response["violations"]
    return [f"{where}: {v['id']}: {v['help']}: {n['html'][:160]} {n['failureSummary'][:200]}" for v in found for n in v["nodes"]]


def looked_at(page, scheme, state):
    """Everything that axe and the contrast walk find.  Without its rule of contrast, axe finds the same in both schemes."""
    page.mouse.move(2, 2)
    at_rest(page)
    found = violations(page, state, BUT_CONTRAST) if scheme == "light" else []
    return found + [f"{state}: {b}" for b in page.evaluate(CONTRAST)["bad"]]
