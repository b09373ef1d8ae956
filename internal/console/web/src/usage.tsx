// What workloads request and use, as `argosy usage` prints it.
import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import { Simple, useAnswer } from "./clusters";
import type { Missing } from "./hub";
import { said, t } from "./i18n";
import { href, setFilter, usePlace } from "./route";
import { Choice, Command, Entry, Failure, Hidden, Page, Waiting } from "./ui";

interface Answer { columns: string[]; lines: string[][]; csv: string; command: string; notes?: string[]; warnings?: string[]; missing?: Missing[] }

/** download saves what the page has read as a file. */
function download(name: string, text: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export function UsagePage() {
  const { query } = usePlace();
  const at = (name: string) => query.get(name) ?? "";
  const [turn, again] = useState(0);
  const by = at("by"), key = at("key"), x = t.amounts;
  const asked = by === "label" && !key ? "" : "api/usage?" + new URLSearchParams({ by: by === "label" ? "label=" + key : by, namespace: at("ns"), since: at("since"), price: at("price") });
  return (
    <Page title={t.usage} wide aside={<button type="button" onClick={() => again(turn + 1)}>{t.policy.refresh}</button>}>
      <div class="tools">
        <Choice label={x.by} value={by} none={t.workload.namespace} onChange={(v) => setFilter("by", v)} options={[["cluster", t.workload.cluster], ["label", x.label]]} />
        {by === "label" && <Entry name="key" label={x.key} hint="team" />}
        <Entry name="ns" label={t.workload.namespace} hint={t.all} />
        <Entry name="price" label={x.price} hint="cpu=0.03,memory=0.004" />
        <Choice label={x.since} value={at("since")} none={x.week} onChange={(v) => setFilter("since", v)} options={[["1d", x.day], ["30d", x.month], ["0", x.never]]} />
      </div>
      {asked ? <Amounts asked={asked} turn={turn} by={by} label={key} /> : <p class="faint">{x.keyHint}</p>}
    </Page>
  );
}

function Amounts({ asked, turn, by, label }: { asked: string; turn: number; by: string; label: string }) {
  const { answer: a, error, retry } = useAnswer<Answer>(asked, turn), x = t.amounts;
  if (error) return <Failure error={error} retry={retry} />;
  if (!a) return <Waiting />;
  const group = by === "label" ? label : by === "cluster" ? t.workload.cluster : t.workload.namespace;
  const head = a.columns.map((c, n) => (n === 0 ? group : (x.columns as Record<string, string>)[c] ?? c));
  const name = (text: string) => text === "TOTAL" ? <b>{x.total}</b> : by === "label" ? text || <span class="faint">{x.none}</span>
    : <a data-row href={by === "cluster" ? href(["clusters", text]) : href(["workloads"], { ns: text })}>{text}</a>;
  return (
    <>
      {a.warnings?.map((w) => <p class="notice" key={w}>{said(w)}</p>)}
      {a.notes?.map((n) => <p class="notice" key={n}>{said(n)}</p>)}
      <Hidden missing={a.missing} />
      {a.lines.length === 0 ? <p class="notice">{x.empty}</p> : (
        <>
          <p class="buttons"><button type="button" onClick={() => download("usage.csv", a.csv)}>{x.download}</button></p>
          <Simple head={head} rows={a.lines.map((line) => line.map((cell, n) => (n === 0 ? name(cell) : n === 1 && cell === "all" ? x.sum : cell)))} />
        </>
      )}
      <p class="same">{t.walk.command} <Command text={a.command} /></p>
    </>
  );
}
