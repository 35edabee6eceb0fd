// complete: the list of what can be written at the caret: NumPy and NKI as the front end knows them, knobs, keyword arguments, and the
// names of the file.
//
// The list opens only while a name is typed, or with Ctrl+Space.  Where the name stands there in full, Enter ends the line.
import { acceptCompletion, autocompletion, closeCompletion, completionStatus, currentCompletions, selectedCompletionIndex, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { syntaxTree } from "@codemirror/language";
import { type EditorState, type Extension, Prec } from "@codemirror/state";
import { type EditorView, keymap } from "@codemirror/view";
import { callAround } from "./callaround";
import { isPython, objectBefore, type OwnName, ownNames } from "./names";
import type { Known } from "./known";

const KEYWORDS = new Set(
  "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield True False None".split(" "),
);

export interface Help {
  /** What the server knows by its full name ("np.exp", "nl.load", ".sum", "knob.fuse"); null until it has answered. */
  known(): ReadonlyMap<string, Known> | null;
  /** Of the kernel's inputs: shape and type, by name. */
  inputs(): ReadonlyMap<string, string>;
}

/** What NumPy itself computes while a kernel is traced: arrays of constants, and types. */
const PLAIN: Readonly<Record<string, string>> = {
  zeros: "(shape, dtype=float64)",
  ones: "(shape, dtype=float64)",
  full: "(shape, fill_value, dtype=None)",
  zeros_like: "(a, dtype=None)",
  ones_like: "(a, dtype=None)",
  full_like: "(a, fill_value, dtype=None)",
  eye: "(N, M=None, k=0, dtype=float64)",
  arange: "(start, stop, step=1, dtype=None)",
  linspace: "(start, stop, num=50)",
  array: "(object, dtype=None)",
  ...Object.fromEntries("float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ newaxis pi inf".split(" ").map((name) => [name, /^(newaxis|pi|inf)$/.test(name) ? "" : " dtype"])),
};

/** What can follow a dot. */
function members(known: ReadonlyMap<string, Known>, object: string): Completion[] {
  const isValue = object === "value";
  const prefix = isValue || object === "builder" ? "." : `${object}.`;
  const made = new Map<string, Completion>();
  for (const [name, k] of known) {
    if (!name.startsWith(prefix) || (prefix === "." && k.isKnob === isValue)) continue;
    const [label = "", deeper] = name.slice(prefix.length).split(".");
    if (deeper === undefined) made.set(label, { label, detail: k.parameters ? `(${k.parameters.join(", ")})` : "", info: k.tip });
    else if (!made.has(label)) made.set(label, { label, detail: "…" });
  }
  if (object === "np") for (const [label, detail] of Object.entries(PLAIN)) if (!made.has(label)) made.set(label, { label, detail });
  return [...made.values()];
}

/** The keyword arguments of the call that the caret is in. */
function keywords(state: EditorState, pos: number, known: ReadonlyMap<string, Known>): Completion[] {
  const call = callAround(state, pos);
  const callee = call ? known.get(call.name) : undefined;
  const parameters = callee?.parameters ?? [];
  const from = syntaxTree(state).resolveInner(pos, -1);
  if (!call || from.prevSibling?.name === "AssignOp" || !/[(,]\s*\w*$/.test(state.doc.sliceString(call.from, pos))) return [];
  return parameters.flatMap((p, i): Completion[] => {
    const [name = "", value] = p.split("=");
    if (p.startsWith("*") || call.named.has(name) || (value === undefined && parameters.indexOf("*") > parameters.indexOf(p))) return [];
    return value === undefined && !parameters.includes("*") && !callee?.isByName ? [] : [{ label: `${name}=`, detail: value ? ` ${value}` : "", boost: 20 - i / 4 }];
  });
}

const KINDS: Record<OwnName["kind"], string> = { function: "function", class: "class", parameter: "parameter", variable: "variable", import: "imported" };

function names(state: EditorState, pos: number, inputs: ReadonlyMap<string, string>): Completion[] {
  return ownNames(state, pos).map(({ name, kind }) => {
    const shape = kind === "parameter" ? inputs.get(name) : undefined;
    return { label: name, detail: shape ? ` input ${shape}` : ` ${KINDS[kind]}`, boost: kind === "import" ? 0 : 10 };
  });
}

/** Whether a name at the position would be a new one, or no name at all. */
function isNoUse(state: EditorState, pos: number): boolean {
  const node = syntaxTree(state).resolveInner(pos, -1);
  if (/^(Comment|String|FormatString|Number|ContinuedString)$/.test(node.name)) return true;
  const { parent } = node;
  if (node.name !== "VariableName" || !parent) return false;
  if (parent.name === "ParamList") return node.prevSibling?.name !== "AssignOp";
  return /^(FunctionDefinition|ClassDefinition|ImportStatement)$/.test(parent.name);
}

function wordBefore(state: EditorState, pos: number): string {
  const line = state.doc.lineAt(pos);
  return /[\p{L}\p{N}_]*$/u.exec(line.text.slice(0, pos - line.from))?.[0] ?? "";
}

function source(help: Help): (context: CompletionContext) => CompletionResult | null {
  return ({ state, pos, explicit }) => {
    const word = wordBefore(state, pos);
    const from = pos - word.length;
    const isMember = state.doc.sliceString(from - 1, from) === ".";
    if (!isPython(state) || isNoUse(state, pos) || /^\d/.test(word) || (word === "" && !isMember && !explicit)) return null;
    const known = help.known() ?? new Map<string, Known>();
    let options;
    if (isMember) {
      const object = objectBefore(state, from - 1);
      options = object === null ? [] : members(known, object);
    } else {
      options = [...keywords(state, pos, known), ...names(state, pos, help.inputs())];
    }
    const like = options.filter((o) => o.label.startsWith(word));
    const isDone = KEYWORDS.has(word) || (like.length === 1 && like[0]?.label === word);
    return options.length === 0 || (isDone && !explicit) ? null : { from, options };
  };
}

/** Closes the list if it has nothing to add; the key then does what it does without a list. */
function leaveWhole(view: EditorView): boolean {
  const word = wordBefore(view.state, view.state.selection.main.head);
  const isWhole = currentCompletions(view.state).some((o) => o.label === word);
  if (isWhole && selectedCompletionIndex(view.state) === 0) closeCompletion(view);
  return false;
}

export function isListOpen(state: EditorState): boolean {
  return completionStatus(state) === "active";
}

export function completion(help: Help): Extension {
  return [
    Prec.highest(keymap.of([{ key: "Enter", run: leaveWhole }])),
    autocompletion({ override: [source(help)], icons: false, aboveCursor: false, maxRenderedOptions: 60 }),
    Prec.highest(keymap.of([{ key: "Tab", run: (view) => leaveWhole(view) || acceptCompletion(view) }])),
  ];
}
