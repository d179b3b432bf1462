// One item in full, beside a grid.

import { h, percent } from "./dom.js";
import { infos, pictureAddress, unusualColumns } from "./loader.js";
import { className, store } from "./store.js";

export function preview() {
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
