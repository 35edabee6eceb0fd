// units: figures as people read them.

/** Of microseconds. */
export function time(us: number): string {
  if (us >= 1e4) return `${(us / 1000).toFixed(1)} ms`;
  return `${us >= 100 ? us.toFixed(0) : us.toFixed(1)} µs`;
}
