// doers: who has changed what this page shows since that was last asked, by name: of interest in a session, where it can be others.
const doers = new Set<string>();

export function noteDoer(name: string): void {
  doers.add(name);
}

export function takeDoers(): string[] {
  const names = [...doers].sort();
  doers.clear();
  return names;
}
