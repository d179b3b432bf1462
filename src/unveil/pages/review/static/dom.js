// Elements and announcements. Texts become text nodes: no name is ever read as markup.

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

const HIDDEN = /[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0]/g;

/** A name of the data with its invisible characters made visible: two names must not look the same. */
export const seen = (text) => text.replace(HIDDEN, (one) => `⟨${one.codePointAt(0).toString(16).padStart(4, "0")}⟩`);

export const byId = (id) => document.getElementById(id);

export function announce(text) {
  byId("live").textContent = "";
  requestAnimationFrame(() => (byId("live").textContent = text));
}

export function toast(text, { bad = false, action = null } = {}) {
  const note = h("div", { class: bad ? "toast bad" : "toast", role: bad ? "alert" : "presentation" }, h("span", {}, text));
  if (action) {
    const act = () => (note.remove(), action.run());
    note.append(h("button", { type: "button", onclick: act }, action.text));
  }
  byId("toasts").replaceChildren(note);
  if (!bad) announce(text);
  setTimeout(() => note.remove(), bad ? 8000 : 5000);
}

export const percent = (share) => `${Math.round(100 * share)} %`;
export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export function typing(event) {
  const at = event.target;
  return at instanceof HTMLInputElement || at instanceof HTMLSelectElement || at instanceof HTMLTextAreaElement;
}
