// Pods and logs of all clusters of a workload, read in the members as the user.
import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, get, HubError } from "./hub";
import { fill, t } from "./i18n";
import { Age, Failure, Mark, Waiting } from "./ui";

/** maxClusters bounds the members that one page reads. */
const maxClusters = 8;
/** maxLines is how many lines of logs are kept, and maxShown how many are drawn; maxLine bounds one line. */
const maxLines = 20_000, maxShown = 1_500, maxLine = 16_384;

interface Pod { cluster: string; name: string; containers: string[]; phase: string; ready: number; restarts: number; since: number; node?: string; reason?: string }

const member = (cluster: string) => `k8s/apis/cluster.karmada.io/v1alpha1/clusters/${encodeURIComponent(cluster)}/proxy`;

/** selectorOf returns the label selector of a workload's pods; undefined if its kind has none. */
async function selectorOf(apiVersion: string, kind: string, namespace: string, name: string, signal: AbortSignal): Promise<string | undefined> {
  const at = "k8s/" + (apiVersion.includes("/") ? "apis/" : "api/") + apiVersion;
  const known = await get<{ resources: { name: string; kind: string }[] }>(at, signal);
  const resource = known.resources.find((r) => r.kind === kind && !r.name.includes("/"));
  if (!resource || !namespace) return;
  const object = await get<any>(`${at}/namespaces/${encodeURIComponent(namespace)}/${resource.name}/${encodeURIComponent(name)}`, signal);
  const labels = object.spec?.selector?.matchLabels ?? (kind === "Job" ? { "job-name": name } : undefined);
  return labels && Object.entries(labels).map(([k, v]) => `${k}=${v}`).join(",");
}

function podOf(cluster: string, p: any): Pod {
  const states = p.status?.containerStatuses ?? [];
  const waiting = states.find((s: any) => s.state?.waiting?.reason)?.state.waiting.reason ?? states.find((s: any) => s.state?.terminated?.reason)?.state.terminated.reason;
  return {
    cluster, name: p.metadata.name, containers: p.spec.containers.map((c: any) => c.name), phase: p.status?.phase ?? "Unknown",
    ready: states.filter((s: any) => s.ready).length, restarts: states.reduce((n: number, s: any) => n + (s.restartCount ?? 0), 0),
    since: Date.parse(p.metadata.creationTimestamp) / 1000, node: p.spec.nodeName, reason: p.metadata.deletionTimestamp ? "Terminating" : waiting,
  };
}

/** lines calls each with the lines of a response as they arrive. */
async function lines(response: Response, each: (line: string) => void) {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop()!.slice(0, 4 * maxLine * 16);
    for (const part of parts) each(part);
  }
}

const pause = (ms: number, signal: AbortSignal) => new Promise<void>((end) => {
  const timer = setTimeout(end, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); end(); }, { once: true });
});

/** usePods follows the pods of a workload in its clusters: one list and one watch for each. */
function usePods(apiVersion: string, kind: string, namespace: string, name: string, clusters: string[]) {
  const [state, set] = useState<{ pods: Pod[]; errors: [string, HubError][]; loaded: boolean; none?: boolean; error?: HubError }>({ pods: [], errors: [], loaded: false });
  useEffect(() => {
    const abort = new AbortController(), signal = abort.signal;
    const pods = new Map<string, Map<string, Pod>>(), errors = new Map<string, HubError>();
    let timer: number | undefined;
    const changed = () => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        if (!signal.aborted) set({ pods: [...pods.values()].flatMap((m) => [...m.values()]), errors: [...errors], loaded: true });
      }, 200);
    };
    const follow = async (cluster: string, selector: string) => {
      const path = `${member(cluster)}/api/v1/namespaces/${encodeURIComponent(namespace)}/pods?labelSelector=${encodeURIComponent(selector)}`;
      while (!signal.aborted) {
        try {
          const list = await get<any>(path + "&limit=500", signal);
          const mine = new Map<string, Pod>(list.items.map((p: any) => [p.metadata.name, podOf(cluster, p)]));
          pods.set(cluster, mine);
          errors.delete(cluster);
          changed();
          const watch = await call(`${path}&watch=1&resourceVersion=${list.metadata.resourceVersion}&timeoutSeconds=240`, { signal });
          await lines(watch, (line) => {
            const { type, object } = JSON.parse(line);
            if (type === "DELETED") mine.delete(object.metadata.name);
            else if (type === "ADDED" || type === "MODIFIED") mine.set(object.metadata.name, podOf(cluster, object));
            changed();
          });
        } catch (e) {
          if (signal.aborted) return;
          errors.set(cluster, e as HubError);
          changed();
          await pause(8000, signal);
        }
        await pause(1000, signal);
      }
    };
    selectorOf(apiVersion, kind, namespace, name, signal).then(
      (selector) => {
        if (!selector || !clusters.length) set({ pods: [], errors: [], loaded: true, none: !selector });
        else for (const cluster of clusters.slice(0, maxClusters)) follow(cluster, selector);
      },
      (error) => { if (!signal.aborted) set({ pods: [], errors: [], loaded: true, error }); });
    return () => { abort.abort(); clearTimeout(timer); };
  }, [apiVersion, kind, namespace, name, clusters.slice(0, maxClusters).join()]);
  return state;
}

/** visible makes characters visible that change how a line looks. Colours of terminals are left out. */
export function visible(line: string): string {
  return line.slice(0, maxLine).replace(/\x1b\[[0-9;]*m/g, "").replace(/\r$/, "").replace(/[\x00-\x08\x0b-\x1f\x7f]/g, (c) => (c === "\x1b" ? "␛" : "�"))
    .replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (c) => `‹U+${c.charCodeAt(0).toString(16).toUpperCase()}›`);
}

interface Line { cluster: string; pod: string; at: string; text: string }

/** useLogs follows the logs of pods; new lines are drawn at most five times a second. */
function useLogs(pods: Pod[], namespace: string, container: string, previous: boolean) {
  const [state, set] = useState<{ lines: Line[]; errors: string[] }>({ lines: [], errors: [] });
  const wanted = pods.map((p) => p.cluster + "/" + p.name).join();
  useEffect(() => {
    const abort = new AbortController();
    let all: Line[] = [];
    const errors: string[] = [];
    let timer: number | undefined;
    const changed = () => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        all.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
        if (all.length > maxLines) all = all.slice(-maxLines);
        set({ lines: all.slice(-maxShown), errors: [...errors] });
      }, 200);
    };
    set({ lines: [], errors: [] });
    for (const p of pods) {
      const which = container && p.containers.includes(container) ? container : p.containers[0];
      const path = `${member(p.cluster)}/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(p.name)}/log?container=${encodeURIComponent(which)}&timestamps=true&tailLines=200${previous ? "&previous=true" : "&follow=true"}`;
      call(path, { signal: abort.signal }).then((r) => lines(r, (line) => {
        const cut = line.indexOf(" ");
        all.push({ cluster: p.cluster, pod: p.name, at: line.slice(0, cut), text: visible(line.slice(cut + 1)) });
        changed();
      })).catch((e) => {
        if (abort.signal.aborted) return;
        errors.push(`${p.cluster}/${p.name}: ${e.message}`);
        changed();
      });
    }
    return () => { abort.abort(); clearTimeout(timer); };
  }, [wanted, namespace, container, previous]);
  return state;
}

export function PodsAndLogs({ apiVersion, kind, namespace, name, clusters }: { apiVersion: string; kind: string; namespace: string; name: string; clusters: string[] }) {
  const p = t.pods;
  const { pods, errors, loaded, none, error } = usePods(apiVersion, kind, namespace, name, clusters);
  const [cluster, setCluster] = useState("");
  const [pod, setPod] = useState("");
  const [container, setContainer] = useState("");
  const [previous, setPrevious] = useState(false);
  const inScope = pods.filter((x) => (!cluster || x.cluster === cluster) && (!pod || x.name === pod));
  const { lines: log, errors: failed } = useLogs(inScope.slice(0, 20), namespace, container, previous);
  const box = useRef<HTMLDivElement>(null), stick = useRef(true);
  useEffect(() => { if (stick.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [log]);
  const hue = (c: string) => "c" + (clusters.indexOf(c) % 8);
  if (error) return <Failure error={error} />;
  if (!loaded) return <Waiting />;
  if (none) return <p class="notice">{p.none}</p>;
  const sorted = [...pods].sort((a, b) => clusters.indexOf(a.cluster) - clusters.indexOf(b.cluster) || a.name.localeCompare(b.name));
  return (
    <>
      {clusters.length > maxClusters && <p class="faint">{fill(p.first, { n: maxClusters, all: clusters.length })}</p>}
      {errors.map(([c, e]) => <p class="notice failed" key={c}><b>{c}</b> {e.message}</p>)}
      {sorted.length === 0 && errors.length === 0 && <p class="notice">{p.empty}</p>}
      {sorted.length > 0 && (
        <>
          <div class="scroll" tabIndex={0} role="region" aria-label={p.title}>
            <table>
              <thead><tr><th scope="col">{t.workload.cluster}</th><th scope="col">{p.pod}</th><th scope="col">{t.cluster.state}</th><th scope="col">{p.ready}</th><th scope="col">{p.restarts}</th><th scope="col">{p.node}</th><th scope="col">{p.age}</th></tr></thead>
              <tbody>
                {sorted.slice(0, 300).map((x) => {
                  const well = x.phase === "Succeeded" || x.phase === "Running" && x.ready === x.containers.length;
                  return (
                    <tr key={x.cluster + x.name}>
                      <td><span class={"hue " + hue(x.cluster)}>{x.cluster}</span></td>
                      <td><button type="button" class="link" data-row aria-pressed={pod === x.name} onClick={() => { setPod(pod === x.name ? "" : x.name); setCluster(pod === x.name ? "" : x.cluster); }}>{x.name}</button></td>
                      <td><Mark state={well ? "Healthy" : x.phase === "Pending" && !x.reason ? "Progressing" : "Unhealthy"} />{x.reason ?? x.phase}</td>
                      <td>{x.ready}/{x.containers.length}</td><td>{x.restarts}</td><td>{x.node ?? ""}</td><td><Age since={x.since} /></td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
          <div class="tools logs">
            <h2>{p.logs}</h2>
            <label class="choice"><span>{t.workload.cluster}</span><select onChange={(e) => { setCluster((e.target as HTMLSelectElement).value); setPod(""); }}><option value="">{t.all}</option>{clusters.map((c) => <option value={c} key={c} selected={c === cluster}>{c}</option>)}</select></label>
            <label class="choice"><span>{p.container}</span><select onChange={(e) => setContainer((e.target as HTMLSelectElement).value)}>{[...new Set(pods.flatMap((x) => x.containers))].map((c) => <option value={c} key={c} selected={c === container}>{c}</option>)}</select></label>
            <label class="check"><input type="checkbox" checked={previous} onChange={() => setPrevious(!previous)} /> {p.previous}</label>
            {pod && <span class="chip plain">{pod}</span>}
            <span class="count">{fill(p.lines, { n: log.length })}</span>
          </div>
          {failed.slice(0, 5).map((f) => <p class="notice failed" key={f}>{f}</p>)}
          <div class="log" ref={box} tabIndex={0} role="log" aria-label={p.logs} aria-live="off" onScroll={() => { const b = box.current!; stick.current = b.scrollHeight - b.scrollTop - b.clientHeight < 40; }}>
            {log.length === 0 ? <p>{p.noLines}</p> : log.map((l, i) => <div key={i}><span class={"hue " + hue(l.cluster)} title={l.pod}>{l.cluster}</span> <time>{l.at.slice(11, 23)}</time> {l.text}</div>)}
          </div>
        </>
      )}
    </>
  );
}
