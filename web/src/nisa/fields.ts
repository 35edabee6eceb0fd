// fields: an operation's line as a tree of its fields, for the card: results, operands, attributes, types.
import { operandText } from "./access";
import { groupEnd, isAccess, readInstruction, splitList } from "./read";
import { Scope } from "./scope";

export interface Field {
  name: string;
  value: string;
  fields: Field[];
}

/** Characters of a value that are shown. */
const VALUE_MAX = 160;

function field(name: string, value: string, fields: Field[] = []): Field {
  return { name, value: value.length > VALUE_MAX ? `${value.slice(0, VALUE_MAX)}…` : value, fields };
}

function instruction(line: string): Field[] | null {
  const i = readInstruction(line);
  if (!i) return null;
  const out = i.result ? [field("result", i.result)] : [];
  const scope = new Scope();
  for (const [name, o] of i.operands) {
    if (!isAccess(o)) {
      out.push(field(name, `${o.dtype} ${o.value}`));
      continue;
    }
    const inner = [
      field("buffer", `${o.base}: ${o.type.dims.join("×")} ${o.type.dtype} in ${o.type.space || "memory"}`),
      field("tile", `${o.tile.slice(0, o.par).join("×")} partitions, ${o.tile.slice(o.par).join("×") || "1"} free`),
      field("index", o.index ? o.index.join(", ") : o.map),
    ];
    out.push(field(name, operandText(o, scope), inner));
  }
  for (const [name, value] of i.attrs) out.push(field(name, value));
  out.push(field("engine", i.engine));
  if (i.signal) out.push(field("signal", "raises its stream's semaphore when it is complete"));
  return out;
}

/** Levels of a configuration that become fields; what is below them stays text. */
const NEST_MAX = 16;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function fromBase64(text: string): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
  } catch {
    return null;
  }
}

function jsonField(name: string, value: unknown, nest: number): Field {
  if (typeof value !== "object" || value === null || nest === 0) return field(name, JSON.stringify(value));
  const inner = Object.entries(value).map(([key, v]) => jsonField(key, v, nest - 1));
  return inner.length > 0 ? field(name, Array.isArray(value) ? `${inner.length} of them` : "", inner) : field(name, JSON.stringify(value));
}

/** The configuration of a custom call: JSON as it is, in quotes, or in base64, as the vendor's front ends write it. */
function configField(name: string, value: string): Field {
  const quoted = parsed(value);
  const text = typeof quoted === "string" ? quoted : value;
  const json = parsed(text) ?? parsed(fromBase64(text) ?? "");
  return typeof json === "object" && json !== null ? jsonField(name, json, NEST_MAX) : field(name, value);
}

function attribute(name: string, value: string): Field {
  if (name === "backend_config") return configField(name, value);
  return name === "nkipy.custom_call" && value.startsWith("{") ? field(name, "", dictionary(value)) : field(name, value);
}

function dictionary(text: string): Field[] {
  return (splitList(text.slice(1, -1)) ?? []).map((entry) => {
    const at = entry.indexOf("=");
    return at < 0 ? field(entry, "true") : attribute(entry.slice(0, at).trim(), entry.slice(at + 1).trim());
  });
}

function mlir(line: string): Field[] {
  const text = line.trim();
  const out: Field[] = [];
  const lhs = /^(%[\w$.:#, %-]+?) = /.exec(text);
  if (lhs) out.push(field("result", lhs[1] ?? ""));
  const rest = lhs ? text.slice(lhs[0].length) : text;
  const open = rest.search(/\{\s*(?:[\w$.]+|"[^"]*")\s*(?:=|,|\})/);
  const close = open < 0 ? -1 : groupEnd(rest, open);
  const attributes = close > 0 ? dictionary(rest.slice(open, close)) : [];
  const bare = close > 0 ? rest.slice(0, open) + rest.slice(close) : rest;
  const names = [...new Set(bare.match(/%[\w$.-]+(?:#\d+)?/g) ?? [])];
  if (names.length > 0) out.push(field("operands", names.join(", ")));
  if (attributes.length > 0) out.push(field("attributes", "", attributes));
  const type = bare.lastIndexOf(" : ");
  if (type >= 0) out.push(field("type", bare.slice(type + 3).replace(/ \{$/, "")));
  return out;
}

function hlo(line: string): Field[] {
  const m = /^\s*(ROOT\s+)?(%?[\w.-]+)\s*=\s*(.*?)\s([a-z][\w-]*)\(/.exec(line);
  if (!m) return [];
  const open = m[0].length - 1;
  const close = groupEnd(line, open);
  const out = [field("result", `${m[2]}${m[1] ? ", the computation's root" : ""}`), field("shape", m[3] ?? "")];
  if (close < 0) return out;
  out.push(field("operands", line.slice(open + 1, close - 1)));
  const attributes = splitList(line.slice(close).replace(/^, /, "")) ?? [];
  const entries = dictionary(`{${attributes.join(", ")}}`).filter((f) => f.name !== "");
  if (entries.length > 0) out.push(field("attributes", "", entries));
  return out;
}

export function fieldsOf(line: string, dialect: string): Field[] {
  return dialect === "hlo" ? hlo(line) : (instruction(line) ?? mlir(line));
}

const WRITTEN: Readonly<Record<string, string>> = {
  module: "builtin.module",
  return: "func.return",
  call: "func.call",
  "nisa.program": "scf.execute_region",
  "nisa.queue": "scf.execute_region",
  "nisa.core": "scf.execute_region",
};

/** The operation's full name, from the name that its line shows. */
export function fullName(label: string, dialect: string): string {
  return dialect === "hlo" ? `hlo.${label}` : (WRITTEN[label] ?? label);
}
