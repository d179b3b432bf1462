// What to look at in a class: doubtful items, the nearest known class and cluster side by side, words, unusual columns.

import { isKnown, merge, name as rename } from "./actions.js";
import { get } from "./api.js";
import { h } from "./dom.js";
import { infos, inWords, mosaic, signed, thumbs } from "./loader.js";
import { store } from "./store.js";

const STRIP = 6; // pictures of a nearest class
const LINES = 3; // items of a nearest class in words

export function profile(id) {
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
