// What the server says, and who wants to hear of it.

import { seen } from "./dom.js";

export const store = { about: null, state: null, byId: new Map() };
const listeners = new Set();

export function listen(call) {
  listeners.add(call);
  return () => listeners.delete(call);
}

export function put(state) {
  store.state = state;
  for (const one of state.classes) [one.name, one.own] = [seen(one.name), seen(one.own)];
  store.byId = new Map(state.classes.map((one) => [one.id, one]));
  for (const call of [...listeners]) call(state);
}

export const className = (id) => (id === -1 ? "rejected" : (store.byId.get(id)?.name ?? "gone"));
export const clusters = () => store.state.classes.filter((one) => one.novel);
export const knownClasses = () => store.state.classes.filter((one) => !one.novel);
export const mostConfidentFirst = (a, b) => b.confidence - a.confidence || b.size - a.size || a.id - b.id;
