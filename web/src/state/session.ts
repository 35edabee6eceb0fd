// session: people together in one kernel, as far as the rest of the page knows of it.

/** The id in "/s/ID"; null if the address is another. */
export function sessionInPath(path: string): string | null {
  return /^\/s\/([^/]*)$/.exec(path)?.[1] ?? null;
}

const KEY = "nkx.session.";

/** Who this tab is in a session. */
export interface Ticket {
  person: number;
  token: string;
}

/** Kept for this tab: two tabs are two people. */
export function keptTicket(id: string): Ticket | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY + id) ?? "null") as Partial<Ticket> | null;
    return typeof kept?.token === "string" && typeof kept.person === "number" ? { person: kept.person, token: kept.token } : null;
  } catch {
    return null;
  }
}

export function keepTicket(id: string, ticket: Ticket | null): void {
  try {
    if (ticket) sessionStorage.setItem(KEY + id, JSON.stringify(ticket));
    else sessionStorage.removeItem(KEY + id);
  } catch {
    // no storage: who loads the page again is another person
  }
}

const NAME_KEY = "nkx.name";

/** The name that the user went by last. */
export function keptName(): string {
  try {
    return localStorage.getItem(NAME_KEY) ?? "";
  } catch {
    return "";
  }
}

export function keepName(name: string): void {
  try {
    localStorage.setItem(NAME_KEY, name);
  } catch {
    // asked again
  }
}
