// Create and edit objects as YAML: check, what if, apply.
import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, draftPrefix, get, HubError, stream, useSource, type Missing } from "./hub";
import { fill, said, t } from "./i18n";
import { href, usePlace } from "./route";
import { walkHref } from "./fleet";
import { announce, Command, Failure, Mark, missingText, Page, Waiting } from "./ui";
import { Simple } from "./clusters";
import { completion, Fields } from "./schema";

interface Changed { group?: string; kind: string; namespace?: string; name: string; result?: "created" | "updated" | "unchanged"; diff?: string[]; error?: string; missing?: Missing; warnings?: string[]; clusters?: { cluster: string; diff?: string[]; error?: string }[] }
interface Placed { policy?: string; clusters?: { name: string; replicas?: number }[] | null }
interface Outcome {
  objects: Changed[]; applied: boolean; noWhatIf?: string; command: string;
  whatIf?: {
    summary: { workloads: number; changed: number; movedReplicas: number; unplaced: number }; warnings?: string[];
    workloads: { kind: string; namespace?: string; name: string; before: Placed; after: Placed; problem?: string; wouldFit?: string[]; overridden?: { cluster: string; changes?: string[]; problem?: string }[] }[];
  };
}

const places = (p: Placed) => (p.clusters ?? []).map((c) => c.name + (c.replicas ? ":" + c.replicas : "")).join(" ") || "–";

/** secret reports whether a text may have the values of a Secret, which the tab does not keep. */
const secret = (text: string) => /kind["']?\s*:\s*["']?Secret/.test(text);

function useDraft(key: string): [string | undefined, (text: string) => void, () => void] {
  const [text, set] = useState<string | undefined>(() => sessionStorage.getItem(key) ?? undefined);
  const drop = () => sessionStorage.removeItem(key);
  return [text, (next) => {
    set(next);
    try { if (secret(next)) drop(); else sessionStorage.setItem(key, next); } catch { /* the tab keeps it in memory */ }
  }, drop];
}

/** apiVersions are those of the kinds that the form writes or that its policy selects. */
const apiVersions = { Deployment: "apps/v1", CloneSet: "apps.kruise.io/v1alpha1", StatefulSet: "apps/v1" };
type Selected = keyof typeof apiVersions;
const formKinds = ["Deployment", "CloneSet", "Service", "PropagationPolicy"];
const serviceTypes = ["ClusterIP", "NodePort", "LoadBalancer"];

/** list splits a field of the form. */
const list = (field: string) => field.split(/[\s,]+/).filter(Boolean);

/** affinity writes the clusters of a placement. */
const affinity = (clusters: string[]) => (clusters.length ? `    clusterAffinity:\n      clusterNames: [${clusters.map((c) => JSON.stringify(c)).join(", ")}]\n` : "");

/** serviceOf writes a Service with its policy, whose name differs from that of the workload with the name of the Service. */
function serviceOf(at: (field: string) => string): string {
  const q = JSON.stringify, name = q(at("name")), namespace = `  namespace: ${q(at("namespace"))}`;
  const selector = Object.fromEntries(list(at("selector")).map((label) => [label.slice(0, label.indexOf("=")), label.slice(label.indexOf("=") + 1)]));
  const ports = list(at("ports")).map((p) => p.split(":").map(Number)).map(([port, target]) => `  - {name: port-${port}, port: ${port}, targetPort: ${target ?? port}}`);
  const clusters = affinity(list(at("clusters")));
  return `apiVersion: v1\nkind: Service\nmetadata:\n  name: ${name}\n${namespace}\nspec:\n  type: ${at("service")}\n  selector: ${q(selector)}\n  ports:\n${ports.join("\n")}\n---\n` +
    `apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata:\n  name: ${q(at("name") + "-service")}\n${namespace}\nspec:\n  resourceSelectors:\n  - {apiVersion: v1, kind: Service, name: ${name}}\n` +
    (clusters ? "  placement:\n" + clusters : "  placement: {}\n");
}

/** yamlOf writes a workload with its Service and policy, a Service with its policy, or a policy alone. at returns a field of the form. */
function yamlOf(kind: string, at: (field: string) => string): string {
  if (kind === "Service") return serviceOf(at);
  const q = JSON.stringify, name = q(at("name")), meta = `metadata:\n  name: ${name}\n  namespace: ${q(at("namespace"))}`;
  const selects = (kind === "PropagationPolicy" ? at("selected") : kind) as Selected, workload = kind === "PropagationPolicy" ? at("workload") : at("name");
  const selectors = [`  - {apiVersion: ${apiVersions[selects]}, kind: ${selects}${workload ? `, name: ${q(workload)}` : ""}}`];
  const parts: string[] = [], port = at("port"), service = at("service");
  if (kind !== "PropagationPolicy") {
    parts.push(`apiVersion: ${apiVersions[selects]}\nkind: ${kind}\n${meta}\nspec:\n  replicas: ${Number(at("replicas"))}\n  selector:\n    matchLabels: {app: ${name}}\n  template:\n    metadata:\n      labels: {app: ${name}}\n    spec:\n      containers:\n      - name: ${name}\n        image: ${q(at("image"))}` + (port ? `\n        ports:\n        - containerPort: ${Number(port)}` : ""));
  }
  if (service && port) {
    selectors.push(`  - {apiVersion: v1, kind: Service, name: ${name}}`);
    parts.push(`apiVersion: v1\nkind: Service\n${meta}\nspec:\n  type: ${service}\n  selector: {app: ${name}}\n  ports:\n  - port: ${Number(port)}`);
  }
  const type = at("division") === "Duplicated" ? "    replicaSchedulingType: Duplicated" : "    replicaSchedulingType: Divided\n      replicaDivisionPreference: " + at("division");
  parts.push(`apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\n${meta}\nspec:\n  resourceSelectors:\n${selectors.join("\n")}\n  placement:\n` +
    affinity(list(at("clusters"))) + `    replicaScheduling:\n  ${type}`);
  return parts.join("\n---\n") + "\n";
}

/** StartForm writes the YAML of a workload, its Service and its policy, of a Service and its policy, or of a policy alone. It folds when there is a text. */
function StartForm({ write, off, start, open }: { write: (text: string) => void; off: boolean; start: string; open: boolean }) {
  const f = t.form, form = useRef<HTMLFormElement>(null);
  const [kind, setKind] = useState(formKinds.includes(start) ? start : formKinds[0]);
  const [service, setService] = useState("");
  const alone = kind === "PropagationPolicy", only = kind === "Service", runs = !alone && !only, label = "[^\\s,=]+=[^\\s,=]*", ports = "[0-9]{1,5}(:[0-9]{1,5})?", name = "[a-z0-9]([a-z0-9\\-]*[a-z0-9])?";
  const submit = (e: Event) => {
    e.preventDefault();
    const data = new FormData(form.current!);
    write(yamlOf(kind, (field) => String(data.get(field) ?? "").trim()));
  };
  return (
    <details class="generator" open={open}>
      <summary>{f.title}</summary>
      <form ref={form} class="form" onSubmit={submit}>
        <div class="pair">
          <div><label for="f-kind">{f.kind}</label><select id="f-kind" value={kind} onChange={(e) => setKind((e.target as HTMLSelectElement).value)}>{formKinds.map((k) => <option value={k} key={k}>{k === "PropagationPolicy" ? f.policyAlone : k === "Service" ? f.serviceAlone : k}</option>)}</select></div>
          <div><label for="f-name">{t.workload.name}</label><input id="f-name" name="name" required maxLength={50} pattern={only ? name.replace("0-9", "") : name} autoComplete="off" /></div>
          <div><label for="f-namespace">{t.workload.namespace}</label><input id="f-namespace" name="namespace" required pattern={name} defaultValue="default" autoComplete="off" /></div>
          {alone && <div><label for="f-selected">{f.selected}</label><select id="f-selected" name="selected">{Object.keys(apiVersions).map((k) => <option key={k}>{k}</option>)}</select></div>}
          {alone && <div><label for="f-workload">{f.workload}</label><input id="f-workload" name="workload" autoComplete="off" /></div>}
          {runs && <div><label for="f-image">{f.image}</label><input id="f-image" name="image" required autoComplete="off" /></div>}
          {runs && <div><label for="f-replicas">{t.cluster.replicas}</label><input id="f-replicas" name="replicas" type="number" min="0" max="100000" required defaultValue="2" /></div>}
          {runs && <div><label for="f-port">{service ? f.portNeeded : f.port}</label><input id="f-port" name="port" type="number" min="1" max="65535" required={service !== ""} /></div>}
          {!alone && <div><label for="f-service">{only ? f.serviceType : f.service}</label><select id="f-service" name="service" value={service || (only ? serviceTypes[0] : "")} onChange={(e) => setService((e.target as HTMLSelectElement).value)}>{runs && <option value="">{f.noService}</option>}{serviceTypes.map((s) => <option value={s} key={s}>{s}</option>)}</select></div>}
          {only && <div><label for="f-ports">{f.ports}</label><input id="f-ports" name="ports" required pattern={`${ports}([\\s,]+${ports})*`} autoComplete="off" /></div>}
          {only && <div><label for="f-selector">{f.selector}</label><input id="f-selector" name="selector" required pattern={`${label}([\\s,]+${label})*`} autoComplete="off" /></div>}
          <div><label for="f-clusters">{f.clusters}</label><input id="f-clusters" name="clusters" autoComplete="off" /></div>
          {!only && <div><label for="f-division">{f.division}</label><select id="f-division" name="division"><option value="Weighted">{f.divided}</option><option value="Aggregated">{f.aggregated}</option><option value="Duplicated">{f.duplicated}</option></select></div>}
        </div>
        <button type="submit" disabled={off} aria-describedby={off ? "form-off" : undefined}>{f.write}</button>
        {off && <p class="hint" id="form-off">{f.off}</p>}
      </form>
    </details>
  );
}

function Result({ one }: { one: Changed }) {
  const x = t.change;
  return (
    <li class={"item " + (one.error ? "bad" : "good")}>
      <Mark state={one.error ? "Problem" : "Healthy"} />
      <div class="body">
        <p class="title"><span class="kind">{one.kind}</span> {one.namespace ? <span class="ns">{one.namespace}/</span> : null}{one.name}</p>
        <p class="what">{one.error ? (one.missing ? missingText(one.missing) : said(one.error)) : x.result[one.result ?? "unchanged"]}</p>
        {one.result === "updated" && one.diff && <ul class="diff">{one.diff.map((d) => <li key={d}>{d}</li>)}</ul>}
        {one.warnings?.length ? <><p class="hint">{x.warnings}</p><ul class="prose">{one.warnings.map((w) => <li key={w}>{said(w)}</li>)}</ul></> : null}
        {one.clusters?.map((c) => <div key={c.cluster}><p class="hint">{fill(x.inCluster, { cluster: c.cluster })}</p><ul class="diff">{(c.diff ?? [c.error ?? ""]).map((d) => <li key={d}>{d}</li>)}</ul></div>)}
      </div>
    </li>
  );
}

export function ChangePage() {
  const { query } = usePlace();
  const kind = query.get("kind") ?? "", ns = query.get("ns") ?? "", name = query.get("name") ?? "";
  // What the hub writes into the object before it is edited: the name of a pod that is to be deleted.
  const pod = query.get("deletePod") ?? "", edits: Record<string, string> = pod ? { deletePod: pod, ...(query.has("fewer") ? { fewer: "1" } : {}) } : {};
  const [text, setText, drop] = useDraft(draftPrefix + [kind, ns, name, ...Object.values(edits)].join("/"));
  const [found] = useState(text !== undefined);
  const [made, setMade] = useState("");
  const [error, setError] = useState<HubError>();
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<{ of: string; is: Outcome }>();
  const [cursor, setCursor] = useState(0);
  const editor = useRef<HTMLTextAreaElement>(null);
  const x = t.change;
  useSource(stream);
  const complete = (typed: string, key: string) => {
    const at = editor.current!, c = completion(at.value, cursor, typed, key);
    at.setRangeText(c.text, c.from, c.to, "end");
    at.setSelectionRange(c.cursor, c.cursor);
    at.focus();
    setCursor(at.selectionStart);
    setText(at.value);
  };
  const follow = (e: Event) => setCursor((e.target as HTMLTextAreaElement).selectionStart);
  const load = () => {
    setError(undefined);
    get<{ yaml: string }>("api/object?" + new URLSearchParams({ kind, namespace: ns, name, ...(outcome?.is.applied ? {} : edits) })).then((o) => { setText(o.yaml); drop(); setOutcome(undefined); }, setError);
  };
  useEffect(() => { if (text === undefined) { if (name) load(); else setText(""); } }, []);
  const send = async (apply: boolean) => {
    const of = text ?? "";
    setBusy(true);
    setError(undefined);
    try {
      const is: Outcome = await (await call("api/change", { method: "POST", body: JSON.stringify({ yaml: of, apply }) })).json();
      setOutcome({ of, is });
      if (is.applied) {
        drop();
        // Read again, the object must not be edited a second time.
        if (pod) history.replaceState(null, "", href(["change"], { kind, ns, name }));
      }
      announce(is.applied ? x.applied : is.objects.some((o) => o.error) ? x.refused : x.checked);
    } catch (e) {
      setError(e as HubError);
    }
    setBusy(false);
  };
  const is = outcome?.is, current = outcome?.of === text, lost = stream.state === "lost";
  const ready = !!is && current && !is.applied && is.objects.every((o) => !o.error);
  const onKey = (e: KeyboardEvent) => {
    if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey) || busy || lost || !text) return;
    e.preventDefault();
    send(ready);
  };
  const s = is?.whatIf?.summary;
  return (
    <Page title={name ? `${x.edit}: ${kind.split(".")[0]} ${ns ? ns + "/" : ""}${name}` : x.create} wide sub={<p class="crumb"><a href={href(["workloads"])}>{t.workloads}</a></p>}>
      {text === undefined && !error && <Waiting />}
      {text === undefined && error && <Failure error={error} retry={load} />}
      {text !== undefined && (
        <div class="split even">
          <div>
            {pod && text.includes(pod) && <p class="notice">{fill(x.deletesPod, { pod })}{edits.fewer && " " + x.fewerInEach}</p>}
            {!name && <StartForm start={query.get("form") ?? ""} open={text === "" || query.has("form")} off={text !== "" && text !== made} write={(next) => { setText(next); setMade(next); }} />}
            <form class="form" onSubmit={(e) => { e.preventDefault(); send(false); }}>
              <label for="yaml">{x.yaml}</label>
              {found && <p class="hint">{x.draft} {name && <button type="button" class="link" onClick={load}>{x.discard}</button>}</p>}
              <textarea id="yaml" ref={editor} onKeyUp={follow} onClick={follow} required rows={24} autoComplete="off" spellcheck={false} wrap="off" aria-describedby="yaml-hint" value={text} onKeyDown={onKey} onInput={(e) => { follow(e); setText((e.target as HTMLTextAreaElement).value); }} />
              <Fields text={text} cursor={cursor} complete={complete} />
              <p class="hint" id="yaml-hint">{x.hint}</p>
              <p class="buttons">
                <button type="submit" class={ready ? "" : "primary"} disabled={busy || lost}>{busy ? x.working : x.check}</button>
                <button type="button" class={ready ? "primary" : ""} disabled={!ready || busy || lost} onClick={() => send(true)}>{x.apply}</button>
              </p>
              {lost && <p class="hint">{t.actions.lost}</p>}
            </form>
          </div>
          <section class="outcome" aria-labelledby="outcome" aria-busy={busy}>
            <h2 id="outcome">{x.outcome}</h2>
            {error && (error.code === 422 ? <div class="notice failed" role="alert"><p>{x.refused}</p><p>{said(error.message)}</p></div> : <Failure error={error} />)}
            {!is && !error && <p class="faint">{x.noneYet}</p>}
            {is && (
              <>
                <p class={is.applied ? "notice calm" : "faint"}>{is.applied ? x.applied : !current ? x.changedSince : ready ? x.checked : x.refused}</p>
                <ul class="items">{is.objects.map((o, i) => <Result one={o} key={i} />)}</ul>
                {is.applied && <p class="buttons">{is.objects.filter((o) => o.group !== "policy.karmada.io").map((o) => <a class="button" href={walkHref(o)} key={o.kind + o.name}>{fill(x.open, { what: `${o.kind} ${o.name}` })}</a>)}</p>}
                {s && (
                  <>
                    <h3>{x.whatIf}</h3>
                    <p class={s.unplaced ? "alarm" : ""}>{fill(x.summary, { changed: s.changed, n: s.workloads, moved: s.movedReplicas, unplaced: s.unplaced })}</p>
                    {is.whatIf!.workloads.length > 0 && <Simple head={[t.cluster.template, x.before, x.after, t.cluster.problems]} rows={is.whatIf!.workloads.map((w) => [`${w.kind} ${w.namespace ? w.namespace + "/" : ""}${w.name}`, places(w.before), places(w.after), [w.problem, ...(w.wouldFit ?? [])].filter(Boolean).map((text) => said(text!)).join(" · ")])} />}
                    {is.whatIf!.workloads.flatMap((w) => (w.overridden ?? []).map((o) => <div key={w.name + o.cluster}><p><b>{o.cluster}</b> {w.name}</p><ul class="diff">{[...(o.changes ?? []), ...(o.problem ? [o.problem] : [])].map((d) => <li key={d}>{d}</li>)}</ul></div>))}
                    {(is.whatIf!.warnings ?? []).map((w) => <p class="faint" key={w}>{said(w)}</p>)}
                  </>
                )}
                {is.noWhatIf && <p class="notice">{x.noWhatIf} {said(is.noWhatIf)}</p>}
                <p class="same">{t.walk.command} <Command text={is.command} /> {!is.applied && <Command text="argosy simulate -f FILE" />}</p>
              </>
            )}
          </section>
        </div>
      )}
    </Page>
  );
}
