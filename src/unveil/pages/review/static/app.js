// The page: which view is shown, what holds for all of them, and the keys.

import { get, redo, refresh, signIn, undo } from "./api.js";
import { classItems } from "./class.js";
import { exportDialog, helpDialog } from "./dialogs.js";
import { byId, h, percent, seen, typing } from "./dom.js";
import { gallery } from "./gallery.js";
import { duplicateItems, rejectedItems, similarItems } from "./lists.js";
import { mapView } from "./map.js";
import { queueView } from "./queue.js";
import { listen, store } from "./store.js";

let view = null;
let behind = "#/";

const VIEWS = [
  [/^#\/class\/(\d+)$/, (id) => classItems(Number(id)), "gallery"],
  [/^#\/similar\/(\d+)$/, (row) => similarItems(Number(row)), "gallery"],
  [/^#\/rejected$/, rejectedItems, "gallery"],
  [/^#\/duplicates$/, duplicateItems, "duplicates"],
  [/^#\/questions$/, queueView, "queue"],
  [/^#\/map$/, mapView, "map"],
  [/^#\/$|^$/, gallery, "gallery"],
];

function show() {
  const [pattern, make, tab] = VIEWS.find(([wanted]) => wanted.test(location.hash)) ?? VIEWS.at(-1);
  view?.leave?.();
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  byId("selection").hidden = true;
  document.body.classList.toggle("filled", pattern !== VIEWS.at(-1)[0]);
  view = make(...(pattern.exec(location.hash) ?? []).slice(1));
  byId("main").replaceChildren(view.node);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view.shown?.();
}

function frame(state) {
  const { new: all, reviewed } = state.items;
  byId("meter").value = all ? reviewed / all : 1;
  byId("reviewed").textContent = `${percent(all ? reviewed / all : 1)} reviewed`;
  for (const word of ["undo", "redo"]) {
    byId(word).disabled = !state[word];
    byId(word).title = state[word] ? `${word} ${state[word]} (${word[0]})` : `nothing to ${word}`;
  }
}

/** Similar items lie behind the view that they were asked for in; everything else lies behind the classes. */
const deep = (hash) => hash.startsWith("#/similar");

function back() {
  if (location.hash === "" || location.hash === "#/") return;
  location.hash = deep(location.hash) ? behind : "#/";
}

/** The focus never falls to the page itself, where keys would act on something nobody sees. */
function keepFocus() {
  const at = document.activeElement;
  if ((at === document.body || at === null) && !document.querySelector("dialog[open]")) view?.focus?.();
}

const KEYS = { u: undo, r: redo, "?": helpDialog, Escape: back };

function pressed(event) {
  if (document.querySelector("dialog[open]")) return;
  if (typing(event)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
    event.preventDefault();
    (event.shiftKey ? redo : undo)();
    return;
  }
  if (view?.key?.(event)) {
    event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    if (byId("search")) return byId("search").focus();
    window.addEventListener("hashchange", () => byId("search")?.focus(), { once: true });
    location.hash = "#/";
  } else if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
}

async function begin() {
  await signIn();
  store.about = await get("/api/about");
  byId("run").textContent = seen(store.about.run);
  document.title = `${store.about.run} · unveil review`;
  listen(frame);
  await refresh();
  byId("undo").addEventListener("click", undo);
  byId("redo").addEventListener("click", redo);
  byId("help").addEventListener("click", helpDialog);
  byId("export").addEventListener("click", exportDialog);
  window.addEventListener("hashchange", (event) => {
    const old = new URL(event.oldURL).hash;
    if (!deep(old)) behind = old || "#/";
    show();
  });
  window.addEventListener("keydown", pressed);
  new MutationObserver(keepFocus).observe(document.body, { childList: true, subtree: true });
  // another tab may have gone on
  window.addEventListener("focus", () => refresh().catch(() => {}));
  show();
  document.body.dataset.ready = "yes";
}

// a second link was opened in this window
window.addEventListener("hashchange", () => location.hash.startsWith("#open=") && location.reload());

begin().catch((error) => byId("main").replaceChildren(h("p", { class: "empty" }, `The page cannot be shown: ${error.message}`)));
