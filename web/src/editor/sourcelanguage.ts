// sourcelanguage: the editor's syntax highlighting for each language of the source.
import { Compartment, type Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tokenizeHlo } from "../highlight/hlo";
import { tokenizeMlir } from "../highlight/mlir";
import { pythonLanguage } from "./python";
import { tokenColours, tokenizer } from "./tokens";

const compartment = new Compartment();

function extension(language: string): Extension {
  if (language === "nkipy") return pythonLanguage();
  return [tokenizer.of(language === "hlo" ? tokenizeHlo : tokenizeMlir), tokenColours()];
}

export function sourceLanguage(language: string): Extension {
  return compartment.of(extension(language));
}

export function changeLanguage(view: EditorView, language: string): void {
  view.dispatch({ effects: compartment.reconfigure(extension(language)) });
}
