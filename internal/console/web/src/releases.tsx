// Releases: those that wait for a person first, and what a user can do to one.
import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, HubError, stream, useSource, useTopic, type Missing } from "./hub";
import { fill, t, when as whenAt } from "./i18n";
import { href, navigate, setFilter, usePlace } from "./route";
import { Simple, useAnswer } from "./clusters";
import { walkHref } from "./fleet";
import { Table, type Column } from "./rows";
import { Age, announce, Bar, type Change, Changes, Choice, Command, Failure, Filter, Forbidden, Mark, missingText, Next, Page, Same, States, Waiting } from "./ui";

type Phase = keyof typeof t.releasePhase;
type StagePhase = keyof typeof t.stagePhase;
export interface ReleaseRow {
  namespace: string; name: string; phase: Phase; ended?: boolean; reason?: string; severity?: "Problem" | "Attention"; what?: string; next?: string; since?: number;
  workloads: string[]; refs: string[]; author?: string; progress?: string; track?: { name: string; phase: StagePhase }[]; version?: string;
}
interface Check { name: string; verdict?: string; passed?: number; failed?: number; unclear?: number; value?: string; control?: string; message?: string; sampledAt?: string; nextAt?: string }
interface Gate { name: string; position: string; phase?: keyof typeof t.gatePhase; check?: Check; checkName?: string; need?: number; from?: string[]; notAuthor?: boolean; by?: string[]; comments?: string[]; since?: string; until?: string }
interface Planned { name: string; soak?: string; after?: string[]; clusters: { target: string; cluster: string; replicas: number; former: number; new: number }[] }
interface Evidence {
  targets: { kind: string; workload: string; from?: string; to: string; images: Change[]; changes: Change[] }[];
  starts: Planned[]; checks: { stage: string; gate: string; check: string; phase: keyof typeof t.gatePhase; text?: string }[]; notes?: string[];
}
interface Place { name: string; target: string; phase?: string; message?: string; new?: number; available?: number; want?: number }
interface Stage {
  name: string; environment?: string; phase: StagePhase; reason?: string; attempt: number; share?: string; clusters?: Place[]; gates?: Gate[];
  counts: { clusters?: number; reached?: number; failed?: number; skipped?: number; pods?: number; new?: number; available?: number };
}
interface Write { method: string; path: string; type: string; body: any }
interface Action { verb: keyof typeof t.verb; gate?: string; stage?: string; writes: Write[]; textAt: string[]; needed?: boolean; missing?: Missing; refused?: string }
interface Detail extends ReleaseRow {
  strategy?: string; change?: { url?: string; commit?: string; ticket?: string; reason?: string };
  targets: { group?: string; kind: string; namespace?: string; name: string; from?: string; to?: string }[];
  stages: Stage[]; guard?: { name: string; limit?: string; until?: string }; soakUntil?: string; actions: Action[]; unread?: string[];
  journal?: { seq: number; at: string; type: string; stage?: string; cluster?: string; actor?: string; reason: string; message?: string }[];
}

/** states name the colour and shape of phases. */
const states: Record<string, string> = {
  Succeeded: "Healthy", Done: "Healthy", Passed: "Healthy", Reached: "Healthy", Failed: "Problem", Rejected: "Problem", Lost: "Problem",
  Paused: "Attention", Gated: "Attention", RolledBack: "Attention", Aborted: "Attention", TimedOut: "Attention",
};
const stateOf = (phase?: string) => states[phase ?? ""] ?? "Progressing";
const releaseHref = (r: { namespace: string; name: string }) => href(["releases", r.namespace, r.name]);
const when = (time?: string) => (time ? whenAt(Date.parse(time)) : "");

/** Track shows the stages from left to right. */
function Track({ stages }: { stages?: { name: string; phase: StagePhase }[] }) {
  if (!stages?.length) return null;
  return (
    <ol class="track" aria-label={t.release.stages}>
      {stages.map((s) => <li class={"place " + (s.phase === "Pending" || s.phase === "Skipped" ? "" : { Healthy: "good", Problem: "bad", Attention: "warn", Progressing: "busy" }[stateOf(s.phase)])} key={s.name}>
        {s.phase === "Pending" || s.phase === "Skipped" ? <i class="hollow" aria-hidden="true" /> : <Mark state={stateOf(s.phase)} />}{s.name}<span class="sr">{t.stagePhase[s.phase]}</span></li>)}
    </ol>
  );
}

function ReleaseItem({ r }: { r: ReleaseRow }) {
  const state = r.severity ?? stateOf(r.phase);
  return (
    <li class={"item " + (r.severity === "Problem" ? "bad" : r.severity ? "warn" : "busy")}>
      <Mark state={state} label={t.releasePhase[r.phase]} />
      <div class="body">
        <p class="title"><a class="open" data-row data-next={r.next} href={releaseHref(r)}><span class="ns">{r.namespace}/</span>{r.name} <span class="kind">{r.workloads.join(", ")}</span></a></p>
        <Track stages={r.track} />
        <p class="what">{r.what}</p>
        {r.severity && <Next text={r.next} />}
      </div>
      <div class="meta"><span>{r.progress ? fill(t.release.pods, { n: r.progress }) : ""}</span><Age since={r.since} /></div>
    </li>
  );
}

/** shownItems bounds what a page draws of a list that is not windowed. */
const shownItems = 100;

function ReleaseItems({ title, releases }: { title: string; releases: ReleaseRow[] }) {
  if (releases.length === 0) return null;
  return (
    <>
      <h2 class="section">{title}</h2>
      <ul class="items">{releases.slice(0, shownItems).map((r) => <ReleaseItem r={r} key={r.namespace + "/" + r.name} />)}</ul>
      {releases.length > shownItems && <p class="faint">{fill(t.release.more, { n: releases.length - shownItems })}</p>}
    </>
  );
}

function columns(): Column<ReleaseRow>[] {
  const r = t.release;
  return [
    { id: "name", title: r.name, width: 1.5, sort: (a, b) => a.name.localeCompare(b.name), cell: (x) => <><Mark state={stateOf(x.phase)} /><span class="two"><b>{x.name}</b><small>{x.namespace}</small></span></> },
    { id: "workloads", title: r.workloads, width: 1.4, cell: (x) => x.workloads.join(", ") },
    { id: "state", title: r.phase, sort: (a, b) => a.phase.localeCompare(b.phase), cell: (x) => <span class="state" title={x.what}>{t.releasePhase[x.phase]}</span> },
    { id: "track", title: r.stages, width: 2, cell: (x) => <Track stages={x.track} /> },
    { id: "author", title: r.author, cell: (x) => x.author || <span class="faint">–</span> },
    { id: "age", title: r.since, width: .6, end: true, sort: (a, b) => (b.since ?? 0) - (a.since ?? 0), cell: (x) => <Age since={x.since} /> },
  ];
}

export function ReleasesPage() {
  const topic = useTopic("releases");
  const { query } = usePlace();
  const q = (query.get("q") ?? "").toLowerCase(), ns = query.get("ns") ?? "", phase = query.get("phase") ?? "";
  const all = ([...topic.rows.values()] as ReleaseRow[]).sort((a, b) => (b.since ?? 0) - (a.since ?? 0));
  const rows = all.filter((r) => (!ns || r.namespace === ns) && (!phase || r.phase === phase) &&
    (!q || [r.name, r.namespace, r.author, ...r.workloads].some((s) => s?.toLowerCase().includes(q))));
  const waiting = rows.filter((r) => r.severity).sort((a, b) => Number(b.severity === "Problem") - Number(a.severity === "Problem") || (a.since ?? 0) - (b.since ?? 0));
  const moving = rows.filter((r) => !r.severity && !r.ended), past = rows.filter((r) => !r.severity && r.ended);
  const values = (of: (r: ReleaseRow) => string) => [...new Set(all.map(of))].sort();
  const x = t.release;
  return (
    <Page title={t.releases} wide>
      <States topic={topic}>
        {topic.missing.map((m) => <Forbidden missing={m} key={m.resource} />)}
        {all.length === 0 && topic.missing.length === 0 && (
          <section class="notice empty"><h3>{x.none}</h3><p>{x.noneHint} <Command text="argosy release start cloneset/web -n shop --strategy 1-2-7" /></p></section>
        )}
        {all.length > 0 && (
          <>
            <div class="tools">
              <Filter value={query.get("q") ?? ""} onChange={(v) => setFilter("q", v)} hint={x.filterHint} />
              <Choice label={t.workload.namespace} value={ns} onChange={(v) => setFilter("ns", v)} options={values((r) => r.namespace).map((v) => [v, v])} />
              <Choice label={x.phase} value={phase} onChange={(v) => setFilter("phase", v)} options={values((r) => r.phase).map((v) => [v, t.releasePhase[v as Phase]])} />
              {(q || ns || phase) && <button type="button" class="quiet text" onClick={() => navigate(href(["releases"]), true)}>{t.clear}</button>}
              <span class="count" role="status">{fill(t.shown, { n: rows.length, all: all.length })}</span>
            </div>
            {rows.length === 0 && <p class="notice">{t.nothingMatches}</p>}
            <ReleaseItems title={x.waiting} releases={waiting} />
            <ReleaseItems title={x.moving} releases={moving} />
            {past.length > 0 && <><h2 class="section">{x.past}</h2><Table label={x.past} columns={columns()} rows={past} keyOf={(r) => r.namespace + "/" + r.name} open={releaseHref} /></>}
          </>
        )}
      </States>
    </Page>
  );
}

/** quoted is a text as one word of a shell. */
const quoted = (text: string) => "'" + text.replace(/'/g, `'\\''`) + "'";
const isVerdict = (a: Action) => a.verb === "approve" || a.verb === "reject";

/** commandOf is the argosy command that does the same. */
function commandOf(r: Detail, a: Action, text: string): string {
  const words = ["argosy release", a.verb, r.name, "-n", r.namespace];
  if (a.gate) words.push("--gate", a.gate);
  if (text || a.needed) words.push(isVerdict(a) ? "--comment" : "--reason", text ? quoted(text) : "TEXT");
  if (!a.needed) words.push("--yes");
  return words.join(" ");
}

/** Shown is what a user decides about at a gate. The hub decides what that is. */
function Shown({ r, gate }: { r: Detail; gate: string }) {
  const x = t.release;
  const { answer: e, error, retry } = useAnswer<Evidence>(`api/evidence?namespace=${encodeURIComponent(r.namespace)}&name=${encodeURIComponent(r.name)}&gate=${encodeURIComponent(gate)}`, Number(r.version ?? 0));
  if (error) return <Failure error={error} retry={retry} />;
  if (!e) return <Waiting />;
  return (
    <div class="evidence">
      {e.targets.map((g) => (
        <div key={g.kind + g.workload}>
          <p>{g.kind} {g.workload}: <code>{g.from || x.unknown}</code> → <code>{g.to}</code></p>
          <Changes label={x.images} all={g.images} /><Changes label={x.fields} all={g.changes} />
          {g.from && g.images.length + g.changes.length === 0 && <p class="faint">{x.noChanges}</p>}
        </div>
      ))}
      {e.starts.map((s) => (
        <div key={s.name}>
          <h3>{fill(x.starts, { stage: s.name })}</h3>
          {s.clusters.length === 0 ? <p class="faint">{x.nothingToDo}</p> :
            <Simple head={[x.cluster, x.target, x.replicas, x.newBefore, x.newAfter]} rows={s.clusters.slice(0, shownItems).map((c) => [c.cluster, c.target, c.replicas, c.former, c.new])} more={s.clusters.length - shownItems} />}
        </div>
      ))}
      {e.checks.length > 0 && <><h3>{x.checks}</h3><Simple head={[x.stage, x.checked, x.phase, x.message]} rows={e.checks.map((c) => [c.stage, c.check, t.gatePhase[c.phase], c.text ?? ""])} more={0} /></>}
      {e.notes?.map((n) => <p class="faint" key={n}>{n}</p>)}
    </div>
  );
}

/** Confirm asks before a user does something, and sends it as the user. */
function Confirm({ r, action, done, close }: { r: Detail; action: Action; done: () => void; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [error, setError] = useState<HubError>();
  const [working, setWorking] = useState(false);
  useEffect(() => { dialog.current?.showModal(); }, []);
  const x = t.release, values = { name: r.name, gate: action.gate ?? "", stage: action.stage ?? "" };
  const gate = r.stages.find((s) => s.name === action.stage)?.gates?.find((g) => g.name === action.gate);
  const submit = async (e: Event) => {
    e.preventDefault();
    setWorking(true);
    setError(undefined);
    try {
      for (const [i, w] of action.writes.entries()) {
        const body = structuredClone(w.body);
        if (text && i === action.writes.length - 1) {
          let at = body;
          for (const key of action.textAt.slice(0, -1)) at = at[key] ??= {};
          at[action.textAt.at(-1)!] = text;
        }
        await call("k8s/" + w.path, { method: w.method, headers: { "Content-Type": w.type }, body: JSON.stringify(body) });
      }
      announce(fill(x.sent, { verb: t.verb[action.verb], name: r.name }));
      dialog.current?.close();
      done();
    } catch (e) {
      setError(e as HubError);
      setWorking(false);
    }
  };
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby="confirm" onClose={close}>
      <h2 id="confirm">{fill(isVerdict(action) ? x.askGate : action.stage ? x.askStage : x.ask, { ...values, verb: t.verb[action.verb] })}</h2>
      <p>{t.verbDoes[action.verb]}</p>
      {isVerdict(action) && <Shown r={r} gate={action.gate ?? ""} />}
      {gate && <p>{gateText(gate)}</p>}
      <form class="form" onSubmit={submit}>
        <label for="why">{isVerdict(action) ? x.comment : action.needed ? x.reasonNeeded : x.reason}</label>
        <textarea id="why" rows={2} maxLength={1024} required={action.needed} value={text} onInput={(e) => setText((e.target as HTMLTextAreaElement).value)} />
        <p class="same">{t.cluster.command}: <Command text={commandOf(r, action, text.trim())} /></p>
        {error && <Failure error={error} />}
        <p class="buttons"><button type="submit" class="primary" disabled={working || action.needed && !text.trim()}>{t.verb[action.verb]}</button>
          <button type="button" onClick={() => dialog.current?.close()}>{x.cancel}</button></p>
      </form>
    </dialog>
  );
}

/** gateText is the evidence of a gate. */
function gateText(g: Gate): string {
  const x = t.release, parts: string[] = [];
  if (g.checkName) {
    const c = g.check;
    parts.push(fill(x.check, { name: g.checkName }));
    if (c?.verdict) parts.push(c.verdict);
    if (c?.value) parts.push(fill(c.control ? x.valueControl : x.value, { value: c.value, control: c.control ?? "" }));
    if (c) parts.push(fill(x.samples, { passed: c.passed ?? 0, failed: c.failed ?? 0, unclear: c.unclear ?? 0 }));
    if (c?.message) parts.push(c.message);
    if (c?.sampledAt) parts.push(fill(x.sampled, { time: when(c.sampledAt) }));
    if (c?.nextAt && !c.verdict) parts.push(fill(x.nextSample, { time: when(c.nextAt) }));
  } else {
    parts.push(g.phase === "Rejected" ? fill(x.rejectedBy, { by: (g.by ?? []).join(", ") }) : fill(x.approvals, { n: g.by?.length ?? 0, all: g.need ?? 1 }));
    if (g.phase !== "Rejected" && g.by?.length) parts.push(g.by.join(", "));
    if (g.comments?.length) parts.push(g.comments.join("; "));
    if (g.from?.length) parts.push(fill(x.from, { from: g.from.join(", ") }));
    if (g.notAuthor) parts.push(x.notAuthor);
  }
  if (g.phase === "Waiting" && g.until) parts.push(fill(x.until, { time: when(g.until) }));
  return parts.join(" · ");
}

/** Verbs are the buttons of a release: what it takes now, of the given verbs. A button that is off names why. */
function Verbs({ r, only, done }: { r: Detail; only?: string[]; done: () => void }) {
  const [asked, ask] = useState<Action>();
  useSource(stream);
  const lost = stream.state === "lost", actions = r.actions.filter((a) => !only || only.includes(a.verb));
  const blocked = (a: Action) => (lost ? t.actions.lost : a.missing ? missingText(a.missing) : a.refused ? t.verb[a.verb] + ": " + a.refused : "");
  const reasons = [...new Set(actions.map(blocked).filter(Boolean))];
  return (
    <>
      {actions.length > 0 && (
        <div class="buttons verbs" role="group" aria-label={t.release.actions}>
          {actions.map((a) => (
            <button type="button" key={a.verb + (a.gate ?? "")} class={a.verb === "approve" ? "primary" : ""} data-verb={a.verb} disabled={!!blocked(a)} title={blocked(a) || undefined} aria-describedby={blocked(a) ? "blocked-" + r.name : undefined} onClick={() => ask(a)}>
              {t.verb[a.verb]}{a.gate ? " " + a.gate : ""}</button>
          ))}
        </div>
      )}
      {reasons.length > 0 && <ul class="faint blocked" id={"blocked-" + r.name}>{reasons.map((s) => <li key={s}>{s}</li>)}</ul>}
      {asked && <Confirm r={r} action={asked} key={asked.verb + asked.gate} done={done} close={() => ask(undefined)} />}
    </>
  );
}

/** detailPath is where the hub describes a release. Its answer changes with the version of the row. */
const detailPath = (namespace: string, name: string) => `api/release?namespace=${encodeURIComponent(namespace)}&name=${encodeURIComponent(name)}`;

/** ReleaseOfWorkload shows a release of a workload that has not ended, with its gates to approve. */
export function ReleaseOfWorkload({ row }: { row: ReleaseRow }) {
  const { answer, retry } = useAnswer<Detail>(detailPath(row.namespace, row.name), Number(row.version ?? 0));
  return (
    <section class={"stuck release " + (row.severity === "Problem" ? "bad" : row.severity ? "warn" : "")}>
      <p><a href={releaseHref(row)}><span class="kind">{t.release.title}</span> <b>{row.name}</b></a></p>
      <Track stages={row.track} />
      <p class="sentence">{row.what}</p>
      {answer && <Verbs r={answer} only={["approve", "reject", "pause", "resume"]} done={retry} />}
    </section>
  );
}

/** openReleases are the releases of a workload that have not ended, or that wait for a person. */
export function openReleases(rows: Iterable<ReleaseRow>, kindText: string, namespace: string, name: string): ReleaseRow[] {
  return [...rows].filter((r) => r.namespace === namespace && (r.severity || !r.ended) && r.refs?.includes(`${kindText} ${name}`));
}

function StageCard({ s, number }: { s: Stage; number: number }) {
  const x = t.release, c = s.counts;
  return (
    <li class={"station " + ({ Problem: "bad", Attention: "warn" }[stateOf(s.phase)] ?? "")}>
      <h3>{s.phase === "Pending" || s.phase === "Skipped" ? <i class="hollow" aria-hidden="true" /> : <Mark state={stateOf(s.phase)} />}{number}. {t.stagePhase[s.phase]}{s.attempt > 1 ? " · " + fill(x.attempt, { n: s.attempt }) : ""}</h3>
      <p><b>{s.name}</b> <span class="faint">{[s.environment, s.share].filter(Boolean).join(" · ")}</span></p>
      {c.clusters ? <Bar used={c.reached ?? 0} all={c.clusters} text={fill(x.clustersOf, { n: c.reached ?? 0, all: c.clusters })} /> : null}
      {c.pods ? <Bar used={c.new ?? 0} all={c.pods} text={fill(x.podsOf, { n: c.new ?? 0, all: c.pods })} /> : null}
      {s.gates?.map((g) => (
        <p class="gate" key={g.position + g.name}><Mark state={g.phase ? stateOf(g.phase) : "Progressing"} /> <b>{g.name}</b> <span class="faint">{g.position === "After" ? x.after : x.before}</span> {g.phase ? t.gatePhase[g.phase] : t.gatePhase.Pending}<br /><span class="faint">{gateText(g)}</span></p>
      ))}
      {s.reason && s.phase !== "Done" && !s.gates?.some((g) => g.phase === "Waiting") && <p class="faint">{s.reason}</p>}
    </li>
  );
}

export function ReleasePage({ namespace, name }: { namespace: string; name: string }) {
  const topic = useTopic("releases");
  const row = topic.rows.get(namespace + "/" + name) as ReleaseRow | undefined;
  const { answer: r, error, retry } = useAnswer<Detail>(detailPath(namespace, name), Number(row?.version ?? 0));
  const x = t.release;
  const current = r && (r.stages.find((s) => s.phase !== "Done" && s.phase !== "Skipped") ?? r.stages.at(-1));
  const change = r?.change ?? {};
  const facts: [string, any][] = r ? [
    [x.phase, <><Mark state={r.severity ?? stateOf(r.phase)} />{t.releasePhase[r.phase]}</>],
    [x.workloads, r.targets.map((g) => <span key={g.kind + g.name}><a href={walkHref(g)}>{g.kind} {g.name}</a> </span>)],
    [x.progress, r.progress], [x.author, r.author], [x.strategy, r.strategy], [x.commit, change.commit], [x.ticket, change.ticket], [x.why, change.reason],
    [x.url, change.url && (/^https:\/\//.test(change.url) ? <a href={change.url} target="_blank" rel="noopener noreferrer">{change.url}</a> : change.url)],
  ] : [];
  return (
    <Page title={name} wide sub={<p class="crumb"><a href={href(["releases"])}>{t.releases}</a> · {namespace}</p>}>
      {!r && !error && <Waiting />}
      {error && <Failure error={error} retry={retry} />}
      {r && (
        <>
          <section class={"stuck " + (r.severity === "Problem" ? "bad" : r.severity ? "warn" : "")} role="status"><p class="sentence">{r.what}</p><Next text={r.next} />
            {r.guard && <p>{fill(r.guard.limit ? x.guardLimit : x.guardWindow, { name: r.guard.name, limit: r.guard.limit ?? "" })} {r.guard.until ? fill(x.opens, { time: when(r.guard.until) }) : ""}</p>}
            {r.soakUntil && <p>{fill(x.soaks, { time: when(r.soakUntil) })}</p>}
          </section>
          <Verbs r={r} done={retry} />
          {r.unread?.map((text) => <p class="notice" key={text}>{x.unread} {text}</p>)}
          <h2 class="section">{x.stages}</h2>
          {r.stages.length === 0 ? <p class="faint">{x.noStages}</p> : <ol class="stations">{r.stages.map((s, i) => <StageCard s={s} number={i + 1} key={s.name} />)}</ol>}
          {r.stages.filter((s) => s.clusters?.length).map((s) => (
            <details open={s === current} key={s.name}>
              <summary>{fill(x.clustersOfStage, { stage: s.name, n: s.clusters!.length })}</summary>
              <Simple head={[x.cluster, x.target, x.phase, x.newPods, x.available, x.message]} rows={s.clusters!.slice(0, 300).map((c) => [
                <a class="open" data-row href={href(["clusters", c.name])}>{c.phase === "Pending" || !c.phase ? <i class="hollow" aria-hidden="true" /> : <Mark state={stateOf(c.phase)} />} {c.name}</a>, c.target,
                c.phase ? (t.clusterPhase as Record<string, string>)[c.phase] ?? c.phase : "–", c.want ? `${c.new ?? 0}/${c.want}` : "", c.want ? c.available ?? 0 : "", c.message ?? ""])} more={s.clusters!.length - 300} />
            </details>
          ))}
          <dl class="facts after">{facts.filter(([, v]) => v).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
          {r.journal?.length ? (
            <details>
              <summary>{x.journal}</summary>
              <Simple head={[x.time, x.what, x.stage, x.cluster, x.user, x.message]} rows={r.journal.map((e) => [
                <time dateTime={e.at}>{when(e.at)}</time>, `${e.type} ${e.reason}`, e.stage ?? "", e.cluster ?? "", e.actor ?? "", e.message ?? ""])} />
            </details>
          ) : null}
          <Same names={[name, namespace]} text={`argosy release status ${name} -n ${namespace}`} />
        </>
      )}
    </Page>
  );
}
