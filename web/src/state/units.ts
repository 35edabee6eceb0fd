// units: figures as people read them.

/** Of microseconds. */
export function time(us: number): string {
  if (us >= 1e4) return `${(us / 1000).toFixed(1)} ms`;
  return `${us >= 100 ? us.toFixed(0) : us.toFixed(1)} µs`;
}

/** An element or a statistic, as people read it. */
export function numberText(v: number | string | null | undefined, isWhole = false): string {
  if (v === null || v === undefined) return "–";
  if (typeof v === "string") return v;
  if (isWhole || Number.isInteger(v)) return Math.abs(v) < 1e15 ? String(v) : v.toExponential(4);
  const size = Math.abs(v);
  return size >= 1e5 || size < 1e-3 ? v.toExponential(3) : String(Number(v.toPrecision(5)));
}

export function bytesText(n: number): string {
  return n >= 1 << 20 ? `${(n / (1 << 20)).toFixed(1)} MiB` : n >= 1024 ? `${(n / 1024).toFixed(1).replace(".0", "")} KiB` : `${n} B`;
}
