// dialect: the tokenizer for the text of a stage.
import { tokenizeHlo } from "./hlo";
import { tokenizeMlir } from "./mlir";
import { tokenizeNki } from "./nki";
import type { Tokenizer } from "./token";

export function tokenizerOf(dialect: string | undefined): Tokenizer {
  return dialect === "hlo" ? tokenizeHlo : dialect === "nki" ? tokenizeNki : tokenizeMlir;
}
