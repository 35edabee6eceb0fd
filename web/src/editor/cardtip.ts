// cardtip: a tip at the caret that a key opens: what hovering shows, for the keyboard.  Escape, a move of the caret and
// another text close it.
import { type Extension, StateEffect, StateField } from "@codemirror/state";
import { closeHoverTooltips, type EditorView, hasHoverTooltips, keymap, showTooltip, type Tooltip } from "@codemirror/view";

const setTip = StateEffect.define<Tooltip | null>();

const tipField = StateField.define<Tooltip | null>({
  create: () => null,
  update(tip, tr) {
    for (const effect of tr.effects) if (effect.is(setTip)) return effect.value;
    return tr.docChanged || tr.selection ? null : tip;
  },
  provide: (f) => showTooltip.from(f),
});

/** Opens the tip at the caret, or closes it; make: its content, null for none. */
export function toggleTip(view: EditorView, make: () => HTMLElement | null): void {
  const dom = isTipOpen(view) ? null : make();
  const pos = view.state.doc.lineAt(view.state.selection.main.head).from;
  const tip = dom ? { pos, above: false, create: () => ({ dom }) } : null;
  view.dispatch({ effects: [setTip.of(tip), closeHoverTooltips] });
}

export function isTipOpen(view: EditorView): boolean {
  return (view.state.field(tipField, false) ?? null) !== null;
}

/** Closes what is open: the tip at the caret and the one below the pointer; false if there is none. */
export function closeTips(view: EditorView): boolean {
  if (!isTipOpen(view) && !hasHoverTooltips(view.state)) return false;
  view.dispatch({ effects: [setTip.of(null), closeHoverTooltips] });
  return true;
}

export function cardTip(): Extension {
  return [tipField, keymap.of([{ key: "Escape", run: closeTips }])];
}
