import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, HubError, session, useSource, useTopic, type Missing } from "./hub";
import { bytes, clock, cores, fill, said, t } from "./i18n";
import { href, setFilter, usePlace } from "./route";
import { NoClusters, walkHref } from "./fleet";
import { Table, type Column } from "./rows";
import { Objects } from "./members";
import { Age, Bar, Choice, Failure, Filter, Forbidden, Hidden, Icon, Mark, Next, Page, Same, States, stateText, toneOf, Waiting } from "./ui";

interface Amount { used: number; all: number }
export interface ClusterRow {
  name: string; state: keyof typeof t.clusterState; since?: number; what?: string; next?: string; mode?: string;
  region?: string; provider?: string; version?: string; nodes: number; readyNodes: number; cpu?: Amount; memory?: Amount;
  pods?: Amount; taints?: string[]; brakes?: string[]; placed: number; bad: number;
}

const rank = ["NotReady", "WorksKept", "NotSeenYet", "Leaving", "Ready"];
const share = (a?: Amount) => (a && a.all ? a.used / a.all : -1);

function amount(a: Amount | undefined, write: (n: number) => string) {
  if (!a) return <span class="faint">–</span>;
  return <Bar used={a.used} all={a.all} text={fill(t.cluster.used, { used: write(a.used), all: write(a.all) })} />;
}

/** brakesOf names the namespaces in which the hub is stopped. */
const brakesOf = (r: ClusterRow) => (r.brakes?.length ? t.cluster.brake + ": " + r.brakes.join(", ") : "");

function columns(): Column<ClusterRow>[] {
  const c = t.cluster;
  return [
    { id: "name", title: c.name, width: 1.7, sort: (a, b) => a.name.localeCompare(b.name), cell: (r) => <><Mark state={r.state} /><b>{r.name}</b></> },
    { id: "state", title: c.state, width: 1.35, sort: (a, b) => rank.indexOf(a.state) - rank.indexOf(b.state), cell: (r) => <span class={"state " + toneOf(r.state)}>{t.clusterState[r.state]} <Age since={r.since} />{r.brakes?.length ? <span class="chip plain" title={brakesOf(r)}>{t.cluster.brake}</span> : null}</span> },
    { id: "region", title: c.region, sort: (a, b) => (a.region ?? "").localeCompare(b.region ?? ""), cell: (r) => r.region || <span class="faint">–</span> },
    { id: "version", title: c.version, width: .8, sort: (a, b) => (a.version ?? "").localeCompare(b.version ?? "", undefined, { numeric: true }), cell: (r) => r.version || <span class="faint">–</span> },
    { id: "nodes", title: c.nodes, width: .55, end: true, sort: (a, b) => a.nodes - b.nodes, cell: (r) => (r.readyNodes === r.nodes ? r.nodes : `${r.readyNodes}/${r.nodes}`) },
    { id: "cpu", title: c.cpu, width: 1.25, sort: (a, b) => share(a.cpu) - share(b.cpu), cell: (r) => amount(r.cpu, cores) },
    { id: "memory", title: c.memory, width: 1.6, sort: (a, b) => share(a.memory) - share(b.memory), cell: (r) => amount(r.memory, bytes) },
    { id: "placed", title: c.placed, width: .75, end: true, sort: (a, b) => a.placed - b.placed, cell: (r) => r.placed },
    { id: "bad", title: c.problems, width: .75, end: true, sort: (a, b) => a.bad - b.bad, cell: (r) => (r.bad ? <b class="alarm">{r.bad}</b> : 0) },
  ];
}

export function ClustersPage() {
  const topic = useTopic("clusters");
  const { query } = usePlace();
  useSource(session);
  const q = (query.get("q") ?? "").toLowerCase(), state = query.get("state") ?? "";
  const all = ([...topic.rows.values()] as ClusterRow[]).sort((a, b) => rank.indexOf(a.state) - rank.indexOf(b.state) || a.name.localeCompare(b.name));
  const rows = all.filter((r) => (!state || r.state === state) &&
    (!q || [r.name, r.region, r.provider, r.version, t.clusterState[r.state], ...(r.taints ?? []), brakesOf(r)].some((s) => s?.toLowerCase().includes(q))));
  return (
    <Page title={t.clusters} wide aside={session.me?.join ? <a class="button primary" href={href(["clusters", "import"])}><Icon name="plus" />{t.cluster.import}</a> : null}>
      <States topic={topic}>
        {topic.missing.map((m) => <Forbidden missing={m} key={m.resource} />)}
        {topic.missing.length === 0 && all.length === 0 && <NoClusters />}
        {all.length > 0 && (
          <>
            <div class="tools">
              <Filter value={query.get("q") ?? ""} onChange={(v) => setFilter("q", v)} hint={t.cluster.filterHint} />
              <Choice label={t.cluster.state} value={state} onChange={(v) => setFilter("state", v)} options={rank.filter((s) => s === state || all.some((r) => r.state === s)).map((s) => [s, t.clusterState[s as keyof typeof t.clusterState]])} />
              <span class="count" role="status">{fill(t.shown, { n: rows.length, all: all.length })}</span>
            </div>
            {rows.length === 0 ? <p class="notice">{t.nothingMatches}</p>
              : <Table label={t.clusters} columns={columns()} rows={rows} keyOf={(r) => r.name} open={(r) => href(["clusters", r.name])} tone={(r) => (r.state === "NotReady" ? "silent" : "")} />}
          </>
        )}
      </States>
    </Page>
  );
}

export interface Finding { severity: "Problem" | "Attention" | "Waiting"; cluster?: string; what: string; next?: string }

export function Findings({ findings, none }: { findings?: Finding[]; none: string }) {
  if (!findings?.length) return <p class="notice calm"><Mark state="Healthy" />{none}</p>;
  return (
    <ul class="items">
      {findings.map((f, i) => (
        <li class={"item " + toneOf(f.severity)} key={i}>
          <Mark state={f.severity} label={t.severity[f.severity]} />
          <div class="body"><p class="what">{said(f.what)}</p><Next text={f.next} /></div>
          <div class="meta">{f.cluster && <a class="chip" href={href(["clusters", f.cluster])}><Icon name="clusters" />{f.cluster}</a>}</div>
        </li>
      ))}
    </ul>
  );
}

/** useAnswer asks the hub why, and again when version changes, at most every two seconds. */
export function useAnswer<T>(path: string, version: unknown): { answer?: T; error?: HubError; retry: () => void } {
  const [state, set] = useState<{ path: string; answer?: T; error?: HubError }>({ path });
  const [turn, again] = useState(0);
  const last = useRef(0);
  useEffect(() => {
    const abort = new AbortController();
    const wait = Math.max(0, 2000 - (Date.now() - last.current));
    const timer = setTimeout(() => {
      last.current = Date.now();
      get<T>(path, abort.signal).then(
        (answer) => set({ path, answer }),
        (error) => { if (error.name !== "AbortError") set((old) => ({ path, answer: old.path === path ? old.answer : undefined, error })); });
    }, state.path === path && state.answer ? wait : 0);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [path, version, turn]);
  return { ...(state.path === path ? state : {}), retry: () => again((n) => n + 1) };
}

interface MemberAnswer {
  name: string; summary: string; findings?: Finding[]; ready?: { status: string; reason: string; message: string; lastTransitionTime: string };
  taints?: string[]; room?: string[]; roomReportedBefore?: string;
  placed?: { template: string; state: string; ready?: number; wanted?: number; why?: string }[];
  refused?: { reason: string; times: number; such: string[]; remedy?: string }[];
  leaving?: { template: string; why: string }[];
  missing?: Missing[];
}

/** templateLink is the address of a template that why names as "Kind.group namespace/name". */
export function templateLink(text: string): string {
  const [kinds, path] = text.split(" ");
  const [kind, ...group] = kinds.split(".");
  const parts = path.split("/");
  return walkHref({ group: group.join("."), kind, namespace: parts.length > 1 ? parts[0] : undefined, name: parts[parts.length - 1] });
}

/** ClusterPage shows why a cluster is as it is, and the objects in it. */
export function ClusterPage({ name }: { name: string }) {
  const topic = useTopic("clusters");
  const row = topic.rows.get(name) as ClusterRow | undefined;
  const { answer: a, error, retry } = useAnswer<MemberAnswer>(`api/why?kind=clusters.cluster.karmada.io&name=${encodeURIComponent(name)}`, topic.version);
  const c = t.cluster, tab = usePlace().query.get("tab") ?? "";
  const facts: [string, any][] = row ? [
    [c.state, <span class={"state " + toneOf(row.state)}><Mark state={row.state} />{t.clusterState[row.state]} <Age since={row.since} /></span>],
    [c.version, row.version], [c.region, row.region], [c.provider, row.provider], [c.mode, row.mode],
    [c.brake, row.brakes?.join(", ")], [c.nodes, `${row.readyNodes}/${row.nodes}`],
    [c.cpu, amount(row.cpu, cores)], [c.memory, amount(row.memory, bytes)], [c.pods, amount(row.pods, String)],
  ] : [];
  return (
    <Page title={name} sub={<p class="crumb"><a href={href(["clusters"])}>{t.clusters}</a></p>}>
      {row && <dl class="facts">{facts.filter(([, v]) => v).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>}
      {row?.state === "NotReady" && <p class="hatched">{c.silent}</p>}
      {(row || a) && <Tabs label={name} tab={tab} tabs={[["", c.overview], ["objects", c.objects]]} />}
      {tab === "objects" && <Objects cluster={name} />}
      {tab === "" && !a && !error && <Waiting />}
      {tab === "" && error && <Failure error={error} retry={retry} />}
      {tab === "" && a && (
        <>
          {a.ready && <p class="ready"><b>{c.conditions}</b> {a.ready.status} · {a.ready.reason} · {a.ready.message} <Age since={Date.parse(a.ready.lastTransitionTime) / 1000} /></p>}
          <h2 class="section">{c.findings}</h2>
          <Findings findings={a.findings} none={c.noFindings} />
          <Hidden missing={a.missing} />
          {a.taints?.length ? <><h2 class="section">{c.taints}</h2><p class="chips">{a.taints.map((x) => <span class="chip plain" key={x}>{x}</span>)}</p></> : null}
          {a.room?.length ? <><h2 class="section">{a.roomReportedBefore ? fill(c.roomBefore, { time: clock(Date.parse(a.roomReportedBefore)) }) : c.room}</h2><p class="chips">{a.room.map((x) => <span class="chip plain" key={x}>{x}</span>)}</p></> : null}
          <h2 class="section">{c.placedHere}</h2>
          {!a.placed?.length ? <p class="faint">{c.nothingPlaced}</p> : (
            <Simple head={[c.template, c.state, t.workload.ready, c.why]} rows={a.placed.slice(0, 300).map((p) => [
              <a class="open" data-row href={templateLink(p.template)}><Mark state={p.state} />{p.template}</a>,
              stateText(p.state), p.wanted ? `${p.ready ?? 0}/${p.wanted}` : "", said(p.why ?? "")])} more={a.placed.length - 300} />
          )}
          {a.leaving?.length ? <><h2 class="section">{c.leaving}</h2><Simple head={[c.template, c.why]} rows={a.leaving.map((l) => [l.template, l.why])} /></> : null}
          {a.refused?.length ? <><h2 class="section">{c.refused}</h2><Simple head={[c.times, c.reason, c.such, c.remedy]} rows={a.refused.map((r) => [r.times, said(r.reason), r.such.join(", "), said(r.remedy ?? "")])} /></> : null}
          <Same names={[name]} text={`argosy why cluster ${name}`} />
        </>
      )}
    </Page>
  );
}

/** Tabs are the views of a page, with the keys 1, 2 and so on. The view is in the address. */
export function Tabs({ label, tab, tabs }: { label: string; tab: string; tabs: [string, string][] }) {
  return (
    <div class="tabs" role="group" aria-label={label}>
      {tabs.map(([id, text], i) => <button type="button" key={id} data-key={i + 1} aria-pressed={tab === id} onClick={() => setFilter("tab", id)}>{text}</button>)}
    </div>
  );
}

/** Simple is a small table that is not windowed. Columns without any value are left out. */
export function Simple({ head, rows, more }: { head: string[]; rows: any[][]; more?: number }) {
  const filled = head.map((_, n) => n).filter((n) => n === 0 || rows.some((r) => r[n] !== "" && r[n] != null));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={head.join(", ")}>
      <table>
        <thead><tr>{filled.map((n) => <th scope="col" key={n}>{head[n]}</th>)}</tr></thead>
        <tbody>{rows.map((r, i) => <tr key={i}>{filled.map((n) => <td key={n}>{r[n]}</td>)}</tr>)}</tbody>
      </table>
      {more && more > 0 ? <p class="faint">{fill(t.cluster.more, { n: more })}</p> : null}
    </div>
  );
}
