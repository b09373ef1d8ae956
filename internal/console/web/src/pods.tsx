// Pods and logs of all clusters of a workload, read in the members as the user.
import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, get, HubError, type Missing } from "./hub";
import { fill, t } from "./i18n";
import { member } from "./members";
import { href, setFilter, usePlace } from "./route";
import { Age, Failure, Filter, Mark, missingText, named, Same, Waiting } from "./ui";

/** maxClusters bounds the members that one page reads, maxDrawn the pods that it draws at once. */
const maxClusters = 8, maxDrawn = 300;
/** maxLines is how many lines of logs are kept, and maxShown how many are drawn; maxLine bounds one line. */
const maxLines = 20_000, maxShown = 1_500, maxLine = 16_384;

interface Pod { cluster: string; name: string; containers: string[]; phase: string; state: string; ready: number; restarts: number; since: number; node?: string; reason?: string; owner?: string }
interface Answer { pods: Pod[]; errors: { cluster: string; message: string; missing?: Missing }[]; more?: string[]; none?: boolean }

/** refreshEvery is how often the pods are read. The hub shares what it reads between the pages of a user. */
const refreshEvery = 2500;

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

/** usePods reads the pods of a workload in its clusters again and again, while the page is visible. */
function usePods(kind: string, namespace: string, name: string, clusters: string[]) {
  const path = "api/pods?" + new URLSearchParams({ kind, namespace, name, clusters: clusters.slice(0, maxClusters).join() });
  const [state, set] = useState<{ path: string; answer?: Answer; error?: HubError }>({ path });
  const [turn, again] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer: number | undefined, read = false;
    const loop = async () => {
      if (!document.hidden || !read) {
        await get<Answer>(path, abort.signal).then(
          (answer) => {
            read = true;
            // The last pods of a cluster that does not answer stay.
            const silent = new Set(answer.errors.filter((e) => !e.missing).map((e) => e.cluster));
            set((old) => ({ path, answer: { ...answer, pods: [...answer.pods, ...(old.path === path ? old.answer?.pods ?? [] : []).filter((p) => silent.has(p.cluster))] } }));
          },
          (error) => { if (!abort.signal.aborted) set((old) => ({ path, answer: old.path === path ? old.answer : undefined, error })); });
      }
      if (!abort.signal.aborted) timer = window.setTimeout(loop, refreshEvery);
    };
    loop();
    return () => { clearTimeout(timer); abort.abort(); };
  }, [path, turn]);
  return { ...(state.path === path ? state : { answer: undefined, error: undefined }), retry: () => again((n) => n + 1) };
}

/** visible makes characters visible that change how a line looks. Colours of terminals are left out. */
export function visible(line: string): string {
  return named(line.slice(0, maxLine).replace(/\x1b\[[0-9;]*m/g, "").replace(/\r$/, "").replace(/[\x00-\x08\x0b-\x1f\x7f]/g, (c) => (c === "\x1b" ? "␛" : "�")));
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

/** PodsAndLogs shows the pods of a workload; kind is such as "Deployment.apps". */
export function PodsAndLogs({ kind, namespace, name, clusters }: { kind: string; namespace: string; name: string; clusters: string[] }) {
  const p = t.pods;
  const { answer, error, retry } = usePods(kind, namespace, name, clusters);
  // The last pods of a silent cluster are at the end of the answer. Sorted, they keep their places and their logs.
  const pods = [...(answer?.pods ?? [])].sort((a, b) => clusters.indexOf(a.cluster) - clusters.indexOf(b.cluster) || a.name.localeCompare(b.name));
  const q = usePlace().query.get("q") ?? "", wanted = q.toLowerCase();
  const matching = wanted ? pods.filter((x) => `${x.cluster} ${x.name} ${x.reason ?? x.phase} ${x.node ?? ""}`.toLowerCase().includes(wanted)) : pods;
  const errors = answer?.errors ?? [];
  const [cluster, setCluster] = useState("");
  const [pod, setPod] = useState("");
  const [container, setContainer] = useState("");
  const [previous, setPrevious] = useState(false);
  // The hub deletes no pod of another controller, and none that is gone: one replica fewer would then cost another pod.
  const deletable = kind === "CloneSet.apps.kruise.io" && pods.some((x) => x.cluster === cluster && x.name === pod && x.owner === `${kind}/${name}`);
  const inScope = pods.filter((x) => (!cluster || x.cluster === cluster) && (!pod || x.name === pod));
  const { lines: log, errors: failed } = useLogs(inScope.slice(0, 20), namespace, container, previous);
  const box = useRef<HTMLDivElement>(null), stick = useRef(true);
  useEffect(() => { if (stick.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [log]);
  const hue = (c: string) => "c" + (clusters.indexOf(c) % 8);
  if (error && !answer) return <Failure error={error} retry={retry} />;
  if (!answer) return <Waiting />;
  if (answer.none) return <p class="notice">{p.none}</p>;
  return (
    <>
      {clusters.length > maxClusters && <p class="faint">{fill(p.first, { n: maxClusters, all: clusters.length })}</p>}
      {error && <Failure error={error} retry={retry} />}
      {errors.map((e) => <p class="notice failed" key={e.cluster}><b>{e.cluster}</b> {e.missing ? missingText(e.missing) : e.message}</p>)}
      {answer.more?.map((c) => <p class="faint" key={c}>{fill(p.more, { cluster: c, n: pods.filter((x) => x.cluster === c).length })}</p>)}
      {pods.length === 0 && errors.length === 0 && <p class="notice">{p.empty}</p>}
      {pods.length > 0 && (
        <>
          <div class="tools">
            <Filter value={q} onChange={(v) => setFilter("q", v)} hint={p.filterHint} />
            <span class="count" role="status">{fill(t.shown, { n: matching.length, all: pods.length })}</span>
          </div>
          {matching.length > maxDrawn && <p class="faint">{fill(p.drawn, { n: maxDrawn, all: matching.length })}</p>}
          {matching.length === 0 && <p class="notice">{t.nothingMatches}</p>}
          {matching.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label={p.title}>
            <table class="objects">
              <thead><tr><th scope="col">{t.workload.cluster}</th><th scope="col">{t.cluster.state}</th><th scope="col">{p.pod}</th><th scope="col">{p.ready}</th><th scope="col">{p.restarts}</th><th scope="col">{p.node}</th><th scope="col">{p.age}</th></tr></thead>
              <tbody>
                {matching.slice(0, maxDrawn).map((x) => (
                    <tr key={x.cluster + x.name}>
                      <td><span class={"hue " + hue(x.cluster)}>{x.cluster}</span></td>
                      <td><Mark state={x.state} />{x.reason ?? x.phase}</td>
                      <td><button type="button" class="link" data-row aria-pressed={pod === x.name} onClick={() => { setPod(pod === x.name ? "" : x.name); setCluster(pod === x.name ? "" : x.cluster); }}>{x.name}</button></td>
                      <td>{x.ready}/{x.containers.length}</td><td>{x.restarts}</td><td>{x.node ?? ""}</td><td><Age since={x.since} /></td>
                    </tr>
                ))}
              </tbody>
            </table>
          </div>}
          <div class="tools logs">
            <h2>{p.logs}</h2>
            <label class="choice"><span>{t.workload.cluster}</span><select onChange={(e) => { setCluster((e.target as HTMLSelectElement).value); setPod(""); }}><option value="">{t.all}</option>{clusters.map((c) => <option value={c} key={c} selected={c === cluster}>{c}</option>)}</select></label>
            <label class="choice"><span>{p.container}</span><select onChange={(e) => setContainer((e.target as HTMLSelectElement).value)}>{[...new Set(pods.flatMap((x) => x.containers))].map((c) => <option value={c} key={c} selected={c === container}>{c}</option>)}</select></label>
            <label class="check"><input type="checkbox" checked={previous} onChange={() => setPrevious(!previous)} /> {p.previous}</label>
            {pod && <span class="chip plain">{pod}</span>}
            {deletable && [["", p.replace], ["1", p.remove]].map(([fewer, text]) => <a class="button" key={fewer} href={href(["change"], { kind, ns: namespace, name, deletePod: pod, fewer })}>{text}</a>)}
            <span class="count">{fill(p.lines, { n: log.length })}</span>
          </div>
          {failed.slice(0, 5).map((f) => <p class="notice failed" key={f}>{f}</p>)}
          <div class="log" ref={box} tabIndex={0} role="log" aria-label={p.logs} aria-live="off" onScroll={() => { const b = box.current!; stick.current = b.scrollHeight - b.scrollTop - b.clientHeight < 40; }}>
            {log.length === 0 ? <p>{p.noLines}</p> : log.map((l, i) => <div key={i}><span class={"hue " + hue(l.cluster)} title={l.pod}>{l.cluster}</span> <time>{l.at.slice(11, 23)}</time> {l.text}</div>)}
          </div>
        </>
      )}
      <Same names={[kind, name, namespace]} text={`argosy logs ${kind.toLowerCase()}/${name} -n ${namespace} --all-clusters --tail 20 -f`} />
    </>
  );
}
