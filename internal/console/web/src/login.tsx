import { h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, session } from "./hub";
import { t } from "./i18n";
import { Command } from "./ui";

/** LoginForm logs in by token. */
function LoginForm({ error: first }: { error?: string }) {
  const [error, setError] = useState(first ?? "");
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const [oidc, setOIDC] = useState(false);
  useEffect(() => { call("session").then((r) => r.json()).then((ways) => setOIDC(ways.oidc), () => undefined); }, []);
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setError("");
    try {
      await session.logIn({ token: field.current!.value });
    } catch (e) {
      setError((e as Error).message);
      field.current?.focus();
    }
    setBusy(false);
  };
  return (
    <div class="login">
      <p>{t.login.byCommand}</p>
      <Command text="argosy console" />
      <p class="faint">{t.login.byCommandAfter}</p>
      {oidc && <p><a class="button" href="/console/login/oidc" target="_self">{t.login.byOIDC}</a></p>}
      <form onSubmit={submit}>
        <label for="token">{t.login.byToken}</label>
        <input id="token" ref={field} type="password" autoComplete="off" spellcheck={false} required aria-invalid={!!error} aria-describedby={error ? "login-error" : undefined} />
        {error && <p class="wrong" id="login-error" role="alert">{error}</p>}
        <button type="submit" class="primary" disabled={busy}>{busy ? t.login.working : t.login.submit}</button>
      </form>
      <p class="faint">{t.login.rights}</p>
    </div>
  );
}

export function LoginPage({ error }: { error?: string }) {
  useEffect(() => { document.title = t.login.title + " · " + t.app; }, []);
  return (
    <main class="door" id="content">
      <div class="card">
        <img src="/console/assets/icon.svg" alt="" width="52" height="52" />
        <h1>{t.login.title}</h1>
        <LoginForm error={error} />
      </div>
    </main>
  );
}

/** LoginAgain is over the page whose login ended, so that nothing typed there is lost. */
export function LoginAgain() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => { dialog.current?.showModal(); }, []);
  return (
    <dialog ref={dialog} class="again" aria-labelledby="again" onCancel={(e) => e.preventDefault()}>
      <h2 id="again">{t.login.title}</h2>
      <p>{t.login.again}</p>
      <LoginForm />
    </dialog>
  );
}
