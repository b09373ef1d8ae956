import { h, Fragment } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Findings, Simple, templateLink, useAnswer, type Finding } from "./clusters";
import { get, HubError, useTopic, type Missing } from "./hub";
import { clock, fill, t } from "./i18n";
import { href, setFilter, usePlace } from "./route";
import { Table, type Column } from "./rows";
import type { WorkloadRow } from "./workloads";
import { Choice, Command, Failure, Filter, Forbidden, Hidden, Icon, Mark, Page, Same, Waiting } from "./ui";

const group = "policy.karmada.io";
const kinds = ["PropagationPolicy", "ClusterPropagationPolicy", "OverridePolicy", "ClusterOverridePolicy"];

interface Policy { kind: string; namespace?: string; name: string; selects: string[]; clusters?: string[]; except?: string[]; byLabel?: boolean; priority?: number; claims?: number }

/** clustersText writes the clusters of a placement. */
function clustersText(r: Policy): string {
  if (r.kind.includes("Override")) return "";
  const chosen = [...(r.clusters ?? []), ...(r.byLabel ? [t.policy.byLabel] : [])].join(", ") || t.policy.allClusters;
  return r.except?.length ? fill(t.policy.except, { clusters: chosen, except: r.except.join(", ") }) : chosen;
}

/** usePolicies reads the policies of the four kinds once, and again on request. */
function usePolicies() {
  const [state, set] = useState<{ all: Policy[]; missing: Missing[]; more: boolean; at: number; error?: HubError }>();
  const [turn, again] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    get<{ policies: Policy[]; missing?: Missing[]; more?: boolean }>("api/policies", abort.signal).then(
      (a) => set({ all: a.policies, missing: a.missing ?? [], more: !!a.more, at: Date.now() }),
      (error) => { if (!abort.signal.aborted) set({ all: [], missing: [], more: false, at: Date.now(), error }); });
    return () => abort.abort();
  }, [turn]);
  return { state, again: () => again((n) => n + 1) };
}

function columns(): Column<Policy>[] {
  const p = t.policy, w = t.workload;
  return [
    { id: "name", title: w.name, width: 1.4, sort: (a, b) => a.name.localeCompare(b.name), cell: (r) => <span class="two"><b>{r.name}</b><small>{r.namespace}</small></span> },
    { id: "kind", title: w.kind, width: 1.2, sort: (a, b) => a.kind.localeCompare(b.kind), cell: (r) => r.kind },
    { id: "places", title: p.selects, width: 2, cell: (r) => <span title={r.selects.join(", ")}>{r.selects.join(", ") || p.selectsAll}</span> },
    { id: "clusters", title: t.clusters, width: 1.6, cell: (r) => <span title={clustersText(r)}>{clustersText(r)}</span> },
    { id: "ready", title: p.claims, width: .6, end: true, sort: (a, b) => (a.claims ?? 0) - (b.claims ?? 0), cell: (r) => r.claims ?? <span class="faint">–</span> },
    { id: "bad", title: p.priority, width: .6, end: true, sort: (a, b) => (a.priority ?? 0) - (b.priority ?? 0), cell: (r) => (r.kind.includes("Override") ? <span class="faint">–</span> : r.priority ?? 0) },
  ];
}

export function PoliciesPage() {
  const topic = useTopic("workloads");
  const { state, again } = usePolicies();
  const { query } = usePlace();
  const q = (query.get("q") ?? "").toLowerCase(), kind = query.get("kind") ?? "";
  const rows = useMemo(() => {
    const claims = new Map<string, number>();
    for (const w of topic.rows.values() as Iterable<WorkloadRow>) if (w.policy) claims.set(w.policy, (claims.get(w.policy) ?? 0) + 1);
    return (state?.all ?? []).map((p) => ({ ...p, claims: p.kind.includes("Override") ? undefined : claims.get((p.namespace ? p.namespace + "/" : "") + p.name) ?? 0 }))
      .filter((p) => (!kind || p.kind === kind) && (!q || `${p.namespace}/${p.name} ${p.selects} ${clustersText(p)}`.toLowerCase().includes(q)))
      .sort((a, b) => (a.namespace ?? "").localeCompare(b.namespace ?? "") || a.name.localeCompare(b.name));
  }, [state, topic.version, q, kind]);
  const p = t.policy;
  return (
    <Page title={t.policies} wide aside={<a class="button primary" data-key="n" href={href(["change"], { form: "PropagationPolicy" })}><Icon name="plus" />{t.change.create}</a>}>
      {!state && <Waiting />}
      {state?.error && <Failure error={state.error} retry={again} />}
      {state && state.all.length > 0 ? <Hidden missing={state.missing} /> : state?.missing.map((m) => <Forbidden missing={m} key={m.resource} />)}
      {state && !state.error && state.missing.length === 0 && state.all.length === 0 && (
        <section class="notice empty"><h3>{p.none}</h3><p>{p.noneHint} <Command text="kubectl apply -k examples/shop" /></p></section>
      )}
      {state && state.all.length > 0 && (
        <>
          <div class="tools">
            <Filter value={query.get("q") ?? ""} onChange={(v) => setFilter("q", v)} hint={p.filterHint} />
            <Choice label={t.workload.kind} value={kind} onChange={(v) => setFilter("kind", v)} options={kinds.map((k) => [k, k])} />
            <button type="button" class="quiet text" onClick={again}>{fill(t.asOf, { time: clock(state.at) })} · {p.refresh}</button>
            <span class="count" role="status">{fill(t.shown, { n: rows.length, all: state.all.length })}</span>
          </div>
          {state.more && <p class="faint">{p.more}</p>}
          {rows.length === 0 ? <p class="notice">{t.nothingMatches}</p>
            : <Table label={t.policies} columns={columns()} rows={rows} keyOf={(r) => [r.kind, r.namespace, r.name].join("/")} open={(r) => href(["policies", r.kind, r.namespace || "-", r.name])} />}
        </>
      )}
    </Page>
  );
}

interface Answer {
  summary: string; findings?: Finding[]; selectors?: { selects: string; matches: number; none?: string }[];
  templates?: { template: string; by?: string; held: boolean; why?: string; placed?: string; state?: string }[];
  clusters?: { name: string; takes: boolean; why?: string; as?: string[] }[]; missing?: Missing[];
}

/** PolicyPage shows what a policy selects, what it claims, and what it loses to another one, and why. */
export function PolicyPage({ kind, namespace, name }: { kind: string; namespace: string; name: string }) {
  const topic = useTopic("workloads");
  const { answer: a, error, retry } = useAnswer<Answer>("api/why?" + new URLSearchParams({ kind: `${kind}.${group}`, namespace, name }), topic.version);
  const p = t.policy, c = t.cluster, yes = (v: boolean) => (v ? c.yes : c.no);
  const override = kind.includes("Override");
  return (
    <Page title={(namespace ? namespace + "/" : "") + name} aside={<a class="button" data-key="e" href={href(["change"], { kind: `${kind}.${group}`, ns: namespace, name })}>{t.change.edit}</a>}
      sub={<p class="crumb"><a href={href(["policies"])}>{t.policies}</a> · {kind}</p>}>
      {!a && !error && <Waiting />}
      {error && <Failure error={error} retry={retry} />}
      {a && (
        <>
          <p class="summary">{a.summary}</p>
          <Findings findings={a.findings} none={p.allWell} />
          <Hidden missing={a.missing} />
          {a.selectors?.length ? <><h2 class="section">{p.selects}</h2><Simple head={[p.selector, p.matches, c.why]} rows={a.selectors.map((s) => [s.selects, s.matches, s.none ?? ""])} /></> : null}
          <h2 class="section">{p.templates}</h2>
          {!a.templates?.length ? <p class="faint">{p.noTemplates}</p> : (
            <Simple head={[c.template, p.selectedBy, override ? p.propagated : p.claimed, c.why, p.placed, c.state]} more={a.templates.length - 300} rows={a.templates.slice(0, 300).map((x) => [
              <a class="open" data-row href={templateLink(x.template)}><Mark state={x.held ? "Healthy" : "Attention"} />{x.template}</a>,
              x.by ?? "–", yes(x.held), x.why ?? "", x.placed ?? "", x.state ?? ""])} />
          )}
          {a.clusters?.length ? <><h2 class="section">{t.clusters}</h2><Simple head={[t.workload.cluster, p.takes, c.why]} more={a.clusters.length - 300} rows={a.clusters.slice(0, 300).map((x) => [
            <a href={href(["clusters", x.name])}>{x.name}</a>, yes(x.takes), x.why ?? x.as?.join(", ") ?? ""])} /></> : null}
          <Same names={[kind, name, namespace]} text={`argosy why ${kind.toLowerCase()} ${name}${namespace ? " -n " + namespace : ""}`} />
        </>
      )}
    </Page>
  );
}
