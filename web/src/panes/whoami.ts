// whoami: who the server takes the user for, in words.
import { getMe } from "../api/client";
import { Problem } from "../api/problem";
import type { Me } from "../api/types";

/** Null if the server cannot be asked: nothing depends on it but words and offers. */
export async function askWhoAmI(): Promise<Me | null> {
  try {
    return await getMe();
  } catch (e) {
    if (e instanceof Problem) return null;
    throw e;
  }
}

const MAY: Record<Me["role"], string> = {
  none: "must sign in to compile",
  reader: "may open links and compile, but not store links",
  author: "may store links",
  operator: "an operator of this server",
};

/** A sentence; empty where nobody signs in, and everybody may do everything. */
export function whoText(me: Me | null): string {
  if (me === null || (!me.has_sign_in && me.role === "author" && me.kind === "anonymous")) return "";
  if (me.name === null) return `Not signed in: ${MAY[me.role]}.`;
  const groups = me.groups.length > 0 ? `, of ${me.groups.join(", ")}` : "";
  return `Signed in as ${me.name}${groups}: ${MAY[me.role]}.`;
}

export function mayStore(me: Me | null): boolean {
  return me === null || me.role === "author" || me.role === "operator";
}

/** Signed in, so that private links can be theirs. */
export function isSomebody(me: Me | null): boolean {
  return me !== null && me.kind !== "anonymous";
}

/** "a, b" as a list. */
export function namesOf(text: string): string[] {
  return text
    .split(/[,;\n]/)
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
