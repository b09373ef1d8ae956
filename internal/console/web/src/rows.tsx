// A windowed table: only the rows on screen are in the document.
import { h, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const rowHeight = 44;
const windowed = 60;

export interface Column<T> { id: string; title: string; cell: (row: T) => ComponentChildren; sort?: (a: T, b: T) => number; width?: number; end?: boolean }

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  open: (row: T) => string;
  tone?: (row: T) => string;
}

export function Table<T>({ label, columns, rows, keyOf, open, tone }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [span, setSpan] = useState<[number, number]>([0, 40]);
  const [order, setOrder] = useState<{ id: string; down: boolean } | null>(null);
  const narrow = matchMedia("(max-width: 820px)").matches;
  const whole = rows.length <= windowed;
  const height = narrow ? 96 : rowHeight;

  useEffect(() => {
    if (whole) return;
    const measure = () => {
      if (!box.current) return; // the page was left while it scrolled
      // Ten rows above the window and ten below it are drawn, and all is drawn anew after five rows.
      const top = box.current.getBoundingClientRect().top, seen = Math.ceil(innerHeight / height);
      const from = Math.max(0, Math.floor(-top / height) - 10);
      setSpan((old) => (Math.abs(old[0] - from) < 5 && old[1] >= from + seen + 15 ? old : [from, from + seen + 20]));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => { removeEventListener("scroll", measure); removeEventListener("resize", measure); };
  }, [whole, height, rows.length]);

  let sorted = rows;
  const column = order && columns.find((c) => c.id === order.id);
  if (column?.sort) sorted = [...rows].sort((a, b) => column.sort!(a, b) * (order!.down ? -1 : 1));
  const [from, to] = whole ? [0, sorted.length] : [Math.min(span[0], Math.max(0, sorted.length - 1)), Math.min(sorted.length, span[1])];
  const shown = sorted.slice(from, to);
  const template = columns.map((c) => `minmax(0,${c.width ?? 1}fr)`).join(" ");
  return (
    <div class="table" role="table" aria-label={label} aria-rowcount={sorted.length + 1} ref={box}>
      <div class="tr head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map((c) => (
          <div role="columnheader" class={c.end ? "end" : ""} aria-sort={order?.id === c.id ? (order.down ? "descending" : "ascending") : undefined} key={c.id}>
            {c.sort
              ? <button type="button" class="sort" onClick={() => setOrder(order?.id === c.id && !order.down ? { id: c.id, down: true } : { id: c.id, down: false })}>{c.title}{order?.id === c.id && <span aria-hidden="true">{order.down ? " ↓" : " ↑"}</span>}</button>
              : c.title}
          </div>
        ))}
      </div>
      <div role="rowgroup" style={{ paddingTop: `${from * height}px`, paddingBottom: `${(sorted.length - to) * height}px` }}>
        {shown.map((row, i) => (
          <div class={"tr row " + (tone?.(row) ?? "")} role="row" aria-rowindex={from + i + 2} key={keyOf(row)} style={{ gridTemplateColumns: template, ...(whole ? {} : { height: `${height}px` }) }}>
            {columns.map((c, n) => (
              <div role="cell" class={"cell-" + c.id + (c.end ? " end" : "")} data-title={c.title} key={c.id}>
                {n === 0 ? <a class="open" data-row href={open(row)}>{c.cell(row)}</a> : c.cell(row)}
              </div>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}
