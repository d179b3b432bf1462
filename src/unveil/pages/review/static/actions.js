// What can be done to classes and items, wherever it is asked for.

import { act } from "./api.js";
import { pick, splitDialog } from "./dialogs.js";
import { count, h, toast } from "./dom.js";
import { className, clusters, knownClasses, store, mostConfidentFirst } from "./store.js";

const one = (id) => store.byId.get(id);
const MANY = 5; // classes in a sentence

export function name(id, text) {
  if (!text.trim() || text.trim() === one(id)?.name) return Promise.resolve(false);
  return act("name", { cluster: id, text }, `Named ${text.trim()}`);
}

export function accept(id) {
  const reviewed = !one(id).reviewed;
  return act("accept", { cluster: id, reviewed }, `${className(id)}: ${reviewed ? "reviewed" : "to review"}`);
}

export async function known(id) {
  if (!onlyClusters([id])) return;
  const none = one(id).known === null ? [] : [{ id: null, name: "not a known class after all", size: null, typical: [] }];
  const chosen = await pick(`${className(id)} is the known class…`, [...none, ...knownClasses()]);
  if (chosen) await act("known", { cluster: id, class: chosen.id }, `${one(id).own} is ${chosen.id === null ? "a new class" : chosen.name}`);
}

export async function merge(ids) {
  if (!onlyClusters(ids)) return false;
  let all = ids;
  if (ids.length === 1) {
    const others = clusters().filter((other) => other.id !== ids[0]).sort(mostConfidentFirst);
    const chosen = await pick(`Merge ${className(ids[0])} with…`, others);
    if (!chosen) return false;
    all = [...ids, chosen.id];
  }
  const names = all.length > MANY ? count(all.length, "class", "classes") : all.map(className).join(" and ");
  return act("merge", { clusters: all }, `Merged ${names}`);
}

export async function split(id) {
  if (!onlyClusters([id])) return;
  const parts = await splitDialog(id);
  if (parts) await act("split", { cluster: id, parts }, `Split ${className(id)} into ${parts.length}`);
}

export async function move(rows) {
  const targets = store.state.classes.filter((target) => target.novel).sort(mostConfidentFirst);
  const chosen = await pick(`Move ${count(rows.length, "item")} to…`, [...targets, ...knownClasses()], { create: true });
  if (!chosen) return false;
  if (chosen.id !== undefined) return act("move", { rows, to: chosen.id }, `Moved ${count(rows.length, "item")} to ${chosen.name}`);
  const text = chosen.text ? { text: chosen.text } : {};
  return act("move", { rows, to: null, ...text }, `Moved ${count(rows.length, "item")} to a new class`);
}

export const reject = (rows) => act("reject", { rows }, `Rejected ${count(rows.length, "item")}`);

function onlyClusters(ids) {
  const fixed = ids.find((id) => !one(id)?.novel);
  if (fixed === undefined) return true;
  toast(`${className(fixed)} is a known class: only clusters can be changed`, { bad: true });
  return false;
}

/** A name that turns into a field: click it, or press n. */
export function nameField(id, tag = "h3") {
  const button = h("button", { type: "button", class: "name", title: "Rename (n)" }, className(id));
  const holder = h(tag, { class: "holder" }, button);
  const fixed = !one(id).novel;
  if (fixed) button.disabled = true;

  function edit() {
    if (fixed || holder.contains(document.activeElement?.closest?.("input") ?? null)) return;
    const input = h("input", { class: "name", value: className(id), maxlength: 200, "aria-label": "Name of the class", spellcheck: "false" });
    let done = false;
    const end = async (keep) => {
      if (done) return;
      done = true;
      const text = input.value;
      input.replaceWith(button);
      if (document.activeElement === document.body) (holder.closest(".card") ?? document.querySelector(".grid"))?.focus({ preventScroll: true });
      if (keep) await name(id, text);
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault(); // or the key would press what has the focus next
      end(event.key === "Enter");
    });
    input.addEventListener("blur", () => end(true));
    input.addEventListener("click", (event) => event.stopPropagation());
    button.replaceWith(input);
    input.focus();
    input.select();
  }

  button.addEventListener("click", (event) => (event.stopPropagation(), edit()));
  holder.edit = edit;
  holder.update = () => (button.textContent = className(id));
  return holder;
}
