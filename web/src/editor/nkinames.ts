// nkinames: the names under which a source knows the modules of NKI, from its imports.

/** The modules by the short names that the server's list uses; beta 1 has them in neuronxcc.nki. */
const SHORT: Readonly<Record<string, string>> = { "nki.isa": "nisa", "nki.language": "nl" };
const FROM = /^\s*from\s+(?:neuronxcc\.)?(nki(?:\.\w+)?|neuronxcc)\s+import\s+(?:\(([^)]*)\)|([^\n#]*))/gm;
const IMPORT = /^\s*import\s+([^\n#]*)/gm;
const NAME = /^\s*([\w.]+)(?:\s+as\s+(\w+))?\s*$/;

/** What each name stands for: "nki.isa", "nki.language.load". */
function aliases(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const m of text.matchAll(IMPORT))
    for (const part of (m[1] ?? "").split(",")) {
      const [, path = "", as] = NAME.exec(part) ?? [];
      const own = path.replace(/^neuronxcc\./, "");
      if (/^nki(\.|$)/.test(own)) found.set(as ?? (own === path ? "nki" : "neuronxcc.nki"), as ? own : "nki");
    }
  for (const m of text.matchAll(FROM))
    for (const part of (m[2] ?? m[3] ?? "").split(",")) {
      const [, name = "", as] = NAME.exec(part) ?? [];
      const path = m[1] === "neuronxcc" ? name : `${m[1]}.${name}`;
      if (name !== "" && path.startsWith("nki")) found.set(as ?? name, path);
    }
  return found;
}

/** "nl.load" for `ld.load` after `import nki.language as ld`; "nl" for the module itself; null for what is not NKI's. */
export function nkiName(text: string, path: string): string | null {
  if (!/\bnki\b/.test(text)) return null;
  for (const [name, meaning] of aliases(text)) {
    if (path !== name && !path.startsWith(`${name}.`)) continue;
    const full = meaning + path.slice(name.length);
    for (const [module, short] of Object.entries(SHORT)) if (full === module || full.startsWith(`${module}.`)) return short + full.slice(module.length);
  }
  return null;
}
