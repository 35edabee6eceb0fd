// tokens: colours the visible lines of a read-only text with a tokenizer that reads line by line.
import { type Extension, Facet, RangeSetBuilder } from "@codemirror/state";
import { Decoration, type DecorationSet, type EditorView, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import type { TokenClass, Tokenizer } from "../highlight/token";

export const tokenizer = Facet.define<Tokenizer, Tokenizer>({ combine: (all) => all[0] ?? (() => []) });

const marks = new Map<TokenClass, Decoration>();

function markOf(cls: TokenClass): Decoration {
  let mark = marks.get(cls);
  if (!mark) marks.set(cls, (mark = Decoration.mark({ class: `ir-${cls}` })));
  return mark;
}

class Tokens {
  decorations: DecorationSet;

  constructor(view: EditorView) {
    this.decorations = this.build(view);
  }

  update(u: ViewUpdate): void {
    if (u.docChanged || u.viewportChanged || u.startState.facet(tokenizer) !== u.state.facet(tokenizer))
      this.decorations = this.build(u.view);
  }

  private build(view: EditorView): DecorationSet {
    const builder = new RangeSetBuilder<Decoration>();
    const tokenize = view.state.facet(tokenizer);
    for (const { from, to } of view.visibleRanges) {
      for (let pos = from; pos <= to; ) {
        const line = view.state.doc.lineAt(pos);
        for (const t of tokenize(line.text)) builder.add(line.from + t.from, line.from + t.to, markOf(t.cls));
        pos = line.to + 1;
      }
    }
    return builder.finish();
  }
}

export function tokenColours(): Extension {
  return ViewPlugin.fromClass(Tokens, { decorations: (p) => p.decorations });
}
