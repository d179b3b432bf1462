// What can be done to classes and items, wherever it is asked for.

import { act, get, post } from "./api.js";
import { mergeDialog, pick, splitDialog } from "./dialogs.js";
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

/** All classes by their similarity to a class or to items. */
async function cosines(query) {
  const { classes } = await post("/api/nearest", query).catch(() => ({ classes: [] }));
  return new Map(classes.map((one) => [one.id, one.cosine]));
}

function bySimilarity(choices, similar) {
  const far = -2;
  const sorted = choices.map((one) => ({ ...one, cosine: similar.get(one.id) }));
  return sorted.sort((a, b) => (b.cosine ?? far) - (a.cosine ?? far) || mostConfidentFirst(a, b));
}

export function isKnown(id, known) {
  return act("known", { cluster: id, class: known }, `${one(id).own} is ${known === null ? "a new class" : className(known)}`);
}

export async function known(id) {
  if (!onlyClusters([id])) return;
  const none = one(id).known === null ? [] : [{ id: null, name: "not a known class after all", size: null, typical: [] }];
  const sorted = bySimilarity(knownClasses(), await cosines({ cluster: id }));
  const chosen = await pick(`${className(id)} is the known class…`, [...none, ...sorted]);
  if (chosen) await isKnown(id, chosen.id);
}

export async function merge(ids) {
  if (!onlyClusters(ids)) return false;
  let all = ids;
  if (ids.length === 1) {
    const others = clusters().filter((other) => other.id !== ids[0]);
    const chosen = await pick(`Merge ${className(ids[0])} with…`, bySimilarity(others, await cosines({ cluster: ids[0] })));
    if (!chosen) return false;
    all = [...ids, chosen.id];
  }
  if (!(await mergeDialog(all.map(one)))) return false;
  const names = all.length > MANY ? count(all.length, "class", "classes") : all.map(className).join(" and ");
  return act("merge", { clusters: all }, `Merged ${names}`);
}

/** Split a class, then name the parts that were given names. */
export async function split(id) {
  if (!onlyClusters([id])) return false;
  const answer = await splitDialog(id);
  if (!answer) return false;
  const before = new Set(store.byId.keys());
  if (!(await act("split", { cluster: id, parts: answer.parts }, `Split ${className(id)} into ${answer.parts.length}`))) return false;
  const fresh = [...store.byId.keys()].filter((other) => !before.has(other)).sort((a, b) => a - b);
  for (const [place, part] of [id, ...fresh].entries()) await name(part, answer.names[place] ?? "");
  return true;
}

export async function move(rows) {
  const similar = await cosines({ rows: rows.slice(0, 2000) });
  const chosen = await pick(`Move ${count(rows.length, "item")} to…`, bySimilarity([...store.state.classes], similar), { create: true });
  if (!chosen) return false;
  if (chosen.id !== undefined) return act("move", { rows, to: chosen.id }, `Moved ${count(rows.length, "item")} to ${chosen.name}`);
  const text = chosen.text ? { text: chosen.text } : {};
  return act("move", { rows, to: null, ...text }, `Moved ${count(rows.length, "item")} to a new class`);
}

export const reject = (rows) => act("reject", { rows }, `Rejected ${count(rows.length, "item")}`);
export const restore = (rows) => act("restore", { rows }, `Restored ${count(rows.length, "item")}`);

/** A person says that items are where they belong: they are moved to the class they are in. */
export async function confirm(rows) {
  const items = await get(`/api/items?rows=${rows.slice(0, 64).join(",")}`);
  const to = items[0].class;
  if (to < 0 || items.some((item) => item.class !== to)) return false;
  return act("move", { rows, to }, `Confirmed ${count(rows.length, "item")}`);
}

/** The ids and labels of items as a file. */
export async function saveList(rows) {
  try {
    const { csv } = await post("/api/list", { rows });
    const address = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    h("a", { href: address, download: "selection.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    toast(`Saved ${count(rows.length, "item")} as selection.csv`);
  } catch (error) {
    toast(error.message, { bad: true });
  }
}

function onlyClusters(ids) {
  const fixed = ids.find((id) => !one(id)?.novel);
  if (fixed === undefined) return true;
  toast(`${className(fixed)} is a known class: only clusters can be changed`, { bad: true });
  return false;
}

/** A name that turns into a field: click it, or press n. */
export function nameField(id, tag) {
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
      const lost = document.activeElement === document.body || document.activeElement === document.getElementById("main");
      if (lost) (holder.closest(".card") ?? document.querySelector(".grid"))?.focus({ preventScroll: true });
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
