// diffview: one column of a comparison: the lines of one side, or of both, with the differences marked.
//
// The text holds a line for every row, empty where this side has none, so that two columns of the same height scroll as
// one.  Only visible lines are decorated.
import { standardKeymap } from "@codemirror/commands";
import { search, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorSelection, EditorState, RangeSetBuilder, RangeSet, StateEffect, StateField, Text } from "@codemirror/state";
import { Decoration, type DecorationSet, drawSelection, EditorView, gutter, GutterMarker, keymap, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { tokenizeCompact } from "../highlight/compact";
import { tokenizeHlo } from "../highlight/hlo";
import { tokenizeMlir } from "../highlight/mlir";
import type { DiffLine, ShortLines } from "../state/diff";
import type { Light } from "../state/selection";
import type { SourceMap, StageLinks } from "../state/sourcemap";
import { BANDS } from "./links";
import { offsetOfColumn } from "./positions";
import { pythonLanguage } from "./python";
import { tokenColours, tokenizer } from "./tokens";

/** One of the two texts. */
export interface DiffSide {
  language: "hlo" | "mlir" | "python";
  /** What its operations were made from; null for a text without a map. */
  origin: { map: SourceMap; links: StageLinks } | null;
  lines: readonly string[];
  /** The compact form; null for a text that has none. */
  short: (() => ShortLines) | null;
}

/** The content of a column. */
export interface Column {
  lines: readonly DiffLine[];
  from: DiffSide;
  to: DiffSide;
  /** Lines are shown as they are printed. */
  full: boolean;
}

interface Lit {
  from: Light | null;
  to: Light | null;
}

interface ColumnState {
  column: Column | null;
  lit: Lit;
}

const fromPage = Annotation.define<boolean>();
const setColumn = StateEffect.define<Column>();
const setLit = StateEffect.define<Lit>();

const columnField = StateField.define<ColumnState>({
  create: () => ({ column: null, lit: { from: null, to: null } }),
  update(state, tr) {
    let next = state;
    for (const effect of tr.effects) {
      if (effect.is(setColumn)) next = { ...next, column: effect.value };
      else if (effect.is(setLit)) next = { ...next, lit: effect.value };
    }
    return next;
  },
});

/** The side whose stage a line is looked up in; a line on both sides is looked up in the newer. */
function sideOf(column: Column, line: DiffLine): { side: DiffSide; which: "from" | "to"; no: number } {
  const which = line.side === "from" ? "from" : "to";
  return { side: column[which], which, no: line[which] };
}

export function opOfLine(column: Column, line: DiffLine): { which: "from" | "to"; op: number } | null {
  const { side, which, no } = sideOf(column, line);
  const op = no > 0 && line.kind !== "gap" ? (side.origin?.links.lineOp[no - 1] ?? -1) : -1;
  return op >= 0 ? { which, op } : null;
}

function textOf(column: Column, line: DiffLine): string {
  if (line.kind === "filler") return "";
  if (line.kind === "gap") return `⋯ ${line.count.toLocaleString("en")} equal lines`;
  const { side, no } = sideOf(column, line);
  const short = column.full || line.full ? null : side.short?.();
  return short?.[no - 1] ?? side.lines[no - 1] ?? "";
}

const cache = new Map<string, Decoration>();

function deco(kind: "line" | "mark", cls: string): Decoration {
  const key = kind + cls;
  let d = cache.get(key);
  if (!d) cache.set(key, (d = kind === "line" ? Decoration.line({ class: cls }) : Decoration.mark({ class: cls })));
  return d;
}

function tone(line: DiffLine): string {
  if (line.hunk < 0 || line.kind === "filler") return line.kind;
  return line.side === "from" ? "minus" : "plus";
}

class Lines {
  decorations: DecorationSet;

  constructor(view: EditorView) {
    this.decorations = this.build(view);
  }

  update(u: ViewUpdate): void {
    if (u.docChanged || u.viewportChanged || u.startState.field(columnField) !== u.state.field(columnField))
      this.decorations = this.build(u.view);
  }

  private build(view: EditorView): DecorationSet {
    const builder = new RangeSetBuilder<Decoration>();
    const { column, lit } = view.state.field(columnField);
    if (!column) return Decoration.none;
    for (const { from, to } of view.visibleRanges) {
      for (let pos = from; pos <= to; ) {
        const at = view.state.doc.lineAt(pos);
        const line = column.lines[at.number - 1];
        if (line) {
          const hit = opOfLine(column, line);
          const isLit = hit !== null && lit[hit.which]?.ops.has(hit.op) === true;
          builder.add(at.from, at.from, deco("line", `diff-${tone(line)}${isLit ? " lit-selected" : ""}`));
          for (const [start, end] of line.words) {
            const a = at.from + offsetOfColumn(at.text, start);
            const b = at.from + offsetOfColumn(at.text, end);
            if (b > a) builder.add(a, b, deco("mark", "diff-word"));
          }
        }
        pos = at.to + 1;
      }
    }
    return builder.finish();
  }
}

class TextMarker extends GutterMarker {
  override readonly elementClass: string;
  constructor(
    private readonly text: string,
    cls: string,
  ) {
    super();
    this.elementClass = cls;
  }
  override eq(other: TextMarker): boolean {
    return this.text === other.text && this.elementClass === other.elementClass;
  }
  override toDOM(): Node {
    return document.createTextNode(this.text);
  }
}

const SIGN: Record<string, string> = { minus: "−", plus: "+" };

type Part = (column: Column, line: DiffLine) => GutterMarker | null;

function lineGutter(cls: string, widest: (c: Column) => number, part: Part) {
  return gutter({
    class: cls,
    markers: () => RangeSet.empty,
    lineMarker: (view, block) => {
      const { column } = view.state.field(columnField);
      const line = column?.lines[view.state.doc.lineAt(block.from).number - 1];
      return column && line ? part(column, line) : null;
    },
    lineMarkerChange: (u) => u.startState.field(columnField).column !== u.state.field(columnField).column,
    initialSpacer: () => new TextMarker("88", ""),
    updateSpacer: (old, u) => {
      const { column } = u.state.field(columnField);
      return column ? new TextMarker("8".repeat(Math.max(2, String(widest(column)).length)), "") : old;
    },
  });
}

function numbers(which: "from" | "to") {
  return lineGutter(
    "cm-diffno",
    (c) => c[which].lines.length,
    (column, line) => {
      const no = line.kind === "gap" ? 0 : line[which];
      if (no === 0) return new TextMarker("", `diff-${tone(line)}`);
      const { origin } = column[which];
      const band = origin ? origin.map.bandOfPlaces(origin.links.places[no - 1] ?? []) : null;
      return new TextMarker(String(no), `diff-${tone(line)}${band === null ? "" : ` band band-${band % BANDS}`}`);
    },
  );
}

const signs = lineGutter(
  "cm-diffsign",
  () => 1,
  (_column, line) => new TextMarker(SIGN[tone(line)] ?? "", `diff-${tone(line)}`),
);

export interface ColumnEvents {
  clicked(line: DiffLine): void;
}

const LANGUAGES = { hlo: tokenizer.of(tokenizeHlo), mlir: tokenizer.of(tokenizeMlir), compact: tokenizer.of(tokenizeCompact), python: pythonLanguage() };

const ATTRIBUTES: Record<string, string> = { tabindex: "0", role: "textbox", "aria-readonly": "true", "aria-multiline": "true" };

export class DiffColumn {
  readonly view: EditorView;
  private readonly gutters = new Compartment();
  private readonly language = new Compartment();
  private readonly wrap = new Compartment();
  private readonly label = new Compartment();

  constructor(parent: HTMLElement, events: ColumnEvents) {
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          EditorState.readOnly.of(true),
          EditorView.editable.of(false),
          columnField,
          this.gutters.of([]),
          drawSelection(),
          search({ top: true }),
          keymap.of([
            { key: "Enter", run: (view) => this.click(view.state.selection.main.head, events) },
            ...standardKeymap,
            ...searchKeymap,
          ]),
          ViewPlugin.fromClass(Lines, { decorations: (p) => p.decorations }),
          tokenColours(),
          this.language.of([]),
          this.wrap.of([]),
          this.label.of(EditorView.contentAttributes.of({ ...ATTRIBUTES, "aria-label": "Diff" })),
          EditorView.domEventHandlers({
            click: (e, view) => {
              if (e.button !== 0 || !view.state.selection.main.empty) return;
              this.click(view.lineBlockAtHeight(e.clientY - view.documentTop).from, events);
            },
          }),
        ],
      }),
    });
  }

  private click(pos: number, events: ColumnEvents): boolean {
    const { column } = this.view.state.field(columnField);
    const line = column?.lines[this.view.state.doc.lineAt(pos).number - 1];
    if (line) events.clicked(line);
    return line !== undefined;
  }

  show(column: Column, both: boolean, label: string): void {
    const { view } = this;
    const doc = Text.of(column.lines.length > 0 ? column.lines.map((l) => textOf(column, l)) : [""]);
    const side = column.lines.find((l) => l.kind !== "filler")?.side === "from" && !both ? "from" : "to";
    view.dispatch({
      changes: { from: 0, to: view.state.doc.length, insert: doc },
      selection: EditorSelection.cursor(0),
      effects: [
        setColumn.of(column),
        this.gutters.reconfigure(both ? [numbers("from"), numbers("to"), signs] : [numbers(side), signs]),
        this.language.reconfigure(LANGUAGES[column[side].short && !column.full ? "compact" : column[side].language]),
        this.label.reconfigure(EditorView.contentAttributes.of({ ...ATTRIBUTES, "aria-label": label })),
      ],
      annotations: fromPage.of(true),
    });
  }

  showLights(lit: Lit): void {
    const now = this.view.state.field(columnField).lit;
    if (now.from !== lit.from || now.to !== lit.to) this.view.dispatch({ effects: setLit.of(lit) });
  }

  setWrap(on: boolean): void {
    this.view.dispatch({ effects: this.wrap.reconfigure(on ? EditorView.lineWrapping : []) });
  }

  /** Scrolls to a line (from 0) and puts the caret there. */
  goTo(index: number): void {
    const { doc } = this.view.state;
    const line = doc.line(Math.min(Math.max(index + 1, 1), doc.lines));
    this.view.dispatch({
      selection: EditorSelection.cursor(line.from),
      effects: EditorView.scrollIntoView(line.from, { y: "start", yMargin: Math.round(this.view.scrollDOM.clientHeight / 4) }),
    });
  }

  /** The line (from 0) at the top of the viewport. */
  topLine(): number {
    const { view } = this;
    return view.state.doc.lineAt(view.lineBlockAtHeight(view.scrollDOM.scrollTop).from).number - 1;
  }

  caretLine(): number {
    return this.view.state.doc.lineAt(this.view.state.selection.main.head).number - 1;
  }
}

/** Makes two columns scroll together. */
export function scrollTogether(a: EditorView, b: EditorView): void {
  const follow = (one: HTMLElement, other: HTMLElement) => {
    one.addEventListener("scroll", () => {
      if (Math.abs(other.scrollTop - one.scrollTop) > 0.5) other.scrollTop = one.scrollTop;
      if (Math.abs(other.scrollLeft - one.scrollLeft) > 0.5) other.scrollLeft = one.scrollLeft;
    });
  };
  follow(a.scrollDOM, b.scrollDOM);
  follow(b.scrollDOM, a.scrollDOM);
}
