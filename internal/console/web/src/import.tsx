import { h } from "preact";
import { useRef, useState } from "preact/hooks";
import { call, HubError, session, stream, useSource, useTopic } from "./hub";
import { t } from "./i18n";
import { href } from "./route";
import type { ClusterRow } from "./clusters";
import { announce, Command, Failure, Forbidden, Mark, Page, Waiting } from "./ui";

const steps = ["checked", "reached", "permitted", "accounts", "claimed", "registered", "ready"] as const;

/** ImportPage joins a cluster by a pasted kubeconfig, with a checklist that ticks off. */
export function ImportPage() {
  useSource(session);
  const topic = useTopic("clusters");
  const [done, setDone] = useState<Record<string, string>>({});
  const [state, setState] = useState<"form" | "running" | "failed" | "joined">("form");
  const [error, setError] = useState<HubError>();
  const [name, setName] = useState("");
  const form = useRef<HTMLFormElement>(null);
  const x = t.import;
  const ready = state === "joined" && (topic.rows.get(name) as ClusterRow | undefined)?.state === "Ready";

  const submit = async (e: Event) => {
    e.preventDefault();
    const data = new FormData(form.current!);
    setState("running");
    setDone({});
    setError(undefined);
    try {
      const response = await call("api/import", { method: "POST", body: JSON.stringify({
        name: data.get("name"), kubeconfig: data.get("kubeconfig"), region: data.get("region"), provider: data.get("provider"),
        takeOver: data.get("takeOver") === "on",
      }) });
      setDone({ checked: "" });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "", joined = false;
      for (;;) {
        const { value, done: end } = await reader.read();
        if (end) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop()!;
        for (const line of lines) {
          const event = JSON.parse(line);
          if (event.error) throw new HubError(event.error, 422);
          if (event.joined) joined = true;
          if (event.step) { setDone((old) => ({ ...old, [event.step]: event.detail })); announce((x.step as Record<string, string>)[event.step]); }
        }
      }
      if (!joined) throw new HubError(t.error.network, 0);
      setState("joined");
      // The kubeconfig is of no further use.
      (form.current!.elements.namedItem("kubeconfig") as HTMLTextAreaElement).value = "";
    } catch (e) {
      setError(e as HubError);
      setState("failed");
    }
  };

  if (!session.me) return <Waiting />;
  const running = state === "running" || state === "joined", lost = stream.state === "lost";
  const current = steps.find((s) => !(s in done));
  return (
    <Page title={x.title} sub={<p class="crumb"><a href={href(["clusters"])}>{t.clusters}</a></p>}>
      {!session.me.join ? <Forbidden missing={{ verb: "create", group: "cluster.karmada.io", resource: "clusters" }} /> : (
        <div class="split">
          <form ref={form} class="form" onSubmit={submit}>
            <p>{x.intro}</p>
            <label for="name">{x.name}</label>
            <input id="name" name="name" required maxLength={48} pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?" autoComplete="off" spellcheck={false} aria-describedby="name-hint" value={name} onInput={(e) => setName((e.target as HTMLInputElement).value)} readOnly={running} />
            <p class="hint" id="name-hint">{x.nameHint}</p>
            <label for="kubeconfig">{x.kubeconfig}</label>
            <textarea id="kubeconfig" name="kubeconfig" required rows={11} autoComplete="off" spellcheck={false} aria-describedby="kubeconfig-hint" readOnly={running} />
            <p class="hint" id="kubeconfig-hint">{x.kubeconfigHint}</p>
            <div class="pair">
              <div><label for="region">{x.region}</label><input id="region" name="region" autoComplete="off" readOnly={running} /></div>
              <div><label for="provider">{x.provider}</label><input id="provider" name="provider" autoComplete="off" readOnly={running} /></div>
            </div>
            <label class="check"><input type="checkbox" name="takeOver" disabled={running} /> {x.takeOver}</label>
            <button type="submit" class="primary" disabled={running || lost}>{state === "running" ? x.working : x.submit}</button>
            {lost && <p class="hint">{t.actions.lost}</p>}
            <p class="same">{x.paste} <Command text={`argosy join ${name || "NAME"} --cluster-kubeconfig FILE`} /></p>
          </form>
          <section class="steps" aria-labelledby="steps">
            <h2 id="steps">{x.steps}</h2>
            <ol>
              {steps.map((s) => {
                const finished = s === "ready" ? ready : s in done;
                const now = !finished && s === current && running;
                const failed = state === "failed" && s === current;
                return (
                  <li key={s} class={finished ? "done" : now ? "now" : failed ? "wrong" : ""}>
                    {finished ? <Mark state="Ready" /> : failed ? <Mark state="Problem" /> : now ? <Mark state="Waiting" /> : <span class="dot" aria-hidden="true" />}
                    <span>{x.step[s]}{done[s] ? <small>{done[s]}</small> : null}</span>
                  </li>
                );
              })}
            </ol>
            {done.warning && <p class="notice"><b>{x.step.warning}</b> {done.warning}</p>}
            {error && <Failure error={error} />}
            {state === "joined" && <a class="button primary" href={href(["clusters", name])}>{x.open}</a>}
          </section>
        </div>
      )}
    </Page>
  );
}
