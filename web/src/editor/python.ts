// python: the CSS classes of Python's syntax; style/syntax.css has their colours.
import { pythonLanguage as language } from "@codemirror/lang-python";
import { syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { tagHighlighter, tags as t } from "@lezer/highlight";

const highlighter = tagHighlighter([
  { tag: [t.keyword, t.operatorKeyword, t.controlKeyword, t.definitionKeyword, t.moduleKeyword], class: "py-keyword" },
  { tag: [t.self, t.null, t.bool], class: "py-constant" },
  { tag: [t.number], class: "py-number" },
  { tag: [t.string, t.special(t.string)], class: "py-string" },
  { tag: [t.comment], class: "py-comment" },
  { tag: [t.function(t.variableName), t.function(t.propertyName)], class: "py-call" },
  { tag: [t.function(t.definition(t.variableName)), t.definition(t.className), t.className], class: "py-def" },
  { tag: [t.meta], class: "py-decorator" },
]);

export function pythonLanguage(): Extension {
  // the language alone: python() brings its completions, which the page does not use
  return [language, syntaxHighlighting(highlighter)];
}
