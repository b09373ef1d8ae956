// The hub as the pages see it: requests, the login, and the one stream of the tab.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { t } from "./i18n";

const base = "/console/";

export interface Missing { verb: string; group?: string; resource: string; namespace?: string; everywhere?: boolean; role?: string; cluster?: string }

/** HubError is an error with the hub's own sentence. */
export class HubError extends Error {
  constructor(message: string, readonly code: number, readonly missing?: Missing) { super(message); }
}

/** call sends a request of the console. Its header is what a page of another origin cannot send. */
export async function call(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(base + path, {
      ...init, credentials: "same-origin", redirect: "error",
      headers: { "X-Argosy-Console": "1", ...(init.body ? { "Content-Type": "application/json" } : {}), ...init.headers },
    });
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new HubError(t.error.network, 0);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  if (response.status === 401 && path !== "session") session.end();
  throw new HubError(body.message || `${response.status} ${response.statusText}`, response.status, body.missing);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await call(path, { signal })).json();
}

export interface Me { user: string; groups: string[]; ends?: string; master?: boolean; join: boolean }

type Listener = () => void;

/** Source notifies its listeners. */
class Source {
  private listeners = new Set<Listener>();
  listen(f: Listener): () => void { this.listeners.add(f); return () => { this.listeners.delete(f); }; }
  changed() { for (const f of [...this.listeners]) f(); }
}

/**
 * useSource draws the component again when the source changes. An effect after the next paint would miss changes before
 * it: a hub on the same machine answers sooner than that.
 */
export function useSource(source: Source) {
  const [, set] = useState(0);
  useLayoutEffect(() => source.listen(() => set((n) => n + 1)), [source]);
}

/** draftPrefix is that of the texts which a tab keeps while they are edited. */
export const draftPrefix = "argosy-draft:";

class Session extends Source {
  /** me is undefined before the first answer, and null without a login. */
  me: Me | null | undefined = undefined;
  /** over is true when a login ended while pages were open. */
  over = false;
  error = "";
  private touched = 0;
  private timer?: number;

  async load() {
    try {
      this.me = await get<Me>("api/me");
      this.over = false;
      this.error = "";
      stream.start();
      this.used();
    } catch (e) {
      const error = e as HubError;
      if (error.code === 401) this.me = this.me ?? null;
      else this.error = error.message;
    }
    this.changed();
  }

  async logIn(body: { token?: string; code?: string }) {
    await call("session", { method: "POST", body: JSON.stringify(body) });
    await this.load();
  }

  async logOut() {
    await call("session", { method: "DELETE" });
    stream.stop();
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(draftPrefix)) sessionStorage.removeItem(key);
    location.assign(base);
  }

  end() {
    if (this.me) { this.over = true; stream.stop(); this.changed(); }
  }

  /** used prolongs the login: now, or five minutes after it was prolonged. */
  used() {
    if (this.timer) return;
    this.timer = window.setTimeout(() => {
      this.timer = undefined;
      if (!this.me || this.over) return;
      this.touched = Date.now();
      call("session", { method: "PUT" }).catch(() => this.load());
    }, Math.max(0, this.touched + 300_000 - Date.now()));
  }
}

export interface Topic {
  rows: Map<string, any>;
  totals: any;
  missing: Missing[];
  at: number;
  loaded: boolean;
  version: number;
}

const empty = (): Topic => ({ rows: new Map(), totals: null, missing: [], at: 0, loaded: false, version: 0 });

/** Stream keeps the topics of this tab up to date by one connection. */
class Stream extends Source {
  topics = new Map<string, Topic>();
  state: "connecting" | "live" | "lost" = "connecting";
  lostAt = 0;
  heard = 0;
  message = "";
  private wanted = ["fleet"];
  private abort?: AbortController;
  private wait = 500;
  private timer?: number;

  topic(name: string): Topic {
    let topic = this.topics.get(name);
    if (!topic) this.topics.set(name, topic = empty());
    return topic;
  }

  /** want selects the topics beside the fleet, which the rail needs on every page. */
  want(names: string[]) {
    const next = ["fleet", ...names.filter((n) => n !== "fleet")];
    if (next.join() === this.wanted.join()) return;
    this.wanted = next;
    if (this.abort) this.start();
  }

  stop() { clearTimeout(this.timer); this.abort?.abort(); this.abort = undefined; }

  start() {
    this.stop();
    const abort = this.abort = new AbortController();
    this.read(abort).catch(() => { /* read reports its errors */ });
  }

  private async read(abort: AbortController) {
    try {
      const response = await call("api/stream?topics=" + this.wanted.join(), { signal: abort.signal });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        rest += value;
        const events = rest.split("\n\n");
        rest = events.pop()!;
        for (const event of events) this.event(event);
        if (events.length) this.changed();
      }
      this.wait = 200;
    } catch (e) {
      if (abort.signal.aborted) return;
      this.message = (e as Error).message;
      if ((e as HubError).code === 401) return;
      if (this.state !== "lost") { this.state = "lost"; this.lostAt = Date.now(); }
      this.changed();
      this.wait = Math.min(this.wait * 2, 10_000);
    }
    if (!abort.signal.aborted) this.timer = window.setTimeout(() => this.start(), this.wait);
  }

  private event(text: string) {
    const line = text.indexOf("\n");
    const kind = text.slice(7, line), body = JSON.parse(text.slice(line + 7));
    this.heard = Date.now();
    this.state = "live";
    if (kind === "error") { this.message = body.message; return; }
    if (kind === "tick") return;
    this.message = "";
    const topic = this.topic(body.topic);
    if (kind === "snapshot") topic.rows = new Map();
    for (const [key, row] of body.rows) topic.rows.set(key, row);
    for (const key of body.gone ?? []) topic.rows.delete(key);
    topic.totals = body.beside.totals;
    topic.missing = body.beside.missing ?? [];
    topic.at = body.at;
    topic.loaded = true;
    topic.version++;
  }
}

export const stream = new Stream();
export const session = new Session();

/** useTopic subscribes the page to a topic, and to others that it reads beside it. */
export function useTopic(name: string, ...others: string[]): Topic {
  useSource(stream);
  useEffect(() => stream.want([name, ...others]), [name]);
  return stream.topic(name);
}

for (const event of ["pointerdown", "keydown", "wheel", "popstate"]) addEventListener(event, () => session.used(), { passive: true });
