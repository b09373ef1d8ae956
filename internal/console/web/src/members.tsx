// Objects of any kind in one member, read through the hub as the user. The member decides what the user may see.
import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, get, HubError, type Missing } from "./hub";
import { fill, t } from "./i18n";
import { setFilter, usePlace } from "./route";
import { Choice, Command, Failure, Filter, Forbidden, Waiting } from "./ui";

/** member is the address of a member's API. */
export const member = (cluster: string) => `k8s/apis/cluster.karmada.io/v1alpha1/clusters/${encodeURIComponent(cluster)}/proxy`;

interface Kind { apiVersion: string; resource: string; kind: string }
interface Table { columnDefinitions: { name: string; priority: number }[]; rows: { cells: unknown[]; object: { metadata: { name: string; namespace?: string; labels?: Record<string, string> } } }[]; metadata: { continue?: string } }

const pageSize = 250;
/** first are the kinds at the top of the choice. */
const first = ["Deployment", "StatefulSet", "DaemonSet", "CloneSet", "Pod", "Service", "Ingress", "ConfigMap", "Node", "Namespace"];
/** servable reports whether a kind can be in an address. A member names its kinds itself, and a name must not lead out of the member. */
const servable = (k: Kind) => /^[a-z0-9][a-z0-9.-]*(\/[a-z0-9]+)?$/.test(k.apiVersion) && !k.apiVersion.includes("..") && /^[a-z0-9-]+$/.test(k.resource);
const idOf = (k: Kind) => `${k.resource}.${k.apiVersion}`;
const pathOf = (cluster: string, k: Kind) => `${member(cluster)}/${k.apiVersion.includes("/") ? "apis" : "api"}/${k.apiVersion}`;

/** missingOf is the right that a refusal is about: on the hub, to look into the cluster, or in the member. */
export function missingOf(e: HubError, verb: string, k: Kind): { missing: Missing; inMember: boolean } | undefined {
  if (e.code !== 403) return;
  if (e.about?.group === "cluster.karmada.io") return { missing: { verb: "get", group: e.about.group, resource: "clusters/proxy" }, inMember: false };
  const [, group] = k.apiVersion.split("/").reverse();
  return { missing: { verb, group: group ?? "", resource: k.resource }, inMember: true };
}

function Refusal({ error, verb, kind, cluster, retry }: { error: HubError; verb: string; kind: Kind; cluster: string; retry?: () => void }) {
  const right = missingOf(error, verb, kind);
  return right ? <Forbidden missing={right.missing} cluster={right.inMember ? cluster : undefined} /> : <Failure error={error} retry={retry} />;
}

/** useKinds reads the kinds that a cluster serves, as the hub last saw them. */
function useKinds(cluster: string) {
  const [state, set] = useState<{ kinds?: Kind[]; error?: HubError }>({});
  useEffect(() => {
    const abort = new AbortController();
    get<any>("k8s/apis/cluster.karmada.io/v1alpha1/clusters/" + encodeURIComponent(cluster), abort.signal).then((c) => {
      const kinds: Kind[] = (c.status?.apiEnablements ?? []).flatMap((a: any) => (a.resources ?? []).map((r: any) => ({ apiVersion: a.groupVersion, resource: r.name, kind: r.kind })));
      const at = (k: Kind) => { const i = first.indexOf(k.kind); return i < 0 ? first.length : i; };
      set({ kinds: kinds.filter(servable).sort((a, b) => at(a) - at(b) || a.kind.localeCompare(b.kind) || a.apiVersion.localeCompare(b.apiVersion)) });
    }, (error) => { if (!abort.signal.aborted) set({ error }); });
    return () => abort.abort();
  }, [cluster]);
  return state;
}

/** useTable reads the objects of a kind as the member prints them for kubectl, a page at a time. */
function useTable(cluster: string, kind?: Kind) {
  const at = kind ? pathOf(cluster, kind) + "/" + kind.resource : "";
  const [state, set] = useState<{ at: string; table?: Table; error?: HubError }>({ at });
  const [turn, again] = useState(0);
  const read = (more: string, signal?: AbortSignal) => call(`${at}?limit=${pageSize}${more ? "&continue=" + encodeURIComponent(more) : ""}`, { signal, headers: { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } }).then((r) => r.json()).then((raw): Table => ({ columnDefinitions: raw.columnDefinitions ?? [], rows: raw.rows ?? [], metadata: raw.metadata ?? {} })).then(
    (table) => set((old) => ({ at, table: more && old.at === at && old.table ? { ...table, rows: [...old.table.rows, ...table.rows] } : table })),
    (error) => { if (error.name !== "AbortError") set((old) => ({ at, table: old.at === at ? old.table : undefined, error })); });
  useEffect(() => {
    if (!at) return;
    const abort = new AbortController();
    read("", abort.signal);
    return () => abort.abort();
  }, [at, turn]);
  const current = state.at === at ? state : { at };
  return { ...current, more: current.table?.metadata.continue ? () => read(current.table!.metadata.continue!) : undefined, retry: () => again((n) => n + 1) };
}

/** Manifest shows one object as YAML. */
function Manifest({ cluster, kind, namespace, name, close }: { cluster: string; kind: Kind; namespace?: string; name: string; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [state, set] = useState<{ yaml?: string; error?: HubError }>({});
  useEffect(() => { dialog.current?.showModal(); }, []);
  useEffect(() => {
    const abort = new AbortController();
    const path = `${pathOf(cluster, kind)}/${namespace ? `namespaces/${encodeURIComponent(namespace)}/` : ""}${kind.resource}/${encodeURIComponent(name)}`;
    call(path, { signal: abort.signal, headers: { Accept: "application/yaml" } }).then((r) => r.text()).then((yaml) => set({ yaml }), (error) => { if (!abort.signal.aborted) set({ error }); });
    return () => abort.abort();
  }, []);
  return (
    <dialog ref={dialog} class="manifest" aria-labelledby="manifest" onClose={close}>
      <h2 id="manifest">{kind.kind} {namespace ? namespace + "/" : ""}{name}</h2>
      {!state.yaml && !state.error && <Waiting />}
      {state.error && <Refusal error={state.error} verb="get" kind={kind} cluster={cluster} />}
      {state.yaml && <pre tabIndex={0}>{state.yaml}</pre>}
      <p class="same">{t.walk.command} <Command text={`argosy get ${kind.resource} ${name}${namespace ? " -n " + namespace : ""} -C ${cluster} -o yaml`} /></p>
      <form method="dialog"><button type="submit" class="primary">{t.close}</button></form>
    </dialog>
  );
}

export function Objects({ cluster }: { cluster: string }) {
  const m = t.member, { query } = usePlace();
  const { kinds, error: unknown } = useKinds(cluster);
  const id = query.get("kind") ?? "", q = (query.get("q") ?? "").toLowerCase();
  const kind = kinds?.find((k) => idOf(k) === id);
  const { table, error, more, retry } = useTable(cluster, kind);
  const [shown, show] = useState<{ namespace?: string; name: string }>();
  if (unknown) return unknown.code === 403 ? <Forbidden missing={{ verb: "get", group: "cluster.karmada.io", resource: "clusters" }} /> : <Failure error={unknown} />;
  if (!kinds) return <Waiting />;
  const columns = (table?.columnDefinitions ?? []).map((c, i) => ({ ...c, i })).filter((c) => c.priority === 0);
  const spaced = table?.rows.some((r) => r.object.metadata.namespace);
  const rows = (table?.rows ?? []).filter((r) => !q || `${r.object.metadata.namespace ?? ""}/${r.object.metadata.name}`.toLowerCase().includes(q));
  return (
    <>
      <div class="tools">
        <Choice label={t.workload.kind} value={id} none={m.choose} onChange={(v) => setFilter("kind", v)} options={kinds.map((k) => [idOf(k), k.kind + (k.apiVersion.includes("/") ? ` (${k.apiVersion})` : "")])} />
        {table && <Filter value={query.get("q") ?? ""} onChange={(v) => setFilter("q", v)} hint={m.filterHint} />}
        {table && <span class="count" role="status">{fill(t.shown, { n: rows.length, all: table.rows.length })}</span>}
      </div>
      {kinds.length === 0 && <p class="notice">{m.noKinds}</p>}
      {!kind && kinds.length > 0 && <p class="faint">{m.hint}</p>}
      {kind && !table && !error && <Waiting />}
      {kind && error && <Refusal error={error} verb="list" kind={kind} cluster={cluster} retry={retry} />}
      {table && table.rows.length === 0 && <p class="notice">{fill(m.none, { kind: kind!.kind })}</p>}
      {table && table.rows.length > 0 && rows.length === 0 && <p class="notice">{t.nothingMatches}</p>}
      {kind && rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={kind.kind}>
          <table class="objects">
            <thead><tr>{spaced && <th scope="col">{t.workload.namespace}</th>}{columns.map((c) => <th scope="col" key={c.name}>{c.name}</th>)}<th scope="col">{m.managed}</th></tr></thead>
            <tbody>
              {rows.map(({ cells, object: { metadata: o } }) => (
                <tr key={o.namespace + "/" + o.name}>
                  {spaced && <td>{o.namespace}</td>}
                  {columns.map((c, n) => <td key={c.name}>{n === 0 ? <button type="button" class="link" data-row onClick={() => show(o)}>{o.name}</button> : String(cells[c.i] ?? "")}</td>)}
                  <td>{o.labels?.["karmada.io/managed"] === "true" ? t.cluster.yes : t.cluster.no}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {more && <p class="more"><button type="button" onClick={more}>{m.more}</button></p>}
      {kind && <p class="same">{t.walk.command} <Command text={`argosy get ${kind.resource} -A -C ${cluster}`} /></p>}
      {shown && kind && <Manifest cluster={cluster} kind={kind} namespace={shown.namespace} name={shown.name} close={() => show(undefined)} />}
    </>
  );
}
