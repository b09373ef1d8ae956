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

/** sentenceEnd stands for "; " between sentences, so that no placeholder contains two of them. */
const sentenceEnd = "\0";
const placeholders: Record<string, string> = { n: "\\d+", all: "\\d+", fewer: "\\d+", cluster: "[\\w.-]+" };
// The longest first: a shorter one with the same beginning would take the rest for a value.
const patterns = Object.entries(en.said).sort(([, a], [, b]) => b.length - a.length).map(([key, text]) => ({
  key: key as keyof typeof en.said, begins: text.startsWith("{"),
  is: new RegExp("^" + text.replaceAll("; ", sentenceEnd).replace(/[.*+?^$()|[\]\\/]/g, "\\$&").replace(/\{(\w+)\}/g,
    (_, name) => `(?<${name}>${placeholders[name] ?? `[^${sentenceEnd}]*?`})`) + "$"),
}));

/**
 * said translates the sentences of the hub by their patterns in the catalogue: the longest run of them that has one, or
 * what follows a colon. Sentences without a pattern stay in English.
 */
export function said(text: string): string {
  return t === en ? text : sentences(text.replaceAll("; ", sentenceEnd)).replaceAll(sentenceEnd, "; ");
}

function sentences(text: string): string {
  const parts = text.split(sentenceEnd);
  for (let n = parts.length; n > 0; n--) {
    const is = sentence(parts.slice(0, n).join(sentenceEnd));
    if (is !== undefined) return [is, ...(n < parts.length ? [sentences(parts.slice(n).join(sentenceEnd))] : [])].join("；");
  }
  const rest = parts.slice(1).join(sentenceEnd), after = rest && sentences(rest);
  return after === rest ? text : parts[0] + "；" + after;
}

/** sentence translates a text by one pattern: as it is, or after the name of a cluster, or after any other colon. */
function sentence(text: string): string | undefined {
  const [name] = /^[\w.-]+: /.exec(text) ?? [""];
  return byPattern(text, false) ?? (name ? afterColon(text, name.length - 2) : undefined) ?? byPattern(text, true)
    ?? afterColon(text, text.indexOf(": "));
}

function byPattern(text: string, begins: boolean): string | undefined {
  for (const p of patterns) {
    const parts = p.begins === begins && p.is.exec(text);
    if (parts) return fill(t.said[p.key], Object.fromEntries(Object.entries(parts.groups ?? {}).map(([k, v]) => [k, sentences(v)])));
  }
}

function afterColon(text: string, colon: number): string | undefined {
  const after = colon < 0 || text.includes(sentenceEnd) ? undefined : sentence(text.slice(colon + 2));
  return after && text.slice(0, colon) + "：" + after;
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
