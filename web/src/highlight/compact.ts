// compact: colours for the compact form of NISA, one row at a time.
//
//   V     %sbuf[:, i] ← max(%psum{i}, 0)    [128×512 f32] ↑
//   engine value index  op  value     number shape
//
// Names of loop counters stand without "%" in indices, in what a rotation's braces hold, and after "for".
import type { Token, TokenClass } from "./token";

const LEXER = new RegExp(
  [
    /(?<value>%[\w$.-]+)/,
    /(?<symbol>@[\w$.-]+)/,
    /(?<type>\[[\d?×]+ [^\]]*\]|\[[a-z]+\d+\]|\[index\])/,
    /(?<attr>(?:HBM|SBUF|PSUM)→(?:HBM|SBUF|PSUM)|↑|\bin (?:HBM|SBUF|PSUM)\b.*|\(\d+ rounds?\)| \w+=\S+)/,
    /(?<arrow>←|\+=|→)/,
    /(?<number>(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w]))/,
    /(?<word>[A-Za-z_]\w*)/,
    /(?<open>[[{])/,
    /(?<close>[\]}])/,
  ]
    .map((r) => r.source)
    .join("|"),
  "g",
);

const CONTROL = new Set(["for", "in", "step", "if", "else", "while", "do", "return", "mod"]);
const MOVES = new Set(["copy", "transpose", "gather", "load", "where", "at", "not", "iota", "from"]);
const ENGINE = /^([TVSGYD]) /;

function wordClass(word: string, row: string, to: number, depth: number, afterFor: boolean): TokenClass | null {
  if (CONTROL.has(word)) return "control";
  if (depth > 0 || afterFor) return "value"; // a loop's counter
  if (MOVES.has(word)) return "transfer";
  if (row[to] === "(" || /^ over partitions/.test(row.slice(to))) return "compute";
  return null;
}

export function tokenizeCompact(row: string): Token[] {
  const tokens: Token[] = [];
  const engine = ENGINE.exec(row);
  if (engine) tokens.push({ from: 0, to: 1, cls: `engine-${engine[1] as "T"}` });
  const text = row.slice(2).trimStart();
  const at = row.length - text.length;
  const whole = /^[▸▾]/.test(text) ? "fold" : /^(?:\w+ engine|DMA queue .*)$/.test(text) ? "heading" : null;
  if (whole) return [...tokens, { from: at, to: row.length, cls: whole }];
  if (/^(?:‖|▶|═)/.test(text)) tokens.push({ from: at, to: at + 1, cls: "sync" });
  let depth = 0;
  let before = "";
  LEXER.lastIndex = at;
  for (let m = LEXER.exec(row); m; m = LEXER.exec(row)) {
    const g = m.groups as Record<string, string | undefined>;
    const to = m.index + m[0].length;
    if (g["open"] !== undefined) depth++;
    else if (g["close"] !== undefined) depth--;
    else if (g["word"] !== undefined) {
      const cls = wordClass(m[0], row, to, depth, before === "for");
      if (cls) tokens.push({ from: m.index, to, cls });
    } else {
      const kind = (["value", "symbol", "type", "attr", "number"] as const).find((k) => g[k] !== undefined);
      if (kind) tokens.push({ from: m.index, to, cls: kind });
      else tokens.push({ from: m.index, to, cls: "keyword" });
    }
    before = m[0];
  }
  return tokens;
}
