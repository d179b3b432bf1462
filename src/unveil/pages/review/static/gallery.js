// All classes as cards, the most confident first.

import { accept, known, merge, nameField, split } from "./actions.js";
import { count, h, percent } from "./dom.js";
import { infos, inWords, mosaic, thumbs } from "./loader.js";
import { knownClasses, listen, clusters, store, mostConfidentFirst } from "./store.js";

const memory = { text: "", confidence: "all", status: "all", focus: null, selected: new Set(), order: [] };
export const CONFIDENCE = { all: [0, 1.01], high: [0.9, 1.01], middle: [0.7, 0.9], low: [0, 0.7] };

export function confidenceSelect(value, change) {
  const names = { all: "Any confidence", high: "90 % and more", middle: "70 to 90 %", low: "Below 70 %" };
  return select("Confidence", names, value, change);
}

export function select(label, names, value, change) {
  const options = Object.entries(names).map(([key, text]) => h("option", { value: key, selected: key === value }, text));
  return h("select", { "aria-label": label, onchange: (event) => change(event.target.value) }, options);
}

/** Cards stay where they are, whatever their confidence becomes; new ones come after the one that has the focus. */
function placed(classes) {
  const here = new Set(memory.order);
  const fresh = classes.filter((one) => !here.has(one.id)).sort(mostConfidentFirst);
  const after = memory.order.indexOf(memory.focus);
  memory.order.splice(after < 0 ? memory.order.length : after + 1, 0, ...fresh.map((one) => one.id));
  const place = new Map(memory.order.map((id, i) => [id, i]));
  return classes.sort((a, b) => place.get(a.id) - place.get(b.id));
}

/** The class that has the focus when the gallery is shown next. */
export const focusCard = (id) => (memory.focus = id);

/** The next class to review after this one, in the order of the cards; undefined where all are reviewed. */
export function nextToReview(id) {
  const all = placed(clusters());
  const at = all.findIndex((one) => one.id === id);
  return [...all.slice(at + 1), ...all.slice(0, Math.max(0, at))].find((one) => !one.reviewed)?.id;
}

function card(id) {
  const name = nameField(id, "h2");
  const canvas = h("canvas", { "aria-hidden": "true" });
  const words = h("ul", { class: "telling" });
  const meta = h("p", { class: "meta" });
  const badges = h("p", { class: "badges" });
  const bar = h("progress", { max: 1, "aria-label": "Mean confidence" });
  const node = h("article", { class: "card", tabindex: -1, "data-id": id }, store.about.pictures ? canvas : words, badges, name, meta, bar);
  const parts = { node, name, drawn: null };

  parts.update = () => {
    const one = store.byId.get(id);
    name.update();
    meta.textContent = `${count(one.size, "item")} · ${percent(one.confidence)} confidence`;
    bar.value = one.confidence;
    const marks = [
      one.reviewed && h("span", { class: "badge good" }, "✓ reviewed"),
      one.known !== null && h("span", { class: "badge" }, `known class, was ${one.own}`),
      !one.novel && one.new > 0 && h("span", { class: "badge" }, `${count(one.new, "new item")}`),
    ];
    badges.replaceChildren(...marks.filter(Boolean));
    node.setAttribute("aria-label", `${one.name}, ${meta.textContent}${one.reviewed ? ", reviewed" : ""}`);
    node.classList.toggle("selected", memory.selected.has(id));
    const key = one.typical.join();
    if (parts.drawn !== key) parts.drawn = null;
  };

  parts.paint = () => {
    const { typical } = store.byId.get(id);
    if (parts.drawn || !parts.visible) return;
    if (store.about.pictures) {
      canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
      if (mosaic(canvas, typical, 4, 2, 3)) parts.drawn = typical.join();
      return;
    }
    const shown = typical.slice(0, 3);
    infos.want(shown);
    const loaded = shown.map((row) => infos.get(row)).filter(Boolean);
    words.replaceChildren(...loaded.map((info) => h("li", {}, h("strong", {}, info.id), h("span", {}, inWords(info, 1).join()))));
    if (loaded.length === shown.length) parts.drawn = typical.join();
  };
  return parts;
}

export function gallery() {
  const cards = new Map();
  const search = h("input", { id: "search", type: "search", placeholder: "Search by name  /", "aria-label": "Search by name", value: memory.text });
  const status = select("Status", { all: "All classes", open: "To review", done: "Reviewed" }, memory.status, (value) => {
    memory.status = value;
    update();
  });
  const confidence = confidenceSelect(memory.confidence, (value) => {
    memory.confidence = value;
    update();
  });
  const chosen = h("div", { class: "chosen", hidden: true });
  const heading = h("h1", {});
  const intro = h("p", { class: "muted intro" });
  const warnings = h("ul", { class: "warnings", "aria-label": "Warnings of the run" }, store.about.warnings.map((text) => h("li", {}, text)));
  warnings.hidden = !store.about.warnings.length;
  const novel = h("section", { class: "cards", "aria-label": "Novel classes" });
  const fixed = h("section", { class: "cards small", "aria-label": "Known classes" });
  const fixedHead = h("h2", {}, "Known classes");
  const empty = h("p", { class: "empty", hidden: true });
  const rejected = h("a", { class: "rejected", href: "#/rejected" });
  const tools = h("div", { class: "toolbar" }, search, status, confidence, chosen);
  const node = h("div", { class: "gallery" }, heading, intro, warnings, tools, empty, novel, rejected, fixedHead, fixed);

  const visibility = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const one = cards.get(Number(entry.target.dataset.id));
        if (one) one.visible = entry.isIntersecting;
      }
      paint();
    },
    { rootMargin: "400px" },
  );

  const paint = () => cards.forEach((one) => one.node.isConnected && one.paint());

  function wanted(one) {
    const [low, high] = CONFIDENCE[memory.confidence];
    const text = memory.text.trim().toLowerCase();
    if (text && !one.name.toLowerCase().includes(text) && !one.own.toLowerCase().includes(text)) return false;
    if (memory.status !== "all" && one.reviewed !== (memory.status === "done")) return false;
    return one.confidence >= low && one.confidence < high;
  }

  function place(section, classes) {
    const nodes = classes.map(({ id }) => {
      if (!cards.has(id)) {
        cards.set(id, card(id));
        visibility.observe(cards.get(id).node);
      }
      cards.get(id).update();
      return cards.get(id).node;
    });
    const same = nodes.length === section.children.length && nodes.every((node, i) => node === section.children[i]);
    if (!same) section.replaceChildren(...nodes);
  }

  function update() {
    const all = clusters();
    const had = node.contains(document.activeElement) && document.activeElement.closest(".card") !== null;
    const index = order().findIndex((one) => Number(one.dataset.id) === memory.focus);
    memory.selected.forEach((id) => store.byId.has(id) || memory.selected.delete(id));
    for (const id of cards.keys()) {
      if (!store.byId.has(id)) cards.delete(id);
    }
    const shown = placed(all).filter(wanted);
    const others = knownClasses().filter(wanted);
    heading.textContent = all.length ? count(all.length, "novel class", "novel classes") : "No novel classes";
    place(novel, shown);
    place(fixed, others);
    fixedHead.hidden = !others.length;
    empty.hidden = shown.length > 0;
    const { rejected: out, items } = store.state;
    const reason = out >= items.new ? "Every new item was rejected." : "Every new item belongs to a known class or was rejected.";
    empty.textContent = all.length ? "No class matches this search." : out ? reason : "Every new item belongs to a known class.";
    intro.textContent = store.state.undo ? store.about.edited_headline : store.about.headline;
    rejected.hidden = !store.state.rejected;
    rejected.textContent = `${count(store.state.rejected, "rejected item")} ›`;
    picked();
    const lost = had && !node.contains(document.activeElement);
    const here = order().some((one) => Number(one.dataset.id) === memory.focus);
    if (lost && !here) memory.focus = Number(order()[Math.min(Math.max(0, index), order().length - 1)]?.dataset.id);
    point(memory.focus, lost);
    paint();
  }

  function picked() {
    const ids = [...memory.selected];
    chosen.hidden = !ids.length;
    const button = (text, run, off = false) => h("button", { type: "button", onclick: run, disabled: off }, text);
    chosen.replaceChildren(
      h("span", {}, `${ids.length} selected`),
      button("Merge", () => mergeSelected(), ids.length < 2),
      button("Clear", () => (memory.selected.clear(), update())),
    );
  }

  async function reviewed(id) {
    const next = store.byId.get(id).reviewed ? id : nextToReview(id);
    if (await accept(id)) point(next ?? id);
  }

  const order = () => [...node.querySelectorAll(".card")];
  const focused = () => Number(order().find((one) => one.tabIndex === 0)?.dataset.id ?? NaN);

  function point(id, move = true) {
    const nodes = order();
    const target = nodes.find((one) => Number(one.dataset.id) === id) ?? nodes[0];
    nodes.forEach((one) => (one.tabIndex = one === target ? 0 : -1));
    if (!target) return;
    if (move) {
      memory.focus = Number(target.dataset.id);
      target.focus();
    }
  }

  function toggle(id) {
    if (!store.byId.get(id).novel) return;
    if (!memory.selected.delete(id)) memory.selected.add(id);
    cards.get(id).update();
    picked();
  }

  async function mergeSelected() {
    const ids = memory.selected.size ? [...memory.selected] : [focused()];
    if (await merge(ids)) {
      memory.selected.clear();
      update();
      point(ids[0]);
    }
  }

  function step(by, line) {
    const nodes = order();
    const at = nodes.findIndex((one) => one.tabIndex === 0);
    if (at < 0) return;
    let next = at + by;
    if (line) {
      const here = nodes[at].getBoundingClientRect();
      const far = nodes
        .map((one, i) => [one.getBoundingClientRect(), i])
        .filter(([box]) => (by > 0 ? box.top > here.top + 8 : box.top < here.top - 8))
        .map(([box, i]) => [Math.abs(box.top - here.top) * 10 + Math.abs(box.left - here.left), i])
        .sort((a, b) => a[0] - b[0])[0];
      if (!far) return;
      next = far[1];
    }
    point(Number(nodes[Math.max(0, Math.min(next, nodes.length - 1))].dataset.id));
  }

  const open = (id) => (location.hash = `#/class/${id}`);

  node.addEventListener("click", (event) => {
    const at = event.target.closest(".card");
    if (!at) return;
    const id = Number(at.dataset.id);
    memory.focus = id;
    if (event.ctrlKey || event.metaKey || event.shiftKey) toggle(id);
    else open(id);
  });
  node.addEventListener("focusin", (event) => {
    const at = event.target.closest(".card");
    if (at) {
      memory.focus = Number(at.dataset.id);
      order().forEach((one) => (one.tabIndex = one === at ? 0 : -1));
    }
  });
  search.addEventListener("input", () => {
    memory.text = search.value;
    update();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      point(Number(order()[0]?.dataset.id));
    }
  });

  const offs = [listen(update), thumbs.listen(paint), infos.listen(paint)];
  const resized = () => (cards.forEach((one) => (one.drawn = null)), paint());
  window.addEventListener("resize", resized);
  let top = memory.top;
  const scrolled = () => node.isConnected && (top = document.scrollingElement.scrollTop);
  window.addEventListener("scroll", scrolled, { passive: true });
  const KEYS = {
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    ArrowDown: () => step(1, true),
    ArrowUp: () => step(-1, true),
    Enter: (id) => open(id),
    " ": toggle,
    n: (id) => cards.get(id).name.edit(),
    m: mergeSelected,
    s: split,
    k: known,
    a: reviewed,
    Escape: () => (memory.selected.clear(), update()),
  };
  return {
    node,
    shown: () => {
      update();
      point(memory.focus);
      if (memory.top !== undefined) document.scrollingElement.scrollTop = memory.top;
    },
    focus: () => point(memory.focus ?? focused()),
    leave: () => ((memory.top = top), offs.forEach((off) => off()), visibility.disconnect(), window.removeEventListener("resize", resized), window.removeEventListener("scroll", scrolled)),
    key: (event) => {
      const id = focused();
      if (event.ctrlKey || event.metaKey || event.altKey || Number.isNaN(id) || !KEYS[event.key]) return false;
      if (event.target === document.body || event.target.id === "main") {
        point(memory.focus ?? id); // nobody saw which card has the focus: show it first
        return true;
      }
      if (event.target instanceof HTMLButtonElement && (event.key === "Enter" || event.key === " ")) return false;
      if (event.target instanceof HTMLAnchorElement && event.key === "Enter") return false;
      KEYS[event.key](id);
      return true;
    },
  };
}
