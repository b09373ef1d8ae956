// The time line: what happened in the fleet, from the release history.
import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, HubError, useTopic, type Missing } from "./hub";
import { clock, day, fill, t } from "./i18n";
import { href, navigate, setFilter, usePlace } from "./route";
import { walkHref } from "./fleet";
import { Choice, Command, Failure, Filter, Forbidden, Icon, Mark, Page, Waiting } from "./ui";

type Class = keyof typeof t.eventClass;
interface Entry {
  id: string; at: string; class: Class; type: string; group?: string; kind: string; namespace?: string; name: string;
  stage?: string; cluster?: string; from?: Placed[]; to?: Placed[]; user?: string; manager?: string; reason?: string; message?: string;
}
interface Placed { name: string; replicas?: number }
interface Answer { entries: Entry[]; version?: string; same?: boolean; older?: string; notes?: string[]; missing?: Missing[]; off?: boolean }

const states: Record<string, string> = {
  FailedOver: "Attention", NotReady: "NotReady", Ready: "Healthy", Joined: "Healthy", Succeeded: "Healthy", Failed: "Problem", PodsFailed: "Problem",
  Passed: "Healthy", Rejected: "Problem", TimedOut: "Attention", RolledBack: "Attention", RollingBack: "Attention",
};

function linkOf(e: Entry): string | undefined {
  if (e.class === "releases") return href(["releases", e.namespace ?? "", e.name]);
  if (e.class === "clusters") return href(["clusters", e.name]);
  if (e.class === "moves" || e.class === "failovers") return walkHref(e);
}

/** placed lists clusters with their replicas. */
const placed = (list?: Placed[]) => list?.map((c) => (c.replicas ? `${c.name}:${c.replicas}` : c.name)).join(", ") || t.event.nowhere;

/** sentence describes an entry in the language of the page. What the hub wrote stays as it is. */
function sentence(e: Entry): string {
  const x = t.event as unknown as Record<string, string>;
  if (e.class !== "releases") return fill(x[e.type] ?? e.type, { from: placed(e.from), to: placed(e.to) });
  if (e.type === "Created") return x.Created;
  return [e.type, e.stage, e.reason].filter(Boolean).join(" · ");
}

/** chips are the clusters of an entry. */
function chips(e: Entry): string[] {
  const names = e.class === "clusters" ? [] : [e.cluster ?? "", ...[...(e.from ?? []), ...(e.to ?? [])].map((c) => c.name)];
  return [...new Set(names)].filter(Boolean);
}

function EntryRow({ e }: { e: Entry }) {
  const to = linkOf(e);
  const name = <><span class="kind">{e.kind}</span> {e.namespace ? <span class="ns">{e.namespace}/</span> : null}{e.name}</>;
  const shown = chips(e);
  return (
    <li class="item">
      <Mark state={states[e.class === "releases" ? e.reason ?? "" : e.type] ?? "Progressing"} />
      <div class="body">
        <p class="title">{to ? <a class="open" data-row href={to}>{name}</a> : <span data-row tabIndex={0}>{name}</span>}</p>
        <p class="what">{sentence(e)}{e.class !== "releases" && e.reason ? ` · ${e.reason}` : ""}{e.message ? ": " + e.message : ""}</p>
        {(e.user || e.manager) && <p class="faint">{e.user ? fill(t.event.byUser, { user: e.user }) : fill(t.event.manager, { manager: e.manager! })}</p>}
      </div>
      <div class="meta">
        <time class="age" dateTime={e.at}>{clock(Date.parse(e.at))}</time>
        {shown.slice(0, 4).map((c) => <a class="chip" key={c} href={href(["clusters", c])}><Icon name="clusters" />{c}</a>)}
        {shown.length > 4 && <span class="faint">+{shown.length - 4}</span>}
      </div>
    </li>
  );
}

const refreshEvery = 5000;

/** Loaded has the newest page, and the entries and the end of all pages that were loaded. */
interface Loaded { path: string; answer?: Answer; entries: Entry[]; older?: string; deeper?: boolean; error?: HubError; olderError?: HubError }

const sorted = (entries: Entry[]) => [...new Map(entries.map((e) => [e.id, e])).values()].sort((a, b) => b.at.localeCompare(a.at));

/**
 * withNewest adds the newest page to older ones. The page replaces them if entries can be missing between, or if the hub
 * no longer shows an entry, such as after the loss of a right.
 */
function withNewest(old: Loaded, answer: Answer): Loaded {
  if (answer.same) return { ...old, error: undefined };
  const ids = new Set(answer.entries.map((e) => e.id)), end = answer.older ?? "";
  const gap = end > (old.answer?.older ?? "") && end >= (old.entries[0]?.at ?? "");
  if (!old.deeper || gap || old.entries.some((e) => e.at > end && !ids.has(e.id))) {
    return { path: old.path, answer, entries: sorted(answer.entries), older: answer.older };
  }
  return { ...old, answer, error: undefined, entries: sorted([...answer.entries, ...old.entries]) };
}

/** useTimeline reads the newest entries every few seconds, and older ones on request. */
function useTimeline(path: string): [Loaded, () => void, () => void] {
  const [state, set] = useState<Loaded>({ path, entries: [] });
  const [turn, again] = useState(0);
  const of = (s: Loaded): Loaded => (s.path === path ? s : { path, entries: [] });
  const is = of(state), last = useRef(is);
  last.current = is;
  useEffect(() => {
    const abort = new AbortController();
    let timer: number | undefined;
    const read = () => get<Answer>(`${path}&version=${last.current.answer?.version ?? ""}`, abort.signal).then(
      (answer) => set((old) => withNewest(of(old), answer)),
      (error) => { if (error.name !== "AbortError") set((old) => ({ ...of(old), error })); });
    const loop = async () => {
      if (!document.hidden || !last.current.answer) await read();
      if (!abort.signal.aborted) timer = window.setTimeout(loop, refreshEvery);
    };
    loop();
    return () => { clearTimeout(timer); abort.abort(); };
  }, [path, turn]);
  const readOlder = () => {
    const before = is.older!;
    // The list may have been replaced meanwhile.
    const change = (next: (old: Loaded) => Loaded) => set((old) => (old.path === path && old.older === before ? next(old) : old));
    get<Answer>(`${path}&before=${encodeURIComponent(before)}`).then(
      (a) => change((old) => ({ ...old, entries: sorted([...old.entries, ...a.entries]), older: a.older, deeper: true, olderError: undefined })),
      (olderError) => change((old) => ({ ...old, olderError })));
  };
  return [is, () => again((n) => n + 1), readOlder];
}

/** local writes a time of the address for its field, and utc writes it back. */
const local = (at: string) => at && new Date(Date.parse(at) - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
const utc = (field: string) => field && new Date(field).toISOString().replace(".000Z", "Z");

export function TimelinePage() {
  const clusters = useTopic("clusters");
  const { query } = usePlace();
  const at = (name: string) => query.get(name) ?? "";
  const path = "api/timeline?" + new URLSearchParams({ class: at("kind"), cluster: at("cluster"), text: at("q"), by: at("by"), range: at("range"), from: at("from"), to: at("to") });
  const [{ answer, entries, older, error, olderError }, retry, readOlder] = useTimeline(path);
  const x = t.event;
  const days = new Map<string, Entry[]>();
  for (const e of entries) {
    const date = day(Date.parse(e.at));
    days.set(date, [...(days.get(date) ?? []), e]);
  }
  const names = [...new Set([...clusters.rows.keys(), at("cluster")])].filter(Boolean).sort();
  const filtered = at("kind") || at("cluster") || at("q") || at("by") || at("range");
  return (
    <Page title={t.timeline}>
      {!answer?.off && <div class="tools">
        <Filter value={at("q")} onChange={(v) => setFilter("q", v)} hint={x.filterHint} />
        <Choice label={x.kind} value={at("kind")} onChange={(v) => setFilter("kind", v)} options={Object.entries(t.eventClass) as [string, string][]} />
        <Choice label={t.workload.cluster} value={at("cluster")} onChange={(v) => setFilter("cluster", v)} options={names.map((n) => [n, n])} />
        <Choice label={x.who} value={at("by")} onChange={(v) => setFilter("by", v)} options={Object.entries(x.by) as [string, string][]} />
        <Choice label={x.range} value={at("range")} onChange={(v) => setFilter("range", v)} options={Object.entries(x.ranges) as [string, string][]} />
        {at("range") === "between" && ["from", "to"].map((name) => <label class="choice" key={name}><span>{x[name as "from" | "to"]}</span><input type="datetime-local" value={local(at(name))} onChange={(e) => setFilter(name, utc((e.target as HTMLInputElement).value))} /></label>)}
        {filtered && <button type="button" class="quiet text" onClick={() => navigate(href(["timeline"]), true)}>{t.clear}</button>}
        <span class="count" role="status">{fill(x.count, { n: entries.length })}</span>
      </div>}
      {!answer && !error && <Waiting />}
      {error && <Failure error={error} retry={retry} />}
      {answer?.off && <section class="notice empty"><h3>{x.off}</h3><p>{x.offHint} <Command text="argosy up --history=local" /></p><p>{x.offShared} <code>--history-dsn</code></p></section>}
      {answer && !answer.off && (
        <>
          {answer.notes?.map((n) => <p class="notice" key={n}>{n}</p>)}
          {entries.length === 0 && (filtered || !answer.missing?.length) && <p class="notice">{older ? x.noneYet : filtered ? x.noMatch : x.none}</p>}
          {entries.length === 0 && answer.missing?.map((m) => <Forbidden missing={m} key={m.resource} />)}
          {[...days].map(([date, of]) => <section key={date}><h2 class="section">{date}</h2><ul class="items">{of.map((e) => <EntryRow e={e} key={e.id} />)}</ul></section>)}
          {olderError && <Failure error={olderError} />}
          {older && <p class="more"><button type="button" onClick={readOlder}>{x.older}</button></p>}
        </>
      )}
    </Page>
  );
}
