// mlir: colours for MLIR's textual form, custom and generic, one line at a time.
//
// Everything inside an attribute dictionary has a muted colour.  What follows its brace tells a dictionary from a region:
// "{name = …" or "{name}" or "{name," is a dictionary.
import { mlirClass } from "./opclass";
import { TOKEN_LINE_MAX, type Token, type TokenClass } from "./token";

const LEXER = new RegExp(
  [
    /(?<comment>\/\/.*)/,
    /(?<string>"(?:[^"\\]|\\.)*"?)/,
    /(?<value>%[\w$.-]+(?:[:#]\d+)?)/,
    /(?<block>\^\w+)/,
    /(?<symbol>@(?:[\w$.-]+|"[^"]*"))/,
    /(?<attr>#[\w$.-]+)/,
    /(?<dialectType>![\w$.-]+)/,
    /(?<dotted>[A-Za-z_][\w$]*(?:\.[\w$]+)+)/,
    /(?<shape>(?:\?|\d+)(?:x(?:\?|\d+))*x(?=[a-z!]))/,
    /(?<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))/,
    /(?<word>[A-Za-z_]\w*)/,
    /(?<open>\{)/,
    /(?<close>\})/,
  ]
    .map((r) => r.source)
    .join("|"),
  "g",
);

const TYPES = /^(?:[suf]?i\d+|[su]i\d+|f\d+\w*|bf16|tf32|index|none|tensor|memref|vector|complex|tuple|strided|offset)$/;
const KEYWORDS = new Set(
  ("module,ins,outs,attrs,to,step,iter_args,else,do,while,in,return,permutation,dimensions,private,public,into,low," +
    "high,nofold,inner_dims_pos,inner_tiles").split(","),
);
const DIM_HEADS = new Set(["affine_map", "affine_set", "loc", "dense", "array", "dense_resource"]);
const DICT = /^\{\s*(?:[\w$.]+|"[^"]*")\s*(?:=|,|\})/;

function wordClass(word: string): TokenClass | null {
  if (TYPES.test(word)) return "type";
  if (word === "return" || word === "module") return "control";
  if (KEYWORDS.has(word)) return "keyword";
  if (word === "true" || word === "false" || word === "unit") return "number";
  return null;
}

/** The end of a parenthesised or bracketed group that starts at or after `from`. */
function groupEnd(line: string, from: number): number {
  let depth = 0;
  for (let i = from; i < line.length; i++) {
    const c = line[i];
    if (c === "(" || c === "<") depth++;
    else if (c === ")" || (c === ">" && line[i - 1] !== "-")) {
      if (--depth === 0) return i + 1;
    }
  }
  return line.length;
}

export function tokenizeMlir(line: string): Token[] {
  const tokens: Token[] = [];
  if (line.length > TOKEN_LINE_MAX) return tokens;
  // One entry per open brace: whether it opened a dictionary.
  const braces: boolean[] = [];
  const push = (from: number, to: number, cls: TokenClass) =>
    tokens.push({ from, to, cls: braces.includes(true) && cls !== "comment" ? "attr" : cls });
  const generic = /^\s*(?:%[\w$.:#, %-]+=\s*)?"/.test(line);
  let sawOp = false;
  LEXER.lastIndex = 0;
  for (let m = LEXER.exec(line); m; m = LEXER.exec(line)) {
    const from = m.index;
    const to = from + m[0].length;
    const g = m.groups as Record<string, string | undefined>;
    if (g["comment"] !== undefined) push(from, to, "comment");
    else if (g["string"] !== undefined) {
      const op: boolean = generic && !sawOp && braces.length === 0;
      push(from, to, op ? mlirClass(m[0].slice(1, -1)) : "string");
      sawOp ||= op;
    } else if (g["value"] !== undefined) push(from, to, "value");
    else if (g["block"] !== undefined) push(from, to, "control");
    else if (g["symbol"] !== undefined) push(from, to, "symbol");
    else if (g["attr"] !== undefined) push(from, to, "attr");
    else if (g["dialectType"] !== undefined) push(from, to, "type");
    else if (g["dotted"] !== undefined) {
      const opLike: boolean = !sawOp && !/^\s*[=<]/.test(line.slice(to));
      push(from, to, opLike ? mlirClass(m[0]) : "attr");
      sawOp ||= opLike;
    } else if (g["shape"] !== undefined) push(from, to, "type");
    else if (g["number"] !== undefined) push(from, to, "number");
    else if (g["open"] !== undefined) {
      const dict = DICT.test(line.slice(from, from + 200));
      braces.push(dict);
      if (dict) push(from, to, "attr");
      else sawOp = false; // a region's first operation may be on the same line
    } else if (g["close"] !== undefined) {
      if (braces.includes(true)) push(from, to, "attr");
      braces.pop();
    } else if (g["word"] !== undefined) {
      if (DIM_HEADS.has(m[0])) {
        const end = groupEnd(line, to);
        push(from, end, m[0] === "dense" ? "number" : "attr");
        LEXER.lastIndex = end;
        continue;
      }
      const cls = wordClass(m[0]);
      if (cls) push(from, to, cls);
      else if (braces.includes(true)) push(from, to, "attr");
    }
  }
  return tokens;
}
