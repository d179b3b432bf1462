// Items of several classes: rejected ones, those similar to one, likely duplicates.

import { reject, restore } from "./actions.js";
import { get } from "./api.js";
import { count, h } from "./dom.js";
import { asLoaded, itemsView } from "./items.js";

function plainHead(title, text) {
  const more = h("p", { class: "muted" });
  const back = h("a", { href: "#/", class: "back" }, "‹ Classes");
  return { node: h("div", { class: "head" }, back, h("h1", {}, title), more), update: (loaded) => (more.textContent = text(loaded)), keys: {} };
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
  /** All but the first of each group; labeled items are never rejected. */
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
