// The time line: what happened in the fleet, from the release history.
import { h, Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, HubError, useTopic, type Missing } from "./hub";
import { fill, t } from "./i18n";
import { href, navigate, setFilter, usePlace } from "./route";
import { useAnswer } from "./clusters";
import { walkHref } from "./fleet";
import { Choice, Command, Failure, Filter, Forbidden, Icon, Mark, Page, Waiting } from "./ui";

type Class = keyof typeof t.eventClass;
interface Entry {
  id: string; at: string; class: Class; type: string; group?: string; kind: string; namespace?: string; name: string;
  stage?: string; cluster?: string; from?: Placed[]; to?: Placed[]; user?: string; manager?: string; reason?: string; message?: string;
}
interface Placed { name: string; replicas?: number }
interface Answer { entries: Entry[]; older?: string; notes?: string[]; missing?: Missing[]; off?: boolean }

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
  const x = t.event as Record<string, string>;
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
  const to = linkOf(e), at = new Date(e.at);
  const name = <><span class="kind">{e.kind}</span> {e.namespace ? <span class="ns">{e.namespace}/</span> : null}{e.name}</>;
  const shown = chips(e);
  return (
    <li class="item">
      <Mark state={states[e.class === "releases" ? e.reason ?? "" : e.type] ?? "Progressing"} />
      <div class="body">
        <p class="title">{to ? <a class="open" data-row href={to}>{name}</a> : <span data-row tabIndex={0}>{name}</span>}</p>
        <p class="what">{sentence(e)}{e.class !== "releases" && e.reason ? ` · ${e.reason}` : ""}{e.message ? ": " + e.message : ""}</p>
        {(e.user || e.manager) && <p class="faint">{e.user ? fill(t.event.by, { user: e.user }) : fill(t.event.manager, { manager: e.manager! })}</p>}
      </div>
      <div class="meta">
        <time class="age" dateTime={e.at}>{at.toLocaleTimeString()}</time>
        {shown.slice(0, 4).map((c) => <a class="chip" key={c} href={href(["clusters", c])}><Icon name="clusters" />{c}</a>)}
        {shown.length > 4 && <span class="faint">+{shown.length - 4}</span>}
      </div>
    </li>
  );
}

const refreshEvery = 5000;

export function TimelinePage() {
  const clusters = useTopic("clusters");
  const { query } = usePlace();
  const at = (name: string) => query.get(name) ?? "";
  const path = "api/timeline?" + new URLSearchParams({ class: at("kind"), cluster: at("cluster"), text: at("q") });
  const [turn, again] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) again((n) => n + 1); }, refreshEvery);
    return () => clearInterval(timer);
  }, []);
  const { answer, error, retry } = useAnswer<Answer>(path, turn);
  const [more, setMore] = useState<{ path: string; entries: Entry[]; older?: string; error?: HubError }>({ path, entries: [] });
  const past = more.path === path ? more : { path, entries: [] as Entry[], older: undefined, error: undefined };
  const x = t.event;
  const seen = new Set<string>();
  const entries = [...(answer?.entries ?? []), ...past.entries].filter((e) => !seen.has(e.id) && seen.add(e.id)).sort((a, b) => b.at.localeCompare(a.at));
  const older = past.entries.length ? past.older : answer?.older;
  const load = () => get<Answer>(path + "&before=" + encodeURIComponent(older!)).then(
    (a) => setMore({ path, entries: [...past.entries, ...a.entries], older: a.older }), (error) => setMore({ ...past, error }));
  const days = new Map<string, Entry[]>();
  for (const e of entries) {
    const day = new Date(e.at).toLocaleDateString();
    days.set(day, [...(days.get(day) ?? []), e]);
  }
  const names = [...new Set([...clusters.rows.keys(), at("cluster")])].filter(Boolean).sort();
  const filtered = at("kind") || at("cluster") || at("q");
  return (
    <Page title={t.timeline}>
      {!answer && !error && <Waiting />}
      {error && <Failure error={error} retry={retry} />}
      {answer?.off && <section class="notice empty"><h3>{x.off}</h3><p>{x.offHint} <Command text="argosy up --history=local" /></p><p>{x.offShared} <code>--history-dsn</code></p></section>}
      {answer && !answer.off && (
        <>
          <div class="tools">
            <Filter value={at("q")} onChange={(v) => setFilter("q", v)} hint={x.filterHint} />
            <Choice label={x.kind} value={at("kind")} onChange={(v) => setFilter("kind", v)} options={Object.entries(t.eventClass) as [string, string][]} />
            <Choice label={t.workload.cluster} value={at("cluster")} onChange={(v) => setFilter("cluster", v)} options={names.map((n) => [n, n])} />
            {filtered && <button type="button" class="quiet text" onClick={() => navigate(href(["timeline"]), true)}>{t.clear}</button>}
            <span class="count" role="status">{fill(x.count, { n: entries.length })}</span>
          </div>
          {answer.notes?.map((n) => <p class="notice" key={n}>{n}</p>)}
          {entries.length === 0 && (filtered || !answer.missing?.length) && <p class="notice">{filtered ? x.noMatch : x.none}</p>}
          {entries.length === 0 && answer.missing?.map((m) => <Forbidden missing={m} key={m.resource} />)}
          {[...days].map(([day, of]) => <section key={day}><h2 class="section">{day}</h2><ul class="items">{of.map((e) => <EntryRow e={e} key={e.id} />)}</ul></section>)}
          {past.error && <Failure error={past.error} />}
          {older && <p class="more"><button type="button" onClick={load}>{x.older}</button></p>}
        </>
      )}
    </Page>
  );
}
