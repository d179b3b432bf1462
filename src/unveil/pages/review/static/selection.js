// The bar at the bottom of the page: what can be done with selected items.

import { move, reject, saveList } from "./actions.js";
import { byId, h } from "./dom.js";

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
