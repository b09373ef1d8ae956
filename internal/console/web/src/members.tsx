// Objects of any kind in one member, read through the hub as the user. The member decides what the user may see.
import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, get, HubError } from "./hub";
import { fill, t } from "./i18n";
import { setFilter, usePlace } from "./route";
import { Choice, Entry, Failure, Filter, Forbidden, named, Same, Waiting } from "./ui";

/** member is the address of a member's API. */
export const member = (cluster: string) => `k8s/apis/cluster.karmada.io/v1alpha1/clusters/${encodeURIComponent(cluster)}/proxy`;

interface Kind { apiVersion: string; resource: string; kind: string; namespaced: boolean }
interface Objects { columns: string[]; rows: { namespace?: string; name: string; managed: boolean; cells: unknown[] }[]; continue?: string }

/** first are the kinds at the top of the choice. */
const first = ["Deployment", "StatefulSet", "DaemonSet", "CloneSet", "Pod", "Service", "Ingress", "ConfigMap", "Node", "Namespace"];
const idOf = (k: Kind) => `${k.resource}.${k.apiVersion}`;
const pathOf = (cluster: string, k: Kind) => `${member(cluster)}/${k.apiVersion.includes("/") ? "apis" : "api"}/${k.apiVersion}`;

/** useKinds reads the kinds of a cluster whose objects can be listed. */
function useKinds(cluster: string) {
  const [state, set] = useState<{ kinds?: Kind[]; error?: HubError }>({});
  const [turn, again] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    get<{ kinds: Kind[] }>("api/kinds?cluster=" + encodeURIComponent(cluster), abort.signal).then(({ kinds }) => {
      const at = (k: Kind) => { const i = first.indexOf(k.kind); return i < 0 ? first.length : i; };
      set({ kinds: kinds.sort((a, b) => at(a) - at(b) || a.kind.localeCompare(b.kind) || a.apiVersion.localeCompare(b.apiVersion)) });
    }, (error) => { if (!abort.signal.aborted) set({ error }); });
    return () => abort.abort();
  }, [cluster, turn]);
  return { ...state, again: () => again((n) => n + 1) };
}

/** useObjects reads the objects of a kind as the member prints them for kubectl, a page at a time. */
function useObjects(cluster: string, namespace: string, kind?: Kind) {
  const at = kind ? "api/objects?" + new URLSearchParams({ cluster, namespace, apiVersion: kind.apiVersion, resource: kind.resource }) : "";
  const [state, set] = useState<{ at: string; table?: Objects; error?: HubError }>({ at });
  const [turn, again] = useState(0);
  const read = (more: string, signal?: AbortSignal) => get<Objects>(at + (more ? "&continue=" + encodeURIComponent(more) : ""), signal).then(
    (table) => set((old) => ({ at, table: more && old.at === at && old.table ? { ...table, rows: [...old.table.rows, ...table.rows] } : table })),
    (error) => { if (error.name !== "AbortError") set((old) => ({ at, table: old.at === at ? old.table : undefined, error })); });
  useEffect(() => {
    if (!at) return;
    const abort = new AbortController();
    read("", abort.signal);
    return () => abort.abort();
  }, [at, turn]);
  const current = state.at === at ? state : { at };
  return { ...current, more: current.table?.continue ? () => read(current.table!.continue!) : undefined, retry: () => again((n) => n + 1) };
}

/** Manifest shows one object as YAML. */
export function Manifest({ cluster, kind, namespace, name, close }: { cluster: string; kind: Kind; namespace?: string; name: string; close: () => void }) {
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
      {state.error && (state.error.code === 403 ? <Forbidden missing={{ verb: "get", group: kind.apiVersion.includes("/") ? kind.apiVersion.split("/")[0] : "", resource: kind.resource, namespace, cluster }} /> : <Failure error={state.error} />)}
      {state.yaml && <pre tabIndex={0}>{named(state.yaml)}</pre>}
      <Same names={[name, namespace, cluster]} text={`argosy get ${kind.resource} ${name}${namespace ? " -n " + namespace : ""} -C ${cluster} -o yaml`} />
      <form method="dialog"><button type="submit" class="primary">{t.close}</button></form>
    </dialog>
  );
}

export function Objects({ cluster }: { cluster: string }) {
  const m = t.member, { query } = usePlace();
  const { kinds, error: unknown, again } = useKinds(cluster);
  const id = query.get("kind") ?? "", q = (query.get("q") ?? "").toLowerCase();
  const kind = kinds?.find((k) => idOf(k) === id), ns = kind?.namespaced ? query.get("ns") ?? "" : "";
  const { table, error, more, retry } = useObjects(cluster, ns, kind);
  const [shown, show] = useState<{ namespace?: string; name: string }>();
  if (unknown) return <Failure error={unknown} retry={again} />;
  if (!kinds) return <Waiting />;
  const spaced = table?.rows.some((r) => r.namespace);
  const rows = (table?.rows ?? []).filter((r) => !q || `${r.namespace ?? ""}/${r.name}`.toLowerCase().includes(q));
  return (
    <>
      <div class="tools">
        <Choice label={t.workload.kind} value={id} none={m.choose} onChange={(v) => setFilter("kind", v)} options={kinds.map((k) => [idOf(k), k.kind + (k.apiVersion.includes("/") ? ` (${k.apiVersion})` : "")])} />
        {kind?.namespaced && <Entry name="ns" label={t.workload.namespace} hint={t.all} />}
        {table && <Filter value={query.get("q") ?? ""} onChange={(v) => setFilter("q", v)} hint={m.filterHint} />}
        {table && <span class="count" role="status">{fill(t.shown, { n: rows.length, all: table.rows.length })}</span>}
      </div>
      {kinds.length === 0 && <p class="notice">{m.noKinds}</p>}
      {!kind && kinds.length > 0 && <p class={id ? "notice" : "faint"}>{id ? fill(m.notListed, { kind: id }) : m.hint}</p>}
      {kind && !table && !error && <Waiting />}
      {kind && error && <Failure error={error} retry={retry} />}
      {table && table.rows.length === 0 && <p class="notice">{fill(ns ? m.noneIn : m.none, { kind: kind!.kind, ns })}</p>}
      {table && table.rows.length > 0 && rows.length === 0 && <p class="notice">{t.nothingMatches}</p>}
      {kind && table && rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={kind.kind}>
          <table class="objects">
            <thead><tr>{spaced && <th scope="col">{t.workload.namespace}</th>}{table.columns.map((c) => <th scope="col" key={c}>{c}</th>)}<th scope="col">{m.managed}</th></tr></thead>
            <tbody>
              {rows.map((o) => (
                <tr key={o.namespace + "/" + o.name}>
                  {spaced && <td>{o.namespace}</td>}
                  {table.columns.map((c, n) => <td key={c}>{n === 0 ? <button type="button" class="link" data-row onClick={() => show(o)}>{String(o.cells[0] ?? o.name)}</button> : String(o.cells[n] ?? "")}</td>)}
                  <td>{o.managed ? t.cluster.yes : t.cluster.no}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {more && <p class="more"><button type="button" onClick={more}>{m.more}</button></p>}
      {kind && <Same names={[ns, cluster]} text={`argosy get ${kind.resource} ${!kind.namespaced ? "" : ns ? "-n " + ns + " " : "-A "}-C ${cluster}`} />}
      {shown && kind && <Manifest cluster={cluster} kind={kind} namespace={shown.namespace} name={shown.name} close={() => show(undefined)} />}
    </>
  );
}
