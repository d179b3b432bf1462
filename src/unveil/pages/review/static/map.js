// All items as points. Draw around some to see them beside the map; the wheel or two fingers zoom and move it.

import { move, reject } from "./actions.js";
import { fetched, get } from "./api.js";
import { announce, count, h, percent } from "./dom.js";
import { Grid } from "./grid.js";
import { draw, infos, thumbs } from "./loader.js";
import { color, dark, Painter } from "./map_paint.js";
import { Scene } from "./map_scene.js";
import { selectionBar } from "./selection.js";
import { className, clusters, listen, mostConfidentFirst, store } from "./store.js";
import { openViewer } from "./viewer.js";

const bytes = async (path) => (await fetched(path)).arrayBuffer();

export function mapView() {
  const canvas = h("canvas", { class: "map", tabindex: 0, role: "img", "aria-label": "Map of all items. Select classes in the list beside it." });
  const legend = h("ul", { class: "legend", "aria-label": "Classes" });
  const touch = window.matchMedia("(pointer: coarse), (max-width: 860px)").matches;
  const hint = h("p", { class: "muted hint" }, touch ? "Draw around items to see them. Two fingers zoom and move." : "Draw around items to see them. Wheel or two fingers: zoom. Shift and drag: move the map. 0: whole map.");
  const note = h("p", { class: "note", role: "status", hidden: true }, "A quick map; a finer one is being drawn.");
  const title = h("h2", {}, "Classes");
  const side = h("aside", { class: "side", "aria-label": "Classes and selected items" }, title, legend);
  const known = store.state.classes.filter((one) => !one.novel).length;
  const scene = new Scene(canvas, known);
  const painter = new Painter(scene, canvas);
  const tip = pointedAt(scene, canvas);
  const stage = h("div", { class: "stage" }, canvas, tip.node, hint, note);
  const node = h("div", { class: "mapview" }, h("h1", { class: "unseen" }, "Map"), stage, side);
  let waiting = 0;
  let left = false;
  let grid = null;

  function choose(rows) {
    scene.selected = new Set(rows);
    beside([...scene.selected]);
    bar();
    announce(`${scene.selected.size} selected`);
    painter.soon(false);
  }

  const look = (row) => openViewer(grid ? [...grid.rows] : [row], grid ? grid.rows.indexOf(row) : 0);
  const bar = () => selectionBar([...scene.selected], { clear: () => choose([]), look });

  /** The selected items as a grid beside the map, where single ones can be taken out. */
  function beside(rows) {
    grid?.leave();
    grid?.node.remove();
    grid = null;
    side.classList.toggle("picked", rows.length > 0);
    title.textContent = rows.length ? count(rows.length, "selected item") : "Classes";
    if (!rows.length) return;
    const made = new Grid({
      changed: () => {
        if (grid === null) return; // it is being filled
        scene.selected = new Set(grid.selected);
        bar();
        painter.soon(false);
      },
      opened: look,
      size: 84,
    });
    side.append(made.node);
    made.put(rows, new Map());
    made.selected = new Set(rows);
    made.mark();
    grid = made;
  }

  function list() {
    const light = (id) => () => ((scene.lit = id), painter.soon());
    const items = [...clusters()].sort(mostConfidentFirst).map((one) => {
      const swatch = h("span", { class: "swatch" });
      swatch.style.background = color(one.id);
      const all = () => choose(scene.members(one.id));
      const button = h("button", { type: "button", onclick: all, title: "Select its items" }, swatch, h("span", { class: "label" }, one.name), h("span", { class: "muted" }, one.size.toLocaleString("en")));
      for (const [event, id] of [["mouseenter", one.id], ["focus", one.id], ["mouseleave", null], ["blur", null]]) button.addEventListener(event, light(id));
      return h("li", {}, button);
    });
    const given = h("span", { class: "swatch" });
    given.style.background = store.about.known_color[dark.matches ? "dark" : "light"];
    const last = known ? [h("li", { class: "given" }, given, h("span", { class: "label" }, count(known, "known class", "known classes")))] : [];
    legend.replaceChildren(...items, ...last);
  }

  function relabeled(labels) {
    scene.label(new Int32Array(labels));
    list();
    painter.soon();
  }

  async function load() {
    const [labels, fresh] = await Promise.all([bytes("/api/labels"), bytes("/api/new"), place()]);
    scene.fresh = new Uint8Array(fresh);
    relabeled(labels);
  }

  /** A quick map is there at once; a finer one is drawn meanwhile and takes its place. */
  async function place() {
    const answer = await fetched("/api/map");
    const drawing = answer.headers.get("X-Map") === "drawing";
    scene.put(new Float32Array(await answer.arrayBuffer()));
    note.hidden = !drawing;
    painter.soon();
    if (drawing) waiting = setTimeout(again, 2000);
  }

  async function again() {
    const { state } = await get("/api/map-state").catch(() => ({ state: "quick" }));
    if (left) return;
    if (state === "drawing" || scene.lasso) waiting = setTimeout(again, 2000); // nothing moves while somebody draws
    else if (state === "fine") await place().catch(() => {});
    note.hidden = state !== "drawing" && !scene.lasso;
  }

  async function relabel() {
    infos.forget();
    relabeled(await bytes("/api/labels"));
  }

  canvas.addEventListener("pointerdown", () => (hint.hidden = true), { once: true }); // who draws needs no hint on top of items
  gestures(canvas, scene, { paint: (points) => painter.soon(points), choose, point: tip.show });
  const offs = [listen(relabel), thumbs.listen(() => (tip.show(), painter.soon(false))), infos.listen(() => tip.show())];
  const watch = new ResizeObserver(() => painter.soon());
  watch.observe(canvas);
  const repaint = () => (list(), painter.soon());
  dark.addEventListener("change", repaint);
  const moved = (change) => () => (change(), painter.soon());
  const KEYS = {
    "+": moved(() => scene.zoom(1.3)),
    "-": moved(() => scene.zoom(1 / 1.3)),
    0: moved(() => scene.whole()),
    v: async () => scene.selected.size && (await move([...scene.selected])) && choose([]),
    x: async () => scene.selected.size && (await reject([...scene.selected])) && choose([]),
  };
  const PAN = {
    ArrowLeft: moved(() => scene.pan(60, 0)),
    ArrowRight: moved(() => scene.pan(-60, 0)),
    ArrowUp: moved(() => scene.pan(0, 60)),
    ArrowDown: moved(() => scene.pan(0, -60)),
  };
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
      if (event.key === "Escape" && scene.selected.size) {
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

/** The item under the pointer, beside it. */
function pointedAt(scene, canvas) {
  const picture = h("canvas", { width: 112, height: 112 });
  const text = h("div", {});
  const node = h("div", { class: "tip", hidden: true }, picture, text);
  let row = -1;

  function paint() {
    node.hidden = row < 0;
    if (row < 0) return;
    thumbs.want([row]);
    infos.want([row]);
    picture.hidden = !store.about.pictures;
    const box = picture.getContext("2d");
    box.clearRect(0, 0, 112, 112);
    draw(box, row, 0, 0, 112, 112);
    const info = infos.get(row);
    text.replaceChildren(h("strong", {}, className(scene.labels[row])), h("span", { class: "muted" }, info ? `${info.id} · ${percent(info.confidence)}` : "…"));
  }

  /** Show it at a pixel; without one, again as it was; null: hide it. */
  function show(pixel) {
    if (pixel) {
      const [x, y] = pixel;
      row = scene.nearest(x, y);
      node.style.left = `${Math.min(x + 16, canvas.clientWidth - 190)}px`;
      node.style.top = `${Math.min(y + 16, canvas.clientHeight - 180)}px`;
    } else if (pixel === null) row = -1;
    paint();
  }

  return { node, show };
}

/** Draw around items, tap one, move the map, zoom: with a mouse, a pen or fingers. */
function gestures(canvas, scene, { paint, choose, point }) {
  const pointers = new Map();
  let drag = null;

  function pinch(event, was) {
    const now = [event.offsetX, event.offsetY];
    const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
    const apart = (pixel) => Math.hypot(pixel[0] - other[0], pixel[1] - other[1]);
    scene.pan((now[0] - was[0]) / 2, (now[1] - was[1]) / 2);
    scene.zoom(apart(now) / Math.max(1, apart(was)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    paint(true);
  }

  function ended(event) {
    pointers.delete(event.pointerId);
    scene.lasso = drag = null;
    paint(false);
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (pointers.size > 1) scene.lasso = null; // two fingers zoom and move
    else if (event.shiftKey || event.button === 1) drag = [event.offsetX - scene.view.x, event.offsetY - scene.view.y];
    else if (event.button === 0) scene.lasso = [[event.offsetX, event.offsetY]];
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = [event.offsetX, event.offsetY];
    const was = pointers.get(event.pointerId);
    if (was) pointers.set(event.pointerId, now);
    if (pointers.size === 2 && was) pinch(event, was);
    else if (drag) {
      scene.view = { ...scene.view, x: now[0] - drag[0], y: now[1] - drag[1] };
      paint(true);
    } else if (scene.lasso) {
      scene.lasso.push(now);
      paint(false);
    } else point(now);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (scene.lasso && scene.lasso.length > 3) choose(scene.enclosed());
    else if (scene.lasso) {
      const one = scene.nearest(event.offsetX, event.offsetY);
      const more = event.ctrlKey || event.metaKey || event.pointerType === "touch";
      choose(one >= 0 && scene.fresh[one] ? (more ? [...scene.selected, one] : [one]) : []);
    }
    ended(event);
  });
  canvas.addEventListener("pointercancel", ended);
  canvas.addEventListener("pointerleave", () => point(null));
  const turned = (event) => {
    event.preventDefault();
    scene.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    paint(true);
  };
  canvas.addEventListener("wheel", turned, { passive: false });
}
