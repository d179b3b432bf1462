// Items of one class, rejected ones, similar ones, likely duplicates: a grid, one item large beside it, and what to do.

import { accept, known, merge, move, nameField, reject, split } from "./actions.js";
import { get } from "./api.js";
import { byId, count, h, percent } from "./dom.js";
import { CONFIDENCE, confidenceSelect, select } from "./gallery.js";
import { Grid } from "./grid.js";
import { infos, pictureAddress, unusualColumns } from "./loader.js";
import { className, listen, store } from "./store.js";

const PAGE = 20000;

/** The bar at the bottom of the page: what can be done with selected items. */
export function selectionBar(rows, { clear, all = null }) {
  const bar = byId("selection");
  bar.hidden = !rows.length;
  if (!rows.length) return;
  const button = (text, key, run) => h("button", { type: "button", onclick: run, "aria-keyshortcuts": key }, text, h("kbd", {}, key));
  bar.replaceChildren(
    h("span", {}, `${rows.length.toLocaleString("en")} selected`),
    button("Move", "v", async () => (await move(rows)) && clear()),
    button("Reject", "x", async () => (await reject(rows)) && clear()),
    ...(rows.length === 1 ? [button("Similar", "f", () => (location.hash = `#/similar/${rows[0]}`))] : []),
    ...(all ? [h("button", { type: "button", onclick: all }, "Select all")] : []),
    h("button", { type: "button", onclick: clear }, "Clear"),
  );
}

/** One item in full. */
function preview() {
  const picture = h("img", { alt: "" });
  const title = h("strong", { class: "id" });
  const facts = h("dl", {});
  const node = h("aside", { class: "preview", "aria-label": "Item" }, picture, title, facts);
  let shown = null;
  let timer = 0;

  async function fill(row) {
    infos.want([row]);
    const info = infos.get(row);
    title.textContent = info?.id ?? "…";
    if (!info) return;
    const lines = [
      ["Class", className(info.class)],
      ["Discovered as", info.first],
      ["Confidence", percent(info.confidence)],
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

function itemsView({ head, load, caption = false, cluster = null, emptyText }) {
  const side = preview();
  let loaded = { rows: [], confidence: new Map(), groups: null };
  let group = null;
  let order = "confident";
  let shown = "all";
  let turn = 0;
  const grid = new Grid({
    caption,
    group: (index) => group?.get(grid.rows[index]),
    changed: () => {
      side.show(grid.rows[grid.at]);
      selectionBar(chosen(), { clear: () => grid.clear(), all: () => grid.all() });
    },
    opened: (row) => (location.hash = `#/similar/${row}`),
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
  const node = h("div", { class: "items" }, head.node, tools, h("div", { class: "panes" }, h("div", { class: "pane" }, empty, grid.node), side.node));

  function fill() {
    const [low, high] = CONFIDENCE[shown].map((share) => Math.round(100 * share));
    const fits = (row) => loaded.confidence.get(row) >= low && loaded.confidence.get(row) < high;
    const rows = shown === "all" ? loaded.rows : loaded.rows.filter(fits);
    group = loaded.groups && new Map(loaded.groups.flatMap((rows, number) => rows.map((row) => [row, number])));
    empty.hidden = rows.length > 0;
    empty.textContent = loaded.rows.length ? "No item has this confidence." : emptyText;
    grid.put(order === "doubtful" ? [...rows].reverse() : rows, loaded.confidence);
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
      else throw error;
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
    shown: () => (refill(), grid.node.focus({ preventScroll: true })),
    leave: () => (offs.forEach((off) => off()), grid.leave(), (turn += 1)),
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

export function classItems(id) {
  const here = store.byId.get(id);
  if (!here) {
    location.hash = "#/";
    return { node: h("p", { class: "empty" }, "There is no such class any more.") };
  }
  const name = nameField(id, "h1");
  const meta = h("p", { class: "muted" });
  const button = (text, key, run) => h("button", { type: "button", onclick: run, "aria-keyshortcuts": key }, text, h("kbd", {}, key));
  const done = button("Reviewed", "a", () => accept(id));
  const tools = here.novel
    ? [button("Known class…", "k", () => known(id)), button("Merge…", "m", () => merge([id])), button("Split…", "s", () => split(id))]
    : [];
  const node = h(
    "div",
    { class: "head" },
    h("a", { href: "#/", class: "back" }, "‹ Classes"),
    h("div", { class: "titles" }, name, meta),
    h("div", { class: "tools" }, tools, done),
  );
  const head = {
    node,
    update: () => {
      const one = store.byId.get(id);
      if (!one) return;
      name.update();
      const known = one.known !== null ? ` · a known class, discovered as ${one.own}` : one.novel ? "" : ` · known, ${count(one.new, "new item")}`;
      meta.textContent = `${count(one.size, "item")} · ${percent(one.confidence)} confidence${known}`;
      done.setAttribute("aria-pressed", String(one.reviewed));
      done.firstChild.textContent = one.reviewed ? "✓ Reviewed" : "Mark as reviewed";
    },
    keys: { n: () => name.edit(), a: () => accept(id), k: () => known(id), m: () => merge([id]), s: () => split(id) },
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

const once = (path, groups = null) =>
  async function* () {
    const answer = await get(path);
    yield { ...asLoaded(answer), groups: groups ? answer.groups : null };
  };

export const rejectedItems = () =>
  itemsView({
    head: plainHead("Rejected items", ({ rows }) => (rows.length ? "Move them to a class to take them back." : "")),
    load: once("/api/rejected"),
    emptyText: "Nothing is rejected.",
  });

export const similarItems = (row) =>
  itemsView({
    head: plainHead("Similar items", () => "The first one, and what is nearest to it among all items."),
    load: once(`/api/similar/${row}?count=120`),
    caption: true,
    emptyText: "There are no other items.",
  });

export const duplicateItems = () =>
  itemsView({
    head: plainHead("Likely duplicates", ({ groups }) => (groups?.length ? `${count(groups.length, "group")} of items with the same picture or nearly the same features.` : "")),
    load: once("/api/duplicates", true),
    caption: true,
    emptyText: "No two items look the same.",
  });
