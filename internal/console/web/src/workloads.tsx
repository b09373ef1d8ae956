import { h, Fragment } from "preact";
import { useMemo } from "preact/hooks";
import { useTopic } from "./hub";
import { fill, t } from "./i18n";
import { href, navigate, setFilter, usePlace } from "./route";
import { walkHref } from "./fleet";
import { Table, type Column } from "./rows";
import { Unclaimed } from "./unclaimed";
import { Choice, Command, Filter, Forbidden, Icon, Mark, Page, States, toneOf } from "./ui";

type State = keyof typeof t.workloadState;
interface Placed { cluster: string; state: State; replicas?: number; what?: string }
export interface WorkloadRow {
  group?: string; kind: string; namespace?: string; name: string; state: State; bad?: boolean; what?: string; since?: number;
  ready: number; wanted: number; policy?: string; places?: Placed[];
}

/** rank has the states in the order of the hub, the worst first. */
const rank = Object.keys(t.workloadState) as State[];

/** Strip shows the clusters of a workload: the worst by name, the others by count. */
function Strip({ places }: { places: Placed[] }) {
  const good = places.filter((p) => p.state === "Healthy").length;
  const named = places.slice(0, 3);
  return (
    <span class="strip" title={fill(t.workload.counts, { good, n: places.filter((p) => p.state !== "Ended").length })}>
      {named.map((p) => <span class={"place " + toneOf(p.state) + (p.state === "Lost" ? " silent" : "")} title={t.workloadState[p.state]} key={p.cluster}><Mark state={p.state} label={t.workloadState[p.state]} />{p.cluster}</span>)}
      {places.length > 3 && <span class="place more">+{places.length - 3}</span>}
    </span>
  );
}

function columns(): Column<WorkloadRow>[] {
  const w = t.workload;
  return [
    { id: "name", title: w.name, width: 1.6, sort: (a, b) => a.name.localeCompare(b.name), cell: (r) => <><Mark state={r.state} label={t.workloadState[r.state]} /><span class="two"><b>{r.name}</b><small>{r.namespace}</small></span></> },
    { id: "kind", title: w.kind, sort: (a, b) => a.kind.localeCompare(b.kind), cell: (r) => <span class="two"><span>{r.kind}</span><small>{r.group}</small></span> },
    { id: "state", title: w.state, width: .8, sort: (a, b) => rank.indexOf(a.state) - rank.indexOf(b.state), cell: (r) => <span class={"state " + toneOf(r.state)} title={r.what}>{t.workloadState[r.state]}</span> },
    { id: "ready", title: w.ready, width: .5, end: true, sort: (a, b) => a.ready - b.ready, cell: (r) => (r.wanted ? <span class={r.bad && r.ready < r.wanted ? "alarm" : ""}>{r.ready}/{r.wanted}</span> : <span class="faint">–</span>) },
    { id: "places", title: w.places, width: 2.4, sort: (a, b) => (a.places?.length ?? 0) - (b.places?.length ?? 0), cell: (r) => (r.places?.length ? <Strip places={r.places} /> : <span class="faint">–</span>) },
    { id: "policy", title: w.policy, sort: (a, b) => (a.policy ?? "").localeCompare(b.policy ?? ""), cell: (r) => r.policy || <span class="faint">–</span> },
  ];
}

export function WorkloadsPage() {
  const topic = useTopic("workloads");
  const { query } = usePlace();
  const at = (name: string) => query.get(name) ?? "";
  const q = at("q").toLowerCase(), kind = at("kind"), ns = at("ns"), state = at("state"), cluster = at("cluster");
  const facts = useMemo(() => {
    const all = [...topic.rows.values()] as WorkloadRow[];
    all.sort((a, b) => rank.indexOf(a.state) - rank.indexOf(b.state) || (a.namespace ?? "").localeCompare(b.namespace ?? "") || a.name.localeCompare(b.name));
    const text = new Map(all.map((r) => [r, `${r.namespace ?? ""}/${r.name} ${r.kind} ${r.policy ?? ""}`.toLowerCase()]));
    const options = (of: (r: WorkloadRow) => string[]) => [...new Set(all.flatMap(of))].filter(Boolean).sort().map((v) => [v, v] as [string, string]);
    return { all, text, kinds: options((r) => [r.kind]), namespaces: options((r) => [r.namespace ?? ""]), clusters: options((r) => (r.places ?? []).map((p) => p.cluster)) };
  }, [topic.version, topic.rows]);
  const rows = useMemo(() => facts.all.filter((r) => (!kind || r.kind === kind) && (!ns || r.namespace === ns) &&
    (!state || (state === "bad" ? r.bad : r.state === state)) && (!cluster || r.places?.some((p) => p.cluster === cluster)) &&
    (!q || facts.text.get(r)!.includes(q))), [facts, kind, ns, state, cluster, q]);
  const filtered = q || kind || ns || state || cluster;
  return (
    <Page title={t.workloads} wide aside={<a class="button primary" data-key="n" href={href(["change"])}><Icon name="plus" />{t.change.create}</a>}>
      <States topic={topic}>
        {topic.missing.map((m) => <Forbidden missing={m} key={m.resource} />)}
        {facts.all.length === 0 && topic.missing.length === 0 && (
          <section class="notice empty"><h3>{t.workload.none}</h3><p>{t.workload.noneHint} <Command text="kubectl apply -k examples/shop" /></p></section>
        )}
        {facts.all.length === 0 && <Unclaimed namespace={ns} />}
        {facts.all.length > 0 && (
          <>
            <div class="tools">
              <Filter value={at("q")} onChange={(v) => setFilter("q", v)} hint={t.workload.filterHint} />
              <Choice label={t.workload.state} value={state} onChange={(v) => setFilter("state", v)} options={[["bad", t.cluster.problems], ...rank.map((s) => [s, t.workloadState[s]] as [string, string])]} />
              <Choice label={t.workload.kind} value={kind} onChange={(v) => setFilter("kind", v)} options={facts.kinds} />
              <Choice label={t.workload.namespace} value={ns} onChange={(v) => setFilter("ns", v)} options={facts.namespaces} />
              <Choice label={t.workload.cluster} value={cluster} onChange={(v) => setFilter("cluster", v)} options={facts.clusters} />
              {filtered && <button type="button" class="quiet text" onClick={() => navigate(href(["workloads"]), true)}>{t.clear}</button>}
              <span class="count" role="status">{fill(t.shown, { n: rows.length, all: facts.all.length })}</span>
            </div>
            <Unclaimed namespace={ns} />
            {rows.length === 0 ? <p class="notice">{t.nothingMatches}</p>
              : <Table label={t.workloads} columns={columns()} rows={rows} keyOf={(r) => [r.group, r.kind, r.namespace, r.name].join("/")} open={walkHref} />}
          </>
        )}
      </States>
    </Page>
  );
}
