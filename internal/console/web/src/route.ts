// Addresses: the path names the page, the query its filters.
import { useEffect, useState } from "preact/hooks";

const base = "/console/";

export interface Place { path: string[]; query: URLSearchParams }

function here(): Place {
  return {
    path: location.pathname.slice(base.length).split("/").filter(Boolean).map(decodeURIComponent),
    query: new URLSearchParams(location.search),
  };
}

/** href is the address of a page. */
export function href(path: string[], query?: Record<string, string>): string {
  const params = new URLSearchParams(Object.entries(query ?? {}).filter(([, v]) => v));
  const search = params.toString();
  return base + path.map(encodeURIComponent).join("/") + (search ? "?" + search : "");
}

export function navigate(to: string, replace = false) {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  dispatchEvent(new PopStateEvent("popstate"));
}

/** setFilter changes one filter of the address, without a new entry in the history. */
export function setFilter(name: string, value: string) {
  const query = new URLSearchParams(location.search);
  if (value) query.set(name, value);
  else query.delete(name);
  const search = query.toString();
  navigate(location.pathname + (search ? "?" + search : ""), true);
}

export function usePlace(): Place {
  const [place, set] = useState(here);
  useEffect(() => {
    const moved = () => set(here());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  return place;
}

/** Links within the console do not load the page again. */
addEventListener("click", (e) => {
  const link = (e.target as Element).closest?.("a");
  if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  if (link.origin !== location.origin || !link.pathname.startsWith(base) || link.target || link.hash && link.pathname === location.pathname) return;
  if (link.pathname.startsWith(base + "assets/")) return;
  e.preventDefault();
  navigate(link.pathname + link.search);
  scrollTo(0, 0);
});
