// nki: colours for the calls of an NKI kernel, one line at a time.
//
//   x = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
//   for i in range(4):  # what the analysis says
//     nisa.tensor_tensor(dst=x, data1=a[0:128, :], data2=y, op=nl.add)
import { mlirClass } from "./opclass";
import { TOKEN_LINE_MAX, type Token, type TokenClass } from "./token";

const PARTS = new RegExp(
  [
    /(?<comment>#.*)/,
    /(?<string>"[^"]*"|'[^']*')/,
    /(?<call>\bnisa\.\w+)(?=\()/,
    /(?<alloc>\bnl\.ndarray)(?=\()/,
    /(?<control>\b(?:for|in|if|elif|else|while|with)\b)/,
    /(?<keyword>\b(?:def|return|and|or|not|is|as|lambda|assert|pass|break|continue|class|import|from|True|False|None)\b|@[\w.]+)/,
    /(?<type>\bnl\.(?:b?float|u?int|bool)\w*|\b(?:b?float|u?int|bool)\d*\w*(?=\[))/,
    /(?<symbol>\bn(?:l|isa)\.[\w.]+)/,
    /(?<attr>\b\w+=)/,
    /(?<number>(?<![\w.])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.]))/,
    /(?<value>[A-Za-z_]\w*)/,
  ]
    .map((r) => r.source)
    .join("|"),
  "g",
);

export function tokenizeNki(line: string): Token[] {
  const tokens: Token[] = [];
  if (line.length > TOKEN_LINE_MAX) return tokens;
  for (const m of line.matchAll(PARTS)) {
    const kind = Object.entries(m.groups ?? {}).find(([, v]) => v !== undefined)?.[0];
    const cls = kind === "call" ? mlirClass(m[0]) : (kind as TokenClass);
    tokens.push({ from: m.index, to: m.index + m[0].length, cls });
  }
  return tokens;
}
