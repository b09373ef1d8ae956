// Workloads that no policy has claimed. The hub keeps no list of them: the page reads one when it is asked, as the user.
import { h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, HubError } from "./hub";
import { fill, t } from "./i18n";
import { href } from "./route";
import { walkHref } from "./fleet";
import { Choice, Command, Failure, Forbidden, Mark, Waiting } from "./ui";

/** kinds are those in the choice, with their groups, versions and resources. */
const kinds: Record<string, [string, string, string]> = {
  Deployment: ["apps", "v1", "deployments"], StatefulSet: ["apps", "v1", "statefulsets"], DaemonSet: ["apps", "v1", "daemonsets"],
  Job: ["batch", "v1", "jobs"], CronJob: ["batch", "v1", "cronjobs"], CloneSet: ["apps.kruise.io", "v1alpha1", "clonesets"],
};
/** selector finds the objects without the label of the policy that claims them. */
const selector = "!propagationpolicy.karmada.io/permanent-id,!clusterpropagationpolicy.karmada.io/permanent-id";
const most = 200;

interface Found { kind: string; objects?: { namespace: string; name: string }[]; more?: boolean; error?: HubError }

/** useUnclaimed reads the first objects of a kind that no policy has claimed. */
function useUnclaimed(kind: string): [Found | undefined, () => void] {
  const [state, set] = useState<Found>();
  const [turn, again] = useState(0);
  useEffect(() => {
    if (!kind) return;
    const abort = new AbortController(), [group, version, resource] = kinds[kind];
    call(`k8s/apis/${group}/${version}/${resource}?limit=${most}&labelSelector=${encodeURIComponent(selector)}`, { signal: abort.signal, headers: { Accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" } })
      .then((r) => r.json()).then((list) => set({ kind, objects: (list.items ?? []).map((o: any) => o.metadata), more: !!list.metadata?.continue }))
      .catch((error) => { if (!abort.signal.aborted) set({ kind, error }); });
    return () => abort.abort();
  }, [kind, turn]);
  return [state?.kind === kind ? state : undefined, () => { set(undefined); again((n) => n + 1); }];
}

export function Unclaimed() {
  const [kind, choose] = useState("");
  const [found, retry] = useUnclaimed(kind);
  const u = t.unclaimed, [group, , resource] = kinds[kind] ?? ["", "", ""];
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
      {found?.error && (found.error.code === 403 ? <Forbidden missing={{ verb: "list", group, resource }} /> : <Failure error={found.error} retry={retry} />)}
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
      {found?.more && <p class="faint">{fill(u.more, { n: most })}</p>}
      {kind && <p class="same">{t.walk.command} <Command text={`kubectl get ${resource}.${group} -A -l '${selector}'`} /></p>}
    </details>
  );
}
