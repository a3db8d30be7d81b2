// Looks at what is on the page, as it was laid out. Every function returns plain values.
(() => {
  const visible = (e) => e.checkVisibility({ checkVisibilityCSS: true }) && e.getClientRects().length > 0;
  const owners = () => {
    const found = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const node = walk.currentNode;
      if (!node.data.trim() || node.parentElement.closest("title, desc, style")) continue;
      if (!visible(node.parentElement)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const r of range.getClientRects()) {
        if (r.width < 1 || r.height < 1) continue;
        found.push({ node, x: r.left, y: r.top, right: r.right, bottom: r.bottom });
      }
    }
    return found;
  };
  const words = (node) => node.data.trim().slice(0, 40);
  // Lines of text are boxes a little higher than their letters.
  const overlaps = () => {
    const boxes = owners().sort((a, b) => a.y - b.y);
    const found = [];
    boxes.forEach((a, i) => {
      for (let j = i + 1; j < boxes.length && boxes[j].y < a.bottom; j++) {
        const b = boxes[j];
        if (a.node === b.node) continue;
        const across = Math.min(a.right, b.right) - Math.max(a.x, b.x);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.y, b.y);
        if (across > 1.5 && down > 0.35 * Math.min(a.bottom - a.y, b.bottom - b.y)) {
          found.push(`${words(a.node)} / ${words(b.node)}`);
        }
      }
    });
    return found;
  };
  const outside = () => {
    const found = [];
    for (const box of owners()) {
      const svg = box.node.parentElement.closest("svg");
      const frame = svg ? svg.getBoundingClientRect() : { left: 0, right: innerWidth };
      const scrolls = box.node.parentElement.closest(".wide, pre, .skip");
      if (!scrolls && (box.x < frame.left - 1 || box.right > frame.right + 1)) found.push(words(box.node));
    }
    return found;
  };
  const channel = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const luminance = (c) =>
    0.2126 * channel(c[0] / 255) + 0.7152 * channel(c[1] / 255) + 0.0722 * channel(c[2] / 255);
  const numbers = (colour) => {
    const c = colour.match(/[\d.]+/g).map(Number);
    return [...c.slice(0, 3), c.length > 3 ? c[3] : 1];
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      if (c[3] === 1) return c;
    }
    return [255, 255, 255, 1];
  };
  const contrast = () => {
    const least = {};
    for (const { node } of owners()) {
      const e = node.parentElement;
      const style = getComputedStyle(e);
      const ink = numbers(e.closest("svg") ? style.fill : style.color);
      const [a, b] = [luminance(ink), luminance(ground(e))].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05);
      const key = `${e.closest("svg") ? "figure" : e.tagName}: ${words(node)}`;
      if (ratio < 4.5) least[key] = Math.round(ratio * 100) / 100;
    }
    return least;
  };
  return { overlaps: overlaps(), outside: outside(), contrast: contrast(),
    width: document.documentElement.scrollWidth, texts: owners().length };
})()
