// One item over the whole window: its picture with zoom, or its whole row, and what can be done with it.

import { confirm, move, reject } from "./actions.js";
import { get } from "./api.js";
import { h, percent } from "./dom.js";
import { infos, pictureAddress, signed } from "./loader.js";
import { className, store } from "./store.js";

const MOST = 12; // largest zoom
const SWIPE = 60; // pixels
const PIXELS = 2; // zoom from which a small picture shows them

/** `rows`: what the arrows go through; `moved(row)`: called with the row that is shown. */
export function openViewer(rows, at, moved = () => {}) {
  const picture = h("img", { alt: "", draggable: "false" });
  const table = h("div", { class: "row" });
  const stage = h("div", { class: "stage" }, store.about.pictures ? picture : table);
  const title = h("strong", { class: "id" });
  const facts = h("span", { class: "muted" });
  const place = h("span", { class: "muted" });
  const button = (text, key, run, label = null) =>
    h("button", { type: "button", onclick: run, "aria-keyshortcuts": key, "aria-label": label }, text, label ? null : h("kbd", {}, key));
  let view = { scale: 1, x: 0, y: 0 };
  const pointers = new Map();
  let start = null;

  const row = () => rows[at];
  const step = (by) => {
    at = Math.max(0, Math.min(at + by, rows.length - 1));
    view = { scale: 1, x: 0, y: 0 };
    show();
  };
  let deciding = false; // until a decision is written the same item is shown: a second key would decide on it again
  const decide = async (work) => {
    if (deciding) return;
    deciding = true;
    const mine = row();
    try {
      if ((await work([mine])) && row() === mine) step(1);
    } finally {
      deciding = false;
    }
  };
  const actions = {
    y: () => decide(confirm),
    x: () => decide(reject),
    v: () => decide(move),
    f: () => (location.hash = `#/similar/${row()}`),
  };
  const bar = h(
    "div",
    { class: "tools", role: "toolbar", "aria-label": "This item" },
    button("Confirm", "y", actions.y),
    button("Reject", "x", actions.x),
    button("Move…", "v", actions.v),
    button("Similar", "f", actions.f),
  );
  const zooms = h(
    "div",
    { class: "zooms" },
    button("−", "-", () => zoom(1 / 1.5), "Zoom out"),
    button("+", "+", () => zoom(1.5), "Zoom in"),
  );
  zooms.hidden = !store.about.pictures;
  const previous = button("‹", "ArrowLeft", () => step(-1), "Previous item");
  const next = button("›", "ArrowRight", () => step(1), "Next item");
  const close = button("×", "Escape", () => dialog.close(), "Close");
  const dialog = h(
    "dialog",
    { class: "viewer", "aria-label": "Item" },
    h("header", {}, h("div", { class: "about" }, title, facts), place, zooms, close),
    h("div", { class: "middle" }, previous, stage, next),
    bar,
  );

  /** Of a small picture, zoom shows the pixels. */
  function place_() {
    picture.classList.toggle("pixels", view.scale >= PIXELS && Math.max(picture.naturalWidth, picture.naturalHeight) <= 64);
    picture.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`;
  }

  function zoom(by, x = 0, y = 0) {
    const scale = Math.max(1, Math.min(MOST, view.scale * by));
    const real = scale / view.scale;
    view = scale === 1 ? { scale: 1, x: 0, y: 0 } : { scale, x: x - (x - view.x) * real, y: y - (y - view.y) * real };
    place_();
  }

  function describe() {
    infos.want([row()]);
    const info = infos.get(row());
    title.textContent = info?.id ?? "…";
    facts.textContent = info ? `${className(info.class)} · ${info.by_hand ? "placed by a person" : `${percent(info.confidence)} confidence`}` : "";
    const fixed = info ? !info.new : true;
    bar.querySelectorAll("button").forEach((one) => (one.disabled = fixed && one.getAttribute("aria-keyshortcuts") !== "f"));
  }

  async function show() {
    const mine = row();
    place.textContent = `${(at + 1).toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
    previous.disabled = at === 0;
    next.disabled = at === rows.length - 1;
    if (document.activeElement?.disabled || document.activeElement === document.body) stage.focus();
    describe();
    moved(mine);
    place_();
    if (!store.about.pictures) {
      const { columns, text } = await get(`/api/row/${mine}`).catch(() => ({ columns: [], text: "" }));
      if (mine !== row()) return;
      table.replaceChildren(...(text ? [h("p", { class: "text" }, text)] : []), h("dl", {}, columns.flatMap((one) => [h("dt", {}, one.column), h("dd", {}, `${one.value} (${signed(one.deviations)} σ)`)])));
      return;
    }
    const address = await pictureAddress(mine).catch(() => null);
    if (mine !== row()) return;
    picture.hidden = !address;
    if (address) picture.src = address;
    if (at + 1 < rows.length) pictureAddress(rows[at + 1]).catch(() => {});
  }

  stage.tabIndex = 0;
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", "Picture; plus and minus zoom, arrows go to other items");
  if (!store.about.pictures) stage.setAttribute("aria-label", "Columns of the item");
  const center = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
  };
  stage.addEventListener("wheel", (event) => (event.preventDefault(), zoom(Math.exp(-event.deltaY / 300), ...center(event))), { passive: false });
  stage.addEventListener("dblclick", (event) => zoom(view.scale > 1 ? 0.001 : 3, ...center(event)));
  stage.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size === 1) start = [event.clientX, event.clientY];
    else start = null;
  });
  stage.addEventListener("pointermove", (event) => {
    const was = pointers.get(event.pointerId);
    if (!was) return;
    const now = [event.clientX, event.clientY];
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]);
      zoom(apart(now) / Math.max(1, apart(was)), ...center(event));
    } else if (view.scale > 1) {
      view = { ...view, x: view.x + now[0] - was[0], y: view.y + now[1] - was[1] };
      place_();
    }
    pointers.set(event.pointerId, now);
  });
  const up = (event) => {
    pointers.delete(event.pointerId);
    if (event.type === "pointerup" && start && view.scale === 1 && store.about.pictures) {
      const far = event.clientX - start[0];
      if (Math.abs(far) > SWIPE) step(far < 0 ? 1 : -1);
    }
    start = null;
  };
  for (const kind of ["pointerup", "pointercancel", "pointerleave"]) stage.addEventListener(kind, up);
  const KEYS = {
    ...actions,
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    Home: () => step(-Infinity),
    End: () => step(Infinity),
    "+": () => zoom(1.5),
    "-": () => zoom(1 / 1.5),
    0: () => zoom(0.001),
  };
  dialog.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  const off = infos.listen(describe);
  dialog.addEventListener("close", () => {
    off();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  stage.focus();
  show();
}
