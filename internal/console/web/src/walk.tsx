import { h, Fragment, type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { stream, useTopic, type Missing } from "./hub";
import { fill, said, t } from "./i18n";
import { href, usePlace } from "./route";
import { PodsAndLogs } from "./pods";
import { Actions, Past } from "./actions";
import { openReleases, ReleaseOfWorkload } from "./releases";
import { Findings, Simple, Tabs, useAnswer, type Finding } from "./clusters";
import { Failure, Hidden, Mark, Next, Page, Same, stateText, toneOf, Waiting } from "./ui";

interface Lane {
  name: string; state: string; bad?: boolean; readyPods?: number; wantedPods?: number; why?: string; target?: boolean; replicas?: number; overrides?: { policy: string; overriders: string }[];
  work?: { applied: boolean };
  pods?: { pods: number; troubles?: { pods: number; reason: string; message?: string }[]; others?: number };
}
interface Answer {
  apiVersion: string; kind: string; namespace?: string; name: string; summary: string; findings?: Finding[];
  /** policy is missing for objects that no policy propagates, such as a ManifestWork. */
  policy?: { holder?: string; why?: string; candidates?: { policy: string; priority: number; selects?: string; holds?: boolean; why?: string }[] };
  placement?: { binding: string; scheduled?: { status: string; message: string }; replicas?: number; method?: string; steps?: string[]; failure?: string };
  /** objects are those of a ManifestWork. */
  objects?: { object: string; applied?: string; available?: string; health?: string; why?: string }[];
  clusters?: Lane[]; scaling?: string[]; warnings?: { object: string; reason: string; message: string; last: string }[]; missing?: Missing[];
}

const shownLanes = 24;

/** Station is one column of the walk; findings stand where the object is stuck. */
function Station({ title, state, children, findings }: { title: string; state: string; children: ComponentChildren; findings?: Finding[] }) {
  return (
    <li class={"station " + toneOf(state)}>
      <h3><Mark state={state} />{title}</h3>
      <div class="detail">{children}</div>
      {findings?.map((f, i) => <div class={"stuck " + toneOf(f.severity)} key={i}><p class="what">{said(f.what)}</p><Next text={f.next} /></div>)}
    </li>
  );
}

function LaneRow({ lane, findings }: { lane: Lane; findings: Finding[] }) {
  const w = t.walk, state = lane.state;
  const trouble = (lane.pods?.troubles ?? []).reduce((n, x) => n + x.pods, 0) + (lane.pods?.others ?? 0);
  return (
    <li class={"lane " + toneOf(state) + (state === "Lost" ? " silent" : "")}>
      <div class="cells">
        <div class="cell first"><Mark state={state} /><span class="two"><a class="open" data-row href={href(["clusters", lane.name])}><b>{lane.name}</b></a><small>{lane.replicas ? fill(w.replicas, { n: lane.replicas }) : ""}</small></span></div>
        <div class="cell"><span class="label">{w.work}</span><span>{!lane.work ? w.notSent : lane.work.applied ? w.applied : w.notApplied}</span></div>
        <div class="cell"><span class="label">{w.object}</span><span>{stateText(state)}</span></div>
        <div class="cell"><span class="label">{w.pods}</span><span>{trouble ? fill(w.podsOf, { bad: trouble, n: lane.pods!.pods }) : lane.wantedPods ? fill(w.podsReady, { n: lane.readyPods ?? 0, all: lane.wantedPods }) : w.podsUnknown}</span></div>
      </div>
      {findings.map((f, i) => <div class={"stuck " + toneOf(f.severity)} key={i}><p class="what">{said(f.what)}</p><Next text={f.next} /></div>)}
      {lane.overrides?.length ? <p class="faint">{w.overrides}: {lane.overrides.map((o) => `${o.policy} (${o.overriders})`).join(", ")}</p> : null}
      {!findings.length && lane.why && state !== "Healthy" && <p class="faint">{said(lane.why)}</p>}
    </li>
  );
}

export function WalkPage({ group, kind, namespace, name }: { group: string; kind: string; namespace: string; name: string }) {
  const topic = useTopic("workloads", "clusters", "releases");
  const kindText = kind + (group ? "." + group : "");
  const releases = openReleases(stream.topic("releases").rows.values(), kindText, namespace, name);
  const [open, setOpen] = useState(false);
  const tab = usePlace().query.get("tab") ?? "";
  const query = new URLSearchParams({ kind: group ? `${kind}.${group}` : kind, name, namespace });
  const { answer: a, error, retry } = useAnswer<Answer>("api/why?" + query, topic.version);
  const w = t.walk;
  const title = (namespace ? namespace + "/" : "") + name;
  const lanes = !a?.policy ? [] : (a.clusters ?? []).filter((c) => c.target || c.work);
  const about = (c: string) => (a?.findings ?? []).filter((f) => f.cluster === c);
  const general = (a?.findings ?? []).filter((f) => !f.cluster || !lanes.some((l) => l.name === f.cluster));
  const unplaced = a && (!a.placement || a.placement.failure || a.placement.scheduled?.status === "False");
  const shown = open ? lanes : lanes.slice(0, shownLanes);
  // The findings of the object as a whole stand in the first column that is not well.
  const stuck = !a?.policy ? "" : !a.policy.holder ? "policy" : unplaced ? "placement" : "after";
  // A warning about the binding often repeats that about the template.
  const warnings = (a?.warnings ?? []).filter((x, i, all) => all.findIndex((y) => y.reason === x.reason && y.message === x.message) === i);
  const same = <Same names={[kindText, name, namespace]} text={`argosy why ${kindText.toLowerCase()} ${name}${namespace ? " -n " + namespace : ""}`} />;
  return (
    <Page title={title} wide aside={a?.policy ? <Actions query={query} version={topic.version} title={`${kind} ${title}`} clusters={lanes.length} /> : null} sub={<p class="crumb"><a href={href(["workloads"])}>{t.workloads}</a> · {kindText}</p>}>
      {!a && !error && <Waiting />}
      {error && <Failure error={error} retry={retry} />}
      {a && !a.policy && (
        <>
          <p class="summary">{a.summary}</p>
          <Findings findings={a.findings} none={w.noFindings} />
          <Hidden missing={a.missing} />
          {a.objects?.length ? <Simple head={[w.object, w.applied, t.release.available, w.health, t.cluster.why]} rows={a.objects.map((o) => [o.object, o.applied ?? "", o.available ?? "", o.health ?? "", o.why ?? ""])} /> : null}
          {same}
        </>
      )}
      {a?.policy && (
        <>
          <p class="summary">{a.summary}</p>
          <Hidden missing={a.missing} />
          {releases.map((r) => <ReleaseOfWorkload row={r} key={r.name} />)}
          {lanes.length > 0 && namespace && <Tabs label={title} tab={tab} tabs={[["", t.pods.walk], ["pods", t.pods.tab]]} />}
          {tab === "pods" ? <PodsAndLogs kind={kindText} namespace={namespace} name={name} clusters={lanes.map((l) => l.name).sort()} /> : <>
          <ol class="stations">
            <Station title={w.template} state="Healthy"><span>{kind}</span> <b>{title}</b></Station>
            <Station title={w.policy} state={a.policy.holder ? "Healthy" : "Attention"} findings={stuck === "policy" ? general : []}>{a.policy.holder ?? a.policy.why ?? w.noPolicy}</Station>
            <Station title={w.placement} state={unplaced ? (a.policy.holder ? "Problem" : "Waiting") : "Healthy"} findings={stuck === "placement" ? general : []}>
              {unplaced && stuck === "placement" && general.length ? w.noPlacement : unplaced ? a.placement?.failure || a.placement?.scheduled?.message || w.noPlacement : <>{a.placement!.replicas ? fill(w.replicas, { n: a.placement!.replicas }) + " · " : ""}{fill(t.workload.inClusters, { n: lanes.length })}</>}
            </Station>
          </ol>
          {stuck === "after" && general.length > 0 && <Findings findings={general} none="" />}
          {lanes.length > 0 && <h2 class="section">{t.clusters}</h2>}
          <ul class="lanes">{shown.map((l) => <LaneRow lane={l} findings={about(l.name)} key={l.name} />)}</ul>
          {lanes.length > shown.length && <button type="button" onClick={() => setOpen(true)}>{fill(t.cluster.more, { n: lanes.length - shown.length })}</button>}
          {a.scaling?.length ? <details><summary>{w.scaling}</summary><ul class="prose">{a.scaling.map((s) => <li key={s}>{s}</li>)}</ul></details> : null}
          {a.placement?.steps?.length ? <details><summary>{w.steps}</summary><ol class="prose">{a.placement.steps.map((s) => <li key={s}>{s}</li>)}</ol></details> : null}
          {(a.policy.candidates ?? []).length > 0 && <details><summary>{w.candidates}</summary><ul class="prose">{a.policy.candidates!.map((c) => <li key={c.policy}><b>{c.policy}</b> {c.why ?? ""}</li>)}</ul></details>}
          <Past query={query} version={topic.version} title={`${kind} ${title}`} clusters={lanes.length} />
          {warnings.length ? <><h2 class="section">{w.warnings}</h2><Simple head={[t.cluster.reason, w.object, t.workload.what]} rows={warnings.map((x) => [x.reason, x.object, x.message])} /></> : null}
          </>}
          {tab !== "pods" && same}
        </>
      )}
    </Page>
  );
}
