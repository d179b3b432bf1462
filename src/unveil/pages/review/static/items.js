// Items of one class, rejected ones, similar ones, likely duplicates: a grid, one item large beside it, and what to do.

import { accept, isKnown, known, merge, move, name as rename, nameField, reject, restore, saveList, split } from "./actions.js";
import { get } from "./api.js";
import { byId, count, h, percent } from "./dom.js";
import { CONFIDENCE, confidenceSelect, focusCard, nextToReview, select } from "./gallery.js";
import { Grid } from "./grid.js";
import { infos, inWords, mosaic, pictureAddress, setTile, signed, thumbs, unusualColumns } from "./loader.js";
import { className, listen, store } from "./store.js";
import { openViewer } from "./viewer.js";

const PAGE = 20000;
const STRIP = 6; // pictures of a nearest class
const LINES = 3; // items of a nearest class in words
const SIZE = "unveil-tile"; // how wide people like their tiles
const places = new Map(); // where somebody was, by address: going back goes there

/** The bar at the bottom of the page: what can be done with selected items. */
export function selectionBar(rows, { clear, all = null, look = null, extra = [] }) {
  const bar = byId("selection");
  bar.hidden = !rows.length;
  if (!rows.length) return;
  const button = (text, key, run) => h("button", { type: "button", onclick: run, "aria-keyshortcuts": key }, text, h("kbd", {}, key));
  bar.replaceChildren(
    h("span", {}, `${rows.length.toLocaleString("en")} selected`),
    ...extra.map(([text, run]) => h("button", { type: "button", onclick: async () => (await run(rows)) && clear() }, text)),
    ...(look && rows.length === 1 ? [button("Look", "enter", () => look(rows[0]))] : []),
    button("Move", "v", async () => (await move(rows)) && clear()),
    button("Reject", "x", async () => (await reject(rows)) && clear()),
    ...(rows.length === 1 ? [button("Similar", "f", () => (location.hash = `#/similar/${rows[0]}`))] : []),
    h("button", { type: "button", onclick: () => saveList(rows) }, "Save list"),
    ...(all ? [h("button", { type: "button", onclick: all }, "Select all")] : []),
    h("button", { type: "button", onclick: clear }, "Clear"),
  );
}

/** One item in full. */
function preview() {
  const picture = h("img", { alt: "" });
  const title = h("strong", { class: "id" });
  const facts = h("dl", {});
  const text = h("p", { class: "text", hidden: true });
  const node = h("aside", { class: "preview", "aria-label": "Item", tabindex: 0 }, picture, title, text, facts);
  let shown = null;
  let timer = 0;

  async function fill(row) {
    infos.want([row]);
    const info = infos.get(row);
    title.textContent = info?.id ?? "…";
    if (!info) return;
    text.textContent = info.text;
    text.hidden = !info.text;
    const lines = [
      ["Class", className(info.class)],
      ["Discovered as", info.first],
      ["Confidence", info.by_hand ? "placed by a person" : percent(info.confidence)],
      ["Label", info.new ? "discovered" : "given"],
      ...unusualColumns(info),
    ];
    facts.replaceChildren(...lines.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]));
  }

  async function fillPicture(row) {
    const address = await pictureAddress(row).catch(() => null);
    if (row !== shown) return;
    picture.hidden = !address;
    if (address) picture.src = address;
  }

  return {
    node,
    show(row) {
      node.hidden = row === undefined;
      if (row === undefined || row === shown) return;
      shown = row;
      fill(row);
      if (!store.about.pictures) return picture.remove();
      clearTimeout(timer);
      timer = setTimeout(() => fillPicture(row), 60); // not for every item that keys run over
    },
    again: () => shown !== null && fill(shown),
  };
}

function itemsView({ head, load, caption = false, cluster = null, emptyText, extra = [] }) {
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

const asLoaded = ({ rows, confidence }) => ({ rows, confidence: new Map(rows.map((row, i) => [row, confidence[i]])), groups: null });

function plainHead(title, text) {
  const more = h("p", { class: "muted" });
  const back = h("a", { href: "#/", class: "back" }, "‹ Classes");
  return { node: h("div", { class: "head" }, back, h("h1", {}, title), more), update: (loaded) => (more.textContent = text(loaded)), keys: {} };
}

/** What to look at in a class: doubtful items, the nearest known class and cluster side by side, unusual columns. */
function profile(id) {
  const node = h("div", { class: "profile", hidden: true });
  let asked = -1;
  let painted = [];
  let suggested = null;
  const paint = () => painted.forEach(([canvas, rows]) => mosaic(canvas, rows, STRIP, 1));
  const offs = [thumbs.listen(paint), infos.listen(describe)];

  /** Some items as pictures, or in words. */
  function strip(title, rows, button) {
    const head = h("p", {}, title, button);
    if (!store.about.pictures) {
      const shown = rows.slice(0, LINES);
      infos.want(shown);
      return h("section", {}, head, h("ul", { class: "lines" }, shown.map((row) => h("li", { "data-row": row }, "…"))));
    }
    const canvas = h("canvas", { class: "strip", "aria-hidden": "true" });
    painted.push([canvas, rows]);
    return h("section", {}, head, canvas);
  }

  function describe() {
    for (const line of node.querySelectorAll("[data-row]")) {
      const info = infos.get(Number(line.dataset.row));
      if (info) line.replaceChildren(h("strong", {}, info.id), ` ${inWords(info, 2).join(", ")}`);
    }
  }

  function near(title, found, text, run) {
    const other = found && store.byId.get(found.id);
    if (!other) return null;
    const link = h("a", { href: `#/class/${other.id}` }, other.name);
    const button = store.byId.get(id)?.novel && h("button", { type: "button", class: "small", onclick: run }, text);
    return strip([h("span", { class: "muted" }, title), " ", link, h("span", { class: "muted" }, ` ${found.cosine.toFixed(2).replace("-", "−")}`)], other.typical, button);
  }

  async function update() {
    if (asked === store.state.length) return paint();
    asked = store.state.length;
    const found = await get(`/api/profile/${id}`).catch(() => null);
    if (!found || !store.byId.has(id)) return;
    painted = [];
    const columns = found.columns.map((one) => h("li", {}, `${one.column}: ${one.mean} (${signed(one.deviations)} σ)`));
    suggested = found.names[0] ?? null;
    const choices = found.names.map((text, place) => h("button", { type: "button", class: "small", "aria-keyshortcuts": place ? null : "t", onclick: () => rename(id, text) }, text, !place && h("kbd", {}, "t")));
    const parts = [
      choices.length && h("section", { class: "names" }, h("p", { class: "muted" }, "Suggested names"), h("div", { class: "chips" }, choices)),
      columns.length && h("section", {}, h("p", { class: "muted" }, "Most unusual columns, mean"), h("ul", { class: "chips" }, columns)),
      found.words.length && h("section", {}, h("p", { class: "muted" }, "Telling words"), h("ul", { class: "chips" }, found.words.map((one) => h("li", {}, one)))),
      found.doubtful.length && strip(h("span", { class: "muted" }, "Most doubtful"), found.doubtful, null),
      near("Nearest known class", found.known, "It is this", () => isKnown(id, found.known.id)),
      near("Nearest cluster", found.cluster, "Merge…", () => merge([id, found.cluster.id])),
    ].filter(Boolean);
    node.replaceChildren(...parts);
    node.hidden = !parts.length;
    paint();
    describe();
  }

  return { node, update, leave: () => offs.forEach((off) => off()), accept: () => suggested && rename(id, suggested) };
}

export function classItems(id) {
  const here = store.byId.get(id);
  if (!here) {
    location.hash = "#/";
    return { node: h("p", { class: "empty" }, "There is no such class any more.") };
  }
  const name = nameField(id, "h1");
  const meta = h("p", { class: "muted" });
  const button = (text, key, run) => h("button", { type: "button", onclick: run, "aria-keyshortcuts": key }, text, h("kbd", {}, key));
  const reviewed = async () => {
    const next = one().reviewed ? null : nextToReview(id);
    if (!(await accept(id)) || next === null) return;
    if (next === undefined) return (location.hash = "#/");
    focusCard(next);
    location.hash = `#/class/${next}`;
  };
  const divide = async () => {
    if (!(await split(id))) return;
    focusCard(id); // its parts stand beside each other there
    location.hash = "#/";
  };
  const one = () => store.byId.get(id);
  const done = button("Reviewed", "a", reviewed);
  const tools = here.novel
    ? [button("Known class…", "k", () => known(id)), button("Merge…", "m", () => merge([id])), button("Split…", "s", divide)]
    : [];
  const panel = profile(id);
  const node = h(
    "div",
    { class: "head" },
    h("a", { href: "#/", class: "back" }, "‹ Classes"),
    h("div", { class: "titles" }, name, meta),
    h("div", { class: "tools" }, tools, done),
    panel.node,
  );
  const head = {
    node,
    leave: panel.leave,
    update: () => {
      const one = store.byId.get(id);
      if (!one) return;
      panel.update();
      name.update();
      const known = one.known !== null ? ` · a known class, discovered as ${one.own}` : one.novel ? "" : ` · known, ${count(one.new, "new item")}`;
      meta.textContent = `${count(one.size, "item")} · ${percent(one.confidence)} confidence${known}`;
      done.setAttribute("aria-pressed", String(one.reviewed));
      done.firstChild.textContent = one.reviewed ? "✓ Reviewed" : "Mark as reviewed";
    },
    keys: { n: () => name.edit(), t: () => panel.accept(), a: reviewed, k: () => known(id), m: () => merge([id]), s: divide },
  };
  async function* load(order) {
    const sort = order === "typical" ? "typicality" : "confidence";
    let all = { rows: [], confidence: [] };
    for (let offset = 0; ; offset += PAGE) {
      const part = await get(`/api/cluster/${id}?sort=${sort}&offset=${offset}&limit=${PAGE}`);
      all = { rows: [...all.rows, ...part.rows], confidence: [...all.confidence, ...part.confidence] };
      yield asLoaded(all);
      if (all.rows.length >= part.total) return;
    }
  }
  return itemsView({ head, load, cluster: id, emptyText: "This class holds no items." });
}

const once = (path) =>
  async function* () {
    yield asLoaded(await get(path));
  };

export const rejectedItems = () =>
  itemsView({
    head: plainHead("Rejected items", ({ rows }) => (rows.length ? "Restore them to the class they were in, or move them to another one." : "")),
    load: once("/api/rejected"),
    extra: [["Restore", restore]],
    emptyText: "Nothing is rejected.",
  });

export const similarItems = (row) =>
  itemsView({
    head: plainHead("Similar items", () => "The first one, and what is nearest to it among all items."),
    load: once(`/api/similar/${row}?count=120`),
    caption: true,
    emptyText: "There are no other items.",
  });

export function duplicateItems() {
  let alike = 0.999;
  let groups = [];
  const label = h("span", {}, alike.toFixed(3));
  const slider = h("input", { type: "range", min: 0.95, max: 1, step: 0.001, value: alike, "aria-label": "Least similarity" });
  const keep = h("button", { type: "button" }, "Keep one of each");
  const text = ({ groups: found }) => {
    groups = found ?? [];
    keep.disabled = !spare().length;
    return groups.length ? `${count(groups.length, "group")} of items with the same picture or nearly the same features.` : "";
  };
  const head = plainHead("Likely duplicates", text);
  head.node.append(h("div", { class: "tools" }, h("label", { class: "size" }, "Similarity", slider, label), keep));
  /** All but the first of each group; labelled items are never rejected. */
  const spare = () => groups.flatMap((group) => group.rows.filter((row) => row !== group.keep && group.free.includes(row)));
  keep.addEventListener("click", () => spare().length && reject(spare()));
  async function* load() {
    const answer = await get(`/api/duplicates?alike=${alike}`);
    const fresh = new Map(answer.rows.map((row, i) => [row, answer.new[i]]));
    const described = answer.groups.map((rows) => ({ rows, free: rows.filter((row) => fresh.get(row)), keep: rows.find((row) => !fresh.get(row)) ?? rows[0] }));
    yield { ...asLoaded(answer), groups: described };
  }
  const view = itemsView({ head, load, caption: true, emptyText: "No two items look the same." });
  slider.addEventListener("input", () => {
    alike = Number(slider.value);
    label.textContent = alike.toFixed(3);
  });
  slider.addEventListener("change", () => view.refill());
  return view;
}
