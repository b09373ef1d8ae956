import { en, type Catalog } from "./en";
import { zh } from "./zh";

const catalogues: Record<string, Catalog> = { en, zh };

export const languages: [string, string][] = [["en", "English"], ["zh", "中文"]];

function initial(): string {
  const stored = localStorage.getItem("argosy-language");
  if (stored && catalogues[stored]) return stored;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export let language = initial();
export let t: Catalog = catalogues[language];

/** setLanguage changes the texts. The caller draws the page again. */
export function setLanguage(name: string) {
  language = name;
  t = catalogues[name];
  localStorage.setItem("argosy-language", name);
  document.documentElement.lang = name === "zh" ? "zh-CN" : "en";
}
document.documentElement.lang = language === "zh" ? "zh-CN" : "en";

/** fill puts values into the braces of a text. A text "one|many" has a form for n = 1, and one for other numbers. */
export function fill(text: string, values: Record<string, string | number>): string {
  const [one, many] = text.split("|");
  return (many !== undefined && values.n !== 1 ? many : one).replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));
}

const patterns = Object.entries(en.said).map(([key, text]) => [key as keyof typeof en.said,
  new RegExp("^" + text.replace(/[.*+?^$()|[\]\\/]/g, "\\$&").replace(/\{(\w+)\}/g, "(?<$1>.*?)") + "$", "s")] as const);

/**
 * said translates a sentence of the hub by its pattern in the catalogue, otherwise its parts between semicolons, or what
 * follows a colon. Parts without a pattern stay in English.
 */
export function said(text: string): string {
  if (t === en) return text;
  for (const [key, pattern] of patterns) {
    const parts = pattern.exec(text);
    if (parts) return fill(t.said[key], Object.fromEntries(Object.entries(parts.groups ?? {}).map(([k, v]) => [k, said(v)])));
  }
  const parts = text.split("; "), known = parts.length > 1 ? parts.map(said) : parts;
  if (known.some((part, i) => part !== parts[i])) return known.join("；");
  const colon = text.indexOf(": "), rest = text.slice(colon + 2), after = colon < 0 ? rest : said(rest);
  return after === rest ? text : text.slice(0, colon) + "：" + after;
}

/** ageText is a short age, such as 3m or 5h, of a time in seconds since 1970. */
export function ageText(since: number, now: number): string {
  const s = Math.max(0, Math.round(now / 1000 - since));
  const units: [number, string, string][] = [[86400, "d", "天"], [3600, "h", "小时"], [60, "m", "分钟"], [1, "s", "秒"]];
  for (const [size, short, chinese] of units) {
    if (s >= size * (size === 1 ? 0 : 1)) return Math.floor(s / size) + (language === "zh" ? " " + chinese : short);
  }
  return "";
}

/** clock, day and when write a time in milliseconds since 1970, in the language of the page. */
const locale = () => (language === "zh" ? "zh-CN" : "en-GB");
export function clock(at: number): string { return new Date(at).toLocaleTimeString(locale()); }
export function day(at: number): string { return new Date(at).toLocaleDateString(locale(), { dateStyle: "medium" }); }
export function when(at: number): string { return `${day(at)} ${clock(at)}`; }

/** bytes is an amount of memory with a binary unit. */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return (n >= 100 || i === 0 ? Math.round(n) : n.toFixed(1).replace(/\.0$/, "")) + " " + units[i];
}

/** cores is an amount of CPU in cores, of millicores. */
export function cores(milli: number): string {
  const n = milli / 1000;
  return n >= 100 ? String(Math.round(n)) : n.toFixed(1).replace(/\.0$/, "");
}
