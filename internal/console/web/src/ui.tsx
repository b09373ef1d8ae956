// Parts that all pages use.
import { h, Fragment, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ageText, clock, fill, said, t, when } from "./i18n";
import { HubError, stream, type Missing, type Topic } from "./hub";
import { setFilter, usePlace } from "./route";

const paths: Record<string, string> = {
  fleet: "M3 12.500h18l-2.200 5.200a3 3 0 0 1-2.760 1.830H8a3 3 0 0 1-2.760-1.830L3 12.500zM11 3.500v6.500H5.500L11 3.500zM13 5l5 5h-5V5z",
  clusters: "M12 2.500 20 7v10l-8 4.500L4 17V7l8-4.500zm0 2.300L6.300 8 12 11.200 17.700 8 12 4.800zM6 9.700v6.100l5 2.800v-6.100L6 9.700zm12 0-5 2.800v6.100l5-2.800V9.700z",
  policies: "M5 3h14v4H5V3zm2 6h10v2H7V9zm-2 4h14v8H5v-8zm2 2v4h10v-4H7z",
  workloads: "M4 4h7v7H4V4zm9 0h7v7h-7V4zM4 13h7v7H4v-7zm9 0h7v7h-7v-7z",
  releases: "M3 11h5v2H3v-2zm13 0h5v2h-5v-2zM12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zm0 2a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM3 5h18v2H3V5zm0 12h18v2H3v-2z",
  timeline: "M12 3a9 9 0 1 1-9 9h2a7 7 0 1 0 2.100-5L9.500 9.500H3V3l2.700 2.700A9 9 0 0 1 12 3zm-1 4h2v5l3.500 2-1 1.700L11 13V7z",
  usage: "M4 20V11h4v9H4zm6 0V4h4v16h-4zm6 0v-6h4v6h-4z",
  search: "M10 4a6 6 0 1 1-3.700 10.700l-3.600 3.600-1.400-1.400 3.600-3.600A6 6 0 0 1 10 4zm0 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
  user: "M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zm0 10c4.400 0 8 2 8 4.500V20H4v-1.500C4 16 7.600 14 12 14z",
  copy: "M8 3h11v13h-2V5H8V3zM5 7h10v14H5V7zm2 2v10h6V9H7z",
  plus: "M11 4h2v7h7v2h-7v7h-2v-7H4v-2h7V4z",
  keyboard: "M3 6h18v12H3V6zm2 2v8h14V8H5zm1.500 1.500h2v2h-2v-2zm3 0h2v2h-2v-2zm3 0h2v2h-2v-2zm3 0h2v2h-2v-2zM8 13h8v1.700H8V13z",
  back: "M14.500 5 16 6.500 10.500 12l5.500 5.500-1.500 1.500-7-7 7-7z",
};

export function Icon({ name }: { name: string }) {
  return <svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d={paths[name]} /></svg>;
}

/** tones are the colours of states; each has a shape of its own, too. */
const tones: Record<string, string> = {
  Problem: "bad", NotReady: "bad", Failed: "bad", Unplaced: "bad", Unhealthy: "bad", Lost: "bad", WorksKept: "bad",
  Attention: "warn", Leaving: "warn", Deleting: "warn", Suspended: "warn",
  Waiting: "busy", Progressing: "busy", NotSeenYet: "busy",
  Ready: "good", Healthy: "good", Ended: "good",
};

/** Mark shows a state by shape and colour. The text is beside it, or its label. */
export function Mark({ state, label }: { state: string; label?: string }) {
  const tone = tones[state] ?? "busy";
  return (
    <svg class={"mark " + tone} viewBox="0 0 16 16" role={label ? "img" : undefined} aria-label={label} aria-hidden={label ? undefined : "true"}>
      {tone === "good" && <><circle cx="8" cy="8" r="7" /><path class="cut" d="m4.500 8.200 2.400 2.400 4.600-4.900" /></>}
      {tone === "bad" && <><path d="M8 .8 15.600 14.500H.4L8 .8z" /><path class="cut" d="M8 5.500v4M8 11.300v1.400" /></>}
      {tone === "warn" && <><path d="M8 .5 15.500 8 8 15.500.5 8 8 .5z" /><path class="cut" d="M8 4.500v4.200M8 10.400v1.400" /></>}
      {tone === "busy" && <><circle class="ring" cx="8" cy="8" r="6" /><path class="hand" d="M8 4.500V8l2.400 1.600" /></>}
    </svg>
  );
}

export function toneOf(state: string): string { return tones[state] ?? "busy"; }

/** useNow is the time, with a new drawing every ten seconds. */
export function useNow(): number {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), 10_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

export function Age({ since }: { since?: number }) {
  const now = useNow();
  if (!since) return null;
  return <time class="age" dateTime={new Date(since * 1000).toISOString()} title={when(since * 1000)}>{ageText(since, now)}</time>;
}

export async function copy(text: string): Promise<void> {
  await navigator.clipboard.writeText(text).catch(() => undefined);
  announce(t.copied);
}

/** Next is a next step: what is in backquotes is a command, and can be copied. */
export function Next({ text }: { text?: string }) {
  if (!text) return null;
  return <p class="next"><b>{t.next}</b> <Commands text={text} /></p>;
}

/** Commands is a sentence of the hub: what is in backquotes is a command. */
export function Commands({ text }: { text: string }) {
  return <>{said(text).split("`").map((part, i) => (i % 2 ? <Command key={i} text={part} /> : part))}</>;
}

export function Command({ text }: { text: string }) {
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" class="quiet" onClick={(e) => { e.stopPropagation(); copy(text); }} aria-label={t.copy + ": " + text} title={t.copy}><Icon name="copy" /></button>
    </span>
  );
}

/** isName reports whether a text is a name or kind of Kubernetes, so that a shell takes it for one word. Empty is fine. */
const isName = (text: string) => /^(?!-)[A-Za-z0-9_.:-]*$/.test(text);

/** Same is the command that shows the same in a terminal. There is none if one of the names, of the address, is no name. */
export function Same({ text, names }: { text: string; names: (string | undefined)[] }) {
  return names.every((name) => isName(name ?? "")) ? <p class="same">{t.walk.command} <Command text={text} /></p> : null;
}

let announceTo: (text: string) => void = () => undefined;
/** announce puts a sentence into the live region of the page. */
export function announce(text: string) { announceTo(text); }

export function LiveRegion() {
  const [text, set] = useState("");
  announceTo = (next) => { set(""); requestAnimationFrame(() => set(next)); };
  return <div class="sr" role="status" aria-live="polite">{text}</div>;
}

/** named writes the names of the characters that display.go replaces, because texts that differ in them look alike. */
export function named(text: string): string {
  return text.replace(/[\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu, (c) => `‹U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}›`);
}

/** Waiting is the loading state: nothing for 150 ms, then lines, then what is waited for. */
export function Waiting() {
  const [phase, set] = useState(0);
  useEffect(() => {
    const timers = [setTimeout(() => set(1), 150), setTimeout(() => set(2), 3000)];
    return () => timers.forEach(clearTimeout);
  }, []);
  if (!phase) return null;
  return (
    <div class="waiting" role="status">
      <span class="sr">{t.loading}</span>
      <i /><i /><i />
      {phase === 2 && <p>{fill(t.waitingFor, { host: location.host })}</p>}
    </div>
  );
}

/** stateText is the state of a workload in the language of the page. */
export function stateText(state: string): string {
  return (t.workloadState as Record<string, string>)[state] ?? state;
}

/** missingText is the sentence of a right that the user lacks, with the role that has it. */
export function missingText(m: Missing): string {
  return rightText(m) + (m.role ? ". " + fill(t.forbidden.role, { role: m.role }) : "");
}

/** objectsOf is the resource of a right with its group, as kubectl takes it: deployments.apps/scale. */
function objectsOf(m: Missing): string {
  const [resource, part] = m.resource.split("/");
  return resource + (m.group ? "." + m.group : "") + (part ? "/" + part : "");
}

function rightText(m: Missing): string {
  const place = m.namespace ? " " + fill(t.forbidden.in, { ns: m.namespace }) : m.everywhere ? " " + t.forbidden.everywhere : "";
  return (m.cluster ? fill(t.forbidden.inCluster, { cluster: m.cluster }) + " " : "") + fill(t.forbidden.right, { verb: m.verb, resource: objectsOf(m) }) + place;
}

/** Hidden names the rights that an answer does without, all together, and the roles that have them. */
export function Hidden({ missing }: { missing?: Missing[] }) {
  if (!missing?.length) return null;
  const roles = [...new Set(missing.map((m) => m.role).filter(Boolean))].join(", ");
  return <p class="notice">{t.forbidden.hidden} {missing.map(rightText).join(" · ")}. {roles && fill(t.forbidden.role, { role: roles })}</p>;
}

/** Forbidden names the right that is missing, and a role to ask for: on the hub, or in a member. */
export function Forbidden({ missing }: { missing: Missing }) {
  const where = missing.namespace ? " -n " + missing.namespace : missing.everywhere ? " -A" : "";
  const kind = missing.namespace ? "Role" : "ClusterRole", [resource, part] = missing.resource.split("/");
  const role = [
    "apiVersion: rbac.authorization.k8s.io/v1", "kind: " + kind, "metadata:", "  name: console-" + missing.resource.replace("/", "-"),
    ...(missing.namespace ? ["  namespace: " + missing.namespace] : []), "rules:",
    `- apiGroups: ["${missing.group ?? ""}"]`, `  resources: ["${missing.resource}"]`, `  verbs: ["${missing.verb}"]`,
  ].join("\n");
  return (
    <section class="notice forbidden">
      <h2>{t.forbidden.title}</h2>
      <p><b>{rightText(missing)}</b></p>
      {isName(missing.namespace ?? "") && <p>{t.forbidden.check} <Command text={`kubectl auth can-i ${missing.verb} ${objectsOf({ ...missing, resource })}${part ? " --subresource=" + part : ""}${where}`} /></p>}
      <p>{missing.role && fill(t.forbidden.role, { role: missing.role })} {t.forbidden.ask}</p>
      <pre tabIndex={0}>{role}</pre>
    </section>
  );
}

export interface Change { path: string; from?: unknown; to?: unknown }
/** shownChanges bounds the fields that a list of changes shows. */
const shownChanges = 100;
const valueText = (v: unknown) => (v === undefined || v === null ? t.release.noValue : typeof v === "string" ? v : JSON.stringify(v)).slice(0, 120);

/** Changes are fields, old and new. */
export function Changes({ label, all }: { label: string; all: Change[] }) {
  if (all.length === 0) return null;
  return <><h3>{label}</h3><ul class="prose">{all.slice(0, shownChanges).map((c) => <li key={c.path}><code>{c.path}</code>: <code>{valueText(c.from)}</code> → <code>{valueText(c.to)}</code></li>)}</ul></>;
}

export function Failure({ error, retry }: { error: HubError; retry?: () => void }) {
  if (error.missing) return <Forbidden missing={error.missing} />;
  return (
    <section class="notice failed" role="alert">
      <h2>{error.code === 404 ? t.error.gone : t.error.title}</h2>
      <p>{said(error.message)}</p>
      {retry && <button type="button" onClick={retry}>{t.retry}</button>}
    </section>
  );
}

/** States draws the states of a topic that has no rows yet: loading and failed. Its children are the rows. */
export function States({ topic, children }: { topic: Topic; children: ComponentChildren }) {
  if (topic.loaded) return <>{children}</>;
  if (stream.message) return <Failure error={new HubError(stream.message, 0)} retry={() => stream.start()} />;
  return <Waiting />;
}

/** Bar shows how much of a resource is requested. */
export function Bar({ used, all, text }: { used: number; all: number; text: string }) {
  const share = all > 0 ? Math.min(1, used / all) : 0;
  return (
    <span class="bar" title={text}>
      <span class={"fill" + (share > 0.9 ? " full" : "")} style={{ width: `${Math.round(share * 100)}%` }} />
      <span class="figure">{text}</span>
    </span>
  );
}

export function Filter({ value, onChange, hint }: { value: string; onChange: (v: string) => void; hint: string }) {
  return (
    <label class="filter">
      <Icon name="search" />
      <span class="sr">{t.filter}</span>
      <input type="search" data-filter value={value} placeholder={hint} autoComplete="off" spellcheck={false}
        onInput={(e) => onChange((e.target as HTMLInputElement).value)} />
      <kbd aria-hidden="true">/</kbd>
    </label>
  );
}

/** Choice is a filter by one value. none is the text of no value. */
export function Choice({ label, value, options, onChange, none }: { label: string; value: string; options: [string, string][]; onChange: (v: string) => void; none?: string }) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(e) => onChange((e.target as HTMLSelectElement).value)}>
        <option value="">{none ?? t.all}</option>
        {options.map(([v, text]) => <option value={v} key={v} selected={v === value}>{text}</option>)}
      </select>
    </label>
  );
}

/** Entry is a field of the address that counts when it is left, or with Enter. */
export function Entry({ name, label, hint }: { name: string; label: string; hint: string }) {
  const value = usePlace().query.get(name) ?? "";
  const [text, set] = useState(value);
  useEffect(() => set(value), [value]);
  return (
    <label class="choice">
      <span>{label}</span>
      <input value={text} placeholder={hint} autoComplete="off" spellcheck={false} onInput={(e) => set((e.target as HTMLInputElement).value)} onChange={(e) => setFilter(name, (e.target as HTMLInputElement).value.trim())} />
    </label>
  );
}

/** Page is the frame of a page: its heading gets the focus when the page opens. */
export function Page({ title, aside, children, sub, wide }: { title: string; aside?: ComponentChildren; children: ComponentChildren; sub?: ComponentChildren; wide?: boolean }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => { document.title = title + " · " + t.app; }, [title]);
  useLayoutEffect(() => { if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true }); }, []);
  return (
    <main id="content" class={wide ? "wide" : ""}>
      <header class="page">
        <div><h1 ref={heading} tabIndex={-1}>{title}</h1>{sub}</div>
        {aside}
      </header>
      {children}
    </main>
  );
}

export function staleText(lostAt: number): string { return fill(t.lost, { time: clock(lostAt) }); }
