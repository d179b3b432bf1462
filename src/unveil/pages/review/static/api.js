// Talking to the server. Actions go one after the other, each with the length of the log that it was chosen at.

import { toast } from "./dom.js";
import { put, store } from "./store.js";

async function answered(response) {
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  throw Object.assign(new Error(answer.error), { status: response.status });
}

export const fetched = async (path) => answered(await fetch(path));
export const get = async (path) => (await fetched(path)).json();

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return (await answered(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }))).json();
}

/** What others did in the meantime; nothing moves where nothing changed. */
export async function refresh() {
  const state = await get("/api/state");
  if (state.length !== store.state?.length) put(state);
}

let last = Promise.resolve();

function queued(work) {
  const next = last.then(work).catch(async (error) => {
    toast(error.message, { bad: true });
    if (error.status === 409) await refresh();
    return false;
  });
  last = next;
  return next;
}

/** Send an action, say what was done and offer to undo it. Resolves to whether it was done. */
export function act(kind, data, message) {
  return queued(async () => {
    put(await post("/api/action", { ...data, kind, base: store.state.length }));
    toast(message, { action: { text: "Undo", run: undo } });
    return true;
  });
}

const back = (path, word) => () =>
  queued(async () => {
    const kind = path === "/api/undo" ? store.state.undo : store.state.redo;
    if (!kind) {
      toast(`Nothing to ${word}`);
      return false;
    }
    put(await post(path, { base: store.state.length }));
    toast(`${word === "undo" ? "Undone" : "Done again"}: ${kind}`);
    return true;
  });

export const undo = back("/api/undo", "undo");
export const redo = back("/api/redo", "redo");
