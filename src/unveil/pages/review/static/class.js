// One class: its name, what can be done with it, its profile, and its items.

import { accept, known, merge, nameField, split } from "./actions.js";
import { get } from "./api.js";
import { count, h, percent } from "./dom.js";
import { focusCard, nextToReview } from "./gallery.js";
import { asLoaded, itemsView } from "./items.js";
import { profile } from "./profile.js";
import { store } from "./store.js";

const PAGE = 20000; // items that are asked for at a time

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
