// What a reader would stumble over in this page, one line each; [] is a page that is all right.
// Run by test_pages.py in the browser. Every <details> is unfolded before.
() => {
  const problems = [];
  const shorten = (text) => text.trim().replace(/\s+/g, " ").slice(0, 60);

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const scrolls = (element) => element.closest("figure, .scroll");
    const wide = [...document.body.querySelectorAll("*")].find(
      (each) => !scrolls(each) && each.getBoundingClientRect().right > root.clientWidth + 1);
    problems.push(`overflow: the page is ${root.scrollWidth} px wide in a window of ${root.clientWidth}` +
      (wide ? `, from <${wide.tagName.toLowerCase()}> ${shorten(wide.textContent)}` : ""));
  }

  // Text stays in its box, and boxes apart from each other.
  const inside = (a, b) => a.x >= b.x - 0.5 && a.y >= b.y - 0.5 &&
    a.x + a.width <= b.x + b.width + 0.5 && a.y + a.height <= b.y + b.height + 0.5;
  const boxes = [];
  for (const group of document.querySelectorAll("svg g")) {
    const box = group.querySelector("rect").getBBox();
    for (const text of group.querySelectorAll("text")) {
      if (!inside(text.getBBox(), box)) problems.push(`clipped: ${shorten(text.textContent)}`);
    }
    for (const other of boxes) {
      if (box.x < other.x + other.width && other.x < box.x + box.width &&
          box.y < other.y + other.height && other.y < box.y + box.height) {
        problems.push(`overlap: ${shorten(group.textContent)}`);
      }
    }
    boxes.push(box);
  }
  for (const element of document.body.querySelectorAll("*")) {
    const overflow = getComputedStyle(element).overflowX;
    if ((overflow === "hidden" || overflow === "clip") && element.textContent && element.scrollWidth > element.clientWidth + 1) {
      problems.push(`clipped: ${shorten(element.textContent)}`);
    }
  }

  // In a narrow window all is in sight, or the page says that something scrolls.
  const said = [...document.querySelectorAll(".sideways")].some((each) => each.getClientRects().length);
  for (const box of root.clientWidth <= 640 && !said ? document.querySelectorAll("figure, .scroll") : []) {
    if (getComputedStyle(box).overflowX === "auto" && box.scrollWidth > box.clientWidth + 1) {
      problems.push(`hidden: ${shorten(box.textContent)}`);
    }
  }

  // Contrast, by WCAG 2: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const seen = new Map();
  const rgba = (text) => {
    if (!seen.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      seen.set(text, [r, g, b, a / 255]);
    }
    return seen.get(text);
  };
  const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
  const behind = (element) => {
    if (!element) return [255, 255, 255, 1];
    const own = rgba(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own : over(own, behind(element.parentElement));
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((n) => n / 255).map((n) => (n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const worst = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.tagName === "title" || !element.getClientRects().length) continue;
    const box = element.tagName === "text" && element.parentElement.querySelector(":scope > rect");
    const style = getComputedStyle(element);
    const ground = box ? over(rgba(getComputedStyle(box).fill), behind(document.body)) : behind(element);
    const ink = over(rgba(element.tagName === "text" ? style.fill : style.color), ground);
    const [low, high] = [luminance(ink), luminance(ground)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) worst.set(`${ink} on ${ground}`, `contrast: ${ratio.toFixed(2)} of ${shorten(node.textContent)}`);
  }
  return problems.concat([...worst.values()]);
}
