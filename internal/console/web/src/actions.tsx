// What can be done with a workload by one button. The hub decides which buttons there are, and who may use them.
import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Simple, useAnswer } from "./clusters";
import { call, get, HubError, stream, useSource, type Missing } from "./hub";
import { fill, t, when } from "./i18n";
import { href } from "./route";
import { announce, type Change, Changes, Command, Commands, Failure, missingText, Waiting } from "./ui";

interface Action { name: "scale" | "restart" | "pause" | "resume" | "approve" | "undo"; about?: string; path: string; patch?: unknown; type?: string; replicas?: number; command: string; missing?: Missing; images?: Change[]; changes?: Change[] }
interface Undo { to: number; images: Change[]; changes: Change[]; patch: unknown }
interface Revision { revision: number; createdAt: string; images: string[]; current?: boolean; undo?: Undo; command?: string }
interface Revisions { revisions: Revision[]; path: string; missing?: Missing; refused?: string; release?: string }

const keys = { undo: undefined, scale: "s", restart: "r", pause: "p", resume: "p", approve: "a" };

/** Confirm asks before an action, and shows the command that does the same. What was typed stays after an error. */
function Confirm({ action, title, clusters, close, done }: { action: Action; title: string; clusters: number; close: () => void; done: () => void }) {
  const x = t.actions, dialog = useRef<HTMLDialogElement>(null);
  const [n, setN] = useState(String(action.replicas ?? ""));
  const [error, setError] = useState<HubError>();
  const [busy, setBusy] = useState(false);
  useEffect(() => { dialog.current?.showModal(); }, []);
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const patch = action.patch ?? { spec: { replicas: Number(n) } };
      await call(action.path, { method: "PATCH", headers: { "Content-Type": action.type ?? "application/merge-patch+json" }, body: JSON.stringify(patch) });
      announce(fill(x.done, { what: title }));
      dialog.current?.close();
      done();
    } catch (e) {
      setError(e as HubError);
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby="confirm" onClose={close}>
      <form onSubmit={submit}>
        <h2 id="confirm">{x[action.name]}: {title}</h2>
        <p>{fill(x.what[action.name], { n: clusters, about: action.about ?? "" })}</p>
        {action.changes && <div class="evidence"><Changes label={t.release.images} all={action.images ?? []} /><Changes label={t.release.fields} all={action.changes} /></div>}
        {action.replicas !== undefined && (
          <p><label for="replicas">{fill(x.replicas, { n: action.replicas })}</label> <input id="replicas" type="number" min="0" max="100000" step="1" required autofocus value={n} onInput={(e) => setN((e.target as HTMLInputElement).value)} /></p>
        )}
        <p class="same">{t.walk.command} <Command text={action.command.replace("{n}", n || "N")} /></p>
        {error && <Failure error={error} />}
        <p class="buttons">
          <button type="submit" class="primary" autofocus={action.replicas === undefined} disabled={busy}>{x[action.name]}</button>
          <button type="button" onClick={() => dialog.current?.close()}>{x.cancel}</button>
        </p>
      </form>
    </dialog>
  );
}

/** Actions are the buttons of a workload. A button without its right is off, and the right is named. */
export function Actions({ query, version, title, clusters }: { query: URLSearchParams; version: number; title: string; clusters: number }) {
  const { answer: all, retry } = useAnswer<Action[]>("api/actions?" + query, version);
  const [open, setOpen] = useState<Action>();
  useSource(stream);
  const lost = stream.state === "lost", missing = [...new Set((all ?? []).flatMap((a) => a.missing ? [missingText(a.missing)] : []))];
  // The dialog shows the workload as it is now, not as it was when the page was drawn.
  const ask = (a: Action) => get<Action[]>("api/actions?" + query).then((now) => setOpen(now.find((x) => x.name === a.name) ?? a), () => setOpen(a));
  return (
    <div class="actions">
      <div class="buttons">
        {(all ?? []).map((a) => <button type="button" key={a.name} data-key={keys[a.name]} class={a.name === "approve" ? "primary" : ""} disabled={!!a.missing || lost} aria-describedby={a.missing || lost ? "actions-off" : undefined} onClick={() => ask(a)}>{t.actions[a.name]}</button>)}
        <a class="button" data-key="e" href={href(["change"], { kind: query.get("kind")!, ns: query.get("namespace")!, name: query.get("name")! })}>{t.change.edit}</a>
      </div>
      {(missing.length > 0 || lost) && <p class="faint" id="actions-off">{lost ? t.actions.lost : missing.join(" · ")}</p>}
      {open && <Confirm action={open} title={title} clusters={clusters} close={() => setOpen(undefined)} done={retry} />}
    </div>
  );
}

/** Past lists the revisions that a workload can go back to. They are read when it is opened. */
export function Past(p: { query: URLSearchParams; version: number; title: string; clusters: number }) {
  const [open, setOpen] = useState(false);
  return <details onToggle={(e) => setOpen((e.target as HTMLDetailsElement).open)}><summary>{t.actions.past}</summary>{open && <PastRevisions {...p} />}</details>;
}

function PastRevisions({ query, version, title, clusters }: { query: URLSearchParams; version: number; title: string; clusters: number }) {
  const { answer: all, error, retry } = useAnswer<Revisions>("api/revisions?" + query, version);
  const [asked, ask] = useState<Action>();
  useSource(stream);
  const x = t.actions, blocked = stream.state === "lost" ? x.lost : all?.missing ? missingText(all.missing) : "";
  if (error) return <Failure error={error} retry={retry} />;
  if (!all) return <Waiting />;
  const namespace = query.get("namespace") ?? "";
  const refused = all.refused && <div class="notice"><p>{x.noUndo} <Commands text={all.refused} /></p>{all.release && <p><a href={href(["releases", namespace, all.release])}>{t.release.title} {all.release}</a></p>}</div>;
  if (all.revisions.length === 0) return <>{refused}<p class="faint">{x.noPast}</p></>;
  const button = (r: Revision) => r.current ? x.current : !r.undo ? "" : (
    <button type="button" disabled={!!blocked} aria-describedby={blocked ? "past-off" : undefined} onClick={() => ask({
      name: "undo", about: String(r.revision), path: all.path, type: "application/json-patch+json", command: r.command!, patch: r.undo!.patch, images: r.undo!.images, changes: r.undo!.changes })}>{x.undo}</button>
  );
  return (
    <>
      {refused}
      <Simple head={[x.revision, x.created, t.release.images, x.action]} rows={all.revisions.map((r) => [r.revision, when(Date.parse(r.createdAt)), r.images.join(", "), button(r)])} />
      {blocked && <p class="faint" id="past-off">{blocked}</p>}
      {asked && <Confirm action={asked} title={title} clusters={clusters} close={() => ask(undefined)} done={retry} />}
    </>
  );
}
