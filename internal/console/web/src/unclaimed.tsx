// Workloads that no policy has claimed. The hub keeps no list of them: it reads one when the page asks, as the user.
import { h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, HubError } from "./hub";
import { fill, t } from "./i18n";
import { href } from "./route";
import { walkHref } from "./fleet";
import { Choice, Command, Failure, Mark, Waiting } from "./ui";

const kinds: Record<string, string> = { Deployment: "apps", StatefulSet: "apps", DaemonSet: "apps", Job: "batch", CronJob: "batch", CloneSet: "apps.kruise.io" };

interface Found { path: string; objects?: { namespace: string; name: string }[]; more?: boolean; command?: string; error?: HubError }

/** useUnclaimed reads the first objects of a kind that no policy has claimed. */
function useUnclaimed(kind: string, namespace: string): [Found | undefined, () => void] {
  const [state, set] = useState<Found>();
  const [turn, again] = useState(0);
  const path = kind && "api/unclaimed?" + new URLSearchParams({ kind: kind + "." + kinds[kind], namespace });
  useEffect(() => {
    if (!path) return;
    const abort = new AbortController();
    get<Found>(path, abort.signal).then((found) => set({ ...found, path }), (error) => { if (!abort.signal.aborted) set({ path, error }); });
    return () => abort.abort();
  }, [path, turn]);
  return [state?.path === path ? state : undefined, () => { set(undefined); again((n) => n + 1); }];
}

export function Unclaimed({ namespace }: { namespace: string }) {
  const [kind, choose] = useState("");
  const [found, retry] = useUnclaimed(kind, namespace);
  const u = t.unclaimed, group = kinds[kind];
  return (
    <details>
      <summary>{u.title}</summary>
      <p class="hint">{u.hint}</p>
      <div class="tools">
        <Choice label={t.workload.kind} value={kind} none={t.member.choose} onChange={choose} options={Object.keys(kinds).map((k) => [k, k])} />
        <a class="button" href={href(["change"], { form: "PropagationPolicy" })}>{u.write}</a>
        {found?.objects && !found.more && <span class="count" role="status">{fill(u.count, { n: found.objects.length })}</span>}
      </div>
      {kind && !found && <Waiting />}
      {found?.error && <Failure error={found.error} retry={retry} />}
      {found?.objects?.length === 0 && <p class="notice">{fill(u.none, { kind })}</p>}
      <ul class="items">
        {found?.objects?.map((o) => (
          <li class="item" key={o.namespace + "/" + o.name}>
            <Mark state="Attention" />
            <div class="body">
              <p class="title"><a class="open" data-row href={walkHref({ group, kind, ...o })}><span class="kind">{kind}</span> <span class="ns">{o.namespace}/</span>{o.name}</a></p>
              <p class="what">{u.state}</p>
            </div>
          </li>
        ))}
      </ul>
      {found?.more && <p class="faint">{fill(u.more, { n: found.objects!.length })}</p>}
      {found?.command && <p class="same">{t.walk.command} <Command text={found.command} /></p>}
    </details>
  );
}
