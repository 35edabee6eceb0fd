// languages: what a kernel can be written in, and which of them a text looks like.

export interface Language {
  name: string;
  label: string;
  /** What the text is called in ranges and diagnostics. */
  file: string;
}

export const LANGUAGES: readonly Language[] = [
  { name: "nkipy", label: "Python", file: "kernel.py" },
  { name: "hlo", label: "HLO", file: "kernel.hlo" },
  { name: "mlir", label: "MLIR", file: "kernel.mlir" },
];

export function fileOf(language: string): string {
  return (LANGUAGES.find((l) => l.name === language) ?? (LANGUAGES[0] as Language)).file;
}

const HLO = /^(?:\s|\/\/[^\n]*\n|\/\*[\s\S]*?\*\/)*HloModule\s/;
const MLIR = /^(?:\s|\/\/[^\n]*\n)*(?:module\b|builtin\.module\b|"builtin\.module"|func\.func\b|"func\.func"|[#!][\w.]+ = )/;
const PYTHON = /^(?:@\w|(?:def|import|from|class)\s)/m;

/** Null if the text may be anything, as while it is being written. */
export function languageOf(text: string): string | null {
  if (HLO.test(text)) return "hlo";
  if (MLIR.test(text)) return "mlir";
  return PYTHON.test(text) ? "nkipy" : null;
}
