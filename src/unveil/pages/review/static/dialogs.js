// Questions in front of the page: which class, how to split, which format, which keys.

import { get, post } from "./api.js";
import { count, h, percent } from "./dom.js";
import { inWords, mosaic, thumbs } from "./loader.js";
import { className, store } from "./store.js";

/** A dialog that resolves to what it is closed with, or null. */
function open(title, build) {
  return new Promise((resolve) => {
    let answer = null;
    const dialog = h("dialog", { "aria-label": title }, h("h2", {}, title));
    const close = (value = null) => {
      answer = value;
      dialog.close();
    };
    const off = thumbs.listen(() => dialog.redraw?.());
    dialog.addEventListener("close", () => {
      off();
      dialog.remove();
      resolve(answer);
    });
    build(dialog, close);
    document.body.append(dialog);
    dialog.showModal();
    dialog.redraw?.();
  });
}

function strip(rows, columns) {
  const canvas = h("canvas", { class: "strip", "aria-hidden": "true" });
  canvas.paint = () => mosaic(canvas, rows, columns, 1);
  return canvas;
}

/** Choose a class by typing and arrows; with `create` also a new one, named by what was typed. */
export function pick(title, choices, { create = false } = {}) {
  return open(title, (dialog, close) => {
    const input = h("input", {
      type: "text",
      role: "combobox",
      "aria-expanded": "true",
      "aria-controls": "choices",
      "aria-label": create ? "Search, or name a new class" : "Search",
      placeholder: create ? "Search, or name a new class" : "Search by name",
      maxlength: 200,
      autofocus: true,
    });
    const list = h("ul", { id: "choices", role: "listbox", "aria-label": title });
    let options = [];
    let at = 0;

    function mark(place) {
      at = Math.max(0, Math.min(place, options.length - 1));
      options.forEach(({ node }, i) => node.setAttribute("aria-selected", String(i === at)));
      options[at]?.node.scrollIntoView({ block: "nearest" });
      if (options[at]) input.setAttribute("aria-activedescendant", options[at].node.id);
    }

    function fill() {
      const text = input.value.trim();
      const matches = choices.filter((one) => one.name.toLowerCase().includes(text.toLowerCase()));
      const exact = matches.some((one) => one.name === text);
      const fresh = create && !exact ? [{ text, fresh: true }] : [];
      const all = text ? [...matches, ...fresh] : [...fresh, ...matches];
      options = all.map((value, i) => {
        const label = value.fresh ? (text ? `New class “${text}”` : "New class") : value.name;
        const near = value.cosine === undefined ? "" : ` · ${value.cosine.toFixed(2)}`;
        const about = value.fresh || value.size === null ? "" : `${value.novel ? "" : "known · "}${value.size.toLocaleString("en")}${near}`;
        const picture = value.fresh || !store.about.pictures ? h("span", { class: "strip" }) : strip(value.typical, 4);
        const node = h(
          "li",
          { id: `choice-${i}`, role: "option", onclick: () => close(value), class: value.fresh ? "fresh" : "" },
          picture,
          h("span", { class: "label" }, label),
          h("span", { class: "muted" }, about),
        );
        return { node, value };
      });
      list.replaceChildren(...options.map(({ node }) => node));
      if (!options.length) list.append(h("li", { class: "none" }, "No class has this name."));
      mark(0);
      dialog.redraw();
    }

    /** Only what can be seen is drawn: there may be hundreds of classes. */
    dialog.redraw = () => {
      const box = list.getBoundingClientRect();
      for (const canvas of list.querySelectorAll("canvas")) {
        const { top, bottom } = canvas.getBoundingClientRect();
        if (bottom > box.top - 100 && top < box.bottom + 100) canvas.paint();
      }
    };
    list.addEventListener("scroll", () => dialog.redraw(), { passive: true });
    input.addEventListener("input", fill);
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
      if (step) mark(at + step);
      else if (event.key === "Enter" && options[at]) close(options[at].value);
      else return;
      event.preventDefault();
    });
    dialog.classList.add("picker");
    dialog.append(input, list);
    fill();
  });
}

/** Look at a merge before it is made; resolves to whether to do it. */
export function mergeDialog(classes) {
  return open(`Merge ${count(classes.length, "class", "classes")}`, (dialog, close) => {
    const named = classes.find((one) => one.named) ?? classes[0];
    const total = classes.reduce((sum, one) => sum + one.size, 0);
    const parts = classes.map((one) => {
      const head = h("p", {}, h("strong", {}, one.name), h("span", { class: "muted" }, ` ${count(one.size, "item")} · ${percent(one.confidence)} confidence`));
      if (store.about.pictures) return h("section", {}, head, strip(one.typical, 8));
      return h("section", {}, head);
    });
    const apply = h("button", { type: "button", class: "primary", onclick: () => close(true), autofocus: true }, "Merge");
    const cancel = h("button", { type: "button", onclick: () => close(null) }, "Cancel");
    const box = h("div", { class: "parts" }, parts);
    dialog.redraw = () => box.querySelectorAll("canvas").forEach((canvas) => canvas.paint());
    dialog.classList.add("wide");
    dialog.append(box, h("p", { class: "muted result" }, `They become ${named.name}, ${count(total, "item")}.`), h("div", { class: "ends" }, cancel, apply));
  });
}

/** Look at a split before it is made; resolves to lists of rows and the names that were typed. */
export function splitDialog(id) {
  return open(`Split ${className(id)}`, (dialog, close) => {
    let parts = null;
    let telling = [];
    const box = h("div", { class: "parts", "aria-live": "polite" });
    const apply = h("button", { type: "button", class: "primary", disabled: true, onclick: () => close({ parts, names: [...box.querySelectorAll("input")].map((one) => one.value) }) }, "Split");
    const numbers = h("div", { class: "segments", role: "group", "aria-label": "How many parts" });

    async function preview(number) {
      parts = null;
      apply.disabled = true;
      for (const button of numbers.children) button.setAttribute("aria-pressed", String(Number(button.textContent) === number));
      box.replaceChildren(h("p", { class: "empty" }, "Splitting…"));
      try {
        ({ parts, telling } = await post("/api/split-preview", { cluster: id, parts: number }));
      } catch (error) {
        box.replaceChildren(h("p", { class: "empty" }, error.message));
        return;
      }
      const shown = await Promise.all(parts.map(part));
      box.replaceChildren(...shown);
      apply.disabled = false;
      apply.textContent = `Split into ${parts.length}`;
      apply.focus();
      dialog.redraw();
    }

    async function part(rows, place) {
      const title = place === 0 ? `${className(id)} keeps` : "New class";
      const label = place === 0 ? "Name of the first part" : `Name of part ${place + 1}`;
      const field = h("input", { type: "text", maxlength: 200, placeholder: place === 0 ? className(id) : "Name it, or later", "aria-label": label, spellcheck: "false" });
      field.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), apply.click()));
      const head = h("div", { class: "part" }, h("p", {}, h("strong", {}, title), h("span", { class: "muted" }, ` ${count(rows.length, "item")}`)), field);
      if (store.about.pictures) return h("section", {}, head, h("canvas", { class: "sheet", "aria-hidden": "true" }));
      const items = await get(`/api/items?rows=${rows.slice(0, 6).join(",")}`);
      const line = (item) => h("li", {}, h("strong", {}, item.id), h("span", { class: "muted" }, ` ${inWords(item, 3).join(", ")}`));
      const apart = telling[place].length > 0 && h("ul", { class: "chips" }, telling[place].map((text) => h("li", {}, text)));
      return h("section", {}, head, apart, h("ul", {}, items.map(line)));
    }

    dialog.redraw = () => box.querySelectorAll("canvas").forEach((canvas, i) => mosaic(canvas, parts?.[i] ?? [], 12, 2));
    for (const number of [2, 3, 4, 5, 6]) {
      numbers.append(h("button", { type: "button", onclick: () => preview(number) }, String(number)));
    }
    dialog.classList.add("wide");
    const cancel = h("button", { type: "button", onclick: () => close() }, "Cancel");
    dialog.append(h("p", { class: "muted" }, "How many parts?"), numbers, box, h("div", { class: "ends" }, cancel, apply));
    preview(2);
  });
}

export function exportDialog() {
  const { new: all, reviewed } = store.state.items;
  return open("Export", (dialog, close) => {
    const names = {
      csv: "CSV: one line for each item",
      npz: "NumPy archive, with features",
      folders: "A folder of images for each class",
      coco: "COCO annotations",
      "label-studio": "Label Studio tasks",
      fiftyone: "FiftyOne data set",
      parquet: "Parquet",
    };
    const options = store.about.formats.map((kind) => h("option", { value: kind }, names[kind] ?? kind));
    const format = h("select", { "aria-label": "Format" }, options);
    const result = h("p", { class: "result", role: "status" });
    const go = h("button", { type: "button", class: "primary" }, "Export");
    go.addEventListener("click", async () => {
      go.disabled = true;
      result.textContent = "Writing…";
      try {
        const { written } = await post("/api/export", { format: format.value });
        result.textContent = `Written: ${written}`;
        result.dataset.written = written;
      } catch (error) {
        result.textContent = error.message;
      }
      go.disabled = false;
    });
    const progress = `${percent(all ? reviewed / all : 1)} of ${count(all, "new item")} are reviewed. The original result is not changed.`;
    const done = h("button", { type: "button", onclick: () => close() }, "Close");
    dialog.append(h("p", { class: "muted" }, progress), format, result, h("div", { class: "ends" }, done, go));
  });
}

const KEYS = [
  ["arrows", "go through classes or items"],
  ["enter", "open a class, or see a picture large"],
  ["space", "select; with shift and arrows, a range"],
  ["n", "name the class"],
  ["t", "take the suggested name"],
  ["a", "mark it as reviewed, go to the next"],
  ["k", "it is a known class"],
  ["m", "merge"],
  ["s", "split"],
  ["v", "move the selected items"],
  ["x", "reject the selected items"],
  ["y, n", "answer a question; y confirms a large item"],
  ["f", "show items similar to this one"],
  ["u, r", "undo, redo"],
  ["/", "search"],
  ["esc", "back"],
  ["?", "these keys"],
];

export function helpDialog() {
  return open("Keys", (dialog, close) => {
    const list = KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]);
    const { summary, titles } = store.about;
    const about = Object.entries(summary).map(([key, text]) => [h("dt", {}, titles[key]), h("dd", {}, text)]);
    dialog.classList.add("wide");
    dialog.append(h("dl", { class: "keys" }, list));
    if (about.length) dialog.append(h("h3", {}, "About this run"), h("dl", { class: "about" }, about));
    dialog.append(h("div", { class: "ends" }, h("button", { type: "button", class: "primary", onclick: () => close() }, "Close")));
  });
}
