"use strict";
// A link to something inside a folded section opens it.
function unfold() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (const box of [target.querySelector(":scope > details"), target.closest("details")]) if (box) box.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

(() => {
  const canvas = document.getElementById("canvas");
  if (!canvas) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const [tip, legend] = ["tip", "legend"].map((id) => document.getElementById(id));
  const pen = canvas.getContext("2d");
  const [X, Y, LABEL, CONFIDENCE, NEW, NAME] = [0, 1, 2, 3, 4, 5];
  const points = data.points;
  const view = { zoom: 1, x: 0, y: 0 };  // x, y: what the whole map is moved by, in pixels
  let width = 0, height = 0, alone = null, current = -1, places = [];

  const isKnown = (label) => label < data.known;
  const inGroup = (point) => alone === null || (alone === "known" ? isKnown(point[LABEL]) : point[LABEL] === alone);

  function colors() {
    const style = getComputedStyle(document.documentElement);
    const token = (name) => style.getPropertyValue(name).trim();
    const dots = data.hues.map((hue) => `oklch(${token("--dot-l")} ${token("--dot-c")} ${hue})`);
    return { ink: token("--ink"), muted: token("--muted"), dots };
  }

  // One shape does not tell many colors apart, least of all to people who see few of them.
  function mark(x, y, shape, r) {
    pen.beginPath();
    if (shape === 1) pen.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else if (shape === 2) { pen.moveTo(x, y - r * 1.25); pen.lineTo(x + r * 1.15, y + r * 0.85); pen.lineTo(x - r * 1.15, y + r * 0.85); }
    else if (shape === 3) { pen.moveTo(x, y - r * 1.3); pen.lineTo(x + r * 1.3, y); pen.lineTo(x, y + r * 1.3); pen.lineTo(x - r * 1.3, y); }
    else pen.arc(x, y, r, 0, 7);
    pen.closePath();
  }

  function place() {
    const grid = 4095, edge = 28;
    const [left, top] = [X, Y].map((axis) => Math.min(grid, ...points.map((p) => p[axis])));
    const [right, bottom] = [X, Y].map((axis) => Math.max(0, ...points.map((p) => p[axis])));
    const [wide, high] = [Math.max(1, right - left), Math.max(1, bottom - top)];
    const scale = Math.min((width - 2 * edge) / wide, (height - 2 * edge) / high, (width + height) / grid) * view.zoom;
    places = points.map((p) => [
      width / 2 + (p[X] - (left + right) / 2) * scale + view.x, height / 2 + (p[Y] - (top + bottom) / 2) * scale + view.y,
    ]);
  }

  function paint() {
    const color = colors(), ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    place();
    const size = Math.max(2.2, Math.min(5, 130 / Math.sqrt(points.length + 1))) * Math.sqrt(view.zoom);
    for (const knownFirst of [true, false]) {
      points.forEach((point, i) => {
        const known = isKnown(point[LABEL]);
        if (known !== knownFirst) return;
        pen.globalAlpha = inGroup(point) ? (known ? 0.55 : 0.85) : 0.1;
        pen.fillStyle = known ? color.muted : color.dots[point[LABEL] - data.known];
        mark(...places[i], known ? 0 : (point[LABEL] - data.known) % 4, known ? size * 0.8 : size);
        pen.fill();
      });
    }
    pen.globalAlpha = 1;
    if (current < 0) return;
    pen.strokeStyle = color.ink;
    pen.lineWidth = 2;
    mark(...places[current], 0, size + 4);
    pen.stroke();
  }

  function line(tag, text) {
    const made = document.createElement(tag);
    made.textContent = text;
    return made;
  }

  function show(i) {
    if (i === current) return;
    current = i;
    tip.hidden = i < 0;
    tip.replaceChildren();
    if (i >= 0) {
      const point = points[i], words = document.createElement("div");
      if (data.pictures) {
        const picture = document.createElement("span");
        picture.className = "t m";
        picture.style.setProperty("--x", i % data.columns);
        picture.style.setProperty("--y", Math.floor(i / data.columns));
        tip.append(picture);
      }
      const part = isKnown(point[LABEL]) ? (point[NEW] ? "recognized as a known class" : "known") : "novel";
      words.append(line("b", data.classes[point[LABEL]]), line("span", point[NAME]));
      words.append(line("span", point[NEW] ? `${part}, confidence ${point[CONFIDENCE]} %` : part));
      tip.append(words);
      const [x, y] = places[i], box = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(8, Math.min(x + 16, width - box.width - 8))}px`;
      tip.style.top = `${y + 16 + box.height < height ? y + 16 : Math.max(8, y - box.height - 16)}px`;
    }
    paint();
  }

  function nearest(x, y, reach) {
    let best = -1, least = reach * reach;
    places.forEach(([px, py], i) => {
      const away = (px - x) ** 2 + (py - y) ** 2;
      if (away < least && inGroup(points[i])) [best, least] = [i, away];
    });
    return best;
  }

  // The next item in a direction: sideways distance counts double, so that the way is kept.
  function next(dx, dy) {
    if (current < 0) return nearest(width / 2, height / 2, 1e6);
    const [x, y] = places[current];
    let best = current, least = Infinity;
    places.forEach(([px, py], i) => {
      const ahead = (px - x) * dx + (py - y) * dy, aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (ahead > 0.5 && ahead + 2 * aside < least && inGroup(points[i])) [best, least] = [i, ahead + 2 * aside];
    });
    return best;
  }

  function zoom(factor) {
    const to = Math.max(1, Math.min(20, view.zoom * factor)), by = to / view.zoom;
    Object.assign(view, to === 1 ? { zoom: 1, x: 0, y: 0 } : { zoom: to, x: view.x * by, y: view.y * by });
    show(-1);
    paint();
  }

  function open(i) {
    if (i >= 0 && !isKnown(points[i][LABEL])) location.hash = `class-${points[i][LABEL]}`;
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, far: false }; });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && event.buttons) {
      drag.far ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4;
      if (drag.far) {
        view.x += event.movementX;
        view.y += event.movementY;
        show(-1);
        paint();
      }
      return;
    }
    show(nearest(event.offsetX, event.offsetY, 14));
  });
  canvas.addEventListener("click", (event) => { if (!drag?.far) open(nearest(event.offsetX, event.offsetY, 14)); });
  canvas.addEventListener("pointerleave", () => show(-1));
  canvas.addEventListener("focus", () => { if (current < 0 && canvas.matches(":focus-visible")) show(next(0, 0)); });
  canvas.addEventListener("blur", () => show(-1));
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (way) show(next(...way));
    else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1.5 : 1 / 1.5);
    else if (event.key === "Enter") open(current);
    else if (event.key === "Escape") show(-1);
    else return;
    event.preventDefault();
  });
  document.getElementById("in").addEventListener("click", () => zoom(1.5));
  document.getElementById("out").addEventListener("click", () => zoom(1 / 1.5));
  document.getElementById("whole").addEventListener("click", () => zoom(0));

  function entry(key, text, hue, number) {
    const button = document.createElement("button"), swatch = document.createElement("i");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    swatch.className = "swatch";
    swatch.dataset.shape = hue === null ? 0 : (key - data.known) % 4;
    if (hue !== null) swatch.style.setProperty("--h", hue);
    button.append(swatch, line("span", text), line("small", number.toLocaleString("en")));
    button.addEventListener("click", () => {
      alone = alone === key ? null : key;
      for (const other of legend.children) other.setAttribute("aria-pressed", String(other === button && alone !== null));
      show(-1);
      paint();
    });
    legend.append(button);
  }

  // the sizes of the classes, not of the sample on the map
  data.hues.forEach((hue, i) => {
    const label = data.known + i;
    if (data.sizes[label]) entry(label, data.classes[label], hue, data.sizes[label]);
  });
  const known = data.sizes.slice(0, data.known).reduce((a, b) => a + b, 0);
  if (known) entry("known", "known classes", null, known);

  new ResizeObserver(() => {
    [width, height] = [canvas.clientWidth, canvas.clientHeight];
    paint();
  }).observe(canvas);
  for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", paint);
})();
