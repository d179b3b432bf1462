// Some items: a grid, one item large beside it, how they are ordered, and what to do with them.

import { move, reject } from "./actions.js";
import { h } from "./dom.js";
import { CONFIDENCE, confidenceSelect, select } from "./gallery.js";
import { Grid } from "./grid.js";
import { infos, setTile } from "./loader.js";
import { preview } from "./preview.js";
import { selectionBar } from "./selection.js";
import { listen, store } from "./store.js";
import { openViewer } from "./viewer.js";

const SIZE = "unveil-tile"; // how wide people like their tiles
const places = new Map(); // where somebody was, by address: going back goes there

/** `head`: what stands above the grid; `load`: yields the items, a long list in parts; `extra`: more to do with them. */
export function itemsView({ head, load, caption = false, cluster = null, emptyText, extra = [] }) {
  const side = preview();
  const address = location.hash;
  let was = places.get(address);
  let loaded = { rows: [], confidence: new Map(), groups: null };
  let group = null;
  let order = was?.order ?? "confident";
  let shown = was?.shown ?? "all";
  const size = Number(localStorage.getItem(SIZE)) || 104;
  setTile(size);
  let turn = 0;
  const look = (row) => {
    const go = (now) => grid.rows.indexOf(now) >= 0 && grid.go(grid.rows.indexOf(now));
    openViewer([...grid.rows], Math.max(0, grid.rows.indexOf(row)), go);
  };
  const grid = new Grid({
    caption,
    size,
    group: (index) => group?.get(grid.rows[index]),
    changed: () => {
      side.show(grid.rows[grid.at]);
      selectionBar(chosen(), { clear: () => grid.clear(), all: () => grid.all(), look, extra });
    },
    opened: look,
  });
  const chosen = () => grid.rows.filter((row) => grid.selected.has(row));
  const empty = h("p", { class: "empty", hidden: true }, emptyText);
  const tools = h("div", { class: "toolbar" });
  if (cluster !== null) {
    const orders = { confident: "Most confident first", doubtful: "Most doubtful first", typical: "Most typical first" };
    tools.append(
      select("Order", orders, order, (value) => {
        order = value;
        refill();
      }),
      confidenceSelect(shown, (value) => {
        shown = value;
        fill();
      }),
    );
  }
  if (store.about.pictures) {
    const slider = h("input", { type: "range", min: 72, max: 320, step: 8, value: size, "aria-label": "Size of pictures" });
    slider.addEventListener("input", () => {
      localStorage.setItem(SIZE, slider.value);
      setTile(Number(slider.value));
      grid.resize(Number(slider.value));
    });
    tools.append(h("label", { class: "size" }, "Size", slider));
  }
  const node = h("div", { class: "items" }, head.node, tools, h("div", { class: "panes" }, h("div", { class: "pane" }, empty, grid.node), side.node));

  function fill() {
    const [low, high] = CONFIDENCE[shown].map((share) => Math.round(100 * share));
    const fits = (row) => loaded.confidence.get(row) >= low && loaded.confidence.get(row) < high;
    const rows = shown === "all" ? loaded.rows : loaded.rows.filter(fits);
    group = loaded.groups && new Map(loaded.groups.flatMap(({ rows }, number) => rows.map((row) => [row, number])));
    empty.hidden = rows.length > 0;
    empty.textContent = loaded.rows.length ? "No item has this confidence." : emptyText;
    grid.put(order === "doubtful" ? [...rows].reverse() : rows, loaded.confidence);
    if (was && grid.rows.length) {
      grid.restore(was);
      if (grid.rows.includes(was.row)) was = null; // a long class comes in parts
    }
    head.update(loaded);
  }

  async function refill() {
    const mine = (turn += 1);
    try {
      for await (const part of load(order)) {
        if (mine !== turn) return;
        loaded = part;
        fill();
      }
    } catch (error) {
      if (error.status === 404) location.hash = "#/";
      else if (!error.trouble) throw error; // the banner says it
    }
  }

  const offs = [
    listen(() => {
      infos.forget(); // classes of items may have changed
      refill();
    }),
    infos.listen(side.again),
  ];
  const one = () => (chosen().length ? chosen() : grid.rows.length ? [grid.rows[grid.at]] : []);
  const KEYS = {
    v: async () => one().length && (await move(one())) && grid.clear(),
    x: async () => one().length && (await reject(one())) && grid.clear(),
    f: () => grid.rows.length && (location.hash = `#/similar/${grid.rows[grid.at]}`),
    ...head.keys,
  };
  return {
    node,
    refill,
    shown: () => (refill(), grid.node.focus({ preventScroll: true })),
    focus: () => grid.node.focus({ preventScroll: true }),
    leave: () => {
      if (grid.rows.length) places.set(address, { ...grid.place(), order, shown });
      offs.forEach((off) => off());
      head.leave?.();
      grid.leave();
      turn += 1;
    },
    key: (event) => {
      const button = event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement;
      if (button && (event.key === "Enter" || event.key === " ")) return false;
      if (grid.key(event)) return true;
      if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return false;
      KEYS[event.key]();
      return true;
    },
  };
}

/** Items as the server gives them, for the grid. */
export const asLoaded = ({ rows, confidence }) => ({ rows, confidence: new Map(rows.map((row, i) => [row, confidence[i]])), groups: null });
