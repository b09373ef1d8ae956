// The fields of the object at the cursor of the editor, from the hub's OpenAPI.
import { h, Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "./hub";
import { fill, t } from "./i18n";

interface Schema {
  $ref?: string; allOf?: Schema[]; type?: string; format?: string; description?: string; enum?: unknown[]; items?: Schema; required?: string[];
  properties?: Record<string, Schema>; additionalProperties?: Schema | boolean; "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
}
interface Document { components?: { schemas?: Record<string, Schema> } }

/** Spot is where the cursor is: the object with its apiVersion and kind, the keys above it, and what is typed of a key. */
export interface Spot { apiVersion: string; kind: string; path: string[]; typed: string; value: boolean }

/** spotOf finds the cursor in YAML of the block style. It has no answer in flow style, such as {a: b}. */
export function spotOf(text: string, cursor: number): Spot | undefined {
  const before = text.slice(0, cursor).split(/^---.*$/m).at(-1)!;
  const whole = before + text.slice(cursor).split(/^---.*$/m)[0];
  const top = (key: string) => whole.match(new RegExp(`^${key}:\\s*["']?([^\\s"'#]+)`, "m"))?.[1] ?? "";
  const lines = before.split("\n"), last = lines.pop()!, stack: { indent: number; key: string }[] = [];
  const under = (indent: number) => { while (stack.length && stack.at(-1)!.indent >= indent) stack.pop(); };
  for (const line of lines) {
    const [, indent, key] = line.match(/^(\s*(?:- +)*)["']?([^\s:#"'{}[\]-][^:{}[\]]*?)["']?:(?:\s|$)/) ?? [];
    if (key === undefined) continue;
    under(indent.length);
    stack.push({ indent: indent.length, key });
  }
  const [, indent, rest] = last.match(/^(\s*(?:- +)*)(.*)$/)!;
  if (/[{}[\]#]/.test(rest)) return;
  under(indent.length);
  const [typed, ...value] = rest.split(":");
  return { apiVersion: top("apiVersion"), kind: top("kind"), path: stack.map((s) => s.key), typed, value: value.length > 0 };
}

/**
 * completion returns the text between from and to that writes a key such as "image: " at the cursor, and the new cursor.
 * typed is the part of the key before the cursor. The key under the cursor is replaced and keeps its value; the start of
 * another key moves to the next line.
 */
export function completion(text: string, cursor: number, typed: string, key: string): { text: string; from: number; to: number; cursor: number } {
  const from = cursor - typed.length, rest = text.slice(cursor).split("\n")[0];
  if (!typed && rest.trim()) {
    const before = text.slice(0, cursor).split("\n").at(-1)!;
    return { text: key + "\n" + before.replace(/\S/g, " "), from, to: cursor, cursor: from + key.length };
  }
  const [found, word, colon] = rest.match(/^([^\s:#"'{}[\],]*)(:(?=\s|$))?/)!;
  const whole = colon ? key.trimEnd() : key;
  return { text: whole, from, to: cursor + (colon ? found : word).length, cursor: from + whole.length };
}

const documents = new Map<string, Promise<Document>>();

/** documentOf reads the schemas of an apiVersion once. */
function documentOf(apiVersion: string): Promise<Document> {
  const path = "k8s/openapi/v3/" + (apiVersion.includes("/") ? "apis/" : "api/") + apiVersion;
  let found = documents.get(path);
  if (!found) {
    documents.set(path, found = get<Document>(path));
    found.catch(() => documents.delete(path));
  }
  return found;
}

function resolve(doc: Document, s?: Schema): Schema {
  for (let i = 0; s && i < 8; i++) {
    const ref: string | undefined = s.$ref ?? s.allOf?.[0]?.$ref;
    if (!ref) return s;
    s = { ...doc.components?.schemas?.[ref.split("/").at(-1)!], ...(s.description ? { description: s.description } : {}) };
  }
  return s ?? {};
}

/** fieldsAt returns the schema of the object at a spot. */
export function fieldsAt(doc: Document, at: Spot): Schema {
  const [version, group] = at.apiVersion.split("/").reverse();
  let s = Object.values(doc.components?.schemas ?? {}).find((x) => x["x-kubernetes-group-version-kind"]?.some((g) => g.kind === at.kind && g.version === version && g.group === (group ?? "")));
  for (const key of at.path) {
    let is = resolve(doc, s);
    while (is.items) is = resolve(doc, is.items);
    s = is.properties?.[key] ?? (typeof is.additionalProperties === "object" ? is.additionalProperties : undefined);
  }
  let is = resolve(doc, s);
  while (is.items) is = resolve(doc, is.items);
  return is;
}

/** Fields lists the keys at the cursor with their descriptions. A button completes the key. */
export function Fields({ text, cursor, complete }: { text: string; cursor: number; complete: (typed: string, key: string) => void }) {
  const [doc, set] = useState<{ of: string; is: Document }>();
  const at = spotOf(text, cursor), of = at?.kind && /^([a-z0-9.-]+\/)?v[a-z0-9]+$/.test(at.apiVersion) ? at.apiVersion : "";
  useEffect(() => {
    if (!of || doc?.of === of) return;
    // A version that is being typed does not exist yet: the list stays empty.
    let left = false;
    const timer = setTimeout(() => documentOf(of).then((is) => { if (!left) set({ of, is }); }, () => { if (!left) set(undefined); }), 400);
    return () => { left = true; clearTimeout(timer); };
  }, [of]);
  if (!at || !doc || doc.of !== of) return <p class="hint">{t.schema.hint}</p>;
  const is = fieldsAt(doc.is, at), all = Object.entries(is.properties ?? {}).sort(([a], [b]) => a.localeCompare(b));
  const shown = all.filter(([key]) => (at.value ? key === at.typed : key.startsWith(at.typed)));
  if (shown.length === 0) return <p class="hint">{t.schema.none}</p>;
  return (
    <details class="fields" open>
      <summary>{fill(t.schema.title, { path: [at.kind, ...at.path].join("."), n: shown.length })}</summary>
      <dl>
        {shown.map(([key, s]) => {
          const r = resolve(doc.is, s), type = [r.items ? `[]${resolve(doc.is, r.items).type ?? ""}` : r.type, r.format, is.required?.includes(key) ? t.schema.required : ""].filter(Boolean).join(" · ");
          return (
            <div key={key}>
              <dt>{at.value ? <b>{key}</b> : <button type="button" class="link" onClick={() => complete(at.typed, key + ":" + (r.properties || r.items || r.type === "object" ? "" : " "))}>{key}</button>} <span class="faint">{type}</span></dt>
              <dd>{r.description}{r.enum ? ` (${r.enum.join(", ")})` : ""}</dd>
            </div>
          );
        })}
      </dl>
    </details>
  );
}
