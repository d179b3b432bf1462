// Talking to the server. Actions go one after the other, each with the length of the log that it was chosen at.

import { byId, count, h, toast } from "./dom.js";
import { put, store } from "./store.js";

const KEY = "unveil-key"; // in the storage of this origin, which no other port can read
const AGAIN = 3000;

/** Trade the code of the link for the key of a session. */
export async function signIn() {
  const code = /^#open=([\w-]+)$/.exec(location.hash)?.[1];
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/api/session", { method: "POST", headers, body: JSON.stringify({ code }) });
  if (answer.ok) localStorage.setItem(KEY, (await answer.json()).key);
}

async function asked(path, options = {}) {
  const headers = { ...options.headers, "X-Unveil-Key": localStorage.getItem(KEY) ?? "" };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    trouble("server", "The server does not answer: start `unveil review` again, or check the connection.");
    throw Object.assign(new Error("the server does not answer"), { status: 0, trouble: "server" });
  }
  if (response.ok) {
    calm(path);
    return response;
  }
  const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (answer.trouble) trouble(answer.trouble, answer.error);
  throw Object.assign(new Error(answer.error), { status: response.status, trouble: answer.trouble });
}

export const fetched = (path) => asked(path);
export const get = async (path) => (await fetched(path)).json();

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return (await asked(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/** What others did in the meantime; nothing moves where nothing changed. */
export async function refresh() {
  const state = await get("/api/state");
  if (state.length !== store.state?.length) put(state);
}

// What went wrong stays on the page until it is over, and actions that could not be saved wait for that.

const ENDS = { server: /./, session: /./, missing: /state|action/, log: /state|action|log/, "read-only": /action|undo|redo/ };
const TITLES = {
  server: "Server gone",
  session: "Not signed in",
  missing: "Run missing",
  log: "Log missing",
  "read-only": "Nothing can be saved",
};
let current = null;
let timer = 0;
const waiting = [];

function trouble(kind, message) {
  if (current?.kind === "server" && kind !== "server") current = null;
  current = { kind, message };
  clearTimeout(timer);
  if (kind === "server" || kind === "missing") timer = setTimeout(() => again(false), AGAIN);
  banner();
}

function calm(path) {
  if (!current || !ENDS[current.kind].test(path)) return;
  current = null;
  clearTimeout(timer);
  banner();
}

function banner() {
  const box = byId("trouble");
  box.hidden = !current;
  if (!current) return box.replaceChildren();
  const button = (text, run) => h("button", { type: "button", onclick: run }, text);
  const log = current.kind === "log";
  box.replaceChildren(
    h("strong", {}, TITLES[current.kind]),
    h("span", {}, ` ${current.message}`, waiting.length ? ` ${count(waiting.length, "action")} not saved yet: ${waiting.map((one) => one.message).join(", ")}.` : ""),
    log && button("Write it again", () => logAgain("restore")),
    log && button("Begin without it", () => logAgain("forget")),
    !log && current.kind !== "session" && button("Retry", () => again(true)),
  );
}

async function logAgain(what) {
  try {
    put(await post("/api/log", { do: what }));
    await again(true);
  } catch (error) {
    toast(error.message, { bad: true });
  }
}

/** Ask again; then send what waits. Only a person sends again to a disk that could not be written. */
async function again(byPerson) {
  try {
    await refresh();
  } catch {
    return;
  }
  if (current?.kind === "read-only" && !byPerson) return;
  const actions = waiting.splice(0);
  banner();
  for (const one of actions) await act(one.kind, one.data, one.message);
}

let last = Promise.resolve();

function queued(work) {
  const next = last.then(work).catch(async (error) => {
    toast(error.message, { bad: true });
    if (error.status === 409) await refresh().catch(() => {});
    return false;
  });
  last = next;
  return next;
}

/** Send an action, say what was done and offer to undo it. Resolves to whether it was done. */
export function act(kind, data, message) {
  return queued(async () => {
    try {
      put(await post("/api/action", { ...data, kind, base: store.state.length }));
    } catch (error) {
      if (error.trouble) {
        waiting.push({ kind, data, message });
        banner();
      }
      throw error;
    }
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
