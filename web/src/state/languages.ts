// languages: the languages of kernels, and a guess which one a text is in.

export interface Language {
  name: string;
  label: string;
  /** The file name in ranges and diagnostics. */
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

/** Null if the text fits none, as while it is being typed. */
export function languageOf(text: string): string | null {
  if (HLO.test(text)) return "hlo";
  if (MLIR.test(text)) return "mlir";
  return PYTHON.test(text) ? "nkipy" : null;
}
