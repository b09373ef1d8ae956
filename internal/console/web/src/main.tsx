import { h, render, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ChangePage } from "./change";
import { ClusterPage, ClustersPage } from "./clusters";
import { FleetPage } from "./fleet";
import { session, stream, useSource } from "./hub";
import { clock, fill, language, languages, setLanguage, t } from "./i18n";
import { ImportPage } from "./import";
import { LoginAgain, LoginPage } from "./login";
import { PoliciesPage, PolicyPage } from "./policies";
import { href, navigate, usePlace, type Place } from "./route";
import { copy, Icon, LiveRegion, staleText, useNow, Waiting } from "./ui";
import { ReleasePage, ReleasesPage } from "./releases";
import { SearchPage } from "./search";
import { TimelinePage } from "./timeline";
import { UsagePage } from "./usage";
import { WalkPage } from "./walk";
import { WorkloadsPage } from "./workloads";

const pages: [string, string[]][] = [["fleet", []], ["clusters", ["clusters"]], ["workloads", ["workloads"]], ["policies", ["policies"]],
  ["releases", ["releases"]], ["timeline", ["timeline"]], ["usage", ["usage"]], ["search", ["search"]]];

function Content({ path }: { path: string[] }) {
  if (path[0] === "clusters") {
    if (path[1] === "import") return <ImportPage />;
    return path[1] ? <ClusterPage name={path[1]} key={path[1]} /> : <ClustersPage />;
  }
  if (path[0] === "workloads") return <WorkloadsPage />;
  if (path[0] === "change") return <ChangePage key={location.search} />;
  if (path[0] === "policies") {
    return path.length === 4 ? <PolicyPage kind={path[1]} namespace={path[2] === "-" ? "" : path[2]} name={path[3]} key={path.join("/")} /> : <PoliciesPage />;
  }
  if (path[0] === "releases") return path.length === 3 ? <ReleasePage namespace={path[1]} name={path[2]} key={path.join("/")} /> : <ReleasesPage />;
  if (path[0] === "timeline") return <TimelinePage />;
  if (path[0] === "usage") return <UsagePage />;
  if (path[0] === "search") return <SearchPage />;
  if (path[0] === "w" && path.length === 5) {
    const [, group, kind, namespace, name] = path;
    return <WalkPage group={group === "core" ? "" : group} kind={kind} namespace={namespace === "-" ? "" : namespace} name={name} key={path.join("/")} />;
  }
  return <FleetPage />;
}

/** Connection tells live data from old data. */
function Connection() {
  useSource(stream);
  const now = useNow();
  const late = stream.state === "live" && now - stream.heard > 15_000;
  const state = late ? "lost" : stream.state;
  const text = state === "live" ? t.live : state === "lost" ? staleText(stream.lostAt || stream.heard) : t.connecting;
  return <span class={"connection " + state} role="status" title={stream.message || undefined}><i aria-hidden="true" />{text}</span>;
}

function Rail({ place }: { place: Place }) {
  useSource(stream);
  const n = stream.topic("fleet").totals;
  const counts: Record<string, number> = n ? { clusters: n.notReady, workloads: n.bad + n.unplaced, releases: n.waiting } : {};
  const section = place.path[0] === "w" || place.path[0] === "change" ? "workloads" : place.path[0] ?? "fleet";
  return (
    <nav class="rail" aria-label={t.console}>
      <a class="brand" href="/console/"><img src="/console/assets/icon.svg" alt="" width="30" height="30" /><span>{t.app}</span></a>
      <ul>
        {pages.map(([id, path]) => (
          <li key={id}><a href={href(path)} aria-current={section === id ? "page" : undefined}>
            <Icon name={id} /><span class="name">{t[id as "fleet"]}</span>
            {counts[id] ? <span class="badge"><span aria-hidden="true">{counts[id]}</span><span class="sr">{fill(id === "releases" ? t.attention.waiting : t.problems, { n: counts[id] })}</span></span> : null}
          </a></li>
        ))}
      </ul>
      <div class="foot"><Connection /></div>
    </nav>
  );
}

const themes: [string, "themeSystem" | "themeLight" | "themeDark"][] = [["", "themeSystem"], ["light", "themeLight"], ["dark", "themeDark"]];

function applyTheme(theme: string) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
applyTheme(localStorage.getItem("argosy-theme") ?? "");

function Account({ redraw, help }: { redraw: () => void; help: () => void }) {
  const me = session.me!;
  const [theme, setTheme] = useState(localStorage.getItem("argosy-theme") ?? "");
  return (
    <div class="account">
      <button type="button" class="quiet" onClick={help} aria-label={t.help} title={t.help + " (?)"}><Icon name="keyboard" /></button>
      <button type="button" class={"quiet who" + (me.master ? " master" : "")} popovertarget="account"><Icon name="user" /><span>{me.user}</span></button>
      <div id="account" popover="auto" class="menu">
        <dl>
          <dt>{t.user}</dt><dd>{me.user}</dd>
          <dt>{t.groups}</dt><dd>{me.groups.join(", ")}</dd>
        </dl>
        {me.master && <p class="notice failed">{t.master}</p>}
        {me.ends && <p class="faint">{fill(t.sessionEnds, { time: clock(Date.parse(me.ends)) })}</p>}
        <label>{t.language}
          <select value={language} onChange={(e) => { setLanguage((e.target as HTMLSelectElement).value); redraw(); }}>
            {languages.map(([id, name]) => <option value={id} key={id} selected={id === language}>{name}</option>)}
          </select>
        </label>
        <label>{t.theme}
          <select value={theme} onChange={(e) => { const v = (e.target as HTMLSelectElement).value; localStorage.setItem("argosy-theme", v); applyTheme(v); setTheme(v); }}>
            {themes.map(([id, key]) => <option value={id} key={id} selected={id === theme}>{t[key]}</option>)}
          </select>
        </label>
        <button type="button" onClick={() => session.logOut()}>{t.logOut}</button>
      </div>
    </div>
  );
}

let single = localStorage.getItem("argosy-keys") !== "off";

function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [on, setOn] = useState(single);
  useEffect(() => { dialog.current?.showModal(); }, []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help" onClose={close}>
      <h2 id="help">{t.help}</h2>
      <dl>{Object.entries(t.keys).map(([key, text]) => <div key={key}><dt>{key.split(" ").map((k) => <kbd key={k}>{k}</kbd>)}</dt><dd>{text}</dd></div>)}</dl>
      <label class="check"><input type="checkbox" checked={on} onChange={() => { single = !on; localStorage.setItem("argosy-keys", single ? "on" : "off"); setOn(single); }} /> {t.helpSingle}</label>
      <form method="dialog"><button type="submit" class="primary">{t.close}</button></form>
    </dialog>
  );
}

/** move gives the focus to another row, or to another one with a problem. */
function move(by: number, problems = false) {
  let rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  if (problems) rows = rows.filter((r) => r === document.activeElement || r.closest(".row, .item, .lane, tr")?.querySelector(".mark.bad, .mark.warn"));
  const at = rows.indexOf(document.activeElement as HTMLElement);
  rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + by))]?.focus();
}

let pending = "";

function useKeys(help: () => void) {
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      const el = e.target as HTMLElement;
      const typing = el.matches("input, textarea, select, [contenteditable]");
      if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
      if (e.key === "Escape") {
        if (typing) el.blur();
        else if (!document.querySelector(":popover-open") && location.pathname !== "/console/") history.back();
        return;
      }
      if (typing || !single) return;
      const after = pending;
      pending = "";
      if (after === "g") {
        const to = { f: [], c: ["clusters"], w: ["workloads"], p: ["policies"], r: ["releases"], t: ["timeline"], u: ["usage"], s: ["search"] }[e.key as "f"];
        if (to) { e.preventDefault(); navigate(href(to)); }
        return;
      }
      switch (e.key) {
        case "g": pending = "g"; setTimeout(() => { pending = ""; }, 1200); break;
        case "/": { const f = document.querySelector<HTMLElement>("[data-filter]"); if (f) { e.preventDefault(); f.focus(); } break; }
        case "j": case "ArrowDown": if (e.key === "j" || el.matches("[data-row]")) { e.preventDefault(); move(1); } break;
        case "k": case "ArrowUp": if (e.key === "k" || el.matches("[data-row]")) { e.preventDefault(); move(-1); } break;
        case "y": if (el.dataset.next) copy(el.dataset.next); break;
        case "[": move(-1, true); break;
        case "]": move(1, true); break;
        case "?": e.preventDefault(); help(); break;
        default: {
          // Buttons and links name their keys.
          const button = /^[a-z0-9]$/.test(e.key) ? document.querySelector<HTMLButtonElement>(`[data-key="${e.key}"]`) : null;
          if (button && !button.disabled) { e.preventDefault(); button.click(); }
        }
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

let loginError = "";

function App() {
  useSource(session);
  const [, redraw] = useState(0);
  const [help, setHelp] = useState(false);
  const place = usePlace();
  useKeys(() => setHelp(true));
  useSource(stream);
  if (session.me === undefined) return session.error ? <LoginPage error={session.error} /> : <main class="stage"><Waiting /></main>;
  if (session.me === null) return <LoginPage error={loginError} />;
  const stale = stream.state === "lost";
  const old = !stale && stream.message !== "" && stream.topic("fleet").loaded;
  return (
    <>
      <a class="skip" href="#content">{t.skip}</a>
      <Rail place={place} />
      <div class="top">
        {old && <p class="stale" role="alert">{fill(t.asOf, { time: clock(stream.topic("fleet").at) })} – {stream.message}</p>}
        {stale && <p class="stale" role="alert">{staleText(stream.lostAt)}{stream.message ? " – " + stream.message : ""}</p>}
        <Account redraw={() => redraw((n) => n + 1)} help={() => setHelp(true)} />
      </div>
      <div class={"stage" + (stale ? " old" : "")}><Content key={session.me.user} path={place.path} /></div>
      {session.over && <LoginAgain />}
      {help && <Help close={() => setHelp(false)} />}
      <LiveRegion />
    </>
  );
}

/** The code of a one-time link is in the fragment. It leaves the address and the history at once. */
async function start() {
  const code = new URLSearchParams(location.hash.slice(1)).get("login");
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
    try {
      await session.logIn({ code });
      return;
    } catch (e) {
      loginError = (e as Error).message;
    }
  }
  await session.load();
}

render(<App />, document.getElementById("app")!);
start();
