// hlo: colours for XLA's HLO text, one line at a time.
//
//   ROOT add.3 = f32[128,256]{1,0} add(dot.1, broadcast.2), metadata={…}
//   name         shape    layout  opcode operands           attributes
import { hloClass } from "./opclass";
import { TOKEN_LINE_MAX, type Token, type TokenClass } from "./token";

const HEAD = /^(\s*)(ROOT\s+)?(%?[\w.-]+)(\s*=\s*)/;
const SHAPE = /(?:pred|token|opaque|[suf]\d+\w*|bf16|c64|c128)(?:\[[^\]]*\])?/y;
const LAYOUT = /\{[\d,:TSE()*]*\}/y;
const OPCODE = /([a-z][\w-]*)(?=\()/y;
const REST = new RegExp(
  [
    /(?<comment>\/\*.*?\*\/|\/\/.*)/,
    /(?<string>"(?:[^"\\]|\\.)*"?)/,
    /(?<type>\b(?:pred|[suf]\d+\w*|bf16)\[[^\]]*\])/,
    /(?<number>(?<![\w.%-])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.]))/,
    /(?<value>%?[A-Za-z_][\w.-]*)/,
  ]
    .map((r) => r.source)
    .join("|"),
  "g",
);

/** The end of the operand list that starts with "(" at `open`. */
function closing(line: string, open: number): number {
  let depth = 0;
  for (let i = open; i < line.length; i++) {
    if (line[i] === "(") depth++;
    else if (line[i] === ")" && --depth === 0) return i + 1;
  }
  return line.length;
}

class Scanner {
  readonly tokens: Token[] = [];
  constructor(private readonly line: string) {}

  add(from: number, to: number, cls: TokenClass): void {
    if (to > from) this.tokens.push({ from, to, cls });
  }

  /** Reads shapes, tuples of shapes and layouts from `at`; returns where the opcode begins. */
  shape(at: number): number {
    const { line } = this;
    while (at < line.length) {
      SHAPE.lastIndex = LAYOUT.lastIndex = at;
      const shape = SHAPE.exec(line);
      const layout = shape ? null : LAYOUT.exec(line);
      const hit = shape ?? layout;
      if (hit) this.add(at, at + hit[0].length, shape ? "type" : "attr");
      else if (!/[(), ]/.test(line[at] ?? "") && !line.startsWith("/*", at)) return at;
      if (!hit && line.startsWith("/*", at)) {
        const end = line.indexOf("*/", at);
        const to = end < 0 ? line.length : end + 2;
        this.add(at, to, "comment");
        at = to;
      } else at += hit ? hit[0].length : 1;
    }
    return at;
  }

  operands(from: number, to: number): void {
    REST.lastIndex = from;
    for (let m = REST.exec(this.line); m && m.index < to; m = REST.exec(this.line)) {
      const kind = Object.entries(m.groups ?? {}).find(([, v]) => v !== undefined)?.[0] as TokenClass;
      this.add(m.index, Math.min(m.index + m[0].length, to), kind);
    }
  }
}

export function tokenizeHlo(line: string): Token[] {
  const scan = new Scanner(line);
  if (line.length > TOKEN_LINE_MAX) return scan.tokens;
  const head = HEAD.exec(line);
  if (!head || line.startsWith("HloModule")) return header(scan, line);
  let at = (head[1] ?? "").length;
  if (head[2]) scan.add(at, at + 4, "keyword");
  at += (head[2] ?? "").length;
  scan.add(at, at + (head[3] ?? "").length, "value");
  at = scan.shape(head[0].length);
  OPCODE.lastIndex = at;
  const op = OPCODE.exec(line);
  if (!op) return scan.tokens;
  scan.add(at, at + op[0].length, hloClass(op[0]));
  const open = at + op[0].length;
  const end = closing(line, open);
  scan.operands(open + 1, end - 1);
  scan.add(end, line.length, "attr");
  return scan.tokens;
}

/** Lines that are not instructions: the module, a computation's head, a lone brace, a comment. */
function header(scan: Scanner, line: string): Token[] {
  const module = /^HloModule\s+([^\s,]+)/.exec(line);
  if (module) {
    scan.add(0, 9, "keyword");
    scan.add(module[0].length - (module[1] ?? "").length, module[0].length, "symbol");
    scan.add(module[0].length, line.length, "attr");
    return scan.tokens;
  }
  const computation = /^(\s*)(ENTRY\s+)?(%?[\w.-]+)(?=\s*[({])/.exec(line);
  if (!computation) {
    if (/^\s*\/\//.test(line)) scan.add(0, line.length, "comment");
    return scan.tokens;
  }
  let at = (computation[1] ?? "").length;
  if (computation[2]) scan.add(at, at + 5, "keyword");
  at += (computation[2] ?? "").length;
  scan.add(at, computation[0].length, "symbol");
  scan.operands(computation[0].length, line.length);
  return scan.tokens;
}
