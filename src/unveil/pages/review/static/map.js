// All items as points. Draw around some to see them beside the map; the wheel or two fingers zoom and move it.

import { move, reject } from "./actions.js";
import { fetched, get } from "./api.js";
import { announce, count, h, percent } from "./dom.js";
import { Grid } from "./grid.js";
import { selectionBar } from "./items.js";
import { draw, infos, thumbs } from "./loader.js";
import { openViewer } from "./viewer.js";
import { className, clusters, listen, store, mostConfidentFirst } from "./store.js";

const REACH = 9; // pixels from the pointer to a point
const THUMBS = 90; // with fewer items in view, they are shown as pictures
const THUMB = 44; // pixels
const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** The server says which color a class has: the report has the same. */
const color = (id) => (store.byId.get(id)?.color ?? store.about.known_color)[dark.matches ? "dark" : "light"];

export function mapView() {
  const canvas = h("canvas", { class: "map", tabindex: 0, role: "img", "aria-label": "Map of all items. Select classes in the list beside it." });
  const tip = h("div", { class: "tip", hidden: true }, h("canvas", { width: 112, height: 112 }), h("div", {}));
  const legend = h("ul", { class: "legend", "aria-label": "Classes" });
  const touch = window.matchMedia("(pointer: coarse), (max-width: 860px)").matches;
  const hint = h("p", { class: "muted hint" }, touch ? "Draw around items to see them. Two fingers zoom and move." : "Draw around items to see them. Wheel or two fingers: zoom. Shift and drag: move the map. 0: whole map.");
  const note = h("p", { class: "note", role: "status", hidden: true }, "A quick map; a finer one is being drawn.");
  const stage = h("div", { class: "stage" }, canvas, tip, hint, note);
  const title = h("h2", {}, "Classes");
  const side = h("aside", { class: "side", "aria-label": "Classes and selected items" }, title, legend);
  const node = h("div", { class: "mapview" }, h("h1", { class: "unseen" }, "Map"), stage, side);
  const context = canvas.getContext("2d");
  let points = new Float32Array(0);
  let labels = new Int32Array(0);
  let fresh = null; // which items came without a label
  let selected = new Set();
  let view = { scale: 1, x: 0, y: 0 };
  let lasso = null;
  let drag = null;
  let lit = null;
  let at = -1;
  let framed = 0;
  let stale = true;
  let waiting = 0;
  let left = false;
  let groups = new Map();
  let centers = [];
  let grid = null;
  const pointers = new Map();
  const layer = document.createElement("canvas");

  const known = store.state.classes.filter((one) => !one.novel).length;
  const bytes = async (path) => (await fetched(path)).arrayBuffer();

  /** From coordinates to pixels: one scale and where the origin is. */
  function frame() {
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const s = Math.min(width, height) * 0.92 * view.scale;
    return { width, height, s, left: width / 2 - s / 2 + view.x, top: height / 2 - s / 2 + view.y };
  }

  function soon(points = true) {
    stale ||= points !== false;
    framed ||= requestAnimationFrame(() => {
      framed = 0;
      paint();
    });
  }

  /** The points on a canvas of their own: drawing around them must not draw them again. */
  function paintPoints({ width, height, s, left, top }, ratio, dot) {
    layer.width = width * ratio;
    layer.height = height * ratio;
    const ink = layer.getContext("2d");
    ink.scale(ratio, ratio);
    const order = [...groups.keys()].sort((a, b) => (a >= known) - (b >= known) || (a === lit) - (b === lit));
    for (const id of order) {
      ink.fillStyle = color(id);
      ink.globalAlpha = lit !== null && id !== lit ? 0.15 : id < known ? 0.7 : 0.85;
      for (const i of groups.get(id)) {
        const [x, y] = [left + points[2 * i] * s, top + points[2 * i + 1] * s];
        if (x < -5 || y < -5 || x > width + 5 || y > height + 5) continue;
        if (dot < 4) ink.fillRect(x - dot / 2, y - dot / 2, dot, dot);
        else {
          ink.beginPath();
          ink.arc(x, y, dot / 2, 0, 7);
          ink.fill();
        }
      }
    }
  }

  /** The middle of every class: where its name stands, the largest first. */
  function place_names() {
    centers = [...groups].map(([id, rows]) => {
      const middle = (axis) => rows.map((i) => points[2 * i + axis]).sort((a, b) => a - b)[Math.floor(rows.length / 2)];
      return { id, x: middle(0), y: middle(1), size: rows.length };
    });
    centers.sort((a, b) => (b.id >= known) - (a.id >= known) || b.size - a.size);
  }

  /** Names that do not cover each other; known classes in grey. */
  function paintNames({ s, left, top, width, height }) {
    const boxes = [];
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const style = getComputedStyle(document.body);
    const ground = getComputedStyle(stage).backgroundColor;
    for (const one of centers) {
      const [x, y] = [left + one.x * s, top + one.y * s];
      const text = className(one.id).slice(0, 24);
      const half = context.measureText(text).width / 2 + 4;
      if (x < half || y < 10 || x > width - half || y > height - 10) continue;
      if (boxes.some(([a, b, c]) => Math.abs(a - x) < half + c && Math.abs(b - y) < 18)) continue;
      boxes.push([x, y, half]);
      context.lineWidth = 4;
      context.strokeStyle = ground;
      context.strokeText(text, x, y);
      context.fillStyle = one.id < known ? style.getPropertyValue("--muted") : style.color;
      context.fillText(text, x, y);
    }
    canvas.dataset.names = boxes.length;
  }

  /** Pictures in place of points, where few are in view. */
  function paintThumbs({ s, left, top, width, height }) {
    if (!store.about.pictures || view.scale < 2) return false;
    const shown = [];
    for (let i = 0; i < labels.length && shown.length <= THUMBS; i += 1) {
      const [x, y] = [left + points[2 * i] * s, top + points[2 * i + 1] * s];
      if (labels[i] >= 0 && x > 0 && y > 0 && x < width && y < height) shown.push([i, x, y]);
    }
    if (shown.length > THUMBS) return false;
    thumbs.want(shown.map(([i]) => i));
    for (const [i, x, y] of shown) {
      context.strokeStyle = color(labels[i]);
      context.lineWidth = 3;
      context.strokeRect(x - THUMB / 2, y - THUMB / 2, THUMB, THUMB);
      draw(context, i, x - THUMB / 2, y - THUMB / 2, THUMB, THUMB);
    }
    return true;
  }

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    const box = frame();
    if (!box.width) return;
    const n = labels.length;
    const dot = Math.max(2, Math.min(7, (n > 20000 ? 2 : n > 4000 ? 3 : 5) * Math.sqrt(view.scale)));
    if (stale) paintPoints(box, ratio, dot);
    stale = false;
    canvas.width = layer.width;
    canvas.height = layer.height;
    if (layer.width && layer.height) context.drawImage(layer, 0, 0);
    context.scale(ratio, ratio);
    canvas.dataset.pictures = paintThumbs(box);
    paintNames(box);
    const ink = getComputedStyle(document.body).color;
    context.strokeStyle = context.fillStyle = ink;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const i of selected) {
      const [x, y] = [box.left + points[2 * i] * box.s, box.top + points[2 * i + 1] * box.s];
      context.moveTo(x + dot / 2 + 1.5, y);
      context.arc(x, y, dot / 2 + 1.5, 0, 7);
    }
    context.stroke();
    if (!lasso) return;
    const path = outline();
    context.globalAlpha = 0.12;
    context.fill(path);
    context.globalAlpha = 1;
    context.setLineDash([5, 4]);
    context.stroke(path);
  }

  function outline() {
    const path = new Path2D();
    lasso.forEach(([x, y], i) => (i ? path.lineTo(x, y) : path.moveTo(x, y)));
    path.closePath();
    return path;
  }

  function choose(rows) {
    selected = new Set(rows);
    const all = [...selected];
    beside(all);
    bar();
    announce(`${all.length} selected`);
    soon(false);
  }

  const bar = () => selectionBar([...selected], { clear: () => choose([]), look: (row) => openViewer([...(grid?.rows ?? [row])], grid ? grid.rows.indexOf(row) : 0) });

  /** The selected items as a grid beside the map, where single ones can be taken out. */
  function beside(rows) {
    grid?.leave();
    grid?.node.remove();
    grid = null;
    side.classList.toggle("picked", rows.length > 0);
    title.textContent = rows.length ? count(rows.length, "selected item") : "Classes";
    if (!rows.length) return;
    grid = new Grid({
      changed: () => {
        if (grid === null) return;
        selected = new Set(grid.selected);
        bar();
        soon(false);
      },
      opened: (row) => openViewer([...grid.rows], grid.rows.indexOf(row)),
      size: 84,
    });
    side.append(grid.node);
    const made = grid;
    grid = null;
    made.put(rows, new Map());
    made.selected = new Set(rows);
    made.mark();
    grid = made;
  }

  function inside() {
    const { s, left, top } = frame();
    const path = outline();
    context.setTransform(1, 0, 0, 1, 0, 0);
    const rows = [];
    for (let i = 0; i < labels.length; i += 1) {
      if (!fresh[i] || labels[i] < 0) continue;
      if (context.isPointInPath(path, left + points[2 * i] * s, top + points[2 * i + 1] * s)) rows.push(i);
    }
    return rows;
  }

  function nearest(x, y) {
    const { s, left, top } = frame();
    let [best, far] = [-1, REACH * REACH];
    for (let i = 0; i < labels.length; i += 1) {
      const apart = (left + points[2 * i] * s - x) ** 2 + (top + points[2 * i + 1] * s - y) ** 2;
      if (apart < far && labels[i] >= 0) [best, far] = [i, apart];
    }
    return best;
  }

  function showTip(x, y) {
    tip.hidden = at < 0;
    if (at < 0) return;
    thumbs.want([at]);
    infos.want([at]);
    const [picture, text] = tip.children;
    picture.hidden = !store.about.pictures;
    const box = picture.getContext("2d");
    box.clearRect(0, 0, 112, 112);
    draw(box, at, 0, 0, 112, 112);
    const info = infos.get(at);
    text.replaceChildren(h("strong", {}, className(labels[at])), h("span", { class: "muted" }, info ? `${info.id} · ${percent(info.confidence)}` : "…"));
    if (x !== undefined) {
      tip.style.left = `${Math.min(x + 16, canvas.clientWidth - 190)}px`;
      tip.style.top = `${Math.min(y + 16, canvas.clientHeight - 180)}px`;
    }
  }

  function zoom(by, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const scale = Math.max(0.5, Math.min(60, view.scale * by));
    const real = scale / view.scale;
    const [cx, cy] = [x - canvas.clientWidth / 2, y - canvas.clientHeight / 2];
    view = { scale, x: cx - (cx - view.x) * real, y: cy - (cy - view.y) * real };
    soon();
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (pointers.size > 1) lasso = null; // two fingers zoom and move
    else if (event.shiftKey || event.button === 1) drag = [event.offsetX - view.x, event.offsetY - view.y];
    else if (event.button === 0) lasso = [[event.offsetX, event.offsetY]];
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = [event.offsetX, event.offsetY];
    const was = pointers.get(event.pointerId);
    if (pointers.size === 2 && was) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
      view = { ...view, x: view.x + (x - was[0]) / 2, y: view.y + (y - was[1]) / 2 };
      zoom(apart([x, y]) / Math.max(1, apart(was)), (x + other[0]) / 2, (y + other[1]) / 2);
      pointers.set(event.pointerId, [x, y]);
      return;
    }
    if (was) pointers.set(event.pointerId, [x, y]);
    if (drag) view = { ...view, x: x - drag[0], y: y - drag[1] };
    else if (lasso) lasso.push([x, y]);
    else {
      at = nearest(x, y);
      showTip(x, y);
      return;
    }
    soon(Boolean(drag));
  });
  canvas.addEventListener("pointerup", (event) => {
    pointers.delete(event.pointerId);
    if (lasso && lasso.length > 3) choose(inside());
    else if (lasso) {
      const one = nearest(event.offsetX, event.offsetY);
      const more = event.ctrlKey || event.metaKey || event.pointerType === "touch";
      choose(one >= 0 && fresh[one] ? (more ? [...selected, one] : [one]) : []);
    }
    lasso = drag = null;
    soon(false);
  });
  canvas.addEventListener("pointercancel", (event) => {
    pointers.delete(event.pointerId);
    lasso = drag = null;
    soon(false);
  });
  canvas.addEventListener("pointerleave", () => ((at = -1), showTip()));
  canvas.addEventListener("wheel", (event) => (event.preventDefault(), zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY)), { passive: false });

  function list() {
    const light = (id) => () => ((lit = id), soon());
    const items = [...clusters()].sort(mostConfidentFirst).map((one) => {
      const swatch = h("span", { class: "swatch" });
      swatch.style.background = color(one.id);
      const all = () => choose([...labels.keys()].filter((i) => labels[i] === one.id && fresh[i]));
      const button = h("button", { type: "button", onclick: all, title: "Select its items" }, swatch, h("span", { class: "label" }, one.name), h("span", { class: "muted" }, one.size.toLocaleString("en")));
      for (const [event, id] of [["mouseenter", one.id], ["focus", one.id], ["mouseleave", null], ["blur", null]]) button.addEventListener(event, light(id));
      return h("li", {}, button);
    });
    const given = h("span", { class: "swatch" });
    given.style.background = store.about.known_color[dark.matches ? "dark" : "light"];
    const last = known ? [h("li", { class: "given" }, given, h("span", { class: "label" }, count(known, "known class", "known classes")))] : [];
    legend.replaceChildren(...items, ...last);
  }

  function relabelled(now) {
    labels = new Int32Array(now);
    groups = new Map();
    labels.forEach((id, i) => id >= 0 && (groups.get(id)?.push(i) ?? groups.set(id, [i])));
    if (points.length) place_names();
    list();
    soon();
  }

  async function load() {
    const [now, given] = await Promise.all([bytes("/api/labels"), bytes("/api/new"), place()]);
    fresh = new Uint8Array(given);
    relabelled(now);
  }

  /** A quick map is there at once; a finer one is drawn meanwhile and takes its place. */
  async function place() {
    const answer = await fetched("/api/map");
    const drawing = answer.headers.get("X-Map") === "drawing";
    points = new Float32Array(await answer.arrayBuffer());
    note.hidden = !drawing;
    if (groups.size) place_names();
    soon();
    if (drawing) waiting = setTimeout(again, 2000);
  }

  async function again() {
    const { state } = await get("/api/map-state").catch(() => ({ state: "quick" }));
    if (left) return;
    if (state === "drawing" || lasso) waiting = setTimeout(again, 2000); // nothing moves while somebody draws
    else if (state === "fine") await place().catch(() => {});
    note.hidden = state !== "drawing" && !lasso;
  }

  async function relabel() {
    infos.forget();
    relabelled(await bytes("/api/labels"));
  }

  const offs = [listen(relabel), thumbs.listen(() => (showTip(), soon(false))), infos.listen(() => showTip())];
  const watch = new ResizeObserver(() => soon());
  watch.observe(canvas);
  const repaint = () => (list(), soon());
  dark.addEventListener("change", repaint);
  const pan = (x, y) => () => ((view = { ...view, x: view.x + x, y: view.y + y }), soon());
  const KEYS = {
    "+": () => zoom(1.3),
    "-": () => zoom(1 / 1.3),
    0: () => ((view = { scale: 1, x: 0, y: 0 }), soon()),
    v: async () => selected.size && (await move([...selected])) && choose([]),
    x: async () => selected.size && (await reject([...selected])) && choose([]),
  };
  const PAN = { ArrowLeft: pan(60, 0), ArrowRight: pan(-60, 0), ArrowUp: pan(0, 60), ArrowDown: pan(0, -60) };
  return {
    node,
    focus: () => canvas.focus({ preventScroll: true }),
    shown: async () => {
      canvas.focus({ preventScroll: true });
      await load().catch((error) => error.trouble || Promise.reject(error));
    },
    leave: () => {
      left = true;
      clearTimeout(waiting);
      grid?.leave();
      offs.forEach((off) => off());
      watch.disconnect();
      dark.removeEventListener("change", repaint);
    },
    key: (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return false;
      if (event.key === "Escape" && selected.size) {
        choose([]);
        canvas.focus({ preventScroll: true });
        return true;
      }
      if (grid && grid.node.contains(event.target) && grid.key(event)) return true;
      const run = KEYS[event.key] ?? (event.target === canvas ? PAN[event.key] : undefined);
      if (run) run();
      return Boolean(run);
    },
  };
}
