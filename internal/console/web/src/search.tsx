// Objects of all clusters, by what follows `argosy search` on a command line. The hub answers with what the user may
// read in each cluster.
import { h, Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Simple, useAnswer } from "./clusters";
import { walkHref } from "./fleet";
import { fill, said, t } from "./i18n";
import { Manifest } from "./members";
import { href, navigate, usePlace } from "./route";
import { Failure, Icon, Page, Same, Waiting } from "./ui";

interface Found { namespace?: string; name: string; cluster: string; template?: boolean; cells: unknown[] }
interface Answer { columns: string[]; rows: Found[]; apiVersion: string; resource: string; kind?: string; more?: boolean; warnings?: string[] }

const examples = ["pods --image nginx:1.28 --not-ready", "pods --owner cloneset/web -n shop -C eu,us", "deployments --older-than 90d --order-by age --limit 20",
  "pods --filter 'object.status.containerStatuses.exists(c, c.restartCount > 5)'"];

/** isHarmless reports whether a shell takes a text as it is. */
const isHarmless = (text: string) => /^[A-Za-z0-9 _.:=/,@-]*$/.test(text);

export function SearchPage() {
  const { query } = usePlace();
  const q = query.get("q") ?? "", x = t.find;
  const [text, set] = useState(q), [turn, again] = useState(0);
  useEffect(() => set(q), [q]);
  return (
    <Page title={t.search} wide>
      <form class="tools" onSubmit={(e) => { e.preventDefault(); again(turn + 1); navigate(href(["search"], { q: text.trim() })); }}>
        <label class="filter words">
          <Icon name="search" />
          <span class="sr">{x.words}</span>
          <input type="search" data-filter value={text} placeholder={examples[0]} autoComplete="off" spellcheck={false} onInput={(e) => set((e.target as HTMLInputElement).value)} />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <button type="submit" class="primary">{t.search}</button>
      </form>
      {q ? <Results q={q} turn={turn} key={q} /> : <p class="hint">{x.hint}</p>}
      <details open={!q}>
        <summary>{x.help}</summary>
        <ul class="prose">{examples.map((e) => <li key={e}><a href={href(["search"], { q: e })}><code>{e}</code></a></li>)}</ul>
        <dl class="flags">{Object.entries(x.flags).map(([flag, does]) => <div key={flag}><dt><code>{flag}</code></dt><dd>{does}</dd></div>)}</dl>
      </details>
    </Page>
  );
}

function Results({ q, turn }: { q: string; turn: number }) {
  const { answer: a, error, retry } = useAnswer<Answer>("api/search?" + new URLSearchParams({ q }), turn);
  const [shown, show] = useState<Found>();
  const x = t.find;
  if (error) return <Failure error={error} retry={retry} />;
  if (!a) return <Waiting />;
  const group = a.apiVersion.includes("/") ? a.apiVersion.split("/")[0] : "", spaced = a.rows.some((o) => o.namespace);
  const cell = (o: Found, n: number) => {
    if (n === 1) return <a href={href(["clusters", o.cluster])}>{o.cluster}</a>;
    if (n > 1) return String(o.cells[n] ?? "");
    const first = String(o.cells[0] ?? o.name); // the name, but for events
    return o.template && a.kind ? <a data-row href={walkHref({ group, kind: a.kind, namespace: o.namespace, name: o.name })}>{first}</a>
      : <button type="button" class="link" data-row onClick={() => show(o)}>{first}</button>;
  };
  return (
    <>
      {a.warnings?.map((w) => <p class="notice" key={w}>{said(w)}</p>)}
      {a.rows.length === 0 ? <p class="notice">{x.nothing}</p> : (
        <>
          <p class="faint" role="status">{fill(a.more ? x.more : x.count, { n: a.rows.length })}</p>
          <Simple head={[...(spaced ? [t.workload.namespace] : []), ...a.columns]} rows={a.rows.map((o) => [...(spaced ? [o.namespace] : []), ...a.columns.map((_, n) => cell(o, n))])} />
        </>
      )}
      {isHarmless(q) && <Same names={[]} text={"argosy search " + q} />}
      {shown && <Manifest cluster={shown.cluster} kind={{ apiVersion: a.apiVersion, resource: a.resource, kind: a.kind ?? a.resource, namespaced: !!shown.namespace }} namespace={shown.namespace} name={shown.name} close={() => show(undefined)} />}
    </>
  );
}
