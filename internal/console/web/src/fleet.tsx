import { h, Fragment } from "preact";
import { useTopic } from "./hub";
import { fill, said, t } from "./i18n";
import { href } from "./route";
import { Age, Command, Forbidden, Icon, Mark, Next, Page, States, toneOf } from "./ui";

interface Item {
  key: string; severity: "Problem" | "Attention" | "Waiting"; about: "hub" | "cluster" | "release" | "workload"; rank: number;
  object?: { group?: string; kind: string; namespace?: string; name: string };
  cluster?: string; part?: string; what: string; next?: string; since?: number;
}

export function walkHref(o: { group?: string; kind: string; namespace?: string; name: string }): string {
  return href(["w", o.group || "core", o.kind, o.namespace || "-", o.name]);
}

function target(item: Item): string | undefined {
  if (item.about === "release") return href(["releases", item.object!.namespace ?? "", item.object!.name]);
  if (item.object) return walkHref(item.object);
  if (item.cluster) return href(["clusters", item.cluster]);
}

function Entry({ item }: { item: Item }) {
  const to = target(item);
  const name = item.object
    ? <><span class="kind">{item.object.kind}</span> {item.object.namespace ? <span class="ns">{item.object.namespace}/</span> : null}{item.object.name}</>
    : <><span class="kind">{item.about === "hub" ? t.attention.hub : t.attention.cluster}</span> {item.part ?? item.cluster}</>;
  return (
    <li class={"item " + toneOf(item.severity)}>
      <Mark state={item.severity} label={t.severity[item.severity]} />
      <div class="body">
        <p class="title">{to ? <a class="open" data-row data-next={item.next} href={to}>{name}</a> : <span data-row tabIndex={0} data-next={item.next}>{name}</span>}</p>
        <p class="what short">{said(item.what)}</p>
        <Next text={item.next} />
      </div>
      <div class="meta">
        {item.cluster && item.about !== "cluster" && <a class="chip" href={href(["clusters", item.cluster])}><Icon name="clusters" />{item.cluster}</a>}
        <Age since={item.since} />
      </div>
    </li>
  );
}

export function FleetPage() {
  const topic = useTopic("fleet");
  const n = topic.totals ?? { clusters: 0, notReady: 0, workloads: 0, bad: 0, unplaced: 0 };
  const items = ([...topic.rows.values()] as Item[]).sort((a, b) => a.rank - b.rank);
  const hidden = (resource: string) => topic.missing.some((m) => m.resource === resource);
  const figures: [string, number, number, string, string][] = [
    [t.attention.notReady, n.notReady, n.clusters, href(["clusters"], { state: n.notReady ? "NotReady" : "" }), n.notReady ? "bad" : "good"],
    [t.attention.unhealthy, n.bad, n.workloads, href(["workloads"], { state: n.bad ? "bad" : "" }), n.bad ? "bad" : "good"],
    [t.attention.unplaced, n.unplaced, n.workloads, href(["workloads"], { state: n.unplaced ? "Unplaced" : "" }), n.unplaced ? "bad" : "good"],
    [t.attention.total, n.workloads, -1, href(["workloads"]), "plain"],
  ];
  const waiting = n.waiting ? fill(t.attention.waiting, { n: n.waiting }) : "";
  return (
    <Page title={t.fleet}>
      <States topic={topic}>
        <ul class="figures">
          {figures.filter((_, i) => !hidden(i === 0 ? "clusters" : "resourcebindings")).map(([title, value, all, to, tone]) => (
            <li key={title}><a href={to} class={tone}><span class="value">{value}{all > 0 && <small> {fill(t.attention.of, { n: all })}</small>}</span><span class="label">{title}</span></a></li>
          ))}
        </ul>
        <h2 class="section">{t.attention.title}{waiting && <span class="aside">{waiting}</span>}</h2>
        {items.length > 0 && <ul class="items">{items.map((i) => <Entry item={i} key={i.key} />)}</ul>}
        {n.more ? <p class="faint">{fill(t.attention.more, { n: n.more })}</p> : null}
        {items.length === 0 && topic.missing.length === 0 && n.clusters > 0 && (
          <section class="notice calm"><Mark state="Healthy" /><div><h3>{t.attention.none}</h3><p>{fill(t.attention.noneYet, { clusters: n.clusters, workloads: n.workloads })}</p></div></section>
        )}
        {items.length === 0 && topic.missing.length === 0 && n.clusters === 0 && <NoClusters />}
        {topic.missing.map((m) => <Forbidden missing={m} key={m.resource} />)}
      </States>
    </Page>
  );
}

export function NoClusters() {
  return (
    <section class="notice empty">
      <h3>{t.attention.noClusters}</h3>
      <p><a class="button primary" href={href(["clusters", "import"])}>{t.attention.joinOne}</a> {t.attention.orCommand} <Command text="argosy join NAME --cluster-kubeconfig FILE" /></p>
    </section>
  );
}
